/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Replacing the socket of a descriptor by another one, which gets its number, its flags, the numbers of
 * its duplicates in this process, and its registrations with epoll instances. Duplicates and
 * registrations are found in /proc/self, so that the library need not record them. Without /proc, they
 * are not found.
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

/** struct registration - the registration of one descriptor with one epoll instance */
struct registration {
	int epoll, fd;
	struct epoll_event event;
};

/** struct found - what has to be changed when the socket is replaced */
struct found {
	struct registration *registrations;
	int *copies; /* the duplicates of the descriptor, but for... */
	int spare;   /* ...this one */
	size_t num_registrations, num_copies;
};

static bool is_same(int fd, const struct stat *socket)
{
	struct stat it;

	return !fstat(fd, &it) && it.st_ino == socket->st_ino &&
	       it.st_dev == socket->st_dev;
}

bool sdp_is_same(int fd, int other)
{
	struct stat socket;

	return !fstat(other, &socket) && is_same(fd, &socket);
}

bool sdp_is_epoll(int fd)
{
	static const char kind[] = "anon_inode:[eventpoll]";
	char path[40], target[sizeof(kind)];
	struct stat it;

	if (fstat(fd, &it) || it.st_mode & S_IFMT) /* sockets and files need no readlink() */
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == sizeof(kind) - 1 &&
	       !memcmp(target, kind, sizeof(kind) - 1);
}

/* Return: the array @all, enlarged for one more entry; NULL: there is no memory, and @all is not changed */
static void *grow(void *all, size_t num, size_t bytes)
{
	/* An array whose length is a power of two is full. */
	return num & (num - 1) ? all : realloc(all, (num ? 2 * num : 1) * bytes);
}

/* Move a registration from the instance to @found. Return: 0; -ENOMEM */
static int withdraw(struct found *found, const struct registration *one)
{
	struct registration *all =
		grow(found->registrations, found->num_registrations, sizeof(*all));

	if (!all)
		return -ENOMEM;
	found->registrations = all;
	if (!sdp_libc.epoll_ctl(one->epoll, EPOLL_CTL_DEL, one->fd, NULL))
		all[found->num_registrations++] = *one;
	return 0;
}

/* Return: 0; -ENOMEM */
static int add_copy(struct found *found, int fd)
{
	int *all = grow(found->copies, found->num_copies, sizeof(*all));

	if (!all)
		return -ENOMEM;
	found->copies = all;
	all[found->num_copies++] = fd;
	return 0;
}

/* Read the lines of an epoll instance (proc_pid_fdinfo(5)). Return: 0; -ENOMEM */
static int withdraw_from(int epoll, const struct stat *socket, struct found *found)
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
		ret = withdraw(found, &one);
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

/* Examine one descriptor of this process. Return: 0; -ENOMEM */
static int look_at(int fd, const struct stat *socket, struct found *found)
{
	struct stat it;

	if (fd == found->spare || fstat(fd, &it))
		return 0;
	if (it.st_ino == socket->st_ino && it.st_dev == socket->st_dev)
		return add_copy(found, fd);
	return sdp_is_epoll(fd) ? withdraw_from(fd, socket, found) : 0;
}

/* Return: 0; -ENOMEM */
static int look_at_all(const struct stat *socket, struct found *found)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int ret = 0;

	while (!ret && dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = look_at(atoi(entry->d_name), socket, found);
	if (dir)
		closedir(dir);
	return ret;
}

static int take_all(int fd, int other, int spare, const struct stat *socket)
{
	struct found found = {.spare = spare};
	int ret = look_at_all(socket, &found);

	if (!ret)
		ret = take_number(fd, other);
	for (size_t i = 0; !ret && i < found.num_copies; i++)
		if (is_same(found.copies[i], socket)) /* another thread may have closed it meanwhile */
			ret = take_number(found.copies[i], other);
	for (size_t i = 0; i < found.num_registrations; i++) {
		struct registration *one = &found.registrations[i];

		if (sdp_libc.epoll_ctl(one->epoll, EPOLL_CTL_ADD, one->fd, &one->event) && !ret)
			ret = -errno;
	}
	free(found.registrations);
	free(found.copies);
	return ret;
}

int sdp_take_place(int fd, int other, int spare)
{
	const int status = fcntl(fd, F_GETFL);
	struct stat socket;
	int ret;

	if (status < 0 || fstat(fd, &socket) ||
	    fcntl(other, F_SETFL, status & (O_NONBLOCK | O_ASYNC)))
		ret = -errno;
	else
		ret = take_all(fd, other, spare, &socket);
	close(other);
	return ret;
}
