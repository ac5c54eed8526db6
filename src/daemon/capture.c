/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Captures. The fabric reports each packet on a watched cable. Packets that match
 * the filter are copied into shared memory (reader.h), from which another process writes a
 * file (with CRCs and the headers of the format).
 */
#include <errno.h>

#include "abi/capture.h"
#include "base/bytes.h"
#include "daemon/capture.h"
#include "daemon/reader.h"
#include "fabric/ethernet.h"
#include "fabric/frames.h"
#include "wire/packet.h"

struct capture {
	struct fabric *fab;
	struct fab_watch watch;
	struct fab_filter filter;
	uint32_t snap_bytes;
	struct reader reader;
};

/* RDMA on a link of Ethernet: the LIDs are the numbers of its stations, which no wire shows */
static void set_ethernet(const struct fabric *fab, const struct fab_sight *sight,
			 struct abi_capture_record *record)
{
	struct wire_lrh lrh;
	struct wire_grh grh;
	struct wire_roce_headers headers;

	if (!fab_is_ethernet(fab, sight->node, sight->port) ||
	    sight->len < WIRE_LRH_BYTES + WIRE_GRH_BYTES + WIRE_BTH_BYTES ||
	    wire_lrh_decode(sight->bytes, sight->len, &lrh) < 0 || lrh.lnh != WIRE_LNH_GRH)
		return;
	wire_grh_decode(sight->bytes + WIRE_LRH_BYTES, &grh);
	fab_frames_headers(fab, &lrh, &grh, &headers);
	memcpy(record->src_mac, headers.src_mac, sizeof(record->src_mac));
	memcpy(record->dst_mac, headers.dst_mac, sizeof(record->dst_mac));
	record->vlan_id = headers.vlan_id;
	record->is_roce = true;
}

static void see(void *ctx, const struct fab_sight *sight)
{
	struct capture *c = ctx;
	size_t kept = c->snap_bytes ? MIN(sight->len, (size_t)c->snap_bytes) : sight->len;
	struct abi_capture_record record;
	uint8_t *room;

	if (!fab_filter_match(&c->filter, sight))
		return;
	room = reader_reserve(&c->reader, sizeof(record) + kept);
	if (!room)
		return;
	record = (struct abi_capture_record){
		.time_ns = reader_time_ns(),
		.dropped = c->reader.dropped,
		.node = (uint32_t)sight->node,
		.bytes = (uint32_t)sight->len,
		.port = (uint16_t)sight->port,
		.sent = sight->sent,
		.wrong_crcs = (sight->wrong_crcs & FAB_WRONG_ICRC ? ABI_CAPTURE_WRONG_ICRC
								  : 0u) |
			      (sight->wrong_crcs & FAB_WRONG_VCRC ? ABI_CAPTURE_WRONG_VCRC
								  : 0u),
	};
	set_ethernet(c->fab, sight, &record);
	memcpy(room, &record, sizeof(record));
	memcpy(room + sizeof(record), sight->bytes, kept);
	/* the first four bits of the LRH are the VL on this link */
	room[sizeof(record)] = (uint8_t)(sight->vl << 4 | (room[sizeof(record)] & 0x0f));
	reader_commit(&c->reader, sizeof(record) + kept);
}

static void stop(struct reader *reader)
{
	struct capture *c = container_of(reader, struct capture, reader);

	fab_watch_del(c->fab, &c->watch);
	reader_close(&c->reader);
	rt_free(c);
}

int capture_start(struct rt *rt, struct fabric *fab, const struct capture_config *config,
		  struct reader **reader)
{
	struct capture *c = rt_zalloc(sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->fab = fab;
	c->filter = config->filter;
	c->snap_bytes = config->snap_bytes;
	ret = reader_open(rt, &c->reader, "softib-capture", config->ring_bytes);
	if (ret) {
		rt_free(c);
		return ret;
	}
	c->watch = (struct fab_watch){.only_node = config->node,
				      .only_port = config->port,
				      .packet = see,
				      .ctx = c};
	fab_watch_add(fab, &c->watch);
	c->reader.stop = stop;
	*reader = &c->reader;
	return 0;
}
