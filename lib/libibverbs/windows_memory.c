/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pages change what lies behind them while the program uses them: private
 * memory becomes a memfd's, and back. Chunk by chunk, each in four steps:
 *
 *   1. the chunk's new pages are made, at another address
 *   2. writers of the old ones are held off: userfaultfd(2) write-protects
 *      them, and whoever writes, thread or system call, waits
 *   3. the contents are copied, and mremap(2) puts the new pages in the place
 *      of the old ones at one stroke
 *   4. who waits is woken, and writes again, to the new pages
 *
 * Readers are never held off. A chunk is small, so that a hold is some ten
 * microseconds. System calls are made by syscall(2): a program, or UCX, may
 * have put itself in the place of mremap() and mmap() to learn what memory
 * goes, and here none does.
 *
 * What is not held off is a device that writes by itself: direct I/O or
 * io_uring buffers under way to these very pages when they move. Contents
 * that it delivers later go to the old pages.
 */
#include "windows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/types.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define HUGE_BYTES  ((size_t)2 << 20)
/* a program may mremap() its memory to more: zeros, as ever, and no SIGBUS */
#define FILE_BYTES ((off_t)1 << 44)

#ifndef UFFD_FEATURE_WP_UNPOPULATED /* Linux 6.4 */
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#define NEEDED (UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

static pthread_mutex_t userfault_lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by userfault_lock until asked is set, constant then --- */
static int userfault = -1;
static bool asked, holes_too; /* pages that are not there are protected as well */

/* --- holding off writers --- */

static int open_userfault(uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);

		fd = dev < 0 ? -1
			     : ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
		if (dev >= 0)
			close(dev);
	}
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool memory_can_move(void)
{
	pthread_mutex_lock(&userfault_lock);
	if (!asked) {
		userfault = open_userfault(NEEDED | UFFD_FEATURE_WP_UNPOPULATED);
		holes_too = userfault >= 0;
		if (!holes_too)
			userfault = open_userfault(NEEDED);
	}
	asked = true;
	pthread_mutex_unlock(&userfault_lock);
	return userfault >= 0;
}

static bool watch_writers(char *addr, size_t bytes)
{
	struct uffdio_register r = {.range = {(uintptr_t)addr, bytes},
				    .mode = UFFDIO_REGISTER_MODE_WP};

	return ioctl(userfault, UFFDIO_REGISTER, &r) == 0;
}

static void unwatch_writers(char *addr, size_t bytes)
{
	struct uffdio_range r = {(uintptr_t)addr, bytes};

	ioctl(userfault, UFFDIO_UNREGISTER, &r);
}

static bool hold_writers(char *addr, size_t bytes, bool on)
{
	struct uffdio_writeprotect wp = {.range = {(uintptr_t)addr, bytes},
					 .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
	int rc;

	do
		rc = ioctl(userfault, UFFDIO_WRITEPROTECT, &wp);
	while (rc < 0 && errno == EAGAIN);
	return rc == 0;
}

static void wake_writers(char *addr, size_t bytes)
{
	struct uffdio_range r = {(uintptr_t)addr, bytes};

	ioctl(userfault, UFFDIO_WAKE, &r);
}

/* --- changing pages --- */

static bool populate(char *addr, size_t bytes, int how)
{
	int rc;

	do
		rc = madvise(addr, bytes, how);
	while (rc < 0 && (errno == EINTR || errno == EAGAIN));
	return rc == 0;
}

static bool put(char *fresh, char *addr, size_t bytes)
{
	return (char *)syscall(SYS_mremap, fresh, bytes, bytes,
			       MREMAP_MAYMOVE | MREMAP_FIXED, addr) == addr;
}

static bool replace_chunk(char *addr, char *fresh, size_t bytes)
{
	if (!populate(fresh, bytes, MADV_POPULATE_WRITE) ||
	    (!holes_too && !populate(addr, bytes, MADV_POPULATE_READ)) ||
	    !hold_writers(addr, bytes, true))
		return false;
	memcpy(fresh, addr, bytes);
	if (put(fresh, addr, bytes)) {
		wake_writers(addr, bytes);
		return true;
	}
	hold_writers(addr, bytes, false);
	return false;
}

/* up to the next chunk's limit: a huge page is one chunk */
static size_t chunk_at(const char *addr, size_t left)
{
	size_t chunk = CHUNK_BYTES;

	if (!((uintptr_t)addr % HUGE_BYTES) && left >= HUGE_BYTES)
		chunk = HUGE_BYTES;
	else
		chunk -= (uintptr_t)addr % CHUNK_BYTES;
	return MIN(chunk, left);
}

/* @fresh takes the place of @addr. Return: how many bytes did */
static size_t replace(char *addr, char *fresh, size_t bytes)
{
	size_t done = 0, n;

	if (watch_writers(addr, bytes)) {
		for (; done < bytes; done += n) {
			n = chunk_at(addr + done, bytes - done);
			if (!replace_chunk(addr + done, fresh + done, n))
				break;
		}
		if (done < bytes)
			unwatch_writers(addr + done, bytes - done);
	}
	if (done < bytes)
		syscall(SYS_munmap, fresh + done, bytes - done);
	return done;
}

/* room for @bytes at an address that lies to huge pages as @addr does */
static char *reserve_like(const char *addr, size_t bytes)
{
	size_t skip;
	char *room = (char *)syscall(SYS_mmap, NULL, bytes + HUGE_BYTES, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	skip = ((uintptr_t)addr - (uintptr_t)room) % HUGE_BYTES;
	if (skip)
		syscall(SYS_munmap, room, skip);
	if (skip < HUGE_BYTES)
		syscall(SYS_munmap, room + skip + bytes, HUGE_BYTES - skip);
	return room + skip;
}

static bool map_at(char *at, size_t bytes, int flags, int fd, off_t offset)
{
	if ((char *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
			    flags | MAP_FIXED, fd, offset) == at)
		return true;
	syscall(SYS_munmap, at, bytes);
	return false;
}

/* --- the memfd --- */

static int make_file(struct extent *x)
{
	struct stat st;

	x->memfd = memfd_create("softib-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (x->memfd < 0)
		return -errno;
	x->offset = (off_t)((uintptr_t)x->addr % HUGE_BYTES);
	/* nobody opens it anew, and who has it cannot take pages from us */
	if (ftruncate(x->memfd, FILE_BYTES) || fchmod(x->memfd, 0400) ||
	    fstat(x->memfd, &st) ||
	    fcntl(x->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int err = errno;

		close(x->memfd);
		return -err;
	}
	x->dev = st.st_dev;
	x->inode = st.st_ino;
	return 0;
}

int memory_move_out(struct extent *x)
{
	char *fresh;
	int rc = make_file(x);

	if (rc)
		return rc;
	fresh = reserve_like(x->addr, x->bytes);
	if (fresh && map_at(fresh, x->bytes, MAP_SHARED, x->memfd, x->offset)) {
		madvise(fresh, x->bytes, MADV_HUGEPAGE);
		x->bytes = replace(x->addr, fresh, x->bytes);
		if (x->bytes)
			return 0;
	}
	close(x->memfd);
	return -ENOMEM;
}

static bool is_of(const struct extent *x, const struct area *a)
{
	return a->inode == x->inode && a->dev == x->dev;
}

/* what is left of the extent in the program, piece by piece from *@at */
static bool next_piece(const struct extent *x, char **at, char **end)
{
	struct area a;

	for (; *at < x->addr + x->bytes; *at = a.end) {
		if (!memory_area_at(*at, &a)) { /* a hole: page by page, it is rare */
			a.end = *at + sysconf(_SC_PAGESIZE);
			continue;
		}
		*end = MIN(a.end, x->addr + x->bytes);
		if (is_of(x, &a))
			return true;
	}
	return false;
}

void memory_take_back(struct extent *x)
{
	char *at, *end, *fresh;

	for (at = x->addr; next_piece(x, &at, &end); at = end) {
		size_t bytes = (size_t)(end - at);

		fresh = reserve_like(at, bytes);
		if (fresh && map_at(fresh, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
			replace(at, fresh, bytes);
	}
	close(x->memfd);
}

void memory_copy_for_child(struct extent *x)
{
	char *at, *end, *fresh;

	for (at = x->addr; next_piece(x, &at, &end); at = end) {
		size_t bytes = (size_t)(end - at);

		fresh = reserve_like(at, bytes);
		if (!fresh || !map_at(fresh, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
			continue;
		memcpy(fresh, at, bytes);
		put(fresh, at, bytes);
	}
	close(x->memfd);
	if (userfault >= 0)
		close(userfault); /* it is the parent's memory that it watches */
	userfault = -1;
	asked = false;
}

/* --- /proc/self/maps --- */

static bool parse(const char *line, struct area *a)
{
	unsigned long start, end, inode;
	unsigned long long offset;
	unsigned major, minor;
	char rights[5];

	if (sscanf(line, "%lx-%lx %4s %llx %x:%x %lu", &start, &end, rights, &offset,
		   &major, &minor, &inode) != 7)
		return false;
	*a = (struct area){
		.start = (char *)start,
		.end = (char *)end,
		.offset = (off_t)offset,
		.dev = makedev(major, minor),
		.inode = inode,
		/* the main stack grows by itself, and only as a stack */
		.movable = !strcmp(rights, "rw-p") && !inode && !strstr(line, "[stack]"),
	};
	return true;
}

bool memory_area_at(const char *addr, struct area *area)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!maps)
		return false;
	while (!found && getline(&line, &room, maps) > 0)
		found = parse(line, area) && addr >= area->start && addr < area->end;
	free(line);
	fclose(maps);
	return found;
}
