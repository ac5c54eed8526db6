/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which port had which LIDs: a table by port GUID that outlives the manager in
 * a text file, a line per port ("0x<guid> <lid> <lmc>", # begins a comment),
 * so that a restart renumbers nothing.
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

/** sm_lids_get() - Return: what is remembered of @guid, or NULL */
const struct sm_lid *sm_lids_get(const struct sm_lids *l, uint64_t guid);
/** sm_lids_put() - remember. Return: 0; -ENOMEM */
int sm_lids_put(struct sm_lids *l, uint64_t guid, uint16_t lid, uint8_t lmc);
void sm_lids_free(struct sm_lids *l);

/**
 * sm_lids_load() - read a file into @l
 * @line: on -EINVAL the number of the line that is wrong; nothing of the file
 *        is kept then: half a cache would renumber the other half
 * Return: 0, also when there is no file; -EINVAL; -errno of reading; -ENOMEM
 */
int sm_lids_load(struct sm_lids *l, const char *path, unsigned int *line);
/** sm_lids_save() - replace the file at once, whole. Return: 0; -errno */
int sm_lids_save(struct sm_lids *l, const char *path);

#endif
