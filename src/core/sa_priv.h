/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal declarations of the SA client. Its files:
 *
 *  sa.c	  ports: the address of their subnet administrator, their MAD agent
 *  sa_query.c	  queries: tries, answers, cancellation
 *  sa_records.c  the queries for each type of record: packing, unpacking, callbacks
 *  sa_cache.c	  recently queried path records
 *  sa_mcast.c	  multicast groups, and the members of each
 *  sa_notice.c	  subscriptions to notices, and the Reports that arrive
 *  sa_address.c  address vectors from records
 *
 * The MAD agent of a port is registered with the first query, and the agent for
 * Reports with the first subscription, so that an unused port costs nothing.
 */
#ifndef SOFTIB_CORE_SA_PRIV_H
#define SOFTIB_CORE_SA_PRIV_H

#include "core/private.h"
#include "rdma/ib_sa.h"
#include "runtime/rt.h"
#include "wire/sa.h"

#define SA_TRIES 8	     /* tries of one query within its time-out */
#define SA_TRY_LEAST_MS 10   /* least interval between two tries */
#define SA_TIMEOUT_MS 3000   /* time-out of the core's own queries */
#define SA_RECORDS_MAX 127   /* the largest number of paths that NumbPath can request */
#define SA_WATCHES 3	     /* number of traps that report changes of paths */

/** struct sa_address - the address of a port's subnet administrator. It exists
 *  as long as the port or an outstanding send uses it */
struct sa_address {
	unsigned int users;
	struct ib_ah *ah;
	u16 pkey_index;
};

/** struct sa_watch - a subscription of the path cache */
struct sa_watch {
	struct ib_inform_info *info;
	bool stands;
};

/* Attributes of paths and groups of RoCE, which has no subnet administrator. The kernel uses similar
 * values. */
#define SA_ROCE_HOP_LIMIT     64
#define SA_ROCE_RATE_ENC      16 /* 100 Gb/s */
#define SA_ROCE_LIFE_TIME_ENC 18 /* 1 s */

/** struct sa_port - one port of a device */
struct sa_port {
	struct ib_device *device;
	u32 port_num;
	struct ib_mad_agent *agent;  /* NULL: there has been no query */
	struct sa_address *address;  /* NULL: the next query looks it up */
	struct list_head groups;     /* struct sa_group */
	struct list_head notices;    /* struct sa_inform */
	struct ib_mad_agent *report_agent;
	struct list_head cache; /* struct sa_cached, the youngest first */
	unsigned int num_cached;
	unsigned int cache_epoch; /* the answer to a query of an earlier epoch is not cached */
	struct sa_watch watch[SA_WATCHES];
	unsigned int queries; /* number of outstanding queries */
	bool closing;	      /* the device is being removed: no query begins any more */
};

/** struct sa_reply - an answer without error: @num encoded records, the first
 *  at @records, each @stride bytes behind the previous one */
struct sa_reply {
	const u8 *records;
	size_t stride;
	unsigned int num;
};

/**
 * struct ib_sa_query - a query. It exists until its callback has been called
 * @answer: called once, from the loop; its @reply is NULL if @status is not 0
 */
struct ib_sa_query {
	struct list_head node;	  /* client->queries */
	struct list_head id_node; /* in the hash of queries by id */
	struct sa_port *port;
	int id;
	struct ib_mad_send_buf *buf; /* the current try; NULL: between two tries */
	struct ib_mad_recv_wc *reply; /* the answer, until the send's handler is called */
	mono_t deadline;
	u64 try_ns;
	bool cancelled;
	struct rt_timer again; /* begins the next try */
	size_t record_bytes;   /* length of the encoded record */
	void (*answer)(struct ib_sa_query *query, int status, const struct sa_reply *reply);
	/* --- the caller's callback --- */
	void (*callback)(void);
	void *context;
	ib_sa_comp_mask comp_mask;
	unsigned int cache_epoch;
	struct rdma_restrack_entry res;
	struct sa_path_rec path; /* the requested components, which are the key of the cache */
	_Alignas(8) u8 mad[IB_MGMT_MAD_SIZE];
};

/** struct sa_request - the contents of a query */
struct sa_request {
	u8 method;
	u16 attr_id;
	ib_sa_comp_mask comp_mask;
	unsigned long timeout_ms;
	const struct wire_codec *codec;
	const void *record; /* the decoded record: a struct of src/wire */
};

/* --- sa.c --- */

/** sa_client_of() - Return: the core's own SA client, which it uses for multicast and notices */
static inline struct ib_sa_client *sa_client_of(const struct sa_port *port)
{
	return &core_fabric_of(port->device->rt)->sa_client;
}
/** sa_port_find() - Return: a port of @device; NULL: the device was removed or has no such port */
struct sa_port *sa_port_find(struct ib_device *device, u32 port_num);
/** sa_port_open() - make sure that the port has its MAD agent and the address of its SA
 *  Return: 0; -EAGAIN: no subnet manager is known; -errno */
int sa_port_open(struct sa_port *port);
void sa_address_put(struct sa_address *address);

/* --- sa_query.c --- */

/** sa_query_alloc() - Return: a query of @port, which the caller fills in; NULL: no memory */
struct ib_sa_query *sa_query_alloc(struct sa_port *port);
/**
 * sa_query_start() - send @request
 * @query: with answer, callback and context filled; freed on failure
 * Return: its id; -errno
 */
int sa_query_start(struct ib_sa_query *query, struct ib_sa_client *client,
		   const struct sa_request *request);
/** sa_query_known() - start a query whose answer is known already. @fn, which is
 *  called from the loop, ends it, with -EINTR if it was cancelled. Return: its id */
int sa_query_known(struct ib_sa_query *query, struct ib_sa_client *client,
		   void (*fn)(struct rt_timer *timer));
/** sa_query_end() - call the callback of @query, and free it */
void sa_query_end(struct ib_sa_query *query, int status, const struct sa_reply *reply);
/** sa_queries_end() - end the queries of @port with -EINTR, because the device is being removed */
void sa_queries_end(struct sa_port *port);
/* the handlers of a port's MAD agent */
void sa_query_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc);
void sa_query_answered(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
		       struct ib_mad_recv_wc *recv_wc);

/* --- sa_records.c --- */

void sa_path_from_wire(struct sa_path_rec *rec, const struct wire_path_record *wire);
void sa_path_to_wire(const struct sa_path_rec *rec, struct wire_path_record *wire);
void sa_member_from_wire(struct ib_sa_mcmember_rec *rec, const struct wire_mcmember_record *wire);
void sa_member_to_wire(const struct ib_sa_mcmember_rec *rec, struct wire_mcmember_record *wire);

/* --- sa_cache.c --- */

/** sa_cache_find() - Return: the path that @query requests; NULL: the SA has to be asked */
const struct sa_path_rec *sa_cache_find(struct sa_port *port, const struct ib_sa_query *query);
/** sa_cache_keep() - cache the answer of the SA to @query */
void sa_cache_keep(struct sa_port *port, const struct ib_sa_query *query,
		   const struct sa_path_rec *rec);
void sa_cache_drop(struct sa_port *port);
/** sa_cache_close() - discard the cache of @port, and end its subscriptions */
void sa_cache_close(struct sa_port *port);

/* --- sa_mcast.c --- */

/** sa_groups_lost() - all memberships of the port are lost: report it to the members */
void sa_groups_lost(struct sa_port *port);
/** sa_groups_check_pkeys() - the same for memberships whose P_Key the port does not have any more */
void sa_groups_check_pkeys(struct sa_port *port);
/** sa_groups_close() - free the groups of a device that is being removed. Its clients have freed
 *  their members */
void sa_groups_close(struct sa_port *port);

/* --- sa_notice.c --- */

/** sa_notices_lost() - the subnet manager has lost the subscriptions, or was replaced: subscribe
 *  again */
void sa_notices_lost(struct sa_port *port);
void sa_notices_close(struct sa_port *port);

#endif
