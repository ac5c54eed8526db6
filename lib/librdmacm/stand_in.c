/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Nothing: see meson.build. */
extern int softib_stand_in;
int softib_stand_in;
