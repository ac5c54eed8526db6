/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cache of LIDs: a table by port GUID, stored in a text file with a line for
 * each port ("0x<guid> <lid> <lmc>", # begins a comment), so that ports keep their
 * LIDs when the manager is restarted.
 */
#ifndef SOFTIB_SM_LID_H
#define SOFTIB_SM_LID_H

#include "sm/map.h"

struct sm_lid {
	uint64_t guid;
	uint16_t lid;
	uint8_t lmc;
};

struct sm_lids {
	struct sm_map by_guid; /* of struct sm_lid */
	bool changed;	       /* since the last load or save */
};

/** sm_lids_get() - Return: the entry of @guid, or NULL */
const struct sm_lid *sm_lids_get(const struct sm_lids *l, uint64_t guid);
/** sm_lids_put() - add or replace the entry of @guid. Return: 0; -ENOMEM */
int sm_lids_put(struct sm_lids *l, uint64_t guid, uint16_t lid, uint8_t lmc);
void sm_lids_free(struct sm_lids *l);

/**
 * sm_lids_load() - read a file into @l
 * @line: on -EINVAL the number of the invalid line. Then no entry of the file is
 *        used, because with a part of them the LIDs of the others would be reassigned
 * Return: 0, also when there is no file; -EINVAL; -errno of reading; -ENOMEM
 */
int sm_lids_load(struct sm_lids *l, const char *path, unsigned int *line);
/** sm_lids_save() - replace the file atomically. Return: 0; -errno */
int sm_lids_save(struct sm_lids *l, const char *path);

#endif
