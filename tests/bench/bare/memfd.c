/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving a program's pages under a memfd where they stand, which is what makes
 * memory a window: a new file, its pages filled from the old ones, and the
 * file mapped over them. By a mapping of the file or by write(). After a sleep,
 * as a registration comes after something else: what the kernel needs for
 * it is in no cache, and a move of 4 KiB takes twice as long.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bare.h"

#define BATCHES 15
#define SLEEP_US 1000

enum { BY_MAPPING, BY_WRITE };

static void fill_mapped(int fd, const void *from, size_t size)
{
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			0);

	measure_check(to != MAP_FAILED, "mmap");
	memcpy(to, from, size);
	munmap(to, size);
}

static void fill_written(int fd, const char *from, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, from + done, size - done);

		measure_check(n > 0, "write");
		done += (size_t)n;
	}
}

static void move_pages(char *pages, size_t size, unsigned how)
{
	int fd = memfd_create("bare", MFD_CLOEXEC);

	measure_check(fd >= 0 && !ftruncate(fd, (off_t)size), "memfd_create");
	if (how == BY_MAPPING)
		fill_mapped(fd, pages, size);
	else
		fill_written(fd, pages, size);
	measure_check(mmap(pages, size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == pages,
		      "mmap");
	close(fd);
}

static double move(const struct bare_test *t)
{
	double us[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		char *pages = bare_alloc(t->size);
		uint64_t start;

		memset(pages, 1, t->size);
		usleep(SLEEP_US);
		start = measure_now_ns();
		move_pages(pages, t->size, t->option);
		us[b] = (double)(measure_now_ns() - start) / 1e3;
		munmap(pages, t->size);
	}
	return measure_median(us, BATCHES);
}

const struct bare_test memfd_tests[] = {
	{"memfd_map_4096", "us", move, 4096, BY_MAPPING},
	{"memfd_map_1048576", "us", move, 1u << 20, BY_MAPPING},
	{"memfd_map_16777216", "us", move, 16u << 20, BY_MAPPING},
	{"memfd_write_4096", "us", move, 4096, BY_WRITE},
	{"memfd_write_1048576", "us", move, 1u << 20, BY_WRITE},
	{"memfd_write_16777216", "us", move, 16u << 20, BY_WRITE},
	{},
};
