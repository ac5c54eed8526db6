/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records of a capture as pcapng: the packets get their CRCs and ERF headers.
 * Each port that saw one becomes an interface of the file at its first packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "capture_file.h"
#include "softib.h"
#include "wire/erf.h"
#include "wire/frame.h"
#include "wire/pcapng.h"
#include "wire/roce.h"

#define BATCH_BYTES (256u << 10)
#define PACKET_BLOCK_MAX                                                                 \
	(WIRE_PCAPNG_PACKET_HEAD + WIRE_ERF_ETHERNET_BYTES + WIRE_PACKET_MAX +           \
	 WIRE_PCAPNG_PACKET_TAIL)
#define INTERFACE_NONE UINT32_MAX
#define FRAME_AT       (WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_DETH_BYTES)
#define FRAME_MIN      60 /* IEEE 802.3 clause 3.2.8: before the FCS */
#define FCS_BYTES      4

/** struct interface - a port in the file */
struct interface {
	uint32_t number; /* INTERFACE_NONE: no packet yet */
	uint64_t packets;
};

void capture_file_flush(struct capture_file *f)
{
	size_t done = 0;

	while (done < f->batch_bytes && !f->error) {
		ssize_t n = write(f->out_fd, f->batch + done, f->batch_bytes - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			f->error = -errno;
	}
	f->batch_bytes = 0;
}

/* room for @bytes, of which f->batch_bytes is moved on by who used them */
static uint8_t *batch_room(struct capture_file *f, size_t bytes)
{
	if (f->batch_bytes + bytes > BATCH_BYTES)
		capture_file_flush(f);
	return f->batch + f->batch_bytes;
}

static void put_block(struct capture_file *f, const void *block, int bytes)
{
	memcpy(batch_room(f, (size_t)bytes), block, (size_t)bytes);
	f->batch_bytes += (size_t)bytes;
}

static void describe_port(struct json_object *node, struct json_object *port, char *text,
			  size_t room)
{
	size_t n = (size_t)snprintf(text, room, "%s port %lld", text_of(node, "desc"),
				    (long long)number_of(port, "port"));

	if (member_of(port, "peer") && n < room)
		snprintf(text + n, room - n, ", cable to %s:%lld, %s %s",
			 text_of(port, "peer"), (long long)number_of(port, "peer_port"),
			 text_of(port, "width"), text_of(port, "speed"));
}

static struct json_object *port_of(struct json_object *node, unsigned number)
{
	struct json_object *ports = member_of(node, "ports");

	for (size_t i = 0; i < count_of(ports); i++) {
		struct json_object *port = item_of(ports, i);

		if (number_of(port, "port") == number)
			return port;
	}
	return NULL;
}

static void put_interface(struct capture_file *f, unsigned node_index, unsigned port_number)
{
	struct json_object *node = item_of(f->nodes, node_index);
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];
	char name[96], description[WIRE_PCAPNG_TEXT_MAX];
	uint32_t snap = (uint32_t)f->snap;

	snprintf(name, sizeof(name), "%s:%u", text_of(node, "name"), port_number);
	describe_port(node, port_of(node, port_number), description, sizeof(description));
	put_block(f, block,
		  wire_pcapng_interface_encode(WIRE_LINKTYPE_ERF,
					       snap ? snap + WIRE_ERF_ETHERNET_BYTES : 0, name,
					       description, block));
}

/* of the port that saw @record; NULL: softibd names one that is not there */
static struct interface *interface_of(struct capture_file *f,
				      const struct abi_capture_record *record)
{
	struct json_object *node = item_of(f->nodes, record->node);
	unsigned ports = node ? (unsigned)number_of(node, "num_ports") : 0;
	struct interface *list;

	if (!node || record->port > ports)
		return NULL;
	list = f->interface[record->node];
	if (!list) {
		list = calloc(ports + 1, sizeof(*list));
		if (!list)
			return NULL;
		for (unsigned i = 0; i <= ports; i++)
			list[i].number = INTERFACE_NONE;
		f->interface[record->node] = list;
	}
	if (list[record->port].number == INTERFACE_NONE) {
		put_interface(f, record->node, record->port);
		list[record->port].number = f->num_interfaces++;
	}
	return &list[record->port];
}

/* behind the @len bytes of a whole packet; one that is seen on several cables
 * comes several times in a row, with the same CRCs */
static void put_crcs(struct capture_file *f, uint32_t wrong, uint8_t *packet, size_t len)
{
	if (len != f->known_bytes || memcmp(packet, f->known, len)) {
		memcpy(f->known, packet, len);
		put_be32(f->known + len, wire_icrc(packet, len));
		put_be16(f->known + len + WIRE_ICRC_BYTES,
			 wire_vcrc(f->known, len + WIRE_ICRC_BYTES));
		f->known_bytes = len;
	}
	memcpy(packet + len, f->known + len, CAPTURE_CRC_BYTES);
	if (wrong & ABI_CAPTURE_WRONG_ICRC) {
		packet[len] ^= 0xff;
		put_be16(packet + len + WIRE_ICRC_BYTES,
			 wire_vcrc(packet, len + WIRE_ICRC_BYTES)); /* covers it as it is */
	}
	if (wrong & ABI_CAPTURE_WRONG_VCRC)
		packet[len + WIRE_ICRC_BYTES] ^= 0xff;
}

/** struct shown - what of a packet the file has, behind the header of its record */
struct shown {
	int head;
	uint32_t captured, whole; /* bytes; with the CRCs */
};

/* the packet with its CRCs as far as they are within the limit */
static struct shown put_packet_bytes(struct capture_file *f, const struct abi_capture_record *record,
				     const uint8_t *bytes, size_t len, uint8_t *to)
{
	struct shown shown = {WIRE_ERF_BYTES, (uint32_t)len, record->bytes + CAPTURE_CRC_BYTES};
	uint32_t limit = (uint32_t)f->snap;

	to += shown.head;
	memcpy(to, bytes, len);
	if (len < record->bytes)
		return shown;
	put_crcs(f, record->wrong_crcs, to, len);
	shown.captured = limit ? MIN(limit, shown.whole) : shown.whole;
	return shown;
}

/* Is it the datagram in which a frame of a raw packet QP travels (wire/frame.h)? */
static bool has_frame(const uint8_t *bytes, size_t len)
{
	return len >= FRAME_AT && (bytes[1] & 3) == WIRE_LNH_BTH &&
	       get_be24(bytes + WIRE_LRH_BYTES + 5) == WIRE_QPN_FRAME;
}

/* the frame alone as it is on a link of Ethernet: not shorter than others, and with its FCS */
static struct shown put_frame(struct capture_file *f, const struct abi_capture_record *record,
			      const uint8_t *bytes, size_t len, uint8_t *to)
{
	uint32_t pad = bytes[WIRE_LRH_BYTES + 1] >> 4 & 3, limit = (uint32_t)f->snap;
	uint32_t frame = record->bytes - MIN(FRAME_AT + pad, record->bytes);
	uint32_t padded = MAX(frame, (uint32_t)FRAME_MIN);
	struct shown shown = {WIRE_ERF_ETHERNET_BYTES, MIN((uint32_t)len - FRAME_AT, frame), padded + FCS_BYTES};

	to += shown.head;
	memcpy(to, bytes + FRAME_AT, shown.captured);
	if (shown.captured < frame)
		return shown;
	memset(to + frame, 0, padded - frame);
	put_be32(to + padded, wire_fcs(to, padded));
	if (record->wrong_crcs & ABI_CAPTURE_WRONG_VCRC)
		to[padded] ^= 0xff;
	shown.captured = limit ? MIN(limit, shown.whole) : shown.whole;
	return shown;
}

/* RDMA on a link of Ethernet, as far as it is within the limit: RoCEv2, with its ICRC and the FCS */
static struct shown put_roce(struct capture_file *f, const struct abi_capture_record *record,
			     const uint8_t *bytes, size_t len, uint8_t *to)
{
	const size_t bth = WIRE_LRH_BYTES + WIRE_GRH_BYTES;
	struct wire_roce_headers h = {.vlan_id = record->vlan_id, .priority = bytes[1] >> 4};
	uint32_t limit = (uint32_t)f->snap, head = 0, frame, padded;
	struct shown shown = {.head = WIRE_ERF_ETHERNET_BYTES};

	memcpy(h.dst_mac, record->dst_mac, sizeof(h.dst_mac));
	memcpy(h.src_mac, record->src_mac, sizeof(h.src_mac));
	wire_grh_decode(bytes + WIRE_LRH_BYTES, &h.grh);
	to += shown.head;
	if (len == record->bytes) {
		frame = (uint32_t)wire_roce_encode(&h, bytes + bth, len - bth, to);
		to[frame - 1] ^= record->wrong_crcs & ABI_CAPTURE_WRONG_ICRC ? 0xff : 0;
	} else {
		head = (uint32_t)wire_roce_headers_encode(&h, record->bytes - bth, to);
		memcpy(to + head, bytes + bth, len - bth);
		frame = head + record->bytes - (uint32_t)bth + WIRE_ICRC_BYTES;
	}
	padded = MAX(frame, (uint32_t)FRAME_MIN);
	shown.whole = padded + FCS_BYTES;
	if (len == record->bytes) {
		memset(to + frame, 0, padded - frame);
		put_be32(to + padded, wire_fcs(to, padded));
		to[padded] ^= record->wrong_crcs & ABI_CAPTURE_WRONG_VCRC ? 0xff : 0;
	}
	shown.captured = len == record->bytes ? shown.whole : head + (uint32_t)(len - bth);
	shown.captured = limit ? MIN(limit, shown.captured) : shown.captured;
	return shown;
}

static void put_packet(struct capture_file *f, struct interface *interface,
		       const struct abi_capture_record *record, const uint8_t *bytes,
		       size_t len)
{
	bool is_roce = record->is_roce && len >= WIRE_LRH_BYTES + WIRE_GRH_BYTES;
	bool is_frame = is_roce || has_frame(bytes, len);
	uint8_t *p = batch_room(f, PACKET_BLOCK_MAX), *at = p + WIRE_PCAPNG_PACKET_HEAD;
	struct shown shown = (is_roce ? put_roce : is_frame ? put_frame : put_packet_bytes)(f, record, bytes,
										      len, at);
	struct wire_pcapng_packet head = {
		.interface = interface->number,
		.time_ns = record->time_ns,
		.captured_bytes = (uint32_t)shown.head + shown.captured,
		.bytes = (uint32_t)shown.head + shown.whole,
		.sent = record->sent,
		.dropped = record->dropped - f->dropped_seen,
	};

	wire_pcapng_packet_head(&head, p);
	(is_frame ? wire_erf_encode_ethernet : wire_erf_encode)(record->time_ns, interface->number,
								shown.whole, shown.captured, at);
	f->batch_bytes += WIRE_PCAPNG_PACKET_HEAD + head.captured_bytes;
	f->batch_bytes += (size_t)wire_pcapng_packet_tail(&head, at + head.captured_bytes);
	f->dropped_seen = record->dropped;
	f->last_time_ns = record->time_ns;
	interface->packets++;
	f->packets++;
	f->bytes += shown.whole;
}

void capture_file_put(struct capture_file *f, const struct abi_capture_record *record,
		      const uint8_t *bytes, size_t len)
{
	struct interface *interface = interface_of(f, record);

	if (interface)
		put_packet(f, interface, record, bytes, len);
}

void capture_file_end(struct capture_file *f, uint64_t dropped)
{
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];
	char comment[96] = "";

	if (dropped)
		snprintf(comment, sizeof(comment),
			 "%llu packets of all ports were dropped: the reader was slow",
			 (unsigned long long)dropped);
	for (size_t n = 0; n < count_of(f->nodes); n++) {
		struct json_object *node = item_of(f->nodes, n);

		for (int64_t p = 0; f->interface[n] && p <= number_of(node, "num_ports");
		     p++) {
			const struct interface *i = &f->interface[n][p];

			if (i->number != INTERFACE_NONE)
				put_block(f, block,
					  wire_pcapng_statistics_encode(
						  i->number, f->last_time_ns, i->packets,
						  comment[0] ? comment : NULL, block));
		}
	}
	capture_file_flush(f);
}

int capture_file_begin(struct capture_file *f)
{
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];

	f->interface = calloc(count_of(f->nodes) + 1, sizeof(*f->interface));
	f->batch = malloc(BATCH_BYTES);
	if (!f->interface || !f->batch)
		return complain("out of memory");
	put_block(f, block, wire_pcapng_section_encode("softib " SOFTIB_VERSION, block));
	return 0;
}

void capture_file_free(struct capture_file *f)
{
	for (size_t i = 0; f->interface && i < count_of(f->nodes); i++)
		free(f->interface[i]);
	free(f->interface);
	free(f->batch);
}
