/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How another socket takes a descriptor's place: its number, its flags, the numbers of its
 * copies in this process, and its registrations with epoll instances. /proc/self tells the
 * last two, so the library keeps nothing about them. Without /proc, neither is found.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdp_private.h"

/** struct registration - one descriptor that one epoll instance watches */
struct registration {
	int epoll, fd;
	struct epoll_event event;
};

struct registrations {
	struct registration *all;
	size_t num;
};

static bool is_same(int fd, const struct stat *socket)
{
	struct stat it;

	return !fstat(fd, &it) && it.st_ino == socket->st_ino &&
	       it.st_dev == socket->st_dev;
}

static bool is_epoll(int fd)
{
	static const char kind[] = "anon_inode:[eventpoll]";
	char path[40], target[sizeof(kind)];
	struct stat it;

	if (fstat(fd, &it) || it.st_mode & S_IFMT) /* spare sockets and files readlink() */
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == sizeof(kind) - 1 &&
	       !memcmp(target, kind, sizeof(kind) - 1);
}

/* Move a registration from the instance to @to. Return: 0; -ENOMEM */
static int withdraw(struct registrations *to, const struct registration *one)
{
	struct registration *all =
		realloc(to->all, (to->num + 1) * sizeof(*to->all));

	if (!all)
		return -ENOMEM;
	to->all = all;
	if (!epoll_ctl(one->epoll, EPOLL_CTL_DEL, one->fd, NULL))
		all[to->num++] = *one;
	return 0;
}

/* proc_pid_fdinfo(5) describes the lines. Return: 0; -ENOMEM */
static int withdraw_from(int epoll, const struct stat *socket, struct registrations *to)
{
	struct registration one = {.epoll = epoll};
	unsigned long long data;
	char line[160];
	FILE *info;
	int ret = 0;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", epoll);
	info = fopen(line, "re");
	while (!ret && info && fgets(line, sizeof(line), info)) {
		if (sscanf(line, "tfd: %d events: %x data: %llx", &one.fd,
			   &one.event.events, &data) != 3 ||
		    !is_same(one.fd, socket))
			continue;
		one.event.data.u64 = data;
		ret = withdraw(to, &one);
	}
	if (info)
		fclose(info);
	return ret;
}

/* Return: 0; -errno */
static int take_number(int fd, int other)
{
	const int flags = fcntl(fd, F_GETFD);

	if (flags < 0 || dup3(other, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		return -errno;
	return 0;
}

/* Call for each descriptor of this process: first for epoll instances, with @to; then for
 * copies of @socket, with @other. Return: 0; -errno */
static int walk(const struct stat *socket, struct registrations *to, int other)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int ret = 0;

	while (!ret && dir && (entry = readdir(dir))) {
		const int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		if (to && is_epoll(fd))
			ret = withdraw_from(fd, socket, to);
		else if (!to && is_same(fd, socket))
			ret = take_number(fd, other);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static int take_all(int fd, int other, const struct stat *socket)
{
	struct registrations found = {NULL, 0};
	int ret = walk(socket, &found, -1);

	if (!ret)
		ret = take_number(fd, other);
	if (!ret)
		ret = walk(socket, NULL, other);
	for (size_t i = 0; i < found.num; i++)
		if (epoll_ctl(found.all[i].epoll, EPOLL_CTL_ADD, found.all[i].fd,
			      &found.all[i].event) && !ret)
			ret = -errno;
	free(found.all);
	return ret;
}

int sdp_take_place(int fd, int other)
{
	const int status = fcntl(fd, F_GETFL);
	struct stat socket;
	int ret;

	if (status < 0 || fstat(fd, &socket) ||
	    fcntl(other, F_SETFL, status & (O_NONBLOCK | O_ASYNC)))
		ret = -errno;
	else
		ret = take_all(fd, other, &socket);
	close(other);
	return ret;
}
