/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One end of XRC connections, which does what it reads from standard input, a line each, and
 * answers with a line. Several of them share a domain by a file.
 *
 *   domain FILE [excl]    join or make the domain of the file
 *   srq                   an SRQ with receives, and memory for remote access: number, rkey, address
 *   target | initiator    a QP: its number and the LID of port 1
 *   open QPN              one more handle of a target, instead of a QP of one's own
 *   swap                  the QP that was made before, or back
 *   connect QPN LID       the QP with its peer
 *   send N SRQN...        N messages to each of the SRQs, in turn
 *   add N SRQN RKEY ADDR  N times: add 1 to the memory, then READ it
 *   receive N             the next N messages, whose contents are checked
 *   receive_any N         the next N messages, of several senders
 *   state | event         of the QP: its state; the next asynchronous event
 *   destroy | leave       the QP; the SRQ and the domain
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "fixture.h"

enum { DEPTH = 32, BYTES = 4096, SRQS = 8 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *srq_cq;
static struct ibv_mr *mr, *counter_mr;
static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq;
static struct ibv_qp *qp, *qp_before;
static uint8_t buffer[DEPTH][BYTES];
static uint64_t counter[2]; /* for atomics of peers; what was read of theirs */
static uint32_t sent[SRQS], sent_to[SRQS], received;

/* each message says which of its SRQ's it is, and its length and contents follow from that */
static uint32_t length_of(uint32_t number)
{
	return 8 + number * 977 % (BYTES - 8);
}

static void fill(uint8_t *message, uint32_t number)
{
	memset(message, (int)(number * 7 & 0xff), length_of(number));
	memcpy(message, &number, sizeof(number));
}

static void open_all(void)
{
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	srq_cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	CHECK(cq && srq_cq);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	counter_mr = ibv_reg_mr(pd, counter, sizeof(counter),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(mr && counter_mr);
}

static struct ibv_sge piece(unsigned slot, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)buffer[slot], bytes, mr->lkey};
}

static void post_receive(unsigned slot)
{
	struct ibv_sge sge = piece(slot, BYTES);
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

static void domain(const char *path, bool exclusive)
{
	int fd = open(path, O_RDONLY | O_CREAT, 0600);
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = exclusive ? O_CREAT | O_EXCL : O_CREAT,
	};

	xrcd = ibv_open_xrcd(context, &attr);
	printf("%s\n", xrcd ? "joined" : strerrorname_np(errno));
}

static void make_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = DEPTH, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = xrcd,
		.cq = srq_cq,
		.pd = pd,
	};
	uint32_t number;

	srq = ibv_create_srq_ex(context, &attr);
	CHECK(srq && !ibv_get_srq_num(srq, &number));
	for (unsigned i = 0; i < DEPTH; i++)
		post_receive(i);
	printf("%u %u %lu\n", number, counter_mr->rkey, (uintptr_t)counter);
}

static void make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.send_cq = cq,
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
		.pd = pd,
		.xrcd = xrcd,
		.sq_sig_all = 1,
	};

	qp_before = qp;
	qp = ibv_create_qp_ex(context, &attr);
	CHECK(qp);
	printf("%u %u\n", qp->qp_num, lid_of(context));
}

static void open_qp(uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	qp = ibv_open_qp(context, &attr);
	printf("%s\n", qp ? "opened" : strerrorname_np(errno));
}

static void connect_to(uint32_t peer, uint32_t lid)
{
	connect_qp(qp, (struct ibv_qp_attr){
			       .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
			       .dest_qp_num = peer,
			       .rq_psn = 0xfffff0, /* the circle of PSNs is passed */
			       .sq_psn = 0xfffff0},
		   (uint16_t)lid, 4);
	printf("connected\n");
}

static bool completed(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	CHECK(n == 1);
	if (wc.status)
		printf("%s\n", ibv_wc_status_str(wc.status));
	return wc.status == IBV_WC_SUCCESS;
}

static uint32_t next_number(uint32_t srqn)
{
	for (unsigned i = 0; i < SRQS; i++) {
		if (sent_to[i] && sent_to[i] != srqn)
			continue;
		sent_to[i] = srqn;
		return sent[i]++;
	}
	exit(1);
}

static void post_send(unsigned slot, uint32_t srqn)
{
	uint32_t number = next_number(srqn);
	struct ibv_sge sge = piece(slot, length_of(number));
	struct ibv_send_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1,
				 .opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = srqn}, *bad;

	fill(buffer[slot], number);
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void send_all(uint32_t rounds, const uint32_t *srqn, unsigned srqs)
{
	uint32_t all = rounds * srqs;

	for (uint32_t i = 0; i < all; i++) {
		if (i >= DEPTH && !completed())
			return;
		post_send(i % DEPTH, srqn[i % srqs]);
	}
	for (uint32_t i = all < DEPTH ? 0 : all - DEPTH; i < all; i++)
		if (!completed())
			return;
	printf("sent %u\n", all);
}

static void add(uint32_t times, uint32_t srqn, uint32_t rkey, uint64_t address)
{
	struct ibv_sge sge = {(uintptr_t)&counter[1], 8, counter_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .wr.atomic = {address, 1, 0, rkey},
				 .qp_type.xrc.remote_srqn = srqn}, *bad;
	struct ibv_send_wr read = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {address, rkey}, .qp_type.xrc.remote_srqn = srqn};

	for (uint32_t i = 0; i < times; i++) {
		CHECK(!ibv_post_send(qp, &wr, &bad));
		CHECK(!ibv_post_send(qp, &read, &bad));
		if (!completed() || !completed())
			return;
	}
	printf("%lu\n", counter[1]);
}

static void check(const struct ibv_wc *wc)
{
	static uint8_t right[BYTES];

	fill(right, received);
	CHECK(wc->byte_len == length_of(received));
	CHECK(!memcmp(buffer[wc->wr_id], right, wc->byte_len));
}

static void receive(uint32_t count, bool of_one_sender)
{
	struct ibv_wc wc;

	while (count) {
		int n = ibv_poll_cq(srq_cq, 1, &wc);

		CHECK(n >= 0);
		if (!n)
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		if (of_one_sender)
			check(&wc);
		post_receive((unsigned)wc.wr_id);
		received++;
		count--;
	}
	printf("received %u\n", received);
}

static void state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init));
	printf("%d %u\n", attr.qp_state, attr.dest_qp_num);
}

static void event(void)
{
	struct ibv_async_event e;

	CHECK(!ibv_get_async_event(context, &e));
	CHECK(e.element.qp == qp);
	printf("%s\n", ibv_event_type_str(e.event_type));
	ibv_ack_async_event(&e);
}

static void swap(void)
{
	struct ibv_qp *was = qp;

	qp = qp_before;
	qp_before = was;
	printf("swapped\n");
}

static void leave(void)
{
	CHECK(!ibv_destroy_srq(srq));
	printf("%d\n", ibv_close_xrcd(xrcd));
}

static void obey(const char *line)
{
	uint32_t a = 0, n[SRQS] = {0};
	uint64_t address = 0;
	char path[256];
	int got = sscanf(line, "%*s %u %u %u %u %u", &a, &n[0], &n[1], &n[2], &n[3]);

	if (sscanf(line, "domain %255s", path) == 1)
		domain(path, strstr(line, " excl"));
	else if (!strncmp(line, "srq", 3))
		make_srq();
	else if (!strncmp(line, "target", 6))
		make_qp(IBV_QPT_XRC_RECV);
	else if (!strncmp(line, "initiator", 9))
		make_qp(IBV_QPT_XRC_SEND);
	else if (!strncmp(line, "open", 4))
		open_qp(a);
	else if (!strncmp(line, "swap", 4))
		swap();
	else if (!strncmp(line, "connect", 7))
		connect_to(a, n[0]);
	else if (!strncmp(line, "send", 4))
		send_all(a, n, (unsigned)got - 1);
	else if (sscanf(line, "add %u %u %u %lu", &a, &n[0], &n[1], &address) == 4)
		add(a, n[0], n[1], address);
	else if (!strncmp(line, "receive", 7))
		receive(a, strncmp(line, "receive_any", 11));
	else if (!strncmp(line, "state", 5))
		state();
	else if (!strncmp(line, "event", 5))
		event();
	else if (!strncmp(line, "destroy", 7))
		printf("%d\n", ibv_destroy_qp(qp));
	else if (!strncmp(line, "leave", 5))
		leave();
	else
		printf("what is %s", line);
}

int main(void)
{
	char line[256];

	open_all();
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		fflush(stdout);
	}
	return 0;
}
