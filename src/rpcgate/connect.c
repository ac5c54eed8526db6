/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How relays begin: the requester takes a TCP connection and makes one by RDMA for it,
 * the responder takes a request of the RDMA CM, and accepts it when the server has taken
 * its TCP connection. */
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

#define RESOLVE_MS    5000 /* of an address, of a route */
#define BACKLOG	      128
#define READS_AT_ONCE 16 /* of the responder */
#define RETRIES	      7
#define PAUSE_S	      1. /* until descriptors are looked for again */

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

	if (getnameinfo((const struct sockaddr *)address, sizeof(*address), host,
			sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return "an unknown address";
	snprintf(name, 80, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
	return name;
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

static void set_no_delay(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* --- the requester --- */

static void listen_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct gate *gate = timer->data;

	ev_io_start(loop, &gate->on_listen);
}

/* A client for whom there is no descriptor waits at the socket, which stays readable
 * meanwhile. */
static void pause_listening(struct gate *gate)
{
	gate_say("no descriptor for another client: it waits until there is one");
	ev_io_stop(gate->loop, &gate->on_listen);
	ev_timer_init(&gate->on_pause, listen_again, PAUSE_S, 0);
	gate->on_pause.data = gate;
	ev_timer_start(gate->loop, &gate->on_pause);
}

static void on_client(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct gate *gate = io->data;
	int fd = accept4(gate->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct relay *relay = fd < 0 ? NULL : relay_new(gate);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_listening(gate);
		return;
	}
	if (!relay) {
		gate_say("no memory for another client");
		close(fd);
		return;
	}
	set_no_delay(fd);
	stream_open(&relay->tcp, loop, fd, relay);
	if (rdma_create_id(gate->channel, &relay->id, relay, RDMA_PS_TCP) ||
	    rdma_resolve_addr(relay->id, NULL, (struct sockaddr *)&gate->opt.rdma,
			      RESOLVE_MS))
		relay_end(relay, "looking for the responder's address", errno);
}

static int request(struct relay *relay)
{
	struct rpcrdma_private said = {relay->gate->opt.inline_bytes,
				       relay->gate->opt.inline_bytes};
	uint8_t private_data[RPCRDMA_PRIVATE_BYTES];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.responder_resources = READS_AT_ONCE,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	struct ibv_device_attr device;
	int error = relay_make_qp(relay);

	if (error)
		return -error;
	if (!ibv_query_device(relay->id->verbs, &device))
		param.responder_resources =
			(uint8_t)MIN(READS_AT_ONCE, device.max_qp_rd_atom);
	rpcrdma_private_encode(&said, private_data);
	return rdma_connect(relay->id, &param) ? errno : 0;
}

/* --- the responder --- */

/* Refuse the requester's connection, because there is no connection to the server for it.
 */
static void turn_away(struct relay *relay, const char *why, int error)
{
	rdma_reject(relay->id, NULL, 0);
	relay_end(relay, why, error);
}

static void on_request(struct gate *gate, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	struct relay *relay = relay_new(gate);
	int fd;

	if (!relay) {
		gate_say("no memory for another requester");
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	relay->id = id;
	id->context = relay;
	relay_agree(relay, param);
	relay->reads = param->initiator_depth;
	fd = socket(gate->opt.tcp.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0) {
		turn_away(relay, "making a TCP socket", errno);
		return;
	}
	set_no_delay(fd);
	stream_open(&relay->tcp, gate->loop, fd, relay);
	if (connect(fd, (struct sockaddr *)&gate->opt.tcp, length_of(&gate->opt.tcp)) &&
	    errno != EINPROGRESS)
		turn_away(relay, "connecting to the server", errno);
	else
		ev_io_start(gate->loop, &relay->tcp.out);
}

void gate_on_server(struct relay *relay)
{
	struct rpcrdma_private said = {relay->gate->opt.inline_bytes,
				       relay->gate->opt.inline_bytes};
	uint8_t private_data[RPCRDMA_PRIVATE_BYTES];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.initiator_depth = relay->reads,
		.rnr_retry_count = RETRIES,
	};
	socklen_t length = sizeof(int);
	int error = 0;

	ev_io_stop(relay->gate->loop, &relay->tcp.out);
	getsockopt(relay->tcp.fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		turn_away(relay, "connecting to the server", error);
		return;
	}
	error = -relay_make_qp(relay);
	rpcrdma_private_encode(&said, private_data);
	if (error)
		turn_away(relay, "making a queue pair", error);
	else if (rdma_accept(relay->id, &param))
		relay_end(relay, "accepting a connection", errno);
}

/* --- events of the RDMA CM --- */

static void on_link_event(struct relay *relay, const struct rdma_cm_event *event)
{
	int error = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		error = rdma_resolve_route(relay->id, RESOLVE_MS) ? errno : 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		error = request(relay);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!relay->gate->opt.serves)
			relay_agree(relay, &event->param.conn);
		relay_go(relay);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		relay_end(relay, NULL, 0);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_REJECTED:
		relay_end(relay,
			  "the responder, or the node where it should be, refused the "
			  "connection",
			  0);
		break;
	default:
		relay_end(relay, rdma_event_str(event->event),
			  event->status < 0 ? -event->status : 0);
	}
	if (error)
		relay_end(relay, rdma_event_str(event->event), error);
}

static void on_event(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct rdma_cm_event *waiting, event;
	uint8_t private_data[256];

	if (rdma_get_cm_event(gate->channel, &waiting))
		return;
	/* An id cannot be destroyed before its events are acknowledged: so they are, and
	 * a copy goes on. */
	event = *waiting;
	if (event.param.conn.private_data)
		memcpy(private_data, event.param.conn.private_data,
		       event.param.conn.private_data_len);
	event.param.conn.private_data = private_data;
	rdma_ack_cm_event(waiting);
	if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_request(gate, event.id, &event.param.conn);
	else if (event.id != gate->listener &&
		 !((struct relay *)event.id->context)->has_ended)
		on_link_event(event.id->context, &event);
}

/* --- the gate --- */

static void free_ended(struct ev_loop *loop, struct ev_prepare *prepare, int events)
{
	struct gate *gate = prepare->data;

	while (!list_empty(&gate->ended))
		relay_free(list_first_entry(&gate->ended, struct relay, node));
}

static int listen_by_tcp(struct gate *gate)
{
	struct sockaddr_storage *at = &gate->opt.tcp;
	socklen_t length = sizeof(*at);

	gate->listen_fd =
		socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (gate->listen_fd < 0)
		return -errno;
	setsockopt(gate->listen_fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(gate->listen_fd, (struct sockaddr *)at, length_of(at)) ||
	    listen(gate->listen_fd, BACKLOG) ||
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

	INIT_LIST_HEAD(&gate->relays);
	INIT_LIST_HEAD(&gate->ended);
	gate->listen_fd = -1;
	gate->channel = rdma_create_event_channel();
	if (!gate->channel) {
		error = -errno;
		gate_say("there is no RDMA CM here (%s): start it on a node, by softib "
			 "exec NODE -- softib-rpcrdma ...",
			 strerror(errno));
		return error;
	}
	fcntl(gate->channel->fd, F_SETFL, O_NONBLOCK);
	error = opt->serves ? listen_by_rdma(gate) : listen_by_tcp(gate);
	if (error) {
		gate_say("cannot listen at %s: %s",
			 gate_name(opt->serves ? &opt->rdma : &opt->tcp, here),
			 strerror(-error));
		return error;
	}
	ev_io_init(&gate->on_channel, on_event, gate->channel->fd, EV_READ);
	ev_prepare_init(&gate->on_turn, free_ended);
	gate->on_channel.data = gate->on_turn.data = gate;
	ev_io_start(gate->loop, &gate->on_channel);
	ev_prepare_start(gate->loop, &gate->on_turn);
	gate_say("listening at %s by %s, to %s by %s",
		 gate_name(opt->serves ? &opt->rdma : &opt->tcp, here),
		 opt->serves ? "RDMA" : "TCP",
		 gate_name(opt->serves ? &opt->tcp : &opt->rdma, there),
		 opt->serves ? "TCP" : "RDMA");
	return 0;
}

void gate_close(struct gate *gate)
{
	struct relay *relay, *next;

	list_for_each_entry_safe(relay, next, &gate->relays, node)
		relay_end(relay, NULL, 0);
	if (gate->channel && gate->on_turn.data)
		free_ended(gate->loop, &gate->on_turn, 0);
	if (gate->listener)
		rdma_destroy_id(gate->listener);
	if (gate->listen_fd >= 0)
		close(gate->listen_fd);
	if (gate->channel)
		rdma_destroy_event_channel(gate->channel);
}
