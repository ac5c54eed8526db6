/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The header of the reliable multi-packet transaction protocol (IBA v1 13.6):
 * bytes 24..35 of the MADs of SA and of the vendor classes 0x30..0x4f.
 */
#ifndef SOFTIB_WIRE_RMPP_H
#define SOFTIB_WIRE_RMPP_H

#include "wire/fields.h"

#define WIRE_RMPP_OFFSET 24
#define WIRE_RMPP_BYTES 12
#define WIRE_RMPP_VERSION 1
#define WIRE_RMPP_NO_RESP_TIME 0x1f

enum wire_rmpp_type {
	WIRE_RMPP_NONE = 0,
	WIRE_RMPP_DATA = 1,
	WIRE_RMPP_ACK = 2,
	WIRE_RMPP_STOP = 3,
	WIRE_RMPP_ABORT = 4,
};

enum wire_rmpp_flags {
	WIRE_RMPP_ACTIVE = 1,
	WIRE_RMPP_FIRST = 2,
	WIRE_RMPP_LAST = 4,
};

/* RMPPStatus (13.6.2.1) */
enum wire_rmpp_status {
	WIRE_RMPP_OK = 0,
	WIRE_RMPP_RESOURCES_EXHAUSTED = 1, /* STOP only */
	WIRE_RMPP_TIME_TOO_LONG = 118,
	WIRE_RMPP_INCONSISTENT_LAST = 119, /* Last and PayloadLength */
	WIRE_RMPP_INCONSISTENT_FIRST = 120, /* First and SegmentNumber */
	WIRE_RMPP_BAD_TYPE = 121,
	WIRE_RMPP_WINDOW_TOO_SMALL = 122,
	WIRE_RMPP_SEGMENT_TOO_BIG = 123,
	WIRE_RMPP_ILLEGAL_STATUS = 124,
	WIRE_RMPP_BAD_VERSION = 125,
	WIRE_RMPP_TOO_MANY_RETRIES = 126,
	WIRE_RMPP_UNSPECIFIED = 127,
};

/** struct wire_rmpp - RMPP header */
struct wire_rmpp {
	uint8_t version;
	uint8_t type;	       /* enum wire_rmpp_type */
	uint8_t resp_time_enc; /* 5 bits: 4.096 us << value */
	uint8_t flags;	       /* enum wire_rmpp_flags, 3 bits */
	uint8_t status;	       /* enum wire_rmpp_status */
	uint32_t segment;      /* DATA, ACK: segment number; else reserved */
	uint32_t length;       /* DATA: payload length; ACK: new window last */
};
WIRE_CODEC(rmpp)

#endif
