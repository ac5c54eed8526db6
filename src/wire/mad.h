/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The common part of all management datagrams (IBA v1 chapter 13): the 24-byte
 * common header, classes, methods, status, the attributes of every class, and the
 * directory of all classes and attributes that this layer can encode.
 */
#ifndef SOFTIB_WIRE_MAD_H
#define SOFTIB_WIRE_MAD_H

#include "base/bytes.h"
#include "wire/fields.h"
#include "wire/packet.h"

#define WIRE_MAD_BYTES	      256
#define WIRE_MAD_HEADER_BYTES 24
#define WIRE_MAD_BASE_VERSION 1

/* Management classes (13.4.4) */
enum wire_class {
	WIRE_CLASS_SM_LID = 0x01,    /* subnet management, LID routed */
	WIRE_CLASS_SM_DIRECT = 0x81, /* subnet management, directed route */
	WIRE_CLASS_SA = 0x03,
	WIRE_CLASS_PERF = 0x04,
	WIRE_CLASS_BM = 0x05, /* baseboard management */
	WIRE_CLASS_DM = 0x06, /* device management */
	WIRE_CLASS_CM = 0x07, /* communication management */
	WIRE_CLASS_SNMP = 0x08,
	WIRE_CLASS_VENDOR_LOW = 0x09, /* ..0x0f: no RMPP, no OUI */
	WIRE_CLASS_VENDOR_LOW_LAST = 0x0f,
	WIRE_CLASS_DEV_ADM = 0x10,
	WIRE_CLASS_BIS = 0x12,
	WIRE_CLASS_CC = 0x21,	       /* congestion control (A10) */
	WIRE_CLASS_VENDOR_HIGH = 0x30, /* ..0x4f: RMPP and OUI */
	WIRE_CLASS_VENDOR_HIGH_LAST = 0x4f,
};

/* Methods (13.4.5); the response bit is part of the value */
enum wire_method {
	WIRE_METHOD_GET = 0x01,
	WIRE_METHOD_SET = 0x02,
	WIRE_METHOD_SEND = 0x03,
	WIRE_METHOD_TRAP = 0x05,
	WIRE_METHOD_REPORT = 0x06,
	WIRE_METHOD_TRAP_REPRESS = 0x07,
	WIRE_METHOD_GET_TABLE = 0x12,	    /* SA */
	WIRE_METHOD_GET_TRACE_TABLE = 0x13, /* SA */
	WIRE_METHOD_GET_MULTI = 0x14,	    /* SA */
	WIRE_METHOD_DELETE = 0x15,	    /* SA */
	WIRE_METHOD_RESPONSE = 0x80,	    /* the bit */
	WIRE_METHOD_GET_RESP = 0x81,
	WIRE_METHOD_REPORT_RESP = 0x86,
	WIRE_METHOD_GET_TABLE_RESP = 0x92,
	WIRE_METHOD_GET_MULTI_RESP = 0x94,
	WIRE_METHOD_DELETE_RESP = 0x95,
};

/* Status, the bits common to all classes (13.4.7) */
enum wire_status {
	WIRE_STATUS_OK = 0x0000,
	WIRE_STATUS_BUSY = 0x0001,
	WIRE_STATUS_REDIRECT = 0x0002,
	WIRE_STATUS_BAD_VERSION = 0x0004,
	WIRE_STATUS_BAD_METHOD = 0x0008,
	WIRE_STATUS_BAD_METHOD_ATTR = 0x000c,
	WIRE_STATUS_BAD_FIELD = 0x001c, /* attribute or modifier value */
	WIRE_STATUS_CLASS_MASK = 0xff00,
};
#define WIRE_STATUS_DIRECTION 0x8000 /* D bit of a directed-route SMP */

/* Attributes of every class (13.4.8) */
enum wire_attr_common {
	WIRE_ATTR_CLASS_PORT_INFO = 0x0001,
	WIRE_ATTR_NOTICE = 0x0002,
	WIRE_ATTR_INFORM_INFO = 0x0003,
};

/** struct wire_mad - the common MAD header (13.4.3) */
struct wire_mad {
	uint8_t base_version;
	uint8_t mgmt_class; /* enum wire_class */
	uint8_t class_version;
	uint8_t method; /* enum wire_method */
	uint16_t status;
	uint16_t class_specific; /* directed-route SMPs: hop pointer, hop count */
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
};
WIRE_CODEC(mad)

/** wire_mad_attr_id() - attr_id of a MAD, for those who need no other field */
static inline uint16_t wire_mad_attr_id(const void *mad)
{
	return get_be16((const uint8_t *)mad + 16);
}

/** struct wire_class_port_info - ClassPortInfo (13.4.8.1) */
struct wire_class_port_info {
	uint8_t base_version, class_version;
	uint16_t cap_mask;     /* WIRE_CPI_... and bits of the class */
	uint32_t cap_mask2;    /* 27 bits */
	uint8_t resp_time_enc; /* 4.096 us << value */
	union wire_gid redirect_gid;
	uint8_t redirect_tclass, redirect_sl;
	uint32_t redirect_flow_label;
	uint16_t redirect_lid, redirect_pkey;
	uint32_t redirect_qpn, redirect_qkey;
	union wire_gid trap_gid;
	uint8_t trap_tclass, trap_sl;
	uint32_t trap_flow_label;
	uint16_t trap_lid, trap_pkey;
	uint8_t trap_hop_limit;
	uint32_t trap_qpn, trap_qkey;
};
WIRE_CODEC(class_port_info)
#define WIRE_CPI_IS_TRAP_SUPPORTED	     0x0001
#define WIRE_CPI_IS_GET_SET_NOTICE_SUPPORTED 0x0002

/* Notice.Type (13.4.8.2) and the node types used as its producer */
enum wire_notice_type {
	WIRE_NOTICE_FATAL = 0,
	WIRE_NOTICE_URGENT = 1,
	WIRE_NOTICE_SECURITY = 2,
	WIRE_NOTICE_SM = 3,
	WIRE_NOTICE_INFORMATIONAL = 4,
	WIRE_NOTICE_EMPTY = 0x7f,
};
enum wire_producer {
	WIRE_PRODUCER_CA = 1,
	WIRE_PRODUCER_SWITCH = 2,
	WIRE_PRODUCER_ROUTER = 3,
	WIRE_PRODUCER_CLASS_MANAGER = 4,
};
#define WIRE_NOTICE_DETAILS_BYTES 54

/** struct wire_notice - Notice (13.4.8.2). An SMP has no room for issuer_gid: use
 *  wire_smp_notice_decode() and wire_smp_notice_encode() for it. */
struct wire_notice {
	bool is_generic;
	uint8_t type;	      /* enum wire_notice_type */
	uint32_t producer;    /* enum wire_producer, or a vendor id */
	uint16_t trap_number; /* or a device id */
	uint16_t issuer_lid;
	bool toggle;
	uint16_t count;				    /* 15 bits */
	uint8_t details[WIRE_NOTICE_DETAILS_BYTES]; /* see smp.h: wire_trap_... */
	union wire_gid issuer_gid;
};
WIRE_CODEC(notice)
WIRE_CODEC_OF(smp_notice, struct wire_notice)

/** struct wire_inform_info - InformInfo (13.4.8.3) */
struct wire_inform_info {
	union wire_gid gid;
	uint16_t lid_range_begin, lid_range_end;
	uint8_t is_generic, subscribe;
	uint16_t type;	      /* 0xffff: all */
	uint16_t trap_number; /* or a device id; 0xffff: all */
	uint32_t qpn;
	uint8_t resp_time_enc;
	uint32_t producer; /* or a vendor id; 0xffffff: all */
};
WIRE_CODEC(inform_info)

/** struct wire_attr - one attribute of a class */
struct wire_attr {
	uint16_t id;
	const struct wire_codec *codec;
};

/** struct wire_mgmt_class - the format of the MADs of one or more classes */
struct wire_mgmt_class {
	const char *name;
	uint8_t first, last;		 /* class codes */
	uint8_t version;		 /* ClassVersion */
	const struct wire_codec *header; /* everything but the attribute */
	uint16_t data_offset;		 /* where attributes begin in the MAD */
	uint16_t data_bytes;
	const struct wire_attr *attrs;	 /* ends with codec NULL; may be NULL */
};

/** wire_classes - every class that this layer knows; wire_nr_classes of them */
extern const struct wire_mgmt_class wire_classes[];
extern const unsigned int wire_nr_classes;

/** wire_class_find() - Return: the row for a class code; NULL unknown */
const struct wire_mgmt_class *wire_class_find(uint8_t mgmt_class);
/** wire_attr_find() - Return: an attribute of a class; NULL unknown */
const struct wire_attr *wire_attr_find(const struct wire_mgmt_class *cls,
				       uint16_t attr_id);
/** wire_class_has_rmpp() - may MADs of this class carry an RMPP header? (13.6.1) */
bool wire_class_has_rmpp(uint8_t mgmt_class);

#endif
