/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibumad under the manager. The loop watches the library's descriptor, if that is one of the
 * kernel's. One that ibsim's preload makes up is not: a thread waits in umad_recv() then and
 * hands MADs to the loop through a list and an eventfd. Sending happens in the loop's thread;
 * libibumad allows both at once.
 */
/* ibsim's preload wraps open(), not open64(): call it by that name */
#undef _FILE_OFFSET_BITS

#include "sm/umad.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define GSI_QKEY 0x80010000u
#define RECV_ROOM (256 * 1024)
#define POLL_MS 500 /* how often the thread looks whether it shall end */
#define MADS_PER_TURN 64

/** struct inbound - a MAD on its way from the thread to the loop */
struct inbound {
	struct list_head node;
	int agent_id, status;
	size_t len;
	struct sm_addr from;
	uint8_t mad[];
};

struct sm_umad {
	struct sm_io io;
	struct sm *sm;
	void (*lost)(void *ctx);
	void *lost_ctx;
	struct rt_io event;
	char name[UMAD_CA_NAME_LEN + 16];
	uint64_t guid;
	int port, event_fd, issm_fd; /* event_fd: -1, the loop watches the port */
	int agents[SM_N_AGENTS];
	void *send_buf, *recv_buf;
	size_t send_room, recv_room;
	pthread_t thread;
	bool running;
	/* --- protected by lock --- */
	pthread_mutex_t lock;
	struct list_head inbox;
	bool stop, gone;
};

static char error_text[512];

#define fail(...)                                                                        \
	do {                                                                             \
		snprintf(error_text, sizeof(error_text), __VA_ARGS__);                   \
		*error = error_text;                                                     \
	} while (0)

static void wake_loop(struct sm_umad *u)
{
	uint64_t one = 1;

	if (write(u->event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		abort(); /* an eventfd of our own cannot fail otherwise */
}

static void report_loss(struct sm_umad *u)
{
	pthread_mutex_lock(&u->lock);
	u->gone = true;
	pthread_mutex_unlock(&u->lock);
	wake_loop(u);
}

static int send_mad(struct sm_io *io, enum sm_agent agent, const struct sm_addr *to,
		    const void *mad, size_t len, unsigned int timeout_ms)
{
	struct sm_umad *u = container_of(io, struct sm_umad, io);

	if (umad_size() + len > u->send_room) {
		size_t room = umad_size() + len;
		void *buf = realloc(u->send_buf, room);

		if (!buf)
			return -ENOMEM;
		u->send_buf = buf;
		u->send_room = room;
	}
	memset(u->send_buf, 0, umad_size());
	memcpy(umad_get_mad(u->send_buf), mad, len);
	umad_set_addr(u->send_buf, to->lid, to->qpn, to->sl, to->qkey);
	umad_get_mad_addr(u->send_buf)->path_bits = to->path_bits;
	umad_set_pkey(u->send_buf, to->pkey_index);
	if (to->has_grh) {
		ib_mad_addr_t grh = {.grh_present = 1, .gid_index = to->sgid_index,
				     .hop_limit = 64};

		memcpy(grh.gid, to->gid.raw, sizeof(grh.gid));
		umad_set_grh(u->send_buf, &grh);
	}
	/* retries are the manager's: it knows which requests still matter */
	if (umad_send(u->port, u->agents[agent], u->send_buf, len, timeout_ms, 0) < 0)
		return -EIO;
	return 0;
}

static struct sm_addr source_of(void *buf)
{
	const ib_mad_addr_t *a = umad_get_mad_addr(buf);
	struct sm_addr from = {
		.lid = be16toh(a->lid), .sl = a->sl, .path_bits = a->path_bits,
		.qpn = be32toh(a->qpn), .qkey = GSI_QKEY, .pkey_index = a->pkey_index,
		.has_grh = a->grh_present, .sgid_index = a->gid_index,
	};

	memcpy(from.gid.raw, a->gid, sizeof(from.gid.raw));
	return from;
}

static void hand_over(struct sm_umad *u, int agent_id, void *buf, size_t len)
{
	struct inbound *in = malloc(sizeof(*in) + MAX(len, (size_t)WIRE_MAD_BYTES));

	if (!in)
		return;
	in->agent_id = agent_id;
	in->status = umad_status(buf) ? -ETIMEDOUT : 0;
	in->len = len;
	in->from = source_of(buf);
	memset(in->mad, 0, WIRE_MAD_BYTES);
	memcpy(in->mad, umad_get_mad(buf), len);
	pthread_mutex_lock(&u->lock);
	list_add_tail(&in->node, &u->inbox);
	pthread_mutex_unlock(&u->lock);
	wake_loop(u);
}

static bool is_stopped(struct sm_umad *u)
{
	bool stop;

	pthread_mutex_lock(&u->lock);
	stop = u->stop;
	pthread_mutex_unlock(&u->lock);
	return stop;
}

static bool grow_recv_buf(struct sm_umad *u, size_t room)
{
	void *buf = realloc(u->recv_buf, umad_size() + room);

	if (!buf)
		return false;
	u->recv_buf = buf;
	u->recv_room = room;
	return true;
}

/* one record into recv_buf, which grows for it
 * Return: its agent; -EAGAIN: there is none; -ENODEV: the device is gone */
static int receive(struct sm_umad *u, int *len, int timeout_ms)
{
	int agent;

	for (;;) {
		*len = (int)u->recv_room;
		agent = umad_recv(u->port, u->recv_buf, len, timeout_ms);
		if (agent >= 0) /* EIO: so softibd says it, of what is sent */
			return umad_status(u->recv_buf) == EIO ? -ENODEV : agent;
		if (*len > (int)u->recv_room && grow_recv_buf(u, (size_t)*len))
			continue;
		if (agent == -ETIMEDOUT || agent == -EWOULDBLOCK || agent == -EINTR)
			return -EAGAIN;
		return -ENODEV;
	}
}

static void *receive_loop(void *arg)
{
	struct sm_umad *u = arg;

	while (!is_stopped(u)) {
		int len, agent = receive(u, &len, POLL_MS);

		if (agent >= 0)
			hand_over(u, agent, u->recv_buf, (size_t)len);
		else if (agent == -ENODEV)
			break;
	}
	if (!is_stopped(u))
		report_loss(u);
	return NULL;
}

static void deliver(struct sm_umad *u, int agent_id, int status, const struct sm_addr *from,
		    const uint8_t *mad, size_t len)
{
	for (int a = 0; a < SM_N_AGENTS; a++)
		if (u->agents[a] == agent_id)
			sm_receive(u->sm, a, status, from, mad, MAX(len, (size_t)WIRE_MAD_BYTES));
}

/* the loop watches the descriptor itself */
static void port_ready(struct rt_io *io, bool readable, bool writable)
{
	struct sm_umad *u = container_of(io, struct sm_umad, event);

	for (int i = 0; i < MADS_PER_TURN; i++) {
		int len, agent = receive(u, &len, 0);
		struct sm_addr from;
		uint8_t *mad;

		if (agent == -EAGAIN)
			return;
		if (agent < 0) {
			rt_io_watch(io, false, false);
			u->lost(u->lost_ctx);
			return;
		}
		from = source_of(u->recv_buf);
		mad = umad_get_mad(u->recv_buf);
		if (len < WIRE_MAD_BYTES)
			memset(mad + len, 0, WIRE_MAD_BYTES - (size_t)len);
		deliver(u, agent, umad_status(u->recv_buf) ? -ETIMEDOUT : 0, &from, mad,
			(size_t)len);
	}
}

static void inbox_ready(struct rt_io *io, bool readable, bool writable)
{
	struct sm_umad *u = container_of(io, struct sm_umad, event);
	struct inbound *in, *tmp;
	LIST_HEAD(got);
	uint64_t n;
	bool gone;

	if (read(u->event_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&u->lock);
	list_splice_tail_init(&u->inbox, &got);
	gone = u->gone;
	pthread_mutex_unlock(&u->lock);
	list_for_each_entry_safe(in, tmp, &got, node) {
		deliver(u, in->agent_id, in->status, &in->from, in->mad, in->len);
		list_del(&in->node);
		free(in);
	}
	if (gone)
		u->lost(u->lost_ctx);
}

/* Which requests each agent wants to see; answers come in any case. */
static int register_agents(struct sm_umad *u, const char **error)
{
	static const struct {
		uint8_t mgmt_class, version, rmpp;
		uint8_t methods[6];
	} rows[SM_N_AGENTS] = {
		[SM_AGENT_DIRECT] = {WIRE_CLASS_SM_DIRECT, 1, 0,
				     {WIRE_METHOD_GET, WIRE_METHOD_SET, WIRE_METHOD_TRAP}},
		[SM_AGENT_LID] = {WIRE_CLASS_SM_LID, 1, 0,
				  {WIRE_METHOD_GET, WIRE_METHOD_SET, WIRE_METHOD_TRAP,
				   WIRE_METHOD_TRAP_REPRESS}},
		[SM_AGENT_SA] = {WIRE_CLASS_SA, WIRE_SA_CLASS_VERSION, 1,
				 {WIRE_METHOD_GET, WIRE_METHOD_SET, WIRE_METHOD_GET_TABLE,
				  WIRE_METHOD_GET_MULTI, WIRE_METHOD_DELETE}},
	};

	for (int a = 0; a < SM_N_AGENTS; a++) {
		long mask[16 / sizeof(long)] = {0};

		for (size_t i = 0; i < sizeof(rows[a].methods) && rows[a].methods[i]; i++)
			mask[rows[a].methods[i] / (8 * sizeof(long))] |=
				1l << rows[a].methods[i] % (8 * sizeof(long));
		u->agents[a] = umad_register(u->port, rows[a].mgmt_class, rows[a].version,
					     rows[a].rmpp, mask);
		if (u->agents[a] < 0) {
			fail("%s: cannot register for management class 0x%02x: %s "
			     "(is another subnet manager running on this port?)",
			     u->name, rows[a].mgmt_class, strerror(errno));
			return -EBUSY;
		}
	}
	return 0;
}

/* Announce IsSM (14.4.1): the port's bit is set while the file is open. */
static void announce(struct sm_umad *u, const char *device, int port)
{
	char path[256];

	u->issm_fd = -1;
	if (!umad_get_issm_path(device, port, path, sizeof(path)))
		u->issm_fd = open(path, O_NONBLOCK);
}

static bool port_fits(const umad_port_t *p, const struct sm_umad_port *want)
{
	return (!want->port || want->port == p->portnum) &&
	       (!want->guid || want->guid == be64toh(p->port_guid)) &&
	       (!p->link_layer[0] || !strcmp(p->link_layer, "InfiniBand") ||
		!strcmp(p->link_layer, "IB"));
}

/* The first port that fits: one whose link is up, if there is one. */
static bool find_port(const struct sm_umad_port *want, umad_port_t *found)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int n = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	bool have = false;

	for (int d = 0; d < n; d++) {
		umad_ca_t ca;

		if ((want->device && strcmp(want->device, names[d])) ||
		    umad_get_ca(names[d], &ca) < 0)
			continue;
		for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
			const umad_port_t *p = ca.ports[i];

			if (!p || !port_fits(p, want) ||
			    (have && (found->state > 1 || p->state <= 1)))
				continue;
			*found = *p;
			have = true;
		}
		umad_release_ca(&ca);
	}
	return have;
}

/* what goes behind "port". Return: @text */
static const char *asked(const struct sm_umad_port *want, char *text, size_t room)
{
	text[0] = '\0';
	if (want->guid)
		snprintf(text, room, " 0x%016" PRIx64, want->guid);
	else if (want->port)
		snprintf(text, room, " %s:%d", want->device ?: "", want->port);
	else if (want->device)
		snprintf(text, room, " of %s", want->device);
	return text;
}

static int open_port(struct sm_umad *u, const struct sm_umad_port *want, const char **error)
{
	char text[64];
	umad_port_t p;
	int err;

	if (umad_init() < 0 || !find_port(want, &p)) {
		fail("no InfiniBand port%s found: give one with --port DEVICE[:PORT] or "
		     "--guid GUID (`ibstat` lists them); on a softib fabric, run inside "
		     "`softib exec NODE -- ...`; with an adapter, load ib_umad",
		     asked(want, text, sizeof(text)));
		return -ENODEV;
	}
	snprintf(u->name, sizeof(u->name), "%s:%d", p.ca_name, p.portnum);
	u->guid = be64toh(p.port_guid);
	u->port = umad_open_port(p.ca_name, p.portnum);
	if (u->port < 0) {
		err = u->port;
		fail("cannot open %s: %s%s", u->name, strerror(-err),
		     err == -EACCES ? " (management needs root or access to umad files)"
				    : "");
		return err;
	}
	err = register_agents(u, error);
	if (err)
		umad_close_port(u->port);
	else
		announce(u, p.ca_name, p.portnum);
	return err;
}

/* the port itself, or the inbox that a thread fills */
static int choose_source(struct rt *rt, struct sm_umad *u)
{
	int fd = umad_get_fd(u->port);
	struct stat st;

	if (!grow_recv_buf(u, RECV_ROOM))
		return -ENOMEM;
	if (!fstat(fd, &st)) {
		rt_io_init(rt, &u->event, fd, port_ready);
		return 0;
	}
	u->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->event_fd < 0)
		return -errno;
	rt_io_init(rt, &u->event, u->event_fd, inbox_ready);
	return 0;
}

int sm_umad_open(struct rt *rt, const struct sm_umad_port *want, struct sm_umad **out,
		 const char **error)
{
	struct sm_umad *u = calloc(1, sizeof(*u));
	int err;

	if (!u) {
		fail("out of memory");
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&u->inbox);
	pthread_mutex_init(&u->lock, NULL);
	u->io.send = send_mad;
	u->event_fd = -1;
	err = open_port(u, want, error);
	if (err) {
		free(u);
		return err;
	}
	err = choose_source(rt, u);
	if (err) {
		fail("cannot wait for MADs: %s", strerror(-err));
		sm_umad_close(u);
		return err;
	}
	*out = u;
	return 0;
}

int sm_umad_start(struct sm_umad *u, struct sm *sm, void (*lost)(void *ctx), void *ctx)
{
	int err;

	u->sm = sm;
	u->lost = lost;
	u->lost_ctx = ctx;
	rt_io_watch(&u->event, true, false);
	if (u->event_fd < 0)
		return 0;
	err = pthread_create(&u->thread, NULL, receive_loop, u);
	u->running = !err;
	return -err;
}

void sm_umad_close(struct sm_umad *u)
{
	struct inbound *in, *tmp;

	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	u->stop = true;
	pthread_mutex_unlock(&u->lock);
	if (u->running)
		pthread_join(u->thread, NULL);
	rt_io_watch(&u->event, false, false);
	list_for_each_entry_safe(in, tmp, &u->inbox, node) {
		list_del(&in->node);
		free(in);
	}
	for (int a = 0; a < SM_N_AGENTS; a++)
		umad_unregister(u->port, u->agents[a]);
	if (u->issm_fd >= 0)
		close(u->issm_fd);
	umad_close_port(u->port);
	if (u->event_fd >= 0)
		close(u->event_fd);
	free(u->send_buf);
	free(u->recv_buf);
	free(u);
}

struct sm_io *sm_umad_io(struct sm_umad *u)
{
	return &u->io;
}

uint64_t sm_umad_guid(const struct sm_umad *u)
{
	return u->guid;
}

const char *sm_umad_name(const struct sm_umad *u)
{
	return u->name;
}
