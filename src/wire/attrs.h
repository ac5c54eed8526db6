/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each class's list of attributes, ended by a row without codec: defined
 * beside its tables, gathered by the directory of classes in mad.c. */
#ifndef SOFTIB_WIRE_ATTRS_H
#define SOFTIB_WIRE_ATTRS_H

#include "wire/mad.h"

extern const struct wire_attr wire_smp_attrs[], wire_sa_attrs[], wire_pma_attrs[],
	wire_cm_attrs[], wire_bm_attrs[], wire_dm_attrs[];

#endif
