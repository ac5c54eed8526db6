/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The processes of one fabric, as children of this one: softibd, the subnet
 * manager, and the command of `softib run`. None outlives this process: each
 * has a parent-death signal, and what a command leaves behind is adopted
 * (PR_SET_CHILD_SUBREAPER) and ended. softibd and the manager stand in
 * process groups of their own, so that Ctrl-C is the command's alone.
 *
 * A folder that is served has a lock on softib.lock (fcntl: the kernel tells
 * its owner's pid and drops it when that dies), and the logs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"
#include "netdev.h"
#include "node_namespaces.h"
#include "session_private.h"

#define READY_TIMEOUT_MS 60000 /* for softibd to serve: it reads a file, no more */

int session_file(char path[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -1;
}

/* --- the lock, what is left ---------------------------------------------- */

pid_t session_owner(const char *dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PATH_MAX];
	int fd;

	if (session_file(path, dir, "softib.lock"))
		return 0;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_GETLK, &lock))
		lock.l_type = F_UNLCK;
	close(fd);
	return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

static int take_lock(struct session *s)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PATH_MAX];

	if (session_file(path, s->dir, "softib.lock"))
		return -1;
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0) {
		complain("cannot open %s: %s", path, strerror(errno));
		return -1;
	}
	if (!fcntl(s->lock_fd, F_SETLK, &lock))
		return 0;
	complain(
		"a fabric is up in %s already (softib process %d); 'softib down %s' ends it",
		s->dir, session_owner(s->dir), strrchr(s->dir, '/') + 1);
	close(s->lock_fd);
	s->lock_fd = -1;
	return -1;
}

/* --- children -------------------------------------------------------------- */

void session_child_output(struct session *s, const char *log)
{
	int null = open("/dev/null", O_RDONLY), out = log_open(s->dir, log);

	if (null < 0 || out < 0)
		_exit(EXIT_FAILURE);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(null);
	close(out);
	setpgid(0, 0);
}

int session_cannot_start(const char *what)
{
	complain("cannot start %s: %s", what, strerror(errno));
	return -1;
}

/* how a child ended, for people */
static void name_end(char text[64], int status)
{
	if (WIFSIGNALED(status))
		snprintf(text, 64, "died by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, 64, "ended with status %d", WEXITSTATUS(status));
}

/* nothing when it was told to end (0), or has said why itself */
static void note_softibd(struct session *s, pid_t pid, int status)
{
	bool failed = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE;
	char end[64];

	name_end(end, status);
	if (status && !(failed && log_left(s->dir)))
		log_note(s->dir, LOG_SOFTIBD, "softibd (pid %d) %s", pid, end);
}

/* --- events ---------------------------------------------------------------- */

static enum event reap(struct session *s)
{
	enum event event = EVENT_TIMEOUT;
	char end[64];
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->command) {
			s->command = 0;
			s->command_status = status;
			event = EVENT_COMMAND_ENDED;
		} else if (pid == s->softibd) {
			s->softibd = 0;
			note_softibd(s, pid, status);
			if (log_left(s->dir))
				log_show(s->dir, LOG_SOFTIBD);
			else
				complain("softibd has ended without an error: another process stopped it");
			event = EVENT_DAEMON_ENDED;
		} else if (pid == s->manager) {
			s->manager = 0;
			name_end(end, status);
			log_note(s->dir, LOG_MANAGER, "%s (pid %d) %s", s->sm, pid, end);
			log_show(s->dir, LOG_MANAGER);
		}
	}
	return event;
}

/* Signals from the terminal reach the command without us; what somebody sent
 * to softib alone is passed on to it. */
static enum event take_signal(struct session *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return EVENT_TIMEOUT;
	if (info.ssi_signo == SIGCHLD)
		return reap(s);
	if (!s->command || info.ssi_signo == SESSION_ABANDONED)
		return EVENT_STOP;
	if (info.ssi_code <= 0) /* SI_USER, SI_QUEUE, SI_TKILL: not the kernel */
		kill(s->command, (int)info.ssi_signo);
	return EVENT_TIMEOUT;
}

enum event session_next_event(struct session *s, int fd, uint64_t deadline_ms)
{
	struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
			       {.fd = fd, .events = POLLIN}};

	for (;;) {
		uint64_t now = now_ms();
		int left = !deadline_ms		? -1
			   : now >= deadline_ms ? 0
						: (int)(deadline_ms - now);
		int n = poll(fds, 2, left);
		enum event event;

		if (n == 0)
			return EVENT_TIMEOUT;
		if (n < 0)
			continue;
		if (fds[0].revents) {
			event = take_signal(s);
			if (event != EVENT_TIMEOUT)
				return event;
		}
		if (fds[1].revents)
			return EVENT_READABLE;
	}
}

/* --- softibd ---------------------------------------------------------------- */

/* Append "@option @value" to the arguments, unless @value is NULL */
static void add_option(char **argv, int *n, const char *option, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = (char *)(uintptr_t)option;
	argv[(*n)++] = (char *)(uintptr_t)value;
}

static pid_t spawn_softibd(struct session *s, const char *program, int ready_fd)
{
	const char *name = strrchr(s->dir, '/') + 1;
	char number[16], *argv[40] = {"softibd"};
	const struct {
		const char *option, *value;
	} options[] = {
		{"--dir", s->dir},
		{"--topology", s->topology},
		{"--ready-fd", number},
		/* a private name is chosen by chance, and the GUIDs must not be */
		{"--name", place_is_private(name) ? PRIVATE_NAME : NULL},
		{"--net", s->net == NET_NODE ? "node" : NULL},
		{"--ip", s->ip[0]},
		{"--ip", s->ip[1]},
		{"--ipoib-mode", s->ipoib_mode},
		{"--hca-profile", s->hca_profile},
		{"--polled", s->polled},
		{"--link-layer", s->link_layer},
		{"--vlan", s->vlans},
		{"--min-ack-timeout", s->min_ack_timeout},
	};
	pid_t parent = getpid(), pid = fork();
	int n = 1;

	if (pid)
		return pid;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		add_option(argv, &n, options[i].option, options[i].value);
	if (s->memlock)
		argv[n++] = "--memlock";
	if (s->net_raw)
		argv[n++] = "--net-raw";
	children_begin(&s->old_mask, SIGTERM, parent);
	session_child_output(s, LOG_SOFTIBD);
	snprintf(number, sizeof(number), "%d", ready_fd);
	fcntl(ready_fd, F_SETFD, 0);
	execv(program, argv);
	fprintf(stderr, "softib: cannot run %s: %s\n", program, strerror(errno));
	_exit(EXIT_FAILURE);
}

static int start_softibd(struct session *s)
{
	char program[PATH_MAX], byte;
	enum event event;
	int ready[2];

	if (place_program("softibd", program))
		return -1;
	if (pipe2(ready, O_CLOEXEC))
		return session_cannot_start("softibd");
	s->softibd = spawn_softibd(s, program, ready[1]);
	close(ready[1]);
	if (s->softibd < 0) {
		s->softibd = 0;
		close(ready[0]);
		return session_cannot_start("softibd");
	}
	event = session_next_event(s, ready[0], now_ms() + READY_TIMEOUT_MS);
	if (event == EVENT_READABLE && read(ready[0], &byte, 1) != 1) /* it is ending */
		event = session_next_event(s, -1, now_ms() + END_TIMEOUT_MS);
	close(ready[0]);
	if (event == EVENT_TIMEOUT)
		complain("softibd does not get ready");
	return event == EVENT_READABLE ? 0 : -1;
}

/* --- the interface ---------------------------------------------------------- */

static int open_signals(struct session *s)
{
	signal(SIGPIPE, SIG_IGN);
	s->signal_fd = children_watch(&s->old_mask);
	return s->signal_fd < 0 ? session_cannot_start("a fabric") : 0;
}

/* Return: 0; -1 (printed) */
static int boot_nodes(struct session *s)
{
	if (s->net != NET_NODE)
		return 0;
	if (!netdev_is_possible())
		complain("no /dev/net/tun: the nodes have addresses, but no ib0, and nothing leads "
			 "from one to another. 'modprobe tun', or in a container '--device "
			 "/dev/net/tun', lets them have it");
	return node_boot_all(s->dir);
}

int session_start(struct session *s)
{
	s->softibd = s->manager = s->command = 0;
	s->signal_fd = -1;
	if (take_lock(s))
		return -1;
	if (!open_signals(s) && !start_softibd(s) && !session_start_manager(s) &&
	    (!strcmp(s->sm, "none") || !session_wait_active(s)) && !boot_nodes(s)) {
		if (s->hca_profile)
			profile_say_less(s->dir);
		return 0;
	}
	session_end(s, false);
	return -1;
}

int session_command(struct session *s, char **argv)
{
	struct node_place at = {
		.no_namespace = s->no_namespace, .devices = s->devices, .sdp = s->sdp};
	pid_t parent = getpid();
	enum event event;

	strcpy(at.dir, s->dir);
	if (node_find(&at, NULL))
		return -1;
	s->command = fork();
	if (s->command < 0) {
		s->command = 0;
		return session_cannot_start(argv[0]);
	}
	if (!s->command) {
		signal(SIGPIPE, SIG_DFL);
		children_begin(&s->old_mask, SIGKILL, parent);
		if (node_enter(&at))
			_exit(EXIT_FAILURE);
		children_begin(&s->old_mask, SIGKILL,
			       parent); /* a new user namespace may drop it */
		_exit(node_exec(argv));
	}
	while (s->command) {
		event = session_next_event(s, -1, 0);
		if (event == EVENT_STOP)
			return -1;
		if (event == EVENT_DAEMON_ENDED && s->command)
			kill(s->command, SIGTERM);
	}
	return s->command_status;
}

void session_serve(struct session *s)
{
	while (s->softibd && session_next_event(s, -1, 0) != EVENT_STOP)
		;
}

static void note_ended(pid_t pid, int status, void *arg)
{
	struct session *s = arg;

	if (pid == s->softibd)
		note_softibd(s, pid, status);
}

/* softibd, the manager, and what the command left behind: that was adopted */
void session_end(struct session *s, bool keep_log)
{
	if (s->lock_fd < 0)
		return;
	if (s->softibd)
		session_end_programs(s->dir);
	children_end(s->signal_fd, note_ended, s);
	if (!keep_log && s->softibd) /* else it was shown when softibd ended */
		log_show(s->dir, LOG_SOFTIBD);
	log_sweep(s->dir, keep_log);
	close(s->lock_fd);
	s->lock_fd = -1;
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}
