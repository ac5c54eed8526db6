/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of SRP's information units, and what commands and responses carry behind
 * their fixed parts. No length of a peer's is trusted: each is compared with what is
 * left. */
#include "wire/srp.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/fields_table.h"

#define S struct wire_srp_login_req
static const struct wire_field srp_login_req_fields[] = {
	F(opcode, 0, 8),
	R(8, 56),
	F(tag, 64, 64),
	F(it_iu_bytes, 128, 32),
	R(160, 32),
	F(formats, 192, 16),
	F(flags, 208, 8),
	R(216, 8),
	F(immediate_offset, 224, 16),
	R(240, 16),
	B(initiator, 256, 16),
	B(target, 384, 16),
};
CODEC(srp_login_req, "SRP_LOGIN_REQ", 64);
#undef S

#define S struct wire_srp_login_rsp
static const struct wire_field srp_login_rsp_fields[] = {
	F(opcode, 0, 8),
	R(8, 24),
	F(limit_delta, 32, 32),
	F(tag, 64, 64),
	F(it_iu_bytes, 128, 32),
	F(ti_iu_bytes, 160, 32),
	F(formats, 192, 16),
	F(flags, 208, 8),
	R(216, 200),
};
CODEC(srp_login_rsp, "SRP_LOGIN_RSP", 52);
#undef S

#define S struct wire_srp_login_rej
static const struct wire_field srp_login_rej_fields[] = {
	F(opcode, 0, 8),     R(8, 24),	 F(reason, 32, 32), F(tag, 64, 64), R(128, 64),
	F(formats, 192, 16), R(208, 48),
};
CODEC(srp_login_rej, "SRP_LOGIN_REJ", 32);
#undef S

#define S struct wire_srp_i_logout
static const struct wire_field srp_i_logout_fields[] = {
	F(opcode, 0, 8),
	R(8, 56),
	F(tag, 64, 64),
};
CODEC(srp_i_logout, "SRP_I_LOGOUT", 16);
#define srp_cred_rsp_fields srp_i_logout_fields
CODEC(srp_cred_rsp, "SRP_CRED_RSP", 16);
#define srp_aer_rsp_fields srp_i_logout_fields
CODEC(srp_aer_rsp, "SRP_AER_RSP", 16);
#undef S

#define S struct wire_srp_t_logout
static const struct wire_field srp_t_logout_fields[] = {
	F(opcode, 0, 8), F(solicited, 8, 8), R(16, 16), F(reason, 32, 32), F(tag, 64, 64),
};
CODEC(srp_t_logout, "SRP_T_LOGOUT", 16);
#undef S

#define S struct wire_srp_tsk_mgmt
static const struct wire_field srp_tsk_mgmt_fields[] = {
	F(opcode, 0, 8), F(solicited, 8, 8),   R(16, 48),  F(tag, 64, 64),
	R(128, 32),	 B(lun, 160, 8),       R(224, 16), F(function, 240, 8),
	R(248, 8),	 F(task_tag, 256, 64), R(320, 64),
};
CODEC(srp_tsk_mgmt, "SRP_TSK_MGMT", 48);
#undef S

#define S struct wire_srp_cmd
static const struct wire_field srp_cmd_fields[] = {
	F(opcode, 0, 8),
	F(solicited, 8, 8),
	R(16, 24),
	F(out_format, 40, 4),
	F(in_format, 44, 4),
	F(nr_out_descs, 48, 8),
	F(nr_in_descs, 56, 8),
	F(tag, 64, 64),
	R(128, 32),
	B(lun, 160, 8),
	R(224, 13),
	F(task_attr, 237, 3),
	R(240, 8),
	F(more_cdb_dwords, 248, 6),
	R(254, 2),
	B(cdb, 256, 16),
};
CODEC(srp_cmd, "SRP_CMD", WIRE_SRP_CMD_BYTES);
#undef S

#define S struct wire_srp_rsp
static const struct wire_field srp_rsp_fields[] = {
	F(opcode, 0, 8),
	F(solicited, 8, 8),
	R(16, 16),
	F(limit_delta, 32, 32),
	F(tag, 64, 64),
	R(128, 16),
	F(flags, 144, 8),
	F(status, 152, 8),
	F(out_residual_bytes, 160, 32),
	F(in_residual_bytes, 192, 32),
	F(sense_bytes, 224, 32),
	F(response_bytes, 256, 32),
};
CODEC(srp_rsp, "SRP_RSP", WIRE_SRP_RSP_BYTES);
#undef S

#define S struct wire_srp_cred_req
static const struct wire_field srp_cred_req_fields[] = {
	F(opcode, 0, 8),	F(solicited, 8, 8), R(16, 16),
	F(limit_delta, 32, 32), F(tag, 64, 64),
};
CODEC(srp_cred_req, "SRP_CRED_REQ", 16);
#undef S

#define S struct wire_srp_aer_req
static const struct wire_field srp_aer_req_fields[] = {
	F(opcode, 0, 8),	F(solicited, 8, 8),	 R(16, 16),
	F(limit_delta, 32, 32), F(tag, 64, 64),		 R(128, 32),
	B(lun, 160, 8),		F(sense_bytes, 224, 32), R(256, 32),
};
CODEC(srp_aer_req, "SRP_AER_REQ", 36);
#undef S

#define S struct wire_srp_desc
static const struct wire_field srp_desc_fields[] = {
	F(address, 0, 64),
	F(rkey, 64, 32),
	F(bytes, 96, 32),
};
CODEC(srp_desc, "SRP memory descriptor", WIRE_SRP_DESC_BYTES);
#undef S

const struct wire_codec *wire_srp_codec(uint8_t opcode)
{
	static const struct wire_codec *const codecs[256] = {
		[WIRE_SRP_LOGIN_REQ] = &wire_srp_login_req_codec,
		[WIRE_SRP_TSK_MGMT] = &wire_srp_tsk_mgmt_codec,
		[WIRE_SRP_CMD] = &wire_srp_cmd_codec,
		[WIRE_SRP_I_LOGOUT] = &wire_srp_i_logout_codec,
		[WIRE_SRP_CRED_RSP] = &wire_srp_cred_rsp_codec,
		[WIRE_SRP_AER_RSP] = &wire_srp_aer_rsp_codec,
		[WIRE_SRP_T_LOGOUT] = &wire_srp_t_logout_codec,
		[WIRE_SRP_CRED_REQ] = &wire_srp_cred_req_codec,
		[WIRE_SRP_AER_REQ] = &wire_srp_aer_req_codec,
		[WIRE_SRP_LOGIN_RSP] = &wire_srp_login_rsp_codec,
		[WIRE_SRP_RSP] = &wire_srp_rsp_codec,
		[WIRE_SRP_LOGIN_REJ] = &wire_srp_login_rej_codec,
	};

	return codecs[opcode];
}

/* --- reading what follows the fixed part --- */

/* the unread rest of an IU */
struct rest {
	const uint8_t *at;
	size_t len;
};

/* Return: the next @bytes; NULL: there are not as many */
static const uint8_t *take(struct rest *rest, size_t bytes)
{
	const uint8_t *at = rest->at;

	if (bytes > rest->len)
		return NULL;
	rest->at += bytes;
	rest->len -= bytes;
	return at;
}

struct wire_srp_desc wire_srp_data_desc(const struct wire_srp_data *data, uint32_t i)
{
	struct wire_srp_desc desc = data->where;

	if (data->format == WIRE_SRP_INDIRECT)
		wire_srp_desc_decode(data->here + i * (size_t)WIRE_SRP_DESC_BYTES,
				     WIRE_SRP_DESC_BYTES, &desc);
	return desc;
}

static uint64_t described_bytes(const struct wire_srp_data *data)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < data->nr_here; i++)
		sum += wire_srp_data_desc(data, i).bytes;
	return sum;
}

static int read_direct(struct rest *rest, struct wire_srp_data *data)
{
	const uint8_t *desc = take(rest, WIRE_SRP_DESC_BYTES);

	if (!desc)
		return -EINVAL;
	wire_srp_desc_decode(desc, WIRE_SRP_DESC_BYTES, &data->where);
	data->bytes = data->where.bytes;
	return 0;
}

static int read_indirect(struct rest *rest, struct wire_srp_data *data)
{
	const uint8_t *table = take(rest, WIRE_SRP_TABLE_BYTES);

	data->here = take(rest, data->nr_here * (size_t)WIRE_SRP_DESC_BYTES);
	if (!table || !data->here)
		return -EINVAL;
	wire_srp_desc_decode(table, WIRE_SRP_DESC_BYTES, &data->where);
	data->bytes = get_be32(table + WIRE_SRP_DESC_BYTES);
	data->nr_descs = data->where.bytes / WIRE_SRP_DESC_BYTES;
	if (data->where.bytes % WIRE_SRP_DESC_BYTES || data->nr_here > data->nr_descs)
		return -EINVAL;
	return data->nr_here == data->nr_descs && described_bytes(data) < data->bytes
		       ? -EINVAL
		       : 0;
}

static int read_data(struct rest *rest, uint8_t format, uint8_t nr_here,
		     struct wire_srp_data *data)
{
	*data = (struct wire_srp_data){.format = format};
	switch (format) {
	case WIRE_SRP_NO_DATA:
		return 0;
	case WIRE_SRP_DIRECT:
		return read_direct(rest, data);
	case WIRE_SRP_INDIRECT:
		data->nr_here = nr_here;
		return read_indirect(rest, data);
	default:
		return -EINVAL;
	}
}

/* The length stands where a descriptor would, the data at the offset agreed at login. */
static int read_immediate(struct rest *rest, const uint8_t *iu, size_t len,
			  uint16_t offset, struct wire_srp_data *data)
{
	const uint8_t *length = take(rest, 4);

	*data = (struct wire_srp_data){.format = WIRE_SRP_IMMEDIATE_DATA};
	if (!length || !offset || offset < len - rest->len)
		return -EINVAL;
	data->bytes = get_be32(length);
	if (offset > len || data->bytes > len - offset)
		return -EINVAL;
	data->here = iu + offset;
	return 0;
}

int wire_srp_cmd_split(const struct wire_srp_cmd *cmd, const uint8_t *iu, size_t len,
		       uint16_t immediate_offset, struct wire_srp_cmd_parts *parts)
{
	struct wire_srp_cmd_parts found = {.more_cdb_bytes = cmd->more_cdb_dwords * 4u};
	struct rest rest = {iu, len};
	int err;

	if (!take(&rest, WIRE_SRP_CMD_BYTES))
		return -EINVAL;
	found.more_cdb = take(&rest, found.more_cdb_bytes);
	if (!found.more_cdb)
		return -EINVAL;
	err = cmd->out_format == WIRE_SRP_IMMEDIATE_DATA
		      ? read_immediate(&rest, iu, len, immediate_offset, &found.out)
		      : read_data(&rest, cmd->out_format, cmd->nr_out_descs, &found.out);
	if (!err)
		err = read_data(&rest, cmd->in_format, cmd->nr_in_descs, &found.in);
	if (!err)
		*parts = found;
	return err;
}

int wire_srp_rsp_split(const struct wire_srp_rsp *rsp, const uint8_t *iu, size_t len,
		       const uint8_t **response, const uint8_t **sense)
{
	struct rest rest = {iu, len};
	const uint8_t *first = NULL, *second = NULL;

	if (!take(&rest, WIRE_SRP_RSP_BYTES))
		return -EINVAL;
	if (rsp->flags & WIRE_SRP_RSP_VALID &&
	    !(first = take(&rest, rsp->response_bytes)))
		return -EINVAL;
	if (rsp->flags & WIRE_SRP_SENSE_VALID &&
	    !(second = take(&rest, rsp->sense_bytes)))
		return -EINVAL;
	*response = first;
	*sense = second;
	return 0;
}

int wire_srp_aer_split(const struct wire_srp_aer_req *aer, const uint8_t *iu, size_t len,
		       const uint8_t **sense)
{
	struct rest rest = {iu, len};
	const uint8_t *found;

	if (!take(&rest, wire_srp_aer_req_codec.bytes) ||
	    !(found = take(&rest, aer->sense_bytes)))
		return -EINVAL;
	*sense = found;
	return 0;
}

/* --- writing it --- */

static size_t data_room(const struct wire_srp_data *data)
{
	switch (data->format) {
	case WIRE_SRP_DIRECT:
		return WIRE_SRP_DESC_BYTES;
	case WIRE_SRP_INDIRECT:
		return WIRE_SRP_TABLE_BYTES + data->nr_here * (size_t)WIRE_SRP_DESC_BYTES;
	default:
		return 0;
	}
}

static uint8_t *put_data(uint8_t *to, const struct wire_srp_data *data)
{
	size_t list = data->nr_here * (size_t)WIRE_SRP_DESC_BYTES;

	if (data->format != WIRE_SRP_DIRECT && data->format != WIRE_SRP_INDIRECT)
		return to;
	wire_srp_desc_encode(&data->where, to);
	if (data->format == WIRE_SRP_INDIRECT) {
		put_be32(to + WIRE_SRP_DESC_BYTES, data->bytes);
		if (list)
			memcpy(to + WIRE_SRP_TABLE_BYTES, data->here, list);
	}
	return to + data_room(data);
}

int wire_srp_cmd_build(const struct wire_srp_cmd *cmd,
		       const struct wire_srp_cmd_parts *parts, uint8_t *iu, size_t room)
{
	struct wire_srp_cmd fixed = *cmd;
	size_t bytes = WIRE_SRP_CMD_BYTES + parts->more_cdb_bytes +
		       data_room(&parts->out) + data_room(&parts->in);
	uint8_t *to = iu + WIRE_SRP_CMD_BYTES;
	int err;

	if (parts->more_cdb_bytes % 4 || parts->more_cdb_bytes > 63 * 4 ||
	    parts->out.nr_here > UINT8_MAX || parts->in.nr_here > UINT8_MAX ||
	    parts->out.format > WIRE_SRP_INDIRECT || parts->in.format > WIRE_SRP_INDIRECT)
		return -EINVAL;
	if (bytes > room)
		return -ENOSPC;
	fixed.more_cdb_dwords = (uint8_t)(parts->more_cdb_bytes / 4);
	fixed.out_format = (uint8_t)parts->out.format;
	fixed.in_format = (uint8_t)parts->in.format;
	fixed.nr_out_descs = (uint8_t)parts->out.nr_here;
	fixed.nr_in_descs = (uint8_t)parts->in.nr_here;
	err = wire_srp_cmd_encode(&fixed, iu);
	if (err < 0)
		return err;
	if (parts->more_cdb_bytes)
		memcpy(to, parts->more_cdb, parts->more_cdb_bytes);
	put_data(put_data(to + parts->more_cdb_bytes, &parts->out), &parts->in);
	return (int)bytes;
}

int wire_srp_rsp_build(const struct wire_srp_rsp *rsp, const uint8_t *response,
		       const uint8_t *sense, uint8_t *iu, size_t room)
{
	size_t first = rsp->flags & WIRE_SRP_RSP_VALID ? rsp->response_bytes : 0;
	size_t second = rsp->flags & WIRE_SRP_SENSE_VALID ? rsp->sense_bytes : 0;
	int err;

	if (WIRE_SRP_RSP_BYTES + first + second > room)
		return -ENOSPC;
	err = wire_srp_rsp_encode(rsp, iu);
	if (err < 0)
		return err;
	if (first)
		memcpy(iu + WIRE_SRP_RSP_BYTES, response, first);
	if (second)
		memcpy(iu + WIRE_SRP_RSP_BYTES + first, sense, second);
	return (int)(WIRE_SRP_RSP_BYTES + first + second);
}
