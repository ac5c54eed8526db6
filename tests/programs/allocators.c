/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A parent domain whose allocators keep account of what they gave (ibv_alloc_parent_domain(3)):
 * messages move between queues in such memory; then each allocation fails in turn, and what
 * needed it fails with ENOMEM and keeps nothing; then the heap is asked for instead. Prints "fine".
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fixture.h"

enum { DEPTH = 8, MESSAGES = 100, BYTES = 2000, KINDS = 4, MOST = 64 };

/* --- the allocators --- */

/** struct account - @fails_in: allocations until one fails; 0: none does */
static struct account {
	struct ibv_pd *parent;
	bool from_heap;
	unsigned fails_in, calls, held, given[KINDS];
	struct block {
		void *at;
		size_t bytes;
		uint64_t type;
	} blocks[MOST];
} account;

static void *give(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t type)
{
	struct account *a = pd_context;
	struct block *b = a->blocks;

	CHECK(a == &account && pd == a->parent && size && type < KINDS);
	a->calls++;
	if (a->from_heap)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (a->fails_in && !--a->fails_in)
		return NULL;
	while (b->at)
		b++;
	CHECK(b < a->blocks + MOST && !posix_memalign(&b->at, alignment, size));
	memset(b->at, 0xa5, size); /* nobody may rely on zeros */
	b->bytes = size;
	b->type = type;
	a->given[type]++;
	a->held++;
	return b->at;
}

static void take_back(struct ibv_pd *pd, void *pd_context, void *at, uint64_t type)
{
	struct account *a = pd_context;
	struct block *b = a->blocks;

	CHECK(a == &account && pd == a->parent && at);
	while (b->at != at)
		CHECK(++b < a->blocks + MOST);
	CHECK(b->type == type);
	free(at);
	*b = (struct block){0};
	a->held--;
}

/* --- what is made in the domain --- */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[2][BYTES];

/** struct queues - an SRQ, two CQs, and QPs that send to each other; any may be missing */
struct queues {
	struct ibv_srq *srq;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
};

static struct ibv_cq *make_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = DEPTH, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					   .parent_domain = account.parent};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_qp *make_qp(struct queues *q, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = q->cq[0], .recv_cq = q->cq[1], .srq = srq,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = srq ? 0 : DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1}};

	return ibv_create_qp(account.parent, &init);
}

/* The first QP has a receive queue of its own, the second one the SRQ. */
static bool make_queues(struct queues *q)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

	*q = (struct queues){0};
	return (q->srq = ibv_create_srq(account.parent, &init)) && (q->cq[0] = make_cq()) &&
	       (q->cq[1] = make_cq()) && (q->qp[0] = make_qp(q, NULL)) &&
	       (q->qp[1] = make_qp(q, q->srq));
}

static void end_queues(struct queues *q)
{
	for (int i = 0; i < 2; i++)
		CHECK(!q->qp[i] || !ibv_destroy_qp(q->qp[i]));
	for (int i = 0; i < 2; i++)
		CHECK(!q->cq[i] || !ibv_destroy_cq(q->cq[i]));
	CHECK(!q->srq || !ibv_destroy_srq(q->srq));
}

static void connect_to(struct ibv_qp *one, const struct ibv_qp *two)
{
	connect_qp(one, (struct ibv_qp_attr){.dest_qp_num = two->qp_num}, lid_of(context), 1);
}

static void await(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* one message from QP @by to the other */
static void exchange(struct queues *q, int by, int n)
{
	struct ibv_sge out = {(uintptr_t)memory[0], BYTES, mr->lkey};
	struct ibv_sge in = {(uintptr_t)memory[1], BYTES, mr->lkey};
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;

	memset(memory[0], n, BYTES);
	CHECK(!(by ? ibv_post_recv(q->qp[0], &recv, &bad_recv) :
		     ibv_post_srq_recv(q->srq, &recv, &bad_recv)));
	CHECK(!ibv_post_send(q->qp[by], &send, &bad));
	await(q->cq[0]);
	await(q->cq[1]);
	CHECK(!memcmp(memory[0], memory[1], BYTES));
}

static void move_messages(struct queues *q)
{
	for (int n = 0; n < MESSAGES; n++)
		exchange(q, n % 2, n);
}

/* --- the cases --- */

static void resize(struct queues *q)
{
	struct ibv_srq_attr attr = {.max_wr = 4 * DEPTH};
	unsigned held = account.held;

	CHECK(!ibv_resize_cq(q->cq[0], 4 * DEPTH));
	CHECK(!ibv_modify_srq(q->srq, &attr, IBV_SRQ_MAX_WR));
	CHECK(account.held == held && account.given[2] == 2 && account.given[3] == 3);
	account.fails_in = 1;
	CHECK(ibv_resize_cq(q->cq[0], 8 * DEPTH) == ENOMEM);
	account.fails_in = 1;
	attr.max_wr = 8 * DEPTH;
	CHECK(ibv_modify_srq(q->srq, &attr, IBV_SRQ_MAX_WR) == ENOMEM);
	CHECK(account.held == held);
}

static void queues_are_in_the_programs_memory(void)
{
	struct queues q;

	CHECK(make_queues(&q));
	/* send queues, a receive queue, the SRQ, CQs */
	CHECK(account.held == 6 && account.given[0] == 2 && account.given[1] == 1 &&
	      account.given[2] == 1 && account.given[3] == 2);
	connect_to(q.qp[0], q.qp[1]);
	connect_to(q.qp[1], q.qp[0]);
	move_messages(&q);
	resize(&q);
	move_messages(&q);
	CHECK(ibv_dealloc_pd(account.parent) == EBUSY);
	end_queues(&q);
	CHECK(!account.held);
}

static void each_allocation_fails(void)
{
	unsigned failed = 0;
	struct queues q;

	for (bool made = false; !made; failed++) {
		account.fails_in = failed + 1;
		errno = 0;
		made = make_queues(&q);
		CHECK(made || errno == ENOMEM);
		end_queues(&q);
		CHECK(!account.held);
	}
	CHECK(failed == 6 + 1); /* the last time nothing did */
	account.fails_in = 0;
}

static void the_heap_gives_instead(void)
{
	struct queues q;

	account.from_heap = true;
	account.calls = 0;
	CHECK(make_queues(&q) && account.calls == 6 && !account.held);
	connect_to(q.qp[0], q.qp[1]);
	connect_to(q.qp[1], q.qp[0]);
	move_messages(&q);
	end_queues(&q);
}

int main(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give, .pd_context = &account};

	context = open_first_device();
	CHECK((attr.pd = pd = ibv_alloc_pd(context)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)));
	CHECK(!ibv_alloc_parent_domain(context, &attr) && errno == EINVAL); /* no free() */
	attr.free = take_back;
	CHECK((account.parent = ibv_alloc_parent_domain(context, &attr)));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	queues_are_in_the_programs_memory();
	each_allocation_fails();
	the_heap_gives_instead();
	CHECK(!ibv_dealloc_pd(account.parent) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	printf("fine\n");
	return 0;
}
