/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that is lent to the peer. A program that writes much at once is read into regions,
 * which are advertised: the peer reads them by RDMA READ. In the pipelined mode, room for
 * what comes next is advertised as well: sinks, to which the peer writes by RDMA WRITE.
 *
 * Regions and sinks are one registered buffer of the connection, which exists from the first
 * time that much is sent until the connection ends. The peer has its R_Key that long, and
 * finds nothing there but the bytes of this stream.
 *
 * Regions are a ring in the order of the stream. One that was written to a sink, whose RDMA
 * WRITE is not complete, may be older than one that is not sent. The state machine knows
 * which sinks the peer may write to.
 */
#include <string.h>

#include "ulp/sdp/private.h"

#define PIECE_BYTES ((size_t)SDP_REGION_BYTES)

static u8 *region_bytes(const struct sdp_conn *c, u32 i)
{
	return c->lent.bytes + i * PIECE_BYTES;
}

static u8 *sink_bytes(const struct sdp_conn *c, u32 i)
{
	return c->lent.bytes + (SDP_REGIONS + i) * PIECE_BYTES;
}

static struct sdp_region *region_at(struct sdp_conn *c, u32 i)
{
	return &c->lent.region[(c->lent.first + i) % SDP_REGIONS];
}

bool sdp_memory_open(struct sdp_conn *c)
{
	struct ib_phys_buf buffer = {.size = (SDP_REGIONS + SDP_SINKS) * PIECE_BYTES};
	u64 start;

	if (c->lent.mr)
		return true;
	if (!c->lent.bytes && sdp_conn_take(c, buffer.size))
		c->lent.bytes = rt_zalloc(buffer.size);
	if (!c->lent.bytes)
		return false;
	buffer.addr = start = (uintptr_t)c->lent.bytes;
	c->lent.mr = ib_reg_phys_mr(c->pd, &buffer, 1,
				    IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
					    IB_ACCESS_REMOTE_READ,
				    &start);
	if (IS_ERR(c->lent.mr))
		c->lent.mr = NULL;
	return c->lent.mr != NULL;
}

void sdp_memory_close(struct sdp_conn *c)
{
	if (c->lent.mr)
		ib_dereg_mr(c->lent.mr);
	rt_free(c->lent.bytes);
	c->lent = (struct sdp_lent){0};
}

/* --- regions --- */

/* the oldest region that is neither advertised nor sent; NULL: there is none */
static struct sdp_region *unsent(struct sdp_conn *c)
{
	for (u32 i = 0; i < c->lent.num_regions; i++) {
		struct sdp_region *r = region_at(c, i);

		if (!r->advertised && r->at < r->end)
			return r;
	}
	return NULL;
}

u8 *sdp_region_free(struct sdp_conn *c)
{
	if (c->lent.num_regions == SDP_REGIONS || unsent(c))
		return NULL;
	return region_bytes(c, (c->lent.first + c->lent.num_regions) % SDP_REGIONS);
}

void sdp_region_filled(struct sdp_conn *c, u32 bytes)
{
	*region_at(c, c->lent.num_regions++) = (struct sdp_region){.conn = c, .end = bytes};
}

/* The oldest ones are done when the peer has all of their bytes, or messages have them. */
static void drop_regions(struct sdp_conn *c)
{
	while (c->lent.num_regions) {
		const struct sdp_region *r = region_at(c, 0);

		if (r->at < r->end || r->writes)
			return;
		c->lent.first = (c->lent.first + 1) % SDP_REGIONS;
		c->lent.num_regions--;
	}
}

bool sdp_region_offer(struct sdp_conn *c, struct sdp_offer *offer)
{
	const struct sdp_region *r = unsent(c);

	if (!r)
		return false;
	offer->bytes = offer->region_bytes = r->end - r->at;
	offer->rkey = c->lent.mr->rkey;
	offer->address = (uintptr_t)sdp_region_bytes(c);
	return true;
}

u8 *sdp_region_bytes(struct sdp_conn *c)
{
	const struct sdp_region *r = unsent(c);

	return region_bytes(c, (u32)(r - c->lent.region)) + r->at;
}

void sdp_region_sent(struct sdp_conn *c, const struct wire_sdp_msg *msg)
{
	struct sdp_region *r = unsent(c);

	r->at += msg->payload_bytes;
	r->advertised = msg->bsdh.mid == WIRE_SDP_SRC_AVAIL;
	drop_regions(c);
}

static void was_written(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sdp_region *r = container_of(wc->wr_cqe, struct sdp_region, cqe);

	r->writes--;
	if (wc->status != IB_WC_SUCCESS)
		r->conn->qp_failed = true;
	else
		drop_regions(r->conn);
}

void sdp_region_write(struct sdp_conn *c, u32 bytes)
{
	struct sdp_region *r = unsent(c);
	struct ib_sge sge = sdp_sge(c, sdp_region_bytes(c), bytes, DMA_TO_DEVICE);
	struct ib_rdma_wr wr = {.wr = {.wr_cqe = &r->cqe,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_RDMA_WRITE,
				       .send_flags = IB_SEND_SIGNALED},
				.remote_addr = c->sdp.target.address,
				.rkey = c->sdp.target.rkey};

	r->cqe.done = was_written;
	r->at += bytes;
	r->writes++;
	if (ib_post_send(c->qp, &wr.wr, NULL)) {
		r->writes--;
		c->qp_failed = true;
	}
}

/* The peer reads the oldest region that is advertised first. */
void sdp_memory_input(struct sdp_conn *c, const struct sdp_input *input)
{
	u32 taken = input->taken;

	for (u32 i = 0; i < c->lent.num_regions; i++) {
		struct sdp_region *r = region_at(c, i);

		if (!r->advertised)
			continue;
		r->at += taken;
		taken = 0;
		r->advertised = r->at < r->end && !input->returned;
	}
	drop_regions(c);
}

int sdp_regions_move(struct sdp_conn *from, struct sdp_conn *to)
{
	if (!unsent(from))
		return 0;
	if (!sdp_memory_open(to))
		return -ENOMEM;
	for (u32 i = 0; i < from->lent.num_regions; i++) {
		const struct sdp_region *r = region_at(from, i);
		const u32 bytes = r->end - r->at;

		memcpy(region_bytes(to, to->lent.num_regions), region_bytes(from, (u32)(r - from->lent.region)) + r->at,
		       bytes);
		if (bytes)
			sdp_region_filled(to, bytes);
	}
	return 0;
}

/* --- sinks --- */

static bool is_lent(const struct sdp_conn *c, const u8 *sink)
{
	for (u32 i = 0; i < c->sdp.num_own_sinks; i++)
		if (c->sdp.own_sink[i].address == (uintptr_t)sink)
			return true;
	return false;
}

void sdp_sink_offer(struct sdp_conn *c)
{
	struct sdp_sink sink = {.bytes = SDP_REGION_BYTES};

	if (c->sdp.rx_mode != WIRE_SDP_PIPELINED || !sdp_memory_open(c))
		return;
	sink.rkey = c->lent.mr->rkey;
	for (u32 i = 0; i < SDP_SINKS; i++) {
		sink.address = (uintptr_t)sink_bytes(c, i);
		if (!is_lent(c, sink_bytes(c, i)) && !sdp_offer_sink(&c->sdp, &sink))
			return;
	}
}
