/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The subnet manager of a fabric: softib-sm or opensm, on its first node. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_private.h"
#include "wire/smp.h"

/* that of the default partition, as opensm has it, but for the MTU of the broadcast group */
static int write_partitions(const char *path, const char *mtu)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -1;
	fprintf(out, "Default=0x7fff, ipoib, mtu=%d : ALL=full, SELF=full;\n",
		strcmp(mtu, "4096") ? WIRE_MTU_2048 : WIRE_MTU_4096);
	return fclose(out);
}

/* @program with the options @own and then those of the user */
static void exec_manager(const struct session *s, const char *program, char *const own[])
{
	size_t n = 0, more = 0;
	char **argv;

	while (own[n])
		n++;
	while (s->sm_options && s->sm_options[more])
		more++;
	argv = calloc(n + more + 1, sizeof(*argv));
	if (!argv)
		return;
	memcpy(argv, own, n * sizeof(*argv));
	if (more)
		memcpy(argv + n, s->sm_options, more * sizeof(*argv));
	execvp(program, argv);
}

static void exec_opensm(struct session *s)
{
	char dir[PATH_MAX], log[PATH_MAX + 16], partitions[PATH_MAX + 16];
	char *argv[] = {"opensm", "--log_file", log, "--erase_log_file", NULL, NULL, NULL};

	if (session_file(dir, s->dir, MANAGER_FILES))
		return;
	snprintf(log, sizeof(log), "%s/opensm.log", dir);
	snprintf(partitions, sizeof(partitions), "%s/partitions.conf", dir);
	if (s->ipoib_mtu) {
		if (write_partitions(partitions, s->ipoib_mtu))
			return;
		argv[4] = "--Pconfig";
		argv[5] = partitions;
	}
	exec_manager(s, argv[0], argv);
}

static void exec_softib_sm(const struct session *s)
{
	char program[PATH_MAX], ipoib[32] = "--ipoib"; /* as opensm does */
	char *const argv[] = {"softib-sm", ipoib, NULL};

	if (s->ipoib_mtu)
		snprintf(ipoib, sizeof(ipoib), "--ipoib=%s", s->ipoib_mtu);
	if (!place_program("softib-sm", program))
		exec_manager(s, program, argv);
}

int session_start_manager(struct session *s)
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
		return session_cannot_start(s->sm);
	}
	if (s->manager)
		return 0;
	children_begin(&s->old_mask, SIGTERM, parent);
	session_child_output(s, LOG_MANAGER);
	(void)node_enter(&at); /* it needs no device files */
	if (!strcmp(s->sm, "opensm"))
		exec_opensm(s);
	else
		exec_softib_sm(s);
	fprintf(stderr, "softib: cannot run %s: %s\n", s->sm, strerror(errno));
	_exit(127);
}

/* the answer to the wait has come. Return: 0; -1 it is an error (printed) */
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

int session_wait_active(struct session *s)
{
	uint64_t report = now_ms() + WAIT_QUIET_MS;
	uint64_t deadline = s->timeout_s ? now_ms() + s->timeout_s * 1000ull : UINT64_MAX;
	struct json_object *req = request("wait");
	int fd = client_open(s->dir), error = fd < 0 ? fd : 0;
	enum event event = EVENT_TIMEOUT;

	request_text(req, "until", "active");
	if (!error)
		error = client_send(fd, req);
	json_object_put(req);
	while (!error && event == EVENT_TIMEOUT && now_ms() < deadline) {
		event = session_next_event(s, fd, report < deadline ? report : deadline);
		if (event != EVENT_TIMEOUT)
			break;
		client_say_progress(s->dir, s->sm);
		report = now_ms() + WAIT_PROGRESS_MS;
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
