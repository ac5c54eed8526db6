/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The lists of attributes of the classes, each ended by a row without codec. They are
 * defined beside the tables of the class and used by the directory of classes in mad.c. */
#ifndef SOFTIB_WIRE_ATTRS_H
#define SOFTIB_WIRE_ATTRS_H

#include "wire/mad.h"

extern const struct wire_attr wire_smp_attrs[], wire_sa_attrs[], wire_pma_attrs[],
	wire_cm_attrs[], wire_bm_attrs[], wire_dm_attrs[];

#endif
