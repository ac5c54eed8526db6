/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as an information unit of SRP; a command that is read can be written again.
 */
#include <string.h>

#include "check.h"
#include "wire/srp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *part, size_t bytes, const uint8_t *iu, size_t len)
{
	check(!part || range_covers((uintptr_t)iu, len, (uintptr_t)part, bytes));
}

static void check_data(const struct wire_srp_data *data, const uint8_t *iu, size_t len)
{
	const bool immediate = data->format == WIRE_SRP_IMMEDIATE_DATA;

	check_inside(data->here, immediate ? data->bytes : data->nr_here * 16ul, iu, len);
	uint64_t described = 0;

	for (uint32_t i = 0; i < data->nr_here; i++)
		described += wire_srp_data_desc(data, i).bytes;
	if (data->format != WIRE_SRP_INDIRECT)
		return;
	check(data->nr_here <= data->nr_descs);
	check(data->nr_here < data->nr_descs || described >= data->bytes);
}

static void read_command(const uint8_t *iu, size_t len, uint16_t offset)
{
	struct wire_srp_cmd_parts parts, again;
	struct wire_srp_cmd cmd, second;
	uint8_t copy[16384];
	int bytes;

	if (wire_srp_cmd_decode(iu, len, &cmd) < 0 ||
	    wire_srp_cmd_split(&cmd, iu, len, offset, &parts))
		return;
	check_inside(parts.more_cdb, parts.more_cdb_bytes, iu, len);
	check_data(&parts.out, iu, len);
	check_data(&parts.in, iu, len);
	if (parts.out.format == WIRE_SRP_IMMEDIATE_DATA)
		return;
	bytes = wire_srp_cmd_build(&cmd, &parts, copy, sizeof(copy));
	check(bytes > 0 && bytes <= len);
	check(wire_srp_cmd_decode(copy, bytes, &second) > 0);
	check(!wire_srp_cmd_split(&second, copy, bytes, 0, &again));
	check(again.out.bytes == parts.out.bytes && again.in.bytes == parts.in.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *response, *sense, *iu = data + 1;
	struct wire_srp_aer_req aer;
	struct wire_srp_rsp rsp;
	size_t len = size - 1;

	if (!size)
		return 0;
	read_command(iu, len, data[0]); /* the first byte: where immediate data starts */
	if (wire_srp_rsp_decode(iu, len, &rsp) > 0 &&
	    !wire_srp_rsp_split(&rsp, iu, len, &response, &sense)) {
		check_inside(response, rsp.response_bytes, iu, len);
		check_inside(sense, rsp.sense_bytes, iu, len);
	}
	if (wire_srp_aer_req_decode(iu, len, &aer) > 0 &&
	    !wire_srp_aer_split(&aer, iu, len, &sense))
		check_inside(sense, aer.sense_bytes, iu, len);
	return 0;
}
