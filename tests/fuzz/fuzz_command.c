/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The softib command before a softibd that says anything on the control
 * socket, and its scenario files. The first byte chooses the command; then
 * come texts, each ended by a 0 byte: for `fault run` the file, then the
 * answers, one for each connection. An answer that begins with '*' has the
 * rest of it in a memfd.
 */
#include <stdio.h>

#include "../../tools/softib/softib.h"
#include "abi/session.h"
#include "hostile.h"

int softib_main(int argc, char **argv);

static const char *input;
static size_t input_left;

static const char *const commands[][8] = {
	{"softib", "status"},
	{"softib", "topo"},
	{"softib", "topo", "--format", "dot"},
	{"softib", "topo", "--format", "ibnetdiscover"},
	{"softib", "counters"},
	{"softib", "resource", "show"},
	{"softib", "link", "s1:1", "down"},
	{"softib", "fault", "list"},
	{"softib", "fault", "add", "link n1:1 drop"},
	{"softib", "fault", "log"},
	{"softib", "fault", "clear"},
	{"softib", "status", "--json"},
	{"softib", "fault", "run", "--timeout", "0.001", "FILE"},
};

static bool next_text(const char **text, size_t *len)
{
	const char *end;

	if (!input_left)
		return false;
	end = memchr(input, 0, input_left);
	*text = input;
	*len = end ? (size_t)(end - input) : input_left;
	input_left -= MIN(*len + 1, input_left);
	input += *len + 1;
	return true;
}

static void hostile_answer(int sock, unsigned nth)
{
	struct iovec iov;
	const char *text;
	char head[64];
	size_t len;
	int fd[1];

	if (!next_text(&text, &len) || len > ABI_MESSAGE_MAX)
		return;
	iov = (struct iovec){(void *)text, len};
	if (!len || text[0] != '*') {
		hostile_send(sock, &iov, 1, NULL, 0);
		return;
	}
	fd[0] = hostile_memory(0);
	check(write(fd[0], text + 1, len - 1) == (ssize_t)len - 1);
	iov = (struct iovec){head, (size_t)snprintf(head, sizeof(head), "{\"bytes\":%zu}", len - 1)};
	hostile_send(sock, &iov, 1, fd, 1);
}

/* @file: a name of the scenario, for the command that takes one. Return: its descriptor */
static int scenario(char *file, size_t bytes)
{
	const char *text;
	size_t len;
	int fd;

	if (!next_text(&text, &len))
		return -1;
	fd = hostile_memory(0);
	check(write(fd, text, len) == (ssize_t)len);
	snprintf(file, bytes, "/proc/self/fd/%d", fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const *command;
	char words[8][64], *argv[9] = {0};
	int argc = 0, before, fd = -1;

	if (!size)
		return 0;
	setenv(ABI_ENV_DIR, "/tmp", 1);
	before = open_fds();
	command = commands[data[0] % ARRAY_SIZE(commands)];
	input = (const char *)data + 1;
	input_left = size - 1;
	for (; command[argc]; argc++) {
		argv[argc] = strcpy(words[argc], command[argc]); /* theirs to change */
		if (strcmp(argv[argc], "FILE"))
			continue;
		fd = scenario(words[argc], sizeof(words[argc]));
		if (fd < 0)
			return 0;
	}
	softib_main(argc, argv);
	hostile_drop(&fd);
	hostile_end(before);
	return 0;
}
