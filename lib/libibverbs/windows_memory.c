/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pages change what lies behind them while the program uses them: private
 * memory becomes a memfd's, and back. By replace(), chunk by chunk, each in
 * four steps:
 *
 *   1. the chunk's new pages are made: at another address, or by step 3
 *   2. writers of the old ones are held off: userfaultfd(2) write-protects
 *      them, and whoever writes, thread or system call, waits
 *   3. the contents are copied, and mremap(2) or mmap(2) puts the new pages in
 *      the place of the old ones at one stroke
 *   4. who waits is woken, and writes again, to the new pages
 *
 * Readers are never held off. A chunk is small, so that a hold is some tens
 * of microseconds. System calls are made by syscall(2): a program, or UCX, may
 * have put itself in the place of mremap() and mmap() to learn what memory
 * goes, and here none does.
 *
 * Without privileges userfaultfd(2) holds off threads only: a system call that
 * writes would fail with EFAULT. So then replace() works while the program has
 * one thread, and that is here: there is no such system call. Taking back is
 * always possible by make_private(), where the kernel copies page by page as
 * it does after fork(), and nobody waits; but the mapping that is left is a
 * file's still.
 *
 * What is not held off is a device that writes by itself: direct I/O or
 * io_uring buffers under way to these very pages when they move. Contents
 * that it delivers later go to the old pages.
 */
#include "windows_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/types.h"
#include "windows_hold.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define HUGE_BYTES  ((size_t)2 << 20)
#define STACK_BELOW ((size_t)64 << 10) /* for what is called from here */
#define STACK_ABOVE ((size_t)4 << 10)
/* a program may mremap() its memory to more: zeros, as ever, and no SIGBUS */
#define FILE_BYTES ((off_t)1 << 44)

/* --- changing pages --- */

static bool populate(char *addr, size_t bytes, int how)
{
	int rc;

	do
		rc = madvise(addr, bytes, how);
	while (rc < 0 && (errno == EINTR || errno == EAGAIN));
	return rc == 0;
}

/** struct move - other pages take the place of those at @addr */
struct move {
	char *addr;
	size_t bytes;
	char *fresh; /* they wait here; NULL: they are made by writing to the file */
	int file;
	off_t offset;
};

static bool copy(const struct move *m, size_t at, size_t bytes)
{
	size_t done = 0;

	if (m->fresh) {
		memcpy(m->fresh + at, m->addr + at, bytes);
		return true;
	}
	while (done < bytes) {
		ssize_t n = syscall(SYS_pwrite64, m->file, m->addr + at + done, bytes - done,
				    m->offset + (off_t)(at + done));

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* To ThreadSanitizer, who knows nothing of how writers are held off, what is
 * copied is written meanwhile: it would look at each word, and hold them for
 * seconds. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#else
static void AnnotateIgnoreReadsBegin(const char *file, int line)
{
}

static void AnnotateIgnoreReadsEnd(const char *file, int line)
{
}
#endif

static bool fill(const struct move *m, size_t at, size_t bytes)
{
	bool copied;

	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	copied = copy(m, at, bytes);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
	return copied;
}

static bool put(char *fresh, char *addr, size_t bytes)
{
	return (char *)syscall(SYS_mremap, fresh, bytes, bytes,
			       MREMAP_MAYMOVE | MREMAP_FIXED, addr) == addr;
}

static bool map_here(char *addr, size_t bytes, int flags, int file, off_t offset)
{
	return (char *)syscall(SYS_mmap, addr, bytes, PROT_READ | PROT_WRITE,
			       flags | MAP_FIXED, file, offset) == addr;
}

static bool exchange(const struct move *m, size_t at, size_t bytes)
{
	if (m->fresh)
		return put(m->fresh + at, m->addr + at, bytes);
	return map_here(m->addr + at, bytes, MAP_SHARED | MAP_POPULATE, m->file,
			m->offset + (off_t)at);
}

static bool replace_chunk(const struct move *m, size_t at, size_t bytes)
{
	char *addr = m->addr + at;

	if ((m->fresh && !populate(m->fresh + at, bytes, MADV_POPULATE_WRITE)) ||
	    (writers_miss_holes() && !populate(addr, bytes, MADV_POPULATE_READ)) ||
	    !writers_hold(addr, bytes, true))
		return false;
	if (fill(m, at, bytes) && exchange(m, at, bytes)) {
		writers_wake(addr, bytes);
		return true;
	}
	writers_hold(addr, bytes, false);
	return false;
}

/* up to the next chunk's limit: a huge page is one chunk */
static size_t chunk_at(const struct move *m, size_t at)
{
	size_t chunk = CHUNK_BYTES, left = m->bytes - at;
	uintptr_t addr = (uintptr_t)m->addr + at;

	if (m->fresh && !(addr % HUGE_BYTES) && left >= HUGE_BYTES)
		chunk = HUGE_BYTES;
	else
		chunk -= addr % CHUNK_BYTES;
	return MIN(chunk, left);
}

/* Who holds off writers must not be one: it would wait for itself. Its frames
 * are around this one, on a stack that may be anywhere. */
static bool is_my_stack(const char *addr, size_t bytes)
{
	const char *here = __builtin_frame_address(0);

	return here + STACK_ABOVE > addr && here - STACK_BELOW < addr + bytes;
}

/* Return: how many bytes are in their place */
static size_t replace(const struct move *m)
{
	size_t done = 0, n;
	sigset_t all, old;

	sigfillset(&all); /* a handler may write, and would wait for us */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!is_my_stack(m->addr, m->bytes) && writers_watch(m->addr, m->bytes)) {
		for (; done < m->bytes; done += n) {
			n = chunk_at(m, done);
			if (!replace_chunk(m, done, n))
				break;
		}
		if (done < m->bytes)
			writers_unwatch(m->addr + done, m->bytes - done);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (m->fresh && done < m->bytes)
		syscall(SYS_munmap, m->fresh + done, m->bytes - done);
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

/* Pages to take the place of those at @addr. Return: where they wait; NULL */
static char *map_fresh(const char *addr, size_t bytes, int flags, int fd, off_t offset)
{
	char *room = NULL, *fresh;

	if (bytes >= HUGE_BYTES) {
		room = reserve_like(addr, bytes);
		if (!room)
			return NULL;
		flags |= MAP_FIXED;
	}
	fresh = (char *)syscall(SYS_mmap, room, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
	if (fresh != MAP_FAILED)
		return fresh;
	if (room)
		syscall(SYS_munmap, room, bytes);
	return NULL;
}

/* --- the memfd --- */

/* a file beyond the limit would be the end of the program: SIGXFSZ */
static bool may_be_long(void)
{
	struct rlimit most;

	return !getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur >= (rlim_t)FILE_BYTES;
}

static int make_file(struct extent *x)
{
	struct stat st;

	x->memfd = memfd_create(MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (x->memfd < 0)
		return -errno;
	/* who has it cannot take pages from us; memory_seal() does the rest */
	if (ftruncate(x->memfd, FILE_BYTES) || fstat(x->memfd, &st) ||
	    fcntl(x->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		int err = errno;

		close(x->memfd);
		return -err;
	}
	x->dev = st.st_dev;
	x->inode = st.st_ino;
	return 0;
}

/* and still has it: the program may have closed what was made some time ago, and the
 * number be another file's */
static bool has_file(const struct extent *x)
{
	struct stat st;

	return x->inode && !fstat(x->memfd, &st) && st.st_ino == x->inode &&
	       st.st_dev == x->dev;
}

int memory_make_file(struct extent *x)
{
	if (!may_be_long())
		return -EFBIG;
	return has_file(x) ? 0 : make_file(x);
}

void memory_drop_file(struct extent *x)
{
	if (has_file(x))
		close(x->memfd);
	x->inode = 0;
}

/* a lock would be lost: what is locked stays. msync(2) tells, and does nothing */
static bool is_locked(char *addr, size_t bytes)
{
	return syscall(SYS_msync, addr, bytes, MS_INVALIDATE) < 0;
}

/* pages of memfds are huge where a mapping advises it */
static bool huge_on_advice(void)
{
	int fd = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(text, "[advise]");
}

static int move_into_file(struct extent *x)
{
	struct move m = {.addr = x->addr, .bytes = x->bytes, .file = x->memfd};
	bool huge = x->bytes >= HUGE_BYTES && huge_on_advice();

	/* a file's first page is the cheapest; huge pages lie as memory does */
	x->offset = x->bytes < HUGE_BYTES ? 0 : (off_t)((uintptr_t)x->addr % HUGE_BYTES);
	m.offset = x->offset;
	if (huge) { /* only a mapping can advise */
		m.fresh = map_fresh(x->addr, x->bytes, MAP_SHARED, x->memfd, x->offset);
		if (m.fresh)
			madvise(m.fresh, x->bytes, MADV_HUGEPAGE);
	}
	x->bytes = replace(&m);
	return x->bytes ? 0 : -ENOMEM;
}

int memory_move_out(struct extent *x)
{
	int rc = is_locked(x->addr, x->bytes) ? -EBUSY : memory_make_file(x);

	if (!rc)
		rc = move_into_file(x);
	if (rc)
		memory_drop_file(x);
	return rc;
}

/* The file's mode keeps nobody out who is the same user, who may change it, or root.
 * This seal does, and leaves our mapping as it is, since that was there before it. */
bool memory_seal(struct extent *x, bool read_only)
{
	if (x->sealed)
		return x->read_only == read_only;
	if (fcntl(x->memfd, F_ADD_SEALS,
		  F_SEAL_SEAL | (read_only ? F_SEAL_FUTURE_WRITE : 0)))
		return false;
	x->sealed = true;
	x->read_only = read_only;
	return true;
}

static bool is_of(const struct extent *x, const struct area *a)
{
	return a->inode == x->inode && a->dev == x->dev;
}

/* what is left of the extent in the program, from @at on. Return: false: no more */
static bool next_piece(const struct extent *x, char *at, struct area *piece)
{
	for (; at < x->addr + x->bytes; at = piece->end) {
		if (!memory_area_at(at, piece)) { /* a hole: page by page, it is rare */
			piece->end = at + sysconf(_SC_PAGESIZE);
			continue;
		}
		if (piece->start < at) {
			piece->offset += at - piece->start;
			piece->start = at;
		}
		piece->end = MIN(piece->end, x->addr + x->bytes);
		if (is_of(x, piece))
			return true;
	}
	return false;
}

static char *map_private(const struct area *piece)
{
	return map_fresh(piece->start, (size_t)(piece->end - piece->start),
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Return: how many of its bytes are anonymous memory again */
static size_t replace_piece(const struct area *piece)
{
	struct move m = {
		.addr = piece->start, .bytes = (size_t)(piece->end - piece->start)};

	if (piece->prot & PROT_READ && memory_can_move())
		m.fresh = map_private(piece);
	return m.fresh ? replace(&m) : 0;
}

/* the program may have taken rights away meanwhile */
static void set_rights(const struct area *piece, int prot)
{
	syscall(SYS_mprotect, piece->start, piece->end - piece->start, prot);
}

/* A read-only file lets nobody make holes: the last mapping that may write it, a copy
 * of ours, clears it. Its pages stay as long as the program has the memory. */
static void *mapping_of_its_own(const struct extent *x, const struct area *piece)
{
	size_t bytes = (size_t)(piece->end - piece->start);
	void *own;

	if (!x->read_only)
		return MAP_FAILED;
	own = (void *)syscall(SYS_mremap, piece->start, (size_t)0, bytes, MREMAP_MAYMOVE);
	if (own != MAP_FAILED)
		syscall(SYS_mprotect, own, bytes, PROT_READ | PROT_WRITE);
	return own;
}

/*
 * The same pages of the same file, but private: at one stroke, whoever writes.
 * Then a copy of each, which the kernel makes when it is written, or told so.
 * What nobody shows any more leaves the file: pages that the program gives up
 * by MADV_DONTNEED are zero then, as private memory's.
 */
static void make_private(const struct extent *x, const struct area *piece)
{
	size_t bytes = (size_t)(piece->end - piece->start);
	void *own = mapping_of_its_own(x, piece);
	bool copied = map_here(piece->start, bytes, MAP_PRIVATE, x->memfd, piece->offset) &&
		      populate(piece->start, bytes, MADV_POPULATE_WRITE);

	if (copied && own != MAP_FAILED)
		memset(own, 0, bytes);
	else if (copied)
		fallocate(x->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece->offset,
			  (off_t)bytes);
	if (own != MAP_FAILED)
		syscall(SYS_munmap, own, bytes);
}

void memory_take_back(struct extent *x)
{
	struct area piece, all;

	for (char *at = x->addr; next_piece(x, at, &all); at = all.end) {
		piece = all;
		piece.start += replace_piece(&piece);
		piece.offset += piece.start - all.start;
		if (piece.start < piece.end)
			make_private(x, &piece);
		if (all.prot != (PROT_READ | PROT_WRITE))
			set_rights(&all, all.prot);
	}
	close(x->memfd);
}

/* Copies by the kernel. Nothing leaves the file: it is the parent's. What cannot be
 * had is taken away: a child that stops is better than a parent whose memory it
 * writes. */
static void keep_apart(const struct extent *x, const struct area *piece)
{
	size_t bytes = (size_t)(piece->end - piece->start);

	if (!map_here(piece->start, bytes, MAP_PRIVATE, x->memfd, piece->offset) ||
	    !populate(piece->start, bytes, MADV_POPULATE_WRITE))
		syscall(SYS_munmap, piece->start, bytes);
}

void memory_copy_for_child(struct extent *x)
{
	struct area piece;

	for (char *at = x->addr; next_piece(x, at, &piece); at = piece.end) {
		char *fresh = map_private(&piece);
		size_t bytes = (size_t)(piece.end - piece.start);

		if (fresh) {
			if (!(piece.prot & PROT_READ))
				set_rights(&piece, PROT_READ);
			memcpy(fresh, piece.start, bytes);
		}
		if (!fresh || !put(fresh, piece.start, bytes))
			keep_apart(x, &piece);
		if (piece.prot != (PROT_READ | PROT_WRITE))
			set_rights(&piece, piece.prot);
	}
	close(x->memfd);
	writers_forget();
}

void memory_moves_forget(void)
{
	writers_disown();
}
