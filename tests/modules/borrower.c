/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A module that uses symbols of another one: by a call, by a pointer, and a variable. */
#include <linux/module.h>

extern int lender_count;
int lender_lend(int n);

static int (*const lend)(int n) = lender_lend;
static int *const count = &lender_count;

static int __init borrower_init(void)
{
	int before = lender_count, after = lender_lend(1), then = lend(2);

	pr_info("borrowed of %d: %d, then %d; %d\n", before, after, then, *count);
	return 0;
}

static void __exit borrower_exit(void)
{
	lend(-3);
}

module_init(borrower_init);
module_exit(borrower_exit);
MODULE_LICENSE("Dual BSD/GPL");
