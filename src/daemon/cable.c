/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cables that leave the fabric: cable.h. */
#include "daemon/cable.h"

#include <errno.h>
#include <sodium/core.h>
#include <sodium/randombytes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cable_private.h"
#include "fabric/ethernet.h"
#include "rdma/rdma_cm.h"

#define STRANGERS_MAX 8 /* connections to a cable that have not shown yet who they are */

/* --- connecting --- */

static void try_connect(struct cable *cable)
{
	int fd = cable_address_socket(&cable->addr), ret = MIN(fd, 0);

	if (!ret && connect(fd, &cable->addr.sa, cable->addr.len) && errno != EINPROGRESS) {
		ret = -errno;
		close(fd);
	} else if (!ret) {
		ret = connection_begin(cable, fd, true);
	}
	if (!ret)
		return;
	snprintf(cable->error, sizeof(cable->error), "%s", strerror(-ret));
	rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), CABLE_AGAIN_NS));
}

static void try_again(struct rt_timer *timer)
{
	struct cable *cable = container_of(timer, struct cable, again);

	if (cable->listens)
		rt_io_watch(&cable->listener_io, true, false);
	else
		try_connect(cable);
}

/* --- listening --- */

/* The oldest of too many strangers goes: one who knows what to say needs a moment alone, and is not kept out by
 * those who say nothing. */
static void make_room(struct cable *cable)
{
	struct connection *conn, *oldest = NULL;
	unsigned int strangers = 0;

	list_for_each_entry(conn, &cable->connections, node) {
		if (conn == cable->active)
			continue;
		strangers++;
		if (!oldest)
			oldest = conn;
	}
	if (strangers >= STRANGERS_MAX)
		connection_end(oldest);
}

static void arrives(struct rt_io *io, bool readable, bool writable)
{
	struct cable *cable = container_of(io, struct cable, listener_io);
	int fd = accept4(cable->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		/* no descriptor is left, say: the connection stays in the queue of the socket */
		rt_io_watch(io, false, false);
		rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), CABLE_AGAIN_NS));
	}
	if (fd < 0)
		return;
	if (cable->is_ethernet && cable->active) {
		snprintf(cable->error, sizeof(cable->error), "a second program tried to connect; it needs a cable of its own");
		close(fd);
		return;
	}
	if (connection_is_ours(cable, fd)) {
		make_room(cable);
		connection_begin(cable, fd, false);
		return;
	}
	snprintf(cable->error, sizeof(cable->error), "another user tried to connect%s", cable_by_key(cable));
	close(fd);
}

static int begin_listening(struct cable *cable)
{
	int fd = cable_address_listen(&cable->addr, STRANGERS_MAX);

	if (fd < 0)
		return fd;
	cable->listener = fd;
	rt_io_init(cable->all->rt, &cable->listener_io, fd, arrives);
	rt_io_watch(&cable->listener_io, true, false);
	return 0;
}

static void end_listening(struct cable *cable)
{
	if (cable->listener < 0)
		return;
	rt_io_watch(&cable->listener_io, false, false);
	close(cable->listener);
	if (cable_address_is_unix(&cable->addr))
		unlink(cable->address);
}

/* --- cables --- */

static void free_cable(struct cable *cable)
{
	struct connection *conn, *tmp;
	struct fab_outlet *outlet = cable->outlet;

	end_listening(cable);
	list_for_each_entry_safe(conn, tmp, &cable->connections, node)
		connection_end(conn);
	rt_timer_disarm(&cable->again);
	cable_held_exit(&cable->held);
	if (outlet)
		fab_outlet_destroy(outlet);
	list_del(&cable->node);
	if (list_empty(&cable->all->list))
		rdma_cm_publish(cable->all->rt, false);
	free(cable->address);
	rt_free(cable);
}

static struct cable *make_cable(struct cables *cables, const struct cable_request *req)
{
	struct cable *cable = rt_zalloc(sizeof(*cable));

	if (!cable)
		return NULL;
	cable->all = cables;
	cable->index = req->node;
	cable->port = req->port;
	cable->listens = req->listens;
	cable->listener = -1;
	cable->has_key = req->key != NULL;
	cable->is_ethernet = fab_is_ethernet(cables->fab, req->node, req->port);
	cable->frames = (struct fab_frames){.fab = cables->fab, .node = req->node, .port = req->port};
	if (req->key)
		memcpy(cable->key, req->key, sizeof(cable->key));
	cable->address = strdup(req->address);
	INIT_LIST_HEAD(&cable->connections);
	list_add_tail(&cable->node, &cables->list);
	rt_timer_init(cables->rt, &cable->again, try_again);
	cable_held_init(&cable->held, cables->rt, &cable_held_ops, cable);
	return cable;
}

static int explain(int error, const struct cable_request *req, char *err)
{
	snprintf(err, CABLE_ERROR_BYTES, "%.160s: %s", req->address, strerror(-error));
	return error;
}

/* Of fab_outlet_create(), which alone knows these errors. */
static int explain_port(int error, const struct cable_request *req, char *err)
{
	static const struct {
		int error;
		const char *text;
	} texts[] = {
		{-EBUSY, "this port has a cable; 'softib topo' shows those that are free"},
		{-ENOENT, "there is no such port"},
		{-ENOSPC, "the fabric has as many cables that leave it as it can have; remove one"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].error == error) {
			snprintf(err, CABLE_ERROR_BYTES, "%s", texts[i].text);
			return error;
		}
	return explain(error, req, err);
}

/* Who connects by TCP has to show who he is, which programs with frames of Ethernet cannot. */
static bool is_allowed(const struct cables *cables, const struct cable_request *req, const struct cable_address *addr, char *err)
{
	const bool is_tcp = !cable_address_is_unix(addr), ethernet = fab_is_ethernet(cables->fab, req->node, req->port);

	if (ethernet && req->key)
		snprintf(err, CABLE_ERROR_BYTES, "the frames of a cable of Ethernet know no key; leave --key out");
	else if (ethernet && is_tcp && req->listens && !cable_address_is_loopback(addr))
		snprintf(err, CABLE_ERROR_BYTES, "a cable of Ethernet knows no key, and listens only at a Unix socket or at "
						 "an address of this host itself, such as 127.0.0.1");
	else if (!ethernet && is_tcp && !req->key)
		snprintf(err, CABLE_ERROR_BYTES, "a cable by TCP needs a key that both sides have: --key FILE");
	else
		return true;
	return false;
}

int cables_add(struct cables *cables, const struct cable_request *req, char err[CABLE_ERROR_BYTES])
{
	struct cable *cable;
	struct cable_address addr;
	int ret;

	if (!cable_address_parse(req->address, &addr)) {
		snprintf(err, CABLE_ERROR_BYTES, "'%.100s' is no address: expected HOST:PORT, [IPV6]:PORT or the path of a "
						 "Unix socket", req->address);
		return -EINVAL;
	}
	if (!is_allowed(cables, req, &addr, err))
		return -EINVAL;
	cable = make_cable(cables, req);
	if (!cable)
		return explain(-ENOMEM, req, err);
	cable->addr = addr;
	ret = cable->address ? fab_outlet_create(cables->fab, req->node, req->port, &cable_outlet_ops, cable, &cable->outlet) :
			       -ENOMEM;
	if (ret) {
		free_cable(cable);
		return explain_port(ret, req, err);
	}
	ret = req->listens ? begin_listening(cable) : 0;
	if (ret) {
		free_cable(cable);
		return explain(ret, req, err);
	}
	if (!cable->is_ethernet)
		rdma_cm_publish(cables->rt, true);
	if (!req->listens)
		try_connect(cable);
	return 0;
}

int cables_remove(struct cables *cables, int node, int port)
{
	struct cable *cable;

	list_for_each_entry(cable, &cables->list, node)
		if (cable->index == node && cable->port == port) {
			free_cable(cable);
			return 0;
		}
	return -ENOENT;
}

static void fill_status(const struct cable *cable, struct cable_status *status)
{
	const struct cable_session *s = cable->active ? &cable->active->session : NULL;

	*status = cable->total;
	status->node = cable->index;
	status->port = cable->port;
	status->listens = cable->listens;
	status->has_key = cable->has_key;
	status->address = cable->address;
	status->connected = s != NULL;
	status->far = !s ? "" : cable->is_ethernet ? "a program with Ethernet" : s->far.name;
	status->is_ethernet = cable->is_ethernet;
	status->malformed = cable->frames.malformed + cable->frames.wrong_length;
	status->spoofed = cable->frames.spoofed;
	status->error = cable->error;
	status->discarded = cable->discarded;
	if (!s)
		return;
	status->packets_sent += s->packets_sent;
	status->packets_received += s->packets_received;
	status->bytes_sent += s->sent;
	status->bytes_received += s->received;
	status->waits += s->waits;
}

bool cables_get(const struct cables *cables, unsigned int i, struct cable_status *status)
{
	const struct cable *cable;

	list_for_each_entry(cable, &cables->list, node)
		if (!i--) {
			fill_status(cable, status);
			return true;
		}
	return false;
}

struct cables *cables_create(struct rt *rt, struct fabric *fab, const char *name)
{
	struct cables *cables = sodium_init() < 0 ? NULL : rt_zalloc(sizeof(*cables));

	if (!cables)
		return NULL;
	cables->rt = rt;
	cables->fab = fab;
	cables->name = name;
	randombytes_buf(&cables->instance, sizeof(cables->instance));
	INIT_LIST_HEAD(&cables->list);
	return cables;
}

void cables_destroy(struct cables *cables)
{
	struct cable *cable, *tmp;

	if (!cables)
		return;
	list_for_each_entry_safe(cable, tmp, &cables->list, node)
		free_cable(cable);
	rt_free(cables);
}
