/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL: the Direct Access Transport API, version 1.2, for consumers in the kernel, here for
 * modules (docs/DAT.md). The module kdapl.so has the functions.
 *
 * This header has what is the kernel's alone; <dat/dat.h>, which it includes, has what user
 * consumers share. Names and values are those of the DAT Collaborative's API.
 *
 * Contexts. Each function may be called from an upcall, and none sleeps. Upcalls run one after
 * another on a fiber of kdapl, never on the caller's stack, and must not sleep.
 */
#ifndef DAT_KDAT_H
#define DAT_KDAT_H

#include <dat/dat_platform_specific.h>

#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2
#define DAT_THREADSAFE	  DAT_TRUE

typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL = 0x00,
	DAT_MEM_TYPE_LMR = 0x01,
	DAT_MEM_TYPE_PHYSICAL = 0x10,
	DAT_MEM_TYPE_PLATFORM = 0x20,
	DAT_MEM_TYPE_IA = 0x40,
	DAT_MEM_TYPE_BYPASS = 0x80,
} DAT_MEM_TYPE;

typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR,
	DAT_HANDLE_TYPE_EP,
	DAT_HANDLE_TYPE_EVD,
	DAT_HANDLE_TYPE_IA,
	DAT_HANDLE_TYPE_LMR,
	DAT_HANDLE_TYPE_PSP,
	DAT_HANDLE_TYPE_PZ,
	DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_RSP,
	DAT_HANDLE_TYPE_SRQ,
} DAT_HANDLE_TYPE;

typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x01,
	DAT_EVD_FIELD_EVD_QLEN = 0x02,
	DAT_EVD_FIELD_UPCALL_POLICY = 0x04,
	DAT_EVD_FIELD_UPCALL = 0x08,
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f,
} DAT_EVD_PARAM_MASK;

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#include <dat/dat.h>

/* --- upcalls --- */

/** enum dat_upcall_policy - how many upcalls of an EVD may run at the same time. All run one
 *  after another here, so MANY is as SINGLE_INSTANCE. TEARDOWN: none begins any more */
typedef enum dat_upcall_policy {
	DAT_UPCALL_DISABLE = 0,
	DAT_UPCALL_SINGLE_INSTANCE = 1,
	DAT_UPCALL_MANY = 100,
	DAT_UPCALL_TEARDOWN = -1,
} DAT_UPCALL_POLICY;

/** DAT_UPCALL_FUNC - @event has been dequeued; it is valid until the function returns.
 *  @more_events: others are queued, which dat_evd_dequeue() gives, or further upcalls */
typedef void (*DAT_UPCALL_FUNC)(DAT_PVOID instance_data, const DAT_EVENT *event,
				DAT_BOOLEAN more_events);

typedef struct dat_upcall_object {
	DAT_PVOID instance_data;
	DAT_UPCALL_FUNC upcall_func;
} DAT_UPCALL_OBJECT;

#define DAT_UPCALL_NULL ((DAT_UPCALL_OBJECT){NULL, NULL})
/** DAT_UPCALL_SAME - of dat_evd_modify_upcall(): the function stays */
#define DAT_UPCALL_SAME ((DAT_UPCALL_OBJECT *)NULL)

struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UPCALL_OBJECT upcall;
	DAT_EVD_FLAGS evd_flags;
};

/* --- memory --- */

typedef enum dat_mem_optimize_flags {
	DAT_MEM_OPTIMIZE_DONT_CARE = 0x00,
	DAT_MEM_OPTIMIZE_IA = 0x01,
	DAT_MEM_OPTIMIZE_MIN_EXPOSURE = 0x02,
	DAT_MEM_OPTIMIZE_EXACT_EXPOSURE = 0x04,
} DAT_MEM_OPTIMIZE_FLAGS;

/** union dat_region_description - what the memory is, by its DAT_MEM_TYPE */
typedef union dat_region_description {
	DAT_PVOID for_va;	       /* VIRTUAL */
	DAT_LMR_HANDLE for_lmr_handle; /* LMR */
	void *for_pointer;	       /* PLATFORM, BYPASS */
	void *for_array;	       /* PHYSICAL: DAT_PADDR of each page */
	DAT_PADDR for_pa;	       /* IA: where it begins */
	/* the names of DAT 2.0 */
	void *for_platform;
	DAT_PADDR *for_physical;
	DAT_PADDR for_ia;
} DAT_REGION_DESCRIPTION;

struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
};

/* --- the provider --- */

struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size; /* bytes */
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UINT32 optimal_buffer_alignment; /* bytes */
	/** which event streams may share an EVD, in the order of DAT_EVD_FLAGS: software,
	 *  connection requests, DTOs, connections, binds, asynchronous errors */
	DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

#define DAT_PROVIDER_FIELD_PROVIDER_NAME		  UINT64_C(0x0000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	  UINT64_C(0x0000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	  UINT64_C(0x0000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR		  UINT64_C(0x0000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR		  UINT64_C(0x0000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	  UINT64_C(0x0000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP		  UINT64_C(0x0000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED		  UINT64_C(0x0000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	  UINT64_C(0x0000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE		  UINT64_C(0x0000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	  UINT64_C(0x0000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH		  UINT64_C(0x0000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR			  UINT64_C(0x0001000)
#define DAT_PROVIDER_FIELD_UPCALL_POLICY		  UINT64_C(0x0002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	  UINT64_C(0x0004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	  UINT64_C(0x0008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED		  UINT64_C(0x0010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	  UINT64_C(0x0020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x0040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED		  UINT64_C(0x0080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	  UINT64_C(0x0100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ			  UINT64_C(0x0200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	  UINT64_C(0x0400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	  UINT64_C(0x0800000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	  UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	  UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_ALL				  UINT64_C(0x3ffffff)
#define DAT_PROVIDER_FIELD_NONE				  UINT64_C(0x0)

#pragma GCC visibility push(default)

/* --- functions of the kernel alone --- */

/**
 * dat_lmr_kcreate() - register memory
 * @mem_type: VIRTUAL: @length bytes at for_va; IA: @length bytes at for_pa; PHYSICAL: @length
 *  pages of 4096 bytes, whose addresses are in for_array; LMR: the memory of for_lmr_handle,
 *  in another PZ or with other privileges. PLATFORM, BYPASS: DAT_MODEL_NOT_SUPPORTED
 * @rmr_context: of remote access, when @privileges give it; may be NULL, as may the last two
 * @registered_length: bytes
 *
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER; DAT_INSUFFICIENT_RESOURCES;
 * DAT_MODEL_NOT_SUPPORTED
 */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			   DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_MEM_OPTIMIZE_FLAGS mem_optimization, DAT_LMR_HANDLE *lmr_handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_length, DAT_VADDR *registered_address);

/** dat_ia_memtype_hint() - which length and alignment, in bytes, suit dat_lmr_kcreate() */
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length, DAT_VADDR *preferred_alignment);

/**
 * dat_evd_kcreate() - an event dispatcher
 * @evd_min_qlen: how many events it has room for, at least
 * @upcall: NULL or its function NULL with DAT_UPCALL_DISABLE: it is asked by
 *  dat_evd_dequeue() alone
 */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle);

/** dat_evd_modify_upcall() - @upcall: DAT_UPCALL_SAME: only the policy changes. Events that
 *  are queued lead to upcalls */
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle, DAT_UPCALL_POLICY upcall_policy,
				 const DAT_UPCALL_OBJECT *upcall);

#pragma GCC visibility pop

#endif
