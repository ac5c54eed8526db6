/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of programs with NLDEV. A request is one datagram. The answer is one message. The answer to
 * a dump is one message per device, port or object, as many of them in a datagram as fit, and a final
 * message. A dump continues as the program reads it: the session keeps the position, and reads no
 * further request meanwhile.
 */
#include "access/nldev.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abi/session.h"
#include "access/devices.h"
#include "access/listener.h"
#include "access/nldev_private.h"
#include "access/quota.h"

#define REQUEST_BYTES	 4096
#define FDS_OF_A_SESSION 1

struct nldev {
	struct rt *rt;
	struct listener *listener;
	struct list_head sessions;
	struct nldev_counters counters;
};

/** struct dump - the position of a dump. @device: the next one, counted among those of the node; @port:
 * the next one of that device, or 0; objects have a cursor */
struct dump {
	bool active;
	struct nl_request request;
	const struct nldev_table *table; /* NULL: it is a dump of devices or ports */
	u32 device, port;
	struct rdma_restrack_cursor cursor;
};

struct nldev_session {
	struct list_head node;
	struct nldev *nldev;
	int fd;
	pid_t pid;
	struct rt_io io;
	struct quota_share quota;
	char node_name[ABI_NAME_BYTES]; /* "" before the opening message */
	struct dump dump;
	struct nl_out out; /* a datagram for which the socket had no room; bytes 0: none */
};

/* --- devices of a node --- */

/** struct choice - the search for a device: the one after @skip others, or the one with number @index */
struct choice {
	u32 skip, index;
	struct ib_device *found;
};

static int choose_nth(struct ib_device *device, void *ctx)
{
	struct choice *choice = ctx;

	if (choice->skip--)
		return 0;
	choice->found = device;
	return 1;
}

static int choose_index(struct ib_device *device, void *ctx)
{
	struct choice *choice = ctx;

	if (device->index != choice->index)
		return 0;
	choice->found = device;
	return 1;
}

static struct ib_device *nth_device(const struct nldev_session *s, u32 n)
{
	struct choice choice = {.skip = n};

	ib_device_for_each_of_node(s->nldev->rt, s->node_name, choose_nth, &choice);
	return choice.found;
}

static struct ib_device *device_of(const struct nldev_session *s, const struct nl_request *r)
{
	struct choice choice = {.index = r->device};

	if (r->has_device)
		ib_device_for_each_of_node(s->nldev->rt, s->node_name, choose_index, &choice);
	return choice.found;
}

/* --- requests about one device, port or object --- */

static void put_system(struct nl_out *out)
{
	nl_put_u8(out, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1); /* shared */
	nl_put_u8(out, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
}

static int put_one_object(struct nl_out *out, struct ib_device *device, const struct nl_request *r)
{
	const struct nldev_table *table = nldev_table_of(r->cmd);
	const struct rdma_restrack_entry *entry;
	struct rdma_restrack_cursor cursor;

	if (!r->has_id)
		return -EINVAL;
	rdma_restrack_open(device, &cursor, table->type);
	do
		entry = rdma_restrack_next(&cursor);
	while (entry && nldev_id(entry) != r->id);
	rdma_restrack_close(&cursor);
	if (!entry)
		return -ENOENT;
	nldev_put_handle(out, device);
	nldev_put_object(out, table, entry);
	return 0;
}

static int put_counters(struct nldev_session *s, const struct ib_device *device, u32 port_num)
{
	const struct nldev_counters *counters = &s->nldev->counters;
	u64 values[NLDEV_COUNTERS_MAX];
	size_t table, entry;
	int ret;

	if (!port_num || port_num > device->phys_port_cnt)
		return -EINVAL;
	ret = counters->read(counters->ctx, device, port_num, values);
	if (ret)
		return ret;
	nldev_put_handle(&s->out, device);
	nl_put_u32(&s->out, RDMA_NLDEV_ATTR_PORT_INDEX, port_num);
	table = nl_nest(&s->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (unsigned int i = 0; i < counters->num; i++) {
		entry = nl_nest(&s->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		nl_put_text(&s->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, counters->names[i]);
		nl_put_u64(&s->out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, values[i]);
		nl_nest_end(&s->out, entry);
	}
	nl_nest_end(&s->out, table);
	return 0;
}

static int put_one(struct nldev_session *s, struct ib_device *device, const struct nl_request *r)
{
	struct nl_out *out = &s->out;

	switch (r->cmd) {
	case RDMA_NLDEV_CMD_GET:
		nldev_put_device(out, device);
		return 0;
	case RDMA_NLDEV_CMD_PORT_GET:
		return r->has_port ? nldev_put_port(out, device, r->port) : -EINVAL;
	case RDMA_NLDEV_CMD_RES_GET:
		nldev_put_summary(out, device);
		return 0;
	case RDMA_NLDEV_CMD_STAT_GET:
		return r->has_port ? put_counters(s, device, r->port) : -EINVAL;
	default:
		return put_one_object(out, device, r);
	}
}

/* No request that would change anything is supported. */
static bool is_known(u16 cmd)
{
	return cmd == RDMA_NLDEV_CMD_GET || cmd == RDMA_NLDEV_CMD_PORT_GET ||
	       cmd == RDMA_NLDEV_CMD_RES_GET || cmd == RDMA_NLDEV_CMD_STAT_GET || nldev_table_of(cmd);
}

static int answer_one(struct nldev_session *s, const struct nl_request *r)
{
	struct ib_device *device = device_of(s, r);
	int ret = 0;

	nl_begin(&s->out, r, 0);
	if (r->cmd == RDMA_NLDEV_CMD_SYS_GET)
		put_system(&s->out);
	else if (!is_known(r->cmd))
		ret = -EOPNOTSUPP;
	else
		ret = device ? put_one(s, device, r) : r->has_device ? -ENODEV : -EINVAL;
	if (ret)
		s->out.full = true; /* the message is dropped */
	nl_end(&s->out);
	return ret;
}

/* --- dumps --- */

/* Each function appends the next message of a dump. Return: 1; 0: there is no further message; -ENOSPC:
 * the message did not fit, and has to go into the next datagram */

static int put_in(struct nldev_session *s, void (*put)(struct nl_out *out, struct ib_device *device))
{
	struct dump *dump = &s->dump;
	struct ib_device *device = nth_device(s, dump->device);

	if (!device)
		return 0;
	nl_begin(&s->out, &dump->request, NLM_F_MULTI);
	put(&s->out, device);
	if (!nl_end(&s->out))
		return -ENOSPC;
	dump->device++;
	return 1;
}

static int next_port(struct nldev_session *s)
{
	struct dump *dump = &s->dump;
	struct ib_device *device = device_of(s, &dump->request);

	if (!device || dump->port > device->phys_port_cnt)
		return 0;
	nl_begin(&s->out, &dump->request, NLM_F_MULTI);
	nldev_put_port(&s->out, device, dump->port);
	if (!nl_end(&s->out))
		return -ENOSPC;
	dump->port++;
	return 1;
}

static int next_object(struct nldev_session *s)
{
	struct dump *dump = &s->dump;
	struct list_head *place = dump->cursor.next;
	const struct rdma_restrack_entry *entry;
	size_t table, nest;

	do
		entry = rdma_restrack_next(&dump->cursor);
	while (entry && dump->request.has_port && !nldev_is_on(entry, dump->request.port));
	if (!entry)
		return 0;
	nl_begin(&s->out, &dump->request, NLM_F_MULTI);
	nldev_put_handle(&s->out, dump->cursor.device);
	table = nl_nest(&s->out, dump->table->table);
	nest = nl_nest(&s->out, dump->table->entry);
	nldev_put_object(&s->out, dump->table, entry);
	nl_nest_end(&s->out, nest);
	nl_nest_end(&s->out, table);
	if (nl_end(&s->out))
		return 1;
	dump->cursor.next = place;
	return -ENOSPC;
}

static int next(struct nldev_session *s)
{
	switch (s->dump.request.cmd) {
	case RDMA_NLDEV_CMD_GET:
		return put_in(s, nldev_put_device);
	case RDMA_NLDEV_CMD_RES_GET:
		return put_in(s, nldev_put_summary);
	case RDMA_NLDEV_CMD_PORT_GET:
		return next_port(s);
	default:
		return next_object(s);
	}
}

static void end_dump(struct nldev_session *s)
{
	if (s->dump.active && s->dump.table)
		rdma_restrack_close(&s->dump.cursor);
	s->dump.active = false;
}

static int begin_dump(struct nldev_session *s, const struct nl_request *r)
{
	const struct nldev_table *table = nldev_table_of(r->cmd);
	struct ib_device *device = device_of(s, r);
	bool of_devices = r->cmd == RDMA_NLDEV_CMD_GET || r->cmd == RDMA_NLDEV_CMD_RES_GET;

	if (!table && !of_devices && r->cmd != RDMA_NLDEV_CMD_PORT_GET)
		return -EOPNOTSUPP;
	if (!device && !of_devices)
		return r->has_device ? -ENODEV : -EINVAL;
	s->dump = (struct dump){.active = true, .request = *r, .table = table, .port = 1};
	if (table)
		rdma_restrack_open(device, &s->dump.cursor, table->type);
	return 0;
}

/* --- sessions --- */

static void close_session(struct nldev_session *s)
{
	end_dump(s);
	rt_io_watch(&s->io, false, false);
	close(s->fd);
	quota_leave(&s->quota);
	list_del(&s->node);
	rt_free(s);
}

/* Return: 0; -EAGAIN: the socket has no room, and @out is kept; -errno */
static int flush(struct nldev_session *s)
{
	ssize_t n = s->out.bytes ? send(s->fd, s->out.data, s->out.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

	if (n < 0)
		return -errno;
	s->out.bytes = 0;
	return 0;
}

/* Continue to send answers. Return: 0: all are sent; -EAGAIN: the socket has no room; -errno */
static int proceed(struct nldev_session *s)
{
	int ret = flush(s);

	while (!ret && s->dump.active) {
		int more = next(s);

		if (more > 0)
			continue;
		if (more < 0 && !s->out.bytes)
			return -EMSGSIZE; /* the message does not fit even into an empty datagram */
		ret = flush(s);
		if (more < 0 || ret)
			continue; /* the kept datagram goes first; the next call gets here again */
		nl_done(&s->out, &s->dump.request);
		end_dump(s);
		ret = flush(s);
	}
	return ret;
}

static void answer(struct nldev_session *s, const void *data, size_t bytes)
{
	struct nl_request request;
	int ret = nl_parse(data, bytes, &request);

	if (!ret && request.dump)
		ret = begin_dump(s, &request);
	else if (!ret)
		ret = answer_one(s, &request);
	if (ret || (!request.dump && (request.head.nlmsg_flags & NLM_F_ACK)))
		nl_ack(&s->out, &request, ret);
}

static int open_session(struct nldev_session *s, const void *data, size_t bytes)
{
	struct abi_open open;
	const char *node;
	int ret = devices_open_is_sound(data, bytes, &open);

	if (ret)
		return ret;
	node = devices_node(s->nldev->rt, open.node);
	if (!node)
		return -ENOENT;
	if (open.kind != ABI_OPEN_NETLINK)
		return -EINVAL;
	ret = quota_open(&s->quota, node);
	if (ret)
		return ret;
	strncpy(s->node_name, node, sizeof(s->node_name) - 1);
	return endpoint_send(s->fd, 0, NULL, 0, NULL, 0);
}

/* Return: 0; -errno: the session ends */
static int take(struct nldev_session *s)
{
	_Alignas(8) char in[REQUEST_BYTES];
	ssize_t n = recv(s->fd, in, sizeof(in), MSG_DONTWAIT);
	int ret = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	if (s->node_name[0])
		answer(s, in, (size_t)n);
	else
		ret = open_session(s, in, (size_t)n);
	if (ret)
		endpoint_send(s->fd, ret, NULL, 0, NULL, 0);
	return ret;
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct nldev_session *s = container_of(io, struct nldev_session, io);
	int ret = proceed(s);

	if (!ret && readable)
		ret = take(s);
	if (!ret)
		ret = proceed(s);
	if (ret && ret != -EAGAIN)
		close_session(s);
	else
		rt_io_watch(&s->io, !ret, ret == -EAGAIN);
}

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct nldev_session, quota));
}

static void on_accepted(void *ctx, int fd, const struct peer *peer)
{
	struct nldev *nldev = ctx;
	struct nldev_session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &nldev->sessions, struct nldev_session, pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->nldev = nldev;
	s->fd = fd;
	s->pid = peer->pid;
	list_add_tail(&s->node, &nldev->sessions);
	rt_io_init(nldev->rt, &s->io, fd, on_message);
	rt_io_watch(&s->io, true, false);
	quota_arrive(&s->quota, nldev->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

/* --- the endpoint --- */

int nldev_create(struct rt *rt, const char *dir, const struct nldev_counters *counters,
		 struct nldev **out)
{
	struct nldev *nldev = rt_zalloc(sizeof(*nldev));
	int ret;

	if (!nldev)
		return -ENOMEM;
	nldev->rt = rt;
	nldev->counters = *counters;
	INIT_LIST_HEAD(&nldev->sessions);
	ret = listener_create(rt, dir, "netlink", on_accepted, nldev, &nldev->listener);
	if (ret) {
		rt_free(nldev);
		return ret;
	}
	listener_refuse_fds(nldev->listener);
	*out = nldev;
	return 0;
}

void nldev_destroy(struct nldev *nldev)
{
	listener_destroy(nldev->listener);
	while (!list_empty(&nldev->sessions))
		close_session(list_first_entry(&nldev->sessions, struct nldev_session, node));
	rt_free(nldev);
}
