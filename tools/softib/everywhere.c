/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One command on every node. All start at once, since they may wait for each other.
 * It lasts until the last has ended; what one left in the background goes on, and
 * what that prints is lost.
 */
#include "everywhere.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "lines.h"

enum { OUT, ERR, OUTPUTS };

struct branch {
	struct node_place at;
	pid_t pid;	 /* 0: not running */
	int fd[OUTPUTS]; /* what it prints; -1: it closed it */
	struct lines lines[OUTPUTS];
};

struct everywhere {
	char **argv;
	sigset_t old_mask;
	struct rlimit old_limit;
	int signal_fd;
	struct branch *branch;
	size_t count, running;
	struct pollfd *polled; /* OUTPUTS each, then the signals */
	int worst;
};

/* --- what they print ------------------------------------------------------- */

/* Return: false when there is nothing more at the moment */
static bool read_output(struct branch *branch, int output)
{
	char text[4096];
	ssize_t n;

	if (branch->fd[output] < 0)
		return false;
	n = read(branch->fd[output], text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		lines_put(&branch->lines[output], text[i]);
	fflush(branch->lines[output].to); /* whoever reads it sees it now */
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return n > 0;
	close(branch->fd[output]);
	branch->fd[output] = -1;
	return false;
}

static void finish_output(struct branch *branch)
{
	for (int o = 0; o < OUTPUTS; o++) {
		while (read_output(branch, o))
			;
		lines_end(&branch->lines[o]);
		if (branch->fd[o] >= 0)
			close(branch->fd[o]);
		branch->fd[o] = -1;
	}
}

/* --- starting -------------------------------------------------------------- */

static void become_command(const struct everywhere *all, struct branch *branch,
			   const int *ends, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setrlimit(RLIMIT_NOFILE, &all->old_limit);
	signal(SIGPIPE, SIG_DFL);
	children_begin(&all->old_mask, SIGKILL, parent);
	dup2(null, STDIN_FILENO);
	dup2(ends[OUT], STDOUT_FILENO);
	dup2(ends[ERR], STDERR_FILENO);
	if (node_enter(&branch->at))
		_exit(EXIT_FAILURE);
	children_begin(&all->old_mask, SIGKILL, parent);
	_exit(node_exec(all->argv));
}

/* Return: 0; -1 and errno: nothing was started */
static int start(struct everywhere *all, struct branch *branch)
{
	int out[2], err[2];
	pid_t parent = getpid();

	if (pipe2(out, O_CLOEXEC))
		return -1;
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return -1;
	}
	branch->pid = fork();
	if (!branch->pid)
		become_command(all, branch, (int[]){out[1], err[1]}, parent);
	close(out[1]);
	close(err[1]);
	branch->fd[OUT] = out[0];
	branch->fd[ERR] = err[0];
	for (int o = 0; o < OUTPUTS; o++)
		fcntl(branch->fd[o], F_SETFL, O_NONBLOCK);
	if (branch->pid < 0) {
		branch->pid = 0;
		return -1;
	}
	all->running++;
	return 0;
}

static void fail_one(struct everywhere *all, const struct branch *branch)
{
	complain("cannot start %s on %s: %s", all->argv[0], branch->at.node,
		 strerror(errno));
	if (!all->worst)
		all->worst = EXIT_FAILURE;
}

/* --- events ---------------------------------------------------------------- */

static void reap(struct everywhere *all)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < all->count; i++) {
			if (all->branch[i].pid != pid)
				continue;
			all->branch[i].pid = 0;
			all->running--;
			if (exit_status(status) > all->worst)
				all->worst = exit_status(status);
			finish_output(&all->branch[i]);
		}
	}
}

/* Those from the terminal reach all by themselves. */
static void take_signals(struct everywhere *all)
{
	struct signalfd_siginfo info;

	while (read(all->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(all);
			continue;
		}
		for (size_t i = 0; i < all->count; i++)
			if (all->branch[i].pid && info.ssi_code <= 0)
				kill(all->branch[i].pid, (int)info.ssi_signo);
	}
}

static void next_event(struct everywhere *all)
{
	struct pollfd *signals = &all->polled[all->count * OUTPUTS];

	for (size_t i = 0; i < all->count; i++)
		for (int o = 0; o < OUTPUTS; o++)
			all->polled[i * OUTPUTS + o] = (struct pollfd){
				.fd = all->branch[i].fd[o], .events = POLLIN};
	*signals = (struct pollfd){.fd = all->signal_fd, .events = POLLIN};
	if (poll(all->polled, all->count * OUTPUTS + 1, -1) <= 0)
		return;
	for (size_t i = 0; i < all->count * OUTPUTS; i++)
		if (all->polled[i].revents)
			read_output(&all->branch[i / OUTPUTS], (int)(i % OUTPUTS));
	if (signals->revents)
		take_signals(all);
}

/* --- all of it ------------------------------------------------------------- */

/* two pipes for each: take what the system allows */
static void raise_limit(struct everywhere *all)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &all->old_limit);
	limit = all->old_limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct branch *make_branches(const struct node_place *places, size_t count)
{
	struct branch *branch = calloc(count, sizeof(*branch));

	for (size_t i = 0; branch && i < count; i++) {
		branch[i].at = places[i];
		for (int o = 0; o < OUTPUTS; o++) {
			branch[i].fd[o] = -1;
			branch[i].lines[o].label = branch[i].at.node;
			branch[i].lines[o].to = o == OUT ? stdout : stderr;
		}
	}
	return branch;
}

static void run(struct everywhere *all)
{
	raise_limit(all);
	for (size_t i = 0; i < all->count; i++)
		if (start(all, &all->branch[i]))
			fail_one(all, &all->branch[i]);
	while (all->running)
		next_event(all);
}

int everywhere_run(const struct node_place *at, char **argv)
{
	struct everywhere all = {.argv = argv};
	struct node_place *places = node_all(at, &all.count);

	if (!places)
		return EXIT_FAILURE;
	all.branch = make_branches(places, all.count);
	all.polled = calloc(all.count * OUTPUTS + 1, sizeof(*all.polled));
	free(places);
	all.signal_fd = children_watch(&all.old_mask);
	if (!all.branch || !all.polled || all.signal_fd < 0)
		all.worst = complain("cannot start: %s", strerror(errno));
	else
		run(&all);
	free(all.branch);
	free(all.polled);
	if (all.signal_fd >= 0)
		close(all.signal_fd);
	return all.worst;
}
