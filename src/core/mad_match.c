/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds the send to which a received MAD belongs (13.4.6.4): a response belongs to its
 * request, and an ACK, STOP or ABORT of RMPP to the message that is being sent. An agent keeps
 * its sends in a tree whose key has every field that has to match, so the search takes
 * O(log n) steps whatever transaction IDs and addresses a program chooses.
 */
#include <string.h>

#include "core/mad_priv.h"
#include "wire/address.h"

/* which addresses have to match, besides the transaction ID and the class */
enum match {
	MATCH_DIRECTED,	  /* none: a directed route leads back to the requester */
	MATCH_ANSWER,	  /* the LID that the request was sent from, and that the response arrives at */
	MATCH_ANSWER_GRH, /* the GIDs as well: request and response have a GRH */
	MATCH_LID,	  /* the LID of the peer: the receiver of a response in segments acknowledges it */
	MATCH_GID,
};

struct key {
	__be64 tid;
	u8 mgmt_class, match;
	u8 reserved[6];
	union {
		union ib_gid gid; /* the largest member; unused bytes of the key are zero */
		u64 path_bits;
		u64 lid;
	};
};

/* A response may come from another LID of the port, or from the port to which the class is
 * redirected, but it always arrives at the LID from which the request was sent. */
static void expect_answer(struct key *key, const struct mad_port *port, bool grh, u8 path_bits)
{
	u8 lmc = 0;

	key->match = grh ? MATCH_ANSWER_GRH : MATCH_ANSWER;
	if (grh)
		return;
	ib_get_cached_lmc(port->device, port->port_num, &lmc);
	key->path_bits = wire_path_bits(path_bits, lmc);
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

/* The key is computed once, when the send is queued, because its address handle may be modified later. */
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
