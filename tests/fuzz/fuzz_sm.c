/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet manager among agents, clients and managers that say anything.
 * The first byte chooses what it is asked to do (enum option); then come records:
 * a byte of choice, two of length, and bytes. They change the answers of the agents of
 * a small subnet as they pass, or are MADs that nobody asked for: queries of
 * the administrator, traps, SMInfo, answers to nothing.
 *
 * However it was lied to, it comes to rest; and among agents that tell the
 * truth again it brings the subnet up.
 */
#include "../unit/sm/lab.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 300000
#define SA_BYTES_MAX 1024

enum option { LMC = 1, QOS = 2, IN_PEACE = 4, UPDN = 8, IPOIB = 16 };
enum what { CHANGE, LOSE, QUERY, TRAP, SM_INFO, ANSWER, WAIT, CABLE };

static struct {
	struct lab *lab;
	bool in_peace; /* the records wait until the subnet is up */
	const uint8_t *data;
	size_t size;
} w;

static bool take(uint8_t *what, const uint8_t **bytes, size_t *len)
{
	if (w.size < 3 || w.in_peace)
		return false;
	*what = w.data[0];
	*len = MIN((size_t)(w.data[1] | (w.data[2] & 3) << 8), w.size - 3);
	*bytes = w.data + 3;
	w.data += 3 + *len;
	w.size -= 3 + *len;
	return true;
}

/* A message in memory of its own size: one byte beyond is noticed */
static void deliver(enum sm_agent agent, int status, const struct sm_addr *from,
		    const uint8_t *mad, size_t len)
{
	uint8_t *exact = malloc(len ?: 1);

	check(exact);
	memcpy(exact, mad, len);
	sm_receive(w.lab->sm, agent, status, from, exact, len);
	free(exact);
}

static void send_mad(uint8_t what, const uint8_t *bytes, size_t len)
{
	struct sm_addr from = {.lid = (uint16_t)(1 + what / 64), .qpn = 1, .qkey = WIRE_QKEY_GSI};
	uint8_t mad[SA_BYTES_MAX] = {1};
	enum sm_agent agent = SM_AGENT_LID;

	switch ((enum what)(what % 8)) {
	case QUERY:
		agent = SM_AGENT_SA;
		mad[1] = WIRE_CLASS_SA;
		mad[2] = WIRE_SA_CLASS_VERSION;
		break;
	case TRAP:
		mad[1] = WIRE_CLASS_SM_LID;
		mad[2] = 1;
		mad[3] = WIRE_METHOD_TRAP;
		mad[17] = WIRE_SMP_NOTICE;
		break;
	case SM_INFO:
		mad[1] = WIRE_CLASS_SM_LID;
		mad[2] = 1;
		mad[3] = what & 8 ? WIRE_METHOD_SET : WIRE_METHOD_GET;
		mad[17] = WIRE_SMP_SM_INFO;
		break;
	default:
		agent = (enum sm_agent)((what >> 3) % SM_N_AGENTS);
		deliver(agent, what & 0x80 ? -ETIMEDOUT : 0, &from, bytes, len);
		return;
	}
	/* the class and version are given, the method and the attribute of a query chosen */
	len = MIN(len, sizeof(mad) - 24);
	if (agent == SM_AGENT_SA && len > 4) {
		mad[3] = bytes[0];
		mad[17] = bytes[1];
		memcpy(mad + 4, bytes + 2, 2);
		memcpy(mad + 24, bytes + 4, len - 4);
	} else {
		memcpy(mad + 24, bytes, len);
	}
	deliver(agent, 0, &from, mad, MAX(len + 24, (size_t)WIRE_MAD_BYTES));
}

/* pairs of (offset, value) over the answer that is under way */
static void change(struct lab_mail *m, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		if (bytes[i] >= 8 + 2) /* not the TID: that would only be lost */
			m->mad[bytes[i]] = bytes[i + 1];
}

static void act(uint8_t what, const uint8_t *bytes, size_t len)
{
	struct lab_node *n;

	switch ((enum what)(what % 8)) {
	case WAIT:
		rt_sim_run_for(w.lab->rt, (uint64_t)len * 10 * NSEC_PER_MSEC);
		break;
	case CABLE:
		n = &w.lab->nodes[len % w.lab->n_nodes];
		if (n->peer[1])
			lab_link_state(n, 1, what & 8 ? WIRE_PORT_DOWN : WIRE_PORT_INIT);
		sm_resweep(w.lab->sm);
		break;
	default:
		send_mad(what, bytes, len);
	}
}

/* an answer on its way: the next record has its word */
static void deliver_changed(struct rt_work *work)
{
	struct lab_mail *m = container_of(work, struct lab_mail, work);
	struct sm_addr from = {.lid = 0xffff};
	const uint8_t *bytes;
	uint8_t what;
	size_t len;

	if (take(&what, &bytes, &len)) {
		if (what % 8 == CHANGE)
			change(m, bytes, len);
		else if (what % 8 == LOSE)
			m->status = -ETIMEDOUT;
		else
			send_mad(what, bytes, len);
	}
	deliver(SM_AGENT_DIRECT, m->status, &from, m->mad, sizeof(m->mad));
	free(m);
}

/* The administrator says nothing that is not an answer, and it can be read. */
static void check_sa_answer(const void *mad, size_t len, unsigned int timeout_ms)
{
	struct wire_sa sa;

	/* a short table is filled up by the port */
	check(len >= WIRE_SA_DATA_OFFSET);
	check(wire_sa_decode(mad, len, &sa) > 0);
	check(timeout_ms || sa.mad.method & WIRE_METHOD_RESPONSE ||
	      sa.mad.method == WIRE_METHOD_REPORT);
	check(!sa.mad.status || !(sa.mad.method & WIRE_METHOD_RESPONSE) ||
	      len == WIRE_MAD_BYTES);
}

/* the lab's answer, but by deliver_changed() */
static int answer(struct sm_io *io, enum sm_agent agent, const struct sm_addr *to,
		  const void *mad, size_t len, unsigned int timeout_ms)
{
	struct wire_smp smp;
	struct lab_mail *m;
	struct lab_node *n;
	uint8_t in;

	check(agent == SM_AGENT_SA || len == WIRE_MAD_BYTES);
	check(((const uint8_t *)mad)[0] == 1);
	if (agent == SM_AGENT_SA)
		check_sa_answer(mad, len, timeout_ms);
	if (agent != SM_AGENT_DIRECT || !timeout_ms)
		return 0;
	check(wire_smp_decode(mad, len, &smp) == WIRE_MAD_BYTES && smp.hop_count < 64);
	n = lab_walk(w.lab, &smp, &in);
	if (!n)
		return 0;
	m = calloc(1, sizeof(*m));
	check(m);
	memcpy(m->mad, mad, len);
	smp.mad.status = lab_attribute(w.lab, n, in, smp.mad.method == WIRE_METHOD_SET,
				       smp.mad.attr_id, smp.mad.attr_mod,
				       m->mad + WIRE_SMP_DATA_OFFSET);
	smp.mad.method = WIRE_METHOD_GET_RESP;
	smp.direction = true;
	wire_smp_encode(&smp, m->mad);
	rt_work_init(&m->work, deliver_changed);
	rt_work_queue(w.lab->rt, &m->work);
	return 0;
}

static void all_plugged(struct lab *lab)
{
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		for (int p = 1; p <= lab->nodes[i].info.nr_ports; p++)
			if (lab->nodes[i].peer[p] &&
			    lab->nodes[i].port[p].state == WIRE_PORT_DOWN)
				lab_link_state(&lab->nodes[i], p, WIRE_PORT_INIT);
}

static void check_up(struct lab *lab)
{
	struct sm_summary s;

	sm_summarise(lab->sm, &s);
	check(s.state == WIRE_SM_MASTER && s.switches == 2 && s.cas == 4 && s.links == 6);
	check(!s.unanswered);
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		for (int p = 1; p <= lab->nodes[i].info.nr_ports; p++)
			check(!lab->nodes[i].peer[p] ||
			      lab->nodes[i].port[p].state == WIRE_PORT_ACTIVE);
}

static void start(uint8_t options)
{
	struct sm_options *opt;

	w.lab = lab_new();
	w.lab->io.send = answer;
	opt = &w.lab->opt;
	opt->lmc = options & LMC;
	opt->qos = options & QOS;
	opt->ipoib = options & IPOIB;
	if (options & UPDN)
		opt->engine = route_engine_find("updn");
	opt->check = true;
	w.in_peace = options & IN_PEACE;
	check(!sm_create(w.lab->rt, &w.lab->io, opt, &w.lab->sm));
	sm_start(w.lab->sm);
	check(rt_sim_run(w.lab->rt, STEPS_MAX));
	w.in_peace = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *bytes;
	uint8_t what;
	size_t len;

	if (!size)
		return 0;
	w.data = data + 1;
	w.size = size - 1;
	start(data[0]);
	while (take(&what, &bytes, &len)) {
		act(what, bytes, len);
		check(rt_sim_run(w.lab->rt, STEPS_MAX));
	}
	all_plugged(w.lab);
	sm_resweep(w.lab->sm);
	check(rt_sim_run(w.lab->rt, STEPS_MAX));
	check_up(w.lab);
	lab_free(w.lab);
	return 0;
}
