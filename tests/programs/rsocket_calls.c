/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rsocket_calls ADDRESS: each function of rsockets, and the options that they have, on connections
 * of the process with itself by the address of its node. Prints a line for each part.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fixture.h"

#define PORT	 7602
#define MAP_SIZE 4096
#define TEXT	 "what is sent"

static struct sockaddr_in here = {.sin_family = AF_INET};
static char buf[64];

static struct sockaddr *address(uint16_t port)
{
	here.sin_port = htons(port);
	return (struct sockaddr *)&here;
}

/* --- options: what is set, and what is returned then --- */

static const struct option {
	const char *name;
	int level, option, value, returned;
} options[] = {
	{"SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1, 1},
	{"SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 131072, 262144},
	{"SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 131072, 262144},
	{"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1, 1},
	{"SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1, 1},
	{"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 30, 30},
	{"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1, 1},
	{"RDMA_SQSIZE", SOL_RDMA, RDMA_SQSIZE, 64, 64},
	{"RDMA_RQSIZE", SOL_RDMA, RDMA_RQSIZE, 128, 128},
	{"RDMA_INLINE", SOL_RDMA, RDMA_INLINE, 32, 32},
	{"RDMA_IOMAPSIZE", SOL_RDMA, RDMA_IOMAPSIZE, 8, 8},
};

static void set_options(int socket)
{
	for (const struct option *o = options; o < options + sizeof(options) / sizeof(*o); o++) {
		socklen_t size = sizeof(int);
		int value = 0;

		if (rsetsockopt(socket, o->level, o->option, &o->value, sizeof(o->value)) ||
		    rgetsockopt(socket, o->level, o->option, &value, &size) ||
		    value != o->returned) {
			printf("%s: %d, %s\n", o->name, value, strerror(errno));
			exit(1);
		}
	}
}

/* What only one of set and get knows */
static void expect_options(int connected)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 1};
	int value = -1, one = 1, six = rsocket(AF_INET6, SOCK_STREAM, 0);
	socklen_t size = sizeof(value);

	CHECK(!rgetsockopt(connected, SOL_SOCKET, SO_ERROR, &value, &size) && !value);
	size = sizeof(value);
	CHECK(!rgetsockopt(connected, IPPROTO_TCP, TCP_MAXSEG, &value, &size) && value >= 2048);
	CHECK(!rsetsockopt(connected, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	CHECK(six >= 0);
	CHECK(!rsetsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) && !rclose(six));
	CHECK(rsetsockopt(connected, SOL_SOCKET, SO_PEERCRED, &one, sizeof(one)) == -1);
	puts("options");
}

/* --- streams --- */

static int listener;

static void *call_accept(void *arg)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	int *socket = arg;

	*socket = raccept(listener, (struct sockaddr *)&from, &size);
	return NULL;
}

/* Both ends of a connection */
static void connect_both(int *client, int *server)
{
	int larger[] = {RDMA_SQSIZE, RDMA_RQSIZE}, size = 256;
	pthread_t thread;

	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(listener >= 0);
	set_options(listener);
	CHECK(!rbind(listener, address(PORT), sizeof(here)) && !rlisten(listener, 4));
	CHECK(!pthread_create(&thread, NULL, call_accept, server));
	*client = rsocket(AF_INET, SOCK_STREAM, 0);
	set_options(*client);
	for (int i = 0; i < 2; i++)
		CHECK(!rsetsockopt(*client, SOL_RDMA, larger[i], &size, sizeof(size)));
	CHECK(!rconnect(*client, address(PORT), sizeof(here)));
	CHECK(!pthread_join(thread, NULL) && *server >= 0);
	puts("connected");
}

static void names(int client, int server)
{
	struct sockaddr_in ours, theirs;
	socklen_t size = sizeof(ours);

	CHECK(!rgetsockname(client, (struct sockaddr *)&ours, &size));
	size = sizeof(theirs);
	CHECK(!rgetpeername(server, (struct sockaddr *)&theirs, &size));
	CHECK(ours.sin_port == theirs.sin_port && ours.sin_addr.s_addr == here.sin_addr.s_addr);
	puts("names");
}

/* @call has received the text. */
#define EXPECT_TEXT(call)                                                                 \
	do {                                                                              \
		CHECK((call) == sizeof(TEXT) && !strcmp(buf, TEXT));                      \
		memset(buf, 0, sizeof(buf));                                              \
	} while (0)

/* Each call that sends, with one that receives */
static void transfers(int client, int server)
{
	struct iovec out[] = {{TEXT, 4}, {TEXT + 4, sizeof(TEXT) - 4}};
	struct iovec in = {buf, sizeof(buf)}; /* librdmacm fills the first element alone */
	struct msghdr sent = {.msg_iov = out, .msg_iovlen = 2};
	struct msghdr received = {.msg_iov = &in, .msg_iovlen = 1};

	CHECK(rsend(client, TEXT, sizeof(TEXT), 0) == sizeof(TEXT));
	EXPECT_TEXT(rrecv(server, buf, sizeof(TEXT), MSG_WAITALL));
	CHECK(rwrite(server, TEXT, sizeof(TEXT)) == sizeof(TEXT));
	CHECK(rrecv(client, buf, sizeof(buf), MSG_PEEK) == sizeof(TEXT));
	EXPECT_TEXT(rread(client, buf, sizeof(buf)));
	CHECK(rwritev(client, out, 2) == sizeof(TEXT));
	EXPECT_TEXT(rreadv(server, &in, 1));
	CHECK(rsendto(client, TEXT, sizeof(TEXT), 0, NULL, 0) == sizeof(TEXT));
	EXPECT_TEXT(rrecvfrom(server, buf, sizeof(buf), 0, NULL, NULL));
	CHECK(rsendmsg(client, &sent, 0) == sizeof(TEXT));
	EXPECT_TEXT(rrecvmsg(server, &received, 0));
	puts("transfers");
}

static void waiting(int client, int server)
{
	struct pollfd poll = {.fd = server, .events = POLLIN};
	struct timeval no_time = {0}, long_time = {.tv_sec = 10};
	fd_set set;

	CHECK(!rfcntl(server, F_SETFL, O_NONBLOCK) && rfcntl(server, F_GETFL) & O_NONBLOCK);
	CHECK(rrecv(server, buf, sizeof(buf), 0) == -1 && errno == EAGAIN);
	CHECK(!rpoll(&poll, 1, 0));
	FD_ZERO(&set);
	FD_SET(server, &set);
	CHECK(!rselect(server + 1, &set, NULL, NULL, &no_time));
	CHECK(rsend(client, TEXT, sizeof(TEXT), 0) == sizeof(TEXT));
	CHECK(rpoll(&poll, 1, 10000) == 1 && poll.revents == POLLIN);
	FD_SET(server, &set);
	CHECK(rselect(server + 1, &set, NULL, NULL, &long_time) == 1 && FD_ISSET(server, &set));
	EXPECT_TEXT(rrecv(server, buf, sizeof(buf), 0));
	poll = (struct pollfd){.fd = client, .events = POLLOUT};
	CHECK(rpoll(&poll, 1, 10000) == 1 && poll.revents == POLLOUT);
	CHECK(!rfcntl(server, F_SETFL, 0));
	puts("waiting");
}

/* Memory of the server that the client writes to, without a receive */
static void mapped(int client, int server)
{
	static char memory[MAP_SIZE];
	off_t at = riomap(server, memory, MAP_SIZE, PROT_WRITE, 0, -1);

	CHECK(at != -1);
	CHECK(rsend(server, &at, sizeof(at), 0) == sizeof(at));
	CHECK(rrecv(client, &at, sizeof(at), MSG_WAITALL) == sizeof(at));
	CHECK(riowrite(client, TEXT, sizeof(TEXT), at + 100, 0) == sizeof(TEXT));
	CHECK(rsend(client, "", 1, 0) == 1 && rrecv(server, buf, 1, MSG_WAITALL) == 1);
	CHECK(!strcmp(memory + 100, TEXT));
	CHECK(!riounmap(server, memory, MAP_SIZE));
	puts("mapped");
}

static void end(int client, int server)
{
	struct pollfd poll = {.fd = server, .events = POLLIN};

	CHECK(!rshutdown(client, SHUT_WR));
	CHECK(rpoll(&poll, 1, 10000) == 1 && rrecv(server, buf, sizeof(buf), 0) == 0);
	CHECK(!rclose(server) && !rclose(client) && !rclose(listener));
	puts("ended");
}

static void refused(void)
{
	int socket = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(socket >= 0);
	CHECK(rconnect(socket, address(PORT + 9), sizeof(here)) == -1 && errno == ECONNREFUSED);
	CHECK(!rclose(socket));
	puts("refused");
}

int main(int argc, char **argv)
{
	int client, server;

	setlinebuf(stdout);
	CHECK(argc == 2 && inet_pton(AF_INET, argv[1], &here.sin_addr) == 1);
	connect_both(&client, &server);
	expect_options(client);
	names(client, server);
	transfers(client, server);
	waiting(client, server);
	mapped(client, server);
	end(client, server);
	refused();
	return 0;
}
