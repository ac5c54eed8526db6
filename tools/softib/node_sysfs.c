/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A node's own /sys/class/infiniband, infiniband_mad, infiniband_verbs and infiniband_cm,
 * for scripts such as ibstatus that read files instead of calling a library.
 * /sys/class becomes a tmpfs with everything else of the real one bound into it,
 * and the node's files (sysfs.h) in the place of these four. That takes a mount
 * namespace: the node's (node_namespaces.c), or with --net=host one of the process's
 * own, without root inside a user namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"
#include "sysfs.h"

#define CLASS "/sys/class"

bool node_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* user_namespaces(7): without privilege one may map oneself, to oneself */
int node_enter_user_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	node_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!node_write("/proc/self/uid_map", map))
		return -EPERM;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return node_write("/proc/self/gid_map", map) ? 0 : -EPERM;
}

int node_keep_mounts(const char *below)
{
	if (!mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return 0;
	/* in most chroots "/" is no mount point, but /sys and /dev are */
	if (errno != EINVAL || mount(NULL, below, NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	return 0;
}

static int mount_class(void)
{
	int error = node_keep_mounts("/sys");

	if (error)
		return error;
	if (mount("softib", CLASS, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=755,size=4m"))
		return -errno;
	return 0;
}

/* A user namespace cannot be left again: a child tries first whether it gets
 * this program anywhere */
static bool user_namespace_helps(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(node_enter_user_namespace() || mount_class());
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int enter_namespaces(void)
{
	if (!unshare(CLONE_NEWNS))
		return 0;
	return user_namespace_helps() ? node_enter_user_namespace() : -EPERM;
}

static bool is_ours(const char *name)
{
	return !strncmp(name, "infiniband", strlen("infiniband"));
}

/* every other class stays what it is: bound from below the new tmpfs */
static void bind_others(int below)
{
	char from[64 + NAME_MAX], to[64 + NAME_MAX];
	DIR *dir = fdopendir(dup(below));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || is_ours(entry->d_name))
			continue;
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, entry->d_name);
		snprintf(to, sizeof(to), CLASS "/%s", entry->d_name);
		if (!mkdir(to, 0755))
			mount(from, to, NULL, MS_BIND | MS_REC, NULL);
	}
	if (dir)
		closedir(dir);
	/* srp_daemon looks there for logins that exist already, and gives up without it */
	mkdir(CLASS "/scsi_host", 0755);
}

/* the files of @below, a folder of ours, in the place of the kernel's */
static int bind_ours(int below)
{
	static const char *const classes[] = {"infiniband", "infiniband_mad", "infiniband_verbs", "infiniband_cm"};
	char from[64 + NAME_MAX], to[64 + NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, classes[i]);
		snprintf(to, sizeof(to), CLASS "/%s", classes[i]);
		if (mkdir(to, 0755) || mount(from, to, NULL, MS_BIND, NULL))
			return -errno;
	}
	return 0;
}

int node_lay_class(const char *files)
{
	int below = open(CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir, error;

	if (below < 0)
		return -errno;
	dir = open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = dir < 0 ? -errno : mount_class();
	if (!error) {
		bind_others(below);
		error = bind_ours(dir);
		if (error)
			umount2(CLASS, MNT_DETACH);
	}
	if (dir >= 0)
		close(dir);
	close(below);
	return error;
}

int node_sysfs(const char *files)
{
	int error = enter_namespaces();

	return error ? error : node_lay_class(files);
}
