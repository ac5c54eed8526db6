/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of descriptors that are connections whose shared memory this process has mapped. An entry is
 * only a hint, because a descriptor may be closed, replaced or duplicated without this library.
 * sdp_memory_is_of() checks it before the memory is used. A descriptor without an entry is used as an
 * ordinary socket.
 *
 * A thread increments the place's count of users before it looks up the entry. A thread that removes
 * an entry from the table frees it only if the count is zero then; otherwise the entry is kept for
 * ever.
 *
 * Memory order. Each of the two threads changes one word and then reads the other's:
 *
 *   user      users++;          then look: memory?
 *   remover   memory = other;   then look: users?
 *
 * All four accesses are sequentially consistent. So the remover sees the user, and keeps the entry,
 * or the user sees that the entry is gone. With less, both could read what was there before, and
 * the entry would be freed under its user. sdp_memory_leave() releases what the user has done, and
 * the remover's look acquires it before it frees. Exchanging the pointer releases the contents of a
 * new entry to those who find it. The look before all this, with relaxed order, keeps descriptors
 * that are no connections cheap; that it may be out of date is what the table's being a hint
 * allows. The words in the shared memory itself (error, resets, keep) stand alone: each is all
 * that it tells. tests/unit/lib/test_litmus.c plays user and remover on a simulated processor with
 * a weak order.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdp_private.h"

#define FDS_MAX	  65536
#define ERRNO_MAX 4095

static struct place {
	_Atomic(struct sdp_memory *) memory;
	_Atomic unsigned int users;
} table[FDS_MAX];
/* Entries that were in use when they left the table. Nobody reads the list: it shows tools that look
 * for leaks that the memory is not lost */
static _Atomic(struct sdp_memory *) kept;

struct sdp_memory *sdp_memory_enter(int fd)
{
	struct sdp_memory *m;

	if (fd < 0 || fd >= FDS_MAX ||
	    !atomic_load_explicit(&table[fd].memory, memory_order_relaxed))
		return NULL;
	atomic_fetch_add(&table[fd].users, 1);
	m = atomic_load(&table[fd].memory);
	if (!m)
		sdp_memory_leave(fd);
	return m;
}

void sdp_memory_leave(int fd)
{
	const int error = errno;

	atomic_fetch_sub_explicit(&table[fd].users, 1, memory_order_release);
	errno = error;
}

static bool identify(int fd, struct sdp_memory *m)
{
	struct stat it;

	if (fstat(fd, &it))
		return false;
	m->device = it.st_dev;
	m->inode = it.st_ino;
	return true;
}

bool sdp_memory_is_of(const struct sdp_memory *m, int fd)
{
	struct sdp_memory it;
	const int error = errno;

	if (identify(fd, &it) && it.inode == m->inode && it.device == m->device)
		return true;
	errno = error;
	return false;
}

/* @take: the error is reported with this. Return: the word in which softibd has put it */
static uint32_t error_of(int fd, bool take)
{
	struct sdp_memory *m = sdp_memory_enter(fd);
	_Atomic uint32_t *word;
	uint32_t error = 0;

	if (!m)
		return 0;
	word = &m->memory->half[m->side].error;
	if (atomic_load(word) && sdp_memory_is_of(m, fd))
		error = take ? atomic_exchange(word, 0) : atomic_load(word);
	sdp_memory_leave(fd);
	return error;
}

int sdp_memory_take_error(int fd)
{
	const uint32_t error = error_of(fd, true);

	return error > ERRNO_MAX ? ECONNRESET : (int)error; /* the peer can write to this memory */
}

bool sdp_memory_has_error(int fd)
{
	return error_of(fd, false) != 0;
}

void sdp_memory_note_linger(int fd)
{
	struct sdp_memory *m = sdp_memory_enter(fd);
	struct linger linger = {0};
	socklen_t len = sizeof(linger);

	if (!m)
		return;
	if (sdp_memory_is_of(m, fd) &&
	    !sdp_libc.getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len))
		atomic_store(&m->memory->half[m->side].resets,
			     linger.l_onoff && !linger.l_linger);
	sdp_memory_leave(fd);
}

void sdp_memory_set_keep(int fd, enum sdp_keep which, uint32_t value)
{
	struct sdp_memory *m = sdp_memory_enter(fd);

	if (!m)
		return;
	if (sdp_memory_is_of(m, fd))
		atomic_store(&m->memory->half[m->side].keep[which], value);
	sdp_memory_leave(fd);
}

uint32_t sdp_memory_keep_of(int fd, enum sdp_keep which)
{
	struct sdp_memory *m = sdp_memory_enter(fd);
	uint32_t value = 0;

	if (!m)
		return 0;
	if (sdp_memory_is_of(m, fd))
		value = atomic_load(&m->memory->half[m->side].keep[which]);
	sdp_memory_leave(fd);
	return value;
}

static void replace(int fd, struct sdp_memory *m)
{
	struct sdp_memory *old = atomic_exchange(&table[fd].memory, m);

	if (!old)
		return;
	if (atomic_load(&table[fd].users)) {
		old->next_kept = atomic_load(&kept);
		while (!atomic_compare_exchange_weak(&kept, &old->next_kept, old))
			;
		return;
	}
	munmap(old->memory, sizeof(*old->memory));
	free(old);
}

void sdp_memory_forget(int fd)
{
	if (fd >= 0 && fd < FDS_MAX && atomic_load_explicit(&table[fd].memory, memory_order_relaxed))
		replace(fd, NULL);
}

void sdp_memory_keep(int fd, int memory_fd, int side)
{
	struct sdp_memory *m = NULL;
	void *at = MAP_FAILED;
	struct stat it;

	if (memory_fd < 0)
		return;
	if (fd < FDS_MAX && !fstat(memory_fd, &it) && it.st_size == sizeof(struct abi_sdp_memory))
		at = mmap(NULL, sizeof(struct abi_sdp_memory), PROT_READ | PROT_WRITE, MAP_SHARED,
			  memory_fd, 0);
	close(memory_fd);
	if (at != MAP_FAILED)
		m = calloc(1, sizeof(*m));
	if (!m || !identify(fd, m)) {
		if (at != MAP_FAILED)
			munmap(at, sizeof(struct abi_sdp_memory));
		free(m);
		return;
	}
	m->memory = at;
	m->side = side;
	replace(fd, m);
	sdp_memory_note_linger(fd);
}
