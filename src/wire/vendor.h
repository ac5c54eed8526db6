/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Vendor classes (IBA v1 16.5). In 0x09..0x0f data follows the common header; in
 * 0x30..0x4f an RMPP header and the vendor's OUI precede the data.
 */
#ifndef SOFTIB_WIRE_VENDOR_H
#define SOFTIB_WIRE_VENDOR_H

#include "wire/mad.h"
#include "wire/rmpp.h"

#define WIRE_VENDOR_LOW_DATA_OFFSET 24
#define WIRE_VENDOR_LOW_DATA_BYTES 232
#define WIRE_VENDOR_HIGH_DATA_OFFSET 40
#define WIRE_VENDOR_HIGH_DATA_BYTES 216

#define WIRE_OUI_OPENIB 0x001405u /* ibping, ibsysstat */
#define WIRE_CLASS_OPENIB_PING 0x32
#define WIRE_CLASS_OPENIB_SYSSTAT 0x33

/** struct wire_vendor - header of the classes 0x30..0x4f (16.5.1) */
struct wire_vendor {
	struct wire_mad mad;
	struct wire_rmpp rmpp;
	uint32_t oui; /* 24 bits */
};
WIRE_CODEC(vendor)

#endif
