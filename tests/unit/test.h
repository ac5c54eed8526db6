/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* cmocka and the headers it wants before it. */
#ifndef SOFTIB_TESTS_TEST_H
#define SOFTIB_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
