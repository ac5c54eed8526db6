/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The headers of a capture that tshark reads: pcap with link type ERF, whose
 * records of type InfiniBand contain packets from LRH to VCRC, with the time in
 * units of 2^-32 s. These functions only encode bytes; the caller writes the file.
 */
#ifndef SOFTIB_WIRE_ERF_H
#define SOFTIB_WIRE_ERF_H

#include "base/types.h"

#define WIRE_PCAP_FILE_BYTES	 24
#define WIRE_PCAP_RECORD_BYTES	 16
#define WIRE_LINKTYPE_ERF	 197
#define WIRE_LINKTYPE_INFINIBAND 247 /* packets from the LRH, no record header */
#define WIRE_ERF_BYTES		 16
#define WIRE_ERF_TYPE_INFINIBAND 21
#define WIRE_ERF_TYPE_ETHERNET	 2
#define WIRE_ERF_ETHERNET_BYTES	 (WIRE_ERF_BYTES + 2) /* with the offset and the pad of a frame */

/** wire_pcap_file_encode() - header of a pcap file, little-endian.
 *  @linktype: WIRE_LINKTYPE_... Return: 24 */
int wire_pcap_file_encode(uint32_t linktype, uint32_t snap_bytes, void *buf);

/** wire_pcap_record_encode() - header before each record
 *  @time_ns: since 1970; @bytes: length of the record. Return: 16 */
int wire_pcap_record_encode(uint64_t time_ns, uint32_t bytes, void *buf);

/**
 * wire_erf_encode() - ERF header of one InfiniBand packet
 * @time_ns: since 1970
 * @interface: 0..3, shown as the capture port
 * @packet_bytes: LRH to VCRC
 * @captured_bytes: how many of these follow in the record
 * Return: 16; -EINVAL the packet is too long for a record (65519 bytes).
 */
int wire_erf_encode(uint64_t time_ns, unsigned int interface, size_t packet_bytes,
		    size_t captured_bytes, void *buf);

/** wire_erf_encode_ethernet() - the same of one Ethernet frame
 *  @frame_bytes: with the FCS
 *  Return: WIRE_ERF_ETHERNET_BYTES; -EINVAL */
int wire_erf_encode_ethernet(uint64_t time_ns, unsigned int interface, size_t frame_bytes,
			     size_t captured_bytes, void *buf);

#endif
