/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The shell of both ends, the wire, and the oracles: see pair.h. */
#include "../test.h"

#include "pair.h"

#define STEPS_MAX   2000000
#define CANCELS_MAX 200
#define MOVES_MAX   6

uint64_t pair_random(struct pair *p, uint64_t below)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (p->random >> 16) % below;
}

/* the stream's byte number @at from end @e */
static uint8_t byte_of(const struct pair *p, const struct pair_end *e, uint64_t at)
{
	return (uint8_t)(at * 31 + at / 251 + (e == &p->end[1] ? 77 : 0));
}

/* --- the receiving program --- */

static void deliver(struct pair *p, struct pair_end *e, uint8_t byte)
{
	assert_int_equal(byte, byte_of(p, e->peer, e->got));
	e->got++;
	assert_true(e->got <= e->peer->written);
}

static void free_slot(struct pair_end *e, uint16_t slot)
{
	for (unsigned int i = 0; i < e->num_posted; i++)
		assert_int_not_equal(e->posted[i], slot);
	e->unposted[e->num_unposted++] = slot;
}

static bool can_take(const struct pair *p, struct pair_end *e)
{
	const struct sdp_item *head = sdp_rx_head(&e->sdp);

	return !p->stalled && !e->sdp.rx_shut && (e->bounce || (head && !e->reading));
}

/* --- own sinks --- */

static void drop_sinks(struct pair_end *e, unsigned int from, unsigned int n)
{
	assert_true(from + n <= e->num_sinks);
	e->num_sinks -= n;
	memmove(&e->sink[from], &e->sink[from + n],
		(e->num_sinks - from) * sizeof(*e->sink));
}

static void take_sink_bytes(struct pair *p, struct pair_end *e, struct sdp_item *head)
{
	const uint32_t n = 1 + (uint32_t)pair_random(p, head->bytes);

	assert_true(e->num_written > 0);
	assert_true(e->sink[0].at + head->offset == e->got);
	assert_int_equal(e->sink[0].left, head->offset + head->bytes);
	for (uint32_t i = 0; i < n; i++)
		deliver(p, e, byte_of(p, e->peer, e->sink[0].at + head->offset + i));
	if (sdp_rx_took(&e->sdp, n)) {
		drop_sinks(e, 0, 1);
		e->num_written--;
	}
}

static bool lend(struct pair *p, struct pair_end *e)
{
	const struct sdp_sink sink = {e->plan.sink_bytes, (uint32_t)(p->next_key + 1), 0};

	if (e->num_sinks == ARRAY_SIZE(e->sink) || !sdp_offer_sink(&e->sdp, &sink))
		return false;
	e->sink[e->num_sinks++] = (struct pair_region){.key = ++p->next_key};
	return true;
}

/* The peer's RDMA WRITE: the memory must still be lent. */
static void write_to(struct pair_end *e, const struct sdp_sink *target, uint64_t at, uint32_t n)
{
	unsigned int i = e->num_written;

	while (i < e->num_sinks && (e->sink[i].key != target->rkey || e->sink[i].left))
		i++;
	assert_true(i < e->num_sinks);
	assert_true(n && n <= e->plan.sink_bytes);
	e->sink[i].at = at;
	e->sink[i].left = n;
}

/* --- what arrived --- */

static void take_slot_bytes(struct pair *p, struct pair_end *e, struct sdp_item *head)
{
	const uint32_t n = 1 + (uint32_t)pair_random(p, head->bytes);
	const uint16_t slot = head->slot;
	const bool all = n == head->bytes, oob = head->oob;

	for (uint32_t i = 0; i < n; i++)
		deliver(p, e, e->slots[slot][head->offset + i]);
	if (all && oob) {
		assert_int_equal(e->got, e->peer->plan.oob_at + 1);
		e->oob_got = true;
	}
	if (sdp_rx_took(&e->sdp, n))
		free_slot(e, slot);
}

/* one step of reading */
static void take(struct pair *p, struct pair_end *e)
{
	struct sdp_item *head = sdp_rx_head(&e->sdp);

	if (e->bounce) {
		uint32_t n = 1 + (uint32_t)pair_random(p, e->bounce);

		e->bounce -= n;
		while (n--)
			deliver(p, e, byte_of(p, e->peer, e->got));
	} else if (head->in_sink) {
		take_sink_bytes(p, e, head);
	} else if (head->bytes) {
		take_slot_bytes(p, e, head);
	} else {
		e->read_bytes = 1 + (uint32_t)pair_random(p, head->left);
		e->read_key = head->rkey;
		e->reading = true;
		sdp_rx_reading(&e->sdp, e->read_bytes);
		assert_true(head->address == PAIR_MEMORY + e->got);
	}
}

/* An RDMA READ completes: the peer's memory must be what it was. */
static void complete_read(struct pair *p, struct pair_end *e)
{
	unsigned int i = 0;

	e->reading = false;
	if (e->sdp.state != SDP_OPEN)
		return;
	assert_true(e->peer->num_regions > 0);
	while (i < e->peer->num_regions && e->peer->region[i].key != e->read_key)
		i++;
	assert_true(i < e->peer->num_regions);
	assert_true(e->peer->region[i].at + e->peer->region[i].left >=
		    e->got + e->read_bytes);
	e->bounce = e->read_bytes;
	sdp_rx_read(&e->sdp);
}

/* --- the wire --- */

/* what the peer has done with memory that it was lent, or will not do */
static void take_back(struct pair_end *e, const struct sdp_input *input, bool written)
{
	if (input->taken) {
		assert_true(e->num_regions && input->taken <= e->region[0].left);
		e->region[0].at += input->taken;
		e->region[0].left -= input->taken;
	}
	if (input->returned) {
		assert_true(e->num_regions > 0);
		e->sent = e->region[0].at;
		e->num_regions = 0;
		e->returns++;
	} else if (e->num_regions && !e->region[0].left) {
		e->num_regions--;
		memmove(e->region, e->region + 1, e->num_regions * sizeof(*e->region));
	}
	if (written && e->sdp.state == SDP_OPEN && !e->sdp.rx_shut) {
		e->num_written++;
		e->writes++;
	}
	for (unsigned int i = 0; i < input->sinks_unused; i++)
		assert_int_equal(e->sink[e->num_written + i].left, 0);
	drop_sinks(e, e->num_written, input->sinks_unused);
	e->unused += input->sinks_unused;
}

static void arrive(struct pair *p, struct pair_end *e)
{
	const struct pair_message *m = &e->queue[e->head];
	struct sdp_input input;
	uint16_t slot;

	if (!e->num_posted)
		fail_msg("a message arrived without a receive buffer");
	slot = e->posted[0];
	memmove(e->posted, e->posted + 1, --e->num_posted * sizeof(*e->posted));
	if (m->len > e->slot_bytes[slot])
		fail_msg("%u bytes arrived in a buffer of %u", m->len, e->slot_bytes[slot]);
	memcpy(e->slots[slot], m->bytes, m->len);
	e->head = (e->head + 1) % PAIR_MESSAGES_MAX;
	e->num--;
	p->crossed += m->bytes[0] == WIRE_SDP_SUSP_COMM && e->sdp.susp_sent;
	e->voids += m->bytes[0] == WIRE_SDP_SRC_AVAIL && e->sdp.sinks_out;
	assert_int_equal(sdp_received(&e->sdp, slot, e->slots[slot], m->len, &input), 0);
	if (!input.holds_slot)
		free_slot(e, slot);
	take_back(e, &input, m->bytes[0] == WIRE_SDP_RDMA_WR_COMPL);
	e->peer->unacked++; /* its completion may come */
}

static void post(struct pair *p, struct pair_end *e)
{
	unsigned int i = (unsigned int)pair_random(p, e->num_unposted);
	const uint16_t slot = (uint16_t)e->unposted[i];

	e->grown += e->sdp.slot_bytes > e->slot_bytes[slot];
	e->shrunk += e->sdp.slot_bytes < e->slot_bytes[slot];
	e->slot_bytes[slot] = e->sdp.slot_bytes;
	e->posted[e->num_posted++] = slot;
	e->unposted[i] = e->unposted[--e->num_unposted];
	sdp_posted(&e->sdp);
}

/* --- the sending program --- */

static bool offers_oob(const struct pair_end *e)
{
	return e->plan.oob_at >= e->sent && e->plan.oob_at < e->written;
}

/* what the shell has of the stream: nothing behind an out-of-band byte */
static struct sdp_offer offer_of(struct pair *p, struct pair_end *e)
{
	struct sdp_offer offer = {.bytes = (uint32_t)(e->written - e->sent)};

	if (offers_oob(e)) {
		offer.oob = true;
		offer.bytes = (uint32_t)(e->plan.oob_at + 1 - e->sent);
	}
	if (e->plan.config.advert_bytes && offer.bytes >= e->plan.config.advert_bytes) {
		offer.region_bytes = MIN(offer.bytes, (uint32_t)PAIR_REGION_BYTES);
		offer.rkey = (uint32_t)(p->next_key + 1);
		offer.address = PAIR_MEMORY + e->sent;
	}
	return offer;
}

/* what left the offer with @msg */
static void note_lent(struct pair *p, struct pair_end *e, const struct wire_sdp_msg *msg)
{
	uint32_t n = msg->payload_bytes;

	if (msg->bsdh.mid == WIRE_SDP_SRC_AVAIL) {
		assert_true(e->num_regions < SDP_ADVERTS_MAX);
		n = msg->src.bytes;
		e->region[e->num_regions++] = (struct pair_region){
			++p->next_key, e->sent + msg->payload_bytes, n - msg->payload_bytes};
	} else if (msg->bsdh.mid == WIRE_SDP_RDMA_WR_COMPL) {
		n = msg->count.bytes;
		write_to(e->peer, &e->sdp.target, e->sent, n);
	}
	e->sent += n;
}

/* Return: was there anything to send? */
static bool send(struct pair *p, struct pair_end *e)
{
	const struct sdp_offer offer = offer_of(p, e);
	struct pair_message *m;
	struct wire_sdp_msg msg;
	int at;

	if (!sdp_next(&e->sdp, &offer, &msg))
		return false;
	assert_true(e->peer->num < PAIR_MESSAGES_MAX);
	m = &e->peer->queue[(e->peer->head + e->peer->num++) % PAIR_MESSAGES_MAX];
	at = wire_sdp_write(&msg, m->bytes);
	assert_true(at > 0);
	assert_true(msg.payload_bytes <= offer.bytes);
	m->len = msg.bsdh.len;
	assert_int_equal(m->len, (uint32_t)at + msg.payload_bytes);
	for (uint32_t i = 0; i < msg.payload_bytes; i++)
		m->bytes[at + (int)i] = byte_of(p, e, e->sent + i);
	note_lent(p, e, &msg);
	return true;
}

static bool can_write(const struct pair_end *e)
{
	return !e->shut && e->sdp.state == SDP_OPEN && e->written - e->sent < 20000;
}

static void write_some(struct pair *p, struct pair_end *e)
{
	uint64_t n = 1 + pair_random(p, pair_random(p, 4) ? 300 : 20000);

	e->written += MIN(n, e->plan.bytes - e->written);
	if (e->written >= e->plan.abort_at) {
		sdp_abort(&e->sdp);
		e->shut = true;
	} else if (e->written >= e->plan.close_at) {
		sdp_close(&e->sdp);
		e->shut = true;
	} else if (e->written == e->plan.bytes) {
		sdp_shutdown(&e->sdp);
		e->shut = true;
	}
}

/* --- what happens next --- */

/* memory is lent to the peer, and wanted back; buffers of another size are wanted */
static bool step_memory(struct pair *p, struct pair_end *e)
{
	const bool adverts = e->sdp.num_adverts && !e->sdp.cancel_due && !e->sdp.cancel_sent;
	const bool sinks = e->num_sinks && !e->sdp.sink_cancel_due && !e->sdp.sink_cancel_sent;

	if (e->asks < CANCELS_MAX && !pair_random(p, 16) &&
	    sdp_ask_buffers(&e->sdp, (uint32_t)pair_random(p, 2 * PAIR_RCV_MAX))) {
		e->asks++;
		return true;
	}
	if (e->plan.moves && p->moves < MOVES_MAX && !pair_random(p, 32) && sdp_suspend(&e->sdp, 1))
		return true;
	if (adverts && e->cancels < CANCELS_MAX && !pair_random(p, 16)) {
		e->cancels++;
		sdp_cancel_adverts(&e->sdp);
		return true;
	}
	if (sinks && e->plan.cancels && e->cancels < CANCELS_MAX && !pair_random(p, 16)) {
		uint32_t n = sdp_cancel_sinks(&e->sdp);

		e->cancels++;
		drop_sinks(e, e->num_sinks - n, n);
		return n || e->sdp.sink_cancel_due;
	}
	return e->plan.sink_bytes && lend(p, e);
}

static bool step_end(struct pair *p, struct pair_end *e)
{
	switch (pair_random(p, 8)) {
	case 0:
		if (!can_write(e))
			return false;
		write_some(p, e);
		return true;
	case 1:
	case 2:
		return send(p, e);
	case 3:
		if (!e->num)
			return false;
		arrive(p, e);
		return true;
	case 4:
		if (!can_take(p, e))
			return false;
		take(p, e);
		return true;
	case 5:
		if (!e->num_unposted)
			return false;
		post(p, e);
		return true;
	case 6:
		if (!e->unacked || !e->sdp.tx_unacked)
			return false;
		e->unacked--;
		sdp_sent(&e->sdp);
		return true;
	default:
		if (e->reading) {
			complete_read(p, e);
			return true;
		}
		return step_memory(p, e);
	}
}

/* --- to another connection --- */

/* Each slot is posted again, for the first size. */
static void begin_end(struct pair_end *e)
{
	assert_int_equal(sdp_init(&e->sdp, &e->plan.config), 0);
	e->num_posted = e->num_unposted = e->unacked = 0;
	for (uint16_t s = 0; s < e->plan.config.slots; s++) {
		e->posted[e->num_posted++] = s;
		e->slot_bytes[s] = e->sdp.slot_bytes;
	}
}

static void connect_ends(struct pair_end *active)
{
	struct sdp_address address = {.src_port = 7}, seen;
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];

	sdp_hello(&active->sdp, &address, hello);
	assert_int_equal(sdp_accept(&active->peer->sdp, hello, sizeof(hello), &seen, ack), 0);
	assert_int_equal(sdp_accepted(&active->sdp, ack, sizeof(ack)), 0);
}

/* Has @e left the connection, and has its program got everything that came by it? */
static bool has_left(const struct pair_end *e)
{
	return e->sdp.state == SDP_SUSPENDED && !e->num && !e->sdp.num_items && !e->reading &&
	       (!e->bounce || e->sdp.rx_shut);
}

/* What an end has sent, the other one has; what it has lent is its own again. */
static void leave(struct pair_end *e)
{
	assert_true(e->sent == e->peer->got || e->peer->sdp.rx_shut);
	assert_int_equal(e->num_regions, 0);
	assert_int_equal(e->num_written, 0);
	e->num_sinks = e->bounce = 0;
}

static void move(struct pair *p)
{
	struct pair_end *follower = &p->end[p->end[1].sdp.susp_received];

	if (!has_left(&p->end[0]) || !has_left(&p->end[1]))
		return;
	assert_true(follower->sdp.susp_received && !follower->peer->sdp.susp_received);
	assert_true(follower->sdp.susp_service == follower->peer->sdp.susp_service);
	p->moves++;
	for (int i = 0; i < 2; i++)
		leave(&p->end[i]);
	for (int i = 0; i < 2; i++)
		begin_end(&p->end[i]);
	connect_ends(follower);
	for (int i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i];

		if (e->shut && e->written >= e->plan.close_at)
			sdp_close(&e->sdp);
		else if (e->shut)
			sdp_shutdown(&e->sdp);
	}
}

/* Two shells tell each other by the CM when one has ended. */
static void spread_end(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i], *peer = &p->end[!i];

		if (e->sdp.state != SDP_ENDED || e->ended || peer->num)
			continue; /* the peer drains its completion queue first */
		e->ended = true;
		sdp_disconnected(&peer->sdp);
		sdp_not_resumed(&peer->sdp);
	}
}

void pair_run(struct pair *p)
{
	unsigned int idle = 0;

	/* so many misses in a row: whatever is possible would have happened */
	while (idle < 3000) {
		assert_true(++p->steps < STEPS_MAX);
		if (p->steps == p->dead_at) {
			sdp_lost(&p->end[0].sdp);
			sdp_lost(&p->end[1].sdp);
			sdp_not_resumed(&p->end[0].sdp);
			sdp_not_resumed(&p->end[1].sdp);
			p->end[0].ended = p->end[1].ended = true;
		}
		idle = step_end(p, &p->end[pair_random(p, 2)]) ? 0 : idle + 1;
		spread_end(p);
		move(p);
	}
}

/* --- beginning and end --- */

static void open_end(struct pair *p, int i, const struct pair_plan *plan)
{
	struct pair_end *e = &p->end[i];

	e->plan = *plan;
	e->peer = &p->end[!i];
	e->queue = calloc(PAIR_MESSAGES_MAX, sizeof(*e->queue));
	e->slots = calloc(plan->config.slots, sizeof(*e->slots));
	assert_true(e->queue && e->slots);
	assert_true(plan->config.rcv_bytes <= PAIR_RCV_MAX && plan->config.rcv_max <= PAIR_RCV_MAX);
	begin_end(e);
}

void pair_open(struct pair *p, const struct pair_plan plan[2], uint64_t seed,
	       uint64_t dead_at)
{
	*p = (struct pair){.random = seed * 0x9e3779b97f4a7c15ull + 1,
			   .dead_at = dead_at};
	open_end(p, 0, &plan[0]);
	open_end(p, 1, &plan[1]);
	connect_ends(&p->end[0]);
}

void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		free(p->end[i].queue);
		free(p->end[i].slots);
	}
}
