/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What arrives for objects that several QPs share: EE contexts of reliable datagrams, and XRC
 * targets, whose state softibd moves between programs. Side B of the unit tests' world has
 *
 *   an EE context, and RD QPs: of its domain, of its domain with another Q_Key, of another domain
 *   an XRC target, and SRQs: of its domain, of another one
 *
 * The input is a list of acts, each a byte of choice, a byte of length in words, and the words:
 * packets behind their LRH, messages about targets (abi/target.h), receives, requests of an RD QP.
 *
 * What the rules keep out completes nothing where it may not; memory of a protection domain that
 * nobody who can be reached is of, and of an RD QP without rights, stays as it was.
 */
#include <stdlib.h>

#include "../unit/engine/world.h"
#include "abi/target.h"
#include "base/bytes.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QKEY 0x1234
#define OTHER_QKEY 0x5eed5eed
#define RDD 9
#define XRCD 5
#define FIRST_SRQN 0x700
#define PEER 0x51 /* QPN of A's ends */
#define DEPTH 8
#define REGION_BYTES 8192
#define UNTOUCHED 0x5a
#define PSN 100 /* to_rts() */
#define RIGHTS                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |       \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum act { PACKET, TARGET_MESSAGE, RECEIVE, LATER, REQUEST, ACTS };
/* those that receive: REACHED can be, the others only as the check says */
enum receiver { RD_REACHED, RD_OTHER_QKEY, RD_OTHER_DOMAIN, SRQ_REACHED, SRQ_OTHER_DOMAIN, RECEIVERS };

enum { EE = 0x61, TARGET = 0x62, RD_QPN = 0x70 /* and the next ones */, RDS = SRQ_REACHED };

static struct {
	struct world *w;
	struct eng_qp *rd[RDS];
	struct eng_srq *srq[RECEIVERS - RDS];
	uint8_t *nobodys; /* memory of protection domain 3, which has no QP */
	uint8_t *own;	  /* of protection domain 2, the RD QP's that has no rights */
	uint64_t given[RECEIVERS], taken[RECEIVERS], requested, done;
	bool knew_qkey, heard_packets;
} f;

static uint8_t *make_region(uint32_t key, uint32_t pd)
{
	uint8_t *bytes = malloc(REGION_BYTES);
	const struct eng_mr_attr mr = {.key = key, .pd = pd, .addr = bytes, .length = REGION_BYTES,
				       .iova = 0x10000, .access = RIGHTS};

	check(bytes && !eng_mr_add(f.w->b.engine, &mr));
	memset(bytes, UNTOUCHED, REGION_BYTES);
	return bytes;
}

static void check_untouched(const uint8_t *bytes)
{
	for (unsigned i = 0; i < REGION_BYTES; i++)
		check(bytes[i] == UNTOUCHED);
}

/* --- the world --- */

static void make_ee(struct side *s, uint32_t qpn, uint16_t dlid, uint32_t peer)
{
	const struct eng_qp_init init = {.qpn = qpn, .type = IBV_QPT_RC, .rdd = RDD, .is_ee = true,
					 .max_send_sge = 2, .max_inline = 64, .max_send_wr = 1, .ctx = s};

	check(!eng_qp_create(s->engine, &init, &s->qp));
	to_rts(s, dlid, peer);
}

static void make_rd(enum receiver i)
{
	struct side *b = &f.w->b;
	const struct eng_qp_init init = {
		.qpn = RD_QPN + i, .type = IBV_QPT_RC, .rdd = RDD + (i == RD_OTHER_DOMAIN),
		.is_rd = true, .pd = i == RD_OTHER_QKEY ? 2 : 1, .send_cq = b->cq, .recv_cq = b->cq,
		.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2, .ctx = b};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .qkey = i == RD_OTHER_QKEY ? OTHER_QKEY : QKEY,
				   .qp_access_flags = i == RD_OTHER_QKEY ? 0 : RIGHTS};

	check(!eng_qp_create(b->engine, &init, &f.rd[i]));
	check(!eng_qp_modify(f.rd[i], &attr, IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	check(!eng_qp_modify(f.rd[i], &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	check(!eng_qp_modify(f.rd[i], &attr, IBV_QP_STATE));
}

static void make_xrc(void)
{
	const struct eng_qp_init init = {.qpn = TARGET, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD};
	struct side *b = &f.w->b;

	for (unsigned i = 0; i < ARRAY_SIZE(f.srq); i++) {
		check(!eng_srq_create(b->engine, 1, DEPTH, 2, 0, NULL, &f.srq[i]));
		check(!eng_srq_join_xrcd(f.srq[i], FIRST_SRQN + i, XRCD + i, b->cq));
	}
	check(!eng_qp_create(b->engine, &init, &b->qp));
	to_rts(b, 1, PEER);
}

static void begin(void)
{
	void *state;

	memset(&f, 0, sizeof(f));
	check(!setup(&state));
	f.w = state;
	f.nobodys = make_region(0x303, 3);
	f.own = make_region(0x202, 2);
	make_ee(&f.w->b, EE, 1, PEER);
	for (unsigned i = 0; i < RDS; i++)
		make_rd((enum receiver)i);
	make_xrc();
}

/* --- acts --- */

static void give(enum receiver i)
{
	struct ibv_sge sge = {(uintptr_t)f.w->b.memory, 512, 0x101};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
	int ret;

	if (i == RD_OTHER_QKEY)
		sge = (struct ibv_sge){0x10000, 512, 0x202};
	ret = i < RDS ? eng_post_recv(f.rd[i], &wr, &bad) :
			eng_srq_post_recv(f.srq[i - RDS], &wr, &bad);
	f.given[i] += !ret;
}

static void request(uint8_t how)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	const struct eng_rd_to to = {.ee_context = how & 4 ? EE : TARGET, .qpn = 0x41, .qkey = QKEY};
	struct ibv_sge sge = {(uintptr_t)f.w->b.memory + 4096, 8, 0x101};
	struct ibv_send_wr wr = {.wr_id = RECEIVERS, .sg_list = &sge, .num_sge = 1,
				 .opcode = opcodes[how % 4], .send_flags = IBV_SEND_SIGNALED};

	f.requested += !eng_post_rd(f.rd[RD_REACHED], &wr, &to);
}

static void put(const void *bytes, size_t len)
{
	struct cable *c = &f.w->b.in;

	memcpy(c->packet[c->tail % WIRE_PACKETS].bytes, bytes, len);
	c->packet[c->tail++ % WIRE_PACKETS].len = len;
}

/* @full: a packet in the middle of a message has a payload as long as the MTU */
static void packet(const uint8_t *bytes, size_t len, bool full)
{
	uint8_t copy[8 + 255 * 4 + 1024] = {0, 2, 0, 2, 0, 0, 0, 1};
	struct wire_packet pkt;

	memcpy(copy + 8, bytes, len);
	len += full ? 1024 : 0;
	put_be16(copy + 4, (uint16_t)((len + 8 + 4) / 4));
	if (wire_packet_decode(copy, len + 8, &pkt) >= 0 && pkt.deth.qkey == OTHER_QKEY)
		f.knew_qkey = true;
	put(copy, len + 8);
	f.heard_packets = true;
}

/* softibd speaks of targets: kinds, numbers and states are any, but attributes are a QP's */
static void target_message(uint8_t what, const uint8_t *bytes, size_t len)
{
	struct abi_target_message m = {
		.mark = ABI_TARGET_MARK, .kind = what >> 3 & 7, .is_new = what & 0x40, .qpn = TARGET,
		.xrcd = XRCD,
		.attr = {.qp_state = what & 0x80 ? IBV_QPS_RTS : IBV_QPS_RTR, .port_num = 1,
			 .path_mtu = IBV_MTU_256, .dest_qp_num = PEER, .rq_psn = PSN,
			 .max_dest_rd_atomic = 4, .qp_access_flags = RIGHTS,
			 .ah_attr = {.dlid = 1, .port_num = 1}}};

	if (len >= 4)
		m.qpn = get_be32(bytes);
	if (len >= 8)
		m.state = (struct abi_target_state){.epsn = get_be32(bytes + 4) & 0xffffff,
						    .nak_sent = bytes[4] & 1,
						    .established = bytes[4] & 2,
						    .is_guess = bytes[4] & 4};
	put(&m, sizeof(m));
}

static void poll_cq(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = eng_cq_poll(f.w->b.cq, ARRAY_SIZE(wc), wc)) > 0)
		for (int k = 0; k < n; k++) {
			const enum receiver i = (enum receiver)wc[k].wr_id;

			if (wc[k].wr_id == RECEIVERS) {
				check(f.done++ < f.requested);
				continue;
			}
			check(i < RECEIVERS && f.taken[i]++ < f.given[i] && wc[k].byte_len <= 512);
			check(i != SRQ_OTHER_DOMAIN && i != RD_OTHER_DOMAIN);
			check(i != RD_OTHER_QKEY || f.knew_qkey);
		}
}

static void act(uint8_t what, const uint8_t *bytes, size_t len)
{
	switch ((enum act)(what % 8)) {
	case PACKET:
		packet(bytes, len, what & 8);
		break;
	case TARGET_MESSAGE:
		target_message(what, bytes, len);
		break;
	case RECEIVE:
		give((enum receiver)((what >> 3) % RECEIVERS));
		break;
	case LATER:
		clock_now = mono_add(clock_now, 1ull << (what >> 3));
		break;
	case REQUEST:
		request(what >> 3);
		break;
	case ACTS:
		return;
	}
	for (int n = 0; n < 8 && eng_tick(f.w->b.engine); n++)
		;
	f.w->a.in.head = f.w->a.in.tail; /* nobody reads it */
	poll_cq();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *state;

	begin();
	while (size >= 2) {
		size_t len = MIN((size_t)data[1] * 4, (size - 2) & ~(size_t)3);

		act(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	/* softibd's messages are about targets alone */
	for (unsigned i = 0; i < RDS && !f.heard_packets && !f.requested; i++)
		check(tp_qp_state(f.rd[i]->tp) == IBV_QPS_RTS);
	check_untouched(f.nobodys);
	if (!f.knew_qkey)
		check_untouched(f.own);
	state = f.w;
	teardown(&state);
	free(f.nobodys);
	free(f.own);
	return 0;
}
