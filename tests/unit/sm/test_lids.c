/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The LID cache: what is kept, and what a damaged file does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "sm/lid.h"

static char path[] = "/tmp/softib-lids-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_round_trip(void **state)
{
	struct sm_lids l = {0}, again = {0};
	unsigned int line;

	for (uint64_t g = 1; g <= 500; g++)
		assert_int_equal(sm_lids_put(&l, g * 0x1234567, 8 * g, 3), 0);
	assert_true(l.changed);
	assert_int_equal(sm_lids_save(&l, path), 0);
	assert_false(l.changed);
	assert_int_equal(sm_lids_load(&again, path, &line), 0);
	for (uint64_t g = 1; g <= 500; g++) {
		const struct sm_lid *e = sm_lids_get(&again, g * 0x1234567);

		assert_non_null(e);
		assert_int_equal(e->lid, 8 * g);
		assert_int_equal(e->lmc, 3);
	}
	assert_null(sm_lids_get(&again, 77));
	sm_lids_free(&l);
	sm_lids_free(&again);
}

static void test_comments_and_blank_lines(void **state)
{
	struct sm_lids l = {0};
	unsigned int line;

	write_file("# a comment\n\n  0x10 5 0  # the first\n\t\n0xffffffffffffffff 49151 0\n");
	assert_int_equal(sm_lids_load(&l, path, &line), 0);
	assert_int_equal(sm_lids_get(&l, 0x10)->lid, 5);
	assert_int_equal(sm_lids_get(&l, UINT64_MAX)->lid, 0xbfff);
	sm_lids_free(&l);
}

static void test_bad_lines_are_named(void **state)
{
	static const char *const bad[] = {
		"0x10 5", "0x10 5 0 more", "10 5 0", "0x10 0 0", "0x10 49152 0", "0x0 5 0",
		"0x10 5 1" /* not aligned */, "0x10 49144 4", "0x10 8 8", "nonsense",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct sm_lids l = {0};
		unsigned int line;
		char text[128];

		snprintf(text, sizeof(text), "0x99 3 0\n%s\n", bad[i]);
		write_file(text);
		assert_int_equal(sm_lids_load(&l, path, &line), -EINVAL);
		assert_int_equal(line, 2);
		assert_null(sm_lids_get(&l, 0x99)); /* all or nothing */
		sm_lids_free(&l);
	}
}

static void test_no_file_is_no_error(void **state)
{
	struct sm_lids l = {0};
	unsigned int line;

	unlink(path);
	assert_int_equal(sm_lids_load(&l, path, &line), 0);
	assert_int_equal(sm_lids_load(&l, "/", &line), -EIO);
	assert_int_equal(sm_lids_save(&l, "/nonexistent/dir/lids"), -ENOENT);
	sm_lids_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_comments_and_blank_lines),
		cmocka_unit_test(test_bad_lines_are_named),
		cmocka_unit_test(test_no_file_is_no_error),
	};
	int n;

	close(mkstemp(path));
	n = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return n;
}
