/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hosts with a communication manager each, for the tests of src/cm: the test decides
 * which message arrives when. Time is a number; every timer is looked at by hosts_fire().
 */
#ifndef TESTS_UNIT_CM_HOSTS_H
#define TESTS_UNIT_CM_HOSTS_H

#include "cm/cm.h"
#include "cm/private.h"

#define HEARD_MAX	64
#define SERVICE		0x10000000000042ull
#define RESPONSE_ENC	14 /* 67 ms */
#define PACKET_LIFE_ENC 10
#define MAX_RETRIES	3
#define OTHER_QPN	0x77 /* of every host: its CM is reached there, too */

struct host;

/** struct end - a communication id and what its consumer has heard */
struct end {
	struct cm_conn conn; /* first */
	struct host *host;
	struct list_head node;
	mono_t timer;
	bool gone; /* given back */
	enum cm_news heard[HEARD_MAX];
	unsigned int num_heard;
	union cm_message message; /* of the last news */
	struct cm_redirection to; /* being looked up, if conn.redirecting */
	mono_t found;		  /* when that ends: the test's to set */
	void *user;
};

struct packet {
	struct list_head node;
	struct host *from, *to;
	uint32_t qpn; /* of the CM that it is sent to; 0: QP1 */
	uint8_t mad[WIRE_MAD_BYTES];
	mono_t due; /* the random network's */
};

struct host {
	struct cm cm;
	struct hosts *hosts;
	struct cm_port port;
	struct list_head ends;
	bool full; /* accept() has no room */
	int send_error;
	int lookup_error; /* of redirect() */
};

/** struct hosts - two of them, and every message ever sent, oldest first */
struct hosts {
	struct host host[2];
	mono_t now;
	struct list_head wire; /* under way */
	struct list_head past; /* arrived or dropped */
	struct end *accepted;  /* the last one */
	/** sent() - hook of a test; NULL: packets are put at the wire's end */
	void (*sent)(struct hosts *hosts, struct packet *packet);
	void (*heard)(struct end *end, const struct cm_event *event);
	/** redirected() - a path is looked up for @end; NULL: end_redirect() is called some time */
	void (*redirected)(struct end *end);
};

void hosts_begin(struct hosts *hosts, uint64_t random);
void hosts_end(struct hosts *hosts);
struct end *host_open(struct host *host);
/** hosts_arrive() - @packet, of the wire, arrives; it stays in the past */
void hosts_arrive(struct hosts *hosts, struct packet *packet);
/** hosts_repeat() - a copy of @packet arrives */
void hosts_repeat(struct hosts *hosts, const struct packet *packet);
/** hosts_fire() - expire the earliest timer, at its time. Return: was there one? */
bool hosts_fire(struct hosts *hosts);
mono_t hosts_next_timer(const struct hosts *hosts);
uint16_t packet_attr(const struct packet *packet);

/** end_redirect() - the path of @end->to is found. Return: as cm_redirect() */
int end_redirect(struct end *end);
/** class_port_info() - of a CM at @to's other QP: what a REJ carries */
void class_port_info(const struct host *to, uint8_t info[CM_ARI_MAX]);
struct cm_target target_of(const struct host *from, const struct host *to);
struct wire_cm_req req_of(const struct host *from, const struct host *to, uint32_t qpn);

#endif
