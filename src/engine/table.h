/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sparse array from 24-bit numbers (QPNs, key indices) to pointers: three
 * levels of 256, made on demand, so that the table of an adapter with one
 * object is 6 KiB and a look-up is three loads.
 */
#ifndef SOFTIB_ENGINE_TABLE_H
#define SOFTIB_ENGINE_TABLE_H

#include <errno.h>

#include "base/types.h"

#define ENG_TABLE_LEVELS 3
#define ENG_TABLE_BITS 8
#define ENG_TABLE_SLOTS (1u << ENG_TABLE_BITS)

struct eng_table {
	void **root; /* NULL until the first entry */
};

static inline uint32_t eng_table_slot(uint32_t i, unsigned level)
{
	return i >> (ENG_TABLE_LEVELS - 1 - level) * ENG_TABLE_BITS & (ENG_TABLE_SLOTS - 1);
}

static inline void *eng_table_get(const struct eng_table *t, uint32_t i)
{
	void **page = t->root;

	for (unsigned level = 0; level < ENG_TABLE_LEVELS - 1 && page; level++)
		page = page[eng_table_slot(i, level)];
	return page ? page[eng_table_slot(i, ENG_TABLE_LEVELS - 1)] : NULL;
}

/** eng_table_set() - Return: 0; -ENOMEM (never when clearing an entry) */
int eng_table_set(struct eng_table *t, uint32_t i, void *entry);
/** eng_table_add() - Return: 0; -EEXIST; -ENOMEM */
static inline int eng_table_add(struct eng_table *t, uint32_t i, void *entry)
{
	return eng_table_get(t, i) ? -EEXIST : eng_table_set(t, i, entry);
}
/** eng_table_clear() - forget entry @i, and give back the pages that hold no
 *  other: for a table whose numbers go round */
void eng_table_clear(struct eng_table *t, uint32_t i);
/** eng_table_free() - the table, after @each was called for every entry */
void eng_table_free(struct eng_table *t, void (*each)(void *entry));

#endif
