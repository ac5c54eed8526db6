/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stream moves to a new connection, by a path that is asked for afresh (SuspComm). The end that
 * wants that listens at a port of its own for the peer, and for nobody else. The peer connects
 * there when both have left the old connection.
 *
 * The old connection keeps the program's socket until it has delivered what came by it. Then the new
 * one takes over: the socket, the memory that programs share, and what was read from the program and
 * not sent. A new connection that cannot be made ends the stream, as a lost one does.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "ulp/sdp/private.h"

#define MOVE_MS 10000 /* for a peer to agree, and to connect: some ignore SuspComm */

static struct sockaddr_storage with_port(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage copy = *addr;

	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)&copy)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&copy)->sin_port = htons(port);
	return copy;
}

static struct rdma_cm_id *create_id(struct sdp_conn *c, struct sdp_handle *handle)
{
	return rdma_create_id(c->rt, c->id->device->node_name, sdp_on_cm_event, handle, RDMA_PS_SDP, IB_QPT_RC);
}

static struct sdp_conn *create_next(struct sdp_conn *c)
{
	struct sdp_conn *next = sdp_conn_create(c->rt, NULL, -1);

	if (!next)
		return NULL;
	next->before = c;
	c->next = next;
	return next;
}

static void fail(struct sdp_conn *c)
{
	sdp_not_resumed(&c->sdp);
	sdp_conn_wake(c);
}

/* --- the end that asks --- */

static bool is_peer(const struct sdp_conn *c, const struct rdma_cm_id *id)
{
	const struct sockaddr_storage a = with_port(&c->id->route.addr.dst_addr, 0),
				      b = with_port(&id->route.addr.dst_addr, 0);

	if (a.ss_family != b.ss_family)
		return false;
	if (a.ss_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)&a)->sin6_addr,
			       &((const struct sockaddr_in6 *)&b)->sin6_addr, sizeof(struct in6_addr));
	return ((const struct sockaddr_in *)&a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)&b)->sin_addr.s_addr;
}

/* The peer connects when its SuspCommAck has arrived, but maybe before it was looked at. */
static int on_await(struct sdp_handle *handle, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sdp_conn *c = container_of(handle, struct sdp_conn, await_handle), *next;
	int ret;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	sdp_queue_poll(c);
	sdp_conn_wake(c);
	if (c->sdp.state != SDP_SUSPENDED || c->sdp.susp_received || c->next || !is_peer(c, id))
		return -ECONNREFUSED;
	next = create_next(c);
	if (!next)
		return -ENOMEM;
	ret = sdp_conn_answer(next, id, event);
	if (ret)
		sdp_conn_destroy(next);
	return ret;
}

static void on_timeout(struct rt_timer *timer)
{
	struct sdp_conn *c = container_of(timer, struct sdp_conn, move_timer);

	if (c->sdp.susp_received || (c->next && c->next->ready))
		return;
	if (c->sdp.state == SDP_OPEN)
		sdp_abort(&c->sdp);
	fail(c);
}

/* Return: the service id where the peer is awaited; 0: it cannot be */
static u64 await_peer(struct sdp_conn *c)
{
	struct sockaddr_storage addr = with_port(&c->id->route.addr.src_addr, 0);
	u16 port;

	c->await_handle.event = on_await;
	c->await = create_id(c, &c->await_handle);
	if (IS_ERR(c->await))
		c->await = NULL;
	if (!c->await || rdma_bind_addr(c->await, (struct sockaddr *)&addr) || rdma_listen(c->await, 1))
		return 0;
	addr = c->await->route.addr.src_addr;
	port = addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
					  : ((struct sockaddr_in *)&addr)->sin_port;
	return be64_to_cpu(IB_SDP_SERVICE_ID) + ntohs(port);
}

static void stop_awaiting(struct sdp_conn *c)
{
	if (c->await)
		rdma_destroy_id(c->await);
	c->await = NULL;
	rt_timer_disarm(&c->move_timer);
}

/* Return: has it begun? */
static bool begin(struct sdp_conn *c)
{
	u64 service;

	if (!c->established || c->cm_gone || c->sdp.state != SDP_OPEN || c->await)
		return false;
	service = await_peer(c);
	if (!service || !sdp_suspend(&c->sdp, service)) {
		stop_awaiting(c);
		return false;
	}
	rt_timer_arm(&c->move_timer, mono_add(rt_now(c->rt), MOVE_MS * 1000000ull));
	sdp_conn_wake(c);
	return true;
}

unsigned int sdp_move_all(struct rt *rt, const char *node)
{
	struct sdp_fabric *fabric = sdp_fabric(rt);
	struct sdp_conn *c;
	unsigned int num = 0;

	if (!fabric)
		return 0;
	list_for_each_entry(c, &fabric->connections, node)
		num += c->id && c->id->device && !strcmp(c->id->device->node_name, node) && begin(c);
	return num;
}

/* --- the end that follows --- */

static void follow(struct sdp_conn *c)
{
	const u64 service = c->sdp.susp_service, base = be64_to_cpu(IB_SDP_SERVICE_ID);
	struct sockaddr_storage to = with_port(&c->id->route.addr.dst_addr, (u16)service),
				from = with_port(&c->id->route.addr.src_addr, 0);
	struct sdp_conn *next = service - base > 0xffff ? NULL : create_next(c);
	struct rdma_cm_id *id;

	if (!next) {
		fail(c);
		return;
	}
	id = create_id(c, &next->handle);
	if (IS_ERR(id) || sdp_conn_dial(next, id, (struct sockaddr *)&from, (const struct sockaddr *)&to))
		sdp_conn_destroy(next);
}

/* --- both --- */

/* What was read from the program and not sent goes along. Return: 0; -ENOMEM */
static int move_unsent(struct sdp_conn *c, struct sdp_conn *next)
{
	struct sdp_buffer *b;

	next->bulk = c->bulk;
	if (c->pending) {
		b = &next->send[next->free_send[--next->num_free_sends]];
		memcpy(b->bytes + SDP_PAYLOAD_AT, c->pending->bytes + SDP_PAYLOAD_AT, c->pending_bytes);
		next->pending = b;
		next->pending_bytes = c->pending_bytes;
		next->pending_oob = c->pending_oob;
	}
	return sdp_regions_move(c, next);
}

static void take_over(struct sdp_conn *c, struct sdp_conn *next)
{
	rt_io_watch(&c->io, false, false);
	next->fd = c->fd;
	c->fd = -1;
	next->charged = c->charged; /* for the descriptors, which are the next one's now */
	next->charges = c->charges;
	c->charged = NULL;
	next->tx_eof = c->tx_eof;
	next->rx_eof = c->rx_eof;
	next->writes_ended = c->writes_ended;
	next->options = c->options;
	sdp_channel_move(c, next);
	c->next = next->before = NULL;
	sdp_conn_begin(next);
	if (c->sdp.rx_shut)
		sdp_close(&next->sdp);
	else if (c->sdp.tx_shut)
		sdp_shutdown(&next->sdp);
	if (move_unsent(c, next))
		sdp_abort(&next->sdp);
	sdp_conn_destroy(c);
}

void sdp_move_init(struct sdp_conn *c)
{
	rt_timer_init(c->rt, &c->move_timer, on_timeout);
}

bool sdp_move_step(struct sdp_conn *c)
{
	struct sdp_conn *next = c->next;

	if (c->sdp.state != SDP_SUSPENDED)
		return false;
	if (!next && c->sdp.susp_received)
		follow(c);
	if (!next || !next->ready || sdp_rx_head(&c->sdp) || c->reading || c->read_at < c->read_bytes)
		return false;
	take_over(c, next);
	return true;
}

void sdp_move_ready(struct sdp_conn *next)
{
	next->ready = true;
	sdp_conn_wake(next->before);
}

void sdp_move_end(struct sdp_conn *c)
{
	struct sdp_conn *before = c->before, *next = c->next;

	stop_awaiting(c);
	c->before = c->next = NULL;
	if (before) {
		before->next = NULL;
		fail(before);
	}
	if (next) {
		next->before = NULL;
		sdp_conn_destroy(next);
	}
}
