/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The socket on which client and server meet: addresses, and who is ready. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs.h"

#define TRIES 1000 /* ten seconds in all, for the server to start */

static int wait_for_client(struct sockaddr_un *a)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd;

	measure_check(!bind(listener, (void *)a, sizeof(*a)) && !listen(listener, 1),
		      "listen");
	fd = accept(listener, NULL, NULL);
	unlink(a->sun_path);
	close(listener);
	return fd;
}

static int find_server(struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	for (int i = 0; i < TRIES; i++) {
		if (!connect(fd, (void *)a, sizeof(*a)))
			return fd;
		usleep(10000);
	}
	return -1;
}

int meet(const char *path, bool client)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	fd = client ? find_server(&a) : wait_for_client(&a);
	measure_check(fd >= 0, path);
	return fd;
}

void tell(struct bench *b, const void *data, size_t size)
{
	measure_check(send(b->sock, data, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
}

void hear(struct bench *b, void *data, size_t size)
{
	measure_check(recv(b->sock, data, size, MSG_WAITALL) == (ssize_t)size,
		      "the other side is gone");
}

/* Both sides come here before either goes on. */
void sync_sides(struct bench *b)
{
	char c = 0;

	tell(b, &c, 1);
	hear(b, &c, 1);
}

/* Tell the other side this one's address, and take its. */
void exchange(struct bench *b)
{
	struct end *e = &b->end;
	struct address mine = {.memory = (uintptr_t)e->memory,
			       .rkey = e->mr->rkey,
			       .lid = end_lid(e),
			       .qp_count = b->count};

	uint32_t *qpn = calloc(b->count, sizeof(*qpn));

	for (unsigned i = 0; i < b->count; i++)
		qpn[i] = e->qp[i]->qp_num;
	tell(b, &mine, sizeof(mine));
	tell(b, qpn, b->count * sizeof(*qpn));
	free(qpn);
	hear(b, &e->peer, sizeof(e->peer));
	e->peer_qpn = calloc(e->peer.qp_count, sizeof(uint32_t));
	hear(b, e->peer_qpn, e->peer.qp_count * sizeof(uint32_t));
}
