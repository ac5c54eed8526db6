/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include_next <linux/kernel.h>

#include "softib/module.h"
