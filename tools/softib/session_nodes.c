/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The end of nodes with a network of their own. A host that goes down takes its
 * programs with it: those in the node's network are asked to end, and killed when they
 * do not, which also ends the network.
 */
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_private.h"

#define LOOK_MS 10 /* between two looks at who is left */
#define ANSWER_MS 1000

/** struct networks - of all nodes, by the inodes of their namespaces */
struct networks {
	ino_t *inode;
	size_t count;
};

/* One that does not answer is ended by force: nobody waits for it here.
 * Return: the answer to "nodes"; NULL */
static struct json_object *ask_nodes(const char *dir)
{
	struct json_object *req = request("nodes"), *answer = NULL;
	struct pollfd fd = {.fd = client_open(dir), .events = POLLIN};

	if (fd.fd >= 0 && !client_send(fd.fd, req) && poll(&fd, 1, ANSWER_MS) > 0)
		answer = client_receive(fd.fd);
	json_object_put(req);
	if (fd.fd >= 0)
		close(fd.fd);
	return answer;
}

static struct networks read_networks(const char *dir)
{
	struct json_object *answer = ask_nodes(dir);
	struct json_object *nodes = member_of(answer, "nodes");
	struct networks all = {calloc(count_of(nodes) + 1, sizeof(*all.inode)), 0};

	for (size_t i = 0; all.inode && i < count_of(nodes); i++) {
		int64_t inode = number_of(item_of(nodes, i), "network_namespace");

		if (inode)
			all.inode[all.count++] = (ino_t)inode;
	}
	json_object_put(answer);
	return all;
}

static bool is_in(pid_t pid, const struct networks *all)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &st))
		return false;
	for (size_t i = 0; i < all->count; i++)
		if (all->inode[i] == st.st_ino)
			return true;
	return false;
}

/* Signal the programs in one of them, by SIGHUP as well when @hang_up: an interactive
 * shell ignores SIGTERM. Return: is there any? */
static bool signal_programs(const struct networks *all, int number, bool hang_up)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool any = false;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid <= 0 || !is_in(pid, all))
			continue;
		any = true;
		kill(pid, number);
		if (hang_up)
			kill(pid, SIGHUP);
	}
	if (proc)
		closedir(proc);
	return any;
}

void session_end_programs(const char *dir)
{
	struct networks all = read_networks(dir);
	uint64_t deadline_ms = now_ms() + END_TIMEOUT_MS;
	bool any = all.count && signal_programs(&all, SIGTERM, true);

	while (any && now_ms() < deadline_ms) {
		poll(NULL, 0, LOOK_MS);
		any = signal_programs(&all, 0, false);
	}
	if (any)
		signal_programs(&all, SIGKILL, false);
	free(all.inode);
}
