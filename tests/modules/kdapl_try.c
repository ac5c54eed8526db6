/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both ends of a test of kDAPL. Without a parameter it serves; with `peer`, an address of
 * a node that serves, it tries all that a consumer does. What is not as it has to be is
 * printed; "done, 0 failures" says that all was.
 *
 * A connection: the server tells the client by a message which memory it may use, by the
 * key of an RMR; the client writes there and reads it back by RDMA, and asks the server
 * to compare.
 */
#include <arpa/inet.h>
#include <dat/kdat.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "expect.h"

static char *peer = "";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IPv4 or IPv6 address of the node that serves; none: serve");

static bool crash, leave;
module_param(crash, bool, 0444);
MODULE_PARM_DESC(crash, "crash in an upcall, instead of all that");
module_param(leave, bool, 0444);
MODULE_PARM_DESC(leave, "do not close the IA at the end, where events are on their way");

#define DATA_BYTES 65536
#define MSG_BYTES  256
#define MSGS	   8
#define QLEN	   128
#define EVENTS	   256
#define PATIENCE   DAT_TIMEOUT_INFINITE
#define HANG_MS	   20000

/* connection qualifiers of the server, by how it answers */
enum { ACCEPTS = 7001, PROVIDES, REJECTS, HANDS_OFF, RESERVES, SHARES, IGNORES, NOBODY };

/** struct offer - the server's first message; then @pattern is what the client asks it to
 * find */
struct offer {
	DAT_RMR_TRIPLET memory;
	u8 pattern;
	bool good;
};

/** struct side - one end */
struct side {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_CONTEXT key;
	u8 *data;	    /* DATA_BYTES, then MSGS messages */
	struct offer *send; /* the message after those */
	bool server;
};

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, evd;
static DAT_PZ_HANDLE pz;
static DAT_SRQ_HANDLE srq;
static struct side client, served[16];
static struct side *srq_side;
static DAT_PSP_HANDLE psp[NOBODY - ACCEPTS];
static u32 num_served;
static DAT_EVENT event[EVENTS]; /* those that upcalls brought, of the client */
static u32 first, last;
static struct completion came;

#define succeed(call)		    expect(#call, call, DAT_SUCCESS)
#define refuse(call, type, subtype) expect(#call, call, DAT_ERROR(type, subtype))

/* --- both ends --- */

static DAT_LMR_TRIPLET part(const struct side *s, const void *at, size_t bytes)
{
	return (DAT_LMR_TRIPLET){.lmr_context = s->key,
				 .virtual_address = (uintptr_t)at,
				 .segment_length = bytes};
}

static struct offer *message(const struct side *s, u64 i)
{
	return (struct offer *)(void *)(s->data + DATA_BYTES + i * MSG_BYTES);
}

static void post_recv(struct side *s, u64 i)
{
	DAT_LMR_TRIPLET iov = part(s, message(s, i), MSG_BYTES);
	DAT_DTO_COOKIE cookie = {.as_64 = i};

	if (s == srq_side)
		succeed(dat_srq_post_recv(srq, 1, &iov, cookie));
	else
		succeed(dat_ep_post_recv(s->ep, 1, &iov, cookie,
					 DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_offer(struct side *s, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET iov[2] = {part(s, s->send, 8),
				  part(s, (u8 *)s->send + 8, sizeof(*s->send) - 8)};

	succeed(dat_ep_post_send(s->ep, 2, iov, (DAT_DTO_COOKIE){.as_64 = 1000}, flags));
}

static void register_memory(struct side *s)
{
	const size_t bytes = DATA_BYTES + (MSGS + 1) * MSG_BYTES;
	DAT_VLEN length;
	DAT_VADDR addr;

	s->data = kzalloc(bytes, GFP_KERNEL);
	s->send = message(s, MSGS);
	succeed(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL,
				(DAT_REGION_DESCRIPTION){.for_va = s->data}, bytes, pz,
				DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_OPTIMIZE_DONT_CARE,
				&s->lmr, &s->key, NULL, &length, &addr));
	expect("length", length, bytes);
	expect("address", addr, (uintptr_t)s->data);
	succeed(dat_rmr_create(pz, &s->rmr));
}

static void open_side(struct side *s, bool with_srq)
{
	register_memory(s);
	if (with_srq)
		srq_side = s;
	if (with_srq)
		succeed(dat_ep_create_with_srq(ia, pz, evd, evd, evd, srq, NULL, &s->ep));
	else
		succeed(dat_ep_create(ia, pz, evd, evd, evd, NULL, &s->ep));
	succeed(dat_set_consumer_context(s->ep, (DAT_CONTEXT){.as_ptr = s}));
	for (u64 i = 0; i < MSGS; i++)
		post_recv(s, i);
	if (with_srq)
		succeed(dat_srq_set_lw(srq, MSGS));
}

static void close_side(struct side *s)
{
	if (s->ep)
		succeed(dat_ep_free(s->ep));
	if (s->rmr)
		succeed(dat_rmr_free(s->rmr));
	if (s->lmr)
		succeed(dat_lmr_free(s->lmr));
	kfree(s->data);
	*s = (struct side){.server = s->server};
}

static struct side *side_of(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context = {.as_ptr = NULL};

	succeed(dat_get_consumer_context(ep, &context));
	return context.as_ptr;
}

/* --- the server, from upcalls alone --- */

static void offer_memory(struct side *s)
{
	const DAT_LMR_TRIPLET all = part(s, s->data, DATA_BYTES);
	DAT_RMR_CONTEXT key;

	succeed(dat_rmr_bind(
		s->rmr, &all,
		DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, s->ep,
		(DAT_RMR_COOKIE){.as_ptr = s}, DAT_COMPLETION_DEFAULT_FLAG, &key));
	s->send->memory = (DAT_RMR_TRIPLET){.rmr_context = key,
					    .target_address = all.virtual_address,
					    .segment_length = DATA_BYTES};
}

static void compare(struct side *s, const struct offer *asked)
{
	s->send->good = true;
	for (u32 i = 0; i < DATA_BYTES; i++)
		if (s->data[i] != (u8)(asked->pattern + i))
			s->send->good = false;
	send_offer(s, DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG);
}

static void on_request(const DAT_CR_ARRIVAL_EVENT_DATA *arrival)
{
	struct side *s = &served[num_served];
	DAT_CR_PARAM cr;
	DAT_EP_PARAM param = {.pz_handle = pz,
			      .recv_evd_handle = evd,
			      .request_evd_handle = evd,
			      .connect_evd_handle = evd};

	succeed(dat_cr_query(arrival->cr_handle, DAT_CR_FIELD_ALL, &cr));
	expect("private data", memcmp(cr.private_data, "hello", 5), 0);
	expect("family", cr.remote_ia_address_ptr->sa_family,
	       arrival->local_ia_address_ptr->sa_family);
	switch (arrival->conn_qual) {
	case REJECTS:
		succeed(dat_cr_reject(arrival->cr_handle));
		return;
	case HANDS_OFF:
		succeed(dat_cr_handoff(arrival->cr_handle, ACCEPTS));
		return;
	case IGNORES:
		return;
	case RESERVES:
		expect("RSP", (uintptr_t)arrival->sp_handle.rsp_handle, 0);
		s = side_of(cr.local_ep_handle);
		succeed(dat_cr_accept(arrival->cr_handle, DAT_HANDLE_NULL, 3,
				      (char[]){"yes"}));
		return;
	case PROVIDES:
		num_served++;
		register_memory(s);
		s->ep = cr.local_ep_handle;
		succeed(dat_set_consumer_context(s->ep, (DAT_CONTEXT){.as_ptr = s}));
		refuse(dat_cr_accept(arrival->cr_handle, DAT_HANDLE_NULL, 0, NULL),
		       DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFTENTATIVE);
		succeed(dat_ep_modify(s->ep,
				      DAT_EP_FIELD_PZ_HANDLE |
					      DAT_EP_FIELD_RECV_EVD_HANDLE |
					      DAT_EP_FIELD_REQUEST_EVD_HANDLE |
					      DAT_EP_FIELD_CONNECT_EVD_HANDLE,
				      &param));
		for (u64 i = 0; i < MSGS; i++)
			post_recv(s, i);
		break;
	default:
		num_served++;
		open_side(s, arrival->conn_qual == SHARES);
		break;
	}
	succeed(dat_cr_accept(arrival->cr_handle, s->ep, 3, (char[]){"yes"}));
}

static void on_transfer(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct side *s;

	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return;
	expect("DTO", dto->status, DAT_DTO_SUCCESS);
	if (dto->user_cookie.as_64 >= MSGS)
		return;
	s = side_of(dto->ep_handle);
	expect("length", dto->transfered_length, sizeof(struct offer));
	compare(s, message(s, dto->user_cookie.as_64));
	post_recv(s, dto->user_cookie.as_64);
}

static void serve(DAT_PVOID data, const DAT_EVENT *e, DAT_BOOLEAN more)
{
	struct side *s;

	switch (e->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		on_request(&e->event_data.cr_arrival_event_data);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		offer_memory(side_of(e->event_data.connect_event_data.ep_handle));
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		s = e->event_data.rmr_completion_event_data.user_cookie.as_ptr;
		expect("bind", e->event_data.rmr_completion_event_data.status,
		       DAT_RMR_BIND_SUCCESS);
		send_offer(s, DAT_COMPLETION_DEFAULT_FLAG);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		on_transfer(&e->event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		break;
	default:
		expect("event", e->event_number, 0);
	}
}

static void listen_all(void)
{
	DAT_SRQ_ATTR attr = {.max_recv_dtos = MSGS, .max_recv_iov = 2};
	DAT_RSP_HANDLE rsp;

	succeed(dat_srq_create(ia, pz, &attr, &srq));
	for (u64 qual = ACCEPTS; qual < NOBODY; qual++)
		if (qual != RESERVES)
			succeed(dat_psp_create(ia, qual, evd,
					       qual == PROVIDES ? DAT_PSP_PROVIDER_FLAG
								: DAT_PSP_CONSUMER_FLAG,
					       &psp[qual - ACCEPTS]));
	open_side(&served[num_served], false);
	succeed(dat_rsp_create(ia, RESERVES, served[num_served++].ep, evd, &rsp));
}

/* --- the client --- */

static void note(DAT_PVOID data, const DAT_EVENT *e, DAT_BOOLEAN more)
{
	event[last++ % EVENTS] = *e;
	complete(&came);
}

static const DAT_EVENT *next(void)
{
	static const DAT_EVENT none;

	if (!wait_for_completion_timeout(&came, HANG_MS)) {
		expect("an event", 0, 1);
		return &none;
	}
	return &event[first++ % EVENTS];
}

/* skip DTOs that are flushed */
static const DAT_EVENT *next_but_flushed(void)
{
	const DAT_EVENT *e = next();

	while (e->event_number == DAT_DTO_COMPLETION_EVENT &&
	       e->event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED)
		e = next();
	return e;
}

static const DAT_DTO_COMPLETION_EVENT_DATA *next_transfer_of(DAT_EVD_HANDLE from)
{
	const DAT_EVENT *e = next();

	expect("event", e->event_number, DAT_DTO_COMPLETION_EVENT);
	expect("EVD", (uintptr_t)e->evd_handle, (uintptr_t)from);
	return &e->event_data.dto_completion_event_data;
}

static const DAT_DTO_COMPLETION_EVENT_DATA *next_transfer(void)
{
	return next_transfer_of(evd);
}

/* IPv4, or IPv6 */
static struct sockaddr_in6 peer_addr(void)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
	struct sockaddr_in *four = (struct sockaddr_in *)&addr;

	if (inet_pton(AF_INET6, peer, &addr.sin6_addr) == 1)
		return addr;
	four->sin_family = AF_INET;
	inet_pton(AF_INET, peer, &four->sin_addr);
	return addr;
}

static DAT_RETURN dial(struct side *s, u64 qual, DAT_TIMEOUT timeout)
{
	struct sockaddr_in6 addr = peer_addr();

	return dat_ep_connect(s->ep, (DAT_IA_ADDRESS_PTR)&addr, qual, timeout, 5,
			      (char[]){"hello"}, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static struct offer receive(struct side *s)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = next_transfer();
	u64 i = dto->user_cookie.as_64;
	struct offer offer = {.pattern = 0};

	expect("status", dto->status, DAT_DTO_SUCCESS);
	if (i >= MSGS) {
		expect("cookie", i, 0);
		return offer;
	}
	offer = *message(s, i);
	post_recv(s, i);
	return offer;
}

static void write_and_read(struct side *s, const DAT_RMR_TRIPLET *memory, u8 pattern)
{
	DAT_LMR_TRIPLET iov[2] = {part(s, s->data, 1000),
				  part(s, s->data + 1000, DATA_BYTES - 1000)};
	DAT_RMR_TRIPLET half = *memory;

	half.segment_length = DATA_BYTES / 2;
	for (u32 i = 0; i < DATA_BYTES; i++)
		s->data[i] = (u8)(pattern + i);
	refuse(dat_ep_post_rdma_write(s->ep, 2, iov, (DAT_DTO_COOKIE){.as_64 = 2000},
				      &half, 0),
	       DAT_LENGTH_ERROR, 0);
	succeed(dat_ep_post_rdma_write(s->ep, 2, iov, (DAT_DTO_COOKIE){.as_64 = 2000},
				       memory, DAT_COMPLETION_SUPPRESS_FLAG));
	/* behind the write, and into memory that shows what came */
	succeed(dat_ep_post_rdma_write(s->ep, 0, NULL, (DAT_DTO_COOKIE){.as_64 = 2001},
				       memory, DAT_COMPLETION_DEFAULT_FLAG));
	expect("write", next_transfer()->user_cookie.as_64, 2001);
	memset(s->data, 0, DATA_BYTES);
	succeed(dat_ep_post_rdma_read(s->ep, 2, iov, (DAT_DTO_COOKIE){.as_64 = 2002},
				      &half, DAT_COMPLETION_DEFAULT_FLAG));
	expect("read", next_transfer()->transfered_length, DATA_BYTES / 2);
	for (u32 i = 0; i < DATA_BYTES; i++)
		if (s->data[i] != (i < DATA_BYTES / 2 ? (u8)(pattern + i) : 0)) {
			expect("data that was read", i, DATA_BYTES);
			break;
		}
}

static void ask_server(struct side *s, u8 pattern)
{
	s->send->pattern = pattern;
	send_offer(s, DAT_COMPLETION_SUPPRESS_FLAG);
	expect("what the server found", receive(s).good, true);
}

static void expect_connection(struct side *s)
{
	const DAT_EVENT *e = next_but_flushed();
	const DAT_CONNECTION_EVENT_DATA *c = &e->event_data.connect_event_data;
	DAT_EP_STATE state;

	expect("event", e->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect("EP", (uintptr_t)c->ep_handle, (uintptr_t)s->ep);
	expect("private data", c->private_data ? memcmp(c->private_data, "yes", 3) : 1,
	       0);
	succeed(dat_ep_get_status(s->ep, &state, NULL, NULL));
	expect("state", state, DAT_EP_STATE_CONNECTED);
}

static void hang_up(struct side *s, DAT_CLOSE_FLAGS flags)
{
	DAT_EP_STATE state;

	succeed(dat_ep_disconnect(s->ep, flags));
	expect("event", next_but_flushed()->event_number,
	       DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dat_ep_get_status(s->ep, &state, NULL, NULL));
	expect("state", state, DAT_EP_STATE_DISCONNECTED);
}

static void converse(struct side *s, u64 qual, DAT_CLOSE_FLAGS flags)
{
	struct offer offer;

	succeed(dial(s, qual, PATIENCE));
	expect_connection(s);
	offer = receive(s);
	write_and_read(s, &offer.memory, (u8)qual);
	ask_server(s, (u8)qual);
	hang_up(s, flags);
}

/* its receives are flushed by then: connect it again */
static void reset(struct side *s)
{
	DAT_EP_STATE state;
	DAT_BOOLEAN recv_idle, request_idle;

	succeed(dat_ep_reset(s->ep));
	succeed(dat_ep_get_status(s->ep, &state, &recv_idle, &request_idle));
	expect("state", state, DAT_EP_STATE_UNCONNECTED);
	expect("idle", recv_idle && request_idle, true);
	for (u64 i = 0; i < MSGS; i++)
		post_recv(s, i);
}

static void expect_failure(struct side *s, u64 qual, DAT_TIMEOUT timeout, u32 number)
{
	succeed(dial(s, qual, timeout));
	expect("event", next_but_flushed()->event_number, number);
	reset(s);
}

static void try_connections(struct side *s)
{
	for (u64 qual = ACCEPTS; qual < NOBODY; qual++) {
		if (qual == REJECTS || qual == IGNORES)
			continue;
		converse(s, qual,
			 qual % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
		reset(s);
	}
	expect_failure(s, REJECTS, PATIENCE, DAT_CONNECTION_EVENT_PEER_REJECTED);
	expect_failure(s, NOBODY, PATIENCE, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_failure(s, RESERVES, PATIENCE,
		       DAT_CONNECTION_EVENT_NON_PEER_REJECTED); /* it had its one */
	expect_failure(s, IGNORES, 20000, DAT_CONNECTION_EVENT_TIMED_OUT);
	succeed(dial(s, IGNORES, PATIENCE));
	hang_up(s, DAT_CLOSE_ABRUPT_FLAG);
	reset(s);
}

/* A key that is not valid any more breaks the connection, and both ends hear of it. */
static void try_protection(struct side *s)
{
	DAT_LMR_TRIPLET iov = part(s, s->data, 64);
	const DAT_EVENT *e;
	struct offer offer;
	bool broken = false, failed = false;

	succeed(dial(s, ACCEPTS, PATIENCE));
	expect_connection(s);
	offer = receive(s);
	offer.memory.rmr_context ^= 0x5500;
	succeed(dat_ep_post_rdma_read(
		s->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 1},
		&(DAT_RMR_TRIPLET){.rmr_context = offer.memory.rmr_context,
				   .target_address = offer.memory.target_address,
				   .segment_length = 64},
		DAT_COMPLETION_DEFAULT_FLAG));
	while (!broken || !failed) {
		e = next_but_flushed();
		if (e->event_number == DAT_DTO_COMPLETION_EVENT) {
			expect("status", e->event_data.dto_completion_event_data.status,
			       DAT_DTO_ERR_REMOTE_ACCESS);
			failed = true;
		} else { /* or the peer, whose end broke as well, was first */
			expect("event",
			       e->event_number == DAT_CONNECTION_EVENT_BROKEN ||
				       e->event_number ==
					       DAT_CONNECTION_EVENT_DISCONNECTED,
			       true);
			broken = true;
		}
	}
	/* requests of a disconnected EP are flushed */
	succeed(dat_ep_post_send(s->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 77}, 0));
	do
		e = next();
	while (e->event_data.dto_completion_event_data.user_cookie.as_64 != 77);
	expect("status", e->event_data.dto_completion_event_data.status,
	       DAT_DTO_ERR_FLUSHED);
	reset(s);
}

/* A receive that the peer does not mark leads to no upcall; one that it marks, to upcalls
 * for all. A request of ours that is unsignalled is told with the next that is not. */
static void try_quiet(struct side *s)
{
	const DAT_UPCALL_OBJECT upcall = {NULL, note};
	struct side quiet = {.ep = NULL};
	DAT_EP_PARAM param;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVENT e;

	succeed(dat_evd_kcreate(ia, QLEN, DAT_UPCALL_MANY, &upcall, DAT_EVD_DTO_FLAG,
				&recv_evd));
	succeed(dat_ep_query(s->ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	register_memory(&quiet);
	succeed(dat_ep_create(ia, pz, recv_evd, evd, evd, &param.ep_attr, &quiet.ep));
	for (u64 i = 0; i < MSGS; i++)
		post_recv(&quiet, i);
	succeed(dial(&quiet, ACCEPTS, PATIENCE));
	expect_connection(&quiet);
	while (dat_evd_dequeue(recv_evd, &e) != DAT_SUCCESS)
		msleep(1);
	expect("offer", e.event_data.dto_completion_event_data.user_cookie.as_64, 0);
	quiet.send->pattern = 1;
	send_offer(&quiet, DAT_COMPLETION_UNSIGNALLED_FLAG);
	expect("answer", next_transfer_of(recv_evd)->user_cookie.as_64, 1);
	send_offer(&quiet, DAT_COMPLETION_DEFAULT_FLAG);
	for (int i = 0; i < 3; i++) { /* two of ours, in order, and an answer */
		const DAT_EVENT *got = next();

		expect("cookie",
		       got->event_data.dto_completion_event_data.user_cookie.as_64,
		       got->evd_handle == recv_evd ? 2 : 1000);
	}
	hang_up(&quiet, DAT_CLOSE_GRACEFUL_FLAG);
	close_side(&quiet);
	succeed(dat_evd_free(recv_evd));
}

/* A request that finds no room in the consumer's EVD is refused, and the consumer is
 * told. */
static void try_overflow(void)
{
	struct side s[3] = {};
	DAT_EVD_HANDLE full;
	DAT_PSP_HANDLE point;
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;
	DAT_EVENT e;

	succeed(dat_evd_kcreate(ia, 1, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &full));
	succeed(dat_psp_create_any(ia, &qual, full, DAT_PSP_CONSUMER_FLAG, &point));
	succeed(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	for (int i = 0; i < 3; i++) { /* to ourselves; there is room for 2 */
		open_side(&s[i], false);
		succeed(dat_ep_connect(s[i].ep, attr.ia_address_ptr, qual, PATIENCE, 0,
				       NULL, DAT_QOS_BEST_EFFORT,
				       DAT_CONNECT_DEFAULT_FLAG));
	}
	expect("event", next_but_flushed()->event_number,
	       DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	succeed(dat_evd_dequeue(async_evd, &e));
	expect("event", e.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	expect("EVD", (uintptr_t)e.event_data.asynch_error_event_data.dat_handle,
	       (uintptr_t)full);
	refuse(dat_evd_free(full), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	succeed(dat_psp_free(point));
	succeed(dat_evd_dequeue(full, &e));
	succeed(dat_cr_reject(e.event_data.cr_arrival_event_data.cr_handle));
	expect("event", next_but_flushed()->event_number,
	       DAT_CONNECTION_EVENT_PEER_REJECTED);
	succeed(dat_evd_free(full)); /* with the other request */
	expect("event", next_but_flushed()->event_number,
	       DAT_CONNECTION_EVENT_PEER_REJECTED);
	for (int i = 0; i < 3; i++)
		close_side(&s[i]);
}

/* two connections to one place; and what may not be done to an EP that is connected */
static void try_dup(struct side *s)
{
	struct side other = {.ep = NULL};
	DAT_EP_PARAM param;

	open_side(&other, false);
	refuse(dat_ep_dup_connect(other.ep, s->ep, PATIENCE, 0, NULL,
				  DAT_QOS_BEST_EFFORT),
	       DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	succeed(dial(s, ACCEPTS, PATIENCE));
	expect_connection(s);
	receive(s);
	succeed(dat_ep_dup_connect(other.ep, s->ep, PATIENCE, 5, (char[]){"hello"},
				   DAT_QOS_BEST_EFFORT));
	expect_connection(&other);
	receive(&other);
	refuse(dat_ep_reset(other.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
	refuse(dial(&other, ACCEPTS, PATIENCE), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_CONNECTED);
	succeed(dat_ep_query(other.ep, DAT_EP_FIELD_ALL, &param));
	refuse(dat_ep_modify(other.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_CONNECTED);
	expect("remote port", param.remote_port_qual, ACCEPTS);
	expect("state", param.ep_state, DAT_EP_STATE_CONNECTED);
	refuse(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	refuse(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	close_side(&other); /* connected: the peer is told */
	hang_up(s, DAT_CLOSE_GRACEFUL_FLAG);
	reset(s);
}

/* --- without a peer --- */

static void try_software_events(void)
{
	const DAT_EVENT software = {.event_number = DAT_SOFTWARE_EVENT};
	DAT_EVD_HANDLE quiet;
	DAT_EVENT e;
	int n = 0;

	succeed(dat_evd_kcreate(ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG,
				&quiet));
	refuse(dat_evd_dequeue(quiet, &e), DAT_QUEUE_EMPTY, 0);
	while (dat_evd_post_se(quiet, &software) == DAT_SUCCESS)
		n++;
	expect("4 events at least", n >= 4 && n < 100, true);
	refuse(dat_evd_post_se(quiet, &software), DAT_QUEUE_FULL, 0);
	succeed(dat_evd_resize(quiet, 64));
	succeed(dat_evd_post_se(quiet, &software));
	for (; n >= 0; n--)
		succeed(dat_evd_dequeue(quiet, &e));
	expect("event", e.event_number, DAT_SOFTWARE_EVENT);
	refuse(dat_evd_dequeue(quiet, &e), DAT_QUEUE_EMPTY, 0);
	/* upcalls begin with what is queued when they are enabled */
	succeed(dat_evd_post_se(quiet, &software));
	succeed(dat_evd_modify_upcall(quiet, DAT_UPCALL_MANY,
				      &(DAT_UPCALL_OBJECT){NULL, note}));
	expect("event", next()->event_number, DAT_SOFTWARE_EVENT);
	succeed(dat_evd_modify_upcall(quiet, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME));
	succeed(dat_evd_post_se(quiet, &software));
	succeed(dat_evd_dequeue(quiet, &e));
	succeed(dat_evd_free(quiet));
	refuse(dat_evd_dequeue(NULL, &e), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	refuse(dat_evd_post_se(evd, &software), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}

static void try_memory(struct side *s)
{
	DAT_REGION_DESCRIPTION region = {.for_lmr_handle = s->lmr};
	unsigned long page[2] = {get_zeroed_page(GFP_KERNEL),
				 get_zeroed_page(GFP_KERNEL)};
	DAT_PADDR pages[2] = {page[1], page[0]};
	const DAT_LMR_TRIPLET good = part(s, s->data, 8), bad = part(s, s->data - 1, 8);
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	DAT_VLEN length;

	succeed(dat_lmr_kcreate(ia, DAT_MEM_TYPE_LMR, region, 0, pz,
				DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, &lmr, NULL, NULL,
				&length, NULL));
	expect("length", length, DATA_BYTES + (MSGS + 1) * MSG_BYTES);
	succeed(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	expect("address", param.registered_address, (uintptr_t)s->data);
	succeed(dat_lmr_free(lmr));
	region.for_array = pages;
	succeed(dat_lmr_kcreate(ia, DAT_MEM_TYPE_PHYSICAL, region, 2, pz,
				DAT_MEM_PRIV_ALL_FLAG, 0, &lmr, NULL, NULL, &length,
				NULL));
	expect("length", length, 2 * PAGE_SIZE);
	succeed(dat_lmr_free(lmr));
	region.for_pa = page[0];
	succeed(dat_lmr_kcreate(ia, DAT_MEM_TYPE_IA, region, 100, pz,
				DAT_MEM_PRIV_ALL_FLAG, 0, &lmr, NULL, NULL, &length,
				NULL));
	succeed(dat_lmr_free(lmr));
	refuse(dat_lmr_free(lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	refuse(dat_lmr_kcreate(ia, DAT_MEM_TYPE_PLATFORM, region, 1, pz, 0, 0, &lmr, NULL,
			       NULL, NULL, NULL),
	       DAT_MODEL_NOT_SUPPORTED, 0);
	refuse(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 0, pz, 0, 0, &lmr, NULL,
			       NULL, NULL, NULL),
	       DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	succeed(dat_lmr_sync_rdma_read(ia, &good, 1));
	refuse(dat_lmr_sync_rdma_write(ia, &bad, 1), DAT_INVALID_PARAMETER,
	       DAT_INVALID_ARG2);
	free_page(page[0]);
	free_page(page[1]);
}

static void try_points(struct side *s)
{
	DAT_PSP_HANDLE one, two;
	DAT_RSP_HANDLE rsp;
	DAT_CONN_QUAL qual;
	DAT_PSP_PARAM param;

	succeed(dat_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &one));
	expect("qualifier", qual > 0 && qual < 65536, true);
	refuse(dat_psp_create(ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &two),
	       DAT_CONN_QUAL_IN_USE, 0);
	refuse(dat_psp_create(ia, 65536, evd, 0, &two), DAT_INVALID_PARAMETER,
	       DAT_INVALID_ARG2);
	refuse(dat_psp_create(ia, 5, async_evd, 0, &two), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EVD_CR);
	succeed(dat_psp_query(one, DAT_PSP_FIELD_ALL, &param));
	expect("qualifier", param.conn_qual, qual);
	succeed(dat_psp_free(one));
	refuse(dat_psp_free(one), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	succeed(dat_rsp_create(ia, qual, s->ep, evd, &rsp));
	refuse(dat_ep_free(s->ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
	refuse(dial(s, ACCEPTS, PATIENCE), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_RESERVED);
	succeed(dat_rsp_free(rsp));
}

static void try_endpoint(void)
{
	DAT_EP_PARAM param = {.pz_handle = pz, .recv_evd_handle = evd};
	DAT_LMR_TRIPLET iov = part(&client, client.data, 8);
	DAT_EP_HANDLE ep;
	DAT_COUNT n;

	succeed(dat_ep_create(ia, NULL, NULL, evd, evd, NULL, &ep));
	refuse(dat_ep_post_recv(ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}, 0),
	       DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFIGURED);
	succeed(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE,
			      &param));
	refuse(dat_ep_modify(ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER,
	       DAT_INVALID_ARG2);
	param.ep_attr.max_recv_dtos = 1;
	succeed(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	param.ep_attr.max_recv_dtos = 1 << 30;
	refuse(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param),
	       DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	succeed(dat_ep_post_recv(ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}, 0));
	refuse(dat_ep_post_recv(ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}, 0),
	       DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	succeed(dat_ep_recv_query(ep, &n, NULL));
	expect("receives", n, 1);
	refuse(dat_ep_post_send(ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}, 0),
	       DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	refuse(dat_ep_disconnect(ep, 0), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_UNCONNECTED);
	refuse(dat_ep_set_watermark(ep, 1, 2), DAT_MODEL_NOT_SUPPORTED, 0);
	succeed(dat_ep_free(ep));
	refuse(dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

static void try_srq(void)
{
	DAT_SRQ_ATTR attr = {.max_recv_dtos = 2, .max_recv_iov = 1};
	DAT_LMR_TRIPLET iov = part(&client, client.data, 8);
	DAT_SRQ_PARAM param;
	DAT_EVENT e;

	succeed(dat_srq_create(ia, pz, &attr, &srq));
	for (int i = 0; i < 2; i++)
		succeed(dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}));
	refuse(dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}),
	       DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	succeed(dat_srq_resize(srq, 16));
	succeed(dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0}));
	succeed(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	expect("posted", param.outstanding_dto_count, 3);
	expect("size", param.max_recv_dtos, 16);
	succeed(dat_srq_set_lw(srq, 2));
	refuse(dat_evd_dequeue(async_evd, &e), DAT_QUEUE_EMPTY, 0);
	refuse(dat_srq_set_lw(srq, 17), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	succeed(dat_srq_free(srq));
}

static void try_adapter(void)
{
	DAT_PROVIDER_INFO info, *list[] = {&info};
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_HANDLE same = async_evd, found;
	DAT_IA_HANDLE second;
	DAT_HANDLE_TYPE type;
	const char *major, *minor;
	DAT_IA_ATTR attr;
	DAT_COUNT n;

	succeed(dat_registry_list_providers(1, &n, list));
	expect("providers", n, 1);
	refuse(dat_ia_open((char[]){"nowhere"}, 8, &same, &second),
	       DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	refuse(dat_ia_openv(info.ia_name, 8, &same, &second, 2, 0, DAT_TRUE),
	       DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	succeed(dat_ia_open(info.ia_name, 8, &same, &second));
	refuse(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_IA_IN_USE);
	succeed(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
	refuse(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_IA_IN_USE);
	succeed(dat_ia_query(ia, &found, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
			     &provider));
	expect("EVD", (uintptr_t)found, (uintptr_t)async_evd);
	expect("limits",
	       attr.max_eps > 0 && attr.max_lmrs > 0 && attr.max_message_size > 0, true);
	expect("family", attr.ia_address_ptr->sa_family, AF_INET);
	expect("name", strcmp(provider.provider_name, info.ia_name), 0);
	succeed(dat_get_handle_type(evd, &type));
	expect("type", type, DAT_HANDLE_TYPE_EVD);
	refuse(dat_pz_query(evd, DAT_PZ_FIELD_ALL, NULL), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_PZ);
	succeed(dat_strerror(DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE),
			     &major, &minor));
	expect("text", strcmp(minor, "DAT_INVALID_STATE_SRQ_IN_USE"), 0);
}

#define HINT(type)                                                                       \
	dat_ia_memtype_hint(ia, type, 100, DAT_MEM_OPTIMIZE_DONT_CARE, &length, &alignment)

/* What the other tests do not ask for. */
static void try_queries(void)
{
	DAT_EVD_PARAM evd_param;
	DAT_RMR_PARAM rmr_param;
	DAT_RSP_PARAM rsp_param;
	DAT_RSP_HANDLE rsp;
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE ep;
	DAT_VLEN length;
	DAT_VADDR alignment;

	succeed(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &evd_param));
	expect("IA", (uintptr_t)evd_param.ia_handle, (uintptr_t)ia);
	expect("length", evd_param.evd_qlen >= 1, true);
	expect("streams", evd_param.evd_flags & DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG);
	refuse(dat_evd_query(pz, 0, &evd_param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	succeed(dat_rmr_create(pz, &rmr));
	succeed(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &rmr_param));
	expect("PZ", (uintptr_t)rmr_param.pz_handle, (uintptr_t)pz);
	expect("nothing is bound", rmr_param.lmr_triplet.segment_length, 0);
	succeed(dat_rmr_free(rmr));
	refuse(dat_rmr_query(rmr, 0, &rmr_param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	succeed(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	succeed(dat_rsp_create(ia, 4711, ep, evd, &rsp));
	succeed(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param));
	expect("qualifier", rsp_param.conn_qual, 4711);
	expect("EP", (uintptr_t)rsp_param.ep_handle, (uintptr_t)ep);
	succeed(dat_rsp_free(rsp));
	refuse(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_RSP);
	succeed(dat_ep_free(ep));
	succeed(HINT(DAT_MEM_TYPE_VIRTUAL));
	expect("length", length, 100);
	succeed(HINT(DAT_MEM_TYPE_PHYSICAL));
	expect("length of pages", length, PAGE_SIZE);
	expect("alignment of pages", alignment, PAGE_SIZE);
	refuse(HINT(DAT_MEM_TYPE_PLATFORM), DAT_MODEL_NOT_SUPPORTED, 0);
	refuse(HINT(DAT_MEM_TYPE_BYPASS), DAT_MODEL_NOT_SUPPORTED, 0);
	refuse(HINT((DAT_MEM_TYPE)3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void try_all(void)
{
	open_side(&client, false);
	try_adapter();
	try_software_events();
	try_queries();
	try_memory(&client);
	try_points(&client);
	try_endpoint();
	try_srq();
	try_connections(&client);
	try_protection(&client);
	try_dup(&client);
	try_quiet(&client);
	try_overflow();
	close_side(&client);
}

/* --- consumers that do not behave --- */

static void crash_now(DAT_PVOID data, const DAT_EVENT *e, DAT_BOOLEAN more)
{
	__builtin_trap();
}

static void misbehave(void)
{
	const DAT_EVENT software = {.event_number = DAT_SOFTWARE_EVENT};
	const DAT_UPCALL_OBJECT upcall = {NULL, crash_now};
	DAT_SRQ_ATTR attr = {.max_recv_dtos = MSGS, .max_recv_iov = 2};
	DAT_EVD_HANDLE bad;
	DAT_CONN_QUAL qual;

	succeed(dat_srq_create(ia, pz, &attr, &srq));
	succeed(dat_ep_create_with_srq(ia, pz, evd, evd, evd, srq, NULL, &client.ep));
	succeed(dat_rmr_create(pz, &client.rmr));
	succeed(dat_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp[0]));
	succeed(dat_evd_kcreate(ia, 4, DAT_UPCALL_MANY, &upcall, DAT_EVD_SOFTWARE_FLAG,
				&bad));
	for (int i = 0; i < 3; i++)
		succeed(dat_evd_post_se(bad, &software));
	if (crash)
		msleep(60000); /* until it has crashed */
}

/* --- the module --- */

static int __init kdapl_try_init(void)
{
	bool serves = !*peer;
	const DAT_UPCALL_OBJECT upcall = {NULL, serves ? serve : note};
	DAT_PROVIDER_INFO info, *list[] = {&info};
	DAT_COUNT n = 0;

	init_completion(&came);
	succeed(dat_registry_list_providers(1, &n, list));
	if (!n)
		return -ENODEV;
	succeed(dat_ia_open(info.ia_name, 8, &async_evd, &ia));
	succeed(dat_pz_create(ia, &pz));
	succeed(dat_evd_kcreate(ia, QLEN, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				DAT_EVD_DEFAULT_FLAG, &evd));
	if (crash)
		misbehave();
	else if (serves && !leave)
		listen_all();
	else if (!leave)
		try_all();
	pr_info("%s, %d failures\n", serves ? "serves" : "done", failures);
	return 0;
}

static void __exit kdapl_try_exit(void)
{
	DAT_EVENT e;

	if (leave) {
		misbehave();
		return;
	}
	/* the client has freed all but these; what the server has, the IA frees */
	if (!*peer) {
		succeed(dat_evd_dequeue(async_evd, &e));
		expect("SRQ", (uintptr_t)e.event_data.asynch_error_event_data.dat_handle,
		       (uintptr_t)srq);
		expect("reason", e.event_data.asynch_error_event_data.reason,
		       DAT_SRQ_LOW_WATERMARK_EVENT);
	} else {
		succeed(dat_evd_free(evd));
		succeed(dat_pz_free(pz));
	}
	succeed(dat_ia_close(ia,
			     *peer ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
	for (u32 i = 0; i < num_served; i++)
		kfree(served[i].data);
	pr_info("over, %d failures\n", failures);
}

module_init(kdapl_try_init);
module_exit(kdapl_try_exit);
MODULE_LICENSE("Dual BSD/GPL");
