/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of commands at a unit of an SRP target that is a file: what may overtake what, what
 * is aborted, and what becomes of commands whose channel has gone. The disk waits at @gate
 * (disk_gate.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "srp_side.h"

static char *gate = "";
module_param(gate, charp, 0444);
MODULE_PARM_DESC(gate, "the path of the FIFO at which the disk waits");

#define BLOCKS	   16
#define BYTES	   (BLOCKS * BLOCK)
#define THERE	   (32 * 1024) /* where data are read to */
#define NO_UNIT	   9
#define ROUND_TRIPS 100

enum { READ_10 = 0x28, WRITE_10 = 0x2a, SYNCHRONIZE_10 = 0x35 };

/* --- the gate --- */

static int gate_fd = -1;

static void shut_gate(void)
{
	expect("mkfifo", mkfifo(gate, 0600), 0);
}

/* The target answers what comes behind all that was sent. */
static void round_trip(struct channel *ch)
{
	send_command(ch, 5, NO_UNIT, CDB(0), &(struct wire_srp_cmd_parts){});
	do
		take_answer(ch);
	while (rsp.status != 0xff && rsp.tag != 5);
}

/* Wait until the disk has begun with a write; it alone waits at the gate. */
static void wait_at_gate(struct channel *ch)
{
	while ((gate_fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && !ch->gone)
		round_trip(ch);
	unlink(gate);
}

static void open_gate(void)
{
	close(gate_fd);
}

/* --- commands --- */

static u32 place; /* of the next write's data, so that none changes while it is fetched */

static void send_write(struct channel *ch, u64 tag, u8 attr, u8 seed)
{
	place = (place + BYTES) % THERE;
	fill(place, BYTES, seed);
	task_attr = attr;
	send_command(ch, tag, 0, CDB(WRITE_10, [8] = BLOCKS),
		     &(struct wire_srp_cmd_parts){.out = direct(place, BYTES)});
	task_attr = WIRE_SRP_SIMPLE;
}

static void send_read(struct channel *ch, u64 tag, u8 attr)
{
	memset(data + THERE, 0xee, BYTES);
	task_attr = attr;
	send_command(ch, tag, 0, CDB(READ_10, [8] = BLOCKS),
		     &(struct wire_srp_cmd_parts){.in = direct(THERE, BYTES)});
	task_attr = WIRE_SRP_SIMPLE;
}

static void expect_answer(struct channel *ch, u64 tag, u8 status)
{
	take_answer(ch);
	expect("tag", rsp.tag, tag);
	expect("status", rsp.status, status);
}

static void expect_data(u8 seed)
{
	fill(0, BYTES, seed);
	expect("data", memcmp(data, data + THERE, BYTES), 0);
}

/* All that the disk has is performed before SYNCHRONIZE CACHE. */
static void expect_on_disk(struct channel *ch, u8 seed)
{
	send_command(ch, 9, 0, CDB(SYNCHRONIZE_10), &(struct wire_srp_cmd_parts){});
	expect_answer(ch, 9, 0);
	send_read(ch, 6, WIRE_SRP_SIMPLE);
	expect_answer(ch, 6, 0);
	expect_data(seed);
}

static void send_task(struct channel *ch, u64 tag, u8 function, u64 of)
{
	const struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT,
					       .tag = tag,
					       .function = function,
					       .task_tag = of};

	wire_srp_tsk_mgmt_encode(&task, ch->send);
	send_iu(ch, 48);
}

static struct channel *log_in_as(const char *name, u8 flags)
{
	struct wire_srp_login_req login = good_login();
	struct channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL);

	memcpy(login.initiator, name, sizeof(login.initiator));
	login.flags = flags;
	log_in(ch, &login);
	return ch;
}

static struct channel *join(const char *name)
{
	struct channel *ch = log_in_as(name, WIRE_SRP_MULTI);

	start(ch);
	return ch;
}

static void leave(struct channel *ch)
{
	log_out(ch);
	kfree(ch);
}

/* --- tests --- */

/* A read needs nothing before it begins, whereas the data of a write has to be fetched. */
static void an_ordered_command_keeps_its_place(void)
{
	struct channel *ch = join("first initiator.");

	send_write(ch, 1, WIRE_SRP_SIMPLE, 1);
	send_read(ch, 2, WIRE_SRP_ORDERED);
	expect_answer(ch, 1, 0);
	expect_answer(ch, 2, 0);
	expect_data(1);
	send_write(ch, 3, WIRE_SRP_ORDERED, 2);
	send_read(ch, 4, WIRE_SRP_SIMPLE);
	expect_answer(ch, 3, 0);
	expect_answer(ch, 4, 0);
	expect_data(2);
	leave(ch);
}

static void the_head_of_the_queue_overtakes(void)
{
	struct channel *ch = join("first initiator.");

	shut_gate();
	send_write(ch, 1, WIRE_SRP_SIMPLE, 3);
	wait_at_gate(ch);
	send_write(ch, 2, WIRE_SRP_ORDERED, 4);
	send_read(ch, 3, WIRE_SRP_HEAD_OF_QUEUE);
	expect_answer(ch, 3, 0);
	expect_data(2);
	open_gate();
	expect_answer(ch, 1, 0);
	expect_answer(ch, 2, 0);
	expect_on_disk(ch, 4);
	leave(ch);
}

/* Of three commands the disk has begun with one: the others are aborted at once. */
static void what_has_not_begun_is_aborted_at_once(void)
{
	struct channel *ch = join("first initiator.");

	shut_gate();
	send_write(ch, 1, WIRE_SRP_SIMPLE, 5);
	wait_at_gate(ch);
	send_command(ch, 2, 0, CDB(SYNCHRONIZE_10), &(struct wire_srp_cmd_parts){});
	send_write(ch, 3, WIRE_SRP_ORDERED, 6);
	send_task(ch, 4, WIRE_SRP_ABORT_TASK, 2);
	expect_answer(ch, 4, 0);
	send_task(ch, 7, WIRE_SRP_ABORT_TASK, 3);
	expect_answer(ch, 7, 0);
	send_task(ch, 8, WIRE_SRP_ABORT_TASK, 1);
	round_trip(ch);
	open_gate();
	expect_answer(ch, 8, 0);
	expect_on_disk(ch, 5);
	leave(ch);
}

/* An initiator that logs in anew repeats a write, and goes on: the one that the disk has still in
 * work is not stored over the newer ones. */
static void an_old_write_is_not_stored_late(void)
{
	struct channel *old = join("first initiator."), *ch;

	shut_gate();
	send_write(old, 1, WIRE_SRP_SIMPLE, 7);
	wait_at_gate(old);
	ch = log_in_as("first initiator.", WIRE_SRP_SINGLE);
	send_write(ch, 2, WIRE_SRP_SIMPLE, 8);
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(ch);
	open_gate();
	expect_answer(ch, 2, 0);
	expect_on_disk(ch, 8);
	leave(old);
	leave(ch);
}

/* What waits for the disk is not performed when its initiator has gone. */
static void what_waits_goes_with_its_channel(void)
{
	struct channel *ch = join("first initiator."),
		       *other = join("second initiator");

	shut_gate();
	send_write(other, 1, WIRE_SRP_SIMPLE, 9);
	wait_at_gate(other);
	send_command(ch, 2, 0, CDB(SYNCHRONIZE_10), &(struct wire_srp_cmd_parts){});
	send_write(ch, 3, WIRE_SRP_SIMPLE, 10); /* behind it */
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(ch);
	leave(ch);
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(other);
	open_gate();
	expect_answer(other, 1, 0);
	expect_on_disk(other, 9);
	leave(other);
}

/* A reset waits for a command of another initiator. That one goes, then the one that reset, and
 * only then is the disk done. */
static void who_aborts_may_go_before_the_disk_is_done(void)
{
	struct channel *ch = join("first initiator."),
		       *other = join("second initiator");

	shut_gate();
	send_write(ch, 1, WIRE_SRP_SIMPLE, 11);
	wait_at_gate(ch);
	send_task(other, 2, WIRE_SRP_LUN_RESET, 0);
	round_trip(other);
	leave(ch);
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(other);
	leave(other);
	ch = log_in_as("third initiator.", WIRE_SRP_MULTI);
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(ch);
	open_gate();
	start(ch);
	expect_on_disk(ch, 11);
	leave(ch);
}

static void an_attribute_without_its_condition_is_refused(void)
{
	struct channel *ch = join("first initiator.");

	send_read(ch, 1, WIRE_SRP_ACA);
	expect_answer(ch, 1, 2);
	expect("sense", sense, 0x54900);
	leave(ch);
}

/* --- the module --- */

static int add_one(struct ib_device *dev)
{
	open_device(dev);
	if (!failures) {
		an_ordered_command_keeps_its_place();
		the_head_of_the_queue_overtakes();
		what_has_not_begun_is_aborted_at_once();
		an_old_write_is_not_stored_late();
		what_waits_goes_with_its_channel();
		who_aborts_may_go_before_the_disk_is_done();
		an_attribute_without_its_condition_is_refused();
	}
	pr_info("done, %d failures\n", failures);
	return 0;
}

static struct ib_client client = {
	.name = "srp_order", .add = add_one, .remove = close_device};

static int __init srp_order_init(void)
{
	init_completion(&answered);
	ib_sa_register_client(&sa_client);
	return ib_register_client(&client);
}

static void __exit srp_order_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(srp_order_init);
module_exit(srp_order_exit);
MODULE_LICENSE("Dual BSD/GPL");
