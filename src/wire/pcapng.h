/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in which each port
 * of a fabric is an interface. These functions only encode bytes, in little-endian
 * order; the caller writes the file. A file consists of one section, interfaces
 * (each before its first packet), packets, and statistics at the end.
 */
#ifndef SOFTIB_WIRE_PCAPNG_H
#define SOFTIB_WIRE_PCAPNG_H

#include "base/types.h"

#define WIRE_PCAPNG_BLOCK_MAX	512 /* largest block, packet blocks excepted */
#define WIRE_PCAPNG_PACKET_HEAD 28
#define WIRE_PCAPNG_PACKET_TAIL 36  /* at most */
#define WIRE_PCAPNG_TEXT_MAX	160 /* longest text; the rest is cut off */

/** wire_pcapng_section_encode() - @buf: WIRE_PCAPNG_BLOCK_MAX bytes, as for
 *  the next ones. Return: the block's bytes */
int wire_pcapng_section_encode(const char *application, void *buf);

/**
 * wire_pcapng_interface_encode() - the next interface; the first is number 0
 * @linktype: WIRE_LINKTYPE_... (wire/erf.h); times are in nanoseconds
 * @snap_bytes: of a packet that are kept; 0: all
 * Return: the block's bytes
 */
int wire_pcapng_interface_encode(uint16_t linktype, uint32_t snap_bytes, const char *name,
				 const char *description, void *buf);

/** struct wire_pcapng_packet - the fields of a packet block, without the packet's bytes */
struct wire_pcapng_packet {
	uint32_t interface;
	uint64_t time_ns; /* since 1970 */
	uint32_t captured_bytes, bytes;
	bool sent;	  /* sent by the interface; otherwise received */
	uint64_t dropped; /* packets that the capture has lost since the previous block */
};
/** wire_pcapng_packet_head() - encode the part before the packet's bytes
 *  Return: WIRE_PCAPNG_PACKET_HEAD */
int wire_pcapng_packet_head(const struct wire_pcapng_packet *packet, void *buf);
/** wire_pcapng_packet_tail() - encode the part after them. Return: its length */
int wire_pcapng_packet_tail(const struct wire_pcapng_packet *packet, void *buf);

/** wire_pcapng_statistics_encode() - of one interface, at the end.
 *  Return: the block's bytes */
int wire_pcapng_statistics_encode(uint32_t interface, uint64_t time_ns, uint64_t received,
				  const char *comment, void *buf);

#endif
