/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Headers of captures; see erf.h. Times in an ERF header are little-endian 32.32 fixed
 * point numbers; all other fields are big-endian. */
#include "wire/erf.h"
#include "base/bytes.h"

#include <errno.h>

#define ERF_FLAG_VARIABLE_LENGTH 0x04
#define PCAP_MAGIC_NS		 0xa1b23c4du

static void put_le16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

int wire_pcap_file_encode(uint32_t linktype, uint32_t snap_bytes, void *buf)
{
	uint8_t *b = buf;

	put_le32(b, PCAP_MAGIC_NS);
	put_le16(b + 4, 2); /* version 2.4 */
	put_le16(b + 6, 4);
	put_le32(b + 8, 0);
	put_le32(b + 12, 0);
	put_le32(b + 16, snap_bytes);
	put_le32(b + 20, linktype);
	return WIRE_PCAP_FILE_BYTES;
}

int wire_pcap_record_encode(uint64_t time_ns, uint32_t bytes, void *buf)
{
	uint8_t *b = buf;

	put_le32(b, (uint32_t)(time_ns / NSEC_PER_SEC));
	put_le32(b + 4, (uint32_t)(time_ns % NSEC_PER_SEC));
	put_le32(b + 8, bytes);
	put_le32(b + 12, bytes);
	return WIRE_PCAP_RECORD_BYTES;
}

/* @head: bytes of the record before the packet */
static int encode(uint8_t type, uint64_t time_ns, unsigned int interface, size_t packet_bytes,
		  size_t captured_bytes, int head, uint8_t *b)
{
	uint64_t fraction = ((time_ns % NSEC_PER_SEC) << 32) / NSEC_PER_SEC;

	if (packet_bytes > UINT16_MAX - (size_t)head || captured_bytes > packet_bytes)
		return -EINVAL;
	put_le32(b, (uint32_t)fraction);
	put_le32(b + 4, (uint32_t)(time_ns / NSEC_PER_SEC));
	b[8] = type;
	b[9] = (uint8_t)(ERF_FLAG_VARIABLE_LENGTH | (interface & 3));
	put_be16(b + 10, (uint16_t)(captured_bytes + (size_t)head)); /* record */
	put_be16(b + 12, 0);					     /* losses */
	put_be16(b + 14, (uint16_t)packet_bytes);		     /* on the wire */
	memset(b + WIRE_ERF_BYTES, 0, (size_t)head - WIRE_ERF_BYTES);
	return head;
}

int wire_erf_encode(uint64_t time_ns, unsigned int interface, size_t packet_bytes,
		    size_t captured_bytes, void *buf)
{
	return encode(WIRE_ERF_TYPE_INFINIBAND, time_ns, interface, packet_bytes, captured_bytes,
		      WIRE_ERF_BYTES, buf);
}

int wire_erf_encode_ethernet(uint64_t time_ns, unsigned int interface, size_t frame_bytes,
			     size_t captured_bytes, void *buf)
{
	return encode(WIRE_ERF_TYPE_ETHERNET, time_ns, interface, frame_bytes, captured_bytes,
		      WIRE_ERF_ETHERNET_BYTES, buf);
}
