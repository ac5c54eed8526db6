/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How links begin: the requester takes a TCP connection and makes one by RDMA for it, the responder
 * takes a request of the RDMA CM, and accepts it when the server has taken its TCP connection. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpcgate/gate.h"

#define RESOLVE_MS   5000 /* of an address, of a route */
#define BACKLOG	     128
#define READS_AT_ONCE 16  /* of the responder */
#define RETRIES	     7

void gate_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("softib-rpcrdma: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

const char *gate_name(const struct sockaddr_storage *address, char name[80])
{
	char host[INET6_ADDRSTRLEN + 16], port[8];
	bool is_v6 = address->ss_family == AF_INET6;

	if (getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return "an unknown address";
	snprintf(name, 80, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
	return name;
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void set_no_delay(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* --- the requester --------------------------------------------------------------------- */

static void on_client(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct gate *gate = io->data;
	int fd = accept4(gate->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct link *link = fd < 0 ? NULL : link_new(gate);

	if (fd < 0)
		return;
	if (!link) {
		gate_say("no memory for another client");
		close(fd);
		return;
	}
	set_no_delay(fd);
	stream_open(&link->tcp, loop, fd, link);
	if (rdma_create_id(gate->channel, &link->id, link, RDMA_PS_TCP) ||
	    rdma_resolve_addr(link->id, NULL, (struct sockaddr *)&gate->opt.rdma, RESOLVE_MS))
		link_end(link, "looking for the responder's address", errno);
}

static int request(struct link *link)
{
	struct rpcrdma_private said = {link->gate->opt.inline_bytes, link->gate->opt.inline_bytes};
	uint8_t private_data[RPCRDMA_PRIVATE_BYTES];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.responder_resources = READS_AT_ONCE,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	struct ibv_device_attr device;
	int error = link_make_qp(link);

	if (error)
		return -error;
	if (!ibv_query_device(link->id->verbs, &device))
		param.responder_resources = (uint8_t)MIN(READS_AT_ONCE, device.max_qp_rd_atom);
	rpcrdma_private_encode(&said, private_data);
	return rdma_connect(link->id, &param) ? errno : 0;
}

/* --- the responder ----------------------------------------------------------------------- */

/* an answer that does not fit to the server, or its absence: the requester's connection is refused */
static void turn_away(struct link *link, const char *why, int error)
{
	rdma_reject(link->id, NULL, 0);
	link_end(link, why, error);
}

static void on_request(struct gate *gate, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct link *link = link_new(gate);
	int fd;

	if (!link) {
		gate_say("no memory for another requester");
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	link->id = id;
	id->context = link;
	link_agree(link, param);
	link->reads = param->initiator_depth;
	fd = socket(gate->opt.tcp.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		turn_away(link, "making a TCP socket", errno);
		return;
	}
	set_no_delay(fd);
	stream_open(&link->tcp, gate->loop, fd, link);
	if (connect(fd, (struct sockaddr *)&gate->opt.tcp, length_of(&gate->opt.tcp)) && errno != EINPROGRESS)
		turn_away(link, "connecting to the server", errno);
	else
		ev_io_start(gate->loop, &link->tcp.out);
}

void gate_on_server(struct link *link)
{
	struct rpcrdma_private said = {link->gate->opt.inline_bytes, link->gate->opt.inline_bytes};
	uint8_t private_data[RPCRDMA_PRIVATE_BYTES];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.initiator_depth = link->reads,
		.rnr_retry_count = RETRIES,
	};
	socklen_t length = sizeof(int);
	int error = 0;

	ev_io_stop(link->gate->loop, &link->tcp.out);
	getsockopt(link->tcp.fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		turn_away(link, "connecting to the server", error);
		return;
	}
	error = -link_make_qp(link);
	rpcrdma_private_encode(&said, private_data);
	if (error)
		turn_away(link, "making a queue pair", error);
	else if (rdma_accept(link->id, &param))
		link_end(link, "accepting a connection", errno);
}

/* --- events of the RDMA CM ------------------------------------------------------------------ */

static void on_link_event(struct link *link, const struct rdma_cm_event *event)
{
	int error = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		error = rdma_resolve_route(link->id, RESOLVE_MS) ? errno : 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		error = request(link);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!link->gate->opt.serves)
			link_agree(link, &event->param.conn);
		link_go(link);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		link_end(link, NULL, 0);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_REJECTED:
		link_end(link, "the responder, or the node where it should be, refused the connection", 0);
		break;
	default:
		link_end(link, rdma_event_str(event->event), event->status < 0 ? -event->status : 0);
	}
	if (error)
		link_end(link, rdma_event_str(event->event), error);
}

static void on_event(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct rdma_cm_event *waiting, event;
	uint8_t private_data[256];

	if (rdma_get_cm_event(gate->channel, &waiting))
		return;
	/* An id cannot be destroyed before its events are acknowledged: so they are, and a copy goes on. */
	event = *waiting;
	if (event.param.conn.private_data)
		memcpy(private_data, event.param.conn.private_data, event.param.conn.private_data_len);
	event.param.conn.private_data = private_data;
	rdma_ack_cm_event(waiting);
	if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_request(gate, event.id, &event.param.conn);
	else if (event.id != gate->listener && !((struct link *)event.id->context)->has_ended)
		on_link_event(event.id->context, &event);
}

/* --- the gate ----------------------------------------------------------------------------- */

static void free_ended(struct ev_loop *loop, struct ev_prepare *prepare, int events)
{
	struct gate *gate = prepare->data;

	while (!list_empty(&gate->ended))
		link_free(list_first_entry(&gate->ended, struct link, node));
}

static int listen_by_tcp(struct gate *gate)
{
	struct sockaddr_storage *at = &gate->opt.tcp;
	socklen_t length = sizeof(*at);

	gate->listen_fd = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (gate->listen_fd < 0)
		return -errno;
	setsockopt(gate->listen_fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(gate->listen_fd, (struct sockaddr *)at, length_of(at)) || listen(gate->listen_fd, BACKLOG) ||
	    getsockname(gate->listen_fd, (struct sockaddr *)at, &length))
		return -errno;
	ev_io_init(&gate->on_listen, on_client, gate->listen_fd, EV_READ);
	gate->on_listen.data = gate;
	ev_io_start(gate->loop, &gate->on_listen);
	return 0;
}

static int listen_by_rdma(struct gate *gate)
{
	struct sockaddr *at = (struct sockaddr *)&gate->opt.rdma;

	if (rdma_create_id(gate->channel, &gate->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(gate->listener, at) || rdma_listen(gate->listener, BACKLOG))
		return -errno;
	return 0;
}

int gate_open(struct gate *gate)
{
	const struct gate_options *opt = &gate->opt;
	char here[80], there[80];
	int error;

	INIT_LIST_HEAD(&gate->links);
	INIT_LIST_HEAD(&gate->ended);
	gate->listen_fd = -1;
	gate->channel = rdma_create_event_channel();
	if (!gate->channel) {
		error = -errno;
		gate_say("there is no RDMA CM here (%s): start it on a node, by softib exec NODE -- softib-rpcrdma ...",
			 strerror(errno));
		return error;
	}
	fcntl(gate->channel->fd, F_SETFL, O_NONBLOCK);
	error = opt->serves ? listen_by_rdma(gate) : listen_by_tcp(gate);
	if (error) {
		gate_say("cannot listen at %s: %s", gate_name(opt->serves ? &opt->rdma : &opt->tcp, here),
			 strerror(-error));
		return error;
	}
	ev_io_init(&gate->on_channel, on_event, gate->channel->fd, EV_READ);
	ev_prepare_init(&gate->on_turn, free_ended);
	gate->on_channel.data = gate->on_turn.data = gate;
	ev_io_start(gate->loop, &gate->on_channel);
	ev_prepare_start(gate->loop, &gate->on_turn);
	gate_say("listening at %s by %s, to %s by %s", gate_name(opt->serves ? &opt->rdma : &opt->tcp, here),
		 opt->serves ? "RDMA" : "TCP", gate_name(opt->serves ? &opt->tcp : &opt->rdma, there),
		 opt->serves ? "TCP" : "RDMA");
	return 0;
}

void gate_close(struct gate *gate)
{
	struct link *link, *next;

	list_for_each_entry_safe(link, next, &gate->links, node)
		link_end(link, NULL, 0);
	if (gate->channel && gate->on_turn.data)
		free_ended(gate->loop, &gate->on_turn, 0);
	if (gate->listener)
		rdma_destroy_id(gate->listener);
	if (gate->listen_fd >= 0)
		close(gate->listen_fd);
	if (gate->channel)
		rdma_destroy_event_channel(gate->channel);
}
