/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine's number tables. */
#include "engine/table.h"

#include "runtime/rt.h"

static void **make_page(void **page)
{
	if (!*page)
		*page = rt_zalloc(ENG_TABLE_SLOTS * sizeof(void *));
	return *page;
}

int eng_table_set(struct eng_table *t, uint32_t i, void *entry)
{
	void **page;

	if (!entry && !eng_table_get(t, i))
		return 0;
	page = make_page((void **)&t->root);
	for (unsigned level = 0; level < ENG_TABLE_LEVELS - 1 && page; level++)
		page = make_page(&page[eng_table_slot(i, level)]);
	if (!page)
		return -ENOMEM;
	page[eng_table_slot(i, ENG_TABLE_LEVELS - 1)] = entry;
	return 0;
}

static bool is_empty(void *const *page)
{
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++)
		if (page[i])
			return false;
	return true;
}

/* Return: whether @page, freed, is to be forgotten where it hung */
static bool clear(void **page, uint32_t i, unsigned level)
{
	void **slot = &page[eng_table_slot(i, level)];

	if (level == ENG_TABLE_LEVELS - 1 || (*slot && clear(*slot, i, level + 1)))
		*slot = NULL;
	if (*slot || !is_empty(page))
		return false;
	rt_free(page);
	return true;
}

void eng_table_clear(struct eng_table *t, uint32_t i)
{
	if (t->root && clear(t->root, i, 0))
		t->root = NULL;
}

static void free_page(void **page, unsigned level, void (*each)(void *entry))
{
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++) {
		if (!page[i])
			continue;
		if (level < ENG_TABLE_LEVELS - 1)
			free_page(page[i], level + 1, each);
		else
			each(page[i]);
	}
	rt_free(page);
}

void eng_table_free(struct eng_table *t, void (*each)(void *entry))
{
	if (t->root)
		free_page(t->root, 0, each);
	t->root = NULL;
}
