/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Find out from /proc/self/maps what is mapped at an address of this process. To open that
 * file takes longer than a query, so it stays open. It describes the process that opened it,
 * so that a forked child needs to open its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "windows_memory.h"

/* as /proc shows it */
#define OUR_NAME "/memfd:" MEMORY_NAME

/** struct query - the argument of PROCMAP_QUERY (Linux 6.11), which returns one mapping for the
 *  cost of one line of the text. It is declared here because the headers may be older than the
 *  kernel */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, rights, page_bytes, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
enum { QUERY_READ = 1, QUERY_WRITE = 2, QUERY_EXEC = 4, QUERY_SHARED = 8 };

/* The program's private memory can move: it is anonymous, or a private mapping of a memfd of
 * ours, which make_private() left. The main stack cannot, because the kernel extends it only
 * while its mapping is that of a stack. */
static bool is_movable(const struct area *a, bool shared, const char *name)
{
	return !shared && a->prot == (PROT_READ | PROT_WRITE) && strcmp(name, "[stack]") != 0 &&
	       (!a->inode || !strncmp(name, OUR_NAME, strlen(OUR_NAME)));
}

/* Return: 1: @a is the mapping that contains @addr; 0: nothing is mapped there; -1: the kernel
 * has no PROCMAP_QUERY, or the query failed */
static int ask(int maps, const char *addr, struct area *a)
{
	char name[PATH_MAX] = "";
	struct query q = {.size = sizeof(q),
			  .addr = (uintptr_t)addr,
			  .name_bytes = sizeof(name),
			  .name = (uintptr_t)name};

	if (ioctl(maps, QUERY, &q))
		return errno == ENOENT ? 0 : -1;
	*a = (struct area){
		.start = (char *)(uintptr_t)q.start,
		.end = (char *)(uintptr_t)q.end,
		.offset = (off_t)q.offset,
		.dev = makedev(q.dev_major, q.dev_minor),
		.inode = q.inode,
		.prot = (q.rights & QUERY_READ ? PROT_READ : 0) |
			(q.rights & QUERY_WRITE ? PROT_WRITE : 0) |
			(q.rights & QUERY_EXEC ? PROT_EXEC : 0),
	};
	a->movable = is_movable(a, q.rights & QUERY_SHARED, name);
	return 1;
}

static bool parse(const char *line, struct area *a)
{
	unsigned long start, end, inode;
	unsigned long long offset;
	unsigned major, minor;
	char rights[5], name[sizeof(OUR_NAME)] = "";

	if (sscanf(line, "%lx-%lx %4s %llx %x:%x %lu %20s", &start, &end, rights, &offset,
		   &major, &minor, &inode, name) < 7)
		return false;
	*a = (struct area){
		.start = (char *)start,
		.end = (char *)end,
		.offset = (off_t)offset,
		.dev = makedev(major, minor),
		.inode = inode,
		.prot = (rights[0] == 'r' ? PROT_READ : 0) |
			(rights[1] == 'w' ? PROT_WRITE : 0) |
			(rights[2] == 'x' ? PROT_EXEC : 0),
	};
	a->movable = is_movable(a, rights[3] == 's', name);
	return true;
}

static bool read_text(int fd, const char *addr, struct area *a)
{
	FILE *maps = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!maps) {
		close(fd);
		return false;
	}
	while (!found && getline(&line, &room, maps) > 0)
		found = parse(line, a) && addr >= a->start && addr < a->end;
	free(line);
	fclose(maps);
	return found;
}

/** union opened - the descriptor of the file, and the process that opened it */
union opened {
	struct {
		int fd;
		pid_t of;
	};
	uint64_t both;
};

static _Atomic uint64_t kept; /* union opened; 0: none */

/* The descriptor is not closed: the program may have closed it already and have used its number
 * for another file. */
void memory_areas_forget(void)
{
	atomic_store(&kept, 0);
}

/* Return: what ask() returns; also -1 if this process has not opened the file, or if the program
 * has closed it and may have used the number for another file */
static int ask_kept(uint64_t both, const char *addr, struct area *area)
{
	union opened maps = {.both = both};

	return maps.of && maps.of == getpid() ? ask(maps.fd, addr, area) : -1;
}

/* Keep the file open for later, unless another thread has opened one meanwhile. */
static void keep(int fd, uint64_t before)
{
	union opened maps = {.fd = fd, .of = getpid()};

	if (!atomic_compare_exchange_strong(&kept, &before, maps.both))
		close(fd);
}

bool memory_area_at(const char *addr, struct area *area)
{
	uint64_t before = atomic_load(&kept);
	int answer = ask_kept(before, addr, area), fd;

	if (answer >= 0)
		return answer;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	answer = ask(fd, addr, area);
	if (answer < 0)
		return read_text(fd, addr, area);
	keep(fd, before);
	return answer;
}
