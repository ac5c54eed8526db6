/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The target's side of SRP: logins, commands of every format and with every lie, credits,
 * and how it is described. */
#include "../test.h"

#include <errno.h>

#include "base/bytes.h"
#include "srp/describe.h"
#include "srp/target.h"
#include "wire/pma.h"

#define GUID 0x0200c0ffee001122

/* --- logins ----------------------------------------------------------------------------
 */

static struct srp_login login;
static struct srp_port port;

static struct wire_srp_login_req good_login(void)
{
	struct wire_srp_login_req req = {
		.opcode = WIRE_SRP_LOGIN_REQ,
		.tag = 77,
		.it_iu_bytes = 1024,
		.formats = WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK,
		.flags = WIRE_SRP_MULTI,
	};

	port = (struct srp_port){.limit = 32, .max_channels = 4, .has_room = true};
	srp_port_id(GUID, port.id);
	memcpy(req.target, port.id, sizeof(port.id));
	return req;
}

/* Return: the reason of the reject; 0 */
static uint32_t judge(const struct wire_srp_login_req *req)
{
	uint8_t iu[64];

	wire_srp_login_req_encode(req, iu);
	assert_int_equal(srp_login_read(&login, iu, sizeof(iu)), 0);
	srp_login_judge(&login, &port);
	return login.reject;
}

static void a_good_login_is_accepted(void **state)
{
	struct wire_srp_login_req req = good_login();
	struct wire_srp_login_rsp rsp;
	uint8_t to[64];

	assert_int_equal(judge(&req), 0);
	assert_int_equal(srp_login_answer(&login, &port, to), 52);
	wire_srp_login_rsp_decode(to, 52, &rsp);
	assert_int_equal(rsp.opcode, WIRE_SRP_LOGIN_RSP);
	assert_int_equal(rsp.tag, 77);
	assert_int_equal(rsp.limit_delta, 32);
	assert_int_equal(rsp.it_iu_bytes, 1024);
	assert_int_equal(rsp.flags, WIRE_SRP_NONE_BEFORE);
}

static void every_reason_to_reject_is_told(void **state)
{
	struct wire_srp_login_req req = good_login();
	struct wire_srp_login_rej rej;
	uint8_t to[64];

	req.it_iu_bytes = SRP_MAX_IU_BYTES + 1;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_IU_TOO_LARGE);
	srp_login_answer(&login, &port, to);
	wire_srp_login_rej_decode(to, 32, &rej);
	assert_int_equal(rej.opcode, WIRE_SRP_LOGIN_REJ);
	assert_int_equal(rej.tag, 77);
	assert_int_equal(rej.reason, WIRE_SRP_REJECT_IU_TOO_LARGE);
	req.it_iu_bytes = 63;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_UNSPECIFIED);
	req = good_login();
	req.flags = 3;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_UNSPECIFIED);
	req = good_login();
	req.target[0] ^= 1;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_ASSOCIATION);
	req = good_login();
	req.formats |= 1;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_FORMATS);
	req = good_login();
	port.others = 4;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_CHANNEL_LIMIT);
	port.others = port.max_channels = 1;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_NO_MULTICHANNEL);
	port.others = 0;
	assert_int_equal(judge(&req), 0);
	port.has_room = false;
	assert_int_equal(judge(&req), WIRE_SRP_REJECT_RESOURCES);
}

static void what_is_no_login_is_not_read(void **state)
{
	uint8_t iu[64] = {WIRE_SRP_CMD};

	assert_int_equal(srp_login_read(&login, iu, sizeof(iu)), -EINVAL);
	iu[0] = WIRE_SRP_LOGIN_REQ;
	assert_int_equal(srp_login_read(&login, iu, 63), -EINVAL);
}

static void a_single_channel_ends_the_others(void **state)
{
	struct wire_srp_login_req req = good_login();
	uint8_t to[64];

	port.others = 4;
	req.flags = WIRE_SRP_SINGLE;
	assert_int_equal(judge(&req), 0);
	assert_true(login.end_others);
	srp_login_answer(&login, &port, to);
	assert_int_equal(to[26], WIRE_SRP_TERMINATED);
	req.flags = WIRE_SRP_MULTI;
	port.others = 2;
	assert_int_equal(judge(&req), 0);
	assert_false(login.end_others);
	srp_login_answer(&login, &port, to);
	assert_int_equal(to[26], WIRE_SRP_MAINTAINED);
}

static void immediate_data_needs_a_place(void **state)
{
	static const struct {
		uint16_t offset;
		bool agreed;
	} rows[] = {{47, false}, {48, true}, {1023, true}, {1024, false}, {0, false}};
	struct wire_srp_login_req req = good_login();
	uint8_t to[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		req.flags = WIRE_SRP_MULTI | WIRE_SRP_IMMEDIATE;
		req.immediate_offset = rows[i].offset;
		assert_int_equal(judge(&req), 0);
		assert_int_equal(login.immediate_offset,
				 rows[i].agreed ? rows[i].offset : 0);
		srp_login_answer(&login, &port, to);
		assert_int_equal(!!(to[26] & WIRE_SRP_IMMEDIATE), rows[i].agreed);
	}
}

/* --- commands
 * ------------------------------------------------------------------------------ */

static const struct scsi_backend no_backend;
static struct scsi_unit unit = {
	.backend = &no_backend, .nr_blocks = 1 << 20, .block_bytes = 512};
static struct srp_command cmd;
static struct wire_srp_rsp rsp;
static uint8_t iu[1024], table[64 * 16];
static uint32_t reason;

#define WRITE_4                                                                          \
	{                                                                                \
		0x2a, [8] = 4                                                            \
	}
#define READ_4                                                                           \
	{                                                                                \
		0x28, [8] = 4                                                            \
	}

static int read_iu(size_t len, uint16_t offset)
{
	reason = 99;
	return srp_command_read(&cmd, iu, len, offset, &reason);
}

static int build(const uint8_t cdb[16], const struct wire_srp_cmd_parts *parts)
{
	struct wire_srp_cmd fixed = {.opcode = WIRE_SRP_CMD, .tag = 5};
	int bytes;

	memcpy(fixed.cdb, cdb, 16);
	bytes = wire_srp_cmd_build(&fixed, parts, iu, sizeof(iu));
	assert_true(bytes > 0);
	assert_int_equal(read_iu((size_t)bytes, 0), 0);
	srp_command_size(&cmd, &unit);
	return bytes;
}

static struct wire_srp_data direct(uint32_t bytes)
{
	return (struct wire_srp_data){
		.format = WIRE_SRP_DIRECT, .bytes = bytes, .where = {0x1000, 3, bytes}};
}

static struct wire_srp_data indirect(uint32_t nr, uint32_t each, uint32_t here)
{
	for (uint32_t i = 0; i < nr; i++)
		wire_srp_desc_encode(&(struct wire_srp_desc){0x1000 * (i + 1), i, each},
				     table + i * 16);
	return (struct wire_srp_data){.format = WIRE_SRP_INDIRECT,
				      .bytes = nr * each,
				      .where = {0x9000, 8, nr * 16},
				      .nr_descs = nr,
				      .nr_here = here,
				      .here = table};
}

static void answer(uint32_t delta)
{
	uint8_t to[SRP_RSP_IU_BYTES];
	size_t bytes = srp_command_answer(&cmd, delta, to);

	assert_true(wire_srp_rsp_decode(to, bytes, &rsp) > 0);
}

static void a_command_without_data_is_executed_and_answered(void **state)
{
	build((const uint8_t[16]){0}, &(struct wire_srp_cmd_parts){});
	assert_int_equal(cmd.step, SRP_EXECUTE);
	srp_command_task(&cmd, NULL, NULL, NULL);
	assert_int_equal(srp_command_next(&cmd), SRP_RESPOND);
	answer(1);
	assert_int_equal(rsp.tag, 5);
	assert_int_equal(rsp.limit_delta, 1);
	assert_int_equal(rsp.flags, 0);
	assert_int_equal(srp_command_next(&cmd), SRP_DONE);
}

static void data_is_fetched_and_put(void **state)
{
	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = direct(2048)});
	assert_int_equal(cmd.step, SRP_FETCH_DATA);
	assert_int_equal(cmd.out_bytes, 2048);
	assert_int_equal(srp_command_next(&cmd), SRP_EXECUTE);
	build((const uint8_t[16])READ_4,
	      &(struct wire_srp_cmd_parts){.in = direct(2048)});
	assert_int_equal(cmd.step, SRP_EXECUTE);
	cmd.task.in_bytes = 2048;
	assert_int_equal(srp_command_next(&cmd), SRP_PUT_DATA);
	assert_int_equal(srp_command_next(&cmd), SRP_RESPOND);
}

static void a_table_that_is_not_in_the_iu_is_fetched_first(void **state)
{
	struct wire_srp_desc segment;

	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = indirect(4, 512, 1)});
	assert_int_equal(cmd.step, SRP_FETCH_OUT_TABLE);
	cmd.out_table = table;
	assert_int_equal(srp_command_next(&cmd), SRP_FETCH_DATA);
	assert_int_equal(srp_command_segment(&cmd, SRP_OUT, 512 + 12, &segment), 0);
	assert_int_equal(segment.address, 0x2000 + 12);
	assert_int_equal(segment.bytes, 500);
	assert_int_equal(segment.rkey, 1);
	assert_int_equal(srp_command_segment(&cmd, SRP_OUT, 2048, &segment), -EINVAL);
	build((const uint8_t[16])READ_4,
	      &(struct wire_srp_cmd_parts){.in = indirect(4, 512, 0)});
	assert_int_equal(cmd.step, SRP_FETCH_IN_TABLE);
	build((const uint8_t[16])READ_4,
	      &(struct wire_srp_cmd_parts){.in = indirect(4, 512, 4)});
	assert_int_equal(cmd.step, SRP_EXECUTE);
}

static void no_more_is_fetched_than_the_command_takes(void **state)
{
	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = direct(1 << 20)});
	assert_int_equal(cmd.out_bytes, 2048);
	cmd.task.out_taken = 2048;
	answer(1);
	assert_int_equal(rsp.flags, WIRE_SRP_OUT_UNDER);
	assert_int_equal(rsp.out_residual_bytes, (1 << 20) - 2048);
	srp_command_size(&cmd, NULL); /* no unit takes anything */
	assert_int_equal(cmd.out_bytes, 0);
	assert_int_equal(cmd.step, SRP_EXECUTE);
}

static void residuals_of_data_in(void **state)
{
	build((const uint8_t[16])READ_4, &(struct wire_srp_cmd_parts){.in = direct(512)});
	cmd.task.in_bytes = 2048;
	srp_command_next(&cmd);
	assert_int_equal(cmd.in_bytes, 512);
	answer(1);
	assert_int_equal(rsp.flags, WIRE_SRP_IN_OVER);
	assert_int_equal(rsp.in_residual_bytes, 1536);
	cmd.task.in_bytes = 12;
	answer(1);
	assert_int_equal(rsp.flags, WIRE_SRP_IN_UNDER);
	assert_int_equal(rsp.in_residual_bytes, 500);
}

static void sense_data_is_in_the_answer(void **state)
{
	build((const uint8_t[16]){0xff}, &(struct wire_srp_cmd_parts){});
	srp_command_fail(&cmd, SCSI_CHECK_CONDITION, SCSI_INVALID_OPCODE);
	assert_int_equal(cmd.step, SRP_RESPOND);
	answer(3);
	assert_int_equal(rsp.status, SCSI_CHECK_CONDITION);
	assert_int_equal(rsp.flags, WIRE_SRP_SENSE_VALID);
	assert_int_equal(rsp.sense_bytes, SCSI_SENSE_BYTES);
	assert_int_equal(rsp.limit_delta, 3);
}

static void fields_that_are_not_valid_are_answered_so(void **state)
{
	struct wire_srp_data huge = indirect(4, 512, 0);

	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = direct(2048)});
	srp_command_refuse(&cmd); /* the fetched table was too short */
	answer(1);
	assert_int_equal(rsp.flags, WIRE_SRP_RSP_VALID);
	assert_int_equal(rsp.response_bytes, 4);
	huge.where.bytes = (SRP_MAX_DESCS + 1) * 16;
	build((const uint8_t[16])WRITE_4, &(struct wire_srp_cmd_parts){.out = huge});
	assert_int_equal(cmd.step, SRP_RESPOND);
	build((const uint8_t[16]){0}, &(struct wire_srp_cmd_parts){});
	iu[29] = 5; /* a task attribute that nobody defines */
	assert_int_equal(read_iu(48, 0), 0);
	srp_command_size(&cmd, &unit);
	assert_int_equal(cmd.step, SRP_RESPOND);
}

static void an_unreadable_command_ends_the_channel(void **state)
{
	static const struct {
		uint8_t formats;
		size_t len;
		uint32_t reason;
	} rows[] = {
		{0x00, 47, SRP_LOGOUT_BAD_OPCODE},  {0x50, 200, SRP_LOGOUT_OUT_FORMAT},
		{0x30, 200, SRP_LOGOUT_OUT_FORMAT}, {0x03, 200, SRP_LOGOUT_IN_FORMAT},
		{0x10, 63, SRP_LOGOUT_OUT_COUNT},   {0x01, 63, SRP_LOGOUT_IN_COUNT},
		{0x20, 60, SRP_LOGOUT_OUT_COUNT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(iu, 0, sizeof(iu));
		iu[0] = WIRE_SRP_CMD;
		iu[5] = rows[i].formats;
		assert_int_equal(read_iu(rows[i].len, 0), -EINVAL);
		assert_int_equal(reason, rows[i].reason);
	}
	iu[5] = 0x30; /* immediate data, of which the IU has less than it says */
	put_be32(iu + 48, 100);
	assert_int_equal(read_iu(227, 128), -EINVAL);
	assert_int_equal(reason, SRP_LOGOUT_OUT_COUNT);
	assert_int_equal(read_iu(228, 128), 0);
}

static void an_aborted_command_is_silent_unless_another_nexus_did_it(void **state)
{
	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = direct(2048)});
	cmd.aborted = true;
	assert_int_equal(srp_command_next(&cmd), SRP_DONE);
	build((const uint8_t[16])WRITE_4,
	      &(struct wire_srp_cmd_parts){.out = direct(2048)});
	cmd.aborted = cmd.tell_aborted = true;
	assert_int_equal(srp_command_next(&cmd), SRP_RESPOND);
	answer(1);
	assert_int_equal(rsp.status, SCSI_TASK_ABORTED);
}

static void an_answer_solicits_as_it_was_asked_to(void **state)
{
	build((const uint8_t[16]){0}, &(struct wire_srp_cmd_parts){});
	cmd.cmd.solicited = 2;
	answer(1);
	assert_int_equal(rsp.solicited, 1);
	srp_command_fail(&cmd, SCSI_BUSY, SCSI_NO_SENSE);
	answer(1);
	assert_int_equal(rsp.solicited, 0);
	cmd.cmd.solicited = 4;
	answer(1);
	assert_int_equal(rsp.solicited, 1);
}

/* --- credits
 * -------------------------------------------------------------------------------- */

static void the_limit_is_kept_and_grows_once_at_a_time(void **state)
{
	struct srp_credits c = {.limit = 2, .max = 5};
	struct wire_srp_cred_req req;
	uint8_t to[SRP_RSP_IU_BYTES];
	uint32_t more;

	assert_int_equal(srp_credits_take(&c), 0);
	assert_int_equal(srp_credits_grow(&c, &more, to), 0);
	assert_int_equal(srp_credits_take(&c), 0);
	assert_int_equal(srp_credits_take(&c), -EINVAL);
	assert_int_equal(srp_credits_grow(&c, &more, to), 16);
	wire_srp_cred_req_decode(to, 16, &req);
	assert_int_equal(req.opcode, WIRE_SRP_CRED_REQ);
	assert_int_equal(req.limit_delta, 2);
	assert_int_equal(more, 2);
	assert_int_equal(srp_credits_take(&c), 0);
	assert_int_equal(srp_credits_take(&c), 0);
	assert_int_equal(srp_credits_grow(&c, &more, to), 0); /* not answered yet */
	assert_int_equal(srp_credits_answered(&c, req.tag + 1), -EINVAL);
	assert_int_equal(srp_credits_answered(&c, req.tag), 0);
	assert_int_equal(srp_credits_answered(&c, req.tag), -EINVAL);
	assert_int_equal(srp_credits_grow(&c, &more, to), 16);
	assert_int_equal(more, 1); /* up to the most */
	assert_int_equal(srp_credits_return(&c, 3), 3);
	assert_int_equal(srp_credits_return(&c, 3), 1); /* no more than were taken */
}

/* --- device management
 * ------------------------------------------------------------------------ */

#define GUIDS 0x0a00c0ffee001122 /* of the controller in slot 3 */

static const struct srp_io_unit io_unit = {
	.change_id = 7,
	.controller = {{.guid = GUID, .id_string = "a target"},
		       {0},
		       {.guid = GUIDS, .id_string = "another one"}}};
static uint8_t mad[256];

static uint16_t get(uint8_t method, uint16_t attr, uint32_t mod)
{
	const struct wire_gmp request = {.mad = {.base_version = 1,
						 .mgmt_class = WIRE_CLASS_DM,
						 .class_version = 1,
						 .method = method,
						 .attr_id = attr,
						 .attr_mod = mod,
						 .tid = 42}};
	struct wire_gmp gmp;
	uint8_t in[256] = {0};

	wire_gmp_encode(&request, in);
	assert_true(srp_describe(&io_unit, in, mad));
	wire_gmp_decode(mad, sizeof(mad), &gmp);
	assert_int_equal(gmp.mad.method, WIRE_METHOD_GET_RESP);
	assert_int_equal(gmp.mad.tid, 42);
	return gmp.mad.status;
}

static void each_target_is_a_controller_with_one_service(void **state)
{
	struct wire_service_entries entries;
	struct wire_ioc_profile profile;
	struct wire_io_unit_info info;

	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_IO_UNIT_INFO, 0), 0);
	wire_io_unit_info_decode(mad + 64, 192, &info);
	assert_int_equal(info.change_id, 7);
	assert_int_equal(info.max_controllers, SRP_CONTROLLERS);
	for (unsigned i = 0; i < SRP_CONTROLLERS; i++)
		assert_int_equal(info.controller[i],
				 i == 0 || i == 2 ? WIRE_DM_IOC : WIRE_DM_NO_IOC);
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_IOC_PROFILE, 1), 0);
	wire_ioc_profile_decode(mad + 64, 192, &profile);
	assert_true(profile.guid == GUID);
	assert_int_equal(profile.io_class, WIRE_SRP_IO_CLASS);
	assert_int_equal(profile.nr_services, 1);
	assert_string_equal((char *)profile.id_string, "a target");
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_SERVICE_ENTRIES, 1 << 16 | 3 << 8),
			 0);
	wire_service_entries_decode(mad + 64, 192, &entries);
	assert_string_equal((char *)entries.name0, "SRP.T10:0200c0ffee001122");
	assert_true(entries.id0 == srp_service_id(GUID));
	/* no service id of those that an operating system assigns (0x02...) */
	assert_int_not_equal(entries.id0 >> 56, 2);
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_IOC_PROFILE, 3), 0);
	wire_ioc_profile_decode(mad + 64, 192, &profile);
	assert_true(profile.guid == GUIDS);
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_SERVICE_ENTRIES, 3 << 16), 0);
	wire_service_entries_decode(mad + 64, 192, &entries);
	assert_string_equal((char *)entries.name0, "SRP.T10:0a00c0ffee001122");
	assert_true(entries.id0 == srp_service_id(GUIDS));
}

/* Also beside each other, and without the bit of a group; the first is the adapter's own. */
static void controllers_have_guids_and_service_ids_of_their_own(void **state)
{
	static const uint64_t nodes[] = {0x0203c966b1000100, 0x0002c90300abcdef};

	for (size_t n = 0; n < ARRAY_SIZE(nodes); n++) {
		assert_true(srp_controller_guid(nodes[n], 1) == nodes[n]);
		for (unsigned i = 1; i <= SRP_CONTROLLERS; i++) {
			const uint64_t guid = srp_controller_guid(nodes[n], i);

			assert_int_equal(srp_service_id(guid) >> 60, 1);
			assert_int_equal(guid >> 56 & 1, 0);
			assert_true(i == 1 || guid >> 57 & 1);
			for (unsigned k = 1; k < i; k++) {
				const uint64_t other = srp_controller_guid(nodes[n], k);

				assert_true(guid != other);
				assert_true(srp_service_id(guid) != srp_service_id(other));
			}
		}
	}
}

static void what_is_not_there_has_a_status(void **state)
{
	uint8_t in[256] = {1, WIRE_CLASS_DM, 1, WIRE_METHOD_TRAP};

	assert_false(srp_describe(&io_unit, in, mad));
	for (uint32_t slot = 0; slot < 300; slot++)
		assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_IOC_PROFILE, slot),
				 slot == 1 || slot == 3 ? 0 : WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_SERVICE_ENTRIES, 2 << 16),
			 WIRE_STATUS_BAD_FIELD);
	assert_int_equal(
		get(WIRE_METHOD_GET, WIRE_DM_SERVICE_ENTRIES, 1 << 16 | 4 << 8 | 1),
		WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(WIRE_METHOD_GET, 0x99, 0), WIRE_STATUS_BAD_METHOD_ATTR);
	assert_int_equal(get(WIRE_METHOD_SET, WIRE_DM_CLASS_PORT_INFO, 0),
			 WIRE_STATUS_BAD_METHOD_ATTR);
	assert_int_equal(get(WIRE_METHOD_GET, WIRE_DM_DIAGNOSTIC_TIMEOUT, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_login_is_accepted),
		cmocka_unit_test(every_reason_to_reject_is_told),
		cmocka_unit_test(what_is_no_login_is_not_read),
		cmocka_unit_test(a_single_channel_ends_the_others),
		cmocka_unit_test(immediate_data_needs_a_place),
		cmocka_unit_test(a_command_without_data_is_executed_and_answered),
		cmocka_unit_test(data_is_fetched_and_put),
		cmocka_unit_test(a_table_that_is_not_in_the_iu_is_fetched_first),
		cmocka_unit_test(no_more_is_fetched_than_the_command_takes),
		cmocka_unit_test(residuals_of_data_in),
		cmocka_unit_test(sense_data_is_in_the_answer),
		cmocka_unit_test(fields_that_are_not_valid_are_answered_so),
		cmocka_unit_test(an_unreadable_command_ends_the_channel),
		cmocka_unit_test(
			an_aborted_command_is_silent_unless_another_nexus_did_it),
		cmocka_unit_test(an_answer_solicits_as_it_was_asked_to),
		cmocka_unit_test(the_limit_is_kept_and_grows_once_at_a_time),
		cmocka_unit_test(each_target_is_a_controller_with_one_service),
		cmocka_unit_test(controllers_have_guids_and_service_ids_of_their_own),
		cmocka_unit_test(what_is_not_there_has_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
