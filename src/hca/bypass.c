/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections of protocols in softibd that bypass the fabric: two queue pairs of the midlayer that
 * are connected to each other, and the ways between them. The ports on these ways count the packets
 * of the RDMA READs that would otherwise have moved the bytes.
 */
#include "hca/bypass.h"

#include "hca/window_private.h"

#define HEADER_DWORDS 6 /* LRH, BTH, ICRC: 9.2 */
#define RETH_DWORDS   4
#define AETH_DWORDS   1

struct hca_bypass {
	struct list_head node; /* hca_set.bypasses */
	struct fab_way *way[2]; /* way[i] leads from qp[i] to the other QP */
	struct hca_bypass_user user;
	u32 mtu_bytes[2];
	bool over; /* moved() was called: the connection does not bypass the fabric any more */
};

/* Is @to at the end of @way, and the peer of @from? */
static bool leads_to(const struct fab_way *way, const struct ib_qp *from, const struct ib_qp *to)
{
	const struct fab_sink *sink = fab_way_sink(way);
	const struct hca_port *port = sink->ctx;

	return sink->deliver == hca_port_deliver && port->hca == hca_of(to->device) &&
	       port->port_num == to->attr.port_num && from->attr.dest_qp_num == to->qp_num;
}

static void moved(void *ctx)
{
	struct hca_bypass *b = ctx;

	if (!b->over)
		b->user.moved(b->user.ctx);
	b->over = true;
}

void hca_bypass_revoke(const struct hca_set *set)
{
	struct hca_bypass *b;

	list_for_each_entry(b, &set->bypasses, node)
		moved(b);
}

static void fold(void *ctx)
{
	const struct hca_bypass *b = ctx;

	b->user.fold(b->user.ctx);
}

void hca_bypass_close(struct hca_bypass *b)
{
	list_del(&b->node);
	for (int i = 0; i < 2; i++)
		if (b->way[i])
			fab_way_free(b->way[i]);
	rt_free(b);
}

/* Make the checks that a responder makes for a packet between the two QPs. */
static bool fits(const struct hca_bypass *b, struct ib_qp *const qp[2])
{
	for (int i = 0; i < 2; i++)
		if (!b->way[i] || !leads_to(b->way[i], qp[i], qp[!i]) ||
		    b->mtu_bytes[i] > fab_way_mtu(b->way[i]))
			return false;
	return b->mtu_bytes[0] == b->mtu_bytes[1] &&
	       wire_pkeys_match(hca_qp_pkey(container_of(qp[0], struct hca_qp, ib)),
				hca_qp_pkey(container_of(qp[1], struct hca_qp, ib)));
}

struct hca_bypass *hca_bypass_open(struct ib_qp *const qp[2], const struct hca_bypass_user *user)
{
	struct hca_bypass *b = rt_zalloc(sizeof(*b));
	const struct fab_way_user ours = {.moved = moved, .fold = fold, .ctx = b};

	if (!b)
		return NULL;
	b->user = *user;
	list_add_tail(&b->node, &hca_of(qp[0]->device)->set->bypasses);
	for (int i = 0; i < 2; i++) {
		b->way[i] = hca_qp_way(container_of(qp[i], struct hca_qp, ib));
		b->mtu_bytes[i] = 128u << qp[i]->attr.path_mtu;
	}
	if (!fits(b, qp)) {
		hca_bypass_close(b);
		return NULL;
	}
	for (int i = 0; i < 2; i++)
		fab_way_use(b->way[i], &ours);
	return b;
}

void hca_bypass_count_reads(struct hca_bypass *b, int from, u64 bytes, u32 bytes_of_each)
{
	const u64 reads = (bytes + bytes_of_each - 1) / bytes_of_each;
	const u64 responses = (bytes + b->mtu_bytes[from] - 1) / b->mtu_bytes[from];

	fab_way_count(b->way[!from], reads, reads * (HEADER_DWORDS + RETH_DWORDS));
	fab_way_count(b->way[from], responses,
		      responses * HEADER_DWORDS + 2 * reads * AETH_DWORDS + (bytes + 3) / 4);
}
