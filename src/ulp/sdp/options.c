/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs want of their connections by socket options: keepalive, and the size of messages.
 *
 * A probe is an RDMA WRITE of no bytes, which the peer's adapter acknowledges, and of which its program
 * and its softibd see nothing. The queue pair repeats it by itself; while one is under way, no other
 * one is posted, but time goes on. A program that is told of the end by its keepalive gets ETIMEDOUT.
 */
#include <errno.h>
#include <string.h>

#include "ulp/sdp/private.h"

static void arm(struct sdp_conn *c)
{
	const uint64_t due = sdp_keepalive_due(&c->keep);

	if (due == UINT64_MAX || !c->established)
		rt_timer_disarm(&c->keep_timer);
	else
		rt_timer_arm(&c->keep_timer, (mono_t){due});
}

static void probed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sdp_conn *c = container_of(wc->wr_cqe, struct sdp_conn, probe_cqe);

	c->probing = false;
	if (wc->status == IB_WC_SUCCESS) {
		sdp_options_heard(c);
		return;
	}
	sdp_channel_tell(c, ETIMEDOUT);
	c->qp_failed = true;
}

static void probe(struct sdp_conn *c)
{
	struct ib_rdma_wr wr = {.wr = {.wr_cqe = &c->probe_cqe,
				       .opcode = IB_WR_RDMA_WRITE,
				       .send_flags = IB_SEND_SIGNALED}};

	if (c->probing)
		return;
	c->probe_cqe.done = probed;
	c->probing = !ib_post_send(c->qp, &wr.wr, NULL);
}

static void on_due(struct rt_timer *timer)
{
	struct sdp_conn *c = container_of(timer, struct sdp_conn, keep_timer);
	enum sdp_keepalive_step step;

	if (c->sdp.state != SDP_OPEN || c->qp_failed)
		return;
	step = sdp_keepalive_step(&c->keep, rt_now(c->rt).ns);
	if (step == SDP_KEEPALIVE_PROBE)
		probe(c);
	if (step == SDP_KEEPALIVE_DEAD) {
		sdp_channel_tell(c, ETIMEDOUT);
		c->qp_failed = true;
		sdp_conn_wake(c);
	} else {
		arm(c);
	}
}

void sdp_options_init(struct sdp_conn *c)
{
	rt_timer_init(c->rt, &c->keep_timer, on_due);
}

void sdp_options_heard(struct sdp_conn *c)
{
	if (c->keep.idle_ns)
		sdp_keepalive_heard(&c->keep, rt_now(c->rt).ns);
}

static u32 message_bytes(u32 wanted)
{
	const u32 least = SDP_SLOT_BYTES, most = SDP_SLOT_MAX;

	return wanted > most - WIRE_SDP_BSDH_BYTES ? most : MAX(wanted + WIRE_SDP_BSDH_BYTES, least);
}

void sdp_options_begin(struct sdp_conn *c)
{
	const struct sdp_options *o = &c->options;

	c->keep = (struct sdp_keepalive){.idle_ns = o->keep_idle_s * NSEC_PER_SEC,
					 .interval_ns = o->keep_interval_s * NSEC_PER_SEC,
					 .count = o->keep_count};
	sdp_options_heard(c);
	arm(c);
	if (o->receive_bytes)
		c->sdp.config.rcv_max = message_bytes(o->receive_bytes);
	if (!o->send_bytes)
		return;
	c->sdp.config.send_bytes = message_bytes(o->send_bytes);
	if (c->sdp.peer_rcv_bytes != c->sdp.config.send_bytes)
		sdp_ask_buffers(&c->sdp, c->sdp.config.send_bytes);
}

static bool is_of(const struct sdp_conn *c, const struct sockaddr_un *name, socklen_t bytes)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof(peer);

	return c->fd >= 0 && !getpeername(c->fd, (struct sockaddr *)&peer, &len) && len == bytes &&
	       !memcmp(&peer, name, len);
}

int sdp_set_options(struct rt *rt, const struct sockaddr_un *name, socklen_t bytes,
		    const struct sdp_options *options)
{
	struct sdp_fabric *fabric = sdp_fabric(rt);
	struct sdp_conn *c;

	if (!fabric || bytes <= offsetof(struct sockaddr_un, sun_path))
		return -ENOTCONN;
	list_for_each_entry(c, &fabric->connections, node) {
		if (!is_of(c, name, bytes))
			continue;
		c->options = *options;
		if (c->established) {
			sdp_options_begin(c);
			sdp_conn_wake(c);
		}
		return 0;
	}
	return -ENOTCONN;
}
