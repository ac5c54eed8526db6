/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The conversation with softibd's "umad" socket (src/abi/session.h). A list
 * of devices and a port's attributes are one question on a connection of its
 * own; an open port is a connection that stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "abi/endpoint.h"
#include "abi/fds.h"
#include "abi/hint.h"
#include "abi/await.h"
#include "abi/told.h"
#include "umad_private.h"

const char *umad_session_dir(void)
{
	const char *dir = getenv(ABI_ENV_DIR);

	return dir && *dir ? dir : NULL;
}

static int session_connect(void)
{
	const char *dir = umad_session_dir();

	return dir ? abi_endpoint_connect(dir, "umad") : -ENOENT;
}

static int send_all(int fd, const void *head, size_t head_bytes, const void *body,
		    size_t body_bytes)
{
	struct iovec iov[2] = {{(void *)head, head_bytes}, {(void *)body, body_bytes}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = body_bytes ? 2 : 1};
	ssize_t n;

	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* turned away: the answer says why */
	return n < 0 && errno != EPIPE ? -errno : 0;
}

/* Return: 0 or the error that the answer tells; at most @size bytes of its body go to
 * @body, and its descriptor to *@passed, which may be NULL */
static int receive_reply(int fd, void *body, size_t size, size_t *got, int *passed)
{
	struct abi_reply reply;
	struct iovec parts[2] = {{&reply, sizeof(reply)}, {body, size}};
	int newfd;
	ssize_t n = abi_receive_answer(fd, parts, 2, &newfd, 1);

	if (newfd >= 0 && (!passed || n < (ssize_t)sizeof(reply) || reply.error))
		close(newfd);
	else if (passed)
		*passed = newfd;
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (n < (ssize_t)sizeof(reply) || (size_t)n > sizeof(reply) + size)
		return -EPROTO;
	if (got)
		*got = (size_t)n - sizeof(reply);
	return abi_reply_error(&reply);
}

static int send_open(int fd, uint32_t kind, const char *device, int port)
{
	struct abi_open open;
	int ret = abi_open_prepare(&open, kind, getenv(ABI_ENV_NODE));

	if (ret)
		return ret;
	if (strlen(device) >= sizeof(open.device))
		return -ENODEV;
	open.port = (uint32_t)port;
	strcpy(open.device, device);
	return send_all(fd, &open, sizeof(open), NULL, 0);
}

/* one question on a connection of its own */
static int session_ask(uint32_t kind, const char *device, int port, void *body,
		       size_t size, size_t *got)
{
	int fd = session_connect();
	int ret;

	if (fd < 0)
		return fd;
	ret = send_open(fd, kind, device, port);
	if (!ret)
		ret = abi_await(fd, "libibumad");
	if (!ret)
		ret = receive_reply(fd, body, size, got, NULL);
	close(fd);
	return ret;
}

int umad_session_list(struct abi_device_info **list)
{
	size_t got, size = ABI_MESSAGE_MAX - sizeof(struct abi_reply);
	struct abi_device_info *devices;
	int n, ret;

	*list = NULL;
	if (!umad_session_dir()) {
		abi_say_no_fabric("libibumad");
		return 0;
	}
	devices = malloc(size);
	if (!devices)
		return -ENOMEM;
	ret = session_ask(ABI_OPEN_LIST, "", 0, devices, size, &got);
	if (!ret && got % sizeof(*devices))
		ret = -EPROTO;
	if (ret || !got) {
		free(devices);
		return ret;
	}
	n = (int)(got / sizeof(*devices));
	for (int i = 0; i < n; i++) {
		devices[i].name[ABI_NAME_BYTES - 1] = '\0';
		/* programs ask for each, and <infiniband/umad.h> has room for no more */
		devices[i].num_ports = MIN(devices[i].num_ports, UMAD_CA_MAX_PORTS - 1u);
	}
	*list = devices;
	return n;
}

int umad_session_port(const char *device, int port, struct abi_port_info *info)
{
	size_t got;
	int ret = session_ask(ABI_OPEN_PORT, device, port, info, sizeof(*info), &got);

	if (ret)
		return ret;
	info->issm[ABI_NAME_BYTES - 1] = '\0';
	return got == sizeof(*info) && info->num_pkeys <= ABI_PORT_PKEYS ? 0 : -EPROTO;
}

int umad_session_open(const char *device, int port, int *control)
{
	int fd = session_connect();
	int passed = -1, ret;

	if (fd < 0)
		return fd;
	ret = send_open(fd, ABI_OPEN_UMAD, device, port);
	if (!ret)
		ret = abi_await(fd, "libibumad");
	if (!ret)
		ret = receive_reply(fd, NULL, 0, NULL, &passed);
	if (!ret && passed < 0)
		ret = -EPROTO;
	if (!ret && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		ret = -errno;
	if (ret) {
		if (passed >= 0)
			close(passed);
		close(fd);
		return ret;
	}
	*control = passed;
	return fd;
}

int umad_session_ioctl(int control, unsigned int request, void *arg, size_t bytes)
{
	struct abi_ioctl head = {.request = request, .bytes = (uint32_t)bytes};
	int ret = send_all(control, &head, sizeof(head), arg, bytes);

	if (ret)
		return ret;
	return receive_reply(control, arg, bytes, NULL, NULL);
}

int umad_session_ask_for_ring(int control, int *fds)
{
	struct abi_ioctl head = {.request = ABI_UMAD_TOLD_RING};
	ssize_t n = abi_exchange_fds(control, &(struct iovec){&head, sizeof(head)}, 1, NULL, 0, fds, ABI_TOLD_FDS);

	return n < 0 ? (int)n : 0;
}
