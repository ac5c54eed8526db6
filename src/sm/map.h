/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A hash table from 64-bit keys (GUIDs) to pointers; never shrinks. */
#ifndef SOFTIB_SM_MAP_H
#define SOFTIB_SM_MAP_H

#include <errno.h>

#include "runtime/rt.h"

struct sm_map {
	struct sm_map_slot {
		uint64_t key;
		void *value; /* NULL: free */
	} *slots;
	uint32_t size, used; /* size: 0 or a power of two */
};

static inline struct sm_map_slot *sm_map_slot(const struct sm_map *m, uint64_t key)
{
	uint32_t i = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32);

	for (i &= m->size - 1; m->slots[i].value; i = (i + 1) & (m->size - 1))
		if (m->slots[i].key == key)
			break;
	return &m->slots[i];
}

/** sm_map_get() - Return: the value of @key, or NULL */
static inline void *sm_map_get(const struct sm_map *m, uint64_t key)
{
	return m->size ? sm_map_slot(m, key)->value : NULL;
}

/** sm_map_put() - set @key to @value, not NULL. Return: 0; -ENOMEM */
static inline int sm_map_put(struct sm_map *m, uint64_t key, void *value)
{
	if (m->used * 2 >= m->size) {
		struct sm_map grown = {.size = MAX(m->size * 2, 64u)};

		grown.slots = rt_zalloc(grown.size * sizeof(*grown.slots));
		if (!grown.slots)
			return -ENOMEM;
		for (uint32_t i = 0; i < m->size; i++)
			if (m->slots[i].value)
				*sm_map_slot(&grown, m->slots[i].key) = m->slots[i];
		grown.used = m->used;
		rt_free(m->slots);
		*m = grown;
	}
	struct sm_map_slot *s = sm_map_slot(m, key);

	m->used += !s->value;
	*s = (struct sm_map_slot){key, value};
	return 0;
}

static inline void sm_map_free(struct sm_map *m)
{
	rt_free(m->slots);
	*m = (struct sm_map){0};
}

#endif
