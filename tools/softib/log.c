/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a fabric's processes say: DIR/softibd.log and DIR/sm.log, each with the
 * one before it as NAME.old. softibd's is empty as long as nothing was wrong;
 * one that is not outlives its fabric, so that somebody can read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/posix/log.h"
#include "softib.h"

#define SHOWN_BYTES 2048

static int log_path(char path[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -1;
}

static bool has_text(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
}

int log_open(const char *dir, const char *name)
{
	char path[PATH_MAX], old[PATH_MAX + 8];

	if (log_path(path, dir, name))
		return -1;
	snprintf(old, sizeof(old), "%s.old", path);
	if (has_text(path))
		rename(path, old);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void log_note(const char *dir, const char *name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int fd;

	if (log_path(path, dir, name))
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	va_start(ap, fmt);
	rt_log_put(fd, "softib", fmt, ap);
	va_end(ap);
	close(fd);
}

/* the last bytes of the file. Return: their number */
static size_t read_tail(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	if (lseek(fd, -(off_t)room, SEEK_END) < 0)
		lseek(fd, 0, SEEK_SET);
	n = read(fd, text, room);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

void log_show(const char *dir, const char *name)
{
	char path[PATH_MAX], text[SHOWN_BYTES];

	if (!log_path(path, dir, name))
		fwrite(text, 1, read_tail(path, text, sizeof(text)), stderr);
}

bool log_left(const char *dir)
{
	char path[PATH_MAX];

	return !log_path(path, dir, LOG_SOFTIBD) && has_text(path);
}

bool log_say_left(const char *dir)
{
	char path[PATH_MAX], text[SHOWN_BYTES], *line;
	size_t n;

	if (!log_left(dir) || log_path(path, dir, LOG_SOFTIBD))
		return false;
	n = read_tail(path, text, sizeof(text) - 1);
	if (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	complain("a softibd that has ended left the log %s; its last line is\n  %s", path,
		 line ? line + 1 : text);
	return true;
}

/* --- the end of a folder --------------------------------------------------- */

static bool keep_log; /* nftw() passes nothing on */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (!keep_log || at->level != 1 ||
	    strncmp(path + at->base, LOG_SOFTIBD, strlen(LOG_SOFTIBD)))
		remove(path); /* of the folder itself it fails when something stays */
	return 0;
}

void log_sweep(const char *dir, bool keep)
{
	keep_log = keep && log_left(dir);
	nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
