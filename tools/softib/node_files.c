/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A node's files in a container that allows no mount namespace: the program gets libnodefiles.so
 * preloaded, which looks for /dev/infiniband and /sys/class/infiniband* in the folder of the node's
 * files (sysfs.h). The device files are links to what node_dev.c would mount there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/session.h"
#include "softib.h"
#include "sysfs.h"

#define DEVICES_MAX 16

static int link_to(const char *folder, const char *kind, unsigned number, const char *target)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/dev/%s%u", folder, kind, number) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return symlink(target, path) && errno != EEXIST ? -errno : 0;
}

static int link_device(const struct node_place *at, const struct abi_device_info *info,
		       const char *folder)
{
	int error = link_to(folder, "uverbs", info->index, "/dev/null");
	char issm[PATH_MAX];

	error = error ?: link_to(folder, "ucm", info->index, "/dev/null");
	for (unsigned int p = 0; p < info->num_ports && !error; p++) {
		error = node_issm(at, info->name, p + 1, issm);
		if (!error)
			error = link_to(folder, "issm", info->umad_base + p, issm);
	}
	return error;
}

int node_files(const struct node_place *at, const char *folder)
{
	struct abi_device_info info[DEVICES_MAX];
	int count = node_devices(at, info, DEVICES_MAX), error = 0;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/dev", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	for (int i = 0; i < count && !error; i++)
		error = link_device(at, &info[i], folder);
	if (!error && setenv(ABI_ENV_FILES, folder, 1))
		error = -errno;
	return error;
}
