/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does a process that this one started, or one of its own children, listen on
 * a TCP port, or on an SDP port (libsdp(7))? The kernel's tables, one for each
 * network namespace, name the listening sockets by their inodes, and
 * /proc/PID/fd names the sockets of a process: proc(5). An SDP socket has a
 * name in the table of Unix sockets once it is bound; whether it listens, a
 * copy of its descriptor says.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/sdp.h"
#include "base/types.h"
#include "children.h"

#define SOCKETS_MAX   256 /* listening ones, or bound ones of SDP, of a network that are looked at */
#define PROCESSES_MAX 256 /* of one server */
#define TCP_LISTEN    0x0a

struct sockets {
	unsigned long inode[SOCKETS_MAX];
	size_t count;
};

/** struct network - what there is in a network namespace, whose inode is @of */
struct network {
	ino_t of;
	struct sockets tcp; /* that listen */
	struct sockets sdp; /* that are bound */
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

/* "ffff9e4c: 00000002 00000000 00010000 0005 01 4711 @softib-sdp:b..." */
static void read_unix_table(const char *path, struct sockets *bound)
{
	static const char prefix[] = "@" ABI_SDP_NAME;
	FILE *table = fopen(path, "re");
	char line[512], name[sizeof(line)];
	unsigned long inode;

	while (table && fgets(line, sizeof(line), table) && bound->count < SOCKETS_MAX)
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %511s", &inode, name) == 2 &&
		    !strncmp(name, prefix, sizeof(prefix) - 1) &&
		    name[sizeof(prefix) - 1] == ABI_SDP_KIND_BOUND)
			bound->inode[bound->count++] = inode;
	if (table)
		fclose(table);
}

static bool is_among(const struct sockets *sockets, unsigned long inode)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->inode[i] == inode)
			return true;
	return false;
}

/* @network: of the process; read anew when it is another than the last one's */
static void read_network(pid_t pid, struct network *network)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &st) || st.st_ino == network->of)
		return;
	*network = (struct network){.of = st.st_ino};
	snprintf(path, sizeof(path), "/proc/%d/net/tcp", pid);
	read_table(path, &network->tcp);
	snprintf(path, sizeof(path), "/proc/%d/net/tcp6", pid);
	read_table(path, &network->tcp);
	snprintf(path, sizeof(path), "/proc/%d/net/unix", pid);
	read_unix_table(path, &network->sdp);
}

/* Does the process's SDP socket @fd listen? If the kernel gives no copy of it, one that is bound
 * is taken for one that does. */
static bool sdp_listens(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), copy = -1, priority = 0;
	socklen_t len = sizeof(priority);

	if (process >= 0) {
		copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
		close(process);
	}
	if (copy < 0)
		return true;
	getsockopt(copy, SOL_SOCKET, SO_PRIORITY, &priority, &len);
	close(copy);
	return priority == ABI_SDP_LISTENING_PRIO;
}

static bool holds_one(pid_t pid, const struct network *network)
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
		if (sscanf(target, "socket:[%lu]", &inode) == 1)
			found = is_among(&network->tcp, inode) ||
				(is_among(&network->sdp, inode) &&
				 sdp_listens(pid, atoi(entry->d_name)));
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
	struct network network = {.of = 0};
	pid_t all[PROCESSES_MAX];
	size_t count = 0;

	add_children(getpid(), all, &count);
	for (size_t i = 0; i < count; i++) {
		read_network(all[i], &network);
		if (holds_one(all[i], &network))
			return true;
		add_children(all[i], all, &count);
	}
	return false;
}
