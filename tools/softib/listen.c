/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does a process that this one started, or one of its own children, listen on
 * a TCP port? The kernel's tables, one for each network namespace, name the
 * listening sockets by their inodes, and /proc/PID/fd names the sockets of a
 * process: proc(5).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"
#include "children.h"

#define SOCKETS_MAX   256 /* listening ones of a network that are looked at */
#define PROCESSES_MAX 256 /* of one server */
#define TCP_LISTEN    0x0a

struct sockets {
	unsigned long inode[SOCKETS_MAX];
	size_t count;
};

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711
 * ..." */
static void read_table(const char *path, struct sockets *listening)
{
	FILE *table = fopen(path, "re");
	char line[512];
	unsigned state;
	unsigned long inode;

	while (table && fgets(line, sizeof(line), table) &&
	       listening->count < SOCKETS_MAX)
		if (sscanf(line, " %*d: %*[^ ] %*[^ ] %x %*s %*s %*s %*s %*s %lu", &state,
			   &inode) == 2 &&
		    state == TCP_LISTEN)
			listening->inode[listening->count++] = inode;
	if (table)
		fclose(table);
}

static bool is_listening(const struct sockets *listening, unsigned long inode)
{
	for (size_t i = 0; i < listening->count; i++)
		if (listening->inode[i] == inode)
			return true;
	return false;
}

/* @listening: of the process's network; read anew when it is another than @*of */
static void read_network(pid_t pid, struct sockets *listening, ino_t *of)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &st) || st.st_ino == *of)
		return;
	*of = st.st_ino;
	listening->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/net/tcp", pid);
	read_table(path, listening);
	snprintf(path, sizeof(path), "/proc/%d/net/tcp6", pid);
	read_table(path, listening);
}

static bool holds_one(pid_t pid, const struct sockets *listening)
{
	char path[64], target[64];
	struct dirent *entry;
	unsigned long inode;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		found = sscanf(target, "socket:[%lu]", &inode) == 1 &&
			is_listening(listening, inode);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* a thread's children are in its own list: proc(5), children */
static void add_children(pid_t pid, pid_t *all, size_t *count)
{
	char path[sizeof("/proc//task") + 16], list_path[sizeof(path) + 300];
	struct dirent *task;
	FILE *list;
	DIR *dir;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (task = readdir(dir))) {
		snprintf(list_path, sizeof(list_path), "%s/%s/children", path,
			 task->d_name);
		list = task->d_name[0] == '.' ? NULL : fopen(list_path, "re");
		while (list && *count < PROCESSES_MAX && fscanf(list, "%d", &child) == 1)
			all[(*count)++] = child;
		if (list)
			fclose(list);
	}
	if (dir)
		closedir(dir);
}

bool children_listen(void)
{
	struct sockets listening = {.count = 0};
	pid_t all[PROCESSES_MAX];
	size_t count = 0;
	ino_t network = 0;

	add_children(getpid(), all, &count);
	for (size_t i = 0; i < count; i++) {
		read_network(all[i], &listening, &network);
		if (holds_one(all[i], &listening))
			return true;
		add_children(all[i], all, &count);
	}
	return false;
}
