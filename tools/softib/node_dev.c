/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device files of a node's adapters, for programs that look whether
 * /dev/infiniband/uverbs0 is there before they ask libibverbs: UCX, and what
 * stands on it. The drop-in library opens none of them; each is a character
 * device that anybody may open, /dev/null.
 *
 * Where the machine has no /dev/infiniband to lay them over, the process gets a
 * /dev of its own, with everything of the real one bound into it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/session.h"
#include "softib.h"

#define DEV	    "/dev"
#define DEVICES	    DEV "/infiniband"
#define DEVICES_MAX 16

static int mount_tmpfs(const char *at)
{
	return mount("softib", at, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=1m") ?
		       -errno :
		       0;
}

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* @name of the directory @below also at @to; what cannot be had is left out */
static void bind_entry(int below, const char *name, const char *to)
{
	char from[64 + NAME_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(below, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, name);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(below, name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (n <= 0 || symlink(target, to))
			return;
	} else if (!(S_ISDIR(st.st_mode) ? mkdir(to, 0755) : make_file(to))) {
		mount(from, to, NULL, MS_BIND | MS_REC, NULL);
	}
}

static void bind_all(int below)
{
	DIR *dir = fdopendir(dup(below));
	struct dirent *entry;
	char to[64 + NAME_MAX];

	while (dir && (entry = readdir(dir))) {
		snprintf(to, sizeof(to), DEV "/%s", entry->d_name);
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			bind_entry(below, entry->d_name, to);
	}
	if (dir)
		closedir(dir);
}

/* an empty directory that is the process's own */
static int make_directory(int below)
{
	int error = node_keep_mounts(DEV);

	if (error)
		return error;
	if (!access(DEVICES, F_OK))
		return mount_tmpfs(DEVICES);
	error = mount_tmpfs(DEV);
	if (error)
		return error;
	bind_all(below);
	return mkdir(DEVICES, 0755) ? -errno : 0;
}

/* a file that is there, and that libraries of ours do not open */
static int bind_null(int below, const char *kind, unsigned number)
{
	char path[64];

	snprintf(path, sizeof(path), DEVICES "/%s%u", kind, number);
	bind_entry(below, "null", path);
	return access(path, R_OK | W_OK) ? -errno : 0;
}

static int bind_issm(const struct node_place *at, const struct abi_device_info *info)
{
	char from[PATH_MAX], to[64];
	int error = 0;

	for (unsigned int p = 0; p < info->num_ports && !error; p++) {
		snprintf(to, sizeof(to), DEVICES "/issm%u", info->umad_base + p);
		error = node_issm(at, info->name, p + 1, from);
		if (!error)
			error = make_file(to);
		if (!error && mount(from, to, NULL, MS_BIND, NULL))
			error = -errno;
	}
	return error;
}

int node_dev(const struct node_place *at)
{
	struct abi_device_info info[DEVICES_MAX];
	int count = node_devices(at, info, DEVICES_MAX), error;
	int below = open(DEV, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (below < 0)
		return -errno;
	error = make_directory(below);
	for (int i = 0; i < count && !error; i++) {
		error = bind_null(below, "uverbs", info[i].index);
		error = error ?: bind_null(below, "ucm", info[i].index);
		error = error ?: bind_issm(at, &info[i]);
	}
	close(below);
	return error;
}
