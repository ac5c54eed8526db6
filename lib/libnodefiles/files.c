/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of a node, /dev/infiniband and /sys/class/infiniband*, for programs in a container that
 * lets nobody lay them over the machine's in a mount namespace. Preloaded; the functions of libc
 * that take a path look for these files in the folder that ABI_ENV_FILES names. A program that enters
 * the kernel by itself sees the machine's.
 */
#undef _FILE_OFFSET_BITS /* both open() and open64() are defined here */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"

#define EXPORT __attribute__((visibility("default")))

static const struct {
	const char *path, *below; /* this and what is in it is @below the folder */
} places[] = {
	{"/dev/infiniband", "dev"},
	{"/sys/class/infiniband", "infiniband"},
	{"/sys/class/infiniband_mad", "infiniband_mad"},
	{"/sys/class/infiniband_verbs", "infiniband_verbs"},
	{"/sys/class/infiniband_cm", "infiniband_cm"},
};

/* Constructors of other libraries run before this one's would, so the first call looks. Two threads
 * may both look: one copy is lost. */
static const char *the_folder(void)
{
	static _Atomic(const char *) folder;
	const char *known = atomic_load_explicit(&folder, memory_order_acquire), *text;

	if (known)
		return known;
	text = getenv(ABI_ENV_FILES);
	known = text ? strdup(text) : "";
	atomic_store_explicit(&folder, known, memory_order_release);
	return known;
}

/* Return: what is behind @place in @path; NULL: @path is elsewhere */
static const char *rest_of(const char *path, const char *place)
{
	size_t len = strlen(place);

	return !strncmp(path, place, len) && (!path[len] || path[len] == '/') ? path + len : NULL;
}

/* Return: @path, or @led with the path of the node's file */
static const char *lead(const char *path, char led[PATH_MAX])
{
	const char *folder = the_folder(), *rest;

	if (!path || !folder || !*folder)
		return path;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		rest = rest_of(path, places[i].path);
		if (rest && snprintf(led, PATH_MAX, "%s/%s%s", folder, places[i].below, rest) < PATH_MAX)
			return led;
	}
	return path;
}

/* a function of libc with @path among its @parameters, of which @arguments are the names */
#define LEAD(type, name, parameters, arguments)                                                \
	EXPORT type name parameters                                                            \
	{                                                                                      \
		static _Atomic(__typeof__(&name)) known;                                       \
		__typeof__(&name) next = atomic_load_explicit(&known, memory_order_relaxed);   \
		char led[PATH_MAX];                                                            \
                                                                                               \
		if (!next) {                                                                   \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                     \
			atomic_store_explicit(&known, next, memory_order_relaxed);             \
		}                                                                              \
		path = lead(path, led);                                                        \
		return next arguments;                                                         \
	}

/* the same for open() and its like: a mode follows @flags if they create a file */
#define LEAD_OPEN(name, parameters, arguments)                                                 \
	EXPORT int name parameters                                                             \
	{                                                                                      \
		static _Atomic(__typeof__(&name)) known;                                       \
		__typeof__(&name) next = atomic_load_explicit(&known, memory_order_relaxed);   \
		char led[PATH_MAX];                                                            \
		mode_t mode = 0;                                                               \
		va_list args;                                                                  \
                                                                                               \
		if (!next) {                                                                   \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                     \
			atomic_store_explicit(&known, next, memory_order_relaxed);             \
		}                                                                              \
		if (__OPEN_NEEDS_MODE(flags)) {                                                \
			va_start(args, flags);                                                 \
			mode = va_arg(args, mode_t);                                           \
			va_end(args);                                                          \
		}                                                                              \
		path = lead(path, led);                                                        \
		return next arguments;                                                         \
	}

/* what programs call that were compiled with _FORTIFY_SOURCE */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t bytes, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);

typedef int filter_fn(const struct dirent *);
typedef int filter64_fn(const struct dirent64 *);
typedef int compare_fn(const struct dirent **, const struct dirent **);
typedef int compare64_fn(const struct dirent64 **, const struct dirent64 **);

LEAD_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
LEAD_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
LEAD_OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
LEAD_OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
LEAD(int, __open_2, (const char *path, int flags), (path, flags))
LEAD(int, __open64_2, (const char *path, int flags), (path, flags))
LEAD(int, __openat_2, (int dir, const char *path, int flags), (dir, path, flags))
LEAD(int, __openat64_2, (int dir, const char *path, int flags), (dir, path, flags))
LEAD(FILE *, fopen, (const char *path, const char *mode), (path, mode))
LEAD(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
LEAD(int, stat, (const char *path, struct stat *st), (path, st))
LEAD(int, stat64, (const char *path, struct stat64 *st), (path, st))
LEAD(int, lstat, (const char *path, struct stat *st), (path, st))
LEAD(int, lstat64, (const char *path, struct stat64 *st), (path, st))
LEAD(int, fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags))
LEAD(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),
     (dir, path, st, flags))
LEAD(int, statx, (int dir, const char *path, int flags, unsigned int mask, struct statx *st),
     (dir, path, flags, mask, st))
LEAD(int, access, (const char *path, int mode), (path, mode))
LEAD(int, faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags))
LEAD(int, eaccess, (const char *path, int mode), (path, mode))
LEAD(int, euidaccess, (const char *path, int mode), (path, mode))
LEAD(DIR *, opendir, (const char *path), (path))
LEAD(int, scandir, (const char *path, struct dirent ***list, filter_fn *filter, compare_fn *compare),
     (path, list, filter, compare))
LEAD(int, scandir64,
     (const char *path, struct dirent64 ***list, filter64_fn *filter, compare64_fn *compare),
     (path, list, filter, compare))
LEAD(ssize_t, readlink, (const char *path, char *buf, size_t bytes), (path, buf, bytes))
LEAD(ssize_t, __readlink_chk, (const char *path, char *buf, size_t bytes, size_t room),
     (path, buf, bytes, room))
LEAD(char *, realpath, (const char *path, char *resolved), (path, resolved))
LEAD(char *, __realpath_chk, (const char *path, char *resolved, size_t room), (path, resolved, room))
LEAD(int, chdir, (const char *path), (path))
LEAD(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t bytes),
     (path, name, value, bytes))
LEAD(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t bytes),
     (path, name, value, bytes))
