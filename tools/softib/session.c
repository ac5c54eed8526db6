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
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softib.h"

#define READY_TIMEOUT_MS 60000 /* for softibd to serve: it reads a file, no more */
#define QUIET_MS	 3000  /* before people are told what takes so long */
#define PROGRESS_MS	 5000
#define END_TIMEOUT_MS	 5000 /* between SIGTERM and SIGKILL */

#define MANAGER_FILES "osm" /* opensm's caches and logs */

enum event {
	EVENT_TIMEOUT,
	EVENT_READABLE,
	EVENT_STOP,
	EVENT_DAEMON_ENDED,
	EVENT_COMMAND_ENDED
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int file_in(char path[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -1;
}

/* --- the lock, what is left ---------------------------------------------- */

pid_t session_owner(const char *dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PATH_MAX];
	int fd;

	if (file_in(path, dir, "softib.lock"))
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

	if (file_in(path, s->dir, "softib.lock"))
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

/* what fork()ed children do first. @death is the signal that they get when
 * this process dies, @parent is this process */
static void child_begin(struct session *s, int death, pid_t parent)
{
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	prctl(PR_SET_PDEATHSIG, death);
	if (getppid() != parent) /* it died before the line above */
		_exit(EXIT_FAILURE);
}

static void child_output(struct session *s, const char *log)
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

static int cannot_start(const char *what)
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
				complain("softibd ended: somebody told it to");
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

/* the next event, at most until @deadline_ms (0: for ever) */
static enum event next_event(struct session *s, int fd, uint64_t deadline_ms)
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

static pid_t spawn_softibd(struct session *s, const char *program, int ready_fd)
{
	char number[16];
	char *const argv[] = {"softibd",	   "--dir",	 s->dir, "--topology",
			      (char *)s->topology, "--ready-fd", number, NULL};
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	child_begin(s, SIGTERM, parent);
	child_output(s, LOG_SOFTIBD);
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
		return cannot_start("softibd");
	s->softibd = spawn_softibd(s, program, ready[1]);
	close(ready[1]);
	if (s->softibd < 0) {
		s->softibd = 0;
		close(ready[0]);
		return cannot_start("softibd");
	}
	event = next_event(s, ready[0], now_ms() + READY_TIMEOUT_MS);
	if (event == EVENT_READABLE && read(ready[0], &byte, 1) != 1) /* it is ending */
		event = next_event(s, -1, now_ms() + END_TIMEOUT_MS);
	close(ready[0]);
	if (event == EVENT_TIMEOUT)
		complain("softibd does not get ready");
	return event == EVENT_READABLE ? 0 : -1;
}

/* --- the subnet manager ----------------------------------------------------- */

/* opensm lies where only root's PATH leads */
static void exec_opensm(struct session *s)
{
	static const char *const places[] = {"opensm", "/usr/sbin/opensm",
					     "/usr/local/sbin/opensm"};
	char dir[PATH_MAX], log[PATH_MAX + 16];
	char *const argv[] = {"opensm", "--log_file", log, "--erase_log_file", NULL};

	if (file_in(dir, s->dir, MANAGER_FILES) || (mkdir(dir, 0700) && errno != EEXIST))
		return;
	snprintf(log, sizeof(log), "%s/opensm.log", dir);
	setenv("OSM_TMP_DIR", dir, 1);
	setenv("OSM_CACHE_DIR", dir, 1);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		execvp(places[i], argv);
}

static void exec_softib_sm(void)
{
	char program[PATH_MAX];
	char *const argv[] = {"softib-sm", NULL};

	if (!place_program("softib-sm", program))
		execv(program, argv);
}

static int start_manager(struct session *s)
{
	struct node_place at = {.no_namespace = true};
	pid_t parent = getpid();

	if (!strcmp(s->sm, "none"))
		return 0;
	strcpy(at.dir, s->dir);
	if (node_find(&at, NULL))
		return -1;
	s->manager = fork();
	if (s->manager < 0) {
		s->manager = 0;
		return cannot_start(s->sm);
	}
	if (s->manager)
		return 0;
	child_begin(s, SIGTERM, parent);
	child_output(s, LOG_MANAGER);
	node_enter(&at);
	if (!strcmp(s->sm, "opensm"))
		exec_opensm(s);
	else
		exec_softib_sm();
	fprintf(stderr, "softib: cannot run %s: %s\n", s->sm, strerror(errno));
	_exit(127);
}

static void say_progress(struct session *s)
{
	struct json_object *answer = client_call_quiet(s->dir, request("status"));
	struct json_object *ports = member_of(answer, "ports");
	int64_t active = number_of(ports, "active");

	if (ports)
		fprintf(stderr, "softib: %s: %lld of %lld ports Active\n", s->sm,
			(long long)active,
			(long long)(active + number_of(ports, "armed") +
				    number_of(ports, "init") + number_of(ports, "down")));
	json_object_put(answer);
}

/* the answer to the wait has come. Return: 0; -1 it is an error (said) */
static int take_wait_answer(int fd)
{
	struct json_object *answer = client_receive(fd);
	int error = !answer || member_of(answer, "error") ? -1 : 0;

	if (!answer)
		complain("softibd does not answer: %s", strerror(errno));
	else if (error)
		complain("%s", text_of(answer, "error"));
	json_object_put(answer);
	return error;
}

static int wait_active(struct session *s)
{
	uint64_t report = now_ms() + QUIET_MS;
	uint64_t deadline = s->timeout_s ? now_ms() + s->timeout_s * 1000ull : UINT64_MAX;
	struct json_object *req = request("wait");
	int fd = client_open(s->dir), error = fd < 0 ? fd : 0;
	enum event event = EVENT_TIMEOUT;

	request_text(req, "until", "active");
	if (!error)
		error = client_send(fd, req);
	json_object_put(req);
	while (!error && event == EVENT_TIMEOUT && now_ms() < deadline) {
		event = next_event(s, fd, report < deadline ? report : deadline);
		if (event != EVENT_TIMEOUT)
			break;
		say_progress(s);
		report = now_ms() + PROGRESS_MS;
		if (!s->manager) /* reap() said how it ended */
			break;
	}
	if (error)
		complain("cannot ask softibd: %s", strerror(-error));
	else if (event == EVENT_READABLE)
		error = take_wait_answer(fd);
	else if (event == EVENT_TIMEOUT && s->manager)
		error = complain(
			"%s did not bring all ports to Active within %u s (--timeout); "
			"its log is below",
			s->sm, s->timeout_s);
	if (event == EVENT_TIMEOUT && s->manager)
		log_show(s->dir, LOG_MANAGER);
	if (fd >= 0)
		close(fd);
	return error || event != EVENT_READABLE ? -1 : 0;
}

/* --- the interface ---------------------------------------------------------- */

static int open_signals(struct session *s)
{
	static const int numbers[] = {SIGCHLD, SIGINT,	SIGTERM,
				      SIGHUP,  SIGQUIT, SESSION_ABANDONED};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&mask, numbers[i]);
	sigprocmask(SIG_BLOCK, &mask, &s->old_mask);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? cannot_start("a fabric") : 0;
}

int session_start(struct session *s)
{
	s->softibd = s->manager = s->command = 0;
	s->signal_fd = -1;
	if (take_lock(s))
		return -1;
	if (!open_signals(s) && !start_softibd(s) && !start_manager(s) &&
	    (!strcmp(s->sm, "none") || !wait_active(s)))
		return 0;
	session_end(s, false);
	return -1;
}

int session_command(struct session *s, char **argv, bool no_namespace)
{
	struct node_place at = {.no_namespace = no_namespace};
	pid_t parent = getpid();
	enum event event;

	strcpy(at.dir, s->dir);
	if (node_find(&at, NULL))
		return -1;
	s->command = fork();
	if (s->command < 0) {
		s->command = 0;
		return cannot_start(argv[0]);
	}
	if (!s->command) {
		signal(SIGPIPE, SIG_DFL);
		child_begin(s, SIGKILL, parent);
		node_enter(&at);
		child_begin(s, SIGKILL, parent); /* a new user namespace may drop it */
		_exit(node_exec(argv));
	}
	while (s->command) {
		event = next_event(s, -1, 0);
		if (event == EVENT_STOP)
			return -1;
		if (event == EVENT_DAEMON_ENDED && s->command)
			kill(s->command, SIGTERM);
	}
	return s->command_status;
}

void session_serve(struct session *s)
{
	while (s->softibd && next_event(s, -1, 0) != EVENT_STOP)
		;
}

/* softibd, the manager, and what the command left behind: that was adopted */
static void signal_children(int number)
{
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	list = fopen(path, "re");
	if (!list)
		return;
	while (fscanf(list, "%d", &pid) == 1)
		kill(pid, number);
	fclose(list);
}

/* Signal all children, and theirs as they come to us, until none is left or
 * the time is over. Return: true when none is left */
static bool end_children(struct session *s, int number, uint64_t deadline_ms)
{
	struct pollfd pfd = {.fd = s->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	for (;;) {
		signal_children(number);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == s->softibd)
				note_softibd(s, pid, status);
		if (pid < 0 && errno == ECHILD)
			return true;
		if (now_ms() >= deadline_ms)
			return false;
		if (poll(&pfd, 1, (int)(deadline_ms - now_ms())) > 0)
			(void)!read(s->signal_fd, &info, sizeof(info));
	}
}

/* All are asked at once; whoever does not listen is killed. */
void session_end(struct session *s, bool keep_log)
{
	if (s->lock_fd < 0)
		return;
	if (!end_children(s, SIGTERM, now_ms() + END_TIMEOUT_MS))
		end_children(s, SIGKILL, now_ms() + END_TIMEOUT_MS);
	if (!keep_log && s->softibd) /* else it was shown when softibd ended */
		log_show(s->dir, LOG_SOFTIBD);
	log_sweep(s->dir, keep_log);
	close(s->lock_fd);
	s->lock_fd = -1;
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}
