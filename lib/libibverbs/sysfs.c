/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The two functions by which programs read sysfs through the library. They
 * read the files that the program's mount namespace shows; SYSFS_PATH moves
 * the root, as in the distribution's library.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft.h"

#define SYSFS_PATH_BYTES 512


/** ibv_get_sysfs_path() - where sysfs is: $SYSFS_PATH or /sys */
EXPORT const char *ibv_get_sysfs_path(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

/**
 * ibv_read_sysfs_file() - the text of @dir/@file without its final newline
 * Return: bytes in @buf, which is terminated when there is room; -1 and errno
 */
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[SYSFS_PATH_BYTES];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	if ((size_t)n < size)
		buf[n] = '\0';
	return (int)n;
}
