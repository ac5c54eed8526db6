/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Nothing: a library that is linked with this file's is, when it is loaded, linked with the
 * distribution's, whose path the "soname" names. */
extern int softib_stand_in;
int softib_stand_in;
