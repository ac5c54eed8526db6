/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A ring in shared memory by which a program tells softibd of commands that are not answered, or sends MADs. A message
 * of the session's socket would do, but it costs each side a system call. A record costs none while softibd is awake.
 *
 * A program asks for the ring of a session by ABI_CMD_TOLD_RING on "uverbs", by ABI_CM_TOLD_RING on "rdma_cm", or by
 * ABI_UMAD_TOLD_RING on the second socket of "umad". The answer carries two descriptors: a memfd with the ring (struct
 * abi_ring), and the eventfd that wakes softibd. A record has what the message would have.
 *
 * Order: before softibd reads a message of a session, it runs what the process has told by its rings. Those of its verbs
 * contexts come first, because commands of the RDMA CM may be about their queue pairs.
 *
 * A program whose ring is full asks for a ring once more. softibd then answers EEXIST, after it has run all that was
 * told.
 */
#ifndef SOFTIB_ABI_TOLD_H
#define SOFTIB_ABI_TOLD_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/ring.h"

#define ABI_TOLD_RING_BYTES 65536u
#define ABI_TOLD_RECORD_MAX 4096u
#define ABI_TOLD_FDS	    2 /* the memfd, and the eventfd */
#define ABI_TOLD_TIMES	    8 /* abi_told_asks() */

/** struct abi_told - a program's side of the ring, which begins zeroed: there is none */
struct abi_told {
	struct abi_ring_tx tx;
	int doorbell_fd;
	unsigned times; /* that the program has told by messages */
	/* a page of its own, which a forked child finds zeroed: a child would be a second producer */
	const uint8_t *owner;
};

/** abi_told_unmap() - the session ends, or there is no ring */
static inline void abi_told_unmap(struct abi_told *told)
{
	if (!told->owner)
		return;
	munmap((void *)told->owner, 1);
	munmap(told->tx.ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
	close(told->doorbell_fd);
	*told = (struct abi_told){0};
}

static inline void *abi_told_map_ring(int memfd)
{
	const size_t bytes = abi_ring_bytes(ABI_TOLD_RING_BYTES);
	struct stat st;

	if (fstat(memfd, &st) || st.st_size < (off_t)bytes)
		return MAP_FAILED;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
}

static inline void *abi_told_map_owner(void)
{
	uint8_t *owner = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (owner == MAP_FAILED)
		return owner;
	if (madvise(owner, 1, MADV_WIPEONFORK)) {
		munmap(owner, 1);
		return MAP_FAILED;
	}
	*owner = 1;
	return owner;
}

/**
 * abi_told_map() - use the ring that softibd has answered with
 * @fds: ABI_TOLD_FDS descriptors of the answer, or -1 for those that did not come. They are this function's to close
 * Return: true; false: there is no ring, and the session goes on without
 */
static inline bool abi_told_map(struct abi_told *told, const int fds[ABI_TOLD_FDS])
{
	void *ring = fds[0] >= 0 && fds[1] >= 0 ? abi_told_map_ring(fds[0]) : MAP_FAILED;
	void *owner = ring == MAP_FAILED ? ring : abi_told_map_owner();

	if (fds[0] >= 0)
		close(fds[0]);
	if (owner == MAP_FAILED) {
		if (ring != MAP_FAILED)
			munmap(ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
		if (fds[1] >= 0)
			close(fds[1]);
		return false;
	}
	*told = (struct abi_told){
		.tx = {.ring = ring, .size = ABI_TOLD_RING_BYTES}, .doorbell_fd = fds[1], .times = told->times,
		.owner = owner};
	return true;
}

/** abi_told_asks() - the program has told by a message. Return: true, once: it has done so often enough to do so again,
 *  and asks for a ring */
static inline bool abi_told_asks(struct abi_told *told)
{
	return told->times < ABI_TOLD_TIMES && ++told->times == ABI_TOLD_TIMES;
}

/** abi_told_usable() - is there a ring, and is this the process that has it? */
static inline bool abi_told_usable(const struct abi_told *told)
{
	return told->owner && *told->owner;
}

/**
 * abi_told_put() - append a record, which abi_told_flush() lets softibd see
 * @parts: @num, of at most ABI_TOLD_RECORD_MAX bytes together
 * Context: one thread at a time. Return: false: the ring is full
 */
static inline bool abi_told_put(struct abi_told *told, const struct iovec *parts, size_t num)
{
	size_t len = 0;
	char *to;

	for (size_t i = 0; i < num; i++)
		len += parts[i].iov_len;
	to = abi_ring_reserve(&told->tx, len);
	if (!to)
		return false;
	for (size_t i = 0; i < num; i++) {
		if (parts[i].iov_len)
			memcpy(to, parts[i].iov_base, parts[i].iov_len);
		to += parts[i].iov_len;
	}
	abi_ring_commit(&told->tx, len);
	return true;
}

/** abi_told_flush() - let softibd see what was put. Context: one thread at a time */
static inline void abi_told_flush(struct abi_told *told)
{
	const uint64_t one = 1;

	if (abi_ring_publish(&told->tx) && write(told->doorbell_fd, &one, sizeof(one)) < 0)
		return; /* EAGAIN: softibd is being woken already */
}

#endif
