/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include_next <linux/wait.h>

#include "softib/module.h"
