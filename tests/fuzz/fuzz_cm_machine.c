/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two communication managers whose consumers connect, accept, load paths and close in any
 * order, over a network that the input is: it loses, doubles, reorders and changes messages, and
 * makes some up. Every request that is accepted is reported once, an id that is gone is not used
 * any more (it is freed at once), and when the consumers have closed all and the timers have
 * expired, no id is left.
 */
#include <string.h>

#include "../unit/cm/hosts.h"
#include "check.h"

#define ENDS_MAX  32
#define WIRE_MAX  64 /* longer queues only cost time */
#define FIRES_MAX 20000
#define CLOSED	  ((void *)1) /* an end's user, when its consumer has closed it */

struct input {
	const uint8_t *at;
	size_t left;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* --- the ends --- */

/* Free what is gone, and look at the others. */
static void settle(struct hosts *h)
{
	struct end *end, *next;

	for (unsigned int i = 0; i < 2; i++)
		list_for_each_entry_safe(end, next, &h->host[i].ends, node) {
			if (end->gone) {
				list_del(&end->node);
				free(end);
				continue;
			}
			check(end->conn.state < CM_NR_STATES);
			check(end->conn.lap_state < CM_NR_LAP_STATES);
			for (unsigned int n = 0; n < end->num_heard; n++)
				check(end->heard[n] > CM_NO_NEWS && end->heard[n] < CM_NR_NEWS);
		}
}

static void on_heard(struct end *end, const struct cm_event *event)
{
	check(end->user != CLOSED);
	if (event->news == CM_REQ_RECEIVED || event->news == CM_SIDR_REQ_RECEIVED)
		check(event->listener && event->message);
}

/* Return: the end of @host that its consumer has open and that @which selects; NULL */
static struct end *open_end(struct host *host, uint8_t which)
{
	struct end *end, *open[ENDS_MAX];
	unsigned int n = 0;

	list_for_each_entry(end, &host->ends, node)
		if (end->user != CLOSED && n < ENDS_MAX)
			open[n++] = end;
	return n ? open[which % n] : NULL;
}

static void close_end(struct end *end, mono_t now)
{
	end->user = CLOSED;
	cm_conn_close(&end->conn, now);
}

/* --- calls of the consumers --- */

static void request(struct hosts *h, struct host *host, uint8_t how)
{
	struct host *to = &h->host[host == &h->host[0]];
	struct cm_target target = target_of(host, to);
	struct wire_cm_sidr_req sidr = {.pkey = 0xffff, .service_id = SERVICE};
	struct wire_cm_req req = req_of(host, to, 0x100u + how % 4);
	struct end *end = host_open(host);

	target.peer_to_peer = how & 4;
	target.redirects = how & 32 ? 2 : 0;
	if (how & 8)
		target.alternate = target.route;
	req.transport_service = how >> 6;
	if (how & 16)
		cm_send_sidr_req(&end->conn, &sidr, &target, h->now);
	else
		cm_send_req(&end->conn, &req, &target, h->now);
}

static void send(struct hosts *h, struct end *end, uint8_t attr, uint8_t how)
{
	struct host *to = &h->host[end->host == &h->host[0]];
	struct cm_route alternate = target_of(end->host, to).route;
	union cm_message m;

	memset(&m, how & 0x80 ? 0xff : 0, sizeof(m));
	switch (attr) {
	case WIRE_CM_MRA:
		m.mra.service_timeout_enc = how & 31;
		break;
	case WIRE_CM_REJ:
		m.rej.reason = how & 63;
		m.rej.info_bytes = CM_ARI_MAX;
		class_port_info(to, m.rej.info);
		break;
	case WIRE_CM_REP:
		m.rep.local_qpn = 0x200u + how % 4;
		m.rep.rnr_retry_count = how & 7;
		break;
	case WIRE_CM_LAP:
		m.lap.alternate = req_of(end->host, to, 1).primary;
		break;
	case WIRE_CM_SIDR_REP:
		m.sidr_rep.status = how & 7;
		m.sidr_rep.info_bytes = CM_ARI_MAX;
		class_port_info(to, m.sidr_rep.info);
		break;
	default:
		break;
	}
	cm_send(&end->conn, attr, &m, how & 1 ? &alternate : NULL, h->now);
}

static void consumer(struct hosts *h, struct input *in)
{
	const uint8_t what = take(in), how = take(in);
	struct host *host = &h->host[what >> 7];
	struct end *end = open_end(host, how >> 4);

	if (what % 16 < 2) {
		if (host->cm.num_conns < ENDS_MAX)
			request(h, host, how);
		return;
	}
	if (!end)
		return;
	if (what & 64 && end->conn.redirecting) {
		if (what % 16 < 4)
			cm_redirect_fail(&end->conn, &end->to, h->now);
		else
			end_redirect(end);
		return;
	}
	switch (what % 16) {
	case 2:
		close_end(end, h->now);
		break;
	case 3:
		cm_establish(&end->conn, h->now);
		break;
	case 4:
		cm_migrated(&end->conn);
		break;
	default:
		send(h, end, (uint8_t)(WIRE_CM_MRA + what % 16 - 5), how);
	}
}

/* --- the network --- */

static struct packet *nth(struct list_head *list, unsigned int n)
{
	struct packet *packet;

	list_for_each_entry(packet, list, node)
		if (!n--)
			return packet;
	return NULL;
}

static void drop(struct packet *packet)
{
	list_del(&packet->node);
	free(packet);
}

/* The input writes over some bytes of @packet. */
static void change(struct packet *packet, struct input *in)
{
	for (unsigned int n = take(in) % 8; n; n--) {
		uint8_t at = take(in);

		packet->mad[at] = take(in);
	}
}

/* A message of the input's, with the ids of a connection that exists if it likes. */
static void forge(struct hosts *h, struct input *in)
{
	const uint8_t what = take(in), how = take(in);
	struct host *host = &h->host[what >> 7];
	const struct end *end = open_end(host, how);
	struct wire_mad header = {.base_version = 1,
				  .mgmt_class = WIRE_CLASS_CM,
				  .class_version = WIRE_CM_CLASS_VERSION,
				  .method = WIRE_METHOD_SEND,
				  .attr_id = (uint16_t)(WIRE_CM_REQ + what % 16)};
	struct packet packet = {.from = &h->host[host == &h->host[0]], .to = host};

	for (unsigned int n = take(in), i = 0; i < n && i < WIRE_CM_DATA_BYTES; i++)
		packet.mad[WIRE_CM_DATA_OFFSET + i] = take(in);
	if (end) {
		header.tid = end->conn.tid;
		for (unsigned int i = 0; i < 4 && what & 0x10; i++) {
			packet.mad[WIRE_CM_DATA_OFFSET + i] =
				(uint8_t)(end->conn.remote_id >> (24 - 8 * i));
			packet.mad[WIRE_CM_DATA_OFFSET + 4 + i] =
				(uint8_t)(end->conn.local_id >> (24 - 8 * i));
		}
	}
	check(wire_mad_encode(&header, packet.mad) > 0);
	hosts_repeat(h, &packet);
}

static void network(struct hosts *h, uint8_t what, struct input *in)
{
	struct packet *packet = nth(&h->wire, what >> 6), *old = nth(&h->past, what >> 5);

	switch (what % 8) {
	case 0:
		if (packet)
			drop(packet);
		break;
	case 1:
		if (old)
			hosts_repeat(h, old);
		break;
	case 2:
		if (packet)
			change(packet, in);
		break;
	case 3:
		forge(h, in);
		break;
	case 4:
		hosts_fire(h);
		break;
	default:
		if (packet)
			hosts_arrive(h, packet);
	}
}

/* --- from the beginning to the end --- */

static void open_listeners(struct hosts *h)
{
	for (unsigned int i = 0; i < 2; i++)
		check(!cm_listen(&host_open(&h->host[i])->conn, SERVICE, CM_SERVICE_MASK_EXACT));
}

static void close_all(struct hosts *h)
{
	struct end *end;

	for (unsigned int i = 0; i < 2; i++)
		while ((end = open_end(&h->host[i], 0))) {
			close_end(end, h->now);
			settle(h);
		}
	for (unsigned int n = 0; hosts_fire(h); n++) {
		check(n < FIRES_MAX);
		settle(h);
	}
	for (unsigned int i = 0; i < 2; i++) {
		check(list_empty(&h->host[i].ends));
		check(!h->host[i].cm.num_conns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct packet *packet;
	struct hosts h;

	hosts_begin(&h, 0x1234567);
	h.heard = on_heard;
	open_listeners(&h);
	while (in.left) {
		const uint8_t what = take(&in);

		if (what & 0x10)
			consumer(&h, &in);
		else
			network(&h, what, &in);
		settle(&h);
		if ((packet = nth(&h.wire, WIRE_MAX)))
			drop(packet);
	}
	close_all(&h);
	hosts_end(&h);
	return 0;
}
