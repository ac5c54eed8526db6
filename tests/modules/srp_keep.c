/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reservations that outlast a loss of power, before it (@again=0) and behind it: the first
 * initiator registers and reserves the unit, and only it writes.
 */
#include "srp_side.h"

static int again;
module_param(again, int, 0444);
MODULE_PARM_DESC(again, "the unit had a loss of power");

enum { REGISTER, RESERVE, CLEAR = 3, WRITE_EXCLUSIVE = 1, APTPL = 1, CONFLICT = 0x18 };

static struct channel *join(char last)
{
	struct channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();

	login.initiator[15] = (u8)last;
	log_in(ch, &login);
	start(ch);
	return ch;
}

static void leave(struct channel *ch)
{
	log_out(ch);
	kfree(ch);
}

static void reserve(struct channel *ch)
{
	expect("REGISTER", reserve_out(ch, REGISTER, APTPL, 0, 7), 0);
	expect("RESERVE", reserve_out(ch, RESERVE, WRITE_EXCLUSIVE, 7, 0), 0);
}

static void try_again(struct channel *ch, struct channel *other)
{
	expect("WRITE of the other", write_block(other), CONFLICT);
	expect("WRITE of the holder", write_block(ch), 0);
	expect("CLEAR", reserve_out(ch, CLEAR, 0, 7, 0), 0);
	expect("WRITE of the other", write_block(other), 0);
}

static int add_one(struct ib_device *dev)
{
	struct channel *ch, *other;

	open_device(dev);
	ch = join('1');
	other = join('2');
	if (again)
		try_again(ch, other);
	else
		reserve(ch);
	leave(other);
	leave(ch);
	pr_info("done, %d failures\n", failures);
	return 0;
}

static struct ib_client client = {.name = "srp_keep", .add = add_one, .remove = close_device};

static int __init srp_keep_init(void)
{
	init_completion(&answered);
	ib_sa_register_client(&sa_client);
	return ib_register_client(&client);
}

static void __exit srp_keep_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(srp_keep_init);
module_exit(srp_keep_exit);
MODULE_LICENSE("Dual BSD/GPL");
