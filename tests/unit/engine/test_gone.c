/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registered memory that the program has unmapped (docs/MEMORY.md): what each request that
 * uses it becomes, at both ends, by packets, by lanes and by a window. What is written there
 * is dropped, as an adapter's pinned page is seen by nobody; who reads there has an error.
 * Where the region is paged on demand nothing was pinned, and who writes there has one, too.
 */
#include <sys/mman.h>

#include "../../../lib/libibverbs/faults.h"
#include "lanes.h"
#include "windows.h"

#define GONE_KEY 0x202
#define GONE_BYTES (16u * 4096)
#define GONE_PAGE 4096u /* the second page is gone */

/* a region of @s, whose program unmaps a page of it */
static uint8_t *gone_region_with(struct side *s, int access)
{
	struct eng_mr_attr mr = {.key = GONE_KEY, .pd = 1, .length = GONE_BYTES,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	uint8_t *at = mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mr.access |= access;
	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 0x5a, GONE_BYTES);
	mr.addr = at;
	mr.iova = (uintptr_t)at;
	assert_int_equal(eng_mr_add(s->engine, &mr), 0);
	munmap(at + GONE_PAGE, 4096);
	faults_watch(); /* cmocka has handlers of its own in each test */
	return at;
}

static uint8_t *gone_region(struct side *s)
{
	return gone_region_with(s, 0);
}

enum whose { LOCAL, REMOTE };

/** struct use - of memory of which a part is gone, by a request of A */
struct use {
	enum ibv_wr_opcode opcode;
	enum whose whose;
	enum ibv_wc_status sent;
	bool received; /* B's receive completes, well */
	enum ibv_wc_status sent_on_demand;
};

#define ODP IBV_ACCESS_ON_DEMAND

static const struct use uses[] = {
	{IBV_WR_SEND, LOCAL, IBV_WC_LOC_PROT_ERR, false,
	 IBV_WC_LOC_PROT_ERR},
	{IBV_WR_SEND_WITH_IMM, LOCAL, IBV_WC_LOC_PROT_ERR, false,
	 IBV_WC_LOC_PROT_ERR},
	{IBV_WR_RDMA_WRITE, LOCAL, IBV_WC_LOC_PROT_ERR, false,
	 IBV_WC_LOC_PROT_ERR},
	{IBV_WR_RDMA_READ, LOCAL, IBV_WC_SUCCESS, false,
	 IBV_WC_LOC_PROT_ERR},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, LOCAL, IBV_WC_SUCCESS, false,
	 IBV_WC_LOC_PROT_ERR},
	{IBV_WR_SEND, REMOTE, IBV_WC_SUCCESS, true,
	 IBV_WC_REM_OP_ERR},
	{IBV_WR_RDMA_WRITE, REMOTE, IBV_WC_SUCCESS, false,
	 IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_RDMA_WRITE_WITH_IMM, REMOTE, IBV_WC_SUCCESS, true,
	 IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_RDMA_READ, REMOTE, IBV_WC_REM_ACCESS_ERR, false,
	 IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, REMOTE, IBV_WC_REM_ACCESS_ERR, false,
	 IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_ATOMIC_CMP_AND_SWP, REMOTE, IBV_WC_REM_ACCESS_ERR, false,
	 IBV_WC_REM_ACCESS_ERR},
};

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* @local, @remote: at A's and B's end; @lkey, @rkey: their keys */
static int post(struct world *w, enum ibv_wr_opcode opcode, const void *local, uint32_t lkey,
		const void *remote, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)local, len, lkey};
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (is_atomic(opcode)) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	return eng_post_send(w->a.qp, &wr, &bad, av_of);
}

static void receive_into(struct side *s, const void *at, uint32_t key, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, key};
	struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(eng_post_recv(s->qp, &wr, &bad), 0);
}

/* what the pages around the one that is gone have: what belongs there */
static void expect_around(const struct use *u, const uint8_t *gone, uint32_t len, uint32_t offset)
{
	for (uint32_t i = offset; i < offset + len; i++)
		if (i / 4096 != 1)
			assert_int_equal(gone[i], u->whose == LOCAL ? 0 : 0xc3);
}

/* @access: what else the region has, ODP or nothing */
static void expect_use(struct world *w, const struct use *u, uint32_t len, uint32_t offset,
		       int access)
{
	enum ibv_wc_status sent = access & ODP ? u->sent_on_demand : u->sent;
	struct side *s = u->whose == LOCAL ? &w->a : &w->b;
	uint8_t *gone = gone_region_with(s, access), *at = gone + offset;
	const void *local = u->whose == LOCAL ? at : w->a.memory;
	const void *remote = u->whose == REMOTE ? at : w->b.memory;
	struct ibv_wc wc;

	memset(w->b.memory, 0, len);
	memset(w->a.memory, 0xc3, len);
	receive_into(&w->b, remote, u->whose == REMOTE ? GONE_KEY : 0x101, len);
	assert_int_equal(post(w, u->opcode, local, u->whose == LOCAL ? GONE_KEY : 0x101, remote,
			      u->whose == REMOTE ? GONE_KEY : 0x101, len), 0);
	run(w);
	wc = take(&w->a);
	assert_int_equal(wc.status, sent);
	assert_int_equal(wc.wr_id, 5);
	if (sent == IBV_WC_REM_OP_ERR)
		assert_int_equal(take(&w->b).status, IBV_WC_LOC_PROT_ERR);
	else if (u->received && sent == IBV_WC_SUCCESS)
		assert_int_equal(take(&w->b).status, IBV_WC_SUCCESS);
	if (sent == IBV_WC_SUCCESS && !is_atomic(u->opcode))
		expect_around(u, gone, len, offset);
	assert_int_equal(tp_qp_state(w->a.qp->tp),
			 sent == IBV_WC_SUCCESS ? IBV_QPS_RTS : IBV_QPS_ERR);
	assert_int_equal(tp_qp_stats(w->a.qp->tp)->count[TP_TIMEOUT], 0);
	munmap(gone, GONE_BYTES);
}

/* all of it is gone, or from the middle on, or up to there, or a page in the middle */
static const struct {
	uint32_t len, offset;
} places[] = {
	{1, GONE_PAGE}, {8, GONE_PAGE + 16}, {8, GONE_PAGE - 4}, {24, GONE_PAGE - 1},
	{64, 2 * GONE_PAGE - 32}, {200, GONE_PAGE}, {1000, GONE_PAGE - 500},
	{4096, GONE_PAGE}, {9000, 100}, {40000, 7}, {60000, 4000},
};

static bool fits(const struct use *u, unsigned place)
{
	return !is_atomic(u->opcode) ||
	       (places[place].len == 8 && places[place].offset % 8 == 0);
}

static void by_packets_with(int access)
{
	for (unsigned i = 0; i < ARRAY_SIZE(uses); i++)
		for (unsigned p = 0; p < ARRAY_SIZE(places); p++) {
			void *world;

			if (!fits(&uses[i], p))
				continue;
			setup(&world);
			connect(world, IBV_QPT_RC);
			expect_use(world, &uses[i], places[p].len, places[p].offset, access);
			teardown(&world);
		}
}

static void by_packets(void **state)
{
	by_packets_with(0);
	by_packets_with(ODP);
}

static void by_lanes_as(struct joined *(*make_pair)(void), int access)
{
	for (unsigned i = 0; i < ARRAY_SIZE(uses); i++)
		for (unsigned p = 0; p < ARRAY_SIZE(places); p++) {
			const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};
			struct joined *j;
			struct ibv_wc wc[2];

			if (!fits(&uses[i], p))
				continue;
			j = make_pair();
			/* so that the fast paths know the flow, the region and the header */
			make(j->w, &x, wc);
			make(j->w, &x, wc);
			expect_use(j->w, &uses[i], places[p].len, places[p].offset, access);
			part(j);
		}
}

static void by_lanes(void **state)
{
	by_lanes_as(join, 0);
	by_lanes_as(join_biased, 0);
	by_lanes_as(join, ODP);
	by_lanes_as(join_biased, ODP);
}

/* in the middle of many, whose acknowledgements are under way: the others are not lost */
static void the_one_that_is_gone_fails_alone(void **state)
{
	struct joined *j = join_biased();
	uint8_t *gone = gone_region(&j->w->a);

	for (unsigned i = 0; i < 20; i++)
		receive_into(&j->w->b, j->w->b.memory, 0x101, 200);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(post(j->w, IBV_WR_SEND, gone + (i == 12 ? GONE_PAGE : 0),
				      GONE_KEY, NULL, 0, 24), 0);
	run(j->w);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(take(&j->w->a).status,
				 i < 12 ? IBV_WC_SUCCESS :
				 i == 12 ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(take(&j->w->b).status, IBV_WC_SUCCESS);
	expect_empty(&j->w->b);
	munmap(gone, GONE_BYTES);
	part(j);
}

/* A region that is paged on demand has the pages that the program has now: none when it is
 * registered, then some, then others at the same place. The fast paths keep nothing of it. */
static void pages_on_demand_come_and_go(void **state)
{
	struct joined *j = join_biased();
	uint8_t *at = gone_region_with(&j->w->a, ODP);

	munmap(at, GONE_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(mmap(at, GONE_BYTES, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
		memset(at, 0x10 + (int)i, 8);
		receive_into(&j->w->b, j->w->b.memory, 0x101, 8);
		assert_int_equal(post(j->w, IBV_WR_SEND, at, GONE_KEY, NULL, 0, 8), 0);
		run(j->w);
		assert_int_equal(take(&j->w->a).status, IBV_WC_SUCCESS);
		assert_int_equal(take(&j->w->b).status, IBV_WC_SUCCESS);
		assert_int_equal(j->w->b.memory[7], 0x10 + i);
		munmap(at, GONE_BYTES);
	}
	receive_into(&j->w->b, j->w->b.memory, 0x101, 8);
	assert_int_equal(post(j->w, IBV_WR_SEND, at, GONE_KEY, NULL, 0, 8), 0);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_LOC_PROT_ERR);
	part(j);
}

/* All of the address space by one key, but not the word behind it. */
#ifdef __SANITIZE_ADDRESS__ /* it looks itself, and not at the kernel's */
#define NOWHERE ((void *)4096)
#else
#define NOWHERE ((void *)(SIZE_MAX - 8))
#endif

static void the_implicit_region_is_everything(void **state)
{
	struct joined *j = join_biased();
	struct eng_mr_attr mr = {.key = GONE_KEY, .pd = 1, .length = SIZE_MAX,
				 .access = IBV_ACCESS_LOCAL_WRITE | ODP}, found;
	uint64_t here = 0x1122334455667788;

	faults_watch();
	assert_int_equal(eng_mr_add(j->w->a.engine, &mr), 0);
	assert_int_equal(eng_mr_query(j->w->a.engine, GONE_KEY, &found), 0);
	assert_int_equal(found.length, SIZE_MAX);
	assert_int_equal(eng_mr_query(j->w->a.engine, GONE_KEY + 1, &found), -ENOENT);
	receive_into(&j->w->b, j->w->b.memory, 0x101, 8);
	assert_int_equal(post(j->w, IBV_WR_SEND, &here, GONE_KEY, NULL, 0, 8), 0);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(take(&j->w->b).status, IBV_WC_SUCCESS);
	assert_memory_equal(j->w->b.memory, &here, 8);
	/* where no program has memory: the first pages, or those of the kernel */
	assert_int_equal(post(j->w, IBV_WR_SEND, NOWHERE, GONE_KEY, NULL, 0, 8), 0);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_LOC_PROT_ERR);
	part(j);
}

/* --- UD --- */

static int send_datagram(struct world *w, struct tp_av *av, const void *at, uint32_t key,
			 uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, key};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.ud.ah = (void *)av;
	wr.wr.ud.remote_qpn = 0x22;
	wr.wr.ud.remote_qkey = 0x1234;
	return eng_post_send(w->a.qp, &wr, &bad, av_of);
}

/* the last of @n datagrams is from, or into, memory that is gone */
static void expect_datagram(struct world *w, enum whose whose, uint32_t len, unsigned n)
{
	struct side *s = whose == LOCAL ? &w->a : &w->b;
	uint8_t *gone = gone_region(s);
	struct tp_av av = {.dlid = 2, .port_num = 1};

	for (unsigned i = 1; i <= n; i++) {
		bool hit = i == n;

		if (hit && whose == REMOTE)
			receive_into(&w->b, gone + GONE_PAGE - 20, GONE_KEY, len + 40);
		else
			receive_into(&w->b, w->b.memory, 0x101, len + 40);
		if (hit && whose == LOCAL)
			send_datagram(w, &av, gone + GONE_PAGE, GONE_KEY, len);
		else
			send_datagram(w, &av, w->a.memory, 0x101, len);
		run(w);
		assert_int_equal(take(&w->a).status,
				 hit && whose == LOCAL ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		if (!hit || whose == REMOTE)
			assert_int_equal(take(&w->b).status, IBV_WC_SUCCESS);
		else
			expect_empty(&w->b);
	}
	munmap(gone, GONE_BYTES);
}

static void datagrams(void **state)
{
	static const uint32_t lengths[] = {1, 8, 30, 60, 200, 1024};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		struct joined *j = join_biased_as(IBV_QPT_UD);

		expect_datagram(j->w, i % 2 ? LOCAL : REMOTE, lengths[i / 2], 3);
		part(j);
	}
}

/* --- windows --- */

static void by_a_window(void **state)
{
	static const uint32_t lengths[] = {1, 8, 64, 300, 5000};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		bool is_read = i % 2;
		void *world = NULL;
		struct world *w;
		uint8_t *gone;

		connected_biased(&world);
		w = granted(&world);
		gone = gone_region(&w->a);
		assert_int_equal(post(w, is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				      gone + GONE_PAGE - lengths[i / 2] / 2, GONE_KEY,
				      w->b.memory, KEY, lengths[i / 2]), 0);
		run(w);
		assert_int_equal(take(&w->a).status,
				 is_read ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
		assert_int_equal(eng_window_operations(w->a.engine), is_read);
		munmap(gone, GONE_BYTES);
		teardown(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_packets),
		cmocka_unit_test(by_lanes),
		cmocka_unit_test(the_one_that_is_gone_fails_alone),
		cmocka_unit_test(pages_on_demand_come_and_go),
		cmocka_unit_test(the_implicit_region_is_everything),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(by_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
