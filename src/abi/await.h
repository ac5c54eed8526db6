/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waiting for softibd's answer. softibd answers at once unless it is stopped or hangs.
 * In that case the program or command that waits reports it on stderr and, after the
 * time-out, gives up.
 */
#ifndef SOFTIB_ABI_AWAIT_H
#define SOFTIB_ABI_AWAIT_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ABI_ENV_AWAIT "SOFTIB_TIMEOUT_S" /* seconds; 0: for ever */
#define ABI_AWAIT_S 30
#define ABI_AWAIT_QUIET_MS 1500 /* an answer that takes longer is reported */

/** abi_await_ms() - Return: the time-out; -1: none */
static inline int abi_await_ms(void)
{
	const char *text = getenv(ABI_ENV_AWAIT);
	char *end = NULL;
	long s = text ? strtol(text, &end, 10) : ABI_AWAIT_S;

	if (text && (end == text || *end || s < 0 || s > 86400))
		s = ABI_AWAIT_S;
	return s ? (int)s * 1000 : -1;
}

/**
 * abi_await() - wait for softibd's answer on the connection @sock
 * @who: the name in front of messages on stderr
 * Return: 0: an answer or the end of the connection can be read; -ETIMEDOUT (reported)
 */
static inline int abi_await(int sock, const char *who)
{
	struct pollfd pfd = {.fd = sock, .events = POLLIN};
	struct ucred peer = {.pid = 0};
	socklen_t len = sizeof(peer);
	int left = abi_await_ms();
	int first = left < 0 || left > ABI_AWAIT_QUIET_MS ? ABI_AWAIT_QUIET_MS : left, n;

	while ((n = poll(&pfd, 1, first)) < 0 && errno == EINTR)
		;
	if (n)
		return 0;
	(void)getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	fprintf(stderr, "%s: softibd (process %d) does not answer; waiting\n", who, peer.pid);
	left = left < 0 ? -1 : left - first;
	while ((n = poll(&pfd, 1, left)) < 0 && errno == EINTR)
		;
	if (n)
		return 0;
	fprintf(stderr,
		"%s: softibd (process %d) has not answered for %d s (%s). If it was stopped, "
		"'kill -CONT %d' lets it go on; else 'softib down' ends it\n",
		who, peer.pid, abi_await_ms() / 1000, ABI_ENV_AWAIT, peer.pid);
	return -ETIMEDOUT;
}

#endif
