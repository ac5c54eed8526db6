/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connections: all that one does in a turn of the loop, and its end. */
#include <string.h>
#include <unistd.h>

#include "runtime/posix/closer.h"
#include "ulp/sdp/private.h"
#include "ulp/sdp/trace.h"

static int compare_qp(const void *key, const struct rt_tree_node *node)
{
	const struct sdp_qp_key *a = key, *b = &container_of(node, struct sdp_conn, by_qp)->key;
	const int gids = memcmp(&a->gid, &b->gid, sizeof(a->gid));

	return gids ? gids : (a->qpn > b->qpn) - (a->qpn < b->qpn);
}

static void init_fabric(struct rt *rt, void *state)
{
	struct sdp_fabric *fabric = state;

	INIT_LIST_HEAD(&fabric->connections);
	rt_tree_init(rt, &fabric->by_qp, compare_qp);
}

bool sdp_fabric_open(struct rt *rt)
{
	return rt_local_get(rt, RT_LOCAL_SDP, sizeof(struct sdp_fabric), init_fabric);
}

void sdp_conn_wake(struct sdp_conn *c)
{
	rt_work_queue(c->rt, &c->turn);
}

/* The id's events before it was over were reported by completions; what is left of them is
 * handled first. */
static void note_end(struct sdp_conn *c)
{
	if (c->sdp.state == SDP_ENDED)
		return;
	if (c->cm_gone)
		sdp_disconnected(&c->sdp);
	else if (c->qp_failed)
		sdp_lost(&c->sdp);
}

/* An end that was reached is kept until the program has got everything. */
static bool is_over(const struct sdp_conn *c)
{
	return c->sdp.state == SDP_ENDED && c->rx_eof;
}

static void take_turn(struct rt_work *work)
{
	struct sdp_conn *c = container_of(work, struct sdp_conn, turn);
	bool more = sdp_queue_poll(c);

	if (!more)
		note_end(c);
	if (!c->established) {
		if (more)
			sdp_conn_wake(c);
		return;
	}
	more |= sdp_stream_deliver(c);
	more |= sdp_stream_send(c);
	if (c->qp_failed && !more)
		note_end(c);
	more |= sdp_stream_deliver(c);
	if (sdp_move_step(c))
		return;
	if (is_over(c)) {
		sdp_conn_destroy(c);
		return;
	}
	sdp_channel_update(c);
	sdp_stream_watch(c);
	if (more)
		sdp_conn_wake(c);
}

_Static_assert(sizeof(struct sdp_conn) + SDP_SLOTS * SDP_SLOT_BYTES + SDP_SENDS_FIRST * SDP_SEND_BYTES +
		       SDP_READ_LEAST <= SDP_CONN_BYTES, "what is charged for a connection that begins");

/* Return: false: the socket may have no further connection */
static bool charge(struct sdp_conn *c, const struct sdp_socket *socket, int fd)
{
	if (!socket || !socket->ops->charge)
		return true;
	c->charged = socket->ops->charge(socket->ctx, fd);
	c->charges = socket->ops;
	return c->charged;
}

bool sdp_conn_take(struct sdp_conn *c, size_t bytes)
{
	return !c->charged || c->charges->take(c->charged, bytes);
}

struct sdp_conn *sdp_conn_create(struct rt *rt, struct sdp_socket *socket, int fd)
{
	static const struct sdp_config config = {
		.slots = SDP_SLOTS, .rcv_bytes = SDP_SLOT_BYTES,
						 .rcv_max = SDP_SLOT_MAX,
						 .send_bytes = SDP_SLOT_MAX,
						 .max_adverts = SDP_REGIONS + SDP_SINKS,
						 .advert_bytes = SDP_ADVERT_BYTES,
						 .pipelines = true};
	struct sdp_conn *c = rt_zalloc(sizeof(*c));

	if (!c || !charge(c, socket, fd)) {
		if (fd >= 0)
			rt_close_foreign(fd);
		rt_free(c);
		return NULL;
	}
	c->rt = rt;
	c->socket = socket;
	c->fd = fd;
	c->program_fd = -1;
	sdp_init(&c->sdp, &config);
	c->sdp.config.trace = sdp_conn_trace;
	c->sdp.config.traced = &rt_trace(rt)->on[RT_TRACE_SDP];
	rt_work_init(&c->turn, take_turn);
	rt_tree_node_init(&c->by_qp);
	sdp_move_init(c);
	sdp_options_init(c);
	c->fabric = sdp_fabric(rt);
	list_add_tail(&c->node, &c->fabric->connections);
	c->fabric->stats.connections++;
	c->fabric->stats.open++;
	return c;
}

void sdp_conn_forget(const struct sdp_socket *socket)
{
	struct sdp_conn *c;

	list_for_each_entry(c, &sdp_fabric(socket->rt)->connections, node)
		if (c->socket == socket)
			c->socket = NULL;
}

void sdp_conn_expect(struct sdp_conn *c)
{
	c->key = (struct sdp_qp_key){c->id->route.sgid, c->qp->qp_num};
	rt_tree_insert(&c->fabric->by_qp, &c->by_qp, &c->key);
}

struct sdp_conn *sdp_conn_with_qp(const struct rt *rt, const struct rdma_cm_id *id, u32 qpn)
{
	const struct sdp_qp_key key = {id->route.dgid, qpn};
	struct rt_tree_node *node = rt_tree_find(&sdp_fabric(rt)->by_qp, &key);

	return node ? container_of(node, struct sdp_conn, by_qp) : NULL;
}

void sdp_conn_begin(struct sdp_conn *c)
{
	rt_tree_remove(&c->by_qp);
	c->established = true;
	c->socket = NULL;
	sdp_stream_open(c);
	sdp_options_begin(c);
	sdp_conn_wake(c);
}

void sdp_conn_destroy(struct sdp_conn *c)
{
	sdp_move_end(c);
	rt_timer_disarm(&c->keep_timer);
	rt_work_cancel(&c->turn);
	rt_tree_remove(&c->by_qp);
	if (c->established)
		rt_io_watch(&c->io, false, false);
	sdp_channel_leave(c);
	/* destroying the id tells the peer */
	sdp_queue_close(c);
	if (c->id)
		rdma_destroy_id(c->id);
	if (c->fd >= 0)
		rt_close_foreign(c->fd);
	if (c->program_fd >= 0)
		close(c->program_fd);
	list_del(&c->node);
	c->fabric->stats.open--;
	if (c->charged)
		c->charges->release(c->charged);
	rt_free(c);
}

void sdp_stats_get(const struct rt *rt, struct sdp_stats *stats)
{
	struct sdp_fabric *fabric = sdp_fabric(rt);
	struct sdp_conn *c;

	*stats = (struct sdp_stats){0};
	if (!fabric)
		return;
	list_for_each_entry(c, &fabric->connections, node)
		sdp_channel_account(c);
	*stats = fabric->stats;
}

u64 sdp_count(const struct rt *rt, const char *node)
{
	struct sdp_fabric *fabric = sdp_fabric(rt);
	struct sdp_conn *c;
	u64 num = 0;

	if (!fabric)
		return 0;
	list_for_each_entry(c, &fabric->connections, node)
		num += c->id && c->id->device && !strcmp(c->id->device->node_name, node);
	return num;
}

void sdp_close_all(struct rt *rt)
{
	struct sdp_fabric *fabric = sdp_fabric(rt);
	struct sdp_conn *c, *next;

	if (!fabric)
		return;
	list_for_each_entry_safe(c, next, &fabric->connections, node)
		sdp_conn_destroy(c);
	rt_local_free(rt, RT_LOCAL_SDP);
}
