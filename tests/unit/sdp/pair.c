/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The shell of both ends, the wire, and the oracles: see pair.h. */
#include "../test.h"

#include "pair.h"

#define STEPS_MAX 2000000

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
	assert_false(e->slot_posted[slot]);
	e->unposted[e->num_unposted++] = slot;
}

static bool can_take(const struct pair *p, struct pair_end *e)
{
	const struct sdp_item *head = sdp_rx_head(&e->sdp);

	return !p->stalled && !e->sdp.rx_shut && (e->bounce || (head && !e->reading));
}

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
	} else if (head->bytes) {
		take_slot_bytes(p, e, head);
	} else {
		e->read_bytes = 1 + (uint32_t)pair_random(p, head->left);
		e->read_key = head->rkey;
		e->reading = true;
		sdp_rx_reading(&e->sdp, e->read_bytes);
		assert_true(head->address ==
			    head->rkey * 100000ull + PAIR_REGION_BYTES - head->left);
	}
}

/* An RDMA READ completes: the peer's memory must be what it was. */
static void complete_read(struct pair *p, struct pair_end *e)
{
	e->reading = false;
	if (e->sdp.state != SDP_OPEN)
		return;
	assert_int_equal(e->read_key, e->peer->region_key);
	assert_true(e->peer->region_bytes >= e->read_bytes);
	e->bounce = e->read_bytes;
	sdp_rx_read(&e->sdp);
}

/* --- the wire --- */

static void arrive(struct pair *p, struct pair_end *e)
{
	const struct pair_message *m = &e->queue[e->head];
	struct sdp_input input;
	uint16_t slot = 0;

	while (slot < e->plan.config.slots && !e->slot_posted[slot])
		slot++;
	if (slot == e->plan.config.slots)
		fail_msg("a message arrived without a receive buffer");
	e->slot_posted[slot] = false;
	memcpy(e->slots[slot], m->bytes, m->len);
	e->head = (e->head + 1) % PAIR_MESSAGES_MAX;
	e->num--;
	assert_int_equal(sdp_received(&e->sdp, slot, e->slots[slot], m->len, &input), 0);
	if (!input.holds_slot)
		free_slot(e, slot);
	e->sent += input.taken;
	assert_true(input.taken <= e->region_bytes);
	e->region_bytes -= input.taken;
	e->peer->unacked++; /* its completion may come */
}

static void post(struct pair *p, struct pair_end *e)
{
	unsigned int i = (unsigned int)pair_random(p, e->num_unposted);

	e->slot_posted[e->unposted[i]] = true;
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
	if (!e->sdp.advert.left && e->plan.config.advert_bytes && !e->region_bytes &&
	    offer.bytes >= PAIR_REGION_BYTES) {
		e->region_bytes = PAIR_REGION_BYTES;
		e->region_key = ++p->next_key;
	}
	offer.region_bytes = e->region_bytes;
	offer.rkey = (uint32_t)e->region_key;
	offer.address = e->region_key * 100000 + PAIR_REGION_BYTES - e->region_bytes;
	return offer;
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
	assert_true(m->len <= e->peer->plan.config.rcv_bytes);
	for (uint32_t i = 0; i < msg.payload_bytes; i++)
		m->bytes[at + (int)i] = byte_of(p, e, e->sent + i);
	e->sent += msg.payload_bytes;
	e->region_bytes -= MIN(e->region_bytes, msg.payload_bytes);
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
		if (e->sdp.advert.left && !e->sdp.advert.cancel &&
		    !e->sdp.advert.cancel_sent && !pair_random(p, 16)) {
			sdp_cancel_advert(&e->sdp);
			return true;
		}
		return false;
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
			p->end[0].ended = p->end[1].ended = true;
		}
		idle = step_end(p, &p->end[pair_random(p, 2)]) ? 0 : idle + 1;
		spread_end(p);
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
	assert_true(plan->config.rcv_bytes <= PAIR_RCV_MAX);
	assert_int_equal(sdp_init(&e->sdp, &plan->config), 0);
	for (unsigned int s = 0; s < plan->config.slots; s++)
		e->slot_posted[s] = true;
}

void pair_open(struct pair *p, const struct pair_plan plan[2], uint64_t seed,
	       uint64_t dead_at)
{
	struct sdp_address address = {.src_port = 7}, seen;
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];

	*p = (struct pair){.random = seed * 0x9e3779b97f4a7c15ull + 1,
			   .dead_at = dead_at};
	open_end(p, 0, &plan[0]);
	open_end(p, 1, &plan[1]);
	sdp_hello(&p->end[0].sdp, &address, hello);
	assert_int_equal(sdp_accept(&p->end[1].sdp, hello, sizeof(hello), &seen, ack), 0);
	assert_int_equal(sdp_accepted(&p->end[0].sdp, ack, sizeof(ack)), 0);
}

void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		free(p->end[i].queue);
		free(p->end[i].slots);
	}
}
