/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files of /sys/class/infiniband that are live: what cat reads is how the port is
 * at that moment, as with the kernel's.
 *
 * They are ordinary files, and one process for each node that has programs holds
 * a write lease on each of them (fcntl(2), F_SETLEASE): whoever opens one waits in
 * open(2) until that process, which the kernel tells by a signal, has asked
 * softibd, written the answer and given the lease up. Before that it puts a new
 * file in the place of this one, with a lease of its own, so that the next reader
 * waits as well. As long as the old one is open it is written anew at intervals,
 * for programs that read the same descriptor again.
 *
 * That takes no privilege, no kernel module and no FUSE. It costs a process that
 * sleeps, some 35 descriptors of it for each port, and a millisecond for each
 * open(2) of a live file; nothing while nobody reads. Where a file system has no
 * leases (NFS) the files tell how the port was when the node's first program was
 * started. open(2) with O_NONBLOCK, which 'grep -r' uses, does not wait: EAGAIN.
 *
 * An adapter that is pulled takes its folders with it: whoever starts a program
 * moves them into the folder GONE, out of all programs' sight, where files and
 * leases stay as they are until the adapter is back. One that was away when the
 * process began has files that are not live.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "sysfs.h"

#define LIVE_MAX	1024
#define OPEN_MAX	1024 /* read at the same time; more are not kept live */
#define OWN_FDS		16   /* that the process needs beside those of the files */
#define SETUP_STEP_MS	10
#define SETUP_MS	30000 /* for those that look or start the process before */
#define RETRY_FIRST_MS	1  /* most readers open, read once and close */
#define RETRY_LAST_MS	64 /* one that keeps it open */
#define LEASE_SIGNAL	SIGIO
#define COMMAND		"node-files"
#define GONE		"gone"
#define FOLDERS_MAX	128 /* of the class devices of all adapters of a node */

/** struct live - one file that is kept live: nobody has it open */
struct live {
	char path[SYSFS_PATH_MAX];
	int fd;
};

/** struct reading - what was in its place, until its readers have closed it
 *  @said: what it said to them, if they may write into it (sysfs_takes_orders()) */
struct reading {
	const struct live *live;
	int fd;
	char said[SYSFS_PATH_MAX];
	bool open; /* they have gone on: it is theirs to write */
};

/** struct tree - the files, and how they are written */
struct tree {
	struct sysfs_sink sink;
	int dir;
	bool take, leases; /* the process that serves them; do leases work? */
	struct live *live;
	size_t num_live;
	struct reading *reading;
	size_t num_reading, max_reading;
	char folders[FOLDERS_MAX][64]; /* "infiniband/softib0" and so on: written now */
	size_t num_folders;
};

/* The state of a port and its counters; all else hardly ever changes, and is
 * written when a program of the node starts. */
static bool is_live(const char *path)
{
	static const char *const names[] = {"lid",	   "lid_mask_count", "sm_lid",
					    "sm_sl",	   "state",	     "phys_state",
					    "rate",	   "cap_mask"};
	const char *slash = strrchr(path, '/');

	if (strstr(path, "/counters/") || strstr(path, "/hw_counters/") || sysfs_net_is_live(path) ||
	    sysfs_takes_orders(path))
		return true;
	if (!strstr(path, "/ports/"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(slash + 1, names[i]))
			return true;
	return false;
}

/* --- writing --------------------------------------------------------------- */

static int make_parents(int dir, const char *path)
{
	char text[SYSFS_PATH_MAX];

	snprintf(text, sizeof(text), "%s", path);
	for (char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir, text, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* never empty in between: it may be read meanwhile */
static int write_line(int fd, const char *line, size_t bytes)
{
	return pwrite(fd, line, bytes, 0) == (ssize_t)bytes && !ftruncate(fd, (off_t)bytes)
		       ? 0
		       : -errno;
}

/* Two processes write at the same time: the one that serves a node's files, of which there
 * is one (NODE.lock), and whoever starts a program on it (NODE.setup). Each has a name of its
 * own for a file that is not in place yet; with a common one either could remove, or put in a
 * wrong place, what the other has just written. */
static const char *new_file(const struct tree *t)
{
	return t->take ? ".new" : ".new-at-start";
}

/* @path may be among those that are gone, and back while we look. */
static int rename_into_place(int dir, const char *from, const char *path)
{
	char gone[SYSFS_PATH_MAX + sizeof(GONE)];
	const char *const places[] = {path, gone, path};

	snprintf(gone, sizeof(gone), GONE "/%s", path);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (!renameat(dir, from, dir, places[i]))
			return 0;
	return -errno;
}

/* A new file in the place of what was there: readers see the old one or the new.
 * Its mode is that of sysfs, its descriptor may write.
 * Return: descriptor; -errno */
static int make_file(struct tree *t, const char *path, const char *line, size_t bytes)
{
	const char *name = new_file(t);
	int dir = t->dir, error, fd;

	unlinkat(dir, name, 0); /* of one that was killed */
	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	if (fd < 0)
		return -errno;
	fchmod(fd, sysfs_mode(path));
	error = write_line(fd, line, bytes);
	if (is_live(path)) /* before anybody can open it */
		t->leases = !fcntl(fd, F_SETLEASE, F_WRLCK);
	if (!error)
		error = rename_into_place(dir, name, path);
	if (error)
		close(fd);
	return error ? error : fd;
}

static bool says(int dir, const char *path, const char *line, size_t bytes)
{
	char text[SYSFS_PATH_MAX];
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)bytes && !memcmp(text, line, bytes);
}

static int take_live(struct tree *t, const char *path, int fd)
{
	struct live *live = &t->live[t->num_live];

	if (t->num_live == LIVE_MAX) {
		close(fd);
		return -ENOSPC;
	}
	snprintf(live->path, sizeof(live->path), "%s", path);
	live->fd = fd;
	t->num_live++;
	return 0;
}

static bool is_listed(const struct tree *t, const char *folder)
{
	for (size_t i = 0; i < t->num_folders; i++)
		if (!strcmp(t->folders[i], folder))
			return true;
	return false;
}

/* The folder of the class device that @path belongs to is there now, and comes
 * back if it was gone. */
static void list_folder(struct tree *t, const char *path)
{
	const char *slash = strchr(path, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;
	char folder[sizeof(t->folders[0])], gone[sizeof(folder) + sizeof(GONE)];

	if (!end || end - path >= (ptrdiff_t)sizeof(folder))
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(end - path), path);
	if (is_listed(t, folder) || t->num_folders == FOLDERS_MAX)
		return;
	strcpy(t->folders[t->num_folders++], folder);
	snprintf(gone, sizeof(gone), GONE "/%s", folder);
	renameat(t->dir, gone, t->dir, folder);
}

/* the process that serves writes all; one that starts a program, what is not live */
static int put_file(struct sysfs_sink *sink, const char *path, const char *line, size_t bytes)
{
	struct tree *t = container_of(sink, struct tree, sink);
	bool live = is_live(path);
	int fd;

	list_folder(t, path);
	if (live && !t->take ? !faccessat(t->dir, path, F_OK, 0)
			     : !live && says(t->dir, path, line, bytes))
		return 0;
	fd = make_parents(t->dir, path);
	if (fd >= 0)
		fd = make_file(t, path, line, bytes);
	if (fd >= 0 && live && t->take)
		return take_live(t, path, fd);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static bool is_served(const struct tree *t, const char *path)
{
	for (size_t i = 0; i < t->num_live; i++)
		if (!strcmp(t->live[i].path, path))
			return true;
	return false;
}

/* only what somebody has open, or waits for; and files of interfaces that are new */
static int put_wanted(struct sysfs_sink *sink, const char *path, const char *line, size_t bytes)
{
	struct tree *t = container_of(sink, struct tree, sink);
	bool orders = sysfs_takes_orders(path);

	if (sysfs_net_is_live(path) && !is_served(t, path))
		return put_file(sink, path, line, bytes);
	for (size_t i = 0; i < t->num_reading; i++) {
		struct reading *r = &t->reading[i];

		if (strcmp(r->live->path, path) || (orders && r->open))
			continue;
		if (write_line(r->fd, line, bytes))
			return -EIO;
		snprintf(r->said, sizeof(r->said), "%.*s", (int)bytes, line);
	}
	return 0;
}

/* --- leases ---------------------------------------------------------------- */

/* Put a new file in the place of one that somebody waits for. Return: 0; -errno */
static int replace(struct tree *t, struct live *live)
{
	char line[SYSFS_PATH_MAX];
	ssize_t n = pread(live->fd, line, sizeof(line), 0);
	int fd;

	if (t->num_reading == t->max_reading) {
		close(t->reading[0].fd);
		t->reading[0] = t->reading[--t->num_reading];
	}
	fd = make_file(t, live->path, line, n > 0 ? (size_t)n : 0);
	if (fd < 0)
		return fd;
	t->reading[t->num_reading++] = (struct reading){.live = live, .fd = live->fd};
	live->fd = fd;
	return 0;
}

/* Which ones does somebody wait for? Return: how many; -errno */
static int replace_wanted(struct tree *t)
{
	int n = 0, error;

	for (size_t i = 0; i < t->num_live; i++) {
		if (fcntl(t->live[i].fd, F_GETLEASE) == F_WRLCK)
			continue;
		error = replace(t, &t->live[i]);
		if (error)
			return error;
		n++;
	}
	return n;
}

/* What does @r say that we have not written? It is done. */
static void take_order(const struct node_place *at, const struct reading *r)
{
	char text[SYSFS_PATH_MAX];
	ssize_t n = pread(r->fd, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	if (n > 0 && strcmp(text, r->said))
		sysfs_order(at, r->live->path, text, r->said);
}

/* Forget what nobody has open any more: that can be leased. */
static void drop_closed(const struct node_place *at, struct tree *t)
{
	for (size_t i = t->num_reading; i-- > 0;) {
		struct reading r = t->reading[i];

		if (!r.open || fcntl(r.fd, F_SETLEASE, F_WRLCK))
			continue;
		t->reading[i] = t->reading[--t->num_reading];
		if (sysfs_takes_orders(r.live->path))
			take_order(at, &r);
		close(r.fd);
	}
}

/* Write what is read, and let those that wait for it go on. */
static int refresh(const struct node_place *at, struct tree *t)
{
	int error;

	t->sink.put = put_wanted;
	error = sysfs_put_all(at, &t->sink);
	for (size_t i = 0; i < t->num_reading; i++) {
		t->reading[i].open = true;
		fcntl(t->reading[i].fd, F_SETLEASE, F_UNLCK);
	}
	return error;
}

/* until softibd ends, or does not answer */
static void serve(const struct node_place *at, struct tree *t, int signal_fd, int gone_fd)
{
	struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
			       {.fd = gone_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	int wait_ms = -1, wanted;

	for (;;) {
		int n = poll(fds, 2, wait_ms);

		if (fds[1].revents)
			return;
		if (n > 0)
			(void)!read(signal_fd, &info, sizeof(info));
		drop_closed(at, t); /* who reads next sees what was ordered before */
		wanted = t->leases ? replace_wanted(t) : 0;
		if (wanted < 0 || (wanted > 0 && refresh(at, t)))
			return;
		if (wanted > 0)
			wait_ms = RETRY_FIRST_MS;
		else if (!n)
			wait_ms = MIN(2 * wait_ms, RETRY_LAST_MS);
		drop_closed(at, t);
		if (!t->num_reading)
			wait_ms = -1;
		else if (!wanted && wait_ms == RETRY_LAST_MS && refresh(at, t))
			return;
	}
}

/* --- the process ------------------------------------------------------------- */

static int open_folder(const struct node_place *at, char path[PATH_MAX])
{
	if (strchr(at->node, '/') ||
	    snprintf(path, PATH_MAX, "%s/sys", at->dir) >= PATH_MAX - (int)sizeof(at->node) - 8)
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	strcat(strcat(path, "/"), at->node);
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

/* Return: a descriptor that is readable when softibd has ended, also by kill -9, which
 * leaves its sockets in the folder; -1 */
static int watch_softibd(const char *dir)
{
	int fd = client_open(dir), process = -1;
	socklen_t bytes = sizeof(struct ucred);
	struct ucred peer;

	if (fd < 0)
		return -1;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (process < 0) /* it has no number here: the connection tells as well */
		return fd;
	close(fd);
	return process;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Any program of the user opens the files as often as it likes. Return: how many this process has descriptors
 * for, beside the files that nobody has open */
static size_t find_max_reading(size_t num_live)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < num_live + OWN_FDS + 1)
		return 1;
	return MIN((size_t)OPEN_MAX, (size_t)limit.rlim_cur - num_live - OWN_FDS);
}

/* argv: the command, DIR, NODE; standard input is the lock, standard output
 * whoever waits until the files are there */
int sysfs_serve(int argc, char **argv)
{
	struct tree t = {.take = true, .sink.put = put_file};
	struct node_place at = {.node = ""};
	char path[PATH_MAX];
	sigset_t mask;
	int signal_fd, gone_fd, null;

	if (argc != 3 || snprintf(at.dir, sizeof(at.dir), "%s", argv[1]) >= PATH_MAX)
		return EXIT_FAILURE;
	snprintf(at.node, sizeof(at.node), "%s", argv[2]);
	sigemptyset(&mask);
	sigaddset(&mask, LEASE_SIGNAL);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	raise_descriptor_limit();
	gone_fd = watch_softibd(at.dir);
	t.live = calloc(LIVE_MAX, sizeof(*t.live));
	t.reading = calloc(OPEN_MAX, sizeof(*t.reading));
	if (!t.live || !t.reading || signal_fd < 0 || gone_fd < 0 || open_folder(&at, path))
		return EXIT_FAILURE;
	t.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t.dir < 0 || sysfs_put_all(&at, &t.sink))
		return EXIT_FAILURE;
	t.max_reading = find_max_reading(t.num_live);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (write(STDOUT_FILENO, "", 1) != 1)
		return EXIT_FAILURE;
	dup2(null, STDOUT_FILENO);
	serve(&at, &t, signal_fd, gone_fd);
	free(t.live);
	free(t.reading);
	return EXIT_SUCCESS;
}

/* The child of a child, so that it is nobody's whom the program waits for. */
static void become_server(const struct node_place *at, int lock_fd, int ready_fd)
{
	char self[PATH_MAX], *argv[] = {"softib", COMMAND, (char *)at->dir, (char *)at->node, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	if (fork())
		_exit(0);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place_program("softib", self) || chdir("/") || dup2(ready_fd, STDOUT_FILENO) < 0 ||
	    dup2(lock_fd, STDIN_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0u, 0))
		_exit(EXIT_FAILURE);
	execv(self, argv);
	_exit(EXIT_FAILURE);
}

static int start_server(const struct node_place *at, int lock_fd)
{
	int ready[2], status;
	char byte;
	pid_t pid;
	ssize_t n;

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		become_server(at, lock_fd, ready[1]);
	close(ready[1]);
	n = pid < 0 ? 0 : read(ready[0], &byte, 1);
	close(ready[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return n == 1 ? 0 : -EIO;
}

static int open_lock(const char *files, const char *suffix)
{
	char path[PATH_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s.%s", files, suffix);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* What is in @class and was not written now belongs to an adapter that is gone. */
static void hide_gone(const struct tree *t, const char *class)
{
	int fd = openat(t->dir, class, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char folder[PATH_MAX], gone[PATH_MAX + sizeof(GONE)];
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		snprintf(folder, sizeof(folder), "%s/%s", class, entry->d_name);
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || is_listed(t, folder))
			continue;
		snprintf(gone, sizeof(gone), GONE "/%s", folder);
		if (!make_parents(t->dir, gone))
			renameat(t->dir, folder, t->dir, gone);
	}
	if (dir)
		closedir(dir);
}

static const char *const classes[] = {"infiniband", "infiniband_verbs", "infiniband_mad", "infiniband_cm"};

int sysfs_make_folders(const struct node_place *at, char path[PATH_MAX])
{
	int error = open_folder(at, path), dir;

	if (error)
		return error;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(classes) && !error; i++)
		if (mkdirat(dir, classes[i], 0755) && errno != EEXIST)
			error = -errno;
	close(dir);
	return error;
}

/* Whoever starts a program writes what is not live anew. */
static int write_rest(const struct node_place *at, const char *path)
{
	struct tree t = {.sink.put = put_file};
	int error;

	t.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t.dir < 0)
		return -errno;
	error = sysfs_put_all(at, &t.sink);
	for (size_t i = 0; i < ARRAY_SIZE(classes) && !error; i++)
		hide_gone(&t, classes[i]);
	close(t.dir);
	return error;
}

/* Any program of the user can lock the file, and keep the lock. Return: 0; -ETIMEDOUT; -errno */
static int lock_in_time(int fd)
{
	for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB); ms += SETUP_STEP_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ms >= SETUP_MS)
			return -ETIMEDOUT;
		poll(NULL, 0, SETUP_STEP_MS);
	}
	return 0;
}

/* Two locks: NODE.setup is held while somebody looks or starts the process,
 * NODE.lock as long as that process lives. */
int sysfs_prepare(const struct node_place *at, char path[PATH_MAX])
{
	int error = open_folder(at, path), setup, lock;

	if (error)
		return error;
	setup = open_lock(path, "setup");
	if (setup < 0)
		return setup;
	lock = open_lock(path, "lock");
	error = lock < 0 ? lock : lock_in_time(setup);
	if (error) {
		/* nothing was looked at */
	} else if (!flock(lock, LOCK_EX | LOCK_NB)) {
		error = start_server(at, lock);
	} else {
		error = write_rest(at, path);
	}
	if (lock >= 0)
		close(lock);
	close(setup);
	return error;
}
