/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The namespaces of a node: network, UTS (host name) and mount.
 *
 * The first program of a node has them made, by a child of `softib exec` that hands
 * them to softibd as descriptors (abi/namespaces.h) and ends. Every program of the
 * node enters them by setns(2). So they cost no process, and end with softibd and the
 * programs in them, however those end.
 *
 * An ordinary user's belong to a user namespace, one for all nodes of the fabric, in
 * which he is himself. execve(2) drops the capabilities that entering it gives, so
 * those that a node's administrator needs are made ambient: a program may then set
 * up the node's network, and start programs on other nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"
#include "node_namespaces.h"
#include "sysfs.h"

#define LOCK "namespaces.lock"

const char *node_namespace_advice(int error)
{
	if (error == -ENOSPC) /* namespaces(7) */
		return "The kernel says so when a limit on namespaces is reached: end other "
		       "fabrics, or raise user.max_user_namespaces, "
		       "user.max_net_namespaces, user.max_uts_namespaces and "
		       "user.max_mnt_namespaces (sysctl)";
	return "That takes namespaces: kernel.unprivileged_userns_clone=1 (Debian), "
	       "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), in a container "
	       "--security-opt seccomp=unconfined";
}

/* May the kernel let this program enter the user namespace @fd? Only its own and those that
 * were made in it, directly or not: those alone have a parent that it sees (ioctl_ns(2)). */
static bool is_within(int fd)
{
	int parent = ioctl(fd, NS_GET_PARENT);

	if (parent >= 0)
		close(parent);
	return parent >= 0 || node_in_namespace(fd, "user");
}

/* @user: the namespace that was to be entered for it; -1: none */
static int say_cannot(const char *node, const char *what, int user, int error)
{
	const char *advice = node_namespace_advice(error);

	if (error == -EPERM && user >= 0 && !is_within(user))
		advice = "The fabric was brought up outside of this program's user namespace "
			 "(unshare, a container): run softib where 'softib up' was run, or "
			 "bring up a fabric here";
	complain("cannot %s of node %s: %s. %s. --net=host does without, on the machine's "
		 "network",
		 what, node, strerror(-error), advice);
	return -1;
}

static void close_fds(int *fd, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

/* --- making ---------------------------------------------------------------- */

/* @user: the one that the fabric's nodes have; -1: they have none yet
 * Return: 0; -errno */
static int enter_new(int user)
{
	const int all = CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS;
	int error;

	if (user >= 0 && !node_in_namespace(user, "user") && setns(user, CLONE_NEWUSER))
		return -errno;
	if (!unshare(all))
		return 0;
	if (errno != EPERM || user >= 0)
		return -errno;
	error = node_enter_user_namespace();
	if (!error && unshare(CLONE_NEWNET | CLONE_NEWUTS))
		error = -errno;
	return error;
}

/* Return: 0; -errno and some are open */
static int open_own(int fd[ABI_NODE_FDS])
{
	static const char *const paths[ABI_NODE_FDS] = {
		[ABI_NODE_NET] = "/proc/self/ns/net",
		[ABI_NODE_UTS] = "/proc/self/ns/uts",
		[ABI_NODE_MNT] = "/proc/self/ns/mnt",
		[ABI_NODE_ROOT] = "/",
		[ABI_NODE_USER] = "/proc/self/ns/user"};

	for (size_t i = 0; i < ABI_NODE_FDS; i++) {
		fd[i] = open(paths[i],
			     O_CLOEXEC | (i == ABI_NODE_ROOT ? O_PATH | O_DIRECTORY
							     : O_RDONLY));
		if (fd[i] < 0)
			return -errno;
	}
	return 0;
}

/* Return: 0; -1 (printed) */
static int hand_over(const struct node_place *at)
{
	int fd[ABI_NODE_FDS] = {-1, -1, -1, -1, -1}, error = open_own(fd);
	const struct client_fds fds = {.send = fd, .num_send = ABI_NODE_FDS};
	struct json_object *req = request("hold_namespaces"), *answer;

	request_text(req, "node", at->node);
	if (error) {
		json_object_put(req);
		return say_cannot(at->node, "keep the namespaces", -1, error);
	}
	answer = client_call_fds(at->dir, req, &fds);
	json_object_put(answer);
	return answer ? 0 : -1;
}

/* in a child, which ends: what it enters it cannot leave. Return: 0; -1 (printed) */
static int make_here(const struct node_place *at, const char *files, int user)
{
	int error = enter_new(user);

	if (error)
		return say_cannot(at->node, "make the network", user, error);
	error = node_set_up(at, files);
	return error ? say_cannot(at->node, "set up the namespaces", -1, error)
		     : hand_over(at);
}

static int make(const struct node_place *at, const char *files, int user)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(make_here(at, files, user) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (pid < 0)
		return say_cannot(at->node, "make the network", -1, -errno);
	return waitpid(pid, &status, 0) == pid && !status ? 0 : -1;
}

/* --- asking ---------------------------------------------------------------- */

/* @fd: set to all of them, or to those that new ones belong to, or -1
 * Return: 1 the node has them; 0; -1 (printed) */
static int ask(const struct node_place *at, int fd[ABI_NODE_FDS])
{
	/* a root directory and a mount namespace decide which file "/bin/sh" is */
	const struct client_fds fds = {.own_user = true, .passed = fd, .max_passed = ABI_NODE_FDS};
	struct json_object *req = request("namespaces"), *answer;
	bool held;

	request_text(req, "node", at->node);
	answer = client_call_fds(at->dir, req, &fds);
	if (!answer)
		return -1;
	held = json_object_get_boolean(member_of(answer, "held"));
	json_object_put(answer);
	if (!held) { /* it came alone */
		fd[ABI_NODE_USER] = fd[0];
		fd[0] = -1;
	}
	return held;
}

static int take_lock(const char *dir)
{
	char path[PATH_MAX + sizeof(LOCK)];
	int fd;

	snprintf(path, sizeof(path), "%s/" LOCK, dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && !flock(fd, LOCK_EX))
		return fd;
	complain("cannot lock %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Return: 0 and all are the caller's; -1 (printed) */
static int get(const struct node_place *at, const char *files, int fd[ABI_NODE_FDS])
{
	int held = ask(at, fd), lock;

	if (held)
		return held < 0 ? -1 : 0;
	close_fds(fd, ABI_NODE_FDS);
	lock = take_lock(at->dir);
	if (lock < 0)
		return -1;
	held = ask(at, fd); /* another may have made them meanwhile */
	if (!held) {
		held = make(at, files, fd[ABI_NODE_USER]);
		close_fds(fd, ABI_NODE_FDS);
		held = held ? -1 : ask(at, fd);
	}
	close(lock);
	return held == 1 ? 0 : -1;
}

/* --- entering -------------------------------------------------------------- */

bool node_in_namespace(int fd, const char *kind)
{
	char path[64];
	struct stat own, other;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return !stat(path, &own) && !fstat(fd, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

/* setns(2) into a mount namespace leads to its root; the working directory of the
 * same path is that of the node, unless something else is there. */
static void return_to(const char *path, int before)
{
	struct stat was, now;

	if (path && !chdir(path) && !fstat(before, &was) && !stat(".", &now) &&
	    was.st_dev == now.st_dev && was.st_ino == now.st_ino)
		return;
	(void)!fchdir(before);
}

/* What a node's administrator may, by capabilities of its user namespace. */
static int keep_capabilities(void)
{
	static const int kept[] = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE,
				   CAP_SYS_ADMIN, CAP_SYS_CHROOT};
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		data[CAP_TO_INDEX(kept[i])].inheritable |= CAP_TO_MASK(kept[i]);
	if (syscall(SYS_capset, &head, data))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0))
			return -errno;
	return 0;
}

static int enter_all(const int fd[ABI_NODE_FDS])
{
	static const int types[] = {[ABI_NODE_NET] = CLONE_NEWNET,
				    [ABI_NODE_UTS] = CLONE_NEWUTS,
				    [ABI_NODE_MNT] = CLONE_NEWNS};
	bool as_user = !node_in_namespace(fd[ABI_NODE_USER], "user");

	if (as_user && setns(fd[ABI_NODE_USER], CLONE_NEWUSER))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (setns(fd[i], types[i]))
			return -errno;
	if (fchdir(fd[ABI_NODE_ROOT]) || chroot("."))
		return -errno;
	return as_user && geteuid() ? keep_capabilities() : 0;
}

int node_join(const struct node_place *at, const char *files)
{
	int fd[ABI_NODE_FDS], error, before;
	char *path;

	if (get(at, files, fd))
		return -1;
	path = getcwd(NULL, 0);
	before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = enter_all(fd);
	return_to(path, before);
	free(path);
	close(before);
	if (error)
		say_cannot(at->node, "enter the namespaces", fd[ABI_NODE_USER], error);
	close_fds(fd, ABI_NODE_FDS);
	return error ? -1 : 0;
}

int node_boot_all(const char *dir)
{
	struct node_place at = {.net = NET_NODE}, *all;
	int error = 0, fd[ABI_NODE_FDS];
	char files[PATH_MAX];
	size_t count;

	snprintf(at.dir, sizeof(at.dir), "%s", dir);
	all = node_all(&at, &count);
	for (size_t i = 0; all && i < count && !error; i++) {
		error = sysfs_make_folders(&all[i], files);
		error = error ? say_cannot(all[i].node, "make the files", -1, error) :
				get(&all[i], files, fd);
		if (!error)
			close_fds(fd, ABI_NODE_FDS);
	}
	free(all);
	return all ? error : -1;
}

int node_try_network(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(-enter_new(-1)); /* an errno, which fits */
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}
