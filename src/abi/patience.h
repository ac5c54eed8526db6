/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long softibd's answer is waited for. It answers at once unless it is
 * stopped, or spins: then whoever waits says so, and some time later gives up.
 */
#ifndef SOFTIB_ABI_PATIENCE_H
#define SOFTIB_ABI_PATIENCE_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ABI_ENV_PATIENCE "SOFTIB_PATIENCE_S" /* seconds; 0: for ever */
#define ABI_PATIENCE_S	 30
#define ABI_SILENCE_MS	 1500 /* is long for an answer: people are told */

/** abi_patience_ms() - Return: how long to wait in all; -1 for ever */
static inline int abi_patience_ms(void)
{
	const char *text = getenv(ABI_ENV_PATIENCE);
	char *end = NULL;
	long s = text ? strtol(text, &end, 10) : ABI_PATIENCE_S;

	if (text && (end == text || *end || s < 0 || s > 86400))
		s = ABI_PATIENCE_S;
	return s ? (int)s * 1000 : -1;
}

/**
 * abi_await() - wait for softibd's answer on the connection @sock
 * @who: speaks to people, on stderr
 * Return: 0: there is one, or the end; -ETIMEDOUT (said)
 */
static inline int abi_await(int sock, const char *who)
{
	struct pollfd pfd = {.fd = sock, .events = POLLIN};
	struct ucred peer = {.pid = 0};
	socklen_t len = sizeof(peer);
	int left = abi_patience_ms();
	int first = left < 0 || left > ABI_SILENCE_MS ? ABI_SILENCE_MS : left, n;

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
		who, peer.pid, abi_patience_ms() / 1000, ABI_ENV_PATIENCE, peer.pid);
	return -ETIMEDOUT;
}

#endif
