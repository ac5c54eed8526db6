/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of LIDs by GUID, and its file. */
#include "sm/lid.h"
#include "wire/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LID_UCAST_MAX 0xbfff

const struct sm_lid *sm_lids_get(const struct sm_lids *l, uint64_t guid)
{
	return sm_map_get(&l->by_guid, guid);
}

int sm_lids_put(struct sm_lids *l, uint64_t guid, uint16_t lid, uint8_t lmc)
{
	struct sm_lid *e = sm_map_get(&l->by_guid, guid);

	if (e && e->lid == lid && e->lmc == lmc)
		return 0;
	if (!e) {
		e = rt_zalloc(sizeof(*e));
		if (!e || sm_map_put(&l->by_guid, guid, e)) {
			rt_free(e);
			return -ENOMEM;
		}
	}
	*e = (struct sm_lid){guid, lid, lmc};
	l->changed = true;
	return 0;
}

void sm_lids_free(struct sm_lids *l)
{
	for (uint32_t i = 0; i < l->by_guid.size; i++)
		rt_free(l->by_guid.slots[i].value);
	sm_map_free(&l->by_guid);
	l->changed = false;
}

/* One line of the file. Return: 1 an entry; 0 nothing on it; -EINVAL */
static int parse_line(char *s, struct sm_lid *e)
{
	uint64_t guid;
	unsigned int lid, lmc;
	int end = 0;

	s[strcspn(s, "#\n")] = 0;
	if (!s[strspn(s, " \t")])
		return 0;
	if (sscanf(s, " 0x%" SCNx64 " %u %u %n", &guid, &lid, &lmc, &end) != 3 || s[end])
		return -EINVAL;
	if (!guid || !lid || lmc > WIRE_LMC_MAX || wire_path_bits((uint16_t)lid, lmc) ||
	    lid + (1u << lmc) - 1 > LID_UCAST_MAX)
		return -EINVAL;
	*e = (struct sm_lid){guid, lid, lmc};
	return 1;
}

int sm_lids_load(struct sm_lids *l, const char *path, unsigned int *line)
{
	FILE *f = fopen(path, "re");
	struct sm_lid e;
	char *s = NULL;
	size_t room = 0;
	int err = 0;

	*line = 0;
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (!err && getline(&s, &room, f) >= 0) {
		++*line;
		err = parse_line(s, &e);
		if (err == 1)
			err = sm_lids_put(l, e.guid, e.lid, e.lmc);
	}
	if (!err && ferror(f))
		err = -EIO;
	free(s);
	fclose(f);
	if (err)
		sm_lids_free(l);
	l->changed = false;
	return err;
}

int sm_lids_save(struct sm_lids *l, const char *path)
{
	char tmp[4096];
	FILE *f;
	int err = 0;

	if (snprintf(tmp, sizeof(tmp), "%s.%d", path, (int)getpid()) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	fprintf(f, "# softib-sm: port GUID, LID, LMC\n");
	for (uint32_t i = 0; i < l->by_guid.size; i++) {
		const struct sm_lid *e = l->by_guid.slots[i].value;

		if (e)
			fprintf(f, "0x%016" PRIx64 " %u %u\n", e->guid, e->lid, e->lmc);
	}
	if (fflush(f) || ferror(f) || fsync(fileno(f)))
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
	if (err)
		unlink(tmp);
	else
		l->changed = false;
	return err;
}
