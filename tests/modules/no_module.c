/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A shared object that is no module. */
int nothing;
