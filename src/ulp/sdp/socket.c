/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sockets before they are connections: addresses, listening, connecting, and what the
 * RDMA CM tells. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "runtime/posix/closer.h"
#include "ulp/sdp/private.h"

#define RESOLVE_MS	    2000
#define READS_OUTSTANDING   4

int sdp_on_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sdp_handle *handle = id->context;

	return handle->event(handle, id, event);
}

/* --- an address as the machine has it: IPv6, or IPv4-mapped --- */

static u16 put_address(const struct sockaddr_storage *addr, u8 ip[16])
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (addr->ss_family == AF_INET6) {
		memcpy(&six, addr, sizeof(six));
		memcpy(ip, &six.sin6_addr, 16);
		return ntohs(six.sin6_port);
	}
	memcpy(&four, addr, sizeof(four));
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, &four.sin_addr, 4);
	return ntohs(four.sin_port);
}

/* --- connecting --- */

static struct rdma_conn_param terms(const struct sdp_conn *c, const u8 *data, u8 bytes)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = bytes,
					.responder_resources = READS_OUTSTANDING,
					.initiator_depth = READS_OUTSTANDING,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = c->qp->qp_num};
}

static int say_hello(struct sdp_conn *c)
{
	const struct rdma_addr *addr = &c->id->route.addr;
	u8 hello[WIRE_SDP_HELLO_BYTES];
	struct rdma_conn_param param;
	struct sdp_address address;
	int ret = sdp_queue_open(c);

	if (ret)
		return ret;
	sdp_conn_expect(c);
	address.src_port = put_address(&addr->src_addr, address.src);
	put_address(&addr->dst_addr, address.dst);
	sdp_hello(&c->sdp, &address, hello);
	param = terms(c, hello, sizeof(hello));
	return rdma_connect(c->id, &param);
}

static int on_response(struct sdp_conn *c, const struct rdma_cm_event *event)
{
	int ret = sdp_accepted(&c->sdp, event->param.conn.private_data,
			       event->param.conn.private_data_len);

	if (!ret)
		ret = sdp_queue_connect(c);
	return ret ? ret : rdma_accept(c->id, NULL);
}

/* The outcome of sdp_socket_connect() is known. Return: what a handler returns */
static int tell_connected(struct sdp_conn *c, int error)
{
	const struct rdma_addr addr = c->id->route.addr;
	struct sdp_socket *s = c->socket;
	int memory = -1;

	c->dials = false;
	sdp_note_connected(c, false, error);
	if (s)
		s->conn = NULL;
	if (error) {
		c->id = NULL; /* the RDMA CM destroys it when its handler returns */
		sdp_conn_destroy(c);
	} else if (c->before) {
		sdp_move_ready(c);
	} else {
		memory = sdp_channel_fd(c);
		sdp_conn_begin(c);
	}
	if (s)
		s->ops->connected(s->ctx, error, &addr, memory);
	return error;
}

static int on_connecting(struct sdp_conn *c, struct rdma_cm_event *event)
{
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(c->id, RESOLVE_MS);
		if (!ret && c->socket && c->socket->ops->resolved)
			c->socket->ops->resolved(c->socket->ctx, &c->id->route.addr,
						 sdp_channel_fd(c));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = say_hello(c);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = on_response(c, event);
		return tell_connected(c, ret);
	case RDMA_CM_EVENT_ADDR_ERROR:
		ret = -ENETUNREACH;
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		ret = -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		ret = -ETIMEDOUT;
		break;
	case RDMA_CM_EVENT_REJECTED:
		ret = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ret = -ENETDOWN;
		break;
	default:
		break;
	}
	return ret ? tell_connected(c, ret) : 0;
}

/* --- connections that were accepted --- */

static void tell_accepted(struct sdp_conn *c)
{
	struct sdp_socket *s = c->socket;
	int fd = c->program_fd;

	sdp_note_connected(c, true, 0);
	if (c->before) {
		sdp_move_ready(c);
		return;
	}
	c->program_fd = -1;
	sdp_conn_begin(c);
	if (!s || s->ops->accepted(s->ctx, fd, &c->id->route.addr, sdp_channel_fd(c))) {
		if (!s)
			close(fd);
		sdp_abort(&c->sdp);
	}
	sdp_channel_handed_over(c); /* the other program has got it with the answer */
}

/* The client sends its RTU behind the first data sometimes: the stream begins either way
 * when the CM says so. */
static int on_connection(struct sdp_conn *c, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!c->established && !c->ready)
			tell_accepted(c);
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		break;
	default:
		return 0;
	}
	if ((!c->established && !c->ready) || event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		c->id = NULL;
		sdp_conn_destroy(c);
		return 1;
	}
	c->cm_gone = true;
	sdp_conn_wake(c);
	return 0;
}

static int on_conn_event(struct sdp_handle *handle, struct rdma_cm_id *id,
			 struct rdma_cm_event *event)
{
	struct sdp_conn *c = container_of(handle, struct sdp_conn, handle);

	if (c->dials)
		return on_connecting(c, event);
	return on_connection(c, event);
}

static int answer(struct sdp_conn *c, const struct rdma_cm_event *event)
{
	u8 ack[WIRE_SDP_HELLO_ACK_BYTES];
	struct rdma_conn_param param;
	struct sdp_address address;
	int ret = sdp_accept(&c->sdp, event->param.conn.private_data,
			     event->param.conn.private_data_len, &address, ack);

	if (!ret)
		ret = sdp_queue_open(c);
	if (!ret)
		ret = sdp_queue_connect(c);
	param = ret ? (struct rdma_conn_param){0} : terms(c, ack, sizeof(ack));
	return ret ? ret : rdma_accept(c->id, &param);
}

int sdp_conn_answer(struct sdp_conn *c, struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	int ret;

	c->handle.event = on_conn_event;
	c->id = id;
	ret = answer(c, event);
	if (ret) {
		sdp_note_connected(c, true, ret);
		c->id = NULL;
	} else {
		id->context = &c->handle;
	}
	return ret;
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Who listens at the loopback address is reached from its own node alone, as by TCP. The RDMA
 * CM takes that address for any of the node's. */
static bool may_reach(const struct sdp_socket *s, const struct rdma_cm_id *id)
{
	return !is_loopback(&s->id->route.addr.src_addr) ||
	       !memcmp(&id->route.sgid, &id->route.dgid, sizeof(id->route.sgid));
}

/* A request for listener @s. Return: 0; other: the request is refused */
static int on_request(struct sdp_socket *s, struct rdma_cm_id *id,
		      const struct rdma_cm_event *event)
{
	struct sdp_conn *c;
	int pair[2], ret;

	if (!may_reach(s, id))
		return -ECONNREFUSED;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	rt_note_sender(pair[0], 0);
	c = sdp_conn_create(s->rt, s, pair[0]);
	if (!c) {
		close(pair[1]);
		return -ENOMEM;
	}
	c->program_fd = pair[1];
	ret = sdp_conn_answer(c, id, event);
	if (ret) {
		sdp_conn_destroy(c);
		return ret;
	}
	sdp_channel_join(c, sdp_conn_with_qp(s->rt, id, event->param.conn.qp_num));
	return 0;
}

static int on_socket_event(struct sdp_handle *handle, struct rdma_cm_id *id,
			   struct rdma_cm_event *event)
{
	struct sdp_socket *s = container_of(handle, struct sdp_socket, handle);

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return on_request(s, id, event);
	return 0;
}

/* --- sockets --- */

struct sdp_socket *sdp_socket_create(struct rt *rt, const char *node,
				     const struct sdp_socket_ops *ops, void *ctx)
{
	struct sdp_socket *s = sdp_fabric_open(rt) ? rt_zalloc(sizeof(*s)) : NULL;
	struct rdma_cm_id *id;

	if (!s)
		return ERR_PTR(-ENOMEM);
	id = rdma_create_id(rt, node, sdp_on_cm_event, &s->handle, RDMA_PS_SDP, IB_QPT_RC);
	if (IS_ERR(id)) {
		rt_free(s);
		return ERR_PTR(PTR_ERR(id));
	}
	s->handle.event = on_socket_event;
	s->rt = rt;
	s->id = id;
	s->ops = ops;
	s->ctx = ctx;
	return s;
}

/* Connections that were accepted and not handed over yet are given up. */
void sdp_socket_destroy(struct sdp_socket *s)
{
	sdp_note_socket(s, "close", 0);
	if (s->conn)
		sdp_conn_destroy(s->conn);
	sdp_conn_forget(s);
	if (s->id)
		rdma_destroy_id(s->id);
	rt_free(s);
}

int sdp_socket_bind(struct sdp_socket *s, const struct sockaddr *addr, bool reuse,
		    bool afonly)
{
	struct sockaddr_storage copy;
	int ret = s->id ? 0 : -EINVAL;

	if (!ret)
		ret = rdma_set_reuseaddr(s->id, reuse);
	if (!ret)
		ret = rdma_set_afonly(s->id, afonly);
	if (ret)
		return ret;
	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	ret = rdma_bind_addr(s->id, (struct sockaddr *)&copy);
	sdp_note_socket(s, "bind", ret);
	return ret;
}

const struct sockaddr_storage *sdp_socket_address(const struct sdp_socket *s)
{
	static const struct sockaddr_storage none = {.ss_family = AF_UNSPEC};

	return s->id ? &s->id->route.addr.src_addr : &none;
}

int sdp_socket_listen(struct sdp_socket *s, int backlog)
{
	int ret = s->id && !s->listens ? rdma_listen(s->id, backlog) : -EINVAL;

	s->listens |= !ret;
	sdp_note_socket(s, "listen", ret);
	return ret;
}

int sdp_conn_dial(struct sdp_conn *c, struct rdma_cm_id *id, struct sockaddr *from,
		  const struct sockaddr *to)
{
	c->handle.event = on_conn_event;
	c->id = id;
	c->dials = true;
	id->context = &c->handle;
	return rdma_resolve_addr(id, from, to, RESOLVE_MS);
}

int sdp_socket_connect(struct sdp_socket *s, const struct sockaddr *addr, int fd)
{
	struct sdp_conn *c;
	int ret;

	if (!s->id || s->listens) {
		rt_close_foreign(fd);
		return -EISCONN;
	}
	c = sdp_conn_create(s->rt, s, fd);
	if (!c)
		return -ENOMEM;
	ret = sdp_conn_dial(c, s->id, NULL, addr);
	if (ret) {
		s->id->context = &s->handle;
		c->id = NULL;
		sdp_conn_destroy(c);
		return ret;
	}
	sdp_channel_create(c);
	sdp_note_socket(s, "connect", 0);
	s->id = NULL;
	s->conn = c;
	return 0;
}
