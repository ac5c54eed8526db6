/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UC and UD: what arrives is whole and in order. */
#include "litmus.h"

#define DATAGRAM 1024
#define LOSSY_WINDOW 32
#define GRH 40

struct lossy {
	uint64_t sent, under_way, next; /* of the peer's: at least this */
	uint64_t posted;		/* receives */
	size_t slot_bytes;
};

static void lossy_receive(struct actor *a, struct lossy *l)
{
	post_recv(&a->q, l->posted << 1 | 1, a->base + (l->posted % LOSSY_WINDOW) * l->slot_bytes,
		  (uint32_t)l->slot_bytes);
	l->posted++;
}

static void lossy_send(struct actor *a, struct lossy *l)
{
	bool ud = a->script->options.type == IBV_QPT_UD;
	uint32_t most = ud ? DATAGRAM : SLOT_BYTES, bytes = (8 + rng_below(&a->rng, most - 7)) & ~7u;
	size_t at = FROM + (l->sent % LOSSY_WINDOW) * l->slot_bytes;
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, IBV_WR_SEND, l->sent << 1, a->base + at, bytes);

	l->sent++;
	for (uint32_t i = 0; i < bytes; i += 8)
		*word(a, at + i) = l->sent;
	post(&a->q, &wr);
	l->under_way++;
}

static void lossy_message(struct actor *a, struct lossy *l, const struct ibv_wc *wc)
{
	uint64_t n = wc->wr_id >> 1, value;
	uint32_t from = a->script->options.type == IBV_QPT_UD ? GRH : 0;
	size_t at = (n % LOSSY_WINDOW) * l->slot_bytes;

	value = *word(a, at + from);
	if (value <= l->next || n + LOSSY_WINDOW != l->posted)
		fail("%s: message %lu after %lu, in receive %lu of %lu", a->script->name,
		     (unsigned long)value, (unsigned long)l->next, (unsigned long)n,
		     (unsigned long)l->posted);
	for (uint32_t i = from; i < wc->byte_len; i += 8)
		if (*word(a, at + i) != value)
			fail("%s: message %lu is torn at %u of %u", a->script->name,
			     (unsigned long)value, i, wc->byte_len);
	atomic_fetch_add(&shared->lost, value - l->next - 1);
	l->next = value;
	lossy_receive(a, l);
	count(a);
}

static void lossy_take(struct actor *a, struct lossy *l)
{
	struct ibv_wc wc;

	while (poll_one(&a->q, &wc)) {
		if (wc.status)
			fail("%s: %s", a->script->name, ibv_wc_status_str(wc.status));
		if (wc.wr_id & 1) {
			lossy_message(a, l, &wc);
			continue;
		}
		if (wc.wr_id >> 1 != l->sent - l->under_way)
			fail("%s: request %lu completes out of turn", a->script->name,
			     (unsigned long)(wc.wr_id >> 1));
		l->under_way--;
	}
}

void lossy(struct actor *a)
{
	struct lossy l = {.slot_bytes = SLOT_BYTES + 64};
	uint64_t since;

	for (int i = 0; i < LOSSY_WINDOW; i++)
		lossy_receive(a, &l);
	part(a);
	while (!over()) {
		if (l.under_way < LOSSY_WINDOW && rng_below(&a->rng, 4))
			lossy_send(a, &l);
		else
			lossy_take(a, &l);
	}
	for (since = now_ns(); l.under_way; must_hurry(a, since, "a request is under way"))
		lossy_take(a, &l);
	part(a);
}
