/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Captures. The fabric reports each packet on a watched cable. Packets that match
 * the filter are copied into shared memory, from which another process writes a
 * file (with CRCs and the headers of the format). A packet costs softibd one copy and
 * no system call; a sleeping reader costs one doorbell for each turn of the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi/capture.h"
#include "daemon/capture.h"

struct capture {
	struct rt *rt;
	struct fabric *fab;
	struct fab_watch watch;
	struct fab_filter filter;
	uint32_t snap_bytes;
	struct rt_work publish;
	struct abi_ring_tx tx;
	uint64_t matched, dropped;
	struct abi_capture *shared;
	size_t shared_bytes;
	int memory_fd;
	int doorbell_fd[2]; /* a pipe: the reader's end, and softibd's */
};

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static void publish(struct rt_work *work)
{
	struct capture *c = container_of(work, struct capture, publish);
	const char rings = 1;

	atomic_store_explicit(&c->shared->matched, c->matched, memory_order_relaxed);
	atomic_store_explicit(&c->shared->dropped, c->dropped, memory_order_relaxed);
	/* O_NONBLOCK is a property of the open file, and only softibd has that of the
	 * writing end. So this never blocks, whatever the reader does to its own end. */
	if (abi_ring_publish(&c->tx) && write(c->doorbell_fd[1], &rings, sizeof(rings)) < 0) {
		/* EAGAIN: the pipe is full, so the reader is awake already */
	}
}

static void see(void *ctx, const struct fab_sight *sight)
{
	struct capture *c = ctx;
	size_t kept = c->snap_bytes ? MIN(sight->len, (size_t)c->snap_bytes) : sight->len;
	struct abi_capture_record record;
	uint8_t *room;

	if (!fab_filter_match(&c->filter, sight))
		return;
	c->matched++;
	rt_work_queue(c->rt, &c->publish);
	room = abi_ring_reserve(&c->tx, sizeof(record) + kept);
	if (!room) {
		c->dropped++;
		return;
	}
	record = (struct abi_capture_record){
		.time_ns = wall_clock_ns(),
		.dropped = c->dropped,
		.node = (uint32_t)sight->node,
		.bytes = (uint32_t)sight->len,
		.port = (uint16_t)sight->port,
		.sent = sight->sent,
		.wrong_crcs = (sight->wrong_crcs & FAB_WRONG_ICRC ? ABI_CAPTURE_WRONG_ICRC
								  : 0u) |
			      (sight->wrong_crcs & FAB_WRONG_VCRC ? ABI_CAPTURE_WRONG_VCRC
								  : 0u),
	};
	memcpy(room, &record, sizeof(record));
	memcpy(room + sizeof(record), sight->bytes, kept);
	/* the first four bits of the LRH are the VL on this link */
	room[sizeof(record)] = (uint8_t)(sight->vl << 4 | (room[sizeof(record)] & 0x0f));
	abi_ring_commit(&c->tx, sizeof(record) + kept);
}

static int make_memory(struct capture *c, uint32_t ring_bytes)
{
	struct abi_ring *ring;

	c->shared_bytes = ABI_CAPTURE_RING + abi_ring_bytes(ring_bytes);
	c->memory_fd = memfd_create("softib-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (c->memory_fd < 0)
		return -errno;
	/* sealed, because a reader that shrinks the memory would crash softibd (SIGBUS) */
	if (ftruncate(c->memory_fd, (off_t)c->shared_bytes) ||
	    fcntl(c->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	c->shared = mmap(NULL, c->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 c->memory_fd, 0);
	if (c->shared == MAP_FAILED) {
		c->shared = NULL;
		return -errno;
	}
	ring = (void *)((char *)c->shared + ABI_CAPTURE_RING);
	abi_ring_init(ring, ring_bytes);
	c->tx = (struct abi_ring_tx){.ring = ring, .size = ring_bytes};
	/* softibd keeps the reading end open, so that writing never raises SIGPIPE */
	return pipe2(c->doorbell_fd, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

static void free_capture(struct capture *c)
{
	if (c->shared)
		munmap(c->shared, c->shared_bytes);
	if (c->memory_fd >= 0)
		close(c->memory_fd);
	for (int i = 0; i < 2; i++)
		if (c->doorbell_fd[i] >= 0)
			close(c->doorbell_fd[i]);
	rt_free(c);
}

int capture_start(struct rt *rt, struct fabric *fab, const struct capture_config *config,
		  struct capture **capture)
{
	struct capture *c = rt_zalloc(sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->rt = rt;
	c->fab = fab;
	c->filter = config->filter;
	c->snap_bytes = config->snap_bytes;
	c->memory_fd = c->doorbell_fd[0] = c->doorbell_fd[1] = -1;
	ret = make_memory(c, config->ring_bytes);
	if (ret) {
		free_capture(c);
		return ret;
	}
	rt_work_init(&c->publish, publish);
	c->watch = (struct fab_watch){.only_node = config->node,
				      .only_port = config->port,
				      .packet = see,
				      .ctx = c};
	fab_watch_add(fab, &c->watch);
	*capture = c;
	return 0;
}

void capture_stop(struct capture *c)
{
	fab_watch_del(c->fab, &c->watch);
	rt_work_cancel(&c->publish);
	publish(&c->publish);
	free_capture(c);
}

int capture_dup_fds(const struct capture *c, int fd[2])
{
	fd[0] = fcntl(c->memory_fd, F_DUPFD_CLOEXEC, 0);
	fd[1] = fcntl(c->doorbell_fd[0], F_DUPFD_CLOEXEC, 0);
	if (fd[0] >= 0 && fd[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
	return -EMFILE;
}
