/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tag matching, as adapters of the ConnectX family offer it to MPI libraries: a shared
 * receive queue with a list of tagged buffers beside its ring of receives. A message to a QP
 * of that SRQ begins with a header (struct ibv_tmh) that names its operation and its tag.
 *
 *   EAGER   The payload, without the header, is stored in the first buffer whose tag matches.
 *   RNDV    The header is followed by the address of the payload in the sender's memory (struct
 *           ibv_rvh). The receiver fetches the payload into the buffer by an RDMA READ and
 *           then sends a FIN message.
 *   NO_TAG, FIN and all others: The whole message is stored in a receive of the ring.
 *
 * An EAGER or RNDV message for which no buffer matches is unexpected: it is stored in a receive
 * of the ring, with its header, and the program matches it by itself. A buffer that the
 * program adds before it has seen such a message could match a later message first, out of
 * order. Therefore each operation on the list carries the number of unexpected messages that the
 * program has handled. A buffer that is added while this number differs from the number of
 * those received matches nothing, until the program posts a SYNC operation with the right
 * number (libibverbs, ibv_post_srq_ops(3)).
 *
 * The READ and the FIN of a rendezvous are requests in the send queue of the QP that received
 * it. They use entries that are reserved for the library (TP_SEND_OWN). They are posted after
 * the packet that caused them was received, and complete in the order of posting.
 */
#include <infiniband/tm_types.h>
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

/** struct listed - a buffer of the list, or an entry that had one and is spare */
struct listed {
	struct list_head found; /* in a place of eng_tags.exact, or in .masked */
	struct listed *spare;	/* the next entry of eng_tags.spare */
	struct eng_buffer buffer;
	uint64_t serial; /* in the order of posting */
	uint32_t handle; /* of the buffer that it has, or had last */
	bool is_listed;
	bool enabled; /* it may match */
};

/*
 * struct eng_tags - the list of tagged buffers of an SRQ
 *
 * A message takes the first buffer of the list that matches. To find it without a walk of the
 * whole list, buffers whose mask has all bits set are in a hash table by their tag; programs with
 * many buffers have mostly these. The others are in a list of their own. Both are searched for
 * their oldest match, and the older of the two is the first match of the whole list.
 *
 * The low bits of a buffer's handle are the index of its entry, and the others count the buffers
 * that the entry has had.
 */
struct eng_tags {
	struct list_head masked; /* buffers whose mask leaves bits out, in the order of posting */
	struct list_head *exact; /* the others, by tag: in each place in this order */
	struct listed *entries;	 /* max of them, of which the first `touched` have been in use */
	struct listed *spare;	 /* of these, the ones without a buffer; the last one used first */
	uint32_t places;	 /* of the table of tags: a power of two, and not less than max */
	uint32_t touched, max;
	uint64_t last_serial;
	uint16_t unexpected; /* messages so far */
	bool in_sync; /* false after a buffer was added before the program had handled all
		       * unexpected messages, until the next SYNC with the right number */
};

/** struct rendezvous - a matched buffer whose payload has to be fetched from the sender */
struct rendezvous {
	struct list_head node; /* eng_matching.waiting or .posted */
	enum { FETCH, FINISH } next;
	struct eng_buffer buffer;
	struct ibv_tmh header; /* of the request */
	uint64_t va;
	uint32_t rkey, length_bytes;
};

/** struct eng_matching - the state of a QP's message in progress and of its rendezvous */
struct eng_matching {
	/* --- the message in progress --- */
	enum { PLAIN, NO_TAG, UNEXPECTED, MATCHED, REQUESTED } message;
	struct ibv_tmh header; /* of MATCHED, REQUESTED */
	/* --- rendezvous --- */
	struct list_head waiting; /* their next request has yet to be posted */
	struct list_head posted;  /* their request is in the send queue; in the same order */
};

/* --- the list of buffers --- */

static void free_tags(struct eng_tags *tags)
{
	rt_free(tags->exact);
	rt_free(tags->entries);
	rt_free(tags);
}

static struct list_head *new_table(uint32_t places)
{
	struct list_head *table = rt_zalloc(places * sizeof(*table));

	for (uint32_t i = 0; table && i < places; i++)
		INIT_LIST_HEAD(&table[i]);
	return table;
}

static struct eng_tags *new_tags(uint32_t max_tags)
{
	struct eng_tags *tags = rt_zalloc(sizeof(*tags));

	if (!tags)
		return NULL;
	tags->places = 1;
	while (tags->places < max_tags)
		tags->places *= 2;
	tags->exact = new_table(tags->places);
	tags->entries = rt_zalloc(max_tags * sizeof(*tags->entries));
	if (!tags->exact || !tags->entries) {
		free_tags(tags);
		return NULL;
	}
	INIT_LIST_HEAD(&tags->masked);
	tags->max = max_tags;
	tags->in_sync = true;
	return tags;
}

int eng_srq_match_tags(struct eng_srq *srq, struct eng_cq *cq, uint32_t max_tags)
{
	struct eng_tags *tags = new_tags(max_tags);

	if (!tags)
		return -ENOMEM;
	eng_lock(srq->engine);
	srq->tags = tags;
	srq->cq = cq;
	cq->users++;
	eng_unlock(srq->engine);
	return 0;
}

static void unlist(struct eng_tags *tags, struct listed *l)
{
	list_del(&l->found);
	l->is_listed = false;
	l->spare = tags->spare; /* taken first, because its lines are in the cache */
	tags->spare = l;
}

/* Return: an entry without a buffer, with a handle for the next one; NULL: the list is full */
static struct listed *take_entry(struct eng_tags *tags)
{
	struct listed *l = tags->spare;

	if (likely(l)) {
		tags->spare = l->spare;
	} else {
		if (tags->touched == tags->max)
			return NULL;
		l = &tags->entries[tags->touched];
		l->handle = tags->touched++;
	}
	l->handle += tags->places;
	return l;
}

void eng_tags_free(struct eng_srq *srq)
{
	if (!srq->tags)
		return;
	free_tags(srq->tags);
	srq->tags = NULL;
	srq->cq->users--;
}

static struct list_head *place_of_tag(const struct eng_tags *tags, uint64_t tag)
{
	return &tags->exact[(tag * 0x9e3779b97f4a7c15u) >> 32 & (tags->places - 1)];
}

static struct listed *first_match(struct list_head *list, uint64_t tag)
{
	struct listed *l;

	list_for_each_entry(l, list, found)
		if (l->enabled && !((l->buffer.tag ^ tag) & l->buffer.mask))
			return l;
	return NULL;
}

/* Return: the buffer that a message with @tag goes into, or NULL */
static struct listed *find_match(struct eng_tags *tags, uint64_t tag)
{
	struct listed *exact = first_match(place_of_tag(tags, tag), tag);
	struct listed *masked = first_match(&tags->masked, tag);

	if (!exact || !masked)
		return exact ? exact : masked;
	return exact->serial < masked->serial ? exact : masked;
}

static struct listed *find_handle(const struct eng_tags *tags, uint32_t handle)
{
	uint32_t index = handle & (tags->places - 1);
	struct listed *l = &tags->entries[index];

	return index < tags->touched && l->is_listed && l->handle == handle ? l : NULL;
}

static void list_buffer(struct eng_tags *tags, struct listed *l)
{
	list_add_tail(&l->found, l->buffer.mask == UINT64_MAX ?
					 place_of_tag(tags, l->buffer.tag) :
					 &tags->masked);
	l->serial = ++tags->last_serial;
	l->is_listed = true;
}

static int add(struct eng_tags *tags, struct ibv_ops_wr *wr)
{
	uint32_t num_sge = (uint32_t)wr->tm.add.num_sge;
	struct listed *l;

	if (num_sge > ENG_TAG_SGES)
		return -EINVAL;
	l = take_entry(tags);
	if (!l)
		return -ENOMEM;
	l->buffer.wr_id = wr->tm.add.recv_wr_id;
	l->buffer.tag = wr->tm.add.tag;
	l->buffer.mask = wr->tm.add.mask;
	l->buffer.num_sge = num_sge;
	l->buffer.sge[0].length_bytes = 0;
	for (uint32_t i = 0; i < num_sge; i++)
		l->buffer.sge[i] = eng_sge(&wr->tm.add.sg_list[i]);
	wr->tm.handle = l->handle;
	if ((uint16_t)wr->tm.unexpected_cnt != tags->unexpected)
		tags->in_sync = false;
	l->enabled = tags->in_sync;
	list_buffer(tags, l);
	return 0;
}

/* If the program reports that it has handled all unexpected messages, enable all buffers. */
static void synchronize(struct eng_tags *tags, const struct ibv_ops_wr *wr)
{
	if (tags->in_sync || (uint16_t)wr->tm.unexpected_cnt != tags->unexpected)
		return;
	tags->in_sync = true;
	for (uint32_t i = 0; i < tags->touched; i++)
		tags->entries[i].enabled = true;
}

/* Return: the status of its completion; IBV_WC_TM_ERR: the buffer is no longer in the list */
static enum ibv_wc_status delete(struct eng_tags *tags, const struct ibv_ops_wr *wr)
{
	struct listed *l = find_handle(tags, wr->tm.handle);

	if (!l)
		return IBV_WC_TM_ERR;
	unlist(tags, l);
	return IBV_WC_SUCCESS;
}

static int post_op(struct eng_srq *srq, struct ibv_ops_wr *wr)
{
	static const enum ibv_wc_opcode opcodes[] = {[IBV_WR_TAG_ADD] = IBV_WC_TM_ADD,
						     [IBV_WR_TAG_DEL] = IBV_WC_TM_DEL,
						     [IBV_WR_TAG_SYNC] = IBV_WC_TM_SYNC};
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	int ret = 0;

	if ((unsigned)wr->opcode >= ARRAY_SIZE(opcodes))
		return -EINVAL;
	if (wr->opcode == IBV_WR_TAG_ADD)
		ret = add(srq->tags, wr);
	else if (wr->opcode == IBV_WR_TAG_DEL)
		status = delete(srq->tags, wr);
	if (ret)
		return ret;
	if (wr->opcode == IBV_WR_TAG_SYNC || wr->flags & IBV_OPS_TM_SYNC)
		synchronize(srq->tags, wr);
	if (wr->flags & IBV_OPS_SIGNALED || status != IBV_WC_SUCCESS)
		eng_cq_push(srq->cq,
			    &(struct ibv_wc){
				    .wr_id = wr->wr_id,
				    .status = status,
				    .opcode = opcodes[wr->opcode],
				    .wc_flags = srq->tags->in_sync ? 0 : IBV_WC_TM_SYNC_REQ,
			    },
			    false);
	return 0;
}

int eng_srq_post_ops(struct eng_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	int ret = srq->tags ? 0 : -EINVAL;

	eng_lock(srq->engine);
	while (wr && !ret) {
		ret = post_op(srq, wr);
		if (!ret)
			wr = wr->next;
	}
	eng_unlock(srq->engine);
	if (ret && bad)
		*bad = wr;
	return ret;
}

/* --- receiving --- */

static bool is_rendezvous(const struct wire_packet *pkt, const struct ibv_tmh *header)
{
	return header->opcode == IBV_TMH_RNDV && wire_opcodes[pkt->bth.opcode].flags & WIRE_IS_LAST &&
	       pkt->payload_bytes >= sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh) &&
	       pkt->payload_bytes <= ENG_RNDV_HEADER_BYTES;
}

/* Take a receive of the ring for a message that has no buffer. */
static bool take_plain(struct eng_qp *qp, int message, struct tp_recv_wr *wr)
{
	wr->skip_bytes = 0;
	if (!eng_srq_take(qp->init.srq, qp, wr))
		return false;
	qp->matching->message = message;
	if (message == UNEXPECTED)
		qp->init.srq->tags->unexpected++;
	return true;
}

static void take_buffer(struct eng_qp *qp, const struct eng_buffer *buffer, struct tp_recv_wr *wr)
{
	memcpy(qp->srq_sge, buffer->sge, sizeof(buffer->sge));
	*wr = (struct tp_recv_wr){.wr_id = buffer->wr_id,
				  .num_sge = buffer->num_sge,
				  .sge = qp->srq_sge,
				  .skip_bytes = sizeof(struct ibv_tmh)};
	qp->matching->message = MATCHED;
}

static uint64_t room_of(const struct eng_buffer *buffer)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < buffer->num_sge; i++)
		bytes += buffer->sge[i].length_bytes;
	return bytes;
}

/* Nothing of the RNDV message itself is stored (skip_bytes). If the buffer is too short for the
 * payload, it completes as a receive that is too short for its message does: skip_bytes is 0
 * then, so that the RNDV message does not fit into the receive, which has no SGE.
 * Return: false: there is no memory, and the sender tries again */
static bool begin_rendezvous(struct eng_qp *qp, const struct eng_buffer *buffer,
			     const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct rendezvous *r = rt_zalloc(sizeof(*r));
	struct ibv_rvh rvh;

	if (!r)
		return false;
	memcpy(&rvh, pkt->payload + sizeof(struct ibv_tmh), sizeof(rvh));
	*r = (struct rendezvous){.buffer = *buffer,
				 .header = qp->matching->header,
				 .va = be64toh(rvh.va),
				 .rkey = be32toh(rvh.rkey),
				 .length_bytes = be32toh(rvh.len)};
	take_buffer(qp, buffer, wr);
	wr->num_sge = 0;
	if (room_of(buffer) < r->length_bytes) {
		wr->skip_bytes = 0;
		rt_free(r);
		return true;
	}
	wr->skip_bytes = pkt->payload_bytes;
	qp->matching->message = REQUESTED;
	list_add_tail(&r->node, &qp->matching->waiting);
	return true;
}

const struct eng_buffer *eng_tag_match(struct eng_qp *qp, const uint8_t *payload, uint32_t len,
				       struct ibv_tmh *header)
{
	struct listed *l;

	if (unlikely(len <= sizeof(*header)))
		return NULL;
	memcpy(header, payload, sizeof(*header));
	if (unlikely(header->opcode != IBV_TMH_EAGER))
		return NULL;
	l = find_match(qp->init.srq->tags, be64toh(header->tag));
	return l ? &l->buffer : NULL;
}

bool eng_tag_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct eng_qp *qp = ctx;
	struct ibv_tmh *header = &qp->matching->header;
	uint32_t flags = wire_opcodes[pkt->bth.opcode].flags;
	struct listed *l;

	/* a message with immediate data or an R_Key to invalidate is not a tagged one */
	if (!(flags & WIRE_IS_SEND) || flags & (WIRE_HAS_IMM | WIRE_HAS_IETH))
		return take_plain(qp, PLAIN, wr);
	if (pkt->payload_bytes < sizeof(*header))
		return take_plain(qp, NO_TAG, wr);
	memcpy(header, pkt->payload, sizeof(*header));
	if (header->opcode != IBV_TMH_EAGER && header->opcode != IBV_TMH_RNDV)
		return take_plain(qp, NO_TAG, wr);
	l = find_match(qp->init.srq->tags, be64toh(header->tag));
	if (!l || (header->opcode == IBV_TMH_RNDV && !is_rendezvous(pkt, header)))
		return take_plain(qp, UNEXPECTED, wr);
	if (header->opcode == IBV_TMH_EAGER)
		take_buffer(qp, &l->buffer, wr);
	else if (!begin_rendezvous(qp, &l->buffer, pkt, wr))
		return false;
	unlist(qp->init.srq->tags, l);
	return true;
}

/** struct tm_fields - a tag and private data in the fields of a completion that are otherwise used
 *  only for UD and for immediate data. eng_wc_tm_info() reads them */
struct tm_fields {
	uint32_t src_qpn, imm;
	uint16_t slid, pkey_index;
};

static struct tm_fields tm_fields_of(const struct ibv_tmh *header)
{
	uint64_t tag = be64toh(header->tag);

	return (struct tm_fields){.src_qpn = (uint32_t)(tag >> 32),
				  .imm = be32toh(header->app_ctx),
				  .slid = (uint16_t)(tag >> 16),
				  .pkey_index = (uint16_t)tag};
}

static void set_tm_info(struct tp_wc *wc, const struct ibv_tmh *header)
{
	struct tm_fields f = tm_fields_of(header);

	wc->src_qpn = f.src_qpn;
	wc->slid = f.slid;
	wc->pkey_index = f.pkey_index;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		wc->imm_or_rkey = f.imm;
}

void eng_wc_tm_info(const struct ibv_wc *wc, struct ibv_wc_tm_info *info)
{
	*info = (struct ibv_wc_tm_info){0};
	if (wc->opcode != IBV_WC_TM_RECV || !(wc->wc_flags & IBV_WC_TM_MATCH))
		return;
	info->tag = (uint64_t)wc->src_qp << 32 | (uint64_t)wc->slid << 16 | wc->pkey_index;
	info->priv = wc->wc_flags & IBV_WC_WITH_IMM ? 0 : be32toh(wc->imm_data);
}

void eng_tag_wc(struct tp_wc *wc)
{
	wc->opcode = IBV_WC_TM_RECV;
	wc->wc_flags |= IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;
}

void eng_tag_matched(struct eng_qp *qp, const struct eng_buffer *buffer,
		     const struct ibv_tmh *header, struct ibv_wc *wc)
{
	struct tm_fields f = tm_fields_of(header);

	wc->src_qp = f.src_qpn;
	wc->slid = f.slid;
	wc->pkey_index = f.pkey_index;
	wc->imm_data = htobe32(f.imm);
	unlist(qp->init.srq->tags, container_of(buffer, struct listed, buffer));
}

void eng_tag_received(struct eng_qp *qp, struct tp_wc *wc)
{
	struct eng_matching *m = qp->matching;

	switch (m->message) {
	case PLAIN:
		break;
	case NO_TAG:
		wc->opcode = IBV_WC_TM_NO_TAG;
		break;
	case UNEXPECTED:
		wc->opcode = IBV_WC_TM_RECV;
		break;
	case MATCHED:
		eng_tag_wc(wc);
		set_tm_info(wc, &m->header);
		break;
	case REQUESTED:
		wc->opcode = IBV_WC_TM_RECV;
		wc->wc_flags |= IBV_WC_TM_MATCH;
		set_tm_info(wc, &m->header);
		break;
	}
	m->message = PLAIN;
}

/* --- rendezvous --- */

int eng_tag_qp_init(struct eng_qp *qp)
{
	qp->matching = rt_zalloc(sizeof(*qp->matching));
	if (!qp->matching)
		return -ENOMEM;
	INIT_LIST_HEAD(&qp->matching->waiting);
	INIT_LIST_HEAD(&qp->matching->posted);
	qp->recv_cq = qp->init.srq->cq;
	return 0;
}

static void forget(struct rendezvous *r)
{
	list_del(&r->node);
	rt_free(r);
}

static void forget_all(struct list_head *list)
{
	while (!list_empty(list))
		forget(list_first_entry(list, struct rendezvous, node));
}

void eng_tag_qp_free(struct eng_qp *qp)
{
	if (!qp->matching)
		return;
	forget_all(&qp->matching->waiting);
	forget_all(&qp->matching->posted);
	rt_free(qp->matching);
	qp->matching = NULL;
}

/* The second completion of a rendezvous reports the outcome of its READ. The tag was reported by the
 * first one. */
static void report_fetched(struct eng_qp *qp, const struct rendezvous *r, enum ibv_wc_status status)
{
	struct tp_wc wc = {.wr_id = r->buffer.wr_id,
			   .status = (uint8_t)status,
			   .opcode = IBV_WC_TM_RECV,
			   .byte_len = r->length_bytes,
			   .wc_flags = IBV_WC_TM_DATA_VALID};

	eng_complete_recv(qp, &wc);
}

void eng_tag_own_done(struct eng_qp *qp, uint8_t status)
{
	struct rendezvous *r =
		list_first_entry(&qp->matching->posted, struct rendezvous, node);
	bool flushed = status == IBV_WC_WR_FLUSH_ERR;

	if (r->next == FETCH)
		report_fetched(qp, r, flushed ? IBV_WC_TM_RNDV_INCOMPLETE : status);
	if (r->next == FINISH || status != IBV_WC_SUCCESS) {
		forget(r);
		return;
	}
	r->next = FINISH;
	list_del(&r->node);
	list_add_tail(&r->node, &qp->matching->waiting);
}

void eng_tag_failed(struct eng_qp *qp)
{
	while (!list_empty(&qp->matching->waiting)) {
		struct rendezvous *r =
			list_first_entry(&qp->matching->waiting, struct rendezvous, node);

		if (r->next == FETCH)
			report_fetched(qp, r, IBV_WC_TM_RNDV_INCOMPLETE);
		forget(r);
	}
}

static int post_fetch(struct eng_qp *qp, const struct rendezvous *r)
{
	struct tp_sge sge[ENG_TAG_SGES];
	uint32_t left = r->length_bytes;
	uint8_t n = 0;

	for (; left && n < r->buffer.num_sge; n++) {
		sge[n] = r->buffer.sge[n];
		sge[n].length_bytes = MIN(sge[n].length_bytes, left);
		left -= sge[n].length_bytes;
	}
	return tp_qp_post_send(qp->tp, &(struct tp_send_wr){
					       .opcode = IBV_WR_RDMA_READ,
					       .flags = IBV_SEND_SIGNALED | TP_SEND_OWN,
					       .num_sge = n,
					       .sge = sge,
					       .length_bytes = r->length_bytes,
					       .remote_addr = r->va,
					       .rkey = r->rkey,
				       });
}

static int post_finish(struct eng_qp *qp, const struct rendezvous *r)
{
	struct ibv_tmh fin = {.opcode = IBV_TMH_FIN,
			      .app_ctx = r->header.app_ctx,
			      .tag = r->header.tag};
	struct tp_sge sge = {.addr = (uintptr_t)&fin, .length_bytes = sizeof(fin)};

	return tp_qp_post_send(qp->tp, &(struct tp_send_wr){
					       .opcode = IBV_WR_SEND,
					       .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE |
							TP_SEND_OWN,
					       .num_sge = 1,
					       .sge = &sge,
					       .length_bytes = sizeof(fin),
				       });
}

noinline static void post_waiting(struct eng_qp *qp, struct eng_matching *m)
{
	while (!list_empty(&m->waiting)) {
		struct rendezvous *r = list_first_entry(&m->waiting, struct rendezvous, node);

		/* the send queue is full until a request completes, or the QP is not in RTS */
		if ((r->next == FETCH ? post_fetch : post_finish)(qp, r))
			break;
		list_del(&r->node);
		list_add_tail(&r->node, &m->posted);
	}
}

void eng_tag_post(struct eng_qp *qp)
{
	struct eng_matching *m = qp->matching;

	/* once for each run of messages, most of which begin no rendezvous */
	if (unlikely(!list_empty(&m->waiting)))
		post_waiting(qp, m);
}

void eng_tag_modified(struct eng_qp *qp, enum ibv_qp_state to)
{
	if (to == IBV_QPS_RESET) {
		forget_all(&qp->matching->waiting);
		forget_all(&qp->matching->posted);
	} else if (to == IBV_QPS_RTS) {
		eng_tag_post(qp);
	}
}

void eng_tag_receive(struct eng_qp *qp, const struct wire_packet *pkt)
{
	tp_qp_receive(qp->tp, pkt, qp->engine->now);
	eng_tag_post(qp);
}
