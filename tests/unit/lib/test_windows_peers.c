/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How long a target waits for peers that are inside of its memory. Each look at the clock
 * takes a millisecond. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../test.h"
#include "soft.h"
#include "windows_private.h"

#define SELF 9u

static mono_t now = {NSEC_PER_SEC};

mono_t progress_now(void *unused)
{
	now.ns += NSEC_PER_MSEC;
	return now;
}

static struct windows w;
static struct abi_window_page *page[2];

static int setup(void **state)
{
	w = (struct windows){.self = SELF};
	pthread_mutex_init(&w.peers_lock, NULL);
	INIT_LIST_HEAD(&w.peers);
	for (uint32_t i = 0; i < 2; i++) {
		int fd = memfd_create("page", MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, sizeof(*page[i])), 0);
		page[i] = mmap(NULL, sizeof(*page[i]), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_non_null(windows_peer_take(&w, 10 + i, fd));
		close(fd);
	}
	return 0;
}

static int teardown(void **state)
{
	windows_peers_gone(&w);
	for (int i = 0; i < 2; i++)
		munmap(page[i], sizeof(*page[i]));
	return 0;
}

/* Return: milliseconds that it takes until nobody is waited for */
static uint64_t wait_ms(bool all_left)
{
	uint64_t start = now.ns;

	assert_int_equal(windows_sections_end(&w), all_left);
	return (now.ns - start) / NSEC_PER_MSEC;
}

static void nobody_inside_is_not_waited_for(void **state)
{
	atomic_store(&page[0]->section, SELF + 1); /* in another's memory */
	assert_in_range(wait_ms(true), 1, 3);
}

static void a_peer_that_never_leaves_costs_little(void **state)
{
	uint64_t all = 0;

	atomic_store(&page[0]->section, SELF);
	assert_in_range(wait_ms(false), 20, 25); /* it may have lost its core */
	for (int i = 0; i < 1000; i++)
		all += wait_ms(false);
	assert_in_range(all, 80, 80 + 1000 * 3); /* no wait, but for the looks at the clock */
	assert_in_range(wait_ms(false), 1, 3);
	atomic_store(&page[1]->section, SELF); /* another one is waited for */
	assert_in_range(wait_ms(false), 20, 25);
	atomic_store(&page[1]->section, 0);
	now.ns += 3 * NSEC_PER_SEC; /* the allowance has grown again */
	assert_in_range(wait_ms(false), 20, 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_inside_is_not_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_never_leaves_costs_little, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
