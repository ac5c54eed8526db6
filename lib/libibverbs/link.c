/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's link: two rings of packets in memory shared with softibd
 * (src/abi/ring.h). When softibd dies or writes nonsense the link is broken:
 * it swallows what the engine sends and delivers nothing, so that the engine
 * can go on flushing its queues.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft.h"

#define VOID_PACKET_BYTES ABI_LINK_RING_BYTES

/* scratch memory for a packet that nobody will read */
static void *reserve_void(struct soft_link *link, size_t len)
{
	if (!link->void_packet)
		link->void_packet = malloc(VOID_PACKET_BYTES);
	link->into_void = true;
	return len <= VOID_PACKET_BYTES ? link->void_packet : NULL;
}

static void *reserve(void *ctx, const struct wire_packet *pkt, unsigned port_num, size_t len)
{
	struct soft_link *link = ctx;

	if (unlikely(link->broken))
		return reserve_void(link, len);
	link->into_void = false;
	return abi_ring_reserve(&link->tx, len);
}

/* softibd knows the port by the packet's source LID. */
static void commit(void *ctx, unsigned port_num, size_t len)
{
	struct soft_link *link = ctx;

	if (likely(!link->into_void))
		abi_ring_commit(&link->tx, len);
}

static void flush(void *ctx)
{
	struct soft_link *link = ctx;
	uint64_t one = 1;

	if (unlikely(link->broken))
		return;
	if (!abi_ring_publish(&link->tx))
		return;
	if (link->wakeups)
		link->wakeups->softibd(container_of(link, struct soft_context, link));
	else if (write(link->doorbell_fd, &one, sizeof(one)) < 0)
		return; /* the ring is full, which softibd sees */
}

static const void *receive(void *ctx, size_t *len, unsigned *port_num)
{
	struct soft_link *link = ctx;
	const void *packet;

	*port_num = 0; /* unknown: the engine takes the port that has the DLID */
	if (unlikely(link->broken))
		return NULL;
	packet = abi_ring_peek(&link->rx, len);
	if (packet)
		return packet;
	if (unlikely(*len == ABI_RING_WRAP))
		link->broken = true;
	return NULL;
}

/* Everything seen so far has been read. Its room is released at once, which also shows a
 * sleeping thread (link_arm_sleep()) that nothing is left. Waiting until the ring is found empty
 * would not do: a reader whose budget ends with the last packet does not look again. */
static void release(void *ctx)
{
	struct soft_link *link = ctx;

	abi_ring_consume(&link->rx);
	if (link->rx.head == link->rx.tail_seen)
		abi_ring_release(&link->rx);
}

static enum eng_medium choose(void *ctx, const struct eng_path *path, uint32_t bytes,
			   struct eng_flow **flow)
{
	struct soft_link *link = ctx;

	return link->broken ? ENG_BY_PACKETS : lanes_choose(&link->lanes, path, bytes, flow);
}

static enum eng_medium stuck(void *ctx, struct eng_flow *flow)
{
	struct soft_link *link = ctx;

	return lanes_stuck(&link->lanes, flow);
}

static void ring_doorbell(void *ctx, struct eng_lane_out *lane)
{
	struct soft_link *link = ctx;
	struct lane_out *out = container_of(lane, struct lane_out, eng);

	out->rung_for = lane->tx.tail;
	if (!link->wakeups ||
	    !link->wakeups->lane(container_of(link, struct soft_context, link), out))
		lanes_ring(&link->lanes, lane);
}

static void bad_qkey(void *ctx, struct eng_lane_in *lane, const struct wire_packet *pkt)
{
	struct soft_link *link = ctx;

	if (link->wakeups)
		link->wakeups->bad_qkey(container_of(link, struct soft_context, link), lane, pkt);
}

const struct eng_link_ops link_ops = {
	.reserve = reserve,
	.commit = commit,
	.flush = flush,
	.receive = receive,
	.release = release,
	.choose = choose,
	.stuck = stuck,
	.ring = ring_doorbell,
	.bad_qkey = bad_qkey,
};

static bool ring_fits(uint64_t offset, uint64_t ring_bytes, uint64_t total)
{
	return offset % 64 == 0 && offset <= total &&
	       abi_ring_bytes(ring_bytes) <= total - offset;
}

static bool counters_fit(const struct abi_context_resp *resp, uint64_t total)
{
	return resp->counters_offset % 64 == 0 && resp->counters_offset <= total &&
	       resp->num_ports * sizeof(struct abi_counters) <= total - resp->counters_offset;
}

/** link_count() - eng_config.count() */
void link_count(void *ctx, unsigned port_num, enum tp_counter counter)
{
	const struct soft_link *link = &((struct soft_context *)ctx)->link;

	if (link->counters)
		abi_count(&link->counters[port_num - 1], counter);
}

/**
 * link_map() - map the rings that GET_CONTEXT described
 * @memfd: of both rings; stays the caller's
 * @doorbell_fd: becomes the link's, but is closed by the caller
 * Return: 0; -EPROTO when the layout is not sound; -errno of mmap
 */
int link_map(struct soft_link *link, int memfd, int doorbell_fd,
	     const struct abi_context_resp *resp)
{
	uint64_t size = resp->ring_bytes;
	struct abi_ring *tx, *rx;
	struct stat st;
	void *map;

	if (fstat(memfd, &st) < 0)
		return -errno;
	if (!size || (size & (size - 1)) ||
	    !ring_fits(resp->to_daemon_offset, size, (uint64_t)st.st_size) ||
	    !ring_fits(resp->to_engine_offset, size, (uint64_t)st.st_size) ||
	    !counters_fit(resp, (uint64_t)st.st_size))
		return -EPROTO;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (map == MAP_FAILED)
		return -errno;
	/* a forked child would be a second producer: it gets no mapping at all */
	madvise(map, (size_t)st.st_size, MADV_DONTFORK);
	tx = (void *)((char *)map + resp->to_daemon_offset);
	rx = (void *)((char *)map + resp->to_engine_offset);
	*link = (struct soft_link){
		.tx = {.ring = tx, .size = size},
		.rx = {.ring = rx, .size = size},
		.doorbell_fd = doorbell_fd,
		.map = map,
		.map_bytes = (size_t)st.st_size,
	};
	if (resp->counters_offset)
		link->counters = (void *)((char *)map + resp->counters_offset);
	return 0;
}

void link_unmap(struct soft_link *link)
{
	lanes_exit(&link->lanes);
	munmap(link->map, link->map_bytes);
	free(link->void_packet);
}

/**
 * link_arm_sleep() - make softibd and peers ring the doorbells
 *
 * Context: the thread that may sleep on the doorbells, under the engine's lock.
 * Return: false when packets wait: then nobody rings
 */
bool link_arm_sleep(struct soft_link *link)
{
	struct abi_ring *ring = link->rx.ring;

	if (link->broken)
		return true;
	atomic_store_explicit(&ring->asleep, 1, memory_order_relaxed);
	if (lanes_arm_sleep(&link->lanes) && /* and a fence */
	    atomic_load_explicit(&ring->tail, memory_order_acquire) ==
		    atomic_load_explicit(&ring->head, memory_order_acquire))
		return true;
	link_disarm_sleep(link);
	return false;
}

void link_disarm_sleep(struct soft_link *link)
{
	atomic_store_explicit(&link->rx.ring->asleep, 0, memory_order_relaxed);
	lanes_disarm_sleep(&link->lanes);
}

/** link_position() - a number that grows with each packet and record that is taken, and whether
 *  some are @waiting */
uint64_t link_position(struct soft_link *link, bool *waiting)
{
	struct abi_ring *ring = link->rx.ring;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

	*waiting = !link->broken &&
		   atomic_load_explicit(&ring->tail, memory_order_acquire) != head;
	return head + lanes_position(&link->lanes, waiting);
}
