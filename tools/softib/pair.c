/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A server and its client.
 *
 *   starting  the server runs and is not ready: it listens on no TCP port, or
 *             has not printed the text that it was to print
 *   both      it was ready, and the client was started
 *   one       the other has ended: a server whose client failed is asked to
 *             end, since one that spins on its queue would never learn of it;
 *             so is a client whose server failed, when it had the time to say
 *             what it saw
 *
 * Timers: start (--timeout), hint (people are told what is waited for), patience
 * (a program that should end has so long).
 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "children.h"
#include "lines.h"

#define LOOK_MS 10 /* between two looks at what listens */
#define NEVER	UINT64_MAX

struct run {
	struct pair *pair;
	sigset_t old_mask;
	int signal_fd, output_fd; /* what the server prints; -1: it closed it */
	bool text_seen, failed, interrupted;
	uint64_t hint_ms, patience_ms;
	struct lines lines;
	FILE *held; /* of a quiet server: what it printed */
	char *held_text;
	size_t held_bytes;
};

/* --- what the server prints --------------------------------------------------------- */

static void take_output(struct run *r, const char *text, size_t bytes)
{
	const char *wanted = r->pair->ready_text;

	for (size_t i = 0; i < bytes; i++) {
		lines_put(&r->lines, text[i]);
		if (wanted && !r->text_seen)
			r->text_seen = strstr(r->lines.line, wanted);
	}
}

/* Return: false when there is nothing more at the moment */
static bool read_output(struct run *r)
{
	char text[4096];
	ssize_t n = r->output_fd < 0 ? 0 : read(r->output_fd, text, sizeof(text));

	if (n > 0) {
		take_output(r, text, (size_t)n);
		return true;
	}
	/* a terminal that nobody has open any more says EIO */
	if (r->output_fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		close(r->output_fd);
		r->output_fd = -1;
	}
	return false;
}

static void finish_output(struct run *r)
{
	while (read_output(r))
		;
	lines_end(&r->lines);
	if (r->held && !fclose(r->held) && r->failed)
		fputs(r->held_text, stderr);
	free(r->held_text);
	if (r->output_fd >= 0)
		close(r->output_fd);
}

/* A terminal where its lines are wanted as they come: programs print into a pipe
 * by the block. */
static int open_output(const struct pair *pair, int ends[2])
{
	struct termios mode;
	bool live = pair->ready_text || (!pair->quiet && isatty(STDERR_FILENO));

	if (!live || openpty(&ends[0], &ends[1], NULL, NULL, NULL))
		return pipe2(ends, O_CLOEXEC);
	if (!tcgetattr(ends[1], &mode)) {
		cfmakeraw(&mode); /* a newline stays one */
		tcsetattr(ends[1], TCSANOW, &mode);
	}
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

/* --- programs -------------------------------------------------------------- */

/* @output_fd: -1 for the client, which has ours. Return: 0; -1 (printed) */
static int start(struct run *r, struct pair_side *side, int output_fd)
{
	pid_t parent = getpid();
	int null;

	side->pid = fork();
	if (side->pid > 0)
		return 0;
	if (side->pid < 0) {
		side->pid = 0;
		complain("cannot start %s: %s", side->argv[0], strerror(errno));
		return -1;
	}
	signal(SIGPIPE, SIG_DFL);
	children_begin(&r->old_mask, SIGKILL, parent);
	if (output_fd >= 0) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		dup2(null, STDIN_FILENO);
		dup2(output_fd, STDOUT_FILENO);
		dup2(output_fd, STDERR_FILENO);
	}
	if (node_enter(&side->at))
		_exit(EXIT_FAILURE);
	children_begin(&r->old_mask, SIGKILL, parent);
	_exit(node_exec(side->argv));
}

static int start_server(struct run *r)
{
	int ends[2], error;

	if (open_output(r->pair, ends)) {
		complain("cannot start %s: %s", r->pair->server.argv[0], strerror(errno));
		return -1;
	}
	error = start(r, &r->pair->server, ends[1]);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	r->output_fd = ends[0];
	return error;
}

static void ask_to_end(struct pair_side *side)
{
	if (!side->pid)
		return;
	side->asked = true;
	kill(side->pid, SIGTERM);
}

/* --- events ---------------------------------------------------------------- */

static void reap(struct run *r)
{
	struct pair *pair = r->pair;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct pair_side *side = pid == pair->server.pid   ? &pair->server
					 : pid == pair->client.pid ? &pair->client
								   : NULL;

		if (!side)
			continue; /* something that one of them left */
		side->pid = 0;
		side->status = side->asked ? 0 : exit_status(status);
		if (side->status)
			r->failed = true;
		if (side == &pair->client && (side->status || pair->end_server))
			ask_to_end(&pair->server);
		if (side->status || side->asked || pair->end_server)
			r->patience_ms = now_ms() + END_TIMEOUT_MS;
		else
			r->hint_ms = now_ms() + WAIT_QUIET_MS;
	}
}

/* Those from the terminal reach both by themselves. */
static void take_signal(struct run *r)
{
	struct pair_side *sides[] = {&r->pair->server, &r->pair->client};
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(r);
			continue;
		}
		r->failed = r->interrupted = true;
		r->patience_ms = now_ms() + END_TIMEOUT_MS;
		for (int i = 0; i < 2; i++)
			if (sides[i]->pid && info.ssi_code <= 0)
				kill(sides[i]->pid, (int)info.ssi_signo);
	}
}

static void next_event(struct run *r, uint64_t until_ms)
{
	struct pollfd fds[] = {{.fd = r->signal_fd, .events = POLLIN},
			       {.fd = r->output_fd, .events = POLLIN}};
	uint64_t now = now_ms();
	int ms = until_ms == NEVER ? -1 : until_ms > now ? (int)(until_ms - now) : 0;

	if (poll(fds, 2, ms) < 0)
		return;
	if (fds[1].revents)
		read_output(r);
	if (fds[0].revents)
		take_signal(r);
}

/* --- the states ------------------------------------------------------------ */

static void say_hint(struct run *r, const char *text)
{
	if (now_ms() < r->hint_ms)
		return;
	r->hint_ms = NEVER;
	complain("%s on %s %s", r->pair->server.argv[0], r->pair->server.at.node, text);
}

static bool is_ready(const struct run *r)
{
	return r->pair->no_wait ||
	       (r->pair->ready_text ? r->text_seen : children_listen());
}

static void say_not_ready(struct run *r)
{
	const struct pair *pair = r->pair;

	while (read_output(r)) /* which may say why */
		;
	if (pair->server.pid)
		complain("%s on %s is not ready after %ld s (--timeout)",
			 pair->server.argv[0], pair->server.at.node, pair->timeout_s);
	else
		complain("%s on %s ended before it was ready: no client was started",
			 pair->server.argv[0], pair->server.at.node);
}

/* Return: 0; -1 it ended, or people gave up, or the time is over (printed) */
static int await_ready(struct run *r)
{
	struct pair *pair = r->pair;
	uint64_t now = now_ms(), deadline = NEVER;
	bool ready = false;

	if (pair->timeout_s)
		deadline = now + (uint64_t)pair->timeout_s * 1000;
	r->hint_ms = now + WAIT_QUIET_MS;
	while (pair->server.pid && !r->interrupted && !(ready = is_ready(r)) &&
	       now_ms() < deadline) {
		next_event(r, now_ms() + LOOK_MS);
		say_hint(r,
			 pair->ready_text
				 ? "has not printed the text of --ready yet"
				 : "listens on no TCP port yet: --ready TEXT waits for "
				   "what it prints, --no-wait for nothing");
	}
	r->hint_ms = NEVER;
	ready = ready || r->text_seen;
	if (!ready && !r->interrupted)
		say_not_ready(r);
	return ready ? 0 : -1;
}

/* until both have ended, or those that should end have not for too long */
static void await_end(struct run *r)
{
	struct pair *pair = r->pair;
	uint64_t patience;

	while (pair->server.pid || pair->client.pid) {
		patience = r->patience_ms;
		next_event(r, r->hint_ms < patience ? r->hint_ms : patience);
		if (!pair->client.pid && !r->failed && !pair->end_server)
			say_hint(r, "still runs, its client has ended: --end-server "
				    "ends such a server, Ctrl-C this one");
		else
			r->hint_ms = NEVER;
		if (now_ms() < r->patience_ms)
			continue;
		ask_to_end(&pair->server);
		ask_to_end(&pair->client);
		return;
	}
}

/* without a client; a signal has reached the server by another way */
static void give_up(struct run *r)
{
	r->failed = true;
	if (r->interrupted)
		return;
	r->patience_ms = now_ms() + END_TIMEOUT_MS;
	ask_to_end(&r->pair->server);
}

int pair_run(struct pair *pair)
{
	struct run r = {
		.pair = pair, .output_fd = -1, .hint_ms = NEVER, .patience_ms = NEVER};

	r.signal_fd = children_watch(&r.old_mask);
	if (r.signal_fd < 0)
		return complain("cannot start: %s", strerror(errno));
	if (pair->quiet)
		r.held = open_memstream(&r.held_text, &r.held_bytes);
	r.lines.label = pair->server.at.node;
	r.lines.to = r.held ? r.held : stderr;
	if (start_server(&r) || await_ready(&r) || start(&r, &pair->client, -1))
		give_up(&r);
	await_end(&r);
	children_end(r.signal_fd, NULL, NULL);
	finish_output(&r);
	close(r.signal_fd);
	if (pair->server.status > pair->client.status)
		return pair->server.status;
	return pair->client.status ? pair->client.status
	       : r.failed	   ? EXIT_FAILURE
				   : EXIT_SUCCESS;
}
