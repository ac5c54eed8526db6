/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which send a received MAD belongs to (13.4.6.4): an answer to its request, and what
 * the receiver of a message in segments says to its sender. The sends of an agent are a
 * tree ordered by all that must fit, so the first send of a key is the one: programs
 * choose transaction IDs and addresses, and no choice makes the search longer.
 */
#include <string.h>

#include "core/mad_priv.h"

/* what must fit beside transaction ID and class */
enum match {
	MATCH_DIRECTED,	  /* nothing: a directed route ends at who asked */
	MATCH_ANSWER,	  /* the LID that asked is the one that the answer comes to */
	MATCH_ANSWER_GRH, /* an answer with a GRH, to a request with one */
	MATCH_LID,	  /* what the receiver of a response says: from where it went */
	MATCH_GID,
};

struct key {
	__be64 tid;
	u8 mgmt_class, match;
	u8 reserved[6];
	union {
		union ib_gid gid; /* the largest: what of the key is unused is zero */
		u64 path_bits;
		u64 lid;
	};
};

/* An answer may come by another LID of the port that was asked, or from where a class
 * was redirected to; but it comes to the LID that asked. */
static void expect_answer(struct key *key, const struct mad_port *port, bool grh, u8 path_bits)
{
	u8 lmc = 0;

	key->match = grh ? MATCH_ANSWER_GRH : MATCH_ANSWER;
	if (grh)
		return;
	ib_get_cached_lmc(port->device, port->port_num, &lmc);
	key->path_bits = path_bits & ((1u << lmc) - 1);
}

static struct key key_of_send(const struct mad_send *send)
{
	const struct ib_mad_hdr *hdr = send->buf.mad;
	struct key key = {.tid = hdr->tid, .mgmt_class = hdr->mgmt_class};
	struct rdma_ah_attr attr = {0};

	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		return key; /* MATCH_DIRECTED */
	rdma_query_ah(send->buf.ah, &attr);
	if (!ib_response_mad(hdr)) {
		expect_answer(&key, send->mqp->port, attr.ah_flags & IB_AH_GRH,
			      attr.src_path_bits);
	} else if (attr.ah_flags & IB_AH_GRH) {
		key.match = MATCH_GID;
		key.gid = attr.grh.dgid;
	} else {
		key.match = MATCH_LID;
		key.lid = attr.dlid;
	}
	return key;
}

static struct key key_of_recv(const struct mad_recv *recv)
{
	const struct ib_mad_hdr *hdr = &recv->packet.mad.mad_hdr;
	struct key key = {.tid = hdr->tid, .mgmt_class = hdr->mgmt_class};
	bool grh = recv->wc.wc_flags & IB_WC_GRH;

	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		return key; /* MATCH_DIRECTED */
	if (ib_response_mad(hdr)) {
		expect_answer(&key, recv->mqp->port, grh, recv->wc.dlid_path_bits);
	} else if (grh) {
		key.match = MATCH_GID;
		key.gid = recv->packet.grh.sgid;
	} else {
		key.match = MATCH_LID;
		key.lid = recv->wc.slid;
	}
	return key;
}

static struct mad_send *send_of(struct rt_tree_node *node)
{
	return container_of(node, struct mad_send, match_node);
}

/* A send's key is kept as bytes beside it: its address handle may change. */
static int compare(const void *key, const struct rt_tree_node *node)
{
	return memcmp(key, container_of(node, const struct mad_send, match_node)->match_key,
		      sizeof(struct key));
}

void mad_match_init(struct mad_agent *agent)
{
	rt_tree_init(agent->port->device->rt, &agent->sends, compare);
}

void mad_match_add(struct mad_send *send)
{
	struct key key = key_of_send(send);

	_Static_assert(sizeof(key) == sizeof(send->match_key), "a key and nothing more");
	memcpy(send->match_key, &key, sizeof(key));
	rt_tree_insert(&send->agent->sends, &send->match_node, &key);
}

struct mad_send *mad_match_find(const struct mad_agent *agent, const struct mad_recv *recv)
{
	struct key key = key_of_recv(recv);
	struct rt_tree_node *node = rt_tree_find(&agent->sends, &key);

	return node ? send_of(node) : NULL;
}

struct mad_send *mad_match_first(const struct mad_agent *agent)
{
	struct rt_tree_node *node = rt_tree_first(&agent->sends);

	return node ? send_of(node) : NULL;
}
