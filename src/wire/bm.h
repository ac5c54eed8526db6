/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Baseboard management (IBA v1 16.2): a B_Key, then a command for the board. */
#ifndef SOFTIB_WIRE_BM_H
#define SOFTIB_WIRE_BM_H

#include "wire/mad.h"

#define WIRE_BM_CLASS_VERSION 1
#define WIRE_BM_DATA_OFFSET 64
#define WIRE_BM_DATA_BYTES 192

/** struct wire_bm - header of a baseboard management MAD (16.2.1) */
struct wire_bm {
	struct wire_mad mad;
	uint64_t bkey;
};
WIRE_CODEC(bm)

enum wire_bm_attr {
	WIRE_BM_BKEY_INFO = 0x0010,
	WIRE_BM_WRITE_VPD = 0x0020,
	WIRE_BM_READ_VPD = 0x0021,
	WIRE_BM_RESET_IBML = 0x0022,
	WIRE_BM_SET_MODULE_PM_CONTROL = 0x0023,
	WIRE_BM_GET_MODULE_PM_CONTROL = 0x0024,
	WIRE_BM_SET_UNIT_PM_CONTROL = 0x0025,
	WIRE_BM_GET_UNIT_PM_CONTROL = 0x0026,
	WIRE_BM_SET_IOC_PM_CONTROL = 0x0027,
	WIRE_BM_GET_IOC_PM_CONTROL = 0x0028,
	WIRE_BM_SET_MODULE_STATE = 0x0029,
	WIRE_BM_SET_MODULE_ATTENTION = 0x002a,
	WIRE_BM_GET_MODULE_STATUS = 0x002b,
	WIRE_BM_IB2IBML = 0x002c,
	WIRE_BM_IB2CME = 0x002d,
	WIRE_BM_IB2MME = 0x002e,
	WIRE_BM_OEM = 0x002f,
};

/** struct wire_bkey_info - BKeyInfo (16.2.3.3) */
struct wire_bkey_info {
	uint64_t bkey;
	bool protect;
	uint16_t lease_period_s;
	uint16_t violations;
};
WIRE_CODEC(bkey_info)

/** struct wire_bm_command - a command or its answer (16.2.4): all other ids */
struct wire_bm_command {
	uint8_t data[WIRE_BM_DATA_BYTES];
};
WIRE_CODEC(bm_command)

#endif
