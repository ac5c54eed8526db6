/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log of a program that serves: lines with a time, for people. Entries
 * about another process name its pid. What an ordinary run does is no entry:
 * a log that is empty tells that nothing was wrong.
 */
#ifndef SOFTIB_RUNTIME_LOG_H
#define SOFTIB_RUNTIME_LOG_H

#include <stdarg.h>

#define RT_LOG_BYTES (256u << 10) /* of a file; the one before is kept */

/**
 * rt_log_begin() - entries go to stderr from now on; before, nowhere
 * @path: when stderr is this file, it is renamed to @path.old once it is
 *        RT_LOG_BYTES long, and begun anew. Stays the caller's.
 */
void rt_log_begin(const char *path);
/** rt_log() - one entry: a line of at most 500 bytes. Never blocks on a file;
 *  fails silently: there is nobody to tell */
__attribute__((format(printf, 1, 2)))
void rt_log(const char *fmt, ...);
/** rt_log_put() - the same into @fd, as said by @who */
__attribute__((format(printf, 3, 0)))
void rt_log_put(int fd, const char *who, const char *fmt, va_list ap);

/**
 * rt_hold_standard_fds() - first thing in main(): a standard descriptor that is
 * closed would be the number of the next socket, and what is printed would go
 * there. What takes its place refuses reads and writes.
 */
void rt_hold_standard_fds(void);

#endif
