/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "children.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int children_watch(sigset_t *old)
{
	static const int numbers[] = {SIGCHLD, SIGINT,	SIGTERM,
				      SIGHUP,  SIGQUIT, SESSION_ABANDONED};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&mask, numbers[i]);
	sigprocmask(SIG_BLOCK, &mask, old);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

void children_begin(const sigset_t *old, int death, pid_t parent)
{
	sigprocmask(SIG_SETMASK, old, NULL);
	prctl(PR_SET_PDEATHSIG, death);
	if (getppid() != parent) /* it died before the line above */
		_exit(EXIT_FAILURE);
}

int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static FILE *open_children_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	return fopen(path, "re");
}

static void signal_children(int number)
{
	FILE *list = open_children_of(getpid());
	int pid;

	while (list && fscanf(list, "%d", &pid) == 1)
		kill(pid, number);
	if (list)
		fclose(list);
}

struct ended {
	void (*fn)(pid_t pid, int status, void *arg);
	void *arg;
};

/* Signal all children until none is left or the time is over.
 * Return: true when none is left */
static bool end_all(int signal_fd, int number, const struct ended *ended)
{
	uint64_t deadline_ms = now_ms() + END_TIMEOUT_MS;
	struct pollfd pfd = {.fd = signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	for (;;) {
		signal_children(number);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended->fn)
				ended->fn(pid, status, ended->arg);
		if (pid < 0 && errno == ECHILD)
			return true;
		if (now_ms() >= deadline_ms)
			return false;
		if (poll(&pfd, 1, (int)(deadline_ms - now_ms())) > 0)
			(void)!read(signal_fd, &info, sizeof(info));
	}
}

void children_end(int signal_fd, void (*fn)(pid_t pid, int status, void *arg), void *arg)
{
	struct ended ended = {fn, arg};

	if (!end_all(signal_fd, SIGTERM, &ended))
		end_all(signal_fd, SIGKILL, &ended);
}
