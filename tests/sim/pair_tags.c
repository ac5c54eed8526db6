/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tag matching: the QP of each end has an SRQ with a list of tagged buffers. The peer sends eager
 * messages, rendezvous requests, and messages without a tag; the end adds buffers, some with masks,
 * deletes some, and says how many unexpected messages it has handled, sometimes late. What is
 * unexpected and asks for a rendezvous is fetched by a READ, and finished by a message, as MPI
 * libraries do it.
 *
 * What is verified (oracle "tags"): a message goes into the oldest buffer of the list that matches
 * and is enabled, and into the ring if there is none; a buffer that was added before all unexpected
 * messages were handled is not enabled before a SYNC; one that was deleted takes nothing. Messages
 * are taken in the order in which they were sent, each once, with their bytes, and each rendezvous
 * is finished once, after its payload has arrived.
 */
#include <infiniband/tm_types.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define TAGS	 5
#define BUFFERS	 12 /* of a list, at most */
#define BUFFER	 2048u
#define MESSAGES 128 /* that are on their way at most, by a power of two more than there are */
#define EXPORTS	 3   /* rendezvous under way: the rest of a send queue has room for their ends */

enum verb { MESSAGE, FETCH, FINISH };
enum receipt { BY_RING, BY_OP, BY_BUFFER }; /* bits 32 and 33 of wr_id */

struct message {
	uint8_t opcode; /* enum ibv_tmh_op */
	uint32_t tag, bytes, export;
	uint64_t value, when;
};

/** struct tagged - a buffer, by its place */
struct tagged {
	bool listed;   /* neither taken nor deleted, as far as completions told */
	bool added;    /* the completion of that has come */
	bool enabled, deleting;
	bool fetching; /* a rendezvous: the request has been matched, its payload is to come */
	uint64_t serial, tag, mask, enabled_at;
	uint32_t handle, told; /* how many unexpected messages were told of with it */
	struct message message; /* that is fetched */
};

struct own {
	struct ib_srq *srq;
	uint32_t srq_handle;
	struct region ring, buffers, exports;
	uint32_t rq_head, rq_tail;
	struct tagged tagged[BUFFERS];
	uint64_t serial, clock; /* of the list; of all that is posted at both ends */
	uint32_t unexpected, handled; /* completions of unexpected messages; those to tell of */
	uint32_t told;		      /* by the last SYNC */
	/* --- as a sender --- */
	struct message sent[MESSAGES];
	uint32_t num_sent, num_taken; /* taken by the peer */
	bool exported[EXPORTS];
	bool arrived[EXPORTS]; /* its payload is at the peer */
};

static struct own *own_of(const struct pair_end *e)
{
	return e->own;
}

_Noreturn static void wrong(const struct pair_end *e, const char *what, uint64_t tag)
{
	sim_fail(e->pair->sim, ORACLE_TAGS, "pair %d.%d: tag %llu: %s", e->pair->index, e->side,
		 (unsigned long long)tag, what);
}

/* --- objects --- */

static void *make_srq(struct ib_uobject *u, void *arg)
{
	const struct pair_end *e = arg;
	struct ib_srq_init_attr attr = {.attr = {.max_wr = 2 * PAIR_RQ, .max_sge = 1}};

	return ib_create_srq_user(u, e->program->pd, &attr);
}

static void post_recv(struct pair_end *e)
{
	struct own *own = own_of(e);
	uint32_t slot = own->rq_tail % (2 * PAIR_RQ);
	struct ibv_sge sge = {own->ring.iova + slot * PAIR_SLOT, PAIR_SLOT, own->ring.key};
	struct ibv_recv_wr wr = {.wr_id = pair_recv_id(e, own->rq_tail++), .sg_list = &sge, .num_sge = 1},
			   *bad;

	if (eng_srq_post_recv(e->srq, &wr, &bad))
		wrong(e, "a receive was refused", 0);
}

static int make(struct pair_end *e)
{
	struct own *own = e->own = calloc(1, sizeof(*own));
	struct program *p = e->program;
	int ret = region_make(p, &own->ring, 2 * PAIR_RQ * PAIR_SLOT, IBV_ACCESS_LOCAL_WRITE);

	ret = ret ?: region_make(p, &own->buffers, BUFFERS * BUFFER, IBV_ACCESS_LOCAL_WRITE);
	ret = ret ?: region_make(p, &own->exports, EXPORTS * BUFFER, IBV_ACCESS_REMOTE_READ);
	if (ret)
		return ret;
	own->srq = program_object(p, IB_UOBJECT_SRQ, &own->srq_handle, make_srq, e);
	if (!own->srq)
		return -ENOMEM;
	e->ib_srq = own->srq;
	ret = eng_srq_create(p->soft.engine, 1, 2 * PAIR_RQ, 1, 0, NULL, &e->srq);
	ret = ret ?: eng_srq_match_tags(e->srq, p->eng_cq, BUFFERS);
	for (uint32_t i = 0; i < 2 * PAIR_RQ && !ret; i++)
		post_recv(e);
	return ret;
}

static void free_own(struct pair_end *e)
{
	struct own *own = own_of(e);

	if (!own)
		return;
	if (e->program->alive && e->srq)
		eng_srq_destroy(e->srq);
	if (e->program->alive && own->srq)
		ib_uobject_destroy(e->program->context, IB_UOBJECT_SRQ, own->srq_handle);
	e->srq = NULL;
	e->ib_srq = NULL;
	region_free(e->program, &own->ring);
	region_free(e->program, &own->buffers);
	region_free(e->program, &own->exports);
	free(own);
	e->own = NULL;
}

/* --- the list --- */

static uint64_t tick(const struct pair_end *e)
{
	struct own *first = own_of(&e->pair->end[0]);

	return first ? ++first->clock : 0;
}

static int operate(struct pair_end *e, struct ibv_ops_wr *wr, uint32_t i)
{
	wr->wr_id = pair_recv_id(e, i | (uint32_t)wr->opcode << 8) | (uint64_t)BY_OP << 32;
	wr->flags = IBV_OPS_SIGNALED;
	wr->tm.unexpected_cnt = own_of(e)->handled;
	return eng_srq_post_ops(e->srq, wr, NULL);
}

static void add(struct pair_end *e, uint32_t i)
{
	static const uint64_t masks[] = {0, ~1ull};
	struct own *own = own_of(e);
	struct tagged *t = &own->tagged[i];
	struct ibv_sge sge = {own->buffers.iova + i * BUFFER, BUFFER, own->buffers.key};
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};

	if (t->listed || t->fetching)
		return;
	*t = (struct tagged){.listed = true, .serial = ++own->serial,
			     .tag = rng_below(&e->rng, TAGS), .mask = UINT64_MAX,
			     .told = own->handled};
	if (rng_chance(&e->rng, 25))
		t->mask = masks[rng_below(&e->rng, 2)];
	wr.tm.add.recv_wr_id = pair_recv_id(e, i) | (uint64_t)BY_BUFFER << 32;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = t->tag;
	wr.tm.add.mask = t->mask;
	if (operate(e, &wr, i))
		t->listed = false; /* no memory, or one that is taken has not been told of */
	t->handle = wr.tm.handle;
}

static void delete(struct pair_end *e, uint32_t i)
{
	struct tagged *t = &own_of(e)->tagged[i];
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL, .tm.handle = t->handle};

	if (t->listed && !t->deleting && !operate(e, &wr, i))
		t->deleting = true;
}

static void synchronize(struct pair_end *e)
{
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC};

	own_of(e)->told = own_of(e)->handled = own_of(e)->unexpected;
	operate(e, &wr, 0);
}

/* an operation completed: the flag says whether the list is in step with the program */
static void operated(struct pair_end *e, const struct ibv_wc *wc)
{
	struct own *own = own_of(e);
	uint32_t i = (uint32_t)wc->wr_id & 0xff;
	enum ibv_ops_wr_opcode opcode = (enum ibv_ops_wr_opcode)(wc->wr_id >> 8 & 0xff);
	const struct own *peer = own_of(pair_peer(e));
	struct tagged *t = &own->tagged[i];
	bool in_step = !(wc->wc_flags & IBV_WC_TM_SYNC_REQ);

	if (wc->status != IBV_WC_SUCCESS &&
	    (wc->status != IBV_WC_TM_ERR || opcode != IBV_WR_TAG_DEL))
		wrong(e, "an operation on the list failed", t->tag);
	if (opcode == IBV_WR_TAG_DEL) {
		t->deleting = false;
		/* else it was taken first, or is being filled */
		if (wc->status == IBV_WC_SUCCESS)
			t->listed = false;
	}
	t->added |= opcode == IBV_WR_TAG_ADD;
	if (!in_step) {
		/* of a message under way the list knows more */
		if (opcode == IBV_WR_TAG_SYNC && own->told == own->unexpected && peer &&
		    peer->num_sent == peer->num_taken)
			wrong(e, "all was told, and the list is not in step", 0);
		return;
	}
	if (opcode == IBV_WR_TAG_ADD && t->told != own->unexpected)
		wrong(e, "the list is in step, and unexpected messages were not told of", t->tag);
	for (i = 0; i < BUFFERS; i++) {
		if (own->tagged[i].listed && !own->tagged[i].enabled && own->tagged[i].added) {
			own->tagged[i].enabled = true;
			own->tagged[i].enabled_at = tick(e);
		}
	}
}

/* --- sending --- */

static void send_message(struct pair_end *e)
{
	struct own *own = own_of(e);
	struct message m = {.opcode = IBV_TMH_EAGER, .tag = rng_below(&e->rng, TAGS),
			    .bytes = 1 + rng_below(&e->rng, PAIR_SLOT - (uint32_t)sizeof(struct ibv_tmh) - 1),
			    .value = rng_next(&e->rng) >> 8, .when = tick(e)};
	uint32_t what = rng_below(&e->rng, 10);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	uint8_t *slot = pair_slot(e, e->sq_tail);
	struct ibv_tmh tmh = {.app_ctx = htobe32((uint32_t)m.value), .tag = htobe64(m.tag)};
	struct ibv_rvh rvh;
	uint32_t length;

	if (own->num_sent - own->num_taken >= MESSAGES)
		return;
	m.export = rng_below(&e->rng, EXPORTS);
	if (what == 0)
		m.opcode = IBV_TMH_NO_TAG;
	else if (what < 4 && !own->exported[m.export])
		m.opcode = IBV_TMH_RNDV;
	tmh.opcode = m.opcode;
	length = (uint32_t)sizeof(tmh) + m.bytes;
	pair_fill(slot + sizeof(tmh), m.bytes, m.value);
	if (m.opcode == IBV_TMH_RNDV) {
		m.bytes = 1 + rng_below(&e->rng, BUFFER);
		own->exported[m.export] = true;
		own->arrived[m.export] = false;
		tmh.app_ctx = htobe32(m.export);
		pair_fill(own->exports.bytes + (size_t)m.export * BUFFER, m.bytes, m.value);
		rvh = (struct ibv_rvh){.va = htobe64(own->exports.iova + m.export * BUFFER),
				       .rkey = htobe32(own->exports.key),
				       .len = htobe32(m.bytes)};
		memcpy(slot + sizeof(tmh), &rvh, sizeof(rvh));
		length = sizeof(tmh) + sizeof(rvh);
	}
	memcpy(slot, &tmh, sizeof(tmh));
	own->sent[own->num_sent++ % MESSAGES] = m;
	pair_post(e, &wr, (struct pair_request){.verb = MESSAGE, .bytes = length,
						.fenced = rng_chance(&e->rng, 10)});
}

static void act(struct pair_end *e)
{
	uint32_t what = rng_below(&e->rng, 100), i = rng_below(&e->rng, BUFFERS);

	if (!own_of(pair_peer(e)))
		return;
	if (what < 35)
		add(e, i);
	else if (what < 40)
		delete(e, i);
	else if (what < 50)
		synchronize(e);
	else
		send_message(e);
}

/* --- receiving --- */

static bool fits(const struct tagged *t, uint64_t tag)
{
	return !((t->tag ^ tag) & t->mask);
}

/* the message that has to be taken next */
static struct message *next_message(const struct pair_end *e)
{
	struct own *peer = own_of(pair_peer(e));

	if (!peer || peer->num_taken == peer->num_sent)
		wrong(e, "a message came that nobody sent, or again", 0);
	return &peer->sent[peer->num_taken++ % MESSAGES];
}

static void check_bytes(const struct pair_end *e, const struct message *m, const uint8_t *bytes)
{
	uint8_t want[BUFFER];

	pair_fill(want, m->bytes, m->value);
	if (memcmp(bytes, want, m->bytes))
		wrong(e, "a message has other bytes", m->tag);
}

/* the payload of a rendezvous is in the buffer @t */
static void fetched(struct pair_end *e, struct tagged *t, const struct ibv_wc *wc)
{
	struct own *peer = own_of(pair_peer(e));

	if (wc->byte_len != t->message.bytes)
		wrong(e, "a rendezvous has another length", t->message.tag);
	check_bytes(e, &t->message, own_of(e)->buffers.bytes + (size_t)(t - own_of(e)->tagged) * BUFFER);
	t->fetching = false;
	if (peer)
		peer->arrived[t->message.export] = true;
}

static void matched(struct pair_end *e, const struct ibv_wc *wc)
{
	struct own *own = own_of(e);
	struct tagged *t = &own->tagged[(uint32_t)wc->wr_id % BUFFERS];
	struct ibv_wc_tm_info info;
	const struct message *m;

	if (t->fetching) {
		fetched(e, t, wc);
		return;
	}
	m = next_message(e);
	eng_wc_tm_info(wc, &info);
	if (!t->listed || !t->enabled || !fits(t, m->tag) || info.tag != m->tag)
		wrong(e, "it went into a buffer that is not in the list, not enabled, or of another tag",
		      m->tag);
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (own->tagged[i].listed && own->tagged[i].enabled && !own->tagged[i].deleting &&
		    own->tagged[i].serial < t->serial && fits(&own->tagged[i], m->tag))
			wrong(e, "an older buffer matched, too", m->tag);
	t->listed = false;
	if (m->opcode == IBV_TMH_RNDV) {
		t->fetching = true;
		t->message = *m;
		return;
	}
	if (m->opcode != IBV_TMH_EAGER || wc->byte_len != m->bytes || info.priv != (uint32_t)m->value)
		wrong(e, "another message was matched than was next", m->tag);
	check_bytes(e, m, own->buffers.bytes + (size_t)(t - own->tagged) * BUFFER);
}

/* A rendezvous is over at its sender. Its peer's program has checked the payload, or will: the
 * message may overtake the completion. */
static void finished(struct pair_end *e, const struct ibv_tmh *tmh)
{
	uint32_t export = be32toh(tmh->app_ctx);

	if (export >= EXPORTS || !own_of(e)->exported[export])
		wrong(e, "a rendezvous was finished that was not under way", be64toh(tmh->tag));
	own_of(e)->exported[export] = false;
}

/* what the program does for an unexpected rendezvous: the payload, then the message */
static void fetch(struct pair_end *e, const struct message *m)
{
	struct own *peer = own_of(pair_peer(e));
	struct ibv_tmh tmh = {.opcode = IBV_TMH_FIN, .app_ctx = htobe32(m->export), .tag = htobe64(m->tag)};
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ}, fin = {.opcode = IBV_WR_SEND};
	uint32_t bytes = MIN(m->bytes, PAIR_SLOT);

	read.wr.rdma.remote_addr = peer->exports.iova + m->export * BUFFER;
	read.wr.rdma.rkey = peer->exports.key;
	memset(pair_slot(e, e->sq_tail), PAIR_UNREAD, bytes);
	pair_post(e, &read, (struct pair_request){.verb = FETCH, .bytes = bytes, .value = m->value});
	memcpy(pair_slot(e, e->sq_tail), &tmh, sizeof(tmh));
	pair_post(e, &fin, (struct pair_request){.verb = FINISH, .bytes = sizeof(tmh), .fenced = true});
}

static void unexpected(struct pair_end *e, const struct message *m, const uint8_t *bytes)
{
	struct own *own = own_of(e);

	own->unexpected++;
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (own->tagged[i].listed && own->tagged[i].enabled && !own->tagged[i].deleting &&
		    own->tagged[i].enabled_at < m->when && fits(&own->tagged[i], m->tag))
			wrong(e, "it is unexpected, and a buffer matched", m->tag);
	if (m->opcode == IBV_TMH_RNDV)
		fetch(e, m);
	else
		check_bytes(e, m, bytes + sizeof(struct ibv_tmh));
	if (rng_chance(&e->rng, 70))
		own->handled = own->unexpected;
}

static void by_ring(struct pair_end *e, const struct ibv_wc *wc)
{
	struct own *own = own_of(e);
	uint32_t seq = (uint32_t)wc->wr_id;
	const uint8_t *bytes = own->ring.bytes + (size_t)(seq % (2 * PAIR_RQ)) * PAIR_SLOT;
	const struct message *m;
	struct ibv_tmh tmh;

	if (seq != own->rq_head++)
		wrong(e, "receives of the ring complete in another order", 0);
	memcpy(&tmh, bytes, sizeof(tmh));
	if (wc->opcode == IBV_WC_TM_NO_TAG && tmh.opcode == IBV_TMH_FIN) {
		finished(e, &tmh);
	} else {
		m = next_message(e);
		if (tmh.opcode != m->opcode || be64toh(tmh.tag) != m->tag ||
		    (wc->opcode == IBV_WC_TM_NO_TAG) != (m->opcode == IBV_TMH_NO_TAG))
			wrong(e, "another message came than was next", m->tag);
		if (wc->opcode == IBV_WC_TM_RECV)
			unexpected(e, m, bytes);
		else
			check_bytes(e, m, bytes + sizeof(tmh));
	}
	post_recv(e);
}

static void taken(struct pair_end *e, const struct ibv_wc *wc)
{
	enum receipt receipt = (enum receipt)(wc->wr_id >> 32 & 3);

	if (receipt == BY_OP) {
		operated(e, wc);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		if (!e->failed && !e->struck && !pair_peer(e)->failed && e->pair->state == PAIR_UP)
			wrong(e, "a receive failed without cause", 0);
		return;
	}
	(receipt == BY_RING ? by_ring : matched)(e, wc);
}

static void succeeded(struct pair_end *e, const struct pair_request *r)
{
	uint8_t want[PAIR_SLOT];

	if (r->verb != FETCH)
		return;
	pair_fill(want, r->bytes, r->value);
	if (memcmp(want, pair_slot(e, e->sq_head), r->bytes))
		wrong(e, "an unexpected rendezvous has other bytes", 0);
}

static bool may_fail(struct pair_end *e, const struct pair_request *r, enum ibv_wc_status status)
{
	return false;
}

static void look(struct pair_end *e)
{
	if (sim_sabotage(e->pair->sim, ORACLE_TAGS) && own_of(e)->tagged[0].enabled)
		own_of(e)->tagged[0].enabled = false;
}

static bool settled(struct pair_end *e)
{
	const struct own *own = own_of(e);

	for (uint32_t i = 0; i < EXPORTS; i++)
		if (own->exported[i])
			return false;
	return own->num_sent == own->num_taken;
}

const struct pair_ops pair_tags_ops = {
	.make = make,
	.free = free_own,
	.act = act,
	.look = look,
	.succeeded = succeeded,
	.may_fail = may_fail,
	.taken = taken,
	.settled = settled,
};
