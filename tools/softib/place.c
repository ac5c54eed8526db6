/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where things are: fabrics in $XDG_RUNTIME_DIR/softib/NAME (without that
 * variable /tmp/softib-UID/NAME), programs beside this one, libraries in the
 * tree's build/lib or the installation's LIBDIR/softib.
 */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "softib.h"

__attribute__((format(printf, 2, 3)))
static int join(char path[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, PATH_MAX, fmt, ap);
	va_end(ap);
	if (n >= 0 && n < PATH_MAX)
		return 0;
	complain("a path is too long");
	return -1;
}

/* a folder of ours that no one else can enter */
static int check_folder(const char *path, bool make)
{
	struct passwd *pw;
	struct stat st;

	if (make && mkdir(path, 0700) && errno != EEXIST) {
		complain("cannot make %s: %s; XDG_RUNTIME_DIR is to name a directory of "
			 "your own",
			 path, strerror(errno));
		return -1;
	}
	if (lstat(path, &st)) {
		if (errno == ENOENT && !make)
			return 0;
		complain("cannot look at %s: %s", path, strerror(errno));
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		complain("%s is no directory: remove it", path);
		return -1;
	}
	if (st.st_uid != geteuid()) {
		pw = getpwuid(st.st_uid);
		complain(
			"%s belongs to another user (%s, uid %u): set XDG_RUNTIME_DIR to a "
			"directory of your own",
			path, pw ? pw->pw_name : "?", st.st_uid);
		return -1;
	}
	if (st.st_mode & 077) {
		complain("%s is open to others (mode %03o): chmod 700 %s", path,
			 st.st_mode & 0777, path);
		return -1;
	}
	return 0;
}

int place_base(char base[PATH_MAX], bool make)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int error = runtime && runtime[0] == '/'
			    ? join(base, "%s/softib", runtime)
			    : join(base, "/tmp/softib-%u", geteuid());

	return error ? error : check_folder(base, make);
}

bool place_name_is_good(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-";

	return name[0] && name[0] != '.' && name[0] != '-' &&
	       strlen(name) < ABI_NAME_BYTES && name[strspn(name, letters)] == '\0';
}

int place_named(const char *name, char dir[PATH_MAX], bool make)
{
	static const struct sockaddr_un address;
	char base[PATH_MAX];

	if (place_base(base, make) || join(dir, "%s/%s", base, name))
		return -1;
	if (strlen(dir) + strlen("/control") >= sizeof(address.sun_path)) {
		complain("%s is too long for a socket's path: choose a shorter name or "
			 "XDG_RUNTIME_DIR",
			 dir);
		return -1;
	}
	return check_folder(dir, make);
}

int place_each(int (*fn)(const char *name, const char *dir, void *arg), void *arg)
{
	char base[PATH_MAX], dir[PATH_MAX];
	struct dirent **list;
	int n, count = 0;

	if (place_base(base, false))
		return 0;
	n = scandir(base, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (place_name_is_good(list[i]->d_name) &&
		    !join(dir, "%s/%s", base, list[i]->d_name) &&
		    !fn(list[i]->d_name, dir, arg))
			count++;
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return count;
}

bool place_is_private(const char *name)
{
	return !strncmp(name, PRIVATE_PREFIX, strlen(PRIVATE_PREFIX));
}

struct choice {
	char dir[PATH_MAX];
	char names[256];
};

static int choose_live(const char *name, const char *dir, void *arg)
{
	struct choice *choice = arg;
	size_t len = strlen(choice->names);
	int fd;

	if (place_is_private(name))
		return -1;
	fd = client_open(dir); /* a ping would wait for one that is stopped */
	if (fd >= 0)
		close(fd);
	else if (fd != -ETIMEDOUT)
		return -1;
	snprintf(choice->dir, sizeof(choice->dir), "%s", dir);
	snprintf(choice->names + len, sizeof(choice->names) - len, " %s", name);
	return 0;
}

int place_live(void)
{
	struct choice choice = {.dir = ""};

	return place_each(choose_live, &choice);
}

bool place_is_ours(const char *dir)
{
	char base[PATH_MAX];
	size_t len;

	if (place_base(base, false))
		return false;
	len = strlen(base);
	return !strncmp(dir, base, len) && dir[len] == '/' && place_name_is_good(dir + len + 1);
}

static int say_left(const char *name, const char *dir, void *arg)
{
	int fd = client_open(dir);

	if (fd >= 0)
		close(fd);
	return fd < 0 && log_say_left(dir) ? 0 : -1;
}

void place_say_left(void)
{
	place_each(say_left, NULL);
}

int place_choose(const char *name, char dir[PATH_MAX])
{
	const char *env = getenv(ABI_ENV_DIR);
	struct choice choice = {.dir = ""};
	int live;

	if (name)
		return place_named(name, dir, false);
	if (env && env[0])
		return join(dir, "%s", env);
	live = place_each(choose_live, &choice);
	if (live == 1)
		return join(dir, "%s", choice.dir);
	if (live)
		complain("which fabric? --fabric takes one of:%s", choice.names);
	else
		complain(
			"no fabric is up: 'softib up' brings one up, 'softib run -- CMD' runs "
			"CMD on one of its own");
	if (!live)
		place_say_left();
	return -1;
}

bool place_is_there(const char *name)
{
	const char *env = getenv(ABI_ENV_DIR);

	return name || (env && env[0]) || place_live();
}

int place_run_private(const char *command, int argc, char **argv)
{
	char self[PATH_MAX], name[NAME_MAX + 1];
	char **words = calloc((size_t)argc + 5, sizeof(char *));
	char *const before[] = {self, "run", "--", self, name};

	if (!words || place_program("softib", self))
		return EXIT_FAILURE;
	snprintf(name, sizeof(name), "%s", command);
	memcpy(words, before, sizeof(before));
	memcpy(words + ARRAY_SIZE(before), argv + 1, (size_t)(argc - 1) * sizeof(char *));
	fprintf(stderr, "softib: no fabric is up: a private one of two nodes, for this "
			"command\n");
	execv(self, words);
	return complain("cannot run %s: %s", self, strerror(errno));
}

/* --- programs and libraries ---------------------------------------------- */

int place_self_dir(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (n <= 0) {
		complain("cannot find this program: is /proc mounted?");
		return -1;
	}
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

int place_program(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];

	if (place_self_dir(self) || join(path, "%s/%s", self, name))
		return -1;
	if (!access(path, X_OK))
		return 0;
	complain(
		"%s is missing: it belongs beside softib (in the tree run build/bin/softib after "
		"'make')",
		path);
	return -1;
}

/* Find the first of two @places, seen from this program, whose directory is @self, that has
 * @file: installed, or in a build tree. */
static bool seek_place(const char *self, const char *const places[2], const char *file,
		       char path[PATH_MAX])
{
	char probe[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		if (join(probe, "%s/%s/%s", self, places[i], file) || access(probe, R_OK) ||
		    join(probe, "%s/%s", self, places[i]))
			continue;
		if (realpath(probe, path))
			return true;
	}
	return false;
}

/* The same. Return: 0; -1 (said) */
static int find_place(const char *const places[2], const char *file, char path[PATH_MAX])
{
	char self[PATH_MAX];

	if (place_self_dir(self))
		return -1;
	if (seek_place(self, places, file, path))
		return 0;
	complain("%s of softib is neither in %s/%s nor in %s/%s: install softib again, or run 'make'",
		 file, self, places[0], self, places[1]);
	return -1;
}

int place_lib_dir(char path[PATH_MAX])
{
	static const char *const places[] = {"../" SOFTIB_LIBDIR "/softib", "../lib"};

	return find_place(places, "libibverbs.so.1", path);
}

int place_module_headers(char path[PATH_MAX])
{
	static const char *const places[] = {"../" SOFTIB_LIBDIR "/pkgconfig", "../include"};

	return find_place(places, "softib-module.pc", path);
}

bool place_module(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"../" SOFTIB_LIBDIR "/softib/modules", "../src/ulp"};
	char self[PATH_MAX], file[NAME_MAX + 1], dir[PATH_MAX];

	if (strchr(name, '/') ||
	    (size_t)snprintf(file, sizeof(file), "%s.so", name) >= sizeof(file))
		return false;
	return !place_self_dir(self) && seek_place(self, places, file, dir) &&
	       !join(path, "%s/%s", dir, file);
}
