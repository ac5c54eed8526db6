/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "runtime/posix/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"

#define LINE_BYTES 512

static const char *log_path; /* NULL: rt_log_begin() was not called */

void rt_log_put(int fd, const char *who, const char *fmt, va_list ap)
{
	char line[LINE_BYTES];
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(line, sizeof(line), "%F %T", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ld %s: ",
			      now.tv_nsec / 1000000, who);
	n += (size_t)vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	n = MIN(n, sizeof(line) - 2); /* what was cut */
	line[n++] = '\n';
	(void)!write(fd, line, n); /* at once: others write there, too */
}

void rt_hold_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* is stderr our file, and long enough? */
static bool is_full(void)
{
	struct stat out, file;

	return !fstat(STDERR_FILENO, &out) && S_ISREG(out.st_mode) &&
	       out.st_size >= (off_t)RT_LOG_BYTES && !stat(log_path, &file) &&
	       file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

static void begin_anew(void)
{
	char old[PATH_MAX];
	int fd;

	if (snprintf(old, sizeof(old), "%s.old", log_path) >= (int)sizeof(old) ||
	    rename(log_path, old))
		return;
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

void rt_log_begin(const char *path)
{
	log_path = path;
}

void rt_log(const char *fmt, ...)
{
	va_list ap;

	if (!log_path)
		return;
	if (is_full())
		begin_anew();
	va_start(ap, fmt);
	rt_log_put(STDERR_FILENO, "softibd", fmt, ap);
	va_end(ap);
}
