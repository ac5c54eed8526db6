/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A client that says anything on the control socket, over a fabric of two
 * adapters. The input is a list of requests, each ended by a 0 byte. Each is
 * answered by one JSON object, or waits; nothing else may end the connection.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/session.h"
#include "daemon/cable_address.h"
#include "daemon/control.h"
#include "ulp/srp/srp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rt *rt;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void make_world(void)
{
	static const struct control_ops ops = {.topology = "pair"};
	static char dir[] = "/tmp/softib-fuzz-XXXXXX";
	struct topology *topo;
	struct control *control;
	struct fabric *fab;
	char err[256];

	if (rt)
		return;
	if (!mkdtemp(dir) || rt_posix_create(&rt) ||
	    topo_load("pair", "fuzz", &topo, err, sizeof(err)) || fab_create(rt, topo, &fab) ||
	    srp_init(rt, dir) ||
	    control_create(rt, fab, dir, &ops, &control))
		abort();
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", dir);
}

static int connect_peer(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (struct sockaddr *)&address, sizeof(address)))
		abort();
	rt_posix_turn(rt);
	return sock;
}

/* Return: false when there is no answer: the request waits */
static bool ask(int sock, const void *request, size_t bytes)
{
	static char text[ABI_MESSAGE_MAX + 1];
	struct json_object *answer;
	ssize_t n;

	if (send(sock, request, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		abort();
	rt_posix_turn(rt);
	rt_posix_turn(rt);
	n = recv(sock, text, ABI_MESSAGE_MAX, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		abort();
	text[n] = 0;
	answer = json_tokener_parse(text);
	if (!json_object_is_type(answer, json_type_object))
		abort();
	json_object_put(answer);
	return true;
}

/* an address of a cable, which is part of a request, but which softibd would listen at or connect to */
static void take_address(const uint8_t *data, size_t bytes)
{
	struct cable_address addr;
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(bytes, sizeof(text) - 1), (const char *)data);
	if (cable_address_parse(text, &addr) && addr.len > sizeof(addr))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int sock;

	make_world();
	sock = connect_peer();
	while (size) {
		const uint8_t *end = memchr(data, 0, size);
		size_t bytes = end ? (size_t)(end - data) : size;

		take_address(data, bytes);
		if (bytes && !ask(sock, data, bytes)) {
			close(sock); /* more would end the wait, and the connection */
			rt_posix_turn(rt);
			sock = connect_peer();
		}
		bytes = MIN(bytes + 1, size);
		data += bytes;
		size -= bytes;
	}
	close(sock);
	rt_posix_turn(rt);
	return 0;
}
