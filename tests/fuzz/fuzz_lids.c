/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any text as the subnet manager's file of LIDs: what loads is saved and
 * loads to the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sm/lid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void same(const struct sm_lids *a, const struct sm_lids *b)
{
	for (uint32_t i = 0; i < a->by_guid.size; i++) {
		const struct sm_lid *e = a->by_guid.slots[i].value, *f;

		if (!e)
			continue;
		f = sm_lids_get(b, e->guid);
		check(f && f->lid == e->lid && f->lmc == e->lmc && e->lmc <= 7);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sm_lids lids = {0}, again = {0};
	char name[64], saved[64];
	unsigned int line;
	int fd = memfd_create("lids", MFD_CLOEXEC), ret;

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	snprintf(saved, sizeof(saved), "/tmp/softib-fuzz-lids.%d", (int)getpid());
	ret = sm_lids_load(&lids, name, &line);
	check(ret == 0 || (ret == -EINVAL && line));
	if (!ret) {
		check(!sm_lids_save(&lids, saved));
		check(!sm_lids_load(&again, saved, &line));
		same(&lids, &again);
		same(&again, &lids);
		unlink(saved);
	}
	sm_lids_free(&lids);
	sm_lids_free(&again);
	close(fd);
	return 0;
}
