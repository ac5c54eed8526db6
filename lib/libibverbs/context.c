/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An opened device, from ibv_open_device() to ibv_close_device(), what
 * becomes of it when softibd dies, and when the program forks.
 */
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "expect.h"
#include "faults.h"
#include "soft.h"
#include "threads.h"
#include "windows_memory.h"

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(contexts); /* --- protected by contexts_lock --- */

/* The operations that inline functions of <infiniband/verbs.h> call. Those functions fail with
 * EOPNOTSUPP if an operation is absent; operations that they call without a check are all here. */
static const struct verbs_context operations = {
	.query_port = device_query_port,
	.read_counters = counters_read,
	.attach_counters_point_flow = counters_attach,
	.create_counters = counters_create,
	.destroy_counters = counters_destroy,
	.advise_mr = mr_advise,
	.alloc_null_mr = mr_alloc_null,
	.alloc_dm = dm_alloc,
	.free_dm = dm_free,
	.reg_dm_mr = dm_reg_mr,
	.modify_qp_rate_limit = qp_modify_rate_limit,
	.alloc_parent_domain = pd_alloc_parent,
	.alloc_td = pd_alloc_td,
	.dealloc_td = pd_dealloc_td,
	.destroy_rwq_ind_table = wq_destroy_table,
	.create_rwq_ind_table = wq_create_table,
	.destroy_wq = wq_destroy,
	.modify_wq = wq_modify,
	.create_wq = wq_create,
	.query_rt_values = device_query_rt_values,
	.create_cq_ex = cq_create_ex,
	.modify_cq = cq_modify,
	.query_device_ex = device_query_ex,
	.ibv_destroy_flow = flow_destroy,
	.ibv_create_flow = flow_create,
	.create_qp_ex = qp_create_ex,
	.create_srq_ex = srq_create_ex,
	.post_srq_ops = srq_post_ops,
	.get_srq_num = srq_get_num,
	.open_xrcd = xrcd_open,
	.close_xrcd = xrcd_close,
	.open_qp = target_open,
	.sz = sizeof(struct verbs_context),
	.context.ops = {
		.alloc_mw = mw_alloc,
		.bind_mw = mw_bind,
		.dealloc_mw = mw_dealloc,
		.poll_cq = cq_poll,
		.req_notify_cq = cq_req_notify,
		.post_srq_recv = srq_post_recv,
		.post_send = qp_post_send,
		.post_recv = qp_post_recv,
	},
	.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
};

static int map_devpage(struct soft_context *ctx, int fd, uint32_t num_ports)
{
	size_t bytes = abi_devpage_bytes(num_ports);
	const struct abi_devpage *page;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!num_ports || num_ports > UINT8_MAX || (size_t)st.st_size < bytes)
		return -EPROTO;
	page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	if (page->magic != ABI_DEVPAGE_MAGIC || page->num_ports != num_ports) {
		munmap((void *)page, bytes);
		return -EPROTO;
	}
	ctx->devpage = page;
	ctx->devpage_bytes = bytes;
	ctx->num_ports = num_ports;
	return 0;
}

static int query_limits(struct soft_context *ctx)
{
	struct ib_uverbs_ex_query_device req = {0};
	struct abi_ex_query_device_resp resp;
	int rc = session_command_ex(ctx, IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &req, sizeof(req),
				    &resp, sizeof(resp));

	if (!rc)
		device_attr_load(ctx, &resp);
	return rc;
}

/* eng_config.barrier: a memory barrier on all threads of the process. It cannot fail after the
 * process was registered. */
static void barrier(void *ctx)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* Register the process for membarrier(2) while it has a single thread, which takes a
 * microsecond. With several threads the kernel first waits for all processors, twice 10 ms or
 * more, and ibv_open_device() would wait with it: librdmacm opens a device when the first
 * connection resolves its address. A program that already has threads when it loads this library
 * registers in context_barrier(). Users of the barriers always register and check the result,
 * which costs nothing if it is done already. */
__attribute__((constructor)) static void register_early(void)
{
	if (!__libc_single_threaded)
		return;
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

/** context_barrier() - for struct eng_lock; NULL: the kernel has none */
context_barrier_fn *context_barrier(void)
{
	bool has = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

	return has ? barrier : NULL;
}

static bool wants_general_only(void)
{
	const char *wish = getenv("SOFTIB_FAST");

	return wish && !strcmp(wish, "0");
}

static int start_engine(struct soft_context *ctx)
{
	const struct ibv_odp_caps *odp = &ctx->attr.odp_caps;
	struct eng_odp on_demand = {.rc = odp->per_transport_caps.rc_odp_caps,
				    .uc = odp->per_transport_caps.uc_odp_caps,
				    .ud = odp->per_transport_caps.ud_odp_caps,
				    .xrc = ctx->attr.xrc_odp_caps};
	struct eng_config config = {
		.devpage = ctx->devpage,
		.link_ops = &link_ops,
		.link = &ctx->link,
		.packets = &ctx->link.rx,
		.now = progress_now,
		.cq_event = channel_cq_event,
		.async_event = async_engine_event,
		.completion_fault = session_completion,
		.kick = progress_engine_wants,
		.count = link_count,
		.unlocked = wakeups_run,
		.barrier = context_barrier(),
		.general_only = wants_general_only(),
		.odp = &on_demand,
		.ctx = ctx,
	};
	int rc = eng_create(&config, &ctx->engine);

	ctx->link.wakeups = &link_wakeups;
	if (rc)
		return rc;
	rc = progress_start(ctx);
	if (rc)
		eng_destroy(ctx->engine);
	return rc;
}

static void wake_thread(void *ctx)
{
	progress_kick(ctx);
}

/* The context shares the objects of another. */
static int join(struct soft_context *ctx, const struct abi_share *share)
{
	struct abi_share_context req;

	memcpy(req.token, share->token, sizeof(req.token));
	return session_command(ctx, ABI_CMD_SHARE, &req, sizeof(req), NULL, 0);
}

/* GET_CONTEXT and all that its descriptors open. Each descriptor ends in the
 * context or is closed here. @token: set to that of the context */
static int attach(struct soft_context *ctx, uint8_t token[ABI_TOKEN_BYTES])
{
	struct abi_context_resp resp;
	int fds[ABI_CONTEXT_FDS];
	int rc = session_get_context(ctx->sock, &resp, fds);

	if (rc)
		return rc;
	memcpy(token, resp.token, sizeof(resp.token));
	ctx->number = resp.program;
	ctx->v.context.async_fd = fds[ABI_FD_ASYNC_READ];
	ctx->async_write_fd = fds[ABI_FD_ASYNC_WRITE];
	ctx->progress.lanes_fd = fds[ABI_FD_LANES];
	rc = map_devpage(ctx, fds[ABI_FD_DEVPAGE], resp.num_ports);
	if (rc)
		goto undo_fds;
	rc = link_map(&ctx->link, fds[ABI_FD_LINK], fds[ABI_FD_DOORBELL], &resp);
	if (rc)
		goto undo_devpage;
	rc = lanes_init(&ctx->link.lanes, ctx->devpage, &ctx->link.tx, progress_now,
			wake_thread, ctx);
	if (!rc)
		rc = query_limits(ctx);
	if (rc)
		goto undo_link;
	rc = doorbells_open(&ctx->progress.doorbells, fds[ABI_FD_PROGRAM_DOORBELL]);
	if (rc)
		goto undo_link;
	rc = start_engine(ctx);
	if (rc)
		goto undo_doorbells;
	windows_start(ctx, fds[ABI_FD_WINDOWS], fds[ABI_FD_WINDOW_PAGE]);
	close(fds[ABI_FD_DEVPAGE]);
	close(fds[ABI_FD_LINK]);
	return 0;
undo_doorbells:
	ctx->progress.doorbells.softibd_fd = -1; /* the caller closes it with the others */
	doorbells_close(&ctx->progress.doorbells);
undo_link:
	link_unmap(&ctx->link);
undo_devpage:
	munmap((void *)ctx->devpage, ctx->devpage_bytes);
undo_fds:
	for (int i = 0; i < ABI_CONTEXT_FDS; i++)
		close(fds[i]);
	return rc;
}

/** context_connect() - open @dev at softibd. Return: the socket; -errno */
int context_connect(const struct soft_device *dev)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION,
				.kind = ABI_OPEN_UVERBS};

	memcpy(open.node, dev->node, sizeof(open.node));
	memcpy(open.device, dev->info.name, sizeof(open.device));
	return session_connect(dev->dir, &open);
}

static void before_fork(void)
{
	struct soft_context *ctx;

	pthread_mutex_lock(&contexts_lock);
	list_for_each_entry(ctx, &contexts, entry)
		windows_before_fork(ctx);
}

static void after_fork_parent(void)
{
	struct soft_context *ctx;

	list_for_each_entry(ctx, &contexts, entry)
		windows_after_fork(ctx);
	pthread_mutex_unlock(&contexts_lock);
}

/*
 * The child has no thread of the engine, no rings (MADV_DONTFORK), and no
 * say in the parent's session: commands fail with EIO. It closes the private
 * descriptors, so that softibd sees the parent's death when it happens. It keeps cmd_fd, by which
 * it may import the device.
 */
static void become_childs(struct soft_context *ctx)
{
	ctx->forked = true;
	/* threads of the parent may have held these during fork() */
	pthread_mutex_init(&ctx->sock_lock, NULL);
	pthread_mutex_init(&ctx->objects_lock, NULL);
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	eng_in_child(ctx->engine);
	windows_in_child(ctx);
	share_in_child(ctx);
	close(ctx->sock);
	close(ctx->link.doorbell_fd);
	doorbells_close(&ctx->progress.doorbells);
	close(ctx->progress.kick_fd);
	if (ctx->progress.lanes_fd >= 0)
		close(ctx->progress.lanes_fd);
	close(ctx->async_write_fd);
}

/* In a grandchild only the child's session is open. The numbers of all other descriptors may by
 * now belong to the program. */
static void after_fork_child(void)
{
	struct soft_context *ctx;

	threads_forked();
	memory_areas_forget();
	list_for_each_entry(ctx, &contexts, entry) {
		if (!ctx->forked)
			become_childs(ctx);
		else if (ctx->child_sock >= 0)
			close(ctx->child_sock);
		ctx->child_sock = -1;
	}
	memory_moves_forget();
	pthread_mutex_unlock(&contexts_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void remember(struct soft_context *ctx)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&contexts_lock);
	ctx->opens = 1;
	list_add_tail(&ctx->entry, &contexts);
	pthread_mutex_unlock(&contexts_lock);
}

static bool is_same_file(int one, int other)
{
	struct stat a, b;

	return !fstat(one, &a) && !fstat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/**
 * context_open_again() - the context of this process whose cmd_fd is @cmd_fd or was
 * duplicated to it; it is closed one time more
 * Return: NULL: there is none
 */
struct soft_context *context_open_again(int cmd_fd)
{
	struct soft_context *ctx, *found = NULL;

	pthread_mutex_lock(&contexts_lock);
	list_for_each_entry(ctx, &contexts, entry)
		if (!ctx->forked && is_same_file(ctx->v.context.cmd_fd, cmd_fd))
			found = ctx;
	if (found)
		found->opens++;
	pthread_mutex_unlock(&contexts_lock);
	return found;
}

/* Return: false: it was opened or imported more often than it was closed */
static bool is_last_close(struct soft_context *ctx)
{
	bool last;

	pthread_mutex_lock(&contexts_lock);
	last = !--ctx->opens;
	pthread_mutex_unlock(&contexts_lock);
	return last;
}

/**
 * context_settle() - the program is done with @qp, or with all when NULL: what
 * it sent or took leaves first, as it would have left an adapter at once
 * Context: may wait for room, no longer than a packet waits in a queue
 */
void context_settle(struct soft_context *ctx, const struct eng_qp *qp)
{
	mono_t until = mono_add(progress_now(NULL), LANES_HOQ_NS);

	if (ctx->forked || ctx->dead)
		return;
	while (!eng_settle(ctx->engine, qp) && mono_before(progress_now(NULL), until))
		sched_yield();
}

/* A program may exit with open devices, immediately after a completion. What its QPs still owe
 * their peers leaves first. */
__attribute__((destructor)) static void settle_all(void)
{
	struct soft_context *ctx;

	if (pthread_mutex_trylock(&contexts_lock))
		return;
	list_for_each_entry(ctx, &contexts, entry)
		context_settle(ctx, NULL);
	pthread_mutex_unlock(&contexts_lock);
}

static void forget(struct soft_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	list_del(&ctx->entry);
	pthread_mutex_unlock(&contexts_lock);
}

EXPORT void softib_expect_flow(const struct abi_flow_answer *answer)
{
	struct soft_context *ctx;

	pthread_mutex_lock(&contexts_lock);
	list_for_each_entry(ctx, &contexts, entry)
		if (ctx->number == answer->program && !ctx->forked)
			lanes_expect(ctx, answer);
	pthread_mutex_unlock(&contexts_lock);
}

static _Atomic bool tells_now; /* softib_tell_now() is called */

EXPORT void softib_tell_now(void)
{
	struct soft_context *ctx;

	atomic_store_explicit(&tells_now, true, memory_order_relaxed);
	pthread_mutex_lock(&contexts_lock);
	list_for_each_entry(ctx, &contexts, entry)
		session_tell_now(ctx);
	pthread_mutex_unlock(&contexts_lock);
}

bool context_tells_now(void)
{
	return atomic_load_explicit(&tells_now, memory_order_relaxed);
}

static struct soft_context *new_context(struct soft_device *dev)
{
	struct soft_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->v = operations;
	ctx->v.context.device = &dev->ibv;
	ctx->v.context.num_comp_vectors = 1;
	ctx->device = dev;
	ctx->child_sock = -1;
	INIT_LIST_HEAD(&ctx->objects);
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	pthread_mutex_init(&ctx->sock_lock, NULL);
	pthread_mutex_init(&ctx->objects_lock, NULL);
	pthread_mutex_init(&ctx->async_lock, NULL);
	share_init(ctx);
	return ctx;
}

/* The objects of a context end with its library: softibd frees them. */
static void close_context(struct soft_context *ctx)
{
	windows_stop(ctx);
	share_serve_end(ctx);
	close(ctx->sock);
	eng_destroy(ctx->engine);
	share_end(ctx);
	windows_free(ctx);
	close(ctx->async_write_fd);
	doorbells_close(&ctx->progress.doorbells);
	if (ctx->progress.lanes_fd >= 0)
		close(ctx->progress.lanes_fd);
	close(ctx->link.doorbell_fd);
	abi_told_unmap(&ctx->ring);
	link_unmap(&ctx->link);
	munmap((void *)ctx->devpage, ctx->devpage_bytes);
	free(ctx);
}

/* Return: 0 and cmd_fd is set: it is @cmd_fd, or new if there is no @share */
static int name_context(struct soft_context *ctx, const struct abi_share *share, int cmd_fd,
			const uint8_t token[ABI_TOKEN_BYTES])
{
	int rc = share ? join(ctx, share) : share_descriptor(ctx->device, token);

	if (rc < 0)
		return rc;
	ctx->v.context.cmd_fd = share ? cmd_fd : rc;
	return 0;
}

/**
 * context_open() - a context of @dev
 * @share: whose objects it shares, and @cmd_fd the descriptor that says so, the library's on
 *         success; NULL: nobody's
 * Return: as ibv_open_device(); ENOENT the other context is gone
 */
struct ibv_context *context_open(struct soft_device *dev, const struct abi_share *share,
				 int cmd_fd)
{
	struct soft_context *ctx = new_context(dev);
	uint8_t token[ABI_TOKEN_BYTES];
	int rc = -ENOMEM;

	if (!ctx)
		return verbs_null(rc);
	ctx->sock = context_connect(dev);
	if (ctx->sock < 0) {
		rc = ctx->sock;
		goto undo_context;
	}
	rc = attach(ctx, token);
	if (rc)
		goto undo_socket;
	rc = name_context(ctx, share, cmd_fd, token);
	if (rc)
		goto undo_attach;
	remember(ctx);
	faults_watch();
	return &ctx->v.context;
undo_attach:
	progress_stop(ctx);
	close(ctx->v.context.async_fd);
	close_context(ctx);
	return verbs_null(rc);
undo_socket:
	close(ctx->sock);
undo_context:
	free(ctx);
	return verbs_null(rc);
}

/**
 * ibv_open_device() - a context of a device: a session with softibd, an
 * engine and its thread
 * Return: the context; NULL and errno: ENODEV no such device any more,
 * ECONNREFUSED no softibd, EPROTO it speaks something else, ENOMEM
 */
EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return context_open(container_of(device, struct soft_device, ibv), NULL, -1);
}

/**
 * ibv_close_device() - end the session; what is left of its objects goes too
 */
EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct soft_context *ctx = to_context(context);

	if (!is_last_close(ctx))
		return 0;
	context_settle(ctx, NULL);
	progress_stop(ctx);
	forget(ctx);
	close(context->async_fd);
	close(context->cmd_fd);
	if (ctx->child_sock >= 0)
		close(ctx->child_sock);
	if (!ctx->forked) /* else the rings are not mapped, and the engine belongs to the parent */
		close_context(ctx);
	return 0;
}

/**
 * context_fatal() - softibd is gone, or the adapter: what a dead one looks like
 * @told: softibd has raised the event
 *
 * Commands fail with EIO, every QP goes to the error state so that what was
 * posted completes as flushed, and IBV_EVENT_DEVICE_FATAL is raised.
 * Context: the progress thread. Spec: IBA v1 11.6.3.2
 */
void context_fatal(struct soft_context *ctx, bool told)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct soft_object *object;

	if (atomic_exchange(&ctx->dead, true))
		return;
	ctx->link.broken = true;
	pthread_mutex_lock(&ctx->objects_lock);
	list_for_each_entry(object, &ctx->objects, entry) {
		struct soft_qp *qp = container_of(object, struct soft_qp, object);

		if (object->kind == SOFT_QP && !eng_qp_modify(qp->eng, &attr, IBV_QP_STATE))
			qp->ibv.state = IBV_QPS_ERR;
	}
	pthread_mutex_unlock(&ctx->objects_lock);
	if (!told)
		async_raise(ctx, IBV_EVENT_DEVICE_FATAL, 0);
}
