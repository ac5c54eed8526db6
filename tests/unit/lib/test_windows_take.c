/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory that peers grant to us, and what they may do to us by it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test.h"
#include "engine/window.h"
#include "soft.h"
#include "windows_private.h"

#define BYTES (64u << 20)

/* --- what others would do --- */

static struct abi_window_page page;
static struct eng_grant granted;

bool eng_window_grant(struct engine *engine, const struct eng_grant *grant)
{
	granted = *grant;
	return true;
}

void eng_window_forget(struct engine *engine, uint32_t peer, uint32_t window)
{
}

const struct abi_window_page *windows_peer_take(struct windows *w, uint32_t id, int fd)
{
	return &page;
}

/* --- */

static struct soft_context ctx;

static off_t bytes_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (off_t)st.st_blocks * 512;
}

static void take(int fd)
{
	struct abi_window_msg g = {.kind = ABI_WINDOW_GRANT, .peer = 3, .window = 1,
				   .length_bytes = BYTES, .access = IBV_ACCESS_REMOTE_WRITE};
	const int fds[2] = {fd, fd};

	INIT_LIST_HEAD(&ctx.windows.mapped);
	ctx.windows.page = &page;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_true(windows_granted(&ctx, &g, fds));
}

/* a page that nobody made would be ours to pay for */
static void holes_are_not_filled(void **state)
{
	int fd = memfd_create("holes", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, "x", 1, 4096), 1);
	take(fd);
	assert_int_equal(bytes_of(fd), 4096);
	granted.base[8192] = 'y'; /* what is used is there */
	assert_int_equal(bytes_of(fd), 2 * 4096);
	windows_forget(&ctx, 3, 1);
	close(fd);
}

static void what_is_there_is_mapped_at_once(void **state)
{
	int fd = memfd_create("whole", MFD_CLOEXEC);
	static char written[1 << 20];
	size_t mapped = 0;
	char line[128];
	FILE *maps;

	for (size_t at = 0; at < BYTES; at += sizeof(written))
		assert_int_equal(write(fd, written, sizeof(written)), sizeof(written));
	take(fd);
	maps = fopen("/proc/self/smaps", "r");
	while (fgets(line, sizeof(line), maps))
		if ((uintptr_t)granted.base == strtoul(line, NULL, 16))
			break;
	while (!mapped && fgets(line, sizeof(line), maps))
		sscanf(line, "Rss: %zu", &mapped);
	fclose(maps);
	assert_int_equal(mapped, BYTES / 1024);
	windows_forget(&ctx, 3, 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_are_not_filled),
		cmocka_unit_test(what_is_there_is_mapped_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
