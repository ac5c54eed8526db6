/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What two programs may say to a device file that has a socket of commands and one of events: one program of node n1
 * and one of node n2, which a network connects. The input is a list of messages, each headed by two bytes: of whom and
 * what it is, and its length in 4-byte words. softibd must answer each command but those that it is only told.
 */
#ifndef FUZZ_TWO_PROGRAMS_H
#define FUZZ_TWO_PROGRAMS_H

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/session.h"
#include "access/listener.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/rt_posix.h"

/* the lowest bit says whose it is; the rest: */
enum what { COMMAND, NEWS, OPENING, GONE, WHATS };

struct program {
	int news, commands; /* -1: not open */
};

static struct rt *rt;
static struct program program[2] = {{-1, -1}, {-1, -1}};

/* --- of the target --- */

/** serve() - begin a session of the endpoint */
static void serve(int fd, const struct peer *peer);
/** is_answered() - Return: false: softibd is only told of the command */
static bool is_answered(const uint8_t *bytes, size_t len);

/* --- */

static inline void turn(int n)
{
	while (n--)
		rt_posix_turn(rt);
}

static inline void leave(struct program *p)
{
	if (p->news >= 0)
		close(p->news);
	if (p->commands >= 0)
		close(p->commands);
	*p = (struct program){-1, -1};
	turn(3);
}

static inline void enter(struct program *p, const void *open, size_t bytes)
{
	char reply[256];
	struct peer peer = {.pid = getpid()};
	int pair[2];

	leave(p);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
		abort();
	p->news = pair[0];
	serve(pair[1], &peer);
	send(p->news, open, bytes, MSG_NOSIGNAL);
	turn(2);
	rt_receive(p->news, reply, sizeof(reply), MSG_DONTWAIT, &p->commands, 1);
}

/* each command is answered, and what it brings about is waited for */
static inline void command(struct program *p, const uint8_t *bytes, size_t len)
{
	char answer[4096];

	if (p->commands < 0 || !len ||
	    send(p->commands, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		return;
	turn(8);
	if ((recv(p->commands, answer, sizeof(answer), MSG_DONTWAIT) > 0) != is_answered(bytes, len))
		abort();
}

static inline void take_news(struct program *p)
{
	char bytes[4096];

	turn(4);
	while (p->news >= 0 && recv(p->news, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static inline void say(const uint8_t head, const uint8_t *bytes, size_t len)
{
	struct program *p = &program[head & 1];

	switch (head / 2 % WHATS) {
	case COMMAND: command(p, bytes, len); break;
	case NEWS: take_news(p); break;
	case OPENING: enter(p, bytes, len); break;
	case GONE: leave(p); break;
	}
}

/** two_programs() - open both by the @kind of opening message, say all that the input has, and close both */
static inline void two_programs(enum abi_open_kind kind, const uint8_t *data, size_t size)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = kind, .port = 1,
				.device = "fake0"};

	for (int i = 0; i < 2; i++) {
		strcpy(open.node, i ? "n2" : "n1");
		enter(&program[i], &open, sizeof(open));
	}
	while (size >= 2) {
		size_t len = MIN((size_t)data[1] * 4, size - 2);

		say(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	leave(&program[0]);
	leave(&program[1]);
	turn(8);
}

#endif
