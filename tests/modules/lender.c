/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A module that exports symbols to others. */
#include <linux/delay.h>
#include <linux/module.h>

int lender_lend(int n);

int lender_count = 5;
EXPORT_SYMBOL(lender_count);

int lender_lend(int n)
{
	msleep(1); /* in the caller's context */
	lender_count -= n;
	return lender_count;
}
EXPORT_SYMBOL_GPL(lender_lend);

static int __init lender_init(void)
{
	return 0;
}

static void __exit lender_exit(void)
{
	pr_info("%d are left\n", lender_count);
}

module_init(lender_init);
module_exit(lender_exit);
MODULE_LICENSE("Dual BSD/GPL");
