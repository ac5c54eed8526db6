/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections of SDP, one after the other, between two nodes: the state machines (src/sdp) over reliable
 * connections of the nodes' midlayer, with SENDs, RDMA READs and RDMA WRITEs as the shell has them
 * (src/ulp/sdp). The CM is not simulated: both ends get the other's Hello at once, and hear of the other's
 * end some turns later. Programs write, read, lend room, close, abort and move their streams to other
 * queue pairs; in scenarios with faults an end dies at any moment.
 *
 * What is verified (oracle "sdp"): the stream arrives in order and whole, no message finds less room than
 * it has bytes, or no receive, no end breaks the protocol, an end that was closed in order has got
 * everything, and both ends come to an end that fits the other's.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "hca/hca.h"
#include "rc.h"
#include "sdp/sdp.h"

#define ROUNDS	   8
#define ROUNDS_CALM 3
#define CALM_NS	   (4 * NSEC_PER_MSEC)
#define ACTIONS	   24 /* of both ends, in a turn */
#define STREAM	   40000
#define RCV_MAX	   2048
#define SINKS	   2
#define SINK_BYTES 6000
#define READ_BYTES 4000
#define REGION_BYTES 8000
#define SENDS	   16
#define POSTS	   256 /* that are remembered */

enum what { RECEIVE, SEND, READ, WRITE };
enum fate { FLOWS, ABORTS, CLOSES };

/** struct memory - what the peer may access */
struct memory {
	uint8_t stream[STREAM]; /* all that the program writes */
	uint8_t sink[SINKS][SINK_BYTES];
};

struct lent {
	uint64_t at;
	uint32_t left;
};

struct end {
	struct sdps *all;
	struct end *peer;
	int node;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_mr *mr;
	struct memory *memory;
	struct ib_qp *qp; /* NULL: dead, or not connected */
	struct sdp sdp;
	struct sdp_config config;
	uint8_t slot[SDP_SLOTS_MAX][RCV_MAX], tx[SENDS][RCV_MAX], bounce[READ_BYTES];
	bool slot_free[SDP_SLOTS_MAX], tx_busy[SENDS];
	uint32_t posted_bytes[POSTS], posted, sent_messages;
	/* the program, and its stream */
	enum fate fate;
	uint64_t total, fate_at, written, sent, got;
	bool shut, lends, moves;
	struct lent region[SDP_ADVERTS_MAX];
	uint32_t num_regions;
	bool reading;
	uint32_t bounce_at, bounce_bytes;
	bool dead;
	uint32_t told_in; /* turns until the CM tells of the peer's end; 0: not yet to be told */
};

struct sdps {
	struct sim *sim;
	struct rng rng;
	struct end end[2];
	uint32_t round, rounds_left, psn;
	bool open;    /* a connection is there */
	bool excused; /* it began while faults acted */
	struct rt_timer timer;
};

static struct sdps *sdps;

static bool faultless(const struct sdps *all)
{
	return all->sim->calm || plan_is_faultless(all->sim->plan->kind);
}

static uint32_t below(struct end *e, uint32_t n)
{
	return rng_below(&e->all->rng, n);
}

static _Noreturn void fail(const struct end *e, const char *text)
{
	sim_fail(e->all->sim, ORACLE_SDP,
		 "end %d: %s (states %d and %d, ends %d and %d, %u of %u bytes)", e == &e->all->end[1], text,
		 (int)e->sdp.state, (int)e->peer->sdp.state, (int)e->sdp.end, (int)e->peer->sdp.end, (unsigned)e->got,
		 (unsigned)e->peer->written);
}

/* --- queue pairs --- */

static int bring_up(struct end *e, uint32_t psn)
{
	return rc_bring_up(e->qp, fab_node(e->all->sim->fab, e->peer->node)->port[1].lid, e->peer->qp->qp_num, psn,
			   IB_MTU_512);
}

static void close_qp(struct end *e)
{
	if (e->qp)
		ib_destroy_qp(e->qp);
	e->qp = NULL;
	e->reading = false;
}

static bool open_qp(struct end *e)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = 3 * SENDS, .max_recv_wr = SDP_SLOTS_MAX, .max_send_sge = 1, .max_recv_sge = 1}};

	e->qp = ib_create_qp(e->pd, &init);
	if (!IS_ERR(e->qp))
		return true;
	e->qp = NULL;
	return false;
}

static struct ib_sge sge_of(struct end *e, const void *bytes, uint32_t n)
{
	return (struct ib_sge){(uintptr_t)bytes, n, e->pd->local_dma_lkey};
}

/* --- receives --- */

static void post_slot(struct end *e, uint32_t slot)
{
	struct ib_sge sge = sge_of(e, e->slot[slot], e->sdp.slot_bytes);
	struct ib_recv_wr wr = {.wr_id = RECEIVE << 8 | slot, .sg_list = &sge, .num_sge = 1};

	e->slot_free[slot] = false;
	e->posted_bytes[e->posted++ % POSTS] = e->sdp.slot_bytes;
	if (ib_post_recv(e->qp, &wr, NULL))
		sdp_lost(&e->sdp);
}

/* a slot that is free, if it is not better to wait */
static bool post_some(struct end *e)
{
	uint32_t first = below(e, e->config.slots);

	for (uint32_t i = 0; i < e->config.slots; i++) {
		uint32_t slot = (first + i) % e->config.slots;

		if (!e->slot_free[slot] || e->sdp.state != SDP_OPEN)
			continue;
		post_slot(e, slot);
		sdp_posted(&e->sdp);
		return true;
	}
	return false;
}

/* what became of memory that was lent to the peer */
static void take_back(struct end *e, const struct sdp_input *input)
{
	if (input->taken) {
		if (!e->num_regions || input->taken > e->region[0].left)
			fail(e, "more was read than was lent");
		e->region[0].at += input->taken;
		e->region[0].left -= input->taken;
	}
	if (input->returned) {
		e->sent = e->region[0].at;
		e->num_regions = 0;
	} else if (e->num_regions && !e->region[0].left) {
		e->num_regions--;
		memmove(e->region, e->region + 1, e->num_regions * sizeof(*e->region));
	}
}

static void received(struct end *e, uint32_t slot, uint32_t len)
{
	struct sdp_input input;

	if (sdp_received(&e->sdp, (uint16_t)slot, e->slot[slot], len, &input))
		fail(e, "the peer's message is a violation");
	e->slot_free[slot] = !input.holds_slot;
	take_back(e, &input);
}

static void was_read(struct end *e)
{
	e->reading = false;
	if (e->sdp.state == SDP_OPEN)
		sdp_rx_read(&e->sdp);
	else
		e->bounce_bytes = 0; /* the stream was cut there */
}

static void completed(struct end *e, const struct ib_wc *wc)
{
	const uint32_t index = wc->wr_id & 0xff;

	if (wc->status != IB_WC_SUCCESS) {
		if (!e->all->excused && e->sdp.state == SDP_OPEN && e->peer->sdp.state == SDP_OPEN)
			fail(e, ib_wc_status_msg(wc->status));
		sdp_lost(&e->sdp);
		if (wc->wr_id >> 8 == READ)
			was_read(e);
		return;
	}
	switch ((enum what)(wc->wr_id >> 8)) {
	case RECEIVE:
		received(e, index, wc->byte_len);
		break;
	case SEND:
		e->tx_busy[index] = false;
		sdp_sent(&e->sdp);
		break;
	case READ:
		was_read(e);
		break;
	case WRITE:
		break;
	}
}

static void poll(struct end *e)
{
	struct ib_wc wc;

	while (e->qp && ib_poll_cq(e->cq, 1, &wc) == 1) {
		sim_note(e->all->sim, wc.wr_id, wc.status);
		e->all->sim->result->completions++;
		completed(e, &wc);
	}
}

/* --- the program reads --- */

static uint8_t byte_of(const struct end *e, uint64_t at)
{
	return (uint8_t)(at * 31 + at / 251 + (e == &e->all->end[1] ? 77 : 0) + e->all->round);
}

static void deliver(struct end *e, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, e->got++)
		if (bytes[i] != byte_of(e->peer, e->got) || sim_sabotage(e->all->sim, ORACLE_SDP))
			fail(e, "a byte of the stream is wrong");
	if (e->got > e->peer->written)
		fail(e, "the stream is longer than what was written");
}

static void read_some(struct end *e, const struct sdp_item *head)
{
	const uint32_t n = 1 + below(e, MIN(head->left, (uint32_t)READ_BYTES));
	struct ib_sge sge = sge_of(e, e->bounce, n);
	struct ib_rdma_wr wr = {.wr = {.wr_id = READ << 8,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_RDMA_READ,
				       .send_flags = IB_SEND_SIGNALED},
				.remote_addr = head->address,
				.rkey = head->rkey};

	sdp_rx_reading(&e->sdp, n);
	e->bounce_at = 0;
	e->bounce_bytes = n;
	e->reading = true;
	if (ib_post_send(e->qp, &wr.wr, NULL))
		sdp_lost(&e->sdp);
}

static bool take(struct end *e)
{
	struct sdp_item *head = sdp_rx_head(&e->sdp);
	const uint8_t *bytes;
	uint32_t n, slot;

	if (e->reading)
		return false;
	if (e->bounce_at < e->bounce_bytes) {
		n = 1 + below(e, e->bounce_bytes - e->bounce_at);
		deliver(e, e->bounce + e->bounce_at, n);
		e->bounce_at += n;
		return true;
	}
	if (!head)
		return false;
	if (!head->bytes) {
		read_some(e, head);
		return true;
	}
	slot = head->slot;
	bytes = head->in_sink ? (const uint8_t *)(uintptr_t)head->address : e->slot[slot];
	n = 1 + below(e, head->bytes);
	deliver(e, bytes + head->offset, n);
	if (sdp_rx_took(&e->sdp, n) && bytes == e->slot[slot])
		e->slot_free[slot] = true;
	return true;
}

/* --- the program writes --- */

static void write_some(struct end *e)
{
	if (e->shut || e->sdp.state != SDP_OPEN)
		return;
	e->written += MIN(1 + below(e, below(e, 4) ? 500 : 12000), e->total - e->written);
	e->shut = e->written == e->total || (e->fate != FLOWS && e->written >= e->fate_at);
	if (!e->shut)
		return;
	if (e->fate == ABORTS)
		sdp_abort(&e->sdp);
	else if (e->fate == CLOSES)
		sdp_close(&e->sdp);
	else
		sdp_shutdown(&e->sdp);
}

static struct sdp_offer offer_of(const struct end *e)
{
	struct sdp_offer offer = {.bytes = (uint32_t)(e->written - e->sent)};

	if (e->config.advert_bytes && offer.bytes >= e->config.advert_bytes) {
		offer.region_bytes = MIN(offer.bytes, (uint32_t)REGION_BYTES);
		offer.rkey = e->mr->rkey;
		offer.address = (uintptr_t)e->memory->stream + e->sent;
	}
	return offer;
}

/* RDMA WRITE: of the same queue, so it is there before the message that tells of it */
static void write_to_sink(struct end *e, uint32_t n)
{
	struct ib_sge sge = sge_of(e, e->memory->stream + e->sent, n);
	struct ib_rdma_wr wr = {.wr = {.wr_id = WRITE << 8,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_RDMA_WRITE,
				       .send_flags = IB_SEND_SIGNALED},
				.remote_addr = e->sdp.target.address,
				.rkey = e->sdp.target.rkey};

	if (ib_post_send(e->qp, &wr.wr, NULL))
		sdp_lost(&e->sdp);
}

/* what leaves the offer with @msg */
static void note_sent(struct end *e, const struct wire_sdp_msg *msg)
{
	uint32_t n = msg->payload_bytes;

	if (msg->bsdh.mid == WIRE_SDP_SRC_AVAIL) {
		n = msg->src.bytes;
		e->region[e->num_regions++] = (struct lent){e->sent + msg->payload_bytes, n - msg->payload_bytes};
	} else if (msg->bsdh.mid == WIRE_SDP_RDMA_WR_COMPL) {
		n = msg->count.bytes;
		write_to_sink(e, n);
	}
	e->sent += n;
}

static void check_room(struct end *e, uint32_t bytes)
{
	const struct end *peer = e->peer;

	if (!peer->qp)
		return;
	if (e->sent_messages >= peer->posted)
		fail(e, "a message is sent for which there is no receive");
	if (bytes > peer->posted_bytes[e->sent_messages % POSTS])
		fail(e, "a message is longer than the receive that it meets");
}

static bool send_message(struct end *e)
{
	const struct sdp_offer offer = offer_of(e);
	uint32_t index = 0;
	struct wire_sdp_msg msg;
	struct ib_sge sge;
	struct ib_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED};
	int headers;

	while (index < SENDS && e->tx_busy[index])
		index++;
	if (!e->qp || index == SENDS || !sdp_next(&e->sdp, &offer, &msg))
		return false;
	headers = wire_sdp_write(&msg, e->tx[index]);
	memcpy(e->tx[index] + headers, e->memory->stream + e->sent, msg.payload_bytes);
	check_room(e, msg.bsdh.len);
	note_sent(e, &msg);
	e->sent_messages++;
	e->tx_busy[index] = true;
	sge = sge_of(e, e->tx[index], msg.bsdh.len);
	wr.wr_id = SEND << 8 | index;
	if (ib_post_send(e->qp, &wr, NULL))
		sdp_lost(&e->sdp);
	return true;
}

/* --- memory --- */

static bool is_in_use(struct end *e, const uint8_t *sink)
{
	for (uint32_t i = 0; i < e->sdp.num_own_sinks; i++)
		if (e->sdp.own_sink[i].address == (uintptr_t)sink)
			return true;
	for (uint32_t i = 0; i < e->sdp.num_items; i++) {
		const struct sdp_item *item = &e->sdp.item[(e->sdp.first + i) % SDP_ITEMS_MAX];

		if (item->in_sink && item->address == (uintptr_t)sink)
			return true;
	}
	return false;
}

static void lend(struct end *e)
{
	for (int i = 0; i < SINKS; i++) {
		const struct sdp_sink sink = {SINK_BYTES, e->mr->rkey, (uintptr_t)e->memory->sink[i]};

		if (!is_in_use(e, e->memory->sink[i]) && sdp_offer_sink(&e->sdp, &sink))
			return;
	}
}

static void change_something(struct end *e)
{
	switch (below(e, 20)) {
	case 0:
		sdp_cancel_adverts(&e->sdp);
		break;
	case 1:
		sdp_cancel_sinks(&e->sdp);
		break;
	case 2:
		sdp_ask_buffers(&e->sdp, below(e, 2 * RCV_MAX));
		break;
	case 3:
		if (e->moves)
			sdp_suspend(&e->sdp, 1);
		break;
	default:
		if (e->lends)
			lend(e);
	}
}

/* --- connections --- */

static void begin_machine(struct end *e)
{
	if (sdp_init(&e->sdp, &e->config))
		fail(e, "its configuration is refused");
	memset(e->slot_free, 0, sizeof(e->slot_free));
	memset(e->tx_busy, 0, sizeof(e->tx_busy));
	e->posted = e->sent_messages = e->num_regions = e->bounce_at = e->bounce_bytes = e->told_in = 0;
	for (uint32_t i = 0; i < e->config.slots; i++)
		post_slot(e, i);
}

/* Queue pairs and machines, which have said Hello. Return: false: there is no memory for them */
static bool connect_ends(struct sdps *all, struct end *active)
{
	const struct sdp_address address = {.src_port = 7};
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
	struct sdp_address seen;

	all->psn = (all->psn + 0x543210) & 0xffffff;
	if (!open_qp(active) || !open_qp(active->peer) || bring_up(active, all->psn) ||
	    bring_up(active->peer, all->psn))
		return false;
	begin_machine(active);
	begin_machine(active->peer);
	sdp_hello(&active->sdp, &address, hello);
	if (sdp_accept(&active->peer->sdp, hello, sizeof(hello), &seen, ack) ||
	    sdp_accepted(&active->sdp, ack, sizeof(ack)))
		fail(active, "no Hello");
	return true;
}

static void draw_end(struct end *e)
{
	const uint32_t fate = below(e, 8);

	e->config = (struct sdp_config){.slots = (uint16_t)(SDP_SLOTS_MIN + below(e, 10)),
					.rcv_bytes = SDP_RCV_BYTES_MIN + below(e, 1000),
					.rcv_max = below(e, 4) ? RCV_MAX : 0,
					.send_bytes = RCV_MAX,
					.max_adverts = (uint8_t)(1 + below(e, SDP_ADVERTS_MAX)),
					.advert_bytes = below(e, 3) ? 3000 : 0,
					.pipelines = below(e, 2)};
	e->total = below(e, 4) ? below(e, STREAM) : 0;
	e->fate = fate == 0 ? ABORTS : fate == 1 ? CLOSES : FLOWS;
	e->fate_at = below(e, (uint32_t)e->total + 1);
	e->lends = below(e, 2);
	e->moves = below(e, 2);
	e->written = e->sent = e->got = 0;
	e->shut = e->dead = false;
	for (uint64_t i = 0; i < STREAM; i++)
		e->memory->stream[i] = byte_of(e, i);
}

static void begin_round(struct sdps *all)
{
	all->round++;
	for (int i = 0; i < 2; i++) {
		close_qp(&all->end[i]);
		draw_end(&all->end[i]);
	}
	all->open = connect_ends(all, &all->end[0]);
	all->excused = !faultless(all);
}

/* --- the end --- */

static bool has_taken_all(struct end *e)
{
	return !sdp_rx_head(&e->sdp) && !e->reading && e->bounce_at == e->bounce_bytes;
}

static bool is_gone(struct end *e)
{
	return e->dead || (e->sdp.state == SDP_ENDED && has_taken_all(e));
}

static bool is_orderly(const struct sdps *all)
{
	return !all->excused && all->end[0].fate == FLOWS && all->end[1].fate == FLOWS;
}

/* An end that is CLOSED has got all, and knows that the peer has; only its own acknowledgement may be lost. */
static void judge(struct end *e)
{
	const enum sdp_end mine = e->sdp.end, peers = e->peer->sdp.end;

	if (e->dead)
		return;
	if (mine == SDP_BROKEN)
		fail(e, "the protocol was violated");
	if (mine == SDP_CLOSED && !e->sdp.rx_shut && (e->got != e->peer->written || e->peer->written != e->peer->sent))
		fail(e, "it was closed in order, and something is missing");
	if (is_orderly(e->all) && mine != SDP_CLOSED)
		fail(e, "nobody wanted to reset it");
	if (mine == SDP_RESET && !e->peer->sdp.abort_sent)
		fail(e, "it was reset by nobody");
	if (mine == SDP_LOST && !e->all->excused && peers != SDP_ABORTED && peers != SDP_CLOSED)
		fail(e, "it was lost, though nothing was");
}

static void count_end(const struct end *e)
{
	struct sim_result *r = e->all->sim->result;

	sim_note(e->all->sim, e->sdp.end, e->got);
	r->sdp_bytes += e->got;
	r->sdp_closed += e->sdp.end == SDP_CLOSED;
	r->sdp_lost += e->sdp.end == SDP_LOST;
}

static void end_round(struct sdps *all)
{
	for (int i = 0; i < 2; i++) {
		judge(&all->end[i]);
		count_end(&all->end[i]);
		close_qp(&all->end[i]);
	}
	all->open = false;
	all->rounds_left -= all->rounds_left > 0;
}

/* The queue pair goes with its end; the peer hears of that later, when it has looked at what came before. */
static void spread_end(struct end *e)
{
	if (!is_gone(e->peer))
		return;
	close_qp(e->peer);
	if (is_gone(e) || e->sdp.state == SDP_ENDED)
		return;
	if (!e->told_in)
		e->told_in = 2 + below(e, 20);
	if (--e->told_in > 1)
		return;
	poll(e);
	sdp_disconnected(&e->sdp);
	sdp_not_resumed(&e->sdp);
}

static bool has_left(struct end *e)
{
	return !e->dead && e->sdp.state == SDP_SUSPENDED &&
	       (has_taken_all(e) || (e->sdp.rx_shut && !e->reading));
}

static void move(struct sdps *all)
{
	struct end *follower = &all->end[all->end[1].sdp.susp_received];

	if (!has_left(&all->end[0]) || !has_left(&all->end[1]))
		return;
	for (int i = 0; i < 2; i++) {
		struct end *e = &all->end[i];

		if (e->sent != e->peer->got && !e->peer->sdp.rx_shut)
			fail(e, "what it has sent is not what the peer has got, and the stream moves");
		close_qp(e);
	}
	all->sim->result->sdp_moves++;
	if (!connect_ends(all, follower)) {
		all->end[0].dead = all->end[1].dead = true;
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct end *e = &all->end[i];

		if (e->shut && e->fate == CLOSES)
			sdp_close(&e->sdp);
		else if (e->shut)
			sdp_shutdown(&e->sdp);
	}
}

static void die(struct end *e)
{
	e->dead = true;
	close_qp(e);
}

/* --- turns --- */

static void act(struct end *e)
{
	if (e->dead)
		return;
	switch (below(e, 8)) {
	case 0:
		write_some(e);
		break;
	case 1:
	case 2:
	case 3:
		send_message(e);
		break;
	case 4:
	case 5:
		if (!e->sdp.rx_shut || e->sdp.state == SDP_ENDED)
			take(e);
		break;
	case 6:
		post_some(e);
		break;
	default:
		change_something(e);
	}
	if (!faultless(e->all) && rng_chance(&e->all->rng, 1) && rng_chance(&e->all->rng, 10))
		die(e);
}

static void take_turn(struct rt_timer *timer)
{
	struct sdps *all = container_of(timer, struct sdps, timer);
	uint64_t ns = all->sim->calm ? CALM_NS : all->sim->plan->window_ns / 100;

	if (!all->open && (all->rounds_left || !all->sim->calm))
		begin_round(all);
	for (int i = 0; all->open && i < ACTIONS; i++) {
		struct end *e = &all->end[below(&all->end[0], 2)];

		poll(e);
		act(e);
	}
	if (all->open) {
		spread_end(&all->end[0]);
		spread_end(&all->end[1]);
		move(all);
		if (is_gone(&all->end[0]) && is_gone(&all->end[1]))
			end_round(all);
	}
	rt_timer_arm(timer, mono_add(rt_now(all->sim->rt), 1 + rng_next(&all->rng) % ns));
}

/* --- life --- */

static void make_end(struct sdps *all, int i, int node)
{
	struct end *e = &all->end[i];
	struct ib_phys_buf buffer = {.size = sizeof(struct memory)};
	u64 start;

	e->all = all;
	e->peer = &all->end[!i];
	e->node = node;
	e->memory = calloc(1, sizeof(*e->memory));
	e->pd = ib_alloc_pd(ib_device_get_by_name(all->sim->rt, all->sim->topo->node[node].name, "softib0"), 0);
	e->cq = ib_alloc_cq(e->pd->device, NULL, 256, 0, IB_POLL_DIRECT);
	buffer.addr = start = (uintptr_t)e->memory;
	e->mr = ib_reg_phys_mr(e->pd, &buffer, 1,
			       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ, &start);
	if (!e->memory || IS_ERR(e->cq) || IS_ERR(e->mr))
		sim_fail(all->sim, ORACLE_RECOVERY, "an end of SDP cannot be made");
}

void sdps_start(struct sim *sim)
{
	int num = 0;

	if (!sim->plan->sdp)
		return;
	sdps = calloc(1, sizeof(*sdps));
	sdps->sim = sim;
	sdps->rng.state = sim->plan->seed ^ 0x534450;
	sdps->rounds_left = ROUNDS;
	for (int n = 0; n < sim->topo->num_nodes && num < 2; n++)
		if (sim->hca[n])
			make_end(sdps, num++, n);
	rt_timer_init(sim->rt, &sdps->timer, take_turn);
	take_turn(&sdps->timer);
}

void sdps_begin_calm(struct sim *sim)
{
	if (sdps)
		sdps->rounds_left += ROUNDS_CALM;
}

bool sdps_done(struct sim *sim)
{
	return !sdps || (!sdps->rounds_left && !sdps->open);
}

void sdps_stop(struct sim *sim)
{
	if (!sdps)
		return;
	rt_timer_disarm(&sdps->timer);
	for (int i = 0; i < 2; i++) {
		struct end *e = &sdps->end[i];

		close_qp(e);
		ib_dereg_mr(e->mr);
		ib_free_cq(e->cq);
		ib_dealloc_pd(e->pd);
		free(e->memory);
	}
	free(sdps);
	sdps = NULL;
}
