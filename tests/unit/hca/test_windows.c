/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who is granted a window into whose memory (two_nodes.h): an initiator asks on n1, a target
 * on n2 gives. Each test breaks one condition alone.
 */
#include <sys/mman.h>

#include "abi/fds.h"
#include "abi/window.h"
#include "two_nodes.h"

/** struct heard - a message of softibd's, with its descriptors */
struct heard {
	struct abi_window_msg m;
	int fd[4];
};

/* --- questions and answers --- */

static void say(struct world *w, struct program *p, const struct abi_window_msg *m, int fd)
{
	assert_int_equal(abi_send_fds(p->context->driver_fds[ABI_FD_WINDOWS], m, sizeof(*m), &fd,
				      fd >= 0, MSG_DONTWAIT), 0);
	for (int i = 0; i < 3; i++)
		rt_posix_turn(w->rt);
}

/* Return: its kind; 0: none waits */
static uint32_t hear(struct program *p, struct heard *h)
{
	ssize_t n = abi_receive(p->context->driver_fds[ABI_FD_WINDOWS], &h->m, sizeof(h->m),
				MSG_DONTWAIT, h->fd, ARRAY_SIZE(h->fd));

	return n == (ssize_t)sizeof(h->m) ? h->m.kind : 0;
}

static void forget(struct heard *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(h->fd); i++)
		if (h->fd[i] >= 0)
			close(h->fd[i]);
}

static void ask(struct world *w, uint32_t qpn, const struct ib_mr *mr)
{
	say(w, &w->initiator, &(struct abi_window_msg){.kind = ABI_WINDOW_ASK, .qpn = qpn,
						       .rkey = mr->rkey, .va = mr->iova}, -1);
}

/* Return: what the target is to say, when it gives the whole of @mr */
static struct abi_window_msg asked_for(struct world *w, const struct ib_mr *mr)
{
	struct abi_window_msg give;
	struct heard h;

	ask(w, w->initiator.qp->qp_num, mr);
	assert_int_equal(hear(&w->target, &h), ABI_WINDOW_WANT);
	forget(&h);
	give = h.m;
	assert_int_equal(give.rkey, mr->rkey);
	assert_int_equal(give.qpn, w->target.qp->qp_num);
	give.kind = ABI_WINDOW_GIVE;
	give.va = mr->iova;
	give.length_bytes = REGION_BYTES;
	give.offset = 0;
	give.access = ALL_RIGHTS & ~IB_ACCESS_LOCAL_WRITE;
	return give;
}

static int memory(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && !ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Return: is the initiator granted what @by says, with memory of @bytes and @seals? */
static bool granted(struct world *w, struct program *by, const struct abi_window_msg *m,
		    size_t bytes, int seals)
{
	int fd = memory(bytes, seals);
	uint32_t kind;
	struct heard h;

	say(w, by, m, fd);
	close(fd);
	kind = hear(&w->initiator, &h);
	forget(&h);
	return kind == ABI_WINDOW_GRANT;
}

static void what_is_sound_is_granted(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.mr);
	int fd = memory(REGION_BYTES, F_SEAL_SHRINK);
	struct heard h;

	say(w, &w->target, &give, fd);
	close(fd);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_GRANT);
	assert_int_equal(h.m.qpn, w->initiator.qp->qp_num);
	assert_int_equal(h.m.rkey, w->target.mr->rkey);
	assert_int_equal(h.m.va, w->target.mr->iova);
	assert_int_equal(h.m.length_bytes, REGION_BYTES);
	assert_int_equal(h.m.access, ALL_RIGHTS & ~IB_ACCESS_LOCAL_WRITE);
	assert_int_equal(fcntl(h.fd[0], F_GETFL) & O_ACCMODE, O_RDWR);
	assert_int_equal(fcntl(h.fd[1], F_GETFL) & O_ACCMODE, O_RDONLY); /* the target's page */
	forget(&h);
}

/* whoever has @fd: opened anew by its owner's user, mapped or written */
static void expect_unwritable(int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fchmod(fd, 0600);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0);
	assert_ptr_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
			 MAP_FAILED);
	assert_int_equal(write(again, "x", 1), -1);
	assert_int_equal(fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
			 -1);
	close(again);
}

/* The key's rights are all that there are, and nothing writes by its descriptor. */
static void what_may_be_read_cannot_be_written(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.readable);
	int fd = memory(REGION_BYTES, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE);
	struct heard h;

	say(w, &w->target, &give, fd);
	close(fd);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_GRANT);
	assert_int_equal(h.m.access, IB_ACCESS_REMOTE_READ);
	assert_int_equal(fcntl(h.fd[0], F_GETFL) & O_ACCMODE, O_RDONLY);
	expect_unwritable(h.fd[0]);
	expect_unwritable(h.fd[1]); /* the target's page */
	forget(&h);
	give = asked_for(w, w->target.readable);
	assert_false(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
}

/* Peers see no page that its program has not sealed. */
static void a_page_is_sealed_before_peers_see_it(void **state)
{
	struct program bare = {0};
	struct world *w = *state;

	make_unsealed_program(&bare, w->hca[0]);
	connect_qp(&bare, &w->stranger, 2);
	connect_qp(&w->stranger, &bare, 1);
	say(w, &bare, &(struct abi_window_msg){.kind = ABI_WINDOW_ASK, .qpn = bare.qp->qp_num,
					       .rkey = w->stranger.mr->rkey,
					       .va = w->stranger.mr->iova}, -1);
	assert_int_equal(hear(&w->stranger, &(struct heard){0}), 0);
	assert_int_equal(hear(&bare, &(struct heard){0}), ABI_WINDOW_DENY);
	ib_ucontext_close(bare.context);
}

static void no_window_is_larger_than_its_key(void **state)
{
	static const struct {
		int64_t va, bytes; /* more than those of the key */
	} cases[] = {{-(int64_t)PAGE, 0}, {-(int64_t)PAGE, PAGE}, {0, PAGE}, {PAGE, 0},
		     {REGION_BYTES, 0}};
	struct world *w = *state;
	struct abi_window_msg give;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		give = asked_for(w, w->target.mr);
		give.va += (uint64_t)cases[i].va;
		give.length_bytes += (uint64_t)cases[i].bytes;
		assert_false(granted(w, &w->target, &give, 2 * REGION_BYTES, F_SEAL_SHRINK));
	}
	give = asked_for(w, w->target.mr);
	give.va += PAGE;
	give.length_bytes -= PAGE;
	assert_true(granted(w, &w->target, &give, 2 * REGION_BYTES, F_SEAL_SHRINK));
}

/* Its owner could take memory that is not sealed from under its peers. */
static void a_windows_memory_is_sealed_and_there(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.mr);

	assert_false(granted(w, &w->target, &give, REGION_BYTES, 0));
	give = asked_for(w, w->target.mr);
	assert_false(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_GROW));
	give = asked_for(w, w->target.mr);
	assert_false(granted(w, &w->target, &give, REGION_BYTES - PAGE, F_SEAL_SHRINK));
	give = asked_for(w, w->target.mr);
	give.offset = PAGE;
	assert_false(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
	give = asked_for(w, w->target.mr);
	assert_true(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
}

/* Its owner could make a hole into huge pages, and give the page away: SIGBUS. */
static void a_window_is_no_huge_page(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.mr);
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	struct heard h;

	if (fd < 0)
		skip(); /* a kernel without them */
	assert_true(!ftruncate(fd, 16 << 20) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	say(w, &w->target, &give, fd);
	close(fd);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_DENY);
	forget(&h);
}

/* Nobody is bothered with a question that softibd can answer. */
static void expect_denied_at_once(struct world *w)
{
	struct heard h;

	assert_int_equal(hear(&w->target, &h), 0);
	assert_int_equal(hear(&w->stranger, &h), 0);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_DENY);
	forget(&h);
}

static void a_key_is_of_the_qps_protection_domain(void **state)
{
	struct world *w = *state;

	ask(w, w->initiator.qp->qp_num, w->target.foreign);
	expect_denied_at_once(w);
	ask(w, w->initiator.qp->qp_num, w->stranger.mr);
	expect_denied_at_once(w);
}

static struct ib_mw *make_mw(struct program *p, struct ib_pd *pd)
{
	struct ib_uobject *u = ib_uobject_alloc(p->context, IB_UOBJECT_MW);
	struct ib_mw *mw = ib_alloc_mw_user(u, pd, IB_MW_TYPE_2);

	assert_false(IS_ERR(mw));
	ib_uobject_commit(u, mw);
	return mw;
}

static void ask_by_window(struct world *w, const struct ib_mw *mw)
{
	say(w, &w->initiator, &(struct abi_window_msg){.kind = ABI_WINDOW_ASK,
						       .qpn = w->initiator.qp->qp_num,
						       .rkey = mw->rkey ^ 0x55, .va = 0x1000}, -1);
}

/* The target knows what a memory window is bound to, and by which key; softibd knows whose it is,
 * and what the QP allows. */
static void a_memory_windows_key_is_the_targets_to_know(void **state)
{
	struct world *w = *state;
	struct ib_qp_attr attr = {.qp_access_flags = IB_ACCESS_REMOTE_READ};
	struct heard h;
	int fd;

	ask_by_window(w, make_mw(&w->target, w->target.other_pd));
	expect_denied_at_once(w);
	ask_by_window(w, make_mw(&w->stranger, w->stranger.pd));
	expect_denied_at_once(w);
	assert_int_equal(ib_modify_qp(w->target.qp, &attr, IB_QP_ACCESS_FLAGS), 0);
	ask_by_window(w, make_mw(&w->target, w->target.pd));
	assert_int_equal(hear(&w->target, &h), ABI_WINDOW_WANT);
	forget(&h);
	assert_int_equal(h.m.access, IB_ACCESS_REMOTE_READ);
	h.m.kind = ABI_WINDOW_GIVE;
	h.m.length_bytes = REGION_BYTES;
	h.m.access = ALL_RIGHTS;
	fd = memory(REGION_BYTES, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE);
	say(w, &w->target, &h.m, fd);
	close(fd);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_GRANT);
	forget(&h);
	assert_int_equal(h.m.access, IB_ACCESS_REMOTE_READ);
}

static void a_program_asks_for_its_own_qp(void **state)
{
	struct world *w = *state;
	struct program neighbour = {0};

	make_program(&neighbour, w->hca[0]);
	say(w, &neighbour, &(struct abi_window_msg){.kind = ABI_WINDOW_ASK,
						    .qpn = w->initiator.qp->qp_num,
						    .rkey = w->target.mr->rkey,
						    .va = w->target.mr->iova}, -1);
	assert_int_equal(hear(&w->target, &(struct heard){0}), 0);
	assert_int_equal(hear(&neighbour, &(struct heard){0}), ABI_WINDOW_DENY);
	ib_ucontext_close(neighbour.context);
}

/* The engine performs the RDMA of RC alone by windows. A QP of another type at either end is refused. */
static void other_types_than_rc_have_no_windows(void **state)
{
	static const enum ib_qp_type types[] = {IB_QPT_UC, IB_QPT_XRC_INI, IB_QPT_UD};
	struct world *w = *state;
	struct ib_qp *ends[] = {w->initiator.qp, w->target.qp};

	for (size_t i = 0; i < ARRAY_SIZE(types) * ARRAY_SIZE(ends); i++) {
		struct ib_qp *qp = ends[i % ARRAY_SIZE(ends)];

		qp->qp_type = types[i / ARRAY_SIZE(ends)];
		ask(w, w->initiator.qp->qp_num, w->target.mr);
		qp->qp_type = IB_QPT_RC;
		assert_int_equal(hear(&w->target, &(struct heard){0}), 0);
		assert_int_equal(hear(&w->initiator, &(struct heard){0}), ABI_WINDOW_DENY);
	}
	asked_for(w, w->target.mr);
}

/* The stranger leads its QP to the initiator's, which is the target's peer. */
static void both_qps_are_each_others_peer(void **state)
{
	struct world *w = *state;
	struct heard h;

	connect_qp(&w->stranger, &w->initiator, 1);
	say(w, &w->stranger, &(struct abi_window_msg){.kind = ABI_WINDOW_ASK,
						      .qpn = w->stranger.qp->qp_num,
						      .rkey = w->initiator.mr->rkey,
						      .va = w->initiator.mr->iova}, -1);
	assert_int_equal(hear(&w->initiator, &h), 0);
	assert_int_equal(hear(&w->stranger, &h), ABI_WINDOW_DENY);
}

static void only_who_was_asked_gives(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.mr);

	assert_false(granted(w, &w->stranger, &give, REGION_BYTES, F_SEAL_SHRINK));
	assert_true(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
	assert_false(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK)); /* once */
}

/* A flood of them would fill the initiator's socket. */
static void what_was_not_given_is_not_closed(void **state)
{
	struct world *w = *state;
	struct abi_window_msg give = asked_for(w, w->target.mr);
	struct abi_window_msg close_it = {.kind = ABI_WINDOW_CLOSE, .window = 7};
	struct heard h;

	give.window = 7;
	assert_true(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
	close_it.window = 8;
	for (int i = 0; i < 3; i++)
		say(w, &w->target, &close_it, -1);
	close_it.window = 7;
	say(w, &w->stranger, &close_it, -1); /* it is another's */
	assert_int_equal(hear(&w->initiator, &h), 0);
	say(w, &w->target, &close_it, -1);
	assert_int_equal(hear(&w->initiator, &h), ABI_WINDOW_GONE);
	assert_int_equal(h.m.window, 7);
	say(w, &w->target, &close_it, -1); /* once */
	assert_int_equal(hear(&w->initiator, &h), 0);
	give = asked_for(w, w->target.mr);
	give.window = 9;
	assert_true(granted(w, &w->target, &give, REGION_BYTES, F_SEAL_SHRINK));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_sound_is_granted),
		T(what_may_be_read_cannot_be_written),
		T(no_window_is_larger_than_its_key),
		T(a_windows_memory_is_sealed_and_there),
		T(a_window_is_no_huge_page),
		T(a_page_is_sealed_before_peers_see_it),
		T(a_key_is_of_the_qps_protection_domain),
		T(a_memory_windows_key_is_the_targets_to_know),
		T(a_program_asks_for_its_own_qp),
		T(other_types_than_rc_have_no_windows),
		T(both_qps_are_each_others_peer),
		T(only_who_was_asked_gives),
		T(what_was_not_given_is_not_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
