/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations namespaces and hold_namespaces: softibd holds descriptors of the
 * namespaces that `softib exec` created for a node (abi/namespaces.h). There is no
 * process and no mount for a node, so nothing has to be cleaned up when softibd dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/namespaces.h"
#include "daemon/control_private.h"
#include "runtime/posix/closer.h"

_Static_assert(ABI_NODE_FDS <= CONTROL_FDS, "they go with one message");

#define OF_NODE ABI_NODE_USER /* the number of descriptors that belong to a node */

struct held_node {
	struct list_head node;
	int index; /* in the topology */
	int fd[OF_NODE];
};

struct control_namespaces {
	struct list_head held;
	int user; /* the user namespace; -1: no node has namespaces yet */
};

struct control_namespaces *control_namespaces_create(void)
{
	struct control_namespaces *ns = rt_zalloc(sizeof(*ns));

	if (!ns)
		return NULL;
	INIT_LIST_HEAD(&ns->held);
	ns->user = -1;
	return ns;
}

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		rt_close_foreign(fd[i]);
}

void control_namespaces_destroy(struct control_namespaces *ns)
{
	struct held_node *held, *tmp;

	list_for_each_entry_safe(held, tmp, &ns->held, node) {
		close_all(held->fd, OF_NODE);
		rt_free(held);
	}
	close_all(&ns->user, 1);
	rt_free(ns);
}

static struct held_node *find(const struct control_namespaces *ns, int index)
{
	struct held_node *held;

	list_for_each_entry(held, &ns->held, node)
		if (held->index == index)
			return held;
	return NULL;
}

uint64_t control_namespaces_network(const struct control_namespaces *ns, int index)
{
	const struct held_node *held = find(ns, index);
	struct stat st;

	return held && !fstat(held->fd[ABI_NODE_NET], &st) ? st.st_ino : 0;
}

/* Return: index of the first adapter of the requested node; -1 after answering with an error */
static int adapter_of(struct control_request *req)
{
	int index = control_node(req);

	if (index >= 0 && control_topology(req)->node[index].kind == TOPO_CA)
		return control_topology(req)->node[index].host;
	if (index != -2)
		control_fail(req, "\"node\" has to name a node with an adapter: only "
			  "those have namespaces");
	return -1;
}

/* --- namespaces ------------------------------------------------------------ */

/* Return: 0; -EMFILE, and no descriptor was duplicated */
static int copy_all(int *to, const int *from, int n)
{
	for (int i = 0; i < n; i++) {
		to[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 0);
		if (to[i] < 0) {
			close_all(to, i);
			return -EMFILE;
		}
	}
	return 0;
}

/* Duplicate the descriptors of a node that has namespaces, in the order of the message;
 * otherwise only that of the user namespace in which new ones have to be created, if
 * there is one. Return: the number of descriptors; -EMFILE */
static int copy_held(const struct control_namespaces *ns, const struct held_node *held,
		     int *fd)
{
	int n = held ? OF_NODE : 0, error = held ? copy_all(fd, held->fd, n) : 0;

	if (error || ns->user < 0)
		return error;
	error = copy_all(fd + n, &ns->user, 1);
	if (error)
		close_all(fd, n);
	return error ? error : n + 1;
}

bool control_op_namespaces(struct control_request *req)
{
	struct control_namespaces *ns = control_namespaces(req->control);
	int index = adapter_of(req), fd[ABI_NODE_FDS], n;
	struct held_node *held;

	if (index < 0)
		return true;
	held = find(ns, index);
	n = copy_held(ns, held, fd);
	if (n < 0) {
		control_fail(req, "softibd has no free descriptor: end some programs, or "
			  "start it with a higher limit (ulimit -n)");
		return true;
	}
	control_put_bool(req->out, "held", held);
	control_client_pass(req->client, fd, n);
	return true;
}

/* --- hold_namespaces ------------------------------------------------------- */

/* A client may pass any descriptor, for example that of a file on its own FUSE server. So
 * these checks use no system call that such a server would have to answer. */

static bool is_folder(int fd)
{
	struct statx st;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       S_ISDIR(st.stx_mode);
}

/* The name of a namespace is like "net:[4026531840]". The name of a file begins with a slash;
 * pipes and sockets also have names with brackets, but do not support the ioctl. */
static bool is_namespace(int fd, int type)
{
	char path[32], name[8];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) > 0 && name[0] != '/' &&
	       ioctl(fd, NS_GET_NSTYPE) == type;
}

static bool are_namespaces(const int *fd)
{
	static const int types[ABI_NODE_FDS] = {[ABI_NODE_NET] = CLONE_NEWNET,
						[ABI_NODE_UTS] = CLONE_NEWUTS,
						[ABI_NODE_MNT] = CLONE_NEWNS,
						[ABI_NODE_USER] = CLONE_NEWUSER};

	for (int i = 0; i < ABI_NODE_FDS; i++)
		if (fd[i] < 0 ||
		    !(types[i] ? is_namespace(fd[i], types[i]) : is_folder(fd[i])))
			return false;
	return true;
}

static bool is_same(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static void keep(struct control_namespaces *ns, struct held_node *held, int *fd)
{
	memcpy(held->fd, fd, sizeof(held->fd));
	memset(fd, -1, sizeof(held->fd));
	list_add_tail(&held->node, &ns->held);
	if (ns->user >= 0)
		return;
	ns->user = fd[ABI_NODE_USER];
	fd[ABI_NODE_USER] = -1;
}

bool control_op_hold_namespaces(struct control_request *req)
{
	struct control_namespaces *ns = control_namespaces(req->control);
	int index = adapter_of(req);
	struct held_node *held;

	if (index < 0)
		return true;
	if (!are_namespaces(req->fd)) {
		control_fail(req,
			     "\"hold_namespaces\" needs five descriptors: network, UTS "
			     "and mount namespace, root directory, user namespace");
	} else if (find(ns, index)) {
		control_fail(req, "%s has namespaces already: \"namespaces\" returns them",
			     control_topology(req)->node[index].name);
	} else if (ns->user >= 0 && !is_same(ns->user, req->fd[ABI_NODE_USER])) {
		control_fail(req,
			     "all nodes of a fabric share one user namespace, which "
			          "\"namespaces\" returns; this is another one");
	} else if (!(held = rt_zalloc(sizeof(*held)))) {
		control_fail(req, "out of memory");
	} else {
		held->index = index;
		keep(ns, held, req->fd);
	}
	return true;
}
