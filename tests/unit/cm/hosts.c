/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The two hosts of hosts.h. */
#include "hosts.h"

#include "wire/mad.h"

#include <stdlib.h>
#include <string.h>

static struct host *host_of(struct cm *cm)
{
	return container_of(cm, struct host, cm);
}

static struct end *end_of(struct cm_conn *conn)
{
	return container_of(conn, struct end, conn);
}

/* --- the world of a cm --- */

static int host_send(struct cm *cm, const struct cm_route *route, const void *mad)
{
	struct host *host = host_of(cm);
	struct hosts *hosts = host->hosts;
	struct packet *packet;

	if (host->send_error)
		return host->send_error;
	packet = calloc(1, sizeof(*packet));
	packet->from = host;
	packet->to = route->dlid == hosts->host[0].port.lid ? &hosts->host[0]
							    : &hosts->host[1];
	packet->qpn = route->qpn;
	memcpy(packet->mad, mad, sizeof(packet->mad));
	list_add_tail(&packet->node, &hosts->wire);
	if (hosts->sent)
		hosts->sent(hosts, packet);
	return 0;
}

static void end_arm(struct cm_conn *conn, mono_t when)
{
	end_of(conn)->timer = when;
}

static struct cm_conn *host_accept(struct cm *cm, struct cm_conn *listener)
{
	struct host *host = host_of(cm);
	struct end *end;

	if (host->full)
		return NULL;
	end = host_open(host);
	end->user = end_of(listener)->user;
	host->hosts->accepted = end;
	return &end->conn;
}

static void end_gone(struct cm_conn *conn)
{
	struct end *end = end_of(conn);

	end->gone = true;
	end->timer = end->found = MONO_NEVER;
}

static void end_hears(struct cm_conn *conn, const struct cm_event *event)
{
	struct end *end = end_of(conn);

	if (end->num_heard < HEARD_MAX)
		end->heard[end->num_heard++] = event->news;
	if (event->message)
		end->message = *event->message;
	if (end->host->hosts->heard)
		end->host->hosts->heard(end, event);
}

static bool host_find_port(struct cm *cm, uint8_t number, const union wire_gid *gid,
			   struct cm_port *found)
{
	const struct cm_port *port = &host_of(cm)->port;

	if (number ? number != port->number : memcmp(gid, &port->gid, sizeof(*gid)) != 0)
		return false;
	*found = *port;
	return true;
}

static int end_looks(struct cm_conn *conn, const struct cm_redirection *to)
{
	struct end *end = end_of(conn);

	if (end->host->lookup_error)
		return end->host->lookup_error;
	end->to = *to;
	if (end->host->hosts->redirected)
		end->host->hosts->redirected(end);
	return 0;
}

static const struct cm_ops ops = {
	.send = host_send,
	.arm = end_arm,
	.accept = host_accept,
	.gone = end_gone,
	.event = end_hears,
	.find_port = host_find_port,
	.redirect = end_looks,
};

/* --- the hosts --- */

void hosts_begin(struct hosts *hosts, uint64_t random)
{
	memset(hosts, 0, sizeof(*hosts));
	hosts->now = (mono_t){NSEC_PER_SEC};
	INIT_LIST_HEAD(&hosts->wire);
	INIT_LIST_HEAD(&hosts->past);
	for (unsigned int i = 0; i < 2; i++) {
		struct host *host = &hosts->host[i];

		host->hosts = hosts;
		INIT_LIST_HEAD(&host->ends);
		host->port = (struct cm_port){
			.number = 1, .lid = (uint16_t)(i + 1), .max_mtu = 5};
		host->port.gid.raw[0] = 0xfe;
		host->port.gid.raw[15] = (uint8_t)(i + 1);
		cm_init(&host->cm, &ops, 0x100 + i, random + i * 0x123456789abcdefull);
	}
}

static void free_packets(struct list_head *list)
{
	struct packet *packet, *next;

	list_for_each_entry_safe(packet, next, list, node)
		free(packet);
	INIT_LIST_HEAD(list);
}

void hosts_end(struct hosts *hosts)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct end *end, *next;

		cm_shut(&hosts->host[i].cm);
		list_for_each_entry_safe(end, next, &hosts->host[i].ends, node)
			free(end);
	}
	free_packets(&hosts->wire);
	free_packets(&hosts->past);
}

struct end *host_open(struct host *host)
{
	struct end *end = calloc(1, sizeof(*end));

	end->host = host;
	end->timer = end->found = MONO_NEVER;
	list_add_tail(&end->node, &host->ends);
	cm_conn_open(&host->cm, &end->conn);
	return end;
}

static struct cm_route way_back(const struct packet *packet)
{
	return (struct cm_route){
		.port = 1, .dlid = packet->from->port.lid, .pkey = 0xffff,
		.own_qpn = packet->qpn};
}

void hosts_repeat(struct hosts *hosts, const struct packet *packet)
{
	struct cm_route route = way_back(packet);

	cm_receive(&packet->to->cm, packet->mad, &route, hosts->now);
}

void hosts_arrive(struct hosts *hosts, struct packet *packet)
{
	list_del(&packet->node);
	list_add_tail(&packet->node, &hosts->past);
	hosts_repeat(hosts, packet);
}

static struct end *earliest(const struct hosts *hosts)
{
	struct end *first = NULL, *end;

	for (unsigned int i = 0; i < 2; i++)
		list_for_each_entry(end, &hosts->host[i].ends, node)
			if (end->timer.ns != MONO_NEVER.ns &&
			    (!first || mono_before(end->timer, first->timer)))
				first = end;
	return first;
}

mono_t hosts_next_timer(const struct hosts *hosts)
{
	const struct end *end = earliest(hosts);

	return end ? end->timer : MONO_NEVER;
}

bool hosts_fire(struct hosts *hosts)
{
	struct end *end = earliest(hosts);

	if (!end)
		return false;
	if (mono_before(hosts->now, end->timer))
		hosts->now = end->timer;
	end->timer = MONO_NEVER;
	cm_expire(&end->conn, hosts->now);
	return true;
}

uint16_t packet_attr(const struct packet *packet)
{
	struct wire_mad header;

	wire_mad_decode(packet->mad, sizeof(packet->mad), &header);
	return header.attr_id;
}

/* --- redirection --- */

int end_redirect(struct end *end)
{
	struct hosts *hosts = end->host->hosts;
	struct host *to = &hosts->host[!memcmp(&end->to.gid, &hosts->host[1].port.gid,
					       sizeof(end->to.gid))];
	struct cm_route route = target_of(end->host, to).route;
	const struct wire_cm_path primary = req_of(end->host, to, 0).primary;

	route.qpn = end->to.qpn;
	route.qkey = end->to.qkey;
	return cm_redirect(&end->conn, &route, &primary, PACKET_LIFE_ENC, hosts->now);
}

void class_port_info(const struct host *to, uint8_t info[CM_ARI_MAX])
{
	const struct wire_class_port_info cpi = {
		.redirect_gid = to->port.gid,
		.redirect_lid = to->port.lid,
		.redirect_pkey = 0xffff,
		.redirect_qpn = OTHER_QPN,
		.redirect_qkey = 0x1234,
	};

	wire_class_port_info_encode(&cpi, info);
}

/* --- requests between them --- */

struct cm_target target_of(const struct host *from, const struct host *to)
{
	return (struct cm_target){
		.route = {.port = 1,
			  .dlid = to->port.lid,
			  .pkey = 0xffff,
			  .sgid = from->port.gid,
			  .dgid = to->port.gid},
		.packet_life_enc = PACKET_LIFE_ENC,
		.tries = MAX_RETRIES + 1,
		.response_ns = cm_time_ns(RESPONSE_ENC) + 2 * cm_time_ns(PACKET_LIFE_ENC),
	};
}

struct wire_cm_req req_of(const struct host *from, const struct host *to, uint32_t qpn)
{
	return (struct wire_cm_req){
		.service_id = SERVICE,
		.local_qpn = qpn,
		.responder_resources = 4,
		.initiator_depth = 3,
		.remote_cm_response_timeout_enc = RESPONSE_ENC,
		.local_cm_response_timeout_enc = RESPONSE_ENC + 1,
		.starting_psn = psn(qpn * 3),
		.retry_count = 7,
		.rnr_retry_count = 6,
		.pkey = 0xffff,
		.path_mtu = 5,
		.max_cm_retries = MAX_RETRIES,
		.primary = {.local_lid = from->port.lid,
			    .remote_lid = to->port.lid,
			    .local_gid = from->port.gid,
			    .remote_gid = to->port.gid,
			    .subnet_local = true,
			    .local_ack_timeout_enc = PACKET_LIFE_ENC + 1},
	};
}
