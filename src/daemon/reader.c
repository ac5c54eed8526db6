/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records in shared memory for another process. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/reader.h"

uint64_t reader_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return timespec_ns(&now);
}

static void publish(struct rt_work *work)
{
	struct reader *r = container_of(work, struct reader, publish);
	const char rings = 1;

	atomic_store_explicit(&r->shared->matched, r->matched, memory_order_relaxed);
	atomic_store_explicit(&r->shared->dropped, r->dropped, memory_order_relaxed);
	/* O_NONBLOCK is a property of the open file, and only softibd has that of the
	 * writing end. So this never blocks, whatever the reader does to its own end. */
	if (abi_ring_publish(&r->tx) && write(r->doorbell_fd[1], &rings, sizeof(rings)) < 0) {
		/* EAGAIN: the pipe is full, so the reader is awake already */
	}
}

void *reader_reserve(struct reader *r, size_t bytes)
{
	void *room = abi_ring_reserve(&r->tx, bytes);

	r->matched++;
	r->dropped += !room;
	rt_work_queue(r->rt, &r->publish);
	return room;
}

void reader_commit(struct reader *r, size_t bytes)
{
	abi_ring_commit(&r->tx, bytes);
}

static int make_memory(struct reader *r, const char *name, uint32_t ring_bytes)
{
	struct abi_ring *ring;

	r->shared_bytes = ABI_READER_RING + abi_ring_bytes(ring_bytes);
	r->memory_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->memory_fd < 0)
		return -errno;
	/* sealed, because a reader that shrinks the memory would crash softibd (SIGBUS) */
	if (ftruncate(r->memory_fd, (off_t)r->shared_bytes) ||
	    fcntl(r->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	r->shared = mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 r->memory_fd, 0);
	if (r->shared == MAP_FAILED) {
		r->shared = NULL;
		return -errno;
	}
	ring = (void *)((char *)r->shared + ABI_READER_RING);
	abi_ring_init(ring, ring_bytes);
	r->tx = (struct abi_ring_tx){.ring = ring, .size = ring_bytes};
	/* softibd keeps the reading end open, so that writing never raises SIGPIPE */
	return pipe2(r->doorbell_fd, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

static void free_memory(struct reader *r)
{
	if (r->shared)
		munmap(r->shared, r->shared_bytes);
	if (r->memory_fd >= 0)
		close(r->memory_fd);
	for (int i = 0; i < 2; i++)
		if (r->doorbell_fd[i] >= 0)
			close(r->doorbell_fd[i]);
}

int reader_open(struct rt *rt, struct reader *r, const char *name, uint32_t ring_bytes)
{
	int ret;

	*r = (struct reader){.rt = rt, .memory_fd = -1, .doorbell_fd = {-1, -1}};
	rt_work_init(&r->publish, publish);
	ret = make_memory(r, name, ring_bytes);
	if (ret)
		free_memory(r);
	return ret;
}

void reader_close(struct reader *r)
{
	rt_work_cancel(&r->publish);
	publish(&r->publish);
	free_memory(r);
}

int reader_dup_fds(const struct reader *r, int fd[2])
{
	fd[0] = fcntl(r->memory_fd, F_DUPFD_CLOEXEC, 0);
	fd[1] = fcntl(r->doorbell_fd[0], F_DUPFD_CLOEXEC, 0);
	if (fd[0] >= 0 && fd[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
	return -EMFILE;
}
