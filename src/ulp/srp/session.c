/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sessions: their creation, search and end, and their recovery when channels fail. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ulp/srp/private.h"
#include "ulp/srp/trace.h"

#define ARENA_BYTES                                                                      \
	((size_t)SRPI_SLOTS * SRP_TABLE_BYTES + (size_t)SRP_PIECES * SRP_PIECE_BYTES)

/* --- the end --- */

static void free_session(struct srp_session *s)
{
	struct srp_fabric *fabric = s->fabric;

	list_del(&s->node);
	rt_work_cancel(&s->end);
	rt_timer_disarm(&s->tick);
	rt_timer_disarm(&s->busy);
	s->recovery.state = SRPI_LOST;
	srp_connections_end(s, NULL);
	for (unsigned int i = 0; i < s->config.nr_paths; i++)
		srp_channel_close(&s->channel[i]);
	srp_io_fail_waiting(s, NULL, ESHUTDOWN);
	ib_sa_unregister_client(&s->sa);
	for (unsigned int i = 0; i < s->nr_units; i++)
		rt_free(s->unit[i]);
	if (!IS_ERR_OR_NULL(s->mr))
		ib_dereg_mr(s->mr);
	if (!IS_ERR_OR_NULL(s->pd))
		ib_dealloc_pd(s->pd);
	if (s->arena)
		munmap(s->arena, ARENA_BYTES);
	rt_free(s->probe.unit);
	rt_free(s->probe.luns);
	rt_free(s);
	if (list_empty(&fabric->sessions))
		srp_exports_close(fabric);
}

void srp_logout(struct srp_session *s)
{
	if (s->config.done)
		s->config.done(s->config.ctx, NULL, "it was logged out meanwhile");
	free_session(s);
}

static void end_work(struct rt_work *work)
{
	free_session(container_of(work, struct srp_session, end));
}

void srp_session_ready(struct srp_session *s, const char *error)
{
	void (*done)(void *, struct srp_session *, const char *) = s->config.done;

	s->config.done = NULL;
	s->ready = !error;
	if (done)
		done(s->config.ctx, error ? NULL : s, error);
	if (error)
		rt_work_queue(s->fabric->rt, &s->end);
}

/* --- recovery --- */

static void trace_state(const struct srp_session *s)
{
	static const char *const names[] = {[SRPI_RUNNING] = "running", [SRPI_BLOCKED] = "blocked",
					    [SRPI_FAIL_FAST] = "failing", [SRPI_LOST] = "lost"};

	trace_srp_session(srp_trace_at(s), s->config.name, names[s->recovery.state], s->nr_up);
}

static void follow_state(struct srp_session *s)
{
	if (s->recovery.state == SRPI_FAIL_FAST || s->recovery.state == SRPI_LOST)
		srp_io_fail_waiting(s, NULL, EIO);
	if (s->recovery.state == SRPI_LOST)
		rt_work_queue(s->fabric->rt, &s->end);
	else
		rt_timer_arm(&s->tick, srpi_recovery_expiry(&s->recovery));
}

static void tick(struct rt_timer *timer)
{
	struct srp_session *s = container_of(timer, struct srp_session, tick);

	if (srpi_recovery_tick(&s->recovery, rt_now(s->fabric->rt)))
		trace_state(s);
	follow_state(s);
}

static void busy(struct rt_timer *timer)
{
	srp_io_kick(container_of(timer, struct srp_session, busy));
}

static unsigned int count_up(const struct srp_session *s)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < s->config.nr_paths; i++)
		nr += s->channel[i].state == SRP_UP;
	return nr;
}

/* Channels log in one after the other, so that the target knows which one is the first. */
static void connect_next(struct srp_session *s)
{
	struct srp_channel *next = NULL;

	for (unsigned int i = 0; i < s->config.nr_paths; i++) {
		struct srp_channel *ch = &s->channel[i];

		if (ch->state == SRP_QUERYING || ch->state == SRP_LOGGING_IN)
			return;
		if (ch->state == SRP_DOWN && !ch->failures && !next)
			next = ch;
	}
	if (next)
		srp_channel_connect(next);
}

void srp_session_fence(struct srp_session *s)
{
	for (unsigned int i = 0; i < s->config.nr_paths; i++)
		if (s->channel[i].state == SRP_UP)
			srp_channel_close(&s->channel[i]);
}

void srp_session_channel(struct srp_session *s, struct srp_channel *ch)
{
	mono_t now = rt_now(s->fabric->rt);
	const bool was_down = !s->nr_up;

	s->nr_up = count_up(s);
	if (ch->state == SRP_DOWN && !s->ready && !s->nr_up && ch->failures) {
		srp_session_ready(s, ch->error);
		return;
	}
	if (ch->state == SRP_DOWN)
		rt_timer_arm(&ch->again,
			     srpi_recovery_again(&s->recovery, ch->failures, now));
	srpi_recovery_channels(&s->recovery, s->nr_up, now);
	trace_state(s);
	if (s->nr_up)
		rt_timer_disarm(&s->tick);
	else
		follow_state(s);
	connect_next(s);
	if (was_down && s->nr_up)
		srp_probe_begin(s, s->ready);
	srp_io_kick(s);
}

/* --- the beginning --- */

static int open_memory(struct srp_session *s)
{
	struct ib_phys_buf buffer = {.size = ARENA_BYTES};
	u64 start;
	void *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (arena == MAP_FAILED)
		return -ENOMEM;
	s->arena = arena;
	s->pd = ib_alloc_pd(s->config.device, 0);
	if (IS_ERR(s->pd))
		return (int)PTR_ERR(s->pd);
	buffer.addr = start = (uintptr_t)arena;
	s->mr = ib_reg_phys_mr(s->pd, &buffer, 1,
			       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				       IB_ACCESS_REMOTE_READ,
			       &start);
	return IS_ERR(s->mr) ? (int)PTR_ERR(s->mr) : 0;
}

struct srp_session *srp_find(const struct ib_device *device, const char *name)
{
	const struct srp_fabric *fabric = srp_fabric_of(device->rt);
	struct srp_session *s;

	list_for_each_entry(s, &fabric->sessions, node)
		if (s->config.device == device && !strcmp(s->config.name, name))
			return s;
	return NULL;
}

static bool is_logged_in(const struct srp_session_config *config)
{
	const struct srp_fabric *fabric = srp_fabric_of(config->device->rt);
	struct srp_session *s;

	list_for_each_entry(s, &fabric->sessions, node)
		if (s->config.device == config->device &&
		    s->config.target.ioc_guid == config->target.ioc_guid &&
		    s->config.target.id_ext == config->target.id_ext)
			return true;
	return srp_find(config->device, config->name);
}

int srp_login(const struct srp_session_config *config)
{
	struct srp_fabric *fabric = srp_fabric_of(config->device->rt);
	struct srp_session *s;
	int ret;

	if (is_logged_in(config))
		return -EEXIST;
	ret = srp_exports_open(fabric);
	s = ret ? NULL : rt_zalloc(sizeof(*s));
	if (!s)
		return ret ? ret : -ENOMEM;
	s->config = *config;
	s->fabric = fabric;
	s->recovery.timeouts = config->timeouts;
	rt_work_init(&s->end, end_work);
	rt_timer_init(fabric->rt, &s->tick, tick);
	rt_timer_init(fabric->rt, &s->busy, busy);
	ib_sa_register_client(&s->sa);
	list_add_tail(&s->node, &fabric->sessions);
	INIT_LIST_HEAD(&s->free);
	INIT_LIST_HEAD(&s->waiting);
	for (unsigned int i = 0; i < config->nr_paths; i++)
		srp_channel_init(s, &s->channel[i], &config->path[i]);
	ret = open_memory(s);
	if (ret) {
		free_session(s);
		return ret;
	}
	srp_io_init(s);
	connect_next(s);
	return 0;
}

void srp_login_forget(struct rt *rt, void *ctx)
{
	const struct srp_fabric *fabric = srp_fabric_of(rt);
	struct srp_session *s;

	list_for_each_entry(s, &fabric->sessions, node)
		if (s->config.done && s->config.ctx == ctx)
			s->config.done = NULL;
}

/* --- search and description --- */

int srp_each_session(struct rt *rt, int (*fn)(void *ctx, struct srp_session *session), void *ctx)
{
	struct srp_fabric *fabric = srp_fabric_of(rt);
	struct srp_session *s, *next;
	int ret = 0;

	list_for_each_entry_safe(s, next, &fabric->sessions, node) {
		ret = fn(ctx, s);
		if (ret)
			break;
	}
	return ret;
}

void srp_session_describe(const struct srp_session *s, struct srp_session_info *info)
{
	*info = (struct srp_session_info){
		.device = s->config.device,
		.name = s->config.name,
		.socket = s->fabric->exports.address.sun_path,
		.target = s->config.target,
		.state = s->recovery.state,
		.nr_channels = s->config.nr_paths,
		.nr_units = s->ready ? s->nr_units : 0,
		.commands = s->commands,
		.repeated = s->repeated,
		.aborted = s->aborted,
		.tables = s->tables,
		.fetched_tables = s->fetched_tables,
	};
}

void srp_channel_describe(const struct srp_session *s, unsigned int i,
			  struct srp_channel_info *info)
{
	const struct srp_channel *ch = &s->channel[i];

	*info = (struct srp_channel_info){
		.path = ch->path,
		.up = ch->state == SRP_UP,
		.commands = ch->commands,
		.limit = ch->machine.limit,
		.error = ch->error,
	};
}

void srp_unit_describe(const struct srp_session *s, unsigned int i,
		       struct srp_unit_info *info)
{
	const struct srp_unit *unit = s->unit[i];

	*info = (struct srp_unit_info){.disk = &unit->disk, .clients = unit->clients};
	memcpy(info->lun, unit->lun, sizeof(info->lun));
	srp_unit_name(unit, info->export);
}

/* --- devices --- */

static int add_device(struct ib_device *device)
{
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct srp_fabric *fabric = srp_fabric_of(device->rt);
	struct srp_session *s, *next;

	srp_discover_device_gone(device);
	list_for_each_entry_safe(s, next, &fabric->sessions, node)
		if (s->config.device == device)
			srp_logout(s);
}

static const struct ib_client srp_client = {
	.name = "srp",
	.add = add_device,
	.remove = remove_device,
};

static void init_fabric(struct rt *rt, void *state)
{
	struct srp_fabric *fabric = state;

	fabric->rt = rt;
	INIT_LIST_HEAD(&fabric->sessions);
	INIT_LIST_HEAD(&fabric->discoveries);
	srp_exports_init(&fabric->exports);
}

int srp_init(struct rt *rt, const char *dir)
{
	struct srp_fabric *fabric;
	int ret;

	if (srp_fabric_of(rt))
		return -EEXIST;
	if (strlen(dir) >= sizeof(fabric->dir))
		return -ENAMETOOLONG;
	fabric = rt_local_get(rt, RT_LOCAL_SRP, sizeof(*fabric), init_fabric);
	if (!fabric)
		return -ENOMEM;
	memcpy(fabric->dir, dir, strlen(dir) + 1);
	ret = ib_register_client(rt, &srp_client);
	if (ret)
		rt_local_free(rt, RT_LOCAL_SRP);
	return ret;
}

void srp_cleanup(struct rt *rt)
{
	if (!srp_fabric_of(rt))
		return;
	ib_unregister_client(rt, &srp_client);
	rt_local_free(rt, RT_LOCAL_SRP);
}
