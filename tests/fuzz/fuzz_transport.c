/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any packets for a QP, in any order and at any time, while it sends and
 * receives: RC, UC or UD. The first byte chooses the service and which rights
 * the QP lacks; then come records of a byte that tells what happens and its
 * data. Memory that the QP names is checked to be inside its region,
 * completions to be of requests that were posted, and each request completes
 * once at most. Some requests own no PSN.
 *
 * There are four regions, each with its own key. What neither its rights nor
 * those of the QP let the peer write stays as it was, and a QP answers no READ
 * and no atomic that it does not allow.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SQ_DEPTH 8
#define KEY 0x100
#define IOVA 0x10000u
#define REGION_BYTES 16384
#define REMOTE_RIGHTS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |   \
	 TP_ACCESS_FLUSH_GLOBAL)
#define UNTOUCHED 0x5a
#define PACKET_MAX 512 /* room for one of a full MTU */
#define QPN 0x11

/* the QP's own memory has the key KEY; KEY + 1 can be invalidated */
enum region { OWN, PEER_READS, LOCAL_ONLY, PEERS, REGIONS };

static const struct {
	uint32_t key;
	int access;
} regions[REGIONS] = {
	[OWN] = {KEY, IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS},
	[PEER_READS] = {KEY + 2, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
	[LOCAL_ONLY] = {KEY + 3, IBV_ACCESS_LOCAL_WRITE},
	[PEERS] = {KEY + 4, IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS},
};

struct world {
	struct tp_qp *qp;
	int access; /* of the QP */
	uint8_t *region[REGIONS]; /* allocated each: the sanitizer sees their ends */
	uint64_t posted, sent; /* send requests; how many completed */
	uint64_t recvs, taken, received;
	mono_t now;
};

static void *mem(void *ctx, uint32_t key, uint64_t va, uint64_t *length, int access,
		 enum tp_key whose)
{
	uint64_t len = *length;
	struct world *w = ctx;

	if (!len || (access & IBV_ACCESS_REMOTE_ATOMIC && va % 8))
		abort();
	for (unsigned i = 0; i < REGIONS; i++)
		if (key == regions[i].key && !(access & ~regions[i].access) && va >= IOVA &&
		    va - IOVA <= REGION_BYTES && len <= REGION_BYTES - (va - IOVA))
			return w->region[i] + (va - IOVA);
	return NULL;
}

static bool grants(void *ctx, uint32_t rkey, int access)
{
	uint64_t length = 1;

	return mem(ctx, rkey, IOVA, &length, access, TP_KEY_REMOTE);
}

static int invalidate(void *ctx, uint32_t rkey, bool by_peer)
{
	return rkey == KEY + 1 ? 0 : -1;
}

static int bind(void *ctx, const struct tp_send_wr *wr)
{
	return wr->bind.mr_key == KEY ? 0 : -1;
}

static bool take(void *ctx, struct tp_recv_wr *wr)
{
	static const struct tp_sge sge[] = {{IOVA, 100, KEY}, {IOVA + 4096, 6000, KEY}};
	struct world *w = ctx;

	if (w->taken == w->recvs)
		return false;
	*wr = (struct tp_recv_wr){.wr_id = w->taken++, .num_sge = 2, .sge = sge};
	return true;
}

static bool recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	return take(ctx, wr);
}

static void complete_send(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			  uint32_t length_bytes)
{
	struct world *w = ctx;

	if (wr_id < w->sent || wr_id >= w->posted)
		abort(); /* twice, out of order, or never posted */
	w->sent = wr_id + 1;
}

static void complete_recv(void *ctx, const struct tp_wc *wc)
{
	struct world *w = ctx;

	if (wc->wr_id != w->received++ || wc->wr_id >= w->taken || wc->byte_len > 6140)
		abort();
}

static void event(void *ctx, enum tp_event event)
{
}

static const struct tp_ops ops = {
	.mem = mem,
	.grants = grants,
	.invalidate = invalidate,
	.bind = bind,
	.recv_get = recv_get,
	.recv_flush = take,
	.complete_send = complete_send,
	.complete_recv = complete_recv,
	.event = event,
};

static void make_qp(struct world *w, enum tp_type type, void *memory)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	const struct tp_qp_init init = {
		.type = type, .qpn = QPN, .sq_depth = SQ_DEPTH, .max_sge = 2,
		.max_inline = 64, .max_dest_rd = 4, .sq_sig_all = true, .ops = &ops, .ctx = w};

	w->qp = tp_qp_init(memory, &init);
	*tp_qp_attr(w->qp) = (struct tp_attr){
		.dest_qpn = 0x22, .sq_psn = psn(0), .rq_psn = psn(0), .qkey = 0x11111111,
		.pkey = 0xffff, .port_num = 1, .mtu_bytes = 256, .retry_cnt = 2,
		.rnr_retry = 2, .timeout_enc = 1, .min_rnr_timer_enc = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4, .av = {.dlid = 2, .port_num = 1},
		.qp_access_flags = (unsigned)w->access};
	for (unsigned i = 0; i < ARRAY_SIZE(way); i++)
		tp_qp_modify(w->qp, way[i], w->now);
}

static void post(struct world *w, uint8_t what)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD};
	const enum ibv_wr_opcode opcode = opcodes[what % ARRAY_SIZE(opcodes)];
	const bool atomic = opcode >= IBV_WR_ATOMIC_CMP_AND_SWP &&
			    opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint32_t bytes = atomic ? 8 : what & 8 ? 1000 : 60;
	const struct tp_sge sge = {IOVA + 8192, bytes, KEY};
	const struct tp_send_wr wr = {
		.wr_id = w->posted, .opcode = (uint8_t)opcode, .num_sge = 1, .sge = &sge,
		.length_bytes = bytes, .remote_addr = IOVA, .rkey = KEY,
		.flags = IBV_SEND_SIGNALED, .av = {.dlid = 2, .port_num = 1},
		.remote_qpn = 0x22, .remote_qkey = 0x11111111};

	w->posted++;
	if (tp_qp_post_send(w->qp, &wr))
		w->posted--;
}

/* a request that owns no PSN; one in four fails */
static void post_local(struct world *w, uint8_t what)
{
	const struct tp_send_wr wr = {
		.wr_id = w->posted, .flags = IBV_SEND_SIGNALED,
		.opcode = what & 8 ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW,
		.imm_or_rkey = KEY + (what % 4 > 0), .bind = {.mr_key = KEY + (what % 4 == 0)}};

	w->posted++;
	if (tp_qp_post_send(w->qp, &wr))
		w->posted--;
}

/* what the QP answers, it allows; a FLUSH and an ATOMIC WRITE have the response of a READ
 * without data */
static void check_allowed(const struct world *w, uint8_t opcode, uint32_t bytes)
{
	const int without_data = opcode == WIRE_READ_RESP_ONLY && !bytes ?
					 IBV_ACCESS_REMOTE_WRITE | TP_ACCESS_FLUSH_GLOBAL : 0;

	if (opcode >= WIRE_READ_RESP_FIRST && opcode <= WIRE_READ_RESP_ONLY &&
	    !(w->access & (IBV_ACCESS_REMOTE_READ | without_data)))
		abort();
	if (opcode == WIRE_ATOMIC_ACK && !(w->access & IBV_ACCESS_REMOTE_ATOMIC))
		abort();
}

/* a region of which the peer may write no byte is as it was */
static void check_untouched(const struct world *w)
{
	const int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	for (unsigned i = OWN + 1; i < REGIONS; i++)
		for (unsigned at = 0; at < REGION_BYTES; at++)
			if (!(w->access & regions[i].access & writes) &&
			    w->region[i][at] != UNTOUCHED)
				abort();
}

static void transmit(struct world *w)
{
	struct tp_packet_out out;

	for (int n = 0; n < 32 && tp_qp_transmit(w->qp, &out, w->now); n++) {
		uint32_t sum = 0;

		check_allowed(w, out.hdr.bth.opcode, out.hdr.payload_bytes);
		for (unsigned i = 0; i < out.num_pieces; i++) {
			const volatile uint8_t *piece = out.piece[i].ptr;

			sum += out.piece[i].len;
			if (out.piece[i].len) /* both ends can be read */
				(void)(piece[0] + piece[out.piece[i].len - 1]);
		}
		if (sum != out.hdr.payload_bytes || sum > 256)
			abort();
	}
}

/* the QP behind eng_rx: a decoded packet of the QP's own partition */
static void receive(struct world *w, const uint8_t *bytes, size_t len)
{
	uint8_t copy[PACKET_MAX];
	struct wire_packet pkt;

	/* the routing header is given, so that all input goes to the transport */
	static const uint8_t lrh[8] = {0x00, 0x02, 0, 1, 0, 0, 0, 2};

	if (len > sizeof(copy) - sizeof(lrh) || len % 4)
		return;
	memcpy(copy, lrh, sizeof(lrh));
	memcpy(copy + sizeof(lrh), bytes, len);
	len += sizeof(lrh);
	copy[4] = (uint8_t)((len + 4) / 4 >> 8); /* words, the ICRC's among them */
	copy[5] = (uint8_t)((len + 4) / 4);
	if (wire_packet_decode(copy, len, &pkt) >= 0)
		tp_qp_receive(w->qp, &pkt, w->now);
}

static void make_regions(struct world *w)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		w->region[i] = malloc(REGION_BYTES);
		if (!w->region[i])
			abort();
		memset(w->region[i], UNTOUCHED, REGION_BYTES);
	}
}

/* the bytes of a packet: words in five bits, of which all set add another byte */
static size_t packet_bytes(uint8_t what, const uint8_t **data, size_t *size)
{
	size_t words = (what & 0x1f) + 3;

	if ((what & 0x1f) == 0x1f && *size) {
		words += *(*data)++;
		--*size;
	}
	return MIN(words * 4, *size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.now = {1000}};
	void *memory;

	if (!size)
		return 0;
	memory = aligned_alloc(64, (tp_qp_size(SQ_DEPTH, 2, 64, 4) + 63) & ~(size_t)63);
	if (!memory)
		abort();
	make_regions(&w);
	/* IBV_ACCESS_REMOTE_WRITE, _READ, _ATOMIC are neighbours */
	w.access = REMOTE_RIGHTS & ~(data[0] / 3 % 8 * IBV_ACCESS_REMOTE_WRITE);
	if (data[0] / 3 & 8)
		w.access &= ~TP_ACCESS_FLUSH_GLOBAL;
	make_qp(&w, (enum tp_type)(data[0] % 3), memory);
	for (data++, size--; size; ) {
		const uint8_t what = *data++;
		size_t len;

		size--;
		switch (what >> 5) {
		case 0:
			(what & 16 ? post_local : post)(&w, what);
			break;
		case 1:
			w.recvs++;
			break;
		case 2:
			w.now.ns += 1u << (what & 0x1f);
			tp_qp_expire(w.qp, w.now);
			break;
		default:
			len = packet_bytes(what, &data, &size);
			receive(&w, data, len);
			data += len;
			size -= len;
		}
		transmit(&w);
	}
	tp_qp_modify(w.qp, IBV_QPS_ERR, w.now);
	if (w.sent != w.posted || w.received != w.taken)
		abort(); /* each request completes, flushed at the latest */
	check_untouched(&w);
	for (unsigned i = 0; i < REGIONS; i++)
		free(w.region[i]);
	free(memory);
	return 0;
}
