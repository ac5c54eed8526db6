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

/* Add levels above what is there, if @i needs them. Return: false: no memory */
static bool grow(struct eng_table *t, uint32_t i)
{
	if (!t->root)
		t->bits = 0;
	for (; !t->bits || i >> t->bits; t->bits += ENG_TABLE_BITS) {
		void **page = NULL;

		if (!t->root)
			continue;
		if (!make_page((void **)&page))
			return false;
		page[0] = t->root;
		t->root = page;
	}
	return true;
}

int eng_table_set(struct eng_table *t, uint32_t i, void *entry)
{
	void **page;
	unsigned shift;

	if (!entry && !eng_table_get(t, i))
		return 0;
	page = grow(t, i) ? make_page((void **)&t->root) : NULL;
	for (shift = t->bits - ENG_TABLE_BITS; shift && page; shift -= ENG_TABLE_BITS)
		page = make_page(&page[eng_table_slot(i, shift)]);
	if (!page)
		return -ENOMEM;
	page[eng_table_slot(i, 0)] = entry;
	return 0;
}

static bool is_empty(void *const *page)
{
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++)
		if (page[i])
			return false;
	return true;
}

/* @shift: of the numbers in a slot of @page. Return: whether @page, freed, is to be forgotten
 * where it hung */
static bool clear(void **page, uint32_t i, unsigned shift)
{
	void **slot = &page[eng_table_slot(i, shift)];

	if (!shift || (*slot && clear(*slot, i, shift - ENG_TABLE_BITS)))
		*slot = NULL;
	if (*slot || !is_empty(page))
		return false;
	rt_free(page);
	return true;
}

void eng_table_clear(struct eng_table *t, uint32_t i)
{
	if (t->root && !(i >> t->bits) && clear(t->root, i, t->bits - ENG_TABLE_BITS))
		*t = (struct eng_table){0};
}

static void free_page(void **page, unsigned shift, void (*each)(void *entry))
{
	for (uint32_t i = 0; i < ENG_TABLE_SLOTS; i++) {
		if (!page[i])
			continue;
		if (shift)
			free_page(page[i], shift - ENG_TABLE_BITS, each);
		else
			each(page[i]);
	}
	rt_free(page);
}

void eng_table_free(struct eng_table *t, void (*each)(void *entry))
{
	if (t->root)
		free_page(t->root, t->bits - ENG_TABLE_BITS, each);
	*t = (struct eng_table){0};
}
