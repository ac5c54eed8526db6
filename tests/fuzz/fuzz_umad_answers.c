/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A softibd that says anything to our libibumad: lists, ports, the opening,
 * the ioctl socket, and the records of MADs. The input is a list of messages,
 * each a byte of kind, a byte of length in words, and the words.
 */
#include <errno.h>
#include <infiniband/umad.h>

#include "abi/session.h"
#include "hostile.h"

enum kind { PLAIN, OPENED, MEMFD, TWO_MEMFDS, LIST, PORT, CONTROL, RECORD, KINDS };

#define CALLS 24

static const uint8_t *input;
static size_t input_left;
static int control_fd = -1;

/* the ioctl socket: its answers are in it when it is handed over */
static int make_control(void)
{
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	hostile_drop(&control_fd);
	control_fd = pair[1];
	return pair[0];
}

/* a memfd of what the words say, and beyond */
static int make_record(const uint8_t *bytes, size_t len)
{
	int fd = hostile_memory(len);

	check(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	return fd;
}

static unsigned make_fds(enum kind kind, int fds[2], const uint8_t *bytes, size_t len)
{
	switch (kind) {
	case OPENED:
		fds[0] = make_control();
		return 1;
	case TWO_MEMFDS:
		fds[1] = make_record(bytes, len);
		/* fall through */
	case MEMFD:
		fds[0] = make_record(bytes, len);
		return kind == MEMFD ? 1 : 2;
	default:
		return 0;
	}
}

static size_t fill(enum kind kind, const uint8_t *bytes, size_t len, uint8_t *body)
{
	struct abi_device_info info = {.name = "softib0", .num_ports = 1};
	struct abi_port_info port = {.lid = 1, .state = 4, .num_pkeys = 1};

	memcpy(body, bytes, len);
	if (len || (kind != LIST && kind != PORT))
		return len;
	memcpy(body, kind == LIST ? (void *)&info : &port,
	       kind == LIST ? sizeof(info) : sizeof(port));
	return kind == LIST ? sizeof(info) : sizeof(port);
}

static void put_message(int sock, uint8_t what, const uint8_t *bytes, size_t len)
{
	const enum kind kind = (enum kind)(what % KINDS);
	struct abi_reply reply = {.error = -(what >> 3)};
	uint8_t body[1024 + sizeof(struct abi_device_info) + sizeof(struct abi_port_info)];
	struct iovec iov[2] = {{&reply, sizeof(reply)}, {body, 0}};
	const bool record = kind == RECORD || kind == MEMFD || kind == TWO_MEMFDS;
	int fds[2];

	iov[1].iov_len = fill(kind, bytes, len, body);
	if (kind == CONTROL && control_fd < 0)
		return;
	hostile_send(kind == CONTROL ? control_fd : sock, iov + record, 2 - record, fds,
		     make_fds(kind, fds, bytes, len));
}

/* a question has one answer and a connection of its own, but for the open port's */
static void hostile_answer(int sock, unsigned nth)
{
	bool opened = false;

	while (input_left >= 2) {
		size_t len = MIN((size_t)input[1] * 4, input_left - 2);
		const uint8_t *message = input;

		opened |= message[0] % KINDS == OPENED;
		input += 2 + len;
		input_left -= 2 + len;
		put_message(sock, message[0], message + 2, len);
		if (!opened)
			return;
	}
	if (control_fd >= 0)
		shutdown(control_fd, SHUT_WR);
}

static void receive(int port)
{
	uint8_t *umad = umad_alloc(1, umad_size() + 512);

	check(umad);
	for (int n = 0; n < CALLS; n++) {
		int length = n & 1 ? 256 : 512;
		int agent = umad_recv(port, umad, &length, 0);

		/* what does not fit is told by its length */
		check(agent < 0 || length <= (n & 1 ? 256 : 512));
		if (agent == -EIO || agent == -ECONNRESET)
			break;
	}
	umad_free(umad);
}

static void use_port(int port)
{
	uint8_t mad[sizeof(struct ib_user_mad) + 256] = {0};
	struct umad_reg_attr attr = {.mgmt_class = 0x81, .mgmt_class_version = 1};
	uint32_t id;
	int agent = umad_register(port, 3, 2, 1, NULL);

	umad_register2(port, &attr, &id);
	umad_send(port, agent, mad, 256, 10, 1);
	receive(port);
	umad_unregister(port, agent);
	check(!umad_close_port(port));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char names[4][UMAD_CA_NAME_LEN];
	umad_port_t port_info;
	umad_ca_t ca;
	int before, port, n;

	setenv(ABI_ENV_DIR, "/tmp", 1);
	before = open_fds();
	input = data;
	input_left = size;
	n = umad_get_cas_names(names, ARRAY_SIZE(names));
	check(n <= (int)ARRAY_SIZE(names));
	for (int i = 0; i < n; i++)
		check(memchr(names[i], 0, sizeof(names[i])) != NULL);
	if (!umad_get_ca(NULL, &ca))
		umad_release_ca(&ca);
	if (!umad_get_port(NULL, 0, &port_info))
		umad_release_port(&port_info);
	port = umad_open_port("softib0", 1);
	if (port >= 0)
		use_port(port);
	hostile_drop(&control_fd);
	hostile_end(before);
	return 0;
}
