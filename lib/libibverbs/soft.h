/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The declarations that the files of libibverbs share. An opened device is a struct
 * soft_context: a command socket to softibd (session.c), an engine of its own
 * (src/engine) that moves data through a pair of shared-memory rings (link.c), and a
 * thread that runs the engine when the program does not (progress_thread.c).
 *
 * Every object that softibd tracks is created and destroyed in this order: first the
 * command to softibd, which assigns handle, number and key, or refuses to destroy an
 * object in use; then the engine's object. Only a region leaves the engine first: no
 * packet may access its memory after softibd has freed the key. Internal functions
 * return -errno. verbs_err() and verbs_null() alone convert that to what an ibv_*
 * function returns: a positive errno, or NULL and errno.
 *
 * Lock order: objects_lock, the engine's lock, then any of async_lock, a
 * channel's lock. sock_lock is taken alone, or inside the engine's lock while a fault rule
 * fails completions. share.c and share_serve.c have locks of their own (docs/LOCKING.md).
 */
#ifndef SOFTIB_LIBIBVERBS_SOFT_H
#define SOFTIB_LIBIBVERBS_SOFT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>

#include "abi/counters.h"
#include "abi/devpage.h"
#include "abi/objects.h"
#include "abi/ring.h"
#include "abi/session.h"
#include "abi/told.h"
#include "base/list.h"
#include "base/types.h"
#include "engine/engine.h"
#include "channel_driver.h"
#include "lanes.h"
#include "progress_thread.h"
#include "share.h"
#include "windows.h"

#define EXPORT __attribute__((visibility("default")))

/* verbs.h defines these as macros for the callers of the library. The library defines
 * the functions of the same names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/** verbs_failed() - set errno to -@rc. Return: -@rc */
int verbs_failed(int rc);

/** verbs_err() - convert 0 or -errno to what an ibv_* function returns */
static inline int verbs_err(int rc)
{
	if (unlikely(rc < 0))
		return verbs_failed(rc);
	return 0;
}

/** lock_for_calls() - lock @mutex with cancellation disabled
 *
 * Most system calls are cancellation points: a thread that is cancelled in one would
 * never release the lock. Return: the argument of unlock_after_calls().
 */
static inline int lock_for_calls(pthread_mutex_t *mutex)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(mutex);
	return state;
}

static inline void unlock_after_calls(pthread_mutex_t *mutex, int state)
{
	pthread_mutex_unlock(mutex);
	pthread_setcancelstate(state, NULL);
}

/** verbs_null() - what a failed creation returns. Sets errno to -@rc. Return: NULL */
static inline void *verbs_null(int rc)
{
	errno = -rc;
	return NULL;
}

/**
 * struct soft_device - an adapter of the node; lives until the process ends
 *
 * The providers of the distribution (libmlx5, libefa) recognise their own devices by the
 * pointer that follows the struct ibv_device. @not_a_provider stands in its place, and must
 * differ from the pointers of all of them.
 */
struct soft_device {
	struct ibv_device ibv;
	const void *not_a_provider;
	struct abi_device_info info;
	char dir[256];		   /* the fabric's directory */
	char node[ABI_NAME_BYTES]; /* "" for the first */
	struct list_head entry;
};

enum soft_kind { SOFT_CQ, SOFT_QP, SOFT_SRQ };

/** struct soft_object - an object that asynchronous events can refer to. softibd and the event
 *  queue identify it by @id, which is never used twice. */
struct soft_object {
	struct list_head entry; /* --- protected by objects_lock --- */
	uint64_t id;
	enum soft_kind kind;
	uint32_t events_reported; /* --- protected by objects_lock --- */
};

struct soft_context;

/** struct link_wakeups - the functions to which the link passes wake-ups, so that they can be
 *  deferred until the engine's lock is released (wakeups.c); and lanes_bad_qkey() */
struct link_wakeups {
	/** lane() - defer a wake-up of the reader of @lane. Return: false: the caller must ring the
	 *  doorbell at once */
	bool (*lane)(struct soft_context *ctx, struct lane_out *lane);
	void (*softibd)(struct soft_context *ctx);
	void (*bad_qkey)(struct soft_context *ctx, struct eng_lane_in *lane,
			 const struct wire_packet *pkt);
};

/** struct soft_link - the rings between the program and softibd. Protected by the engine's lock,
 *  except for link_position() */
struct soft_link {
	struct abi_ring_tx tx;
	struct abi_ring_rx rx;
	int doorbell_fd;
	_Atomic bool broken; /* softibd has ended: packets are dropped */
	void *map;
	size_t map_bytes;
	struct abi_counters *counters; /* by ports; NULL: softibd reads none */
	uint8_t *void_packet; /* packets that are to be dropped are written here */
	struct lanes lanes;
	bool into_void; /* the reserved packet is in void_packet, and commit drops it */
	const struct link_wakeups *wakeups; /* NULL: doorbells are rung at once */
};

struct soft_context {
	struct verbs_context v; /* ends with the ibv_context */
	struct soft_device *device;
	struct engine *engine;
	struct soft_link link;
	struct soft_progress progress;
	struct windows windows;
	struct share share;
	const struct abi_devpage *devpage;
	size_t devpage_bytes;
	struct ibv_device_attr_ex attr;
	uint32_t number; /* softibd's for this program (abi_context_resp.program) */
	uint32_t num_ports;
	int async_write_fd;
	_Atomic bool dead;   /* softibd has ended */
	_Atomic unsigned wakeups; /* threads that have deferred wake-ups: wakeups.c */
	bool forked;	     /* this is a forked child: all of it is the parent's */
	int child_sock;	     /* the child's own session, for device memory; -1: none */
	struct list_head entry; /* of all contexts, for fork and import */
	/* the number of opens and imports, which all return this one context.
	 * --- protected by context.c's lock --- */
	unsigned opens;

	pthread_mutex_t sock_lock;
	/* --- protected by sock_lock --- */
	int sock;
	struct { /* commands that go out with the next one; @bytes: 0: none */
		uint64_t message[160];
		size_t bytes;
		unsigned num;
	} told;
	struct abi_told ring; /* by which it is told instead, once it is told often */
	struct { /* RC QPs that softibd need not be asked for (ABI_CMD_CREATED_QP) */
		struct abi_granted_qp qp[ABI_QPS_GRANTED];
		unsigned num;
		/* of the last one that it was asked for: their inline data is as much */
		uint32_t send_sge, inline_asked, inline_given;
	} granted;

	pthread_mutex_t objects_lock;
	struct list_head objects; /* --- protected by objects_lock --- */
	uint64_t next_id;

	pthread_mutex_t async_lock; /* held while the event queue is written or sorted */

	/* --- atomic: numbers of objects that softibd does not know. The library itself
	 * enforces the limits that softibd reports for them --- */
	_Atomic uint32_t num_ahs, num_tables;
};

/** take_room() - add one to @count, unless that is @most already. Return: was one added? */
static inline bool take_room(_Atomic uint32_t *count, uint32_t most)
{
	if (atomic_fetch_add(count, 1) < most)
		return true;
	atomic_fetch_sub(count, 1);
	return false;
}

static inline void give_room(_Atomic uint32_t *count)
{
	atomic_fetch_sub(count, 1);
}

static inline struct soft_context *to_context(struct ibv_context *context)
{
	return container_of(context, struct soft_context, v.context);
}

struct soft_td {
	struct ibv_td ibv;
	_Atomic int users; /* the number of parent domains that have it */
};

/** struct soft_pd - a protection domain; or a parent domain, which uses the handle of the
 *  protection domain @parent_of */
struct soft_pd {
	struct ibv_pd ibv;
	struct soft_pd *parent_of;
	struct soft_td *td; /* of a parent domain; may be NULL */
	_Atomic int users;  /* the number of its parent domains; of a parent domain, its queues */
	/* of a parent domain: what the program gave, and how the engine asks for it */
	struct ibv_parent_domain_init_attr attr;
	struct eng_memory memory;
};

struct soft_mr {
	struct ibv_mr ibv;
	void *memory; /* the registered memory: ibv.addr, device memory, or a part of @map */
	void *map;    /* the library's mapping of a dma-buf; NULL: there is no dma-buf */
	size_t map_bytes;
	uint64_t iova;
	int access;
	bool is_null;		 /* ibv_alloc_null_mr() */
	struct foreign *foreign; /* imported: another program's memory, or device memory */
};

struct soft_ah {
	struct ibv_ah ibv;
	struct tp_av av;
};

/** struct soft_channel - see channel.c */
struct soft_channel {
	struct ibv_comp_channel ibv;
	struct channel_state state;
	_Atomic uint64_t blocking_at; /* when O_NONBLOCK was last seen to be off, by the coarse clock */
	pthread_mutex_t lock;
	/* --- changed under lock --- */
	struct list_head events; /* of soft_cq.event */
	_Atomic unsigned telling; /* threads that are about to add to the descriptor */
};

struct soft_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct soft_object object;
	struct eng_cq *eng;
	_Atomic bool armed;
	struct poll_yield yield;
	/* --- protected by the channel's lock --- */
	struct list_head event;
	uint32_t events_queued, events_reported;
	/* --- the extended interface: one poller at a time --- */
	pthread_mutex_t poll_lock;
	bool single_threaded;
	struct ibv_pd *parent; /* the parent domain that it was created in; NULL */
	struct ibv_wc wc;
};

struct soft_srq {
	struct ibv_srq ibv;
	struct soft_object object;
	struct eng_srq *eng;
	uint32_t srqn; /* its SRQ number in an XRC domain; 0: it belongs to no domain */
};

struct soft_xrcd {
	struct ibv_xrcd ibv;
	uint32_t handle;
	uint32_t number; /* identifies the domain, the same in all programs that opened it */
};

struct soft_builder; /* qp_ex.c */

struct soft_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* The member that follows struct ibv_qp_ex in versions of verbs.h newer than Debian 12's.
	 * Programs that were built with those versions call it. */
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t placement, uint8_t selectivity);
	struct soft_object object;
	struct eng_qp *eng;
	struct ibv_qp_cap cap;
	bool sq_sig_all;
	bool granted; /* softibd was told of it, and was not asked */
	bool access_kept; /* the engine's access flags are newer than softibd's (qp_modify.c) */
	struct ibv_xrcd *xrcd;	      /* XRC_RECV */
	struct soft_builder *builder; /* of a QP that was created with send_ops_flags */
	struct ibv_rwq_ind_table *table; /* receives its frames; NULL: its own receive queue does */
	struct ibv_wq *wq; /* the work queue that is made of this QP, which programs do not see */
};

static inline struct soft_cq *to_cq(struct ibv_cq *cq)
{
	return cq ? container_of(cq, struct soft_cq, ibv) : NULL;
}
static inline struct soft_qp *to_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct soft_qp, ibv);
}
static inline struct soft_srq *to_srq(struct ibv_srq *srq)
{
	return srq ? container_of(srq, struct soft_srq, ibv) : NULL;
}
static inline struct soft_xrcd *to_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct soft_xrcd, ibv);
}
static inline struct soft_pd *to_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct soft_pd, ibv);
}

/* sysfs.c: public, but in no public header */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* init.c */
struct soft_device *device_named(const char *dir, const char *node, const char *name);

/* session.c */
int session_connect(const char *dir, const struct abi_open *open);
int session_list(const char *dir, const char *node, struct abi_device_info **infos);
int session_get_context(int sock, struct abi_context_resp *resp, int fds[ABI_CONTEXT_FDS]);
int session_resolve(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		    const struct abi_resolve *key, struct abi_resolve_resp *resp, int fds[2],
		    unsigned *num_fds);
int session_command(struct soft_context *ctx, uint32_t command, const void *req,
		    size_t req_bytes, void *resp, size_t resp_bytes);
int session_tell(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes);
int session_tell_later(struct soft_context *ctx, uint32_t command, const void *req, size_t req_bytes);
int session_create_qp(struct soft_context *ctx, const struct ib_uverbs_create_qp *req,
		      struct ib_uverbs_create_qp_resp *resp, bool *granted);
void session_tell_now(struct soft_context *ctx);
int session_of_child(struct soft_context *ctx);
int session_command_own(struct soft_context *ctx, uint32_t command, const void *req,
			size_t req_bytes, void *resp, size_t resp_bytes, int *fd);
int session_command_ex(struct soft_context *ctx, uint32_t command, const void *req,
		       size_t req_bytes, void *resp, size_t resp_bytes);
int session_completion(void *ctx, uint32_t qpn, enum ibv_wc_opcode opcode);
int session_destroy(struct soft_context *ctx, uint32_t command, const void *req,
		    size_t req_bytes, void *resp, size_t resp_bytes);

/* link.c */
extern const struct eng_link_ops link_ops;
int link_map(struct soft_link *link, int memfd, int doorbell_fd,
	     const struct abi_context_resp *resp);
void link_unmap(struct soft_link *link);
void link_count(void *ctx, unsigned port_num, enum tp_counter counter);
bool link_arm_sleep(struct soft_link *link);
void link_disarm_sleep(struct soft_link *link);
uint64_t link_position(struct soft_link *link, bool *waiting);

/* context.c */
int context_connect(const struct soft_device *dev);
struct soft_context *context_open_again(int cmd_fd);
struct ibv_context *context_open(struct soft_device *dev, const struct abi_share *share,
				 int cmd_fd);
void context_settle(struct soft_context *ctx, const struct eng_qp *qp);
typedef void context_barrier_fn(void *ctx);
context_barrier_fn *context_barrier(void);
/** context_tells_now() - is softib_tell_now() called before commands of the RDMA CM? */
bool context_tells_now(void);
void context_fatal(struct soft_context *ctx, bool told);

/* async.c */
void object_init(struct soft_context *ctx, struct soft_object *object, enum soft_kind kind);
void object_show(struct soft_context *ctx, struct soft_object *object);
void object_hide(struct soft_context *ctx, struct soft_object *object);
void object_purge(struct soft_context *ctx, struct soft_object *object);
void object_wait(struct soft_context *ctx, struct soft_object *object, pthread_mutex_t *mutex,
		 pthread_cond_t *cond, uint32_t *completed);
void async_raise(struct soft_context *ctx, enum ibv_event_type type, uint64_t element);
void async_engine_event(void *ctx, enum ibv_event_type type, void *element_ctx);

/* channel.c */
void channel_cq_event(void *ctx, void *cq);
void channel_forget_cq(struct soft_cq *cq);
void channel_driver_leaves(struct soft_channel *channel);
void channel_notify(struct soft_channel *channel);
struct soft_cq *channel_take(struct soft_channel *channel);

/* wakeups.c */
extern const struct link_wakeups link_wakeups;
bool wakeups_defer_channel(struct soft_context *ctx, struct soft_channel *channel);
void wakeups_run(void *ctx);

/** wakeups_wait() - wait until the wake-ups that other threads have deferred are done.
 *  Context: without the engine's lock */
static inline void wakeups_wait(struct soft_context *ctx)
{
	while (!ctx->forked && atomic_load(&ctx->wakeups))
		sched_yield();
}

/* device.c */
void device_attr_load(struct soft_context *ctx, const struct abi_ex_query_device_resp *resp);
int device_port_read(struct soft_context *ctx, uint32_t port, struct abi_devport *out);
bool device_is_ethernet(const struct soft_context *ctx, uint32_t port);
bool device_has_ethernet(const struct soft_context *ctx);
int device_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t bytes);
int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t bytes);
int device_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* pd.c, mr.c, mw.c, dm.c, cq.c, cq_ex.c, srq.c, qp.c, qp_ex.c: functions in the context's tables */
struct ibv_td *pd_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init);
int pd_dealloc_td(struct ibv_td *td);
bool pd_is_parent(struct ibv_pd *ibpd);
const struct eng_memory *pd_memory(struct ibv_pd *ibpd);
void pd_hold(struct ibv_pd *ibpd);
void pd_release(struct ibv_pd *ibpd);
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr);
struct ibv_mr *mr_on_memory(struct ibv_pd *pd, const struct ib_uverbs_reg_mr_resp *resp,
			    void *memory, size_t length, unsigned access);
void mr_free(struct soft_mr *mr);
struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int dm_free(struct ibv_dm *dm);
struct ibv_mr *dm_reg_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			 unsigned int access);
struct ibv_mr *mr_alloc_null(struct ibv_pd *pd);
int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	      struct ibv_sge *sges, uint32_t num_sge);
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *mw);
int mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int cq_modify(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int cq_req_notify(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
void cq_ex_fill(struct soft_cq *cq, uint64_t wc_flags);
int srq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int srq_get_num(struct ibv_srq *srq, uint32_t *num);
int srq_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);
struct ibv_qp *target_open(struct ibv_context *context, struct ibv_qp_open_attr *attr);
int target_close(struct soft_context *ctx, struct soft_qp *qp);
int target_query(struct soft_context *ctx, struct soft_qp *qp, struct ibv_qp_attr *attr);
struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int xrcd_close(struct ibv_xrcd *xrcd);
struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int qp_modify_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *limit);
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int qp_open(struct soft_context *ctx, struct soft_qp *qp, const struct ib_uverbs_open_qp *req);
int qp_ex_prepare(struct soft_qp *qp, uint64_t send_ops);
void qp_ex_free(struct soft_qp *qp);
const struct tp_av *ah_av(struct ibv_ah *ah);
int ah_resolve(struct soft_context *ctx, struct ibv_ah_attr *attr, uint8_t port_num);

/* flow.c */
struct ibv_flow *flow_create(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int flow_destroy(struct ibv_flow *flow);

/* --- counters.c --- */

/** struct soft_flow - a flow rule. @counters: count its frames; NULL: they are not counted */
struct soft_flow {
	struct ibv_flow ibv;
	struct soft_counters *counters;
	struct list_head entry; /* of the flows of @counters */
};

struct ibv_counters *counters_create(struct ibv_context *context,
				     struct ibv_counters_init_attr *attr);
int counters_destroy(struct ibv_counters *counters);
int counters_attach(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
		    struct ibv_flow *flow);
int counters_read(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags);
/** counters_take() - let @counters count the frames of the new rule @flow */
void counters_take(struct ibv_counters *counters, struct soft_flow *flow);
/** counters_leave() - detach @flow, which ends, from its counters. They keep what was counted,
 *  unless softibd has ended. Return: 0; -errno: the count could not be read, and @flow stays */
int counters_leave(struct soft_flow *flow);

/* wq.c */
#define SOFT_RX_HASH_FIELDS                                                                       \
	((uint64_t)(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |           \
		    IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |   \
		    IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP))
struct ibv_wq *wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int wq_modify(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int wq_destroy(struct ibv_wq *wq);
void wq_acknowledge(struct ibv_wq *wq);
void qp_acknowledge(struct ibv_qp *qp);
struct ibv_rwq_ind_table *wq_create_table(struct ibv_context *context,
					  struct ibv_rwq_ind_table_init_attr *attr);
int wq_destroy_table(struct ibv_rwq_ind_table *table);
int wq_rss_check(const struct ibv_qp_init_attr_ex *attr);
struct ibv_cq *wq_rss_cq(const struct ibv_qp_init_attr_ex *attr);
int wq_rss_start(struct soft_qp *qp, const struct ibv_qp_init_attr_ex *attr);
void wq_rss_end(struct soft_qp *qp);


#endif
