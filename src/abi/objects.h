/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands on the uverbs socket for objects that the kernel creates by ioctl(2) and
 * that <rdma/ib_user_verbs.h> has no write() command for. They are framed like the
 * other commands. The comments below describe the descriptors of their answers.
 */
#ifndef SOFTIB_ABI_OBJECTS_H
#define SOFTIB_ABI_OBJECTS_H

#include <rdma/ib_user_verbs.h>
#include <stdint.h>

/*
 * Device memory is a memfd, sealed against a change of its size. The answer carries it,
 * for the program to map; a region on it is a region whose memory is that mapping.
 */
#define ABI_CMD_ALLOC_DM 0x5f02u

struct abi_alloc_dm {
	uint64_t length_bytes;
};

struct abi_alloc_dm_resp {
	uint32_t dm_handle, reserved;
};

#define ABI_CMD_FREE_DM 0x5f03u

struct abi_free_dm {
	uint32_t dm_handle, reserved;
};

/* answered by struct ib_uverbs_reg_mr_resp */
#define ABI_CMD_REG_DM_MR 0x5f04u

struct abi_reg_dm_mr {
	uint64_t offset, length_bytes; /* in the device memory */
	uint32_t pd_handle, dm_handle;
	uint32_t access_flags, reserved;
};

/*
 * What a handle of the session names, for a program that was given the handle and not the
 * object (ibv_import_pd(), ibv_import_mr(), ibv_import_dm()). The answer of device memory, and
 * of a region on it, carries the memfd.
 */
#define ABI_CMD_QUERY_OBJECT 0x5f05u

enum abi_object { ABI_OBJECT_PD, ABI_OBJECT_MR, ABI_OBJECT_DM };

struct abi_query_object {
	uint32_t object; /* enum abi_object */
	uint32_t handle;
};

struct abi_query_object_resp {
	uint64_t length_bytes; /* of a region or device memory */
	/* --- of a region --- */
	uint32_t lkey, rkey;
	uint64_t iova;
	uint64_t dm_offset; /* in the device memory whose memfd the answer carries */
	uint32_t pd_handle;
	uint32_t access; /* enum ibv_access_flags */
	uint32_t owner;	 /* the number of the context that has the memory; 0: this one */
	uint32_t reserved;
};

/*
 * The link-layer address that belongs to a GID, of a port whose link layer is Ethernet: what
 * the kernel adds to an address vector (ib_resolve_eth_dmac()). Fails with EHOSTUNREACH if no
 * station has the GID in the VLAN of the source's GID, or with EAGAIN if one outside of the fabric may have it, for which the port
 * has asked.
 */
#define ABI_CMD_FIND_STATION 0x5f06u

struct abi_find_station {
	uint8_t gid[16];
	uint8_t port_num, sgid_index, reserved[6]; /* of the source */
};

struct abi_find_station_resp {
	uint16_t station; /* in the place of a LID; its low bits are the source's path bits */
	uint8_t mac[6];
};

/*
 * A rule that leads Ethernet frames to a raw packet QP (ibv_create_flow()): those whose
 * struct wire_frame_key (wire/frame.h) has the bits of @value that @mask selects.
 */
#define ABI_CMD_CREATE_FLOW 0x5f07u

struct abi_create_flow {
	uint32_t qp_handle;
	uint32_t flags; /* enum ibv_flow_flags */
	uint16_t type;	/* enum ibv_flow_attr_type */
	uint16_t priority;
	uint8_t port_num, drops, reserved[2];
	uint32_t tag, reserved2; /* what completions of these frames report */
	uint8_t value[64], mask[64];
};

struct abi_create_flow_resp {
	uint32_t flow_handle, reserved;
};

#define ABI_CMD_DESTROY_FLOW 0x5f08u

struct abi_destroy_flow {
	uint32_t flow_handle, reserved;
};

/* How many frames a rule was for, and their bytes, from destination address to payload. */
#define ABI_CMD_READ_FLOW 0x5f0au

struct abi_read_flow {
	uint32_t flow_handle, reserved;
};

struct abi_read_flow_resp {
	uint64_t packets, bytes;
};

/*
 * A raw packet QP passes its frames on to work queues, which are raw packet QPs, by a
 * Toeplitz hash (ibv_create_qp_ex() with an indirection table).
 */
#define ABI_CMD_SET_RSS 0x5f09u
#define ABI_RSS_QUEUES	128

struct abi_set_rss {
	uint64_t fields; /* enum ibv_rx_hash_fields */
	uint8_t key[40];
	uint32_t qp_handle, log_size;
	uint32_t wq_handle[ABI_RSS_QUEUES]; /* the first 2^log_size */
};

/* The answer to IB_USER_VERBS_EX_CMD_QUERY_DEVICE, with what the kernel leaves to its drivers. */
struct abi_ex_query_device_resp {
	struct ib_uverbs_ex_query_device_resp core;
	uint32_t min_rate_limit, max_rate_limit; /* of raw packet QPs, in kbit/s; 0: there is none */
};

#endif
