/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A module that calls what neither softibd nor libc has. */
#include <linux/module.h>

int ib_do_the_impossible(void);

static int __init wants_init(void)
{
	return ib_do_the_impossible();
}

module_init(wants_init);
