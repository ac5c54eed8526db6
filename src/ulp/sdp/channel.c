/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Channels: the memory that the programs at both ends of a connection share with softibd, if
 * both are connections of this softibd's (abi/sdp_ring.h). The connecting end makes it, the
 * other one finds it by the queue pair from which the request came. That is a hint alone:
 * sdp_bypass_ops.open() says whether the two queue pairs are connected to each other.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ulp/sdp/private.h"

static const struct sdp_bypass_ops *bypass_ops;

void sdp_set_bypass(const struct sdp_bypass_ops *ops)
{
	bypass_ops = ops;
}

/* --- making, joining, leaving --- */

static int make_memory(void)
{
	int fd = memfd_create("softib-sdp", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || (!ftruncate(fd, sizeof(struct abi_sdp_memory)) &&
		       !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
		return fd;
	close(fd);
	return -1;
}

static void *map_memory(int fd)
{
	void *memory;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, sizeof(struct abi_sdp_memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      0);
	return memory == MAP_FAILED ? NULL : memory;
}

void sdp_channel_create(struct sdp_conn *c)
{
	struct sdp_channel *ch = bypass_ops ? rt_zalloc(sizeof(*ch)) : NULL;

	if (!ch)
		return;
	ch->fd = make_memory();
	ch->memory = map_memory(ch->fd);
	if (!ch->memory) {
		if (ch->fd >= 0)
			close(ch->fd);
		rt_free(ch);
		return;
	}
	ch->rt = c->rt;
	ch->end[0] = c;
	for (int i = 0; i < 2; i++)
		sdp_ring_init(&ch->ring[i], ch, i);
	rt_timer_init(ch->rt, &ch->tick, sdp_channel_tick);
	c->channel = ch;
}

void sdp_channel_join(struct sdp_conn *c, struct sdp_conn *from)
{
	if (!from || !from->channel || from->channel->end[1] || from->rt != c->rt)
		return;
	c->channel = from->channel;
	c->channel->end[1] = c;
}

/* Programs may keep their mappings as long as they like, but not the pages, except for the one that has the
 * errors: they may read it at any time. */
static void give_back(struct abi_sdp_memory *memory)
{
	madvise(memory->ring, sizeof(memory->ring), MADV_REMOVE);
}

static void destroy(struct sdp_channel *ch)
{
	rt_timer_disarm(&ch->tick);
	sdp_channel_close_bypass(ch);
	give_back(ch->memory);
	munmap(ch->memory, sizeof(*ch->memory));
	if (ch->fd >= 0)
		close(ch->fd);
	rt_free(ch);
}

void sdp_channel_leave(struct sdp_conn *c)
{
	struct sdp_channel *ch = c->channel;

	if (!ch)
		return;
	for (int i = 0; i < 2; i++)
		sdp_ring_abandon(&ch->ring[i]);
	sdp_channel_close_bypass(ch);
	ch->end[sdp_channel_side(c)] = NULL;
	c->channel = NULL;
	if (!ch->end[0] && !ch->end[1])
		destroy(ch);
}

void sdp_channel_move(struct sdp_conn *from, struct sdp_conn *to)
{
	struct sdp_channel *ch = from->channel;

	if (!ch)
		return;
	sdp_channel_close_bypass(ch);
	ch->end[sdp_channel_side(from)] = to;
	to->channel = ch;
	from->channel = NULL;
}

void sdp_channel_handed_over(struct sdp_conn *c)
{
	if (!c->channel || c->channel->fd < 0)
		return;
	close(c->channel->fd);
	c->channel->fd = -1;
}

int sdp_channel_fd(const struct sdp_conn *c)
{
	return c->channel ? c->channel->fd : -1;
}

/* --- how it ends --- */

bool sdp_channel_resets(const struct sdp_conn *c)
{
	return c->channel && atomic_load(&c->channel->memory->half[sdp_channel_side(c)].resets);
}

void sdp_channel_tell(struct sdp_conn *c, u32 error)
{
	if (c->channel)
		atomic_store(&c->channel->memory->half[sdp_channel_side(c)].error, error);
}

/* --- the way through the fabric that the bytes do not take --- */

static void moved(void *ctx)
{
	struct sdp_channel *ch = ctx;

	ch->moved = true;
	for (int i = 0; i < 2; i++)
		sdp_ring_end_lease(&ch->ring[i]);
}

static void fold(void *ctx)
{
	struct sdp_channel *ch = ctx;

	for (int i = 0; i < 2; i++)
		sdp_ring_account(&ch->ring[i]);
}

void sdp_channel_close_bypass(struct sdp_channel *ch)
{
	if (!ch->bypass)
		return;
	fold(ch);
	bypass_ops->close(ch->bypass);
	ch->bypass = NULL;
}

bool sdp_channel_open_bypass(struct sdp_channel *ch)
{
	struct ib_qp *const qp[2] = {ch->end[0]->qp, ch->end[1]->qp};

	if (ch->moved)
		sdp_channel_close_bypass(ch);
	ch->moved = false;
	if (!ch->bypass && qp[0] && qp[1])
		ch->bypass = bypass_ops->open(qp, moved, fold, ch);
	return ch->bypass != NULL;
}

void sdp_channel_count(struct sdp_channel *ch, int from, u64 bytes)
{
	if (ch->bypass)
		bypass_ops->count_reads(ch->bypass, from, bytes, SDP_REGION_BYTES);
}
