/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Answers of softibd that the RDMA CM's library keeps: they are given as long as they hold. */
#include "../test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/librdmacm/ahead.h"

#define ID 77

struct fixture {
	struct abi_ahead_page *page; /* as softibd has it */
	struct ahead ahead;
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->fd = memfd_create("page", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f->fd, sizeof(*f->page)), 0);
	f->page = mmap(NULL, sizeof(*f->page), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->page, MAP_FAILED);
	assert_int_equal(ahead_open(&f->ahead, f->fd), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ahead_close(&f->ahead);
	munmap(f->page, sizeof(*f->page));
	close(f->fd);
	free(f);
	return 0;
}

struct given {
	struct abi_ahead head;
	struct abi_ahead_answer first;
	char gid[8];
	struct abi_ahead_answer second;
	char attr[16];
};

static struct given given(uint32_t id, uint32_t changes)
{
	return (struct given){
		.head = {.id = id, .changes = changes},
		.first = {RDMA_USER_CM_CMD_QUERY, RDMA_USER_CM_QUERY_GID, sizeof(((struct given *)0)->gid)},
		.gid = "gid",
		.second = {RDMA_USER_CM_CMD_INIT_QP_ATTR, 2, sizeof(((struct given *)0)->attr)},
		.attr = "attributes",
	};
}

static void is_given(struct fixture *f, uint32_t id)
{
	const struct given g = given(id, abi_ahead_changes(f->page, id));

	ahead_keep(&f->ahead, &g, sizeof(g));
}

static ssize_t asked(struct fixture *f, uint32_t cmd, uint32_t id, uint32_t option, char *to,
		     size_t room)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_query query;
	} q = {{.cmd = cmd, .in = sizeof(q.query)}, {.id = id, .option = option}};

	return ahead_find(&f->ahead, &q.hdr, sizeof(q), to, room);
}

static ssize_t asked_gid(struct fixture *f, uint32_t id)
{
	char to[64];

	return asked(f, RDMA_USER_CM_CMD_QUERY, id, RDMA_USER_CM_QUERY_GID, to, sizeof(to));
}

static void each_answer_is_found(void **state)
{
	struct fixture *f = *state;
	char to[64];

	assert_int_equal(asked_gid(f, ID), -1);
	is_given(f, ID);
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_QUERY, ID, RDMA_USER_CM_QUERY_GID, to, sizeof(to)), 8);
	assert_string_equal(to, "gid");
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_INIT_QP_ATTR, ID, 2, to, sizeof(to)), 16);
	assert_string_equal(to, "attributes");
	/* what was not given: another option, command or id; and there must be room */
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_QUERY, ID, RDMA_USER_CM_QUERY_ADDR, to, sizeof(to)), -1);
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_INIT_QP_ATTR, ID, 3, to, sizeof(to)), -1);
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_CONNECT, ID, RDMA_USER_CM_QUERY_GID, to, sizeof(to)), -1);
	assert_int_equal(asked_gid(f, ID + 1), -1);
	assert_int_equal(asked_gid(f, ID + ABI_AHEAD_COUNTERS), -1);
	assert_int_equal(asked(f, RDMA_USER_CM_CMD_INIT_QP_ATTR, ID, 2, to, 15), -1);
}

static void a_change_ends_the_answers_of_its_id(void **state)
{
	struct fixture *f = *state;

	is_given(f, ID);
	is_given(f, ID + 1);
	atomic_fetch_add(&f->page->changes[ID], 1);
	assert_int_equal(asked_gid(f, ID), -1);
	assert_int_equal(asked_gid(f, ID + 1), 8);
	atomic_fetch_sub(&f->page->changes[ID], 1);
	assert_int_equal(asked_gid(f, ID), -1); /* it has not kept them */
	is_given(f, ID);
	assert_int_equal(asked_gid(f, ID), 8);
	atomic_fetch_add(&f->page->all, 1);
	assert_int_equal(asked_gid(f, ID), -1);
}

/* A command that softibd would not refuse has an answer without a response. */
static void what_softibd_accepts_is_an_answer(void **state)
{
	struct {
		struct abi_ahead head;
		struct abi_ahead_answer connect;
	} g = {{.id = ID}, {RDMA_USER_CM_CMD_CONNECT, 0, 0}};
	struct fixture *f = *state;

	assert_false(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_CONNECT));
	ahead_keep(&f->ahead, &g, sizeof(g));
	assert_true(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_CONNECT));
	assert_false(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_ACCEPT));
	assert_false(ahead_accepts(&f->ahead, ID + 1, RDMA_USER_CM_CMD_CONNECT));
	ahead_drop(&f->ahead, ID + 1);
	assert_true(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_CONNECT));
	ahead_drop(&f->ahead, ID);
	assert_false(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_CONNECT));
	ahead_keep(&f->ahead, &g, sizeof(g));
	atomic_fetch_add(&f->page->changes[ID], 1);
	assert_false(ahead_accepts(&f->ahead, ID, RDMA_USER_CM_CMD_CONNECT));
}

/* before they have come to the program, too */
static void answers_that_come_late_do_not_hold(void **state)
{
	struct fixture *f = *state;
	const struct given g = given(ID, 0);

	atomic_fetch_add(&f->page->changes[ID], 1);
	ahead_keep(&f->ahead, &g, sizeof(g));
	assert_int_equal(asked_gid(f, ID), -1);
}

static void ids_of_one_counter_take_turns(void **state)
{
	struct fixture *f = *state;

	is_given(f, ID);
	is_given(f, ID + ABI_AHEAD_COUNTERS);
	assert_int_equal(asked_gid(f, ID), -1);
	assert_int_equal(asked_gid(f, ID + ABI_AHEAD_COUNTERS), 8);
}

static void lengths_that_make_no_sense_are_no_answers(void **state)
{
	struct fixture *f = *state;
	struct given g = given(ID, 0);

	for (size_t len = 0; len < offsetof(struct given, second); len++) {
		ahead_keep(&f->ahead, &g, len);
		assert_int_equal(asked_gid(f, ID), -1);
	}
	g.first.bytes = UINT32_MAX;
	ahead_keep(&f->ahead, &g, sizeof(g));
	assert_int_equal(asked_gid(f, ID), -1);
}

static void a_page_that_is_too_short_is_none(void **state)
{
	struct fixture *f = *state;
	struct ahead other;

	assert_int_equal(ftruncate(f->fd, sizeof(*f->page) - 1), 0);
	assert_int_equal(ahead_open(&other, f->fd), -EPROTO);
	ahead_close(&other);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(each_answer_is_found),
		CASE(a_change_ends_the_answers_of_its_id),
		CASE(what_softibd_accepts_is_an_answer),
		CASE(answers_that_come_late_do_not_hold),
		CASE(ids_of_one_counter_take_turns),
		CASE(lengths_that_make_no_sense_are_no_answers),
		CASE(a_page_that_is_too_short_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
