/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL: the objects behind the handles of <dat/kdat.h>.
 *
 * A handle is the address of a struct kd_object, which begins each object, and is looked
 * up among those that exist: what a consumer passes is not read before. Everything runs
 * in softibd's one thread: the consumers' calls, the events of the RDMA CM and of CQs
 * from the loop, and upcalls on the fiber of one work item (evd.c). An id of the RDMA CM
 * is never destroyed, and no function of a consumer called, from within an event.
 */
#ifndef ULP_KDAPL_PRIVATE_H
#define ULP_KDAPL_PRIVATE_H

#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <dat/kdat.h>

#include "ulp/kdapl/queue.h"

#define KD_MAX_IOV	      16
#define KD_PRIVATE_DATA	      RDMA_CM_REQ_PRIVATE_DATA_SIZE
#define KD_MAX_PRIVATE_DATA   256 /* that a message of the CM may bring */
#define KD_RESOLVE_MS	      5000
#define KD_DEFAULT_DTOS	      64
#define KD_DEFAULT_IOV	      4
#define KD_DEFAULT_ASYNC_QLEN 8

/** struct kd_provider - a port of an adapter */
struct kd_provider {
	struct list_head node;
	struct ib_device *device;
	u32 port;
	char name[DAT_NAME_MAX_LENGTH];
};

struct kd_ia;

struct kd_object {
	struct list_head hash; /* of all that exist, by address */
	DAT_HANDLE_TYPE type;
	struct list_head node; /* ia->objects */
	struct kd_ia *ia;
	DAT_CONTEXT context;
	unsigned int users; /* other objects that need it */
};

/** struct kd_ia - @device: NULL: the adapter is gone */
struct kd_ia {
	struct kd_object object;
	struct list_head node; /* kd_ias */
	struct list_head objects;
	struct ib_device *device;
	u32 port;
	char name[DAT_NAME_MAX_LENGTH];
	struct sockaddr_storage addr;
	struct kd_evd *async_evd;
	struct ib_event_handler events;
};

/** struct kd_evd - @cq: NULL: neither DTOs nor binds feed it. @doomed: freed by the
 * upcall that runs */
struct kd_evd {
	struct kd_object object;
	struct list_head pending; /* of the work item that makes upcalls */
	struct kd_events events;
	struct ib_cq *cq;
	DAT_COUNT qlen;
	DAT_EVD_FLAGS flags;
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT upcall;
	unsigned int solicited,
		signalled; /* EPs that receive with and without the flag */
	bool running, doomed, overflowed;
};

struct kd_pz {
	struct kd_object object;
	struct ib_pd *pd;
};

struct kd_lmr {
	struct kd_object object;
	struct kd_pz *pz;
	struct ib_mr *mr;
	DAT_LMR_PARAM param;
	struct ib_phys_buf *buf; /* what it is made of */
	int num_bufs;
};

struct kd_rmr {
	struct kd_object object;
	struct kd_pz *pz;
	struct ib_mw *mw;
	DAT_RMR_PARAM param;
};

struct kd_srq {
	struct kd_object object;
	struct kd_pz *pz;
	struct ib_srq *srq;
	struct kd_dto *slot;
	u32 *free; /* @num_free indices of @slot */
	u32 size, num_free;
	DAT_COUNT max_iov, low_watermark;
	bool failed;
};

struct kd_ep {
	struct kd_object object;
	DAT_EP_STATE state;
	DAT_EP_ATTR attr;
	struct kd_pz *pz;
	struct kd_evd *recv_evd, *request_evd, *connect_evd;
	struct kd_srq *srq;
	struct ib_qp *qp;      /* NULL: it is not configured */
	struct rdma_cm_id *id; /* NULL: it did not connect or accept since it was reset */
	struct kd_dtos request, recv;
	struct sockaddr_storage local, remote;
	DAT_CONN_QUAL conn_qual; /* that it connects to */
	struct timer_list timeout;
	u8 private_data[KD_MAX_PRIVATE_DATA]; /* ours of a request; then the peer's */
	u8 private_bytes;
};

/** struct kd_sp - a PSP or RSP. @ep: of an RSP. @used: an RSP that has got its request */
struct kd_sp {
	struct kd_object object;
	struct list_head expired; /* of those that the work item destroys */
	struct rdma_cm_id *id,
		*id6; /* for both families; NULL: the port has no IPv6 address */
	struct kd_evd *evd;
	struct kd_ep *ep;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_FLAGS flags;
	bool used;
};

struct kd_cr {
	struct kd_object object;
	struct rdma_cm_id *id;
	struct kd_ep *ep; /* that came with it; NULL */
	struct sockaddr_storage local, remote;
	u8 responder_resources, initiator_depth; /* that the peer asks for */
	u8 private_data[KD_MAX_PRIVATE_DATA];
	u8 private_bytes;
	bool gone; /* the peer gave up */
};

/* --- object.c --- */

extern struct list_head kd_ias;

/** kd_get() - the object of a handle. NULL: it is none of this type, or its adapter is
 * gone */
void *kd_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type);
/** kd_find() - the same, whether the adapter is there or not */
void *kd_find(DAT_HANDLE handle, DAT_HANDLE_TYPE type);
/** kd_alloc() - a zeroed object of @bytes; NULL: no memory */
void *kd_alloc(struct kd_ia *ia, DAT_HANDLE_TYPE type, size_t bytes);
/** kd_forget() - its handle is not valid any more; kd_release(): free its memory as well
 */
void kd_forget(struct kd_object *object);
void kd_release(struct kd_object *object);
void kd_objects_init(void);
void kd_use(struct kd_object *object, int change);
/* of objects that may be missing */
#define kd_use_of(pointer, change)                                                       \
	do {                                                                             \
		if (pointer)                                                             \
			kd_use(&(pointer)->object, change);                              \
	} while (0)
/** kd_error() - of a function of the midlayer: @ret is -errno */
DAT_RETURN kd_error(long ret, DAT_RETURN_SUBTYPE resource);

/* --- ia.c --- */

extern struct list_head kd_providers;

/** kd_ia_close() - free all that belongs to it */
void kd_ia_close(struct kd_ia *ia);
/** kd_ia_kill() - its adapter goes: all but the structs of its objects is freed */
void kd_ia_kill(struct kd_ia *ia);
/** kd_async() - an asynchronous error for the consumer of @object's IA */
void kd_async(struct kd_object *object, DAT_EVENT_NUMBER number, DAT_COUNT reason);

/* --- evd.c --- */

/** kd_evd_create() - of an IA that may be incomplete yet */
DAT_RETURN kd_evd_create(struct kd_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			 struct kd_evd **evd);
/** kd_evd_get() - @handle is an EVD of one of the streams @flags, or NULL */
struct kd_evd *kd_evd_get(DAT_HANDLE handle, DAT_EVD_FLAGS flags);
/** kd_evd_post() - queue an event. Context: any. False: it is lost, which the
 * asynchronous EVD is told */
bool kd_evd_post(struct kd_evd *evd, const DAT_EVENT *event);
/** kd_evd_fill() - take completions from its CQ, while there is room for events */
void kd_evd_fill(struct kd_evd *evd);
void kd_evd_wake(struct kd_evd *evd);
/** kd_evd_stop() - its CQ goes; free: the memory, too */
void kd_evd_stop(struct kd_evd *evd);
void kd_evd_destroy(struct kd_evd *evd);
/** kd_later() - @sp is destroyed soon, on the fiber of upcalls */
void kd_later(struct kd_sp *sp);
void kd_upcalls_stop(void);

/* --- dto.c --- */

/** the number of a work request: that of its DTO, and which queue it is of */
#define KD_WR_RECV (1ull << 32)
/** kd_dto_event() - what a completion means. False: nothing for the consumer */
bool kd_dto_event(const struct ib_wc *wc, DAT_EVENT *event, bool *quiet);
/** kd_dto_sges() - @sge: KD_MAX_IOV of them. Return: DAT_SUCCESS, and how many and their
 * sum */
DAT_RETURN kd_dto_sges(const DAT_LMR_TRIPLET *iov, DAT_COUNT n, DAT_COUNT max,
		       struct ib_sge *sge, int *num_sge, DAT_VLEN *length);
/** kd_request_flags() - IB_SEND_... of a request. -1: they are not allowed */
int kd_request_flags(const struct kd_ep *ep, DAT_COMPLETION_FLAGS flags, bool *quiet);
/** kd_request_check() - may a request be posted to @ep now? */
DAT_RETURN kd_request_check(const struct kd_ep *ep);

/* --- ep.c --- */

/** kd_ep_create() - in the state UNCONNECTED or UNCONFIGURED_UNCONNECTED */
DAT_RETURN kd_ep_create(struct kd_ia *ia, const DAT_EP_PARAM *param,
			const DAT_EP_ATTR *attr, struct kd_ep **ep);
/** kd_ep_modify_qp() - to a state that the id of its connection has the attributes of */
int kd_ep_modify_qp(struct kd_ep *ep, enum ib_qp_state state);
/** kd_ep_fail_qp() - everything that is posted is flushed */
void kd_ep_fail_qp(struct kd_ep *ep);
/** kd_ep_stop() - end its connection, and free its QP */
void kd_ep_stop(struct kd_ep *ep);
void kd_ep_destroy(struct kd_ep *ep);

/** kd_ep_rebuild() - the QP is made anew: with the handles and attributes of @new, or,
 * when that fails, those of @old */
DAT_RETURN kd_ep_rebuild(struct kd_ep *ep, const DAT_EP_PARAM *old,
			 const DAT_EP_PARAM *new);

/* --- ep_attr.c --- */

DAT_EP_ATTR kd_ep_default_attr(const struct kd_ia *ia);
/** kd_ep_attr_is_good() - is it within the adapter's limits? */
bool kd_ep_attr_is_good(const struct kd_ia *ia, const DAT_EP_ATTR *attr);

/* --- connect.c --- */

/** kd_ep_event() - an event of the connect EVD, with the private data that @ep has got */
void kd_ep_event(struct kd_ep *ep, DAT_EVENT_NUMBER number);
/** kd_ep_cm() - events of the RDMA CM of an EP's id */
int kd_ep_cm(struct rdma_cm_id *id, struct rdma_cm_event *event);
/** kd_ep_end() - the connection is over */
void kd_ep_end(struct kd_ep *ep, DAT_EVENT_NUMBER number);
/** kd_ep_drop_id() - not from an event of the id */
void kd_ep_drop_id(struct kd_ep *ep);
void kd_ep_timer_init(struct kd_ep *ep);
struct rdma_conn_param kd_ep_terms(const struct kd_ep *ep, const void *data, u8 bytes);

/* --- sp.c --- */

void kd_sp_stop(struct kd_sp *sp);
void kd_sp_destroy(struct kd_sp *sp);
/** kd_cr_arrived() - tell the consumer of @sp. False: its EVD is full */
bool kd_cr_arrived(struct kd_sp *sp, struct kd_cr *cr);
struct kd_sp *kd_sp_find(const struct kd_ia *ia, DAT_CONN_QUAL conn_qual);

/* --- cr.c --- */

/** kd_cr_create() - of a request that has just come by @id. NULL: no memory */
struct kd_cr *kd_cr_create(struct kd_sp *sp, struct rdma_cm_id *id,
			   const struct rdma_cm_event *event);
/** kd_cr_stop() - refuse it if it is open */
void kd_cr_stop(struct kd_cr *cr);
void kd_cr_destroy(struct kd_cr *cr);
/** kd_cr_return_ep() - the EP that came with it is free again, or goes */
void kd_cr_return_ep(struct kd_cr *cr);
/** kd_cr_forget_ep() - @ep goes */
void kd_cr_forget_ep(struct kd_ep *ep);

/* --- memory.c, srq.c --- */

struct kd_lmr *kd_lmr_find(const struct kd_ia *ia, DAT_LMR_CONTEXT context);
void kd_lmr_stop(struct kd_lmr *lmr);
void kd_rmr_stop(struct kd_rmr *rmr);
void kd_srq_stop(struct kd_srq *srq);
const struct kd_dto *kd_srq_done(struct kd_srq *srq, u32 index);

#endif
