/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two communication managers over a network that loses, doubles, delays, reorders and
 * forges messages, from a seed. The consumers of both hosts connect, accept, refuse, take
 * time, load paths, disconnect and close at any moment. Then the network is left alone
 * until nothing happens any more, and:
 *
 *   agree   an end that is ESTABLISHED has a peer that is, and both name each other's
 *	     ids, queue pairs and PSNs; excused is only who never got one of all tries of
 *	     its peer's DREQ, and whose REQ was redirected to the same host, where a late
 *	     copy of the first REQ ended the connection as stale (12.9.8.3.1)
 *   ends    every other attempt is over at both ends: nobody waits for anything
 *   once    a consumer hears of a request, a reply and the connection once
 *   calm    without faults nothing is sent twice (but a REQ to a peer that is late,
 *	     the DREQ that settles, and a LAP that overtook the RTU), and
 *	     nobody hears of an error
 *   moved   a request that was redirected arrives at the CM that the redirection named,
 *	     with an id that was not used before, and no more often than its consumer allows
 *   data    private data arrives with its message
 *   leak    once the consumers have closed all, no id, table entry and timer is left
 *
 *   test_cm_network [SEED]: one seed alone, with its messages
 */
#include "../test.h"
#include "hosts.h"

#define SEEDS	   4000
#define ATTEMPTS   8
#define STEPS_MAX  20000
#define THINK_NS   (40 * NSEC_PER_MSEC)
#define FORGED_MAX 40

/** struct app - the consumer of one end */
struct app {
	bool excused;
	enum cm_state seen;
	enum cm_lap_state seen_lap;
	mono_t think;
	uint32_t left; /* the id of the attempt that was redirected */
	unsigned int moves;
};

/** struct run - one seed. The network's faults are percentages */
static struct run {
	uint64_t seed, random;
	struct hosts h;
	struct app apps[512];
	unsigned int num_apps, forged, excused;
	unsigned int lose, repeat, forge;
	uint64_t delay_ns;
	bool calm, quiet, peers, verbose;
	bool keep; /* the next packet is neither lost nor repeated */
	unsigned int established; /* ends that ever were */
	unsigned int moved;	  /* requests that were sent again, elsewhere */
	uint8_t redirect[2][CM_ARI_MAX];
} run;

static uint64_t draw(void)
{
	uint64_t z = run.random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool chance(unsigned int percent)
{
	return draw() % 100 < percent;
}

static void broken(const char *oracle, const char *what)
{
	print_error("oracle %s: %s; replay: test_cm_network %lu\n", oracle, what,
		    (unsigned long)run.seed);
	fail_msg("%s", oracle);
}

#define HOLD(oracle, condition)                                                          \
	do {                                                                             \
		if (!(condition))                                                        \
			broken(oracle, #condition);                                      \
	} while (0)

/* --- the network --- */

static mono_t some_time(uint64_t most_ns)
{
	return mono_add(run.h.now, 1 + draw() % most_ns);
}

static struct packet *copy(const struct packet *packet)
{
	struct packet *twin = malloc(sizeof(*twin));

	*twin = *packet;
	twin->due = some_time(run.delay_ns);
	list_add_tail(&twin->node, &run.h.wire);
	return twin;
}

/* A message that was never sent: of ids that nobody has, or of no sense at all. */
static void forge(const struct packet *packet)
{
	struct packet *forged = copy(packet);
	uint64_t noise[2] = {draw(), draw()};

	run.forged++;
	if (packet_attr(packet) == WIRE_CM_REQ) { /* from a QP of nobody */
		memcpy(forged->mad + WIRE_CM_DATA_OFFSET, noise, 4);
		memcpy(forged->mad + WIRE_CM_DATA_OFFSET + 16, noise, 8);
	} else {
		memcpy(forged->mad + WIRE_CM_DATA_OFFSET, noise, sizeof(noise));
	}
	if (chance(20))
		forged->mad[draw() % 24] ^= (uint8_t)(1 + draw() % 255);
	if (chance(20))
		forged->mad[17] = (uint8_t)(0x10 + draw() % 16);
}

static void on_sent(struct hosts *hosts, struct packet *packet)
{
	packet->due = some_time(run.delay_ns);
	if (run.verbose)
		print_message("%8lu us: host %d sends %04x\n",
			      (unsigned long)(hosts->now.ns / 1000),
			      (int)(packet->from - hosts->host), packet_attr(packet));
	if (run.quiet || run.keep)
		return;
	if (chance(run.repeat))
		copy(packet);
	if (chance(run.forge) && run.forged < FORGED_MAX)
		forge(packet);
	if (chance(run.lose)) {
		list_del(&packet->node);
		free(packet);
	}
}

static struct packet *next_packet(void)
{
	struct packet *packet, *first = NULL;

	list_for_each_entry(packet, &run.h.wire, node)
		if (!first || mono_before(packet->due, first->due))
			first = packet;
	return first;
}

/* --- consumers --- */

static struct app *app_of(const struct end *end)
{
	return end->user;
}

static struct end *peer_of(const struct end *end)
{
	struct end *peer;

	for (int i = 0; i < 2; i++) /* of its own host, if it was redirected to that */
		list_for_each_entry(peer, &run.h.host[i].ends, node)
			if (!peer->gone && peer->conn.local_id == end->conn.remote_id)
				return peer;
	return NULL;
}

static void give_app(struct end *end)
{
	HOLD("harness", run.num_apps < ARRAY_SIZE(run.apps));
	end->user = &run.apps[run.num_apps++];
	*app_of(end) = (struct app){.think = MONO_NEVER};
}

/* Private data says whose it is: the QP of the sender. */
static void sign(uint8_t *private_data, uint32_t qpn)
{
	private_data[0] = (uint8_t)qpn;
	private_data[91] = (uint8_t)~qpn;
}

static void check_signed(const uint8_t *private_data, uint32_t qpn)
{
	HOLD("data",
	     private_data[0] == (uint8_t)qpn && private_data[91] == (uint8_t)~qpn);
}

static unsigned int times_heard(const struct end *end, enum cm_news news)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < end->num_heard; i++)
		n += end->heard[i] == news;
	return n;
}

/* Either end may be the one that sent the REQ twice. */
static void note_stale(const struct end *end)
{
	struct end *peer = peer_of(end);

	if (peer && app_of(peer) && (app_of(peer)->moves || app_of(end)->moves))
		app_of(peer)->excused = true;
}

static void on_heard(struct end *end, const struct cm_event *event)
{
	if (run.verbose)
		print_message("%8lu us: host %d id %x hears %s\n",
			      (unsigned long)(run.h.now.ns / 1000),
			      (int)(end->host - run.h.host), end->conn.local_id,
			      cm_news_name(event->news));
	if (event->news == CM_REQ_RECEIVED || event->news == CM_SIDR_REQ_RECEIVED) {
		if (event->listener != &end->conn)
			give_app(end);
	}
	if (event->news == CM_REQ_RECEIVED && !run.forged)
		check_signed(event->message->req.private_data,
			     event->message->req.local_qpn);
	if (event->news == CM_REP_RECEIVED)
		check_signed(event->message->rep.private_data,
			     event->message->rep.local_qpn);
	if (event->news == CM_REJ_RECEIVED &&
	    event->message->rej.reason == WIRE_CM_REJ_STALE_CONNECTION)
		note_stale(end);
	HOLD("once", times_heard(end, CM_REQ_RECEIVED) <= 1);
	HOLD("once", times_heard(end, CM_REP_RECEIVED) <= 1);
	HOLD("once",
	     times_heard(end, CM_RTU_RECEIVED) + times_heard(end, CM_USER_ESTABLISHED) <=
		     1);
	HOLD("once", times_heard(end, CM_TIMEWAIT_EXIT) <= 1);
	if (run.calm) /* a peer may not call, or call and close */
		HOLD("calm", event->news != CM_REQ_ERROR || end->conn.peer_to_peer);
	if (run.calm)
		HOLD("calm", event->news != CM_REP_ERROR &&
				     event->news != CM_DREQ_ERROR &&
				     event->news != CM_LAP_ERROR);
}

static void send(struct end *end, uint16_t attr, union cm_message *m)
{
	HOLD("call", !cm_send(&end->conn, attr, m, NULL, run.h.now));
}

static void send_simple(struct end *end, uint16_t attr)
{
	union cm_message m = {0};

	if (attr == WIRE_CM_REJ)
		m.rej.reason = WIRE_CM_REJ_CONSUMER;
	if (attr == WIRE_CM_MRA)
		m.mra.service_timeout_enc = 15;
	if (attr == WIRE_CM_APR)
		m.apr.status = chance(30);
	send(end, attr, &m);
}

/* --- redirection --- */

#define REDIRECTS 2

/* To the CM at the other QP of either host; a GID alone leaves it at QP1. */
static void redirect_it(struct end *end)
{
	const struct host *to = &run.h.host[chance(50)];
	union cm_message m = {0};

	if (end->conn.state == CM_SIDR_REQ_RCVD) {
		m.sidr_rep.status = WIRE_CM_SIDR_REDIRECT;
		m.sidr_rep.info_bytes = CM_ARI_MAX;
		class_port_info(to, m.sidr_rep.info);
		send(end, WIRE_CM_SIDR_REP, &m);
		return;
	}
	m.rej.reason = WIRE_CM_REJ_PORT_CM_REDIRECT;
	m.rej.info_bytes = CM_ARI_MAX;
	class_port_info(to, m.rej.info);
	if (chance(30)) {
		m.rej.reason = WIRE_CM_REJ_PORT_REDIRECT;
		m.rej.info_bytes = sizeof(to->port.gid);
		memcpy(m.rej.info, &to->port.gid, sizeof(to->port.gid));
	}
	send(end, WIRE_CM_REJ, &m);
}

static void on_redirected(struct end *end)
{
	struct app *app = app_of(end);

	HOLD("moved", ++app->moves <= REDIRECTS);
	app->left = end->conn.local_id;
	end->found = some_time(THINK_NS);
}

static void find_path(struct end *end)
{
	const struct packet *packet;

	end->found = MONO_NEVER;
	if (!end->conn.redirecting)
		return;
	HOLD("moved", end->conn.local_id != app_of(end)->left);
	if (chance(15)) {
		cm_redirect_fail(&end->conn, &end->to, run.h.now);
		HOLD("moved", end->conn.state == CM_IDLE);
		return;
	}
	run.moved++;
	run.keep = true;
	HOLD("moved", !end_redirect(end));
	run.keep = false;
	packet = list_entry(run.h.wire.prev, struct packet, node);
	HOLD("moved", !memcmp(&packet->to->port.gid, &end->to.gid, sizeof(end->to.gid)));
	HOLD("moved", packet->qpn == (end->to.answer.rej.reason == WIRE_CM_REJ_PORT_REDIRECT &&
						      end->to.attr == WIRE_CM_REJ
					      ? 0
					      : OTHER_QPN));
}

static struct end *next_finder(void)
{
	struct end *end, *first = NULL;

	for (int i = 0; i < 2; i++)
		list_for_each_entry(end, &run.h.host[i].ends, node)
			if (end->found.ns != MONO_NEVER.ns &&
			    (!first || mono_before(end->found, first->found)))
				first = end;
	return first;
}

static void accept_it(struct end *end)
{
	static uint32_t next_qpn = 0x5000;
	union cm_message m = {.rep = {.local_qpn = next_qpn++ & 0xffffff}};

	m.rep.starting_psn = psn(m.rep.local_qpn * 5);
	sign(m.rep.private_data, m.rep.local_qpn);
	send(end, WIRE_CM_REP, &m);
}

static void load_path(struct end *end)
{
	struct host *other = &run.h.host[end->conn.route.dlid == run.h.host[1].port.lid];
	struct cm_route route = target_of(end->host, other).route;
	union cm_message m = {.lap.remote_cm_response_timeout_enc = RESPONSE_ENC};

	m.lap.alternate = req_of(end->host, other, 0).primary;
	HOLD("call", !cm_send(&end->conn, WIRE_CM_LAP, &m, &route, run.h.now));
}

static void close_it(struct end *end)
{
	app_of(end)->think = MONO_NEVER;
	cm_conn_close(&end->conn, run.h.now);
}

/* who must decide, decides one of these; weights are percentages */
static void decide_req(struct end *end)
{
	unsigned int what = (unsigned int)(draw() % 100);

	if (what < 70)
		accept_it(end);
	else if (what < 80 && end->conn.state == CM_REQ_RCVD)
		send_simple(end, WIRE_CM_MRA);
	else if (what < 86)
		send_simple(end, WIRE_CM_REJ);
	else if (what < 94)
		redirect_it(end);
	else
		close_it(end);
}

static void decide_rep(struct end *end)
{
	unsigned int what = (unsigned int)(draw() % 100);

	if (what < 75)
		send_simple(end, WIRE_CM_RTU);
	else if (what < 85 && end->conn.state == CM_REP_RCVD)
		send_simple(end, WIRE_CM_MRA);
	else if (what < 93)
		send_simple(end, WIRE_CM_REJ);
	else
		close_it(end);
}

static void decide_lap(struct end *end)
{
	if (chance(30) && end->conn.lap_state == CM_LAP_RCVD)
		send_simple(end, WIRE_CM_MRA);
	else
		send_simple(end, WIRE_CM_APR);
}

/* who need not do anything, sometimes does */
static void maybe_replied(struct end *end)
{
	struct end *peer = peer_of(end);

	if (peer && peer->conn.state == CM_ESTABLISHED && chance(30))
		HOLD("call", !cm_establish(&end->conn, run.h.now));
	else if (chance(5))
		close_it(end);
	else if (chance(5))
		send_simple(end, chance(50) ? WIRE_CM_REJ : WIRE_CM_DREQ);
}

static void maybe_connected(struct end *end)
{
	enum cm_lap_state lap = end->conn.lap_state;

	if (lap == CM_LAP_RCVD || lap == CM_MRA_LAP_SENT)
		decide_lap(end);
	else if (end->conn.active && lap == CM_LAP_UNINIT && chance(30))
		load_path(end);
	else if (chance(30))
		send_simple(end, WIRE_CM_DREQ);
	else if (chance(20))
		close_it(end);
}

static void think(struct end *end)
{
	switch (end->conn.state) {
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
		decide_req(end);
		break;
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
		decide_rep(end);
		break;
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		maybe_replied(end);
		break;
	case CM_ESTABLISHED:
		maybe_connected(end);
		break;
	case CM_DREQ_RCVD:
		if (chance(70))
			send_simple(end, WIRE_CM_DREP);
		else
			close_it(end);
		break;
	case CM_SIDR_REQ_RCVD:
		if (chance(70))
			send_simple(end, WIRE_CM_SIDR_REP);
		else if (chance(50))
			redirect_it(end);
		else
			close_it(end);
		break;
	case CM_LISTEN:
		break;
	case CM_REQ_SENT:
		if (chance(5))
			send_simple(end, WIRE_CM_REJ);
		/* fallthrough */
	default: /* waiting, or over */
		if (end->conn.state == CM_IDLE || chance(8))
			close_it(end);
	}
}

/* --- the run --- */

/* A consumer thinks once about each state that it sees. */
static void notice(struct end *end)
{
	struct app *app = app_of(end);

	if (!app || end->gone || end->conn.orphan)
		return;
	if (app->seen == end->conn.state && app->seen_lap == end->conn.lap_state)
		return;
	app->seen = end->conn.state;
	app->seen_lap = end->conn.lap_state;
	app->think = some_time(THINK_NS);
	if (app->seen == CM_ESTABLISHED)
		run.established++;
}

static struct end *next_thinker(void)
{
	struct end *end, *first = NULL;

	for (int i = 0; i < 2; i++)
		list_for_each_entry(end, &run.h.host[i].ends, node) {
			struct app *app = app_of(end);

			notice(end);
			if (!end->gone && !end->conn.orphan && app &&
			    app->think.ns != MONO_NEVER.ns &&
			    (!first || mono_before(app->think, app_of(first)->think)))
				first = end;
		}
	return first;
}

/* The peer of who gives up a DREQ cannot know. */
static void note_lost_dreq(void)
{
	mono_t when = hosts_next_timer(&run.h);
	struct end *end, *peer;

	for (int i = 0; i < 2; i++)
		list_for_each_entry(end, &run.h.host[i].ends, node) {
			if (end->timer.ns != when.ns || end->conn.state != CM_DREQ_SENT ||
			    end->conn.tries)
				continue;
			peer = peer_of(end);
			if (peer && app_of(peer))
				app_of(peer)->excused = true;
		}
}

/* one event; false when nothing is left to happen */
static bool step(void)
{
	struct end *thinker = next_thinker();
	struct packet *packet = next_packet();
	mono_t timer = hosts_next_timer(&run.h);
	mono_t arrival = packet ? packet->due : MONO_NEVER;
	mono_t thought = thinker ? app_of(thinker)->think : MONO_NEVER;
	struct end *finder = next_finder();
	mono_t found = finder ? finder->found : MONO_NEVER;
	mono_t when = mono_min(mono_min(found, timer), mono_min(arrival, thought));

	if (when.ns == MONO_NEVER.ns)
		return false;
	if (mono_before(run.h.now, when))
		run.h.now = when;
	if (when.ns == found.ns) {
		find_path(finder);
	} else if (when.ns == thought.ns) {
		app_of(thinker)->think = MONO_NEVER;
		think(thinker);
	} else if (when.ns == arrival.ns) {
		hosts_arrive(&run.h, packet);
		list_del(&packet->node);
		free(packet);
	} else {
		note_lost_dreq();
		hosts_fire(&run.h);
	}
	return true;
}

static void run_until_quiet(void)
{
	unsigned int steps = 0;

	while (step())
		HOLD("ends", ++steps < STEPS_MAX);
}

static void begin_attempt(unsigned int i, bool peer_to_peer)
{
	struct host *from = &run.h.host[i & 1], *to = &run.h.host[~i & 1];
	struct cm_target target = target_of(from, to);
	struct wire_cm_req req = req_of(from, to, 0x100 + i);
	struct wire_cm_sidr_req sidr = {.service_id = SERVICE};
	struct end *end = host_open(from);

	give_app(end);
	target.redirects = REDIRECTS;
	run.peers |= peer_to_peer;
	if (peer_to_peer) {
		req.service_id = SERVICE + 1000 + i / 2;
		target.peer_to_peer = true;
	}
	sign(req.private_data, req.local_qpn);
	if (!peer_to_peer && chance(15))
		HOLD("call", !cm_send_sidr_req(&end->conn, &sidr, &target, run.h.now));
	else
		HOLD("call", !cm_send_req(&end->conn, &req, &target, run.h.now));
}

static void begin(uint64_t seed)
{
	bool verbose = run.verbose;

	memset(&run, 0, sizeof(run));
	run.seed = run.random = seed;
	run.verbose = verbose;
	hosts_begin(&run.h, draw());
	run.h.sent = on_sent;
	run.h.heard = on_heard;
	run.h.redirected = on_redirected;
	run.calm = chance(20);
	run.delay_ns = run.calm ? NSEC_PER_MSEC : (1 + draw() % 200) * NSEC_PER_MSEC;
	if (!run.calm) {
		run.lose = (unsigned int)(draw() % 40);
		run.repeat = (unsigned int)(draw() % 30);
		run.forge = (unsigned int)(draw() % 30);
	}
	for (int i = 0; i < 2; i++) {
		struct end *listener = host_open(&run.h.host[i]);

		class_port_info(&run.h.host[chance(50)], run.redirect[i]);
		if (chance(10))
			run.h.host[i].port.redirect = run.redirect[i];

		assert_int_equal(
			cm_listen(&listener->conn, SERVICE, CM_SERVICE_MASK_EXACT), 0);
	}
	for (unsigned int i = 0; i < ATTEMPTS; i += 2) {
		bool peer_to_peer = chance(20);

		begin_attempt(i, peer_to_peer);
		begin_attempt(i + 1, peer_to_peer);
	}
}

/* --- oracles at the end --- */

static void check_pair(const struct end *end)
{
	const struct end *peer = peer_of(end);
	const struct cm_terms *mine = &end->conn.terms, *theirs;

	if (end->conn.orphan)
		return;
	if (app_of(end)->excused) {
		run.excused++;
		return;
	}
	HOLD("agree", peer && peer->conn.state == CM_ESTABLISHED);
	theirs = &peer->conn.terms;
	HOLD("agree", peer->conn.remote_id == end->conn.local_id);
	HOLD("agree", peer->conn.active != end->conn.active);
	HOLD("agree", mine->remote_qpn == theirs->local_qpn);
	HOLD("agree", psn_eq(mine->sq_psn, theirs->rq_psn));
	HOLD("agree", mine->remote_ca_guid == peer->host->cm.ca_guid);
}

static void check_quiet(void)
{
	struct end *end;

	for (int i = 0; i < 2; i++)
		list_for_each_entry(end, &run.h.host[i].ends, node) {
			if (end->gone)
				continue;
			if (end->conn.state == CM_ESTABLISHED)
				check_pair(end);
			else
				HOLD("ends", end->conn.state == CM_IDLE ||
						     end->conn.state == CM_LISTEN);
		}
}

static void close_all(void)
{
	struct end *end;

	for (int i = 0; i < 2; i++)
		list_for_each_entry(end, &run.h.host[i].ends, node)
			if (!end->gone && !end->conn.orphan)
				cm_conn_close(&end->conn, run.h.now);
}

static bool is_empty(const struct list_head *bucket)
{
	return !bucket->next || list_empty(bucket);
}

static void check_empty(struct cm *cm)
{
	HOLD("leak", cm->num_conns == 0);
	HOLD("leak", list_empty(&cm->masked));
	for (int i = 0; i < CM_BUCKETS; i++)
		HOLD("leak", is_empty(&cm->ids[i]) && is_empty(&cm->peers[i]) &&
				     is_empty(&cm->qps[i]) && is_empty(&cm->services[i]));
}

static void check_calm(const struct cm_stats *stats)
{
	for (int attr = WIRE_CM_REQ; attr <= WIRE_CM_APR; attr++) {
		bool may = (attr == WIRE_CM_REQ && run.peers) || attr == WIRE_CM_DREQ ||
			   attr == WIRE_CM_LAP;

		HOLD("calm", may || !stats->retries[attr - WIRE_CM_REQ]);
	}
}

static void play(uint64_t seed)
{
	begin(seed);
	run_until_quiet();
	run.quiet = true; /* what was lost so far must be found out without more faults */
	check_quiet();
	close_all();
	run_until_quiet();
	for (int i = 0; run.calm && i < 2; i++)
		check_calm(&run.h.host[i].cm.stats);
	check_empty(&run.h.host[0].cm);
	check_empty(&run.h.host[1].cm);
}

static void test_seeds(void **state)
{
	unsigned int excused = 0, established = 0, ruled = 0, moved = 0;
	uint64_t rows[CM_ROW_WORDS] = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		play(seed);
		excused += run.excused;
		established += run.established;
		moved += run.moved;
		for (int i = 0; i < CM_ROW_WORDS; i++)
			rows[i] |= run.h.host[0].cm.rows[i] | run.h.host[1].cm.rows[i];
		hosts_end(&run.h);
	}
	for (unsigned int i = 0; i < cm_nr_rows(); i++)
		ruled += rows[i / 64] >> i % 64 & 1;
	print_message("%u ends were connected, %u excused, %u requests redirected; "
		      "%u of %u rows ruled\n",
		      established, excused, moved, ruled, cm_nr_rows());
	assert_true(established > 4 * SEEDS);
	assert_true(moved > SEEDS / 2);
	assert_true(excused * 50 < established);
	assert_true(ruled + 12 >= cm_nr_rows()); /* test_rows.c has them all */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds)};

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	run.verbose = true;
	play(strtoull(argv[1], NULL, 0));
	hosts_end(&run.h);
	return 0;
}
