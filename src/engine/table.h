/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sparse array from 24-bit numbers (QPNs, key indices) to pointers: two
 * levels of 4096, the second made on demand. A look-up is two loads.
 */
#ifndef SOFTIB_ENGINE_TABLE_H
#define SOFTIB_ENGINE_TABLE_H

#include <errno.h>

#include "base/types.h"

#define ENG_TABLE_BITS 12
#define ENG_TABLE_SLOTS (1u << ENG_TABLE_BITS)

struct eng_table {
	void ***page; /* NULL until the first entry */
};

static inline void *eng_table_get(const struct eng_table *t, uint32_t i)
{
	void **page = t->page ? t->page[(i >> ENG_TABLE_BITS) & (ENG_TABLE_SLOTS - 1)] : NULL;

	return page ? page[i & (ENG_TABLE_SLOTS - 1)] : NULL;
}

/** eng_table_set() - Return: 0; -ENOMEM (never when clearing an entry) */
int eng_table_set(struct eng_table *t, uint32_t i, void *entry);
/** eng_table_free() - the table, after @each was called for every entry */
void eng_table_free(struct eng_table *t, void (*each)(void *entry));

#endif
