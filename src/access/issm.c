/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IsSM: while a subnet manager holds the issm file of a port open, the port has the capability
 * IsSM. The files are regular files in the runtime directory, and inotify reports when one is
 * opened or closed. The kernel closes the file of a process that dies.
 *
 * The number of inotify events says nothing, because equal events that have not been read are
 * merged. So an event is only the occasion to check the file, and a lease tells its state: the
 * kernel grants the owner a write lease only while no other process has the file open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/umad_private.h"

struct issm_file {
	struct list_head node;
	struct ib_device *device;
	unsigned port_num;
	char path[ABI_NAME_BYTES];
	int watch;
	int fd; /* for requesting the lease; -1 until the file is opened for the first time */
	bool held;
};

struct issm {
	struct rt_io io;
	int fd, dir_fd;
	struct list_head files;
};

static struct issm_file *by_watch(struct issm *issm, int watch)
{
	struct issm_file *f;

	list_for_each_entry(f, &issm->files, node)
		if (f->watch == watch)
			return f;
	return NULL;
}

static void set_is_sm(struct issm_file *f, bool on)
{
	struct ib_port_modify modify = {0};

	if (on)
		modify.set_port_cap_mask = IB_PORT_SM;
	else
		modify.clr_port_cap_mask = IB_PORT_SM;
	ib_modify_port(f->device, f->port_num, 0, &modify);
}

static int add_watch(struct issm *issm, struct issm_file *f)
{
	char path[64 + ABI_NAME_BYTES];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", issm->dir_fd, f->path);
	f->watch = inotify_add_watch(issm->fd, path, IN_OPEN | IN_CLOSE);
	return f->watch < 0 ? -errno : 0;
}

/* The file is not watched while softibd itself opens it, so that this does not look like a
 * subnet manager. Without O_NONBLOCK the call would block on the holder of a lease, or, if
 * somebody has replaced the file by a FIFO, on the other end of it. A file on which another
 * process holds a lease is checked again when that process closes it. */
static int open_to_ask(struct issm *issm, struct issm_file *f)
{
	inotify_rm_watch(issm->fd, f->watch);
	f->fd = openat(issm->dir_fd, f->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return add_watch(issm, f);
}

/* A program that opens the file while softibd holds the lease blocks, or fails with EAGAIN if
 * it uses O_NONBLOCK. So the lease is requested as rarely as possible. */
static bool is_held(const struct issm_file *f)
{
	if (fcntl(f->fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN;
	fcntl(f->fd, F_SETLEASE, F_UNLCK);
	return false;
}

static void on_event(struct issm *issm, const struct inotify_event *event)
{
	struct issm_file *f = by_watch(issm, event->wd);
	bool held;

	if (!f || !(event->mask & (IN_OPEN | IN_CLOSE)))
		return;
	if (f->fd < 0 && (open_to_ask(issm, f) || f->fd < 0))
		return;
	held = is_held(f);
	if (held != f->held)
		set_is_sm(f, held);
	f->held = held;
}

static void on_readable(struct rt_io *io, bool readable, bool writable)
{
	struct issm *issm = container_of(io, struct issm, io);
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(issm->fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const void *)(buf + at);

		on_event(issm, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

int issm_create(struct rt *rt, const char *dir, struct issm **out)
{
	struct issm *issm = rt_zalloc(sizeof(*issm));
	int ret;

	if (!issm)
		return -ENOMEM;
	INIT_LIST_HEAD(&issm->files);
	issm->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	issm->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (issm->fd < 0 || issm->dir_fd < 0)
		goto fail;
	if (mkdirat(issm->dir_fd, "issm", 0700) && errno != EEXIST)
		goto fail;
	rt_io_init(rt, &issm->io, issm->fd, on_readable);
	rt_io_watch(&issm->io, true, false);
	*out = issm;
	return 0;
fail:
	ret = -errno;
	if (issm->fd >= 0)
		close(issm->fd);
	if (issm->dir_fd >= 0)
		close(issm->dir_fd);
	rt_free(issm);
	return ret;
}

static void drop(struct issm *issm, struct issm_file *f)
{
	inotify_rm_watch(issm->fd, f->watch);
	if (f->fd >= 0)
		close(f->fd);
	unlinkat(issm->dir_fd, f->path, 0);
	list_del(&f->node);
	rt_free(f);
}

void issm_destroy(struct issm *issm)
{
	while (!list_empty(&issm->files))
		drop(issm, list_first_entry(&issm->files, struct issm_file, node));
	unlinkat(issm->dir_fd, "issm", AT_REMOVEDIR);
	rt_io_watch(&issm->io, false, false);
	close(issm->fd);
	close(issm->dir_fd);
	rt_free(issm);
}

void issm_forget(struct issm *issm, const struct ib_device *device)
{
	struct issm_file *f, *tmp;

	list_for_each_entry_safe(f, tmp, &issm->files, node)
		if (f->device == device)
			drop(issm, f);
}

/* Always create a new file: any program of the user may have placed one under this name. */
static int make_file(struct issm *issm, struct issm_file *f)
{
	int fd;

	if (unlinkat(issm->dir_fd, f->path, 0) && errno != ENOENT)
		return -errno;
	fd = openat(issm->dir_fd, f->path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	f->fd = -1;
	return add_watch(issm, f);
}

int issm_path(struct issm *issm, struct ib_device *device, unsigned port_num, char *path)
{
	struct issm_file *f;
	int ret, n;

	list_for_each_entry(f, &issm->files, node)
		if (f->device == device && f->port_num == port_num)
			goto found;
	f = rt_zalloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->device = device;
	f->port_num = port_num;
	n = snprintf(f->path, sizeof(f->path), "issm/%.24s.%.19s.%u", device->node_name, device->name,
		     port_num);
	ret = n < (int)sizeof(f->path) ? make_file(issm, f) : -ENAMETOOLONG;
	if (ret) {
		rt_free(f);
		return ret;
	}
	list_add_tail(&f->node, &issm->files);
found:
	memcpy(path, f->path, ABI_NAME_BYTES);
	return 0;
}
