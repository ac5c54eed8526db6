/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * This file moves the program's private memory into a memfd, so that peers can map it, and
 * back again, while the program uses that memory. The addresses stay the same; only the
 * pages behind them are exchanged. replace() does this chunk by chunk, in four steps:
 *
 *   1. Allocate the new pages of the chunk at another address. (Pages of a memfd that need
 *      no address of their own are allocated in step 3.)
 *   2. Write-protect the old pages with userfaultfd(2). A thread or a system call that
 *      writes to them waits from now on.
 *   3. Copy the contents, and let mremap(2) or mmap(2) replace the old pages by the new
 *      ones in one atomic step.
 *   4. Wake the writers that wait. They repeat their stores, now to the new pages.
 *
 * Readers never wait. Chunks are small, so that a writer waits for some tens of
 * microseconds. The functions here make their system calls by syscall(2), because a
 * program or a library such as UCX may have interposed mremap() and mmap() to learn which
 * memory is unmapped, and none is unmapped here.
 *
 * Without privileges, userfaultfd(2) can only make threads wait: a system call that writes
 * to a protected page fails with EFAULT. Then replace() may be used only while the program
 * has a single thread, the caller, since that thread makes no other system call meanwhile.
 * Memory can be taken back at any time by make_private(): the kernel copies the pages one
 * by one, as it does after fork(), and no writer waits, but the mapping remains one of a
 * file.
 *
 * Devices that write to memory by themselves cannot be made to wait. If direct I/O or
 * io_uring has buffers in flight in a page that moves, what the device delivers afterwards
 * is stored in the old page and is lost to the program.
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
#define STACK_BELOW ((size_t)64 << 10) /* for the functions that are called meanwhile */
#define STACK_ABOVE ((size_t)4 << 10)
/* The memfd is much longer than its contents, because a program may enlarge its memory by
 * mremap(). The added part then reads as zeros, as it would without us; SIGBUS would follow if
 * the file ended there. */
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

/** struct move - the replacement of the pages at @addr by others */
struct move {
	char *addr;
	size_t bytes;
	char *fresh; /* address of the new pages; NULL: writing to @file makes them */
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

/* ThreadSanitizer does not know that writers wait, so it regards the copy as a race with
 * them. Besides, it would check each word that is copied, and writers would wait for seconds.
 * Therefore it ignores the reads of the copy. */
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

/* Return: the length of the chunk at @at, which ends at the next chunk boundary. A huge page is
 * one chunk. */
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

/* The thread that write-protects pages must not write to them, or it would wait for itself.
 * Its stack can be in any memory, so its frames are taken to be near the current one. */
static bool is_my_stack(const char *addr, size_t bytes)
{
	const char *here = __builtin_frame_address(0);

	return here + STACK_ABOVE > addr && here - STACK_BELOW < addr + bytes;
}

/* Return: the number of bytes that were replaced */
static size_t replace(const struct move *m)
{
	size_t done = 0, n;
	sigset_t all, old;

	sigfillset(&all); /* a handler that writes would wait for this thread */
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

/* Reserve @bytes of address space with the same offset in a huge page as @addr.
 * Return: its address; NULL: none is left */
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

/* Map the pages that are to replace those at @addr. Return: their address for now; NULL: they
 * cannot be mapped */
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

/* A file longer than RLIMIT_FSIZE would terminate the program by SIGXFSZ. */
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
	/* A peer that has the file cannot truncate it under us. memory_seal() adds the other seals. */
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

/* Does the descriptor still refer to the memfd of the extent? It may have been made some time
 * ago: meanwhile the program may have closed it and used its number for another file. */
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

/* Replacing pages would undo mlock(2), so locked memory is not moved. msync(2) with
 * MS_INVALIDATE fails on locked memory and otherwise does nothing. */
static bool is_locked(char *addr, size_t bytes)
{
	return syscall(SYS_msync, addr, bytes, MS_INVALIDATE) < 0;
}

/* Does the system use huge pages for a memfd if madvise(2) asks for them? */
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

	/* The first page of a file is the cheapest to use. Huge pages need the alignment of the
	 * memory. */
	x->offset = x->bytes < HUGE_BYTES ? 0 : (off_t)((uintptr_t)x->addr % HUGE_BYTES);
	m.offset = x->offset;
	if (huge) { /* madvise() needs a mapping */
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

/* The mode of the file does not stop root, or a process of the same user, which may change
 * the mode. F_SEAL_FUTURE_WRITE does. It leaves our own mapping writable, because that existed
 * before the seal. */
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

/* Find the next part of the extent, from @at on, that the program has not unmapped or replaced.
 * Return: false: there is none */
static bool next_piece(const struct extent *x, char *at, struct area *piece)
{
	for (; at < x->addr + x->bytes; at = piece->end) {
		if (!memory_area_at(at, piece)) { /* a hole is rare: skip it page by page */
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

/* Return: the number of its bytes that are anonymous memory again */
static size_t replace_piece(const struct area *piece)
{
	struct move m = {
		.addr = piece->start, .bytes = (size_t)(piece->end - piece->start)};

	if (piece->prot & PROT_READ && memory_can_move())
		m.fresh = map_private(piece);
	return m.fresh ? replace(&m) : 0;
}

/* Restore the access rights, which the program may have reduced since the memory was moved. */
static void set_rights(const struct area *piece, int prot)
{
	syscall(SYS_mprotect, piece->start, piece->end - piece->start, prot);
}

/* The seal of a read-only file forbids to punch holes into it, so make_private() has to clear
 * its contents by stores. New writable mappings are forbidden as well, but mremap(2) can
 * duplicate ours, which is older than the seal. The pages of the file, now zeros, are freed
 * only when the program frees the memory. Return: the duplicate, or MAP_FAILED */
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
 * Replace the shared mapping of the file by a private mapping of the same part, in one atomic
 * step, even while other threads write. Then MADV_POPULATE_WRITE makes the kernel copy each
 * page now, instead of at the first store. After that, no mapping shows the contents of the
 * file, and they are removed from it: if the program discards pages by MADV_DONTNEED, they
 * must read as zeros, as those of anonymous memory do.
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

/* In a child, let the kernel copy the pages, as make_private() does. The file keeps its
 * contents, since it belongs to the parent. Memory that cannot be copied is unmapped: it is
 * better that the child crashes than that it writes to its parent's memory. */
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
