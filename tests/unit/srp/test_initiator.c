/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The initiator's side of SRP: logins, commands and their limit, messages of the target,
 * recovery, disks, and what device management says of targets. */
#include "../test.h"

#include <errno.h>

#include "base/bytes.h"
#include "srp/describe.h"
#include "srp/disk.h"
#include "srp/initiator.h"
#include "srp/scan.h"
#include "srp/target.h"

#define GUID 0x0200c0ffee001122

/* --- logins: the target's side judges them -------------------------------------------- */

static const uint8_t initiator_id[16] = {1, 2, 3};

static struct srp_port a_port(void)
{
	struct srp_port port = {.limit = 32, .max_channels = 4, .has_room = true};

	srp_port_id(GUID, port.id);
	return port;
}

static struct srpi_terms log_in(struct srp_port *port, const uint8_t target[16])
{
	uint8_t iu[SRPI_IU_BYTES], to[WIRE_SRP_MIN_IU_BYTES];
	struct srpi_terms terms;
	struct srp_login login;
	size_t bytes = srpi_login_build(initiator_id, target, true, iu);

	assert_int_equal(srp_login_read(&login, iu, bytes), 0);
	srp_login_judge(&login, port);
	assert_int_equal(srpi_login_take(to, srp_login_answer(&login, port, to), &terms), 0);
	return terms;
}

static void a_login_is_accepted_or_rejected(void **state)
{
	struct srp_port port = a_port();
	struct srpi_terms terms = log_in(&port, port.id);
	uint8_t other[16] = {9};

	assert_int_equal(terms.reject, 0);
	assert_int_equal(terms.limit, 32);
	assert_int_equal(terms.it_iu_bytes, SRPI_IU_BYTES);
	assert_true(terms.indirect);
	assert_int_equal(log_in(&port, other).reject, WIRE_SRP_REJECT_ASSOCIATION);
	port.has_room = false;
	assert_int_equal(log_in(&port, port.id).reject, WIRE_SRP_REJECT_RESOURCES);
	assert_string_equal(srpi_reject_text(WIRE_SRP_REJECT_RESOURCES),
			    "it has no room for one more channel");
	assert_non_null(srpi_reject_text(12345));
}

static void an_answer_without_sense_is_refused(void **state)
{
	struct wire_srp_login_rsp rsp = {.opcode = WIRE_SRP_LOGIN_RSP, .limit_delta = 1,
					 .it_iu_bytes = 64, .ti_iu_bytes = 64};
	struct srpi_terms terms;
	uint8_t iu[64] = {0};

	assert_int_equal(srpi_login_take(iu, sizeof(iu), &terms), -EINVAL);
	assert_int_equal(srpi_login_take(iu, 0, &terms), -EINVAL);
	wire_srp_login_rsp_encode(&rsp, iu); /* no request for task management is left */
	assert_int_equal(srpi_login_take(iu, sizeof(iu), &terms), -EINVAL);
	rsp.limit_delta = 2;
	rsp.ti_iu_bytes = 20;
	wire_srp_login_rsp_encode(&rsp, iu);
	assert_int_equal(srpi_login_take(iu, sizeof(iu), &terms), -EINVAL);
}

/* --- commands ---------------------------------------------------------------------------- */

static struct srpi_channel channel;
static uint8_t iu[SRPI_IU_BYTES];

static uint64_t send_command(unsigned int slot)
{
	const struct wire_srp_desc piece = {0x1000, 7, 512};
	const struct srpi_command command = {.lun = {0, 3},
					     .cdb = {0x28},
					     .out = true,
					     .bytes = 512,
					     .piece = &piece,
					     .nr_pieces = 1};
	struct wire_srp_cmd_parts parts;
	struct wire_srp_cmd cmd;
	size_t bytes = srpi_command_build(&channel, slot, &command, iu);

	assert_true(wire_srp_cmd_decode(iu, bytes, &cmd) > 0);
	assert_int_equal(wire_srp_cmd_split(&cmd, iu, bytes, 0, &parts), 0);
	assert_int_equal(parts.out.where.address, 0x1000);
	assert_int_equal(parts.in.format, WIRE_SRP_NO_DATA);
	assert_int_equal(cmd.lun[1], 3);
	return cmd.tag;
}

#define PIECES	 100
#define PIECE(i) (512u * ((i) % 3 + 1))

static uint8_t table[PIECES * WIRE_SRP_DESC_BYTES];

/* A write of @nr pieces, read by the target's machine. Return: bytes of its message; 0 */
static size_t send_pieces(uint32_t nr, struct srp_command *read)
{
	struct wire_srp_desc piece[PIECES];
	struct srpi_command command = {.cdb = {0x2a, [7] = 0xff},
				       .out = true,
				       .piece = piece,
				       .nr_pieces = nr,
				       .table = table,
				       .table_at = {0x77000, 8, 0}};
	uint32_t reason;
	size_t bytes;

	for (uint32_t i = 0; i < nr; i++) {
		piece[i] = (struct wire_srp_desc){0x100000 - 0x1000 * i, 7, PIECE(i)};
		command.bytes += PIECE(i);
	}
	channel.limit = 9;
	bytes = srpi_command_build(&channel, 0, &command, iu);
	if (!bytes)
		return 0;
	assert_int_equal(srp_command_read(read, iu, bytes, 0, &reason), 0);
	assert_int_equal(read->parts.out.bytes, command.bytes);
	if (srpi_command_fetched(&channel, nr)) {
		assert_int_equal(read->parts.out.where.address, 0x77000);
		assert_int_equal(read->parts.out.where.bytes, nr * WIRE_SRP_DESC_BYTES);
		read->out_table = table;
	}
	return bytes;
}

/* The target finds each piece, in order, and nothing behind the last one. */
static void check_pieces(const struct srp_command *read, uint32_t nr)
{
	struct wire_srp_desc segment;
	uint32_t at = 0;

	for (uint32_t i = 0; i < nr; at += PIECE(i), i++) {
		assert_int_equal(srp_command_segment(read, SRP_OUT, at, &segment), 0);
		assert_int_equal(segment.address, 0x100000 - 0x1000 * i);
		assert_int_equal(segment.bytes, PIECE(i));
		assert_int_equal(segment.rkey, 7);
	}
	assert_int_equal(srp_command_segment(read, SRP_OUT, at, &segment), -EINVAL);
}

static void pieces_are_described_as_the_target_allows(void **state)
{
	static const struct {
		uint32_t iu_bytes, nr;
		uint32_t here; /* of the table, in the message */
	} rows[] = {{SRPI_IU_BYTES, 2, 2},
		    {SRPI_IU_BYTES, SRPI_DESCS_HERE, SRPI_DESCS_HERE},
		    {SRPI_IU_BYTES, SRPI_DESCS_HERE + 1, SRPI_DESCS_HERE},
		    {SRPI_IU_BYTES, PIECES, SRPI_DESCS_HERE},
		    {68 + 15, 2, 0},
		    {68 + 35, 5, 2}};
	struct srp_command read;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		channel = (struct srpi_channel){.iu_bytes = rows[i].iu_bytes, .indirect = true};
		assert_int_equal(send_pieces(rows[i].nr, &read), 68 + 16 * rows[i].here);
		assert_int_equal(read.parts.out.format, WIRE_SRP_INDIRECT);
		assert_int_equal(read.parts.out.nr_here, rows[i].here);
		assert_int_equal(srpi_command_fetched(&channel, rows[i].nr),
				 rows[i].here < rows[i].nr);
		check_pieces(&read, rows[i].nr);
	}
	channel = (struct srpi_channel){.iu_bytes = 64};
	assert_int_equal(send_pieces(2, &read), 0);
	assert_int_equal(channel.limit, 9); /* nothing was sent */
	assert_int_equal(send_pieces(1, &read), 64);
	check_pieces(&read, 1);
}

static void a_target_says_what_it_takes(void **state)
{
	static const struct {
		uint16_t formats;
		uint32_t it_iu_bytes, agreed;
		bool indirect;
	} rows[] = {{WIRE_SRP_DIRECT_OK, 260, 260, false},
		    {WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK, 8260, 260, true},
		    {WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK, 68, 68, true},
		    {WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK, 67, 67, false}};
	struct srpi_terms terms;
	uint8_t answer[64] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct wire_srp_login_rsp rsp = {.opcode = WIRE_SRP_LOGIN_RSP,
						       .limit_delta = 2,
						       .it_iu_bytes = rows[i].it_iu_bytes,
						       .ti_iu_bytes = 64,
						       .formats = rows[i].formats};

		wire_srp_login_rsp_encode(&rsp, answer);
		assert_int_equal(srpi_login_take(answer, sizeof(answer), &terms), 0);
		assert_int_equal(terms.it_iu_bytes, rows[i].agreed);
		assert_int_equal(terms.indirect, rows[i].indirect);
	}
}

static struct srpi_news take_rsp(struct wire_srp_rsp rsp, const uint8_t *response,
				 const uint8_t *sense)
{
	static uint8_t message[128];
	struct srpi_news news;
	int bytes;

	rsp.opcode = WIRE_SRP_RSP;
	bytes = wire_srp_rsp_build(&rsp, response, sense, message, sizeof(message));
	assert_true(bytes > 0);
	srpi_take(&channel, message, (size_t)bytes, &news);
	return news;
}

static void the_limit_is_kept(void **state)
{
	struct srpi_news news;
	uint64_t tag;

	channel = (struct srpi_channel){.limit = 3};
	send_command(0);
	tag = send_command(5);
	assert_false(srpi_channel_ready(&channel)); /* one is kept for task management */
	news = take_rsp((struct wire_srp_rsp){.tag = tag, .limit_delta = 2, .status = 8}, NULL, NULL);
	assert_int_equal(news.event, SRPI_COMPLETED);
	assert_int_equal(news.slot, 5);
	assert_int_equal(news.status, 8);
	assert_true(news.ok);
	assert_true(srpi_channel_ready(&channel));
	news = take_rsp((struct wire_srp_rsp){.tag = tag, .limit_delta = 1}, NULL, NULL);
	assert_int_equal(news.event, SRPI_NOTHING); /* it is over */
	assert_int_equal(channel.limit, 4);
}

static void sense_and_residual_are_found(void **state)
{
	const uint8_t sense[18] = {0x70, 0, 6, [12] = 0x29};
	struct srpi_news news;
	uint64_t tag;
	int error;

	channel = (struct srpi_channel){.limit = 9};
	tag = send_command(1);
	news = take_rsp((struct wire_srp_rsp){.tag = tag, .status = 2, .sense_bytes = sizeof(sense),
					      .flags = WIRE_SRP_SENSE_VALID | WIRE_SRP_OUT_UNDER,
					      .out_residual_bytes = 500},
			NULL, sense);
	assert_int_equal(news.residual_bytes, 500);
	assert_int_equal(srpi_judge(news.status, news.sense, news.sense_bytes, &error), SRPI_REPEAT);
}

static void a_task_ends_its_command(void **state)
{
	const uint8_t done[4] = {0, 0, 0, WIRE_SRP_RESPONSE_OK}, failed[4] = {[3] = 5};
	struct wire_srp_rsp rsp = {.flags = WIRE_SRP_RSP_VALID, .response_bytes = 4};
	const uint8_t lun[8] = {0};
	struct srpi_news news;

	channel = (struct srpi_channel){.limit = 9};
	assert_int_equal(srpi_task_build(&channel, 2, lun, WIRE_SRP_ABORT_TASK, iu), 0);
	send_command(2);
	assert_true(srpi_task_build(&channel, 2, lun, WIRE_SRP_ABORT_TASK, iu) > 0);
	assert_int_equal(srpi_task_build(&channel, 2, lun, WIRE_SRP_ABORT_TASK, iu), 0);
	rsp.tag = channel.task[2];
	news = take_rsp(rsp, failed, NULL);
	assert_int_equal(news.event, SRPI_TASK_DONE);
	assert_false(news.ok);
	assert_true(channel.command[2] != 0); /* it may still be answered */
	assert_true(srpi_task_build(&channel, 2, lun, WIRE_SRP_LUN_RESET, iu) > 0);
	rsp.tag = channel.task[2];
	news = take_rsp(rsp, done, NULL);
	assert_true(news.ok);
	assert_int_equal(channel.command[2], 0);
}

static void the_targets_requests_are_answered(void **state)
{
	struct wire_srp_cred_req req = {.opcode = WIRE_SRP_CRED_REQ, .limit_delta = 7, .tag = 42};
	struct srpi_news news;
	uint8_t message[64] = {0};

	channel = (struct srpi_channel){.limit = 1};
	wire_srp_cred_req_encode(&req, message);
	srpi_take(&channel, message, 16, &news);
	assert_int_equal(news.answer_bytes, 16);
	assert_int_equal(news.answer[0], WIRE_SRP_CRED_RSP);
	assert_int_equal(channel.limit, 8);
	srpi_take(&channel, message, srp_logout_build(SRP_LOGOUT_INACTIVE, message), &news);
	assert_int_equal(news.event, SRPI_LOGOUT);
	assert_int_equal(news.reason, SRP_LOGOUT_INACTIVE);
	message[0] = WIRE_SRP_CMD; /* an initiator's */
	srpi_take(&channel, message, 48, &news);
	assert_int_equal(news.event, SRPI_VIOLATION);
	srpi_take(&channel, message, 0, &news);
	assert_int_equal(news.event, SRPI_VIOLATION);
}

/* The target's machine reports, one event at a time. */
static void an_event_is_reported_and_answered(void **state)
{
	struct srp_events events = {0};
	struct srpi_news news;
	uint8_t message[SRP_RSP_IU_BYTES];
	size_t bytes = srp_event_build(&events, SCSI_LUNS_CHANGED, message);
	bool again;

	channel = (struct srpi_channel){.limit = 5};
	assert_int_equal(bytes, 36 + SCSI_SENSE_BYTES);
	srpi_take(&channel, message, bytes, &news);
	assert_int_equal(news.event, SRPI_REPORT);
	assert_true(srpi_units_changed(news.sense, news.sense_bytes));
	assert_int_equal(channel.limit, 5);
	assert_int_equal(news.answer[0], WIRE_SRP_AER_RSP);
	assert_int_equal(srp_event_build(&events, SCSI_LUNS_CHANGED, message), 0);
	assert_int_equal(srp_event_answered(&events, get_be64(news.answer + 8) + 1, &again), -EINVAL);
	assert_int_equal(srp_event_answered(&events, get_be64(news.answer + 8), &again), 0);
	assert_true(again);
	assert_int_equal(srp_event_answered(&events, get_be64(news.answer + 8), &again), -EINVAL);
	bytes = srp_event_build(&events, SCSI_UNIT_RESET, message);
	srpi_take(&channel, message, bytes, &news);
	assert_false(srpi_units_changed(news.sense, news.sense_bytes));
	assert_int_equal(srp_event_answered(&events, get_be64(news.answer + 8), &again), 0);
	assert_false(again);
	srpi_take(&channel, message, bytes - 1, &news); /* the sense data is cut off */
	assert_int_equal(news.event, SRPI_VIOLATION);
}

/* --- recovery ------------------------------------------------------------------------------ */

static mono_t at_s(uint64_t seconds)
{
	return (mono_t){seconds * NSEC_PER_SEC};
}

static void a_session_waits_then_fails_then_ends(void **state)
{
	struct srpi_recovery r = {.timeouts = {2, 5, 30}};

	srpi_recovery_channels(&r, 1, at_s(100));
	assert_int_equal(srpi_recovery_expiry(&r).ns, MONO_NEVER.ns);
	srpi_recovery_channels(&r, 0, at_s(100));
	assert_int_equal(r.state, SRPI_BLOCKED);
	assert_int_equal(srpi_recovery_expiry(&r).ns, at_s(105).ns);
	assert_false(srpi_recovery_tick(&r, at_s(104)));
	assert_true(srpi_recovery_tick(&r, at_s(105)));
	assert_int_equal(r.state, SRPI_FAIL_FAST);
	srpi_recovery_channels(&r, 1, at_s(110));
	assert_int_equal(r.state, SRPI_RUNNING);
	srpi_recovery_channels(&r, 0, at_s(200));
	assert_true(srpi_recovery_tick(&r, at_s(500)));
	assert_int_equal(r.state, SRPI_LOST);
	srpi_recovery_channels(&r, 1, at_s(501));
	assert_int_equal(r.state, SRPI_LOST);
}

static void attempts_become_rarer(void **state)
{
	struct srpi_recovery r = {.timeouts = {2, 5, 30}};

	assert_int_equal(srpi_recovery_again(&r, 1, at_s(0)).ns, at_s(2).ns);
	assert_int_equal(srpi_recovery_again(&r, 15, at_s(0)).ns, at_s(10).ns);
	r.timeouts.reconnect_delay = SRPI_OFF;
	assert_int_equal(srpi_recovery_again(&r, 1, at_s(0)).ns, MONO_NEVER.ns);
}

static void time_outs_are_checked(void **state)
{
	const struct {
		struct srpi_timeouts t;
		bool good;
	} rows[] = {{SRPI_TIMEOUTS, true},
		    {{SRPI_OFF, 15, 600}, true},
		    {{10, SRPI_OFF, SRPI_OFF}, true},
		    {{10, 0, 1}, true},
		    {{SRPI_OFF, SRPI_OFF, SRPI_OFF}, false},
		    {{0, 15, 600}, false},
		    {{10, 600, 600}, false},
		    {{10, 15, 0}, false},
		    {{10, -2, 600}, false},
		    {{100000, 15, 600}, false}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(!srpi_timeouts_fault(&rows[i].t), rows[i].good);
}

/* --- disks: the SCSI core answers -------------------------------------------------------------- */

static void a_disk_is_recognised(void **state)
{
	struct srpi_disk disk = {0}, other;
	uint8_t data[64] = {[4] = 31, [8] = 's', 'o', 'f', 't', ' ', ' ', ' ', ' ', 'D', 0x7f},
		capacity[32] = {[7] = 99, [10] = 2}, mode[24] = {23, 0, 0x90, 0, 0x08, 0x12, 4};
	uint8_t cdb[SRPI_CDB_BYTES];

	assert_int_equal(srpi_probe_command(SRPI_INQUIRY, cdb), 96);
	assert_int_equal(srpi_probe_take(&disk, SRPI_INQUIRY, true, data, 20), -ENODEV);
	assert_int_equal(srpi_probe_take(&disk, SRPI_INQUIRY, true, data, 36), 0);
	assert_string_equal(disk.vendor, "soft");
	assert_int_equal(disk.product[1], '?');
	assert_int_equal(srpi_probe_take(&disk, SRPI_CAPACITY, true, capacity, 32), 0);
	assert_int_equal(disk.blocks, 100);
	assert_int_equal(disk.block_bytes, 512);
	assert_int_equal(srpi_probe_take(&disk, SRPI_LIMITS, false, NULL, 0), 0);
	assert_int_equal(srpi_probe_take(&disk, SRPI_MODE, true, mode, 24), 0);
	assert_true(disk.read_only && disk.can_fua && disk.write_back);
	assert_int_equal(srpi_probe_take(&disk, SRPI_IDENTITY, true, data, 64), 0);
	other = disk;
	assert_true(srpi_is_same(&disk, &other));
	other.blocks++;
	assert_false(srpi_is_same(&disk, &other));
	other = disk;
	data[9] ^= 1;
	assert_int_equal(srpi_probe_take(&other, SRPI_IDENTITY, true, data, 64), 0);
	assert_false(srpi_is_same(&disk, &other));
	data[0] = 5; /* a CD */
	assert_int_equal(srpi_probe_take(&disk, SRPI_INQUIRY, true, data, 36), -ENODEV);
	capacity[10] = 3; /* blocks of 768 bytes */
	assert_int_equal(srpi_probe_take(&disk, SRPI_CAPACITY, true, capacity, 32), -ENODEV);
	memset(capacity, 0xff, 8);
	capacity[10] = 2;
	assert_int_equal(srpi_probe_take(&disk, SRPI_CAPACITY, true, capacity, 32), -ENODEV);
}

static void a_status_is_judged(void **state)
{
	const struct {
		uint8_t status;
		uint8_t key, asc, ascq;
		enum srpi_verdict verdict;
		int error;
	} rows[] = {{0x00, 0, 0, 0, SRPI_GOOD, 0},	  {0x08, 0, 0, 0, SRPI_LATER, 0},
		    {0x28, 0, 0, 0, SRPI_LATER, 0},	  {0x40, 0, 0, 0, SRPI_REPEAT, 0},
		    {0x02, 6, 0x29, 0, SRPI_REPEAT, 0},	  {0x02, 2, 4, 1, SRPI_LATER, 0},
		    {0x02, 7, 0x27, 7, SRPI_FAILED, ENOSPC}, {0x02, 7, 0x27, 0, SRPI_FAILED, EPERM},
		    {0x02, 5, 0x21, 0, SRPI_FAILED, EINVAL}, {0x02, 5, 0x25, 0, SRPI_FAILED, ENODEV},
		    {0x02, 3, 0x11, 0, SRPI_FAILED, EIO}, {0x77, 0, 0, 0, SRPI_FAILED, EIO}};
	int error;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t fixed[18] = {0x70, 0, rows[i].key, [12] = rows[i].asc, rows[i].ascq};
		uint8_t described[8] = {0x72, rows[i].key, rows[i].asc, rows[i].ascq};

		assert_int_equal(srpi_judge(rows[i].status, fixed, 18, &error), rows[i].verdict);
		assert_int_equal(error, rows[i].error);
		assert_int_equal(srpi_judge(rows[i].status, described, 8, &error), rows[i].verdict);
	}
	assert_int_equal(srpi_judge(2, NULL, 0, &error), SRPI_FAILED);
}

static void luns_are_listed(void **state)
{
	uint8_t list[32] = {[3] = 16, [9] = 1, [17] = 200}, lun[8];

	assert_true(srpi_lun_nth(list, 24, 1, lun));
	assert_int_equal(lun[1], 200);
	assert_false(srpi_lun_nth(list, 24, 2, lun));
	assert_false(srpi_lun_nth(list, 20, 1, lun)); /* cut off */
}

/* --- device management: the target's side answers ------------------------------------------------ */

/* Ask a port for its targets. @answer: the port's side. Return: the number of targets */
static unsigned int scan(void (*answer)(const void *unit, const uint8_t *question, uint8_t *reply),
			 const void *unit, struct srpi_target *found, unsigned int *questions)
{
	struct srpi_scan scan = {0};
	uint8_t question[WIRE_MAD_BYTES], reply[WIRE_MAD_BYTES];
	unsigned int nr, all = 0;
	bool more = true;

	for (*questions = 0; more; all += nr) {
		srpi_scan_request(&scan, ++*questions, question);
		answer(unit, question, reply);
		more = srpi_scan_take(&scan, reply, found + all, &nr);
	}
	return all;
}

static void describe(const void *unit, const uint8_t *question, uint8_t *reply)
{
	assert_true(srp_describe(unit, question, reply));
}

static void targets_are_found(void **state)
{
	const struct srp_io_unit unit = {
		.controller = {{.guid = GUID, .vendor_id = 0x5000, .id_string = "disks"},
			       [3] = {.guid = GUID + 1, .id_string = "more disks"}}};
	struct srpi_target found[SRPI_FOUND_MOST];
	unsigned int questions, all = scan(describe, &unit, found, &questions);

	assert_int_equal(questions, 5);
	assert_int_equal(all, 2);
	assert_int_equal(found[0].slot, 1);
	assert_int_equal(found[1].slot, 4);
	assert_int_equal(found[1].service_id, srp_service_id(GUID + 1));
	assert_string_equal(found[1].id_string, "more disks");
	assert_int_equal(found[0].ioc_guid, GUID);
	assert_int_equal(found[0].id_ext, GUID);
	assert_int_equal(found[0].service_id, srp_service_id(GUID));
	assert_string_equal(found[0].id_string, "disks");
}

/* An I/O unit of five slots: three controllers, of which the one in slot 3 is no storage.
 * That in slot 5 has six services, of which the last two are targets. */
static void answer_unit(const void *unused, const uint8_t *question, uint8_t *reply)
{
	uint8_t *to = reply + WIRE_DM_DATA_OFFSET;
	const uint32_t mod = get_be32(question + 20), slot = mod >> 16;
	const struct wire_io_unit_info unit_info = {
		.max_controllers = 5, .controller = {WIRE_DM_IOC, 0, WIRE_DM_IOC, 0, WIRE_DM_IOC}};
	struct wire_ioc_profile profile = {.guid = GUID + mod,
					   .io_class = mod == 3 ? 0x0200 : WIRE_SRP_IO_CLASS,
					   .io_subclass = WIRE_SRP_IO_SUBCLASS,
					   .protocol = WIRE_SRP_PROTOCOL,
					   .nr_services = mod == 5 ? 6 : 1};
	struct wire_service_entries e = {.id0 = 10 + slot, .id1 = 20 + slot};

	memcpy(reply, question, WIRE_MAD_BYTES);
	if (get_be16(question + 16) == WIRE_DM_IO_UNIT_INFO) {
		wire_io_unit_info_encode(&unit_info, to);
	} else if (get_be16(question + 16) == WIRE_DM_IOC_PROFILE) {
		wire_ioc_profile_encode(&profile, to);
	} else {
		if (slot == 1 || (mod & 0xff) == 4) { /* the second answer of slot 5 */
			srp_service_name(GUID + slot, (char *)e.name0);
			srp_service_name(GUID + 100 + slot, (char *)e.name1);
		}
		wire_service_entries_encode(&e, to);
	}
}

static void every_controller_is_asked(void **state)
{
	struct srpi_target found[4 * SRPI_FOUND_MOST];
	unsigned int questions, all = scan(answer_unit, NULL, found, &questions);

	assert_int_equal(questions, 1 + 2 + 1 + 3);
	assert_int_equal(all, 3);
	assert_int_equal(found[0].ioc_guid, GUID + 1);
	assert_int_equal(found[0].service_id, 11);
	assert_int_equal(found[1].ioc_guid, GUID + 5);
	assert_int_equal(found[1].id_ext, GUID + 5);
	assert_int_equal(found[2].ioc_guid, GUID + 5); /* the same controller, another target */
	assert_int_equal(found[2].id_ext, GUID + 105);
	assert_int_equal(found[2].service_id, 25);
}

static void a_port_without_targets_is_left(void **state)
{
	struct srpi_target found[SRPI_FOUND_MOST];
	struct srpi_scan scan = {0};
	uint8_t mad[WIRE_MAD_BYTES];
	unsigned int nr;

	assert_false(srpi_scan_take(&scan, NULL, found, &nr));
	srpi_scan_request(&scan, 1, mad);
	put_be16(mad + 4, WIRE_STATUS_BAD_METHOD_ATTR);
	assert_false(srpi_scan_take(&scan, mad, found, &nr));
	assert_int_equal(nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_login_is_accepted_or_rejected),
		cmocka_unit_test(an_answer_without_sense_is_refused),
		cmocka_unit_test(pieces_are_described_as_the_target_allows),
		cmocka_unit_test(a_target_says_what_it_takes),
		cmocka_unit_test(the_limit_is_kept),
		cmocka_unit_test(sense_and_residual_are_found),
		cmocka_unit_test(a_task_ends_its_command),
		cmocka_unit_test(the_targets_requests_are_answered),
		cmocka_unit_test(an_event_is_reported_and_answered),
		cmocka_unit_test(a_session_waits_then_fails_then_ends),
		cmocka_unit_test(attempts_become_rarer),
		cmocka_unit_test(time_outs_are_checked),
		cmocka_unit_test(a_disk_is_recognised),
		cmocka_unit_test(a_status_is_judged),
		cmocka_unit_test(luns_are_listed),
		cmocka_unit_test(targets_are_found),
		cmocka_unit_test(every_controller_is_asked),
		cmocka_unit_test(a_port_without_targets_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
