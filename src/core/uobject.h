/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects of programs. A program that opens a device has a context
 * (struct ib_ucontext). Its objects are named by 32-bit handles, never by
 * pointers, which are valid in that context only. A handle consists of an index
 * and a generation, so that the handle of a destroyed object does not name its
 * successor. When the context is closed, or the process dies, all its objects
 * are destroyed, each before those that it uses.
 *
 * Contexts may share their handles (ib_ucontext_share(), for ibv_import_device()). Then each
 * finds the protection domains, regions and device memory of the others. It does not find
 * their queues, which are in the engine of the program that made them.
 *
 * This is the interface between the core and the endpoints of src/access.
 */
#ifndef SOFTIB_CORE_UOBJECT_H
#define SOFTIB_CORE_UOBJECT_H

#include "rdma/ib_verbs.h"

enum ib_uobject_type {
	IB_UOBJECT_PD,
	IB_UOBJECT_AH,
	IB_UOBJECT_CQ,
	IB_UOBJECT_SRQ,
	IB_UOBJECT_QP,
	IB_UOBJECT_MR,
	IB_UOBJECT_MW,
	IB_UOBJECT_DM,
	IB_UOBJECT_XRCD,
	IB_UOBJECT_FLOW,
	IB_UOBJECT_TYPES
};

/** struct ib_uobject - the connection between a handle and an object */
struct ib_uobject {
	struct list_head node; /* in context->objects */
	struct ib_ucontext *context;
	enum ib_uobject_type type;
	u32 handle;
	void *object;	 /* struct ib_pd ...; NULL until committed */
	u64 user_handle; /* the value by which the program identifies it in events */
	u64 locked_bytes; /* MR: locked memory that is charged to the context for it */
	u32 qpn;	  /* the number that is reserved for the QP; 0: none */
	/* --- QP, of an XRC target --- */
	struct list_head opener; /* in qp->openers */
	struct ib_xrcd *xrcd;	 /* the domain by which this handle was opened */
};

/** struct ib_handle - a slot of the handle table */
struct ib_handle {
	struct ib_uobject *uobject; /* NULL: free */
	u32 generation;
	u32 next_free;
};

/** struct ib_handles - a handle table: of one context, or of all that share their objects */
struct ib_handles {
	struct list_head contexts; /* ib_ucontext.sharer; it is freed with the last of them */
	struct ib_handle *slot;
	u32 num, free;
};

/**
 * ib_ucontext_open() - open @device for process @pid
 * @comm: its name, for resource tracking
 * Return: a context, driver's answer filled; ERR_PTR: -EIO the device is
 * going; -EMFILE, -ENOMEM of the driver
 */
struct ib_ucontext *ib_ucontext_open(struct ib_device *device, pid_t pid, const char *comm);
/** ib_ucontext_close() - destroy all objects, then the context. Protection domains and device
 *  memory, with the regions on it, pass to a context that shares them */
void ib_ucontext_close(struct ib_ucontext *context);
/** ib_ucontext_of_process() - Return: the only context that process @pid has of @device; NULL */
struct ib_ucontext *ib_ucontext_of_process(const struct ib_device *device, pid_t pid);
/** ib_ucontext_share() - @context, which has no objects yet, shares its handles with @other
 *  from now on. 0; -EINVAL it has some, or another device */
int ib_ucontext_share(struct ib_ucontext *context, struct ib_ucontext *other);

/** ib_uobject_alloc() - allocate a handle for a new object. The handle is not
 *  found before ib_uobject_commit(). Return: ERR_PTR(-ENOMEM) on failure */
struct ib_uobject *ib_uobject_alloc(struct ib_ucontext *context, enum ib_uobject_type type);
/** ib_uobject_reserve_qp() - ib_uobject_alloc() of a queue pair, with its number and its place among those
 *  that the device can have. Return: NULL: there is no memory, or the device has half of its QPs */
struct ib_uobject *ib_uobject_reserve_qp(struct ib_ucontext *context);
/** ib_uobject_abort() - free the handle, because the object could not be made */
void ib_uobject_abort(struct ib_uobject *uobject);
/** ib_uobject_commit() - let the handle find @object. If @object is an ERR_PTR(), free @uobject
 *  instead.
 *  Return: 0; the error of the ERR_PTR() */
int ib_uobject_commit(struct ib_uobject *uobject, void *object);
/** ib_uobject_get() - Return: the object with this handle; a PD, MR or DM may be one of a context
 *  that shares the handles. ERR_PTR(-EINVAL): @handle names no object of @type */
void *ib_uobject_get(struct ib_ucontext *context, enum ib_uobject_type type, u32 handle);
/** ib_uobject_destroy() - destroy an object and its handle
 *  Return: 0; -EINVAL: there is no such object, or it is a region in the memory of another program;
 *  -EBUSY: it is in use */
int ib_uobject_destroy(struct ib_ucontext *context, enum ib_uobject_type type, u32 handle);

/**
 * ib_ucontext_lock_memory() - charge @bytes of locked memory to the context
 * @limit_bytes: the largest sum that may be charged; UINT64_MAX: it is not limited
 *
 * No memory is in fact locked. With a limit, a program fails where it would fail
 * with hardware.
 * Return: 0; -ENOMEM: the limit is exceeded
 */
int ib_ucontext_lock_memory(struct ib_ucontext *context, u64 bytes, u64 limit_bytes);
void ib_ucontext_unlock_memory(struct ib_ucontext *context, u64 bytes);
/** ib_locked_bytes() - Return: the size of all pages that [start, start + length) touches */
u64 ib_locked_bytes(u64 start, u64 length);

/* --- creation of objects for programs; each as the ib_ function with the same name --- */

struct ib_pd *ib_alloc_pd_user(struct ib_uobject *uobject);
struct ib_ah *ib_create_ah_user(struct ib_uobject *uobject, struct ib_pd *pd,
				const struct rdma_ah_attr *attr);
struct ib_cq *ib_create_cq_user(struct ib_uobject *uobject, const struct ib_cq_init_attr *attr);
struct ib_srq *ib_create_srq_user(struct ib_uobject *uobject, struct ib_pd *pd,
				  struct ib_srq_init_attr *attr);
struct ib_qp *ib_create_qp_user(struct ib_uobject *uobject, struct ib_pd *pd,
				struct ib_qp_init_attr *attr);
/** ib_reg_user_mr() - @start is an address of the program, @iova what its
 *  requests and its peers will use. -EINVAL wraps, or rights: remote write
 *  and atomic need local write (10.6.3.3) */
struct ib_mr *ib_reg_user_mr(struct ib_uobject *uobject, struct ib_pd *pd, u64 start, u64 length,
			     u64 iova, int access);
/** ib_rereg_user_mr() - @flags of enum ib_mr_rereg_flags say what changes;
 *  on error the region is as before */
int ib_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
		     struct ib_pd *pd);
struct ib_mw *ib_alloc_mw_user(struct ib_uobject *uobject, struct ib_pd *pd,
			       enum ib_mw_type type);
/** struct ib_xrcd_file - the file that names an XRC domain */
struct ib_xrcd_file {
	u64 device, inode;
};
/** ib_alloc_xrcd_user() - join the XRC domain of @file, or with O_CREAT in @oflags make it
 *  @file: NULL: a domain that nobody can join
 *  -EOPNOTSUPP the device has no XRC; -EINVAL there is none without O_CREAT, or one with
 *  O_EXCL; -ENOMEM */
struct ib_xrcd *ib_alloc_xrcd_user(struct ib_uobject *uobject, const struct ib_xrcd_file *file,
				   int oflags);
/** ib_open_qp_user() - make @uobject a further handle of the domain's target @qp_num
 *  Return: the target; ERR_PTR(-EINVAL): there is no such target */
struct ib_qp *ib_open_qp_user(struct ib_uobject *uobject, struct ib_xrcd *xrcd, u32 qp_num);
/** ib_target_has_others() - has more than one program opened this target? */
bool ib_target_has_others(const struct ib_qp *qp);
/** ib_set_rss() - let @qp distribute its frames to work queues, until it is destroyed
 *  @rss: copied. Return: 0; -EINVAL; -ENOMEM */
int ib_set_rss(struct ib_qp *qp, const struct ib_rss *rss);
/** ib_alloc_dm_user() - @length bytes of device memory. -EOPNOTSUPP the device has none;
 *  -EINVAL none, or more than it has; -ENOMEM more than is left */
struct ib_dm *ib_alloc_dm_user(struct ib_uobject *uobject, u64 length);
int ib_dealloc_dm(struct ib_dm *dm);
/** ib_reg_dm_mr_user() - a region on a part of @dm, zero-based. -EINVAL beyond it, rights */
struct ib_mr *ib_reg_dm_mr_user(struct ib_uobject *uobject, struct ib_pd *pd, struct ib_dm *dm,
				u64 offset, u64 length, int access);

#endif
