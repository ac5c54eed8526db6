/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SCSI RDMA Protocol (T10 SRP, revision 16a): the information units (IU) of an
 * initiator and a target. Each IU has a fixed part, which is a codec; SRP_CMD, SRP_RSP
 * and SRP_AER_REQ carry more behind it, which the functions at the end find and check.
 */
#ifndef SOFTIB_WIRE_SRP_H
#define SOFTIB_WIRE_SRP_H

#include "wire/fields.h"

/* How device management describes a target (annex B.7 of SRP; IBA v1 annex A1). The name
 * of its service is WIRE_SRP_SERVICE_NAME and the identifier extension in 16 hex digits.
 */
#define WIRE_SRP_IO_CLASS	  0x0100
#define WIRE_SRP_IO_SUBCLASS	  0x609e
#define WIRE_SRP_PROTOCOL	  0x0108
#define WIRE_SRP_PROTOCOL_VERSION 1
#define WIRE_SRP_SERVICE_NAME	  "SRP.T10:"

#define WIRE_SRP_DESC_BYTES   16
#define WIRE_SRP_CMD_BYTES    48 /* of the fixed part */
#define WIRE_SRP_RSP_BYTES    36
#define WIRE_SRP_TABLE_BYTES  20 /* an indirect table's descriptor and total length */
#define WIRE_SRP_MIN_IU_BYTES 64 /* what each end can receive at least */

enum wire_srp_opcode {
	WIRE_SRP_LOGIN_REQ = 0x00,
	WIRE_SRP_TSK_MGMT = 0x01,
	WIRE_SRP_CMD = 0x02,
	WIRE_SRP_I_LOGOUT = 0x03,
	WIRE_SRP_CRED_RSP = 0x41,
	WIRE_SRP_AER_RSP = 0x42,
	WIRE_SRP_T_LOGOUT = 0x80,
	WIRE_SRP_CRED_REQ = 0x81,
	WIRE_SRP_AER_REQ = 0x82,
	WIRE_SRP_LOGIN_RSP = 0xc0,
	WIRE_SRP_RSP = 0xc1,
	WIRE_SRP_LOGIN_REJ = 0xc2,
};

/* the bits of formats in a login's request, response and reject */
enum wire_srp_formats { WIRE_SRP_DIRECT_OK = 2, WIRE_SRP_INDIRECT_OK = 4 };

/* flags of a login's request and response */
enum wire_srp_login_flags {
	WIRE_SRP_MULTICHANNEL = 3, /* the mask of what follows */
	WIRE_SRP_SINGLE = 0,	   /* request: end the initiator's other channels */
	WIRE_SRP_MULTI = 1,	   /* request: keep them */
	WIRE_SRP_NONE_BEFORE = 0,  /* response: there were no other channels */
	WIRE_SRP_TERMINATED = 1,
	WIRE_SRP_MAINTAINED = 2,
	WIRE_SRP_IMMEDIATE = 0x80, /* immediate data is asked for, or accepted (SRP-2) */
};

enum wire_srp_reject {
	WIRE_SRP_REJECT_UNSPECIFIED = 0x00010000,
	WIRE_SRP_REJECT_RESOURCES = 0x00010001,
	WIRE_SRP_REJECT_IU_TOO_LARGE = 0x00010002,
	WIRE_SRP_REJECT_ASSOCIATION = 0x00010003,
	WIRE_SRP_REJECT_FORMATS = 0x00010004,
	WIRE_SRP_REJECT_NO_MULTICHANNEL = 0x00010005,
	WIRE_SRP_REJECT_CHANNEL_LIMIT = 0x00010006,
};

enum wire_srp_task_attr {
	WIRE_SRP_SIMPLE = 0,
	WIRE_SRP_HEAD_OF_QUEUE = 1,
	WIRE_SRP_ORDERED = 2,
	WIRE_SRP_ACA = 4,
};

enum wire_srp_task_function {
	WIRE_SRP_ABORT_TASK = 0x01,
	WIRE_SRP_ABORT_TASK_SET = 0x02,
	WIRE_SRP_CLEAR_TASK_SET = 0x04,
	WIRE_SRP_LUN_RESET = 0x08,
	WIRE_SRP_CLEAR_ACA = 0x40,
};

enum wire_srp_rsp_flags {
	WIRE_SRP_RSP_VALID = 1 << 0,
	WIRE_SRP_SENSE_VALID = 1 << 1,
	WIRE_SRP_OUT_OVER = 1 << 2,
	WIRE_SRP_OUT_UNDER = 1 << 3,
	WIRE_SRP_IN_OVER = 1 << 4,
	WIRE_SRP_IN_UNDER = 1 << 5,
};

/* the last of the four bytes of response data */
enum wire_srp_response {
	WIRE_SRP_RESPONSE_OK = 0x00,
	WIRE_SRP_RESPONSE_BAD_FIELDS = 0x02,
	WIRE_SRP_RESPONSE_UNSUPPORTED = 0x04,
	WIRE_SRP_RESPONSE_FAILED = 0x05,
};

struct wire_srp_login_req {
	uint8_t opcode;
	uint64_t tag;
	uint32_t it_iu_bytes; /* the longest IU that the initiator wants to send */
	uint16_t formats;     /* enum wire_srp_formats that it needs */
	uint8_t flags;	      /* enum wire_srp_login_flags */
	uint16_t immediate_offset;
	uint8_t initiator[16], target[16]; /* port identifiers */
};
WIRE_CODEC(srp_login_req)

struct wire_srp_login_rsp {
	uint8_t opcode;
	uint32_t limit_delta; /* requests that the initiator may have outstanding */
	uint64_t tag;
	uint32_t it_iu_bytes, ti_iu_bytes; /* the longest IU in each direction */
	uint16_t formats;
	uint8_t flags;
};
WIRE_CODEC(srp_login_rsp)

struct wire_srp_login_rej {
	uint8_t opcode;
	uint32_t reason; /* enum wire_srp_reject */
	uint64_t tag;
	uint16_t formats;
};
WIRE_CODEC(srp_login_rej)

struct wire_srp_i_logout {
	uint8_t opcode;
	uint64_t tag;
};
WIRE_CODEC(srp_i_logout)

/* SRP_CRED_RSP and SRP_AER_RSP: all of an I_LOGOUT but the opcode */
WIRE_CODEC_OF(srp_cred_rsp, struct wire_srp_i_logout)
WIRE_CODEC_OF(srp_aer_rsp, struct wire_srp_i_logout)

struct wire_srp_t_logout {
	uint8_t opcode;
	uint8_t solicited;
	uint32_t reason;
	uint64_t tag;
};
WIRE_CODEC(srp_t_logout)

struct wire_srp_tsk_mgmt {
	uint8_t opcode;
	uint8_t solicited;
	uint64_t tag;
	uint8_t lun[8];
	uint8_t function; /* enum wire_srp_task_function */
	uint64_t task_tag;
};
WIRE_CODEC(srp_tsk_mgmt)

struct wire_srp_cmd {
	uint8_t opcode;
	uint8_t solicited;
	uint8_t out_format, in_format;	   /* enum wire_srp_format, 4 bits */
	uint8_t nr_out_descs, nr_in_descs; /* of an indirect format: in the IU itself */
	uint64_t tag;
	uint8_t lun[8];
	uint8_t task_attr;	 /* enum wire_srp_task_attr, 3 bits */
	uint8_t more_cdb_dwords; /* of the CDB, behind the first 16 bytes; 6 bits */
	uint8_t cdb[16];
};
WIRE_CODEC(srp_cmd)

struct wire_srp_rsp {
	uint8_t opcode;
	uint8_t solicited;
	uint32_t limit_delta;
	uint64_t tag;
	uint8_t flags;	/* enum wire_srp_rsp_flags */
	uint8_t status; /* SAM's */
	uint32_t out_residual_bytes, in_residual_bytes;
	uint32_t sense_bytes, response_bytes;
};
WIRE_CODEC(srp_rsp)

struct wire_srp_cred_req {
	uint8_t opcode;
	uint8_t solicited;
	uint32_t limit_delta;
	uint64_t tag;
};
WIRE_CODEC(srp_cred_req)

struct wire_srp_aer_req {
	uint8_t opcode;
	uint8_t solicited;
	uint32_t limit_delta;
	uint64_t tag;
	uint8_t lun[8];
	uint32_t sense_bytes;
};
WIRE_CODEC(srp_aer_req)

/** struct wire_srp_desc - memory of the initiator: what RDMA reads or writes */
struct wire_srp_desc {
	uint64_t address;
	uint32_t rkey;
	uint32_t bytes;
};
WIRE_CODEC(srp_desc)

/** wire_srp_codec() - the fixed part of an IU. Return: NULL: no IU has this opcode */
const struct wire_codec *wire_srp_codec(uint8_t opcode);

/* --- what follows the fixed part --- */

enum wire_srp_format {
	WIRE_SRP_NO_DATA = 0,
	WIRE_SRP_DIRECT = 1,   /* one descriptor */
	WIRE_SRP_INDIRECT = 2, /* a table of them, of which the IU has the first */
	WIRE_SRP_IMMEDIATE_DATA =
		3, /* the data itself, from initiator to target (SRP-2) */
};

/** struct wire_srp_data - the buffer of one direction of a command */
struct wire_srp_data {
	enum wire_srp_format format;
	uint32_t bytes;		    /* of data */
	struct wire_srp_desc where; /* DIRECT: the buffer; INDIRECT: the whole table */
	uint32_t nr_descs;	    /* INDIRECT: that the table has */
	uint32_t nr_here;	    /* INDIRECT: that stand in the IU */
	const uint8_t *here; /* in the IU: those descriptors, or the immediate data */
};

/** struct wire_srp_cmd_parts - what a command carries behind its fixed part */
struct wire_srp_cmd_parts {
	const uint8_t *more_cdb;
	size_t more_cdb_bytes;
	struct wire_srp_data out, in;
};

/**
 * wire_srp_cmd_split() - find and check what follows the fixed part of a command
 * @cmd: decoded from @iu
 * @immediate_offset: where immediate data starts in an IU, as agreed at login; 0: there
 *		      is none
 * @parts: set on success; points into @iu
 * Return: 0; -EINVAL the IU is too short for what it says, a format is unknown, a table
 *is no whole number of descriptors, or a complete one describes less than its total
 *length.
 */
int wire_srp_cmd_split(const struct wire_srp_cmd *cmd, const uint8_t *iu, size_t len,
		       uint16_t immediate_offset, struct wire_srp_cmd_parts *parts);

/**
 * wire_srp_cmd_build() - write a command with direct and indirect descriptors
 * @cmd: its formats, counts and more_cdb_dwords are taken from @parts
 * Return: bytes; -EINVAL a value does not fit, or immediate data; -ENOSPC @room is too
 * small.
 */
int wire_srp_cmd_build(const struct wire_srp_cmd *cmd,
		       const struct wire_srp_cmd_parts *parts, uint8_t *iu, size_t room);

/** wire_srp_data_desc() - descriptor @i of those in the IU; of DIRECT, @i is 0 */
struct wire_srp_desc wire_srp_data_desc(const struct wire_srp_data *data, uint32_t i);

/**
 * wire_srp_rsp_split() - find response data and sense data
 * @response, @sense: set on success to what @rsp's lengths describe in @iu; NULL: @rsp's
 *		      flags say that there is none
 * Return: 0; -EINVAL they exceed @len.
 */
int wire_srp_rsp_split(const struct wire_srp_rsp *rsp, const uint8_t *iu, size_t len,
		       const uint8_t **response, const uint8_t **sense);

/** wire_srp_rsp_build() - write a response; @response and @sense have the lengths of @rsp
 *  Return: bytes; -EINVAL a value does not fit; -ENOSPC @room is too small. */
int wire_srp_rsp_build(const struct wire_srp_rsp *rsp, const uint8_t *response,
		       const uint8_t *sense, uint8_t *iu, size_t room);

/** wire_srp_aer_split() - find the sense data. Return: 0; -EINVAL it exceeds @len. */
int wire_srp_aer_split(const struct wire_srp_aer_req *aer, const uint8_t *iu, size_t len,
		       const uint8_t **sense);

#endif
