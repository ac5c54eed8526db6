/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program that says anything on the uverbs socket. The input is a list of
 * messages: a byte that tells what kind, a byte of length in words, the
 * words. When the connection ends, nothing may be left of it.
 */
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/core/fake_device.h"
#include "access/uverbs.h"
#include "runtime/posix/rt_posix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RAW 0x80 /* kind: the words are the whole message */

static struct rt *rt;
static struct uverbs *uverbs;
static struct fake *fake;

static void make_world(void)
{
	if (rt)
		return;
	if (rt_posix_create(&rt) || uverbs_create(rt, NULL, &uverbs))
		abort();
	fake = fake_create(rt, "n1");
	if (ib_register_device(&fake->ib, "softib0"))
		abort();
}

static int connect_peer(void)
{
	const struct peer peer = {.pid = 1, .comm = "fuzz", .may_lock = true};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		abort();
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	uverbs_serve(uverbs, pair[1], &peer);
	return pair[0];
}

/* Descriptors in the answer are closed by the kernel: there is no room for them. */
static void say(int sock, const void *message, size_t bytes)
{
	char answer[4096];

	if (send(sock, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	rt_posix_turn(rt);
	(void)recv(sock, answer, sizeof(answer), MSG_DONTWAIT);
}

static void say_command(int sock, uint8_t kind, const uint8_t *words, size_t bytes)
{
	union {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t bytes[sizeof(struct ib_uverbs_cmd_hdr) + 255 * 4];
	} message;

	if (kind & RAW) {
		say(sock, words, bytes);
		return;
	}
	message.hdr = (struct ib_uverbs_cmd_hdr){
		.command = kind, .in_words = (uint16_t)((sizeof(message.hdr) + bytes) / 4)};
	memcpy(message.bytes + sizeof(message.hdr), words, bytes);
	say(sock, &message, sizeof(message.hdr) + bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct abi_open open = {ABI_MAGIC, ABI_VERSION, ABI_OPEN_UVERBS, 0, "", "softib0"};
	const uint64_t nothing = 0;
	int sock;

	make_world();
	sock = connect_peer();
	/* an odd input begins at the very start, others past the opening */
	if (!(size & 1)) {
		say(sock, &open, sizeof(open));
		say_command(sock, IB_USER_VERBS_CMD_GET_CONTEXT, (const void *)&nothing,
			    sizeof(nothing));
	}
	while (size >= 2) {
		size_t bytes = MIN((size_t)data[1] * 4, (size - 2) & ~(size_t)3);

		say_command(sock, data[0], data + 2, bytes);
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	close(sock);
	for (int i = 0; i < 3; i++)
		rt_posix_turn(rt);
	if (fake->live || fake->reserved || fake->ib.reserved_qps || uverbs_num_sessions(uverbs)) {
		fprintf(stderr, "%d objects, %d and %u reserved, %u sessions left\n", fake->live, fake->reserved,
			fake->ib.reserved_qps, uverbs_num_sessions(uverbs));
		abort();
	}
	return 0;
}
