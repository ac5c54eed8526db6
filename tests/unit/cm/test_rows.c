/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tables of src/cm/machine.c, row by row: what leads to it, what state it leads to,
 * what is sent and what the consumer hears. The cases stand in the tables' order, one
 * for each row; a case fails when any other row rules its input.
 */
#include <errno.h>

#include "../test.h"
#include "hosts.h"

static struct hosts h;
static struct end *a, *b, *l; /* active, passive, listener */
static union cm_message m;

#define HOST_A (&h.host[0])
#define HOST_B (&h.host[1])

/* --- the wire --- */

static struct packet *first(void)
{
	return list_first_entry(&h.wire, struct packet, node);
}

static void lose(void)
{
	struct packet *packet = first();

	list_del(&packet->node);
	list_add_tail(&packet->node, &h.past);
}

static void deliver(void)
{
	assert_false(list_empty(&h.wire));
	hosts_arrive(&h, first());
}

static void again(uint16_t attr)
{
	struct packet *packet, *found = NULL;

	list_for_each_entry(packet, &h.past, node)
		if (packet_attr(packet) == attr)
			found = packet;
	assert_non_null(found);
	hosts_repeat(&h, found);
}

/* --- calls --- */

static void call_req(bool peer_to_peer)
{
	struct cm_target target = target_of(HOST_A, HOST_B);
	struct wire_cm_req req = req_of(HOST_A, HOST_B, 0x10);

	target.peer_to_peer = peer_to_peer;
	assert_int_equal(cm_send_req(&a->conn, &req, &target, h.now), 0);
}

static void call(struct end *end, uint16_t attr)
{
	memset(&m, 0, sizeof(m));
	if (attr == WIRE_CM_REP)
		m.rep = (struct wire_cm_rep){.local_qpn = 0x20, .starting_psn = psn(99)};
	if (attr == WIRE_CM_REJ)
		m.rej.reason = WIRE_CM_REJ_CONSUMER;
	if (attr == WIRE_CM_MRA)
		m.mra.service_timeout_enc = 20;
	assert_int_equal(cm_send(&end->conn, attr, &m, NULL, h.now), 0);
}

static void call_lap(void)
{
	struct cm_route route = target_of(HOST_A, HOST_B).route;

	memset(&m, 0, sizeof(m));
	m.lap.remote_cm_response_timeout_enc = RESPONSE_ENC;
	m.lap.alternate = req_of(HOST_A, HOST_B, 0).primary;
	assert_int_equal(cm_send(&a->conn, WIRE_CM_LAP, &m, &route, h.now), 0);
}

/* clang-format off */
static void a_listens(void) { assert_int_equal(cm_listen(&a->conn, 7, UINT64_MAX), 0); }
static void a_asks(void) { call_req(false); }
static void a_rejects(void) { call(a, WIRE_CM_REJ); }
static void a_takes_time(void) { call(a, WIRE_CM_MRA); }
static void a_is_ready(void) { call(a, WIRE_CM_RTU); }
static void a_disconnects(void) { call(a, WIRE_CM_DREQ); }
static void a_agrees(void) { call(a, WIRE_CM_DREP); }
static void a_closes(void) { cm_conn_close(&a->conn, h.now); }
static void b_rejects(void) { call(b, WIRE_CM_REJ); }
static void b_takes_time(void) { call(b, WIRE_CM_MRA); }
static void b_accepts(void) { call(b, WIRE_CM_REP); }
static void b_disconnects(void) { call(b, WIRE_CM_DREQ); }
static void b_closes(void) { cm_conn_close(&b->conn, h.now); }
static void b_establishes(void) { assert_int_equal(cm_establish(&b->conn, h.now), 0); }
static void l_closes(void) { cm_conn_close(&l->conn, h.now); }
static void req_again(void) { again(WIRE_CM_REQ); }
static void rep_again(void) { again(WIRE_CM_REP); }
static void dreq_again(void) { again(WIRE_CM_DREQ); }
static void lap_again(void) { again(WIRE_CM_LAP); }

/* clang-format on */

/* --- redirection --- */

static void call_redirecting(bool sidr)
{
	struct cm_target target = target_of(HOST_A, HOST_B);
	struct wire_cm_req req = req_of(HOST_A, HOST_B, 0x10);
	struct wire_cm_sidr_req sidr_req = {.service_id = SERVICE, .pkey = 0xffff};

	target.redirects = 1;
	assert_int_equal(sidr ? cm_send_sidr_req(&a->conn, &sidr_req, &target, h.now)
			      : cm_send_req(&a->conn, &req, &target, h.now),
			 0);
	deliver();
	b = h.accepted;
}

/* B's consumer names another QP of B */
static void b_redirects(void)
{
	memset(&m, 0, sizeof(m));
	if (b->conn.state == CM_SIDR_REQ_RCVD) {
		m.sidr_rep.status = WIRE_CM_SIDR_REDIRECT;
		m.sidr_rep.info_bytes = CM_ARI_MAX;
		class_port_info(HOST_B, m.sidr_rep.info);
		assert_int_equal(cm_send(&b->conn, WIRE_CM_SIDR_REP, &m, NULL, h.now), 0);
		return;
	}
	m.rej.reason = WIRE_CM_REJ_PORT_CM_REDIRECT;
	m.rej.info_bytes = CM_ARI_MAX;
	class_port_info(HOST_B, m.rej.info);
	assert_int_equal(cm_send(&b->conn, WIRE_CM_REJ, &m, NULL, h.now), 0);
}

static void redirected(void)
{
	call_redirecting(false);
	b_redirects();
}

static void redirected_sidr(void)
{
	call_redirecting(true);
	b_redirects();
}

static void a_looks(void)
{
	redirected();
	deliver();
	assert_true(a->conn.redirecting);
	assert_int_equal(a->timer.ns, MONO_NEVER.ns);
}

static void a_looks_sidr(void)
{
	redirected_sidr();
	deliver();
	assert_true(a->conn.redirecting);
	assert_int_equal(a->timer.ns, MONO_NEVER.ns);
}

/* the request goes to the CM at the other QP, as one that nobody has seen */
static void a_finds_it(void)
{
	uint32_t before = a->conn.local_id;

	again(a->conn.state == CM_SIDR_REQ_SENT ? WIRE_CM_SIDR_REP : WIRE_CM_REJ);
	assert_true(a->conn.redirecting); /* the first attempt's answer is not its any more */
	assert_int_equal(end_redirect(a), 0);
	assert_int_equal(a->conn.local_id, before);
	assert_int_equal(first()->qpn, OTHER_QPN);
	assert_int_equal(a->conn.route.qkey, 0x1234);
	assert_true(a->timer.ns != MONO_NEVER.ns);
	assert_int_equal(end_redirect(a), -EINVAL);
}

static void a_finds_nothing(void)
{
	cm_redirect_fail(&a->conn, &a->to, h.now);
	if (a->to.attr == WIRE_CM_REJ)
		assert_int_equal(a->message.rej.reason, WIRE_CM_REJ_PORT_CM_REDIRECT);
	else
		assert_int_equal(a->message.sidr_rep.status, WIRE_CM_SIDR_REDIRECT);
}

static void timer(void)
{
	assert_true(hosts_fire(&h));
}

static void timer_after_all_tries(void)
{
	for (int i = 0; i < MAX_RETRIES; i++)
		timer();
	while (!list_empty(&h.wire))
		lose();
	timer();
}

/* the other end's process dies, and a new one uses its QP for something else */
static void b_meets_new_req(void)
{
	struct cm_target target = target_of(HOST_A, HOST_B);
	struct wire_cm_req req = req_of(HOST_A, HOST_B, 0x10);
	struct end *other = host_open(HOST_A);

	while (!list_empty(&h.wire))
		lose();
	assert_int_equal(cm_send_req(&other->conn, &req, &target, h.now), 0);
	deliver();
}

/* the same the other way: a REP from a QP that A has a connection with */
static void a_meets_new_rep(void)
{
	struct end *old_a = a;

	while (!list_empty(&h.wire))
		lose();
	b->conn.terms.local_qpn = 0xbad; /* B forgot */
	a = host_open(HOST_A);
	struct cm_target target = target_of(HOST_A, HOST_B);
	struct wire_cm_req req = req_of(HOST_A, HOST_B, 0x11);
	assert_int_equal(cm_send_req(&a->conn, &req, &target, h.now), 0);
	deliver();
	call(h.accepted, WIRE_CM_REP);
	a = old_a;
	deliver();
}

static void sidr_asks(void)
{
	struct cm_target target = target_of(HOST_A, HOST_B);
	struct wire_cm_sidr_req req = {.service_id = SERVICE, .pkey = 0xffff};

	assert_int_equal(cm_send_sidr_req(&a->conn, &req, &target, h.now), 0);
}

/* --- what leads to a row --- */

static void idle(void)
{
}
static void peer_asks(void)
{
	call_req(true);
}

static void asked(void)
{
	a_asks();
	deliver();
	b = h.accepted;
}

static void asked_mra(void)
{
	asked();
	b_takes_time();
	lose();
}

static void replied(void)
{
	asked();
	b_accepts();
}

static void granted(void)
{
	replied();
	deliver();
}

static void granted_mra(void)
{
	granted();
	a_takes_time();
	lose();
}

static void replied_mra(void)
{
	granted();
	a_takes_time();
}

static void rtu_lost(void)
{
	granted();
	a_is_ready();
	lose();
}

static void connected(void)
{
	granted();
	a_is_ready();
	deliver();
}

static void disconnecting(void)
{
	connected();
	a_disconnects();
}

/* B asks first; A has not heard */
static void both_disconnect(void)
{
	connected();
	b_disconnects();
	a_disconnects();
}

static void disconnected(void)
{
	connected();
	b_disconnects();
	deliver();
}

static void waiting(void)
{
	disconnected();
	a_agrees();
	lose();
}

static void asked_sidr(void)
{
	sidr_asks();
	deliver();
	b = h.accepted;
}

static void answered_sidr(void)
{
	asked_sidr();
	call(b, WIRE_CM_SIDR_REP);
}

/* REJs of various kinds, on the wire to A or B */
static void peer_refused(void)
{
	l_closes();
	peer_asks();
	deliver();
}

static void refused(void)
{
	asked();
	b_rejects();
}

static void given_up(void)
{
	asked();
	a_rejects();
}

static void rep_refused(void)
{
	granted();
	a_rejects();
}

static void rep_stale(void)
{
	granted();
	m.rej = (struct wire_cm_rej){.reason = WIRE_CM_REJ_STALE_CONNECTION};
	assert_int_equal(cm_send(&a->conn, WIRE_CM_REJ, &m, NULL, h.now), 0);
}

/* B sent a REP, gave up; its REJ is on the wire to A */
static void rep_withdrawn(void)
{
	granted();
	b_rejects();
}

/* its REJ was lost, and its DREQ is on the wire */
static void rep_settles(void)
{
	rep_withdrawn();
	lose();
	timer();
}

static void rtu_lost_and_over(void)
{
	rtu_lost();
	a_disconnects();
}

static void b_gave_up_connected(void)
{
	rtu_lost();
	b_rejects();
}

static void forged_rej(struct end *to)
{
	const struct wire_cm_rej rej = {.local_comm_id = to->conn.remote_id,
					.remote_comm_id = to->conn.local_id,
					.message = 2,
					.reason = WIRE_CM_REJ_INVALID_COMM_ID};
	struct cm_route route = {.port = 1, .dlid = 2};
	uint8_t mad[WIRE_MAD_BYTES];

	cm_header(&to->host->cm, mad, WIRE_CM_REJ, 0, 0);
	wire_cm_rej_encode(&rej, mad + WIRE_CM_DATA_OFFSET);
	cm_receive(&to->host->cm, mad, &route, h.now);
}

static void a_gets_rej(void)
{
	forged_rej(a);
}
static void orphan_disconnects(void)
{
	connected();
	b_disconnects();
	a_closes();
	a->conn.orphan = true;
}

/* A is in DREQ_RCVD and B agreed to A's DREQ, which it sent before */
static void drep_crosses(void)
{
	both_disconnect();
	deliver(); /* B's DREQ: A in DREQ_RCVD */
	deliver(); /* A's DREQ: B in DREQ_RCVD */
	call(b, WIRE_CM_DREP);
}

static void rejected_rep(void)
{
	granted();
	a_rejects();
	lose();
}

static void over_before_rtu(void)
{
	rtu_lost();
	b->timer = MONO_NEVER; /* it is slow */
	a_disconnects();
	lose();
	timer_after_all_tries();
	while (!list_empty(&h.wire))
		lose();
}

static void b_waits(void)
{
	disconnecting();
	deliver();
	call(b, WIRE_CM_DREP);
	lose();
}

static void b_meets(void)
{
	struct cm_target target = target_of(HOST_B, HOST_A);
	struct wire_cm_req req = req_of(HOST_B, HOST_A, 0x20);

	b = host_open(HOST_B);
	target.peer_to_peer = true;
	assert_int_equal(cm_send_req(&b->conn, &req, &target, h.now), 0);
	while (!list_empty(&h.wire))
		lose();
	again(WIRE_CM_REQ); /* of B: A has the smaller GUID, and so becomes passive */
}

static void peer_meets(void)
{
	peer_asks();
	lose();
	b_meets();
}

/* --- alternate paths --- */

static void lap_asked_for(void)
{
	connected();
	call_lap();
}

static void lap_asked(void)
{
	lap_asked_for();
	deliver();
}

static void lap_asked_mra(void)
{
	lap_asked();
	b_takes_time();
	lose();
}

static void lap_takes_time(void)
{
	lap_asked();
	b_takes_time();
}

static void lap_answered(void)
{
	lap_asked();
	call(b, WIRE_CM_APR);
}

static void b_answers_lap(void)
{
	call(b, WIRE_CM_APR);
}
static void sidr_answers(void)
{
	call(b, WIRE_CM_SIDR_REP);
}
static void sidr_again(void)
{
	again(WIRE_CM_SIDR_REQ);
}

/* --- the cases --- */

/** struct row_case - @who: the end that @act is about; @sent: attribute of the last
 *  message that it makes, 0: none */
struct row_case {
	void (*lead)(void);
	void (*act)(void);
	struct end **who;
	int next;
	uint16_t sent;
	enum cm_news news;
};

static const struct row_case cases[] = {
	/* --- nothing is agreed --- */
	{idle, a_listens, &a, CM_LISTEN},
	{idle, a_asks, &a, CM_REQ_SENT, WIRE_CM_REQ},
	{idle, sidr_asks, &a, CM_SIDR_REQ_SENT, WIRE_CM_SIDR_REQ},
	{a_asks, deliver, &h.accepted, CM_REQ_RCVD, 0, CM_REQ_RECEIVED},
	{sidr_asks, deliver, &h.accepted, CM_SIDR_REQ_RCVD, 0, CM_SIDR_REQ_RECEIVED},
	{idle, l_closes, &l, CM_IDLE},
	/* --- the active end waits for a REP --- */
	{asked, NULL, &a, CM_MRA_REQ_RCVD, 0, CM_MRA_RECEIVED},
	{replied, deliver, &a, CM_REP_RCVD, 0, CM_REP_RECEIVED},
	{idle, peer_meets, &a, CM_REQ_RCVD, 0, CM_REQ_RECEIVED},
	{redirected, deliver, &a, CM_REQ_SENT},
	{a_looks, a_finds_it, &a, CM_REQ_SENT, WIRE_CM_REQ},
	{a_looks, a_finds_nothing, &a, CM_IDLE, 0, CM_REJ_RECEIVED},
	{peer_refused, deliver, &a, CM_REQ_SENT},
	{refused, deliver, &a, CM_IDLE, 0, CM_REJ_RECEIVED},
	{a_asks, timer, &a, CM_REQ_SENT, WIRE_CM_REQ},
	{a_asks, timer_after_all_tries, &a, CM_IDLE, WIRE_CM_REJ, CM_REQ_ERROR},
	{a_asks, a_rejects, &a, CM_IDLE, WIRE_CM_REJ},
	{a_asks, a_closes, &a, CM_IDLE, WIRE_CM_REJ},
	/* --- the passive end's consumer decides --- */
	{asked, b_takes_time, &b, CM_MRA_REQ_SENT, WIRE_CM_MRA},
	{asked, b_accepts, &b, CM_REP_SENT, WIRE_CM_REP},
	{asked, b_rejects, &b, CM_IDLE, WIRE_CM_REJ},
	{asked, b_closes, &b, CM_IDLE, WIRE_CM_REJ},
	{asked_mra, req_again, &b, CM_MRA_REQ_SENT, WIRE_CM_MRA},
	{asked, req_again, &b, CM_REQ_RCVD},
	{given_up, deliver, &b, CM_IDLE, 0, CM_REJ_RECEIVED},
	{asked, b_meets_new_req, &b, CM_IDLE, WIRE_CM_REJ, CM_REJ_RECEIVED},
	/* --- the passive end waits for an RTU --- */
	{replied, req_again, &b, CM_REP_SENT, WIRE_CM_REP},
	{replied_mra, deliver, &b, CM_MRA_REP_RCVD, 0, CM_MRA_RECEIVED},
	{rtu_lost, NULL, &b, CM_ESTABLISHED, 0, CM_RTU_RECEIVED},
	{replied, b_establishes, &b, CM_ESTABLISHED, 0, CM_USER_ESTABLISHED},
	{rep_stale, deliver, &b, CM_TIMEWAIT, 0, CM_REJ_RECEIVED},
	{rep_refused, deliver, &b, CM_IDLE, 0, CM_REJ_RECEIVED},
	{rtu_lost_and_over, deliver, &b, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED},
	{granted, timer, &b, CM_REP_SENT, WIRE_CM_REP},
	{granted, timer_after_all_tries, &b, CM_DREQ_SENT, WIRE_CM_REJ, CM_REP_ERROR},
	{granted, b_rejects, &b, CM_DREQ_SENT, WIRE_CM_REJ},
	{granted, b_closes, &b, CM_DREQ_SENT, WIRE_CM_REJ},
	{granted, b_disconnects, &b, CM_DREQ_SENT, WIRE_CM_DREQ},
	{replied, b_meets_new_req, &b, CM_TIMEWAIT, WIRE_CM_REJ, CM_REJ_RECEIVED},
	/* --- the active end's consumer decides --- */
	{granted, a_takes_time, &a, CM_MRA_REP_SENT, WIRE_CM_MRA},
	{granted, a_is_ready, &a, CM_ESTABLISHED, WIRE_CM_RTU},
	{granted, a_rejects, &a, CM_TIMEWAIT, WIRE_CM_REJ},
	{granted, a_closes, &a, CM_TIMEWAIT, WIRE_CM_REJ},
	{granted_mra, rep_again, &a, CM_MRA_REP_SENT, WIRE_CM_MRA},
	{granted, rep_again, &a, CM_REP_RCVD},
	{rep_withdrawn, deliver, &a, CM_TIMEWAIT, 0, CM_REJ_RECEIVED},
	{rep_settles, deliver, &a, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED},
	{granted, a_meets_new_rep, &a, CM_TIMEWAIT, WIRE_CM_REJ, CM_REJ_RECEIVED},
	/* --- connected --- */
	{rtu_lost, rep_again, &a, CM_ESTABLISHED, WIRE_CM_RTU},
	{connected, a_disconnects, &a, CM_DREQ_SENT, WIRE_CM_DREQ},
	{connected, a_closes, &a, CM_DREQ_SENT, WIRE_CM_DREQ},
	{connected, b_meets_new_req, &b, CM_DREQ_SENT, WIRE_CM_DREQ},
	{connected, NULL, &b, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED},
	{b_gave_up_connected, deliver, &a, CM_TIMEWAIT, 0, CM_REJ_RECEIVED},
	/* --- disconnecting --- */
	{disconnecting, NULL, &a, CM_TIMEWAIT, 0, CM_DREP_RECEIVED},
	{orphan_disconnects, deliver, &a, CM_TIMEWAIT, WIRE_CM_DREP},
	{both_disconnect, deliver, &a, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED},
	{disconnecting, a_gets_rej, &a, CM_TIMEWAIT, 0, CM_REJ_RECEIVED},
	{disconnecting, timer, &a, CM_DREQ_SENT, WIRE_CM_DREQ},
	{disconnecting, timer_after_all_tries, &a, CM_TIMEWAIT, 0, CM_DREQ_ERROR},
	{disconnecting, a_closes, &a, CM_DREQ_SENT},
	{disconnected, a_agrees, &a, CM_TIMEWAIT, WIRE_CM_DREP},
	{disconnected, a_closes, &a, CM_TIMEWAIT, WIRE_CM_DREP},
	{drep_crosses, deliver, &a, CM_TIMEWAIT, WIRE_CM_DREP, CM_DREP_RECEIVED},
	{disconnected, a_gets_rej, &a, CM_TIMEWAIT, 0, CM_REJ_RECEIVED},
	{disconnected, dreq_again, &a, CM_DREQ_RCVD},
	/* --- packets of the connection may still be under way --- */
	{waiting, timer, &a, CM_IDLE, 0, CM_TIMEWAIT_EXIT},
	{waiting, dreq_again, &a, CM_TIMEWAIT, WIRE_CM_DREP},
	{rejected_rep, rep_again, &a, CM_TIMEWAIT, WIRE_CM_REJ},
	{over_before_rtu, rep_again, &a, CM_TIMEWAIT, WIRE_CM_REJ},
	{b_waits, req_again, &b, CM_TIMEWAIT, WIRE_CM_REJ},
	/* --- resolving a service id --- */
	{redirected_sidr, deliver, &a, CM_SIDR_REQ_SENT},
	{a_looks_sidr, a_finds_it, &a, CM_SIDR_REQ_SENT, WIRE_CM_SIDR_REQ},
	{a_looks_sidr, a_finds_nothing, &a, CM_IDLE, 0, CM_SIDR_REP_RECEIVED},
	{answered_sidr, deliver, &a, CM_IDLE, 0, CM_SIDR_REP_RECEIVED},
	{sidr_asks, timer, &a, CM_SIDR_REQ_SENT, WIRE_CM_SIDR_REQ},
	{sidr_asks, timer_after_all_tries, &a, CM_IDLE, 0, CM_SIDR_REQ_ERROR},
	{sidr_asks, a_closes, &a, CM_IDLE},
	{asked_sidr, sidr_answers, &b, CM_IDLE, WIRE_CM_SIDR_REP},
	{asked_sidr, b_closes, &b, CM_IDLE, WIRE_CM_SIDR_REP},
	{asked_sidr, sidr_again, &b, CM_SIDR_REQ_RCVD},
};

static const struct row_case lap_cases[] = {
	{connected, call_lap, &a, CM_LAP_SENT, WIRE_CM_LAP},
	{lap_answered, lap_again, &b, CM_LAP_IDLE, WIRE_CM_APR},
	{lap_asked_for, deliver, &b, CM_LAP_RCVD, 0, CM_LAP_RECEIVED},
	{lap_takes_time, deliver, &a, CM_MRA_LAP_RCVD, 0, CM_MRA_RECEIVED},
	{lap_answered, deliver, &a, CM_LAP_IDLE, 0, CM_APR_RECEIVED},
	{lap_asked_for, timer, &a, CM_LAP_SENT, WIRE_CM_LAP},
	{lap_asked_for, timer_after_all_tries, &a, CM_LAP_IDLE, 0, CM_LAP_ERROR},
	{lap_asked, b_takes_time, &b, CM_MRA_LAP_SENT, WIRE_CM_MRA},
	{lap_asked, b_answers_lap, &b, CM_LAP_IDLE, WIRE_CM_APR},
	{lap_asked_mra, lap_again, &b, CM_MRA_LAP_SENT, WIRE_CM_MRA},
	{lap_asked, lap_again, &b, CM_LAP_RCVD},
};

/* --- running them --- */

static void begin(void)
{
	hosts_begin(&h, 0x1234567887654321);
	a = host_open(HOST_A);
	l = host_open(HOST_B);
	b = NULL;
	assert_int_equal(cm_listen(&l->conn, SERVICE, CM_SERVICE_MASK_EXACT), 0);
}

/* a case without an act: its last message comes from the other end */
static void act_of(const struct row_case *c)
{
	if (c->act)
		c->act();
	else if (c->next == CM_MRA_REQ_RCVD)
		b_takes_time(), deliver();
	else if (c->news == CM_RTU_RECEIVED)
		rep_again(), deliver();
	else if (c->lead == connected)
		a_disconnects(), deliver();
	else if (c->lead == disconnecting)
		deliver(), call(b, WIRE_CM_DREP), deliver();
}

static bool ruled(unsigned int row)
{
	return ((HOST_A->cm.rows[row / 64] | HOST_B->cm.rows[row / 64]) >> row % 64) & 1;
}

static void forget_rows(void)
{
	memset(HOST_A->cm.rows, 0, sizeof(HOST_A->cm.rows));
	memset(HOST_B->cm.rows, 0, sizeof(HOST_B->cm.rows));
}

static void play(const struct row_case *c, unsigned int row, bool lap)
{
	struct packet *last;
	struct end *who;
	unsigned int on_wire = 0;

	begin();
	print_message("%s\n", cm_row(row)->name);
	c->lead();
	forget_rows();
	list_for_each_entry(last, &h.wire, node)
		on_wire++;
	act_of(c);
	who = *c->who;
	assert_true(ruled(row));
	assert_int_equal(lap ? (int)who->conn.lap_state : (int)who->conn.state, c->next);
	if (c->news != CM_NO_NEWS) {
		assert_true(who->num_heard > 0);
		assert_int_equal(who->heard[who->num_heard - 1], c->news);
	}
	last = list_entry(h.wire.prev, struct packet, node);
	if (c->sent) {
		assert_false(list_empty(&h.wire));
		assert_int_equal(packet_attr(last), c->sent);
	}
	if (who->conn.state == CM_IDLE)
		assert_int_equal(who->timer.ns, MONO_NEVER.ns);
	hosts_end(&h);
}

static void test_rows(void **state)
{
	assert_int_equal(ARRAY_SIZE(cases) + ARRAY_SIZE(lap_cases), cm_nr_rows());
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		play(&cases[i], i, false);
}

static void test_lap_rows(void **state)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(lap_cases); i++)
		play(&lap_cases[i], ARRAY_SIZE(cases) + i, true);
}

/* --- what is followed --- */

static void reject(enum wire_cm_reject reason, const void *info, uint8_t bytes)
{
	memset(&m, 0, sizeof(m));
	m.rej.reason = (uint16_t)reason;
	m.rej.info_bytes = bytes;
	memcpy(m.rej.info, info, bytes);
	assert_int_equal(cm_send(&b->conn, WIRE_CM_REJ, &m, NULL, h.now), 0);
	deliver();
}

static bool follows(enum wire_cm_reject reason, const void *info, uint8_t bytes)
{
	bool followed;

	begin();
	call_redirecting(false);
	reject(reason, info, bytes);
	followed = a->conn.redirecting;
	assert_int_equal(a->conn.state, followed ? CM_REQ_SENT : CM_IDLE);
	assert_int_equal(a->num_heard, !followed);
	hosts_end(&h);
	return followed;
}

static void test_what_is_followed(void **state)
{
	static const uint8_t none[CM_ARI_MAX];
	uint8_t info[CM_ARI_MAX], gid[16] = {0xfe, [15] = 2};

	begin();
	class_port_info(HOST_B, info);
	hosts_end(&h);
	assert_true(follows(WIRE_CM_REJ_PORT_CM_REDIRECT, info, CM_ARI_MAX));
	assert_true(follows(WIRE_CM_REJ_PORT_REDIRECT, gid, 16));
	assert_false(follows(WIRE_CM_REJ_PORT_CM_REDIRECT, info, CM_ARI_MAX - 1));
	assert_false(follows(WIRE_CM_REJ_PORT_CM_REDIRECT, none, CM_ARI_MAX));
	assert_false(follows(WIRE_CM_REJ_PORT_REDIRECT, gid, 15));
	assert_false(follows(WIRE_CM_REJ_PORT_REDIRECT, none, 16));
	assert_false(follows(WIRE_CM_REJ_CONSUMER, info, CM_ARI_MAX));
}

/* a second redirection is one too many; and a lookup that cannot begin is a refusal */
static void test_redirections_are_counted(void **state)
{
	uint8_t info[CM_ARI_MAX];

	begin();
	class_port_info(HOST_B, info);
	a_looks();
	assert_int_equal(end_redirect(a), 0);
	deliver();
	b = h.accepted;
	b_redirects();
	deliver();
	assert_int_equal(a->conn.state, CM_IDLE);
	assert_int_equal(a->heard[0], CM_REJ_RECEIVED);
	hosts_end(&h);

	begin();
	HOST_A->lookup_error = -ENOMEM;
	redirected();
	deliver();
	assert_int_equal(a->conn.state, CM_IDLE);
	assert_int_equal(a->heard[0], CM_REJ_RECEIVED);
	hosts_end(&h);
}

/* A whole class: at QP1 everything is redirected, at the other QP nothing is. */
static void test_a_class_is_redirected(void **state)
{
	uint8_t info[CM_ARI_MAX];

	for (int sidr = 0; sidr < 2; sidr++) {
		begin();
		class_port_info(HOST_B, info);
		HOST_B->port.redirect = info;
		call_redirecting(sidr);
		assert_null(h.accepted);
		deliver();
		assert_int_equal(end_redirect(a), 0);
		deliver();
		assert_non_null(h.accepted);
		b = h.accepted;
		call(b, sidr ? WIRE_CM_SIDR_REP : WIRE_CM_REP);
		deliver();
		assert_int_equal(a->heard[0],
				 sidr ? CM_SIDR_REP_RECEIVED : CM_REP_RECEIVED);
		hosts_end(&h);
	}
}

/* The new path is the queue pair's, too. The alternate path led to the other port. */
static void test_the_new_path_is_the_connections(void **state)
{
	struct wire_cm_path primary;
	struct cm_target target;
	struct wire_cm_req req;
	struct cm_route route;

	begin();
	target = target_of(HOST_A, HOST_B);
	req = req_of(HOST_A, HOST_B, 0x10);
	target.redirects = 1;
	target.alternate = target.route;
	req.alternate = req.primary;
	req.ece_options = 5;
	assert_int_equal(cm_send_req(&a->conn, &req, &target, h.now), 0);
	deliver();
	b = h.accepted;
	b_redirects();
	deliver();
	route = target.route;
	route.sl = 5;
	route.pkey = 0x8001;
	primary = req.primary;
	primary.sl = 5;
	assert_int_equal(cm_redirect(&a->conn, &route, &primary, 3, h.now), 0);
	assert_int_equal(a->conn.terms.primary.sl, 5);
	assert_int_equal(a->conn.terms.pkey, 0x8001);
	assert_int_equal(a->conn.packet_life_enc, 3);
	assert_false(a->conn.terms.alternate.loaded);
	deliver();
	b = h.accepted;
	assert_int_equal(b->message.req.primary.sl, 5);
	assert_int_equal(b->message.req.pkey, 0x8001);
	assert_int_equal(b->message.req.ece_options, 5);
	assert_int_equal(b->message.req.local_qpn, 0x10);
	assert_int_equal(b->message.req.alternate.remote_lid, 0);
	hosts_end(&h);
}

/* Peer to peer: B rejects the request of A, because it has not called yet. The REJ arrives when A has the
 * request of B. */
static void test_a_refusal_that_is_late(void **state)
{
	begin();
	peer_refused();
	b_meets();
	again(WIRE_CM_REJ);
	assert_int_equal(a->conn.state, CM_REQ_RCVD);
	call(a, WIRE_CM_REP);
	again(WIRE_CM_REJ);
	assert_int_equal(a->conn.state, CM_REP_SENT);
	while (!list_empty(&h.wire))
		lose();
	again(WIRE_CM_REP);
	call(b, WIRE_CM_RTU);
	deliver();
	again(WIRE_CM_REJ);
	assert_int_equal(a->conn.state, CM_ESTABLISHED);
	hosts_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_lap_rows),
		cmocka_unit_test(test_what_is_followed),
		cmocka_unit_test(test_redirections_are_counted),
		cmocka_unit_test(test_a_class_is_redirected),
		cmocka_unit_test(test_the_new_path_is_the_connections),
		cmocka_unit_test(test_a_refusal_that_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
