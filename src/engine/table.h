/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sparse array from 24-bit numbers (QPNs, key indices) to pointers: a tree of pages of 64 slots,
 * which is as high as its largest number needs. So the table of an adapter with a few objects is
 * 512 bytes, and a look-up one load.
 */
#ifndef SOFTIB_ENGINE_TABLE_H
#define SOFTIB_ENGINE_TABLE_H

#include <errno.h>

#include "base/types.h"

#define ENG_TABLE_BITS 6
#define ENG_TABLE_SLOTS (1u << ENG_TABLE_BITS)

struct eng_table {
	void **root;   /* NULL until the first entry */
	unsigned bits; /* of the numbers that it has room for; 0: none */
};

static inline uint32_t eng_table_slot(uint32_t i, unsigned shift)
{
	return i >> shift & (ENG_TABLE_SLOTS - 1);
}

static inline void *eng_table_get(const struct eng_table *t, uint32_t i)
{
	unsigned shift = t->bits;
	void **page = t->root;

	if (i >> shift)
		return NULL;
	while (shift && page) {
		shift -= ENG_TABLE_BITS;
		page = page[eng_table_slot(i, shift)];
	}
	return page;
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
