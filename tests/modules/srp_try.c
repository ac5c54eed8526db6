/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An SRP initiator for tests of the target: it logs in to the target @guid at the port
 * @port_guid, in good and in bad ways, performs commands with each format of descriptors,
 * and prints what it was answered. Everything is compared here; "done" says that all was
 * as it has to be.
 */
#include "srp_side.h"

/* @nr descriptors of @each bytes, in reverse order of memory, of which @here are in the
 * IU */
static struct wire_srp_data indirect(u8 *table, u32 at, u32 nr, u32 each, u32 here)
{
	for (u32 i = 0; i < nr; i++)
		wire_srp_desc_encode(&(struct wire_srp_desc){(u64)(uintptr_t)data + at +
								     (nr - 1 - i) * each,
							     mr->rkey, each},
				     table + i * WIRE_SRP_DESC_BYTES);
	return (struct wire_srp_data){
		.format = WIRE_SRP_INDIRECT,
		.bytes = nr * each,
		.where = {(u64)(uintptr_t)table, mr->rkey, nr * WIRE_SRP_DESC_BYTES},
		.nr_descs = nr,
		.nr_here = here,
		.here = table,
	};
}

/* What a write with @out puts on 16 blocks from @lba, a read with @in gets. */
static void round_trip(struct channel *ch, u8 lba, struct wire_srp_data out,
		       struct wire_srp_data in, u32 reversed_in_parts_of)
{
	const u32 bytes = 16 * BLOCK, part = reversed_in_parts_of;

	fill(0, bytes, lba);
	memset(data + bytes, 0xee, bytes);
	expect("WRITE",
	       perform(ch, CDB(0x2a, 0, 0, 0, 0, lba, 0, 0, 16),
		       &(struct wire_srp_cmd_parts){.out = out}),
	       0);
	expect("READ",
	       perform(ch, CDB(0x28, 0, 0, 0, 0, lba, 0, 0, 16),
		       &(struct wire_srp_cmd_parts){.in = in}),
	       0);
	for (u32 i = 0; i < bytes / part; i++)
		expect("data",
		       memcmp(data + i * part,
			      data + bytes + (bytes / part - 1 - i) * part, part),
		       0);
}

static void try_formats(struct channel *ch)
{
	const u32 bytes = 16 * BLOCK;
	u8 *table = kzalloc(64 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);

	round_trip(ch, 0, direct(0, bytes), direct(bytes, bytes), bytes);
	round_trip(ch, 16, direct(0, bytes), indirect(table, bytes, 16, BLOCK, 16),
		   BLOCK);
	round_trip(ch, 32, direct(0, bytes), indirect(table, bytes, 16, BLOCK, 3), BLOCK);
	round_trip(ch, 48, indirect(table, 0, 16, BLOCK, 0), direct(bytes, bytes), BLOCK);
	kfree(table);
}

static void try_immediate(struct channel *ch)
{
	struct wire_srp_cmd cmd = {.opcode = WIRE_SRP_CMD,
				   .tag = 9,
				   .out_format = 3,
				   .cdb = {0x2a, 0, 0, 0, 0, 100, 0, 0, 1}};

	expect("immediate data", ch->rsp.flags & WIRE_SRP_IMMEDIATE, WIRE_SRP_IMMEDIATE);
	wire_srp_cmd_encode(&cmd, ch->send);
	put_be32(ch->send + 48, BLOCK);
	memset(ch->send + OFFSET, 0x5a, BLOCK);
	send_iu(ch, OFFSET + BLOCK);
	take_answer(ch);
	expect("immediate WRITE", rsp.status, 0);
	expect("READ",
	       perform(ch, CDB(0x28, 0, 0, 0, 0, 100, 0, 0, 1),
		       &(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)}),
	       0);
	expect("data", data[0] == 0x5a && data[BLOCK - 1] == 0x5a, 1);
}

static void try_residuals(struct channel *ch)
{
	perform(ch, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1),
		&(struct wire_srp_cmd_parts){.in = direct(0, 4 * BLOCK)});
	expect("under", rsp.flags & WIRE_SRP_IN_UNDER, WIRE_SRP_IN_UNDER);
	expect("residual", rsp.in_residual_bytes, 3 * BLOCK);
	perform(ch, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 4),
		&(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)});
	expect("over", rsp.flags & WIRE_SRP_IN_OVER, WIRE_SRP_IN_OVER);
	expect("residual", rsp.in_residual_bytes, 3 * BLOCK);
	perform(ch, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 2),
		&(struct wire_srp_cmd_parts){.out = direct(0, BLOCK)});
	expect("too short", sense, 0xb4b00);
}

static void try_errors(struct channel *ch)
{
	struct wire_srp_cmd_parts none = {};
	u8 *table = kzalloc(64 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);
	struct wire_srp_data lying = indirect(table, 0, 8, BLOCK, 0);

	perform(ch, CDB(0xff), &none);
	expect("opcode", sense, 0x52000);
	send_command(ch, 8, 9, CDB(0), &none);
	take_answer(ch);
	expect("LUN", sense, 0x52500);
	perform(ch, CDB(0x28, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1),
		&(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)});
	expect("LBA", sense, 0x52100);
	lying.bytes = 16 * BLOCK; /* twice what the table describes */
	perform(ch, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 16),
		&(struct wire_srp_cmd_parts){.out = lying});
	expect("lying table", sense, 0xf0000 | WIRE_SRP_RESPONSE_BAD_FIELDS);
	kfree(table);
}

static void try_tasks(struct channel *ch)
{
	static const struct {
		u8 function, lun, answer;
	} rows[] = {{WIRE_SRP_ABORT_TASK, 0, 0},     {WIRE_SRP_ABORT_TASK_SET, 0, 0},
		    {WIRE_SRP_CLEAR_TASK_SET, 0, 0}, {WIRE_SRP_LUN_RESET, 0, 0},
		    {WIRE_SRP_LUN_RESET, 9, 5},	     {WIRE_SRP_CLEAR_ACA, 0, 4}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT,
						 .tag = 100 + i,
						 .lun = {0, rows[i].lun},
						 .function = rows[i].function,
						 .task_tag = 1};

		wire_srp_tsk_mgmt_encode(&task, ch->send);
		send_iu(ch, 48);
		take_answer(ch);
		expect("function", sense, 0xf0000u | rows[i].answer);
		expect("tag", rsp.tag, 100 + i);
	}
	perform(ch, CDB(0), &(struct wire_srp_cmd_parts){});
	expect("unit attention", sense, 0x62903);
}

/* Commands that another initiator clears are answered (TAS): nothing tells of them again. */
static void try_clearing(struct channel *ch)
{
	const struct wire_srp_tsk_mgmt task = {
		.opcode = WIRE_SRP_TSK_MGMT, .tag = 1000, .function = WIRE_SRP_CLEAR_TASK_SET};
	struct channel *other = kzalloc(sizeof(*other), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();

	login.initiator[15] = '2';
	log_in(other, &login);
	start(other);
	wire_srp_tsk_mgmt_encode(&task, ch->send);
	send_iu(ch, 48);
	take_answer(ch);
	expect("CLEAR TASK SET", sense, 0xf0000);
	expect("no unit attention", perform(other, CDB(0), &(struct wire_srp_cmd_parts){}), 0);
	log_out(other);
	kfree(other);
}

/* A LUN RESET overtakes commands, none of which is lost: each has an answer, or was
 * aborted. */
static void try_many(struct channel *ch)
{
	struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT,
					 .tag = 1000,
					 .function = WIRE_SRP_ABORT_TASK_SET};
	const u32 nr = 20;

	ch->credits = 0;
	for (u32 i = 0; i < nr; i++) {
		send_command(ch, 200 + i, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 16),
			     &(struct wire_srp_cmd_parts){.in = direct(0, 16 * BLOCK)});
		if (i % 2)
			take_answer(ch);
	}
	wire_srp_tsk_mgmt_encode(&task, ch->send);
	send_iu(ch, 48);
	do
		take_answer(ch);
	while (rsp.tag != 1000 && rsp.status != 0xff);
	while (ch->credits < nr + 1 && rsp.status != 0xff)
		take_answer(ch);
	expect("credits", ch->credits, nr + 1);
}

/* --- logins
 * -------------------------------------------------------------------------------------
 */

/* The initiator goes while a disk has commands in work, and while a function waits for them. */
static void try_leaving(struct channel *ch)
{
	struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT, .tag = 1000,
					 .function = WIRE_SRP_LUN_RESET};
	struct wire_srp_login_req login = good_login();
	const struct wire_srp_cmd_parts parts = {.in = direct(0, 16 * BLOCK)};

	for (int i = 0; i < 8; i++) {
		log_in(ch, &login);
		start(ch);
		for (u32 k = 0; k < 8; k++)
			send_command(ch, 200 + k, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 16), &parts);
		wire_srp_tsk_mgmt_encode(&task, ch->send);
		send_iu(ch, 48);
		if (i % 2)
			take_answer(ch);
		log_out(ch);
	}
}

static void expect_reject(struct channel *ch, const char *what,
			  const struct wire_srp_login_req *login, u32 reason)
{
	log_in(ch, login);
	expect(what, ch->reject, reason);
	log_out(ch);
}

static void try_rejects(struct channel *ch)
{
	struct wire_srp_login_req login = good_login();

	login.it_iu_bytes = 1 << 20;
	expect_reject(ch, "long IU", &login, WIRE_SRP_REJECT_IU_TOO_LARGE);
	login = good_login();
	login.target[15] ^= 1;
	expect_reject(ch, "other target", &login, WIRE_SRP_REJECT_ASSOCIATION);
	login = good_login();
	login.formats = 8;
	expect_reject(ch, "formats", &login, WIRE_SRP_REJECT_FORMATS);
	login = good_login();
	login.opcode = WIRE_SRP_CMD;
	expect_reject(ch, "opcode", &login, WIRE_SRP_REJECT_UNSPECIFIED);
	login = good_login();
	login.it_iu_bytes = 63;
	expect_reject(ch, "short IU", &login, WIRE_SRP_REJECT_UNSPECIFIED);
}

/* Logins at once, of initiator ports with STORM_CHANNELS each: the target has room for 64 from this port, and an
 * initiator port for eight. What is refused leaves nothing, and what was accepted works. */
enum { STORM_PORTS = 36, STORM_CHANNELS = 9, STORM = STORM_PORTS * STORM_CHANNELS };

static void try_storm(void)
{
	struct channel **ch = kzalloc(STORM * sizeof(*ch), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();
	u32 accepted = 0, too_many = 0, no_room = 0, first = 0;

	for (u32 i = 0; i < STORM; i++) {
		ch[i] = kzalloc(sizeof(*ch[i]), GFP_KERNEL);
		login.initiator[15] = (u8)(i % STORM_PORTS);
		begin_login(ch[i], &login);
	}
	for (u32 i = 0; i < STORM; i++) {
		wait_for_completion(&ch[i]->news);
		accepted += !ch[i]->reject;
		too_many += ch[i]->reject == WIRE_SRP_REJECT_CHANNEL_LIMIT;
		no_room += ch[i]->reject == WIRE_SRP_REJECT_RESOURCES;
		first = ch[first]->reject ? i : first;
	}
	expect("accepted", accepted, 64);
	expect("answered", accepted + too_many + no_room, STORM);
	expect("no room", no_room > 0, 1);
	start(ch[first]);
	for (u32 i = 0; i < STORM; i++) {
		log_out(ch[i]);
		kfree(ch[i]);
	}
	kfree(ch);
}

static void expect_logout(struct channel *ch, const char *what, size_t bytes, u32 reason)
{
	const u8 *iu;

	send_iu(ch, bytes);
	iu = next_message(ch);
	while (iu && iu[0] == WIRE_SRP_RSP) {
		done_with_message(ch);
		iu = next_message(ch);
	}
	expect(what, iu ? iu[0] : 0, WIRE_SRP_T_LOGOUT);
	if (iu)
		expect(what, get_be32(iu + 4), reason);
}

static void try_bad_messages(struct channel *ch)
{
	static const struct {
		u8 opcode;
		size_t bytes;
		u8 formats;
		u32 reason;
	} rows[] = {{0x55, 64, 0, 2},
		    {WIRE_SRP_CMD, 47, 0, 2},
		    {WIRE_SRP_CRED_RSP, 16, 0, 3},
		    {WIRE_SRP_AER_RSP, 16, 0, 3},
		    {WIRE_SRP_CMD, 48, 0x50, 6},
		    {WIRE_SRP_CMD, 48, 0x05, 7},
		    {WIRE_SRP_CMD, 48, 0x10, 8},
		    {WIRE_SRP_CMD, 50, 0x01, 9}};
	struct wire_srp_login_req login = good_login();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		log_in(ch, &login);
		expect("login", ch->reject, 0);
		memset(ch->send, 0, IU_BYTES);
		ch->send[0] = rows[i].opcode;
		ch->send[5] = rows[i].formats;
		expect_logout(ch, "bad message", rows[i].bytes, rows[i].reason);
		log_out(ch);
	}
}

static void try_channels(struct channel *ch)
{
	struct channel *second = kzalloc(sizeof(*second), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();
	const u8 *iu;

	log_in(ch, &login);
	expect("first", ch->rsp.flags & 3, WIRE_SRP_NONE_BEFORE);
	log_in(second, &login);
	expect("second", second->rsp.flags & 3, WIRE_SRP_MAINTAINED);
	start(ch);
	start(second);
	log_out(second);
	login.flags = WIRE_SRP_SINGLE;
	log_in(second, &login);
	expect("single", second->rsp.flags & 3, WIRE_SRP_TERMINATED);
	iu = next_message(ch);
	expect("logout of the first", iu ? iu[0] : 0, WIRE_SRP_T_LOGOUT);
	expect("reason", iu ? get_be32(iu + 4) : 0, 4);
	start(second);
	log_out(second);
	log_out(ch);
	kfree(second);
}

/* A host that reserved the unit is the only one that writes, also after it logged in
 * anew; the other one takes the reservation away from it. */
static void try_reservations(struct channel *ch)
{
	struct channel *other = kzalloc(sizeof(*other), GFP_KERNEL);
	struct wire_srp_login_req login = good_login(), others = good_login();

	others.initiator[15] = '2';
	log_in(ch, &login);
	log_in(other, &others);
	start(ch);
	start(other);
	expect("REGISTER", reserve_out(ch, 0, 0, 0, 1), 0);
	expect("REGISTER", reserve_out(other, 0, 0, 0, 2), 0);
	expect("RESERVE", reserve_out(ch, 1, 1, 1, 0), 0);
	expect("WRITE of the other", write_block(other), 0x18);
	log_out(ch);
	log_in(ch, &login);
	start(ch);
	expect("WRITE of the holder", write_block(ch), 0);
	expect("WRITE of the other", write_block(other), 0x18);
	expect("PREEMPT AND ABORT", reserve_out(other, 5, 1, 2, 1), 0);
	expect("WRITE of the new holder", write_block(other), 0);
	expect("WRITE of the old one", write_block(ch), 2);
	expect("unit attention", sense, 0x62a05);
	expect("WRITE of the old one", write_block(ch), 0x18);
	expect("READ FULL STATUS",
	       perform(ch, CDB(0x5e, 3, [8] = 255),
		       &(struct wire_srp_cmd_parts){.in = direct(0, 255)}),
	       0);
	expect("length", get_be32(data + 4), 48);
	expect("initiator", memcmp(data + 8 + 32, others.initiator, 16), 0);
	expect("CLEAR", reserve_out(other, 3, 0, 2, 0), 0);
	expect("WRITE", write_block(ch), 0);
	log_out(other);
	log_out(ch);
	kfree(other);
}

/* Descriptors that reach beyond the memory that was granted: the adapter refuses the access,
 * and the connection is over. Nothing is stored beyond it. */
static void try_outside(struct channel *ch)
{
	const struct ib_phys_buf buffer = {.addr = (u64)(uintptr_t)data, .size = 4 * BLOCK};
	struct wire_srp_login_req login = good_login();
	u64 start_of = buffer.addr;
	struct ib_mr *granted = ib_reg_phys_mr(pd, (struct ib_phys_buf *)&buffer, 1,
					       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
						       IB_ACCESS_REMOTE_WRITE,
					       &start_of);
	u8 *table = kzalloc(4 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);

	for (int i = 0; i < 4; i++) {
		struct wire_srp_data bad = i < 2 ? direct(BLOCK, 4 * BLOCK)
						 : indirect(table, 0, 4, BLOCK, i == 2 ? 4 : 0);
		struct wire_srp_cmd_parts parts = {.in = bad};

		if (i == 1)
			parts = (struct wire_srp_cmd_parts){.out = bad};
		/* of a whole table, one entry is not granted; one that is fetched is not itself */
		parts.in.where.rkey = parts.out.where.rkey = granted->rkey;
		put_be32(table + WIRE_SRP_DESC_BYTES + 8, granted->rkey ^ 0x100);
		log_in(ch, &login);
		start(ch);
		memset(data + 4 * BLOCK, 0xee, BLOCK);
		expect("beyond", perform(ch, CDB(i == 1 ? 0x2a : 0x28, [8] = 4), &parts), 0xff);
		expect("the channel is over", ch->gone, 1);
		expect("what is behind", data[4 * BLOCK], 0xee);
		log_out(ch);
	}
	kfree(table);
	ib_dereg_mr(granted);
}

static void try_all(void)
{
	struct channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();

	log_in(ch, &login);
	start(ch);
	try_formats(ch);
	try_immediate(ch);
	try_residuals(ch);
	try_errors(ch);
	try_tasks(ch);
	try_clearing(ch);
	try_many(ch);
	log_out(ch);
	try_leaving(ch);
	try_rejects(ch);
	try_storm();
	try_channels(ch);
	try_reservations(ch);
	try_outside(ch);
	try_bad_messages(ch);
	kfree(ch);
}

/* --- the module
 * ------------------------------------------------------------------------------------ */

static int add_one(struct ib_device *dev)
{
	open_device(dev);
	if (!failures)
		try_all();
	pr_info("done, %d failures\n", failures);
	return 0;
}

static struct ib_client client = {
	.name = "srp_try", .add = add_one, .remove = close_device};

static int __init srp_try_init(void)
{
	init_completion(&answered);
	ib_sa_register_client(&sa_client);
	return ib_register_client(&client);
}

static void __exit srp_try_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(srp_try_init);
module_exit(srp_try_exit);
MODULE_LICENSE("Dual BSD/GPL");
