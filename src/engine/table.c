/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine's number tables. */
#include "engine/table.h"

#include "runtime/rt.h"

int eng_table_set(struct eng_table *t, uint32_t i, void *entry)
{
	uint32_t hi = (i >> ENG_TABLE_BITS) & (ENG_TABLE_SLOTS - 1);

	if (!t->page && !(t->page = rt_zalloc(ENG_TABLE_SLOTS * sizeof(*t->page))))
		return -ENOMEM;
	if (!t->page[hi]) {
		if (!entry)
			return 0;
		t->page[hi] = rt_zalloc(ENG_TABLE_SLOTS * sizeof(void *));
		if (!t->page[hi])
			return -ENOMEM;
	}
	t->page[hi][i & (ENG_TABLE_SLOTS - 1)] = entry;
	return 0;
}

static void free_page(void **page, void (*each)(void *entry))
{
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++)
		if (page[i])
			each(page[i]);
	rt_free(page);
}

void eng_table_free(struct eng_table *t, void (*each)(void *entry))
{
	if (!t->page)
		return;
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++)
		if (t->page[i])
			free_page(t->page[i], each);
	rt_free(t->page);
	t->page = NULL;
}
