/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SA client's inside. Who does what:
 *
 *  sa.c	  ports: where their subnet administrator is, their MAD agent
 *  sa_query.c	  the life of a query: tries, answers, cancelling
 *  sa_records.c  the queries by record: packing, unpacking, callbacks
 *  sa_cache.c	  path records that were asked for lately
 *  sa_mcast.c	  multicast groups and the members of each, counted
 *  sa_notice.c	  subscriptions to notices, and the Reports that arrive
 *  sa_address.c  address vectors from records
 *
 * A port costs nothing until somebody asks: its MAD agent is registered with
 * the first query, and the one for Reports with the first subscription.
 */
#ifndef SOFTIB_CORE_SA_PRIV_H
#define SOFTIB_CORE_SA_PRIV_H

#include "core/private.h"
#include "rdma/ib_sa.h"
#include "runtime/rt.h"
#include "wire/sa.h"

#define SA_TRIES 8	     /* of one query within its time */
#define SA_TRY_LEAST_MS 10   /* between two of them */
#define SA_TIMEOUT_MS 3000   /* of the core's own queries */
#define SA_RECORDS_MAX 127   /* paths that NumbPath can ask for */
#define SA_WATCHES 3	     /* traps that change paths */

/** struct sa_address - where the subnet administrator of a port is; kept as
 *  long as the port or a send under way uses it */
struct sa_address {
	unsigned int users;
	struct ib_ah *ah;
	u16 pkey_index;
};

/** struct sa_watch - a subscription of the cache's */
struct sa_watch {
	struct ib_inform_info *info;
	bool stands;
};

/* What paths and groups of RoCE are given, as nobody administers them; the kernel's values
 * are alike */
#define SA_ROCE_HOP_LIMIT     64
#define SA_ROCE_RATE_ENC      16 /* 100 Gb/s */
#define SA_ROCE_LIFE_TIME_ENC 18 /* 1 s */

/** struct sa_port - one port of a device */
struct sa_port {
	struct ib_device *device;
	u32 port_num;
	struct ib_mad_agent *agent;  /* NULL: nobody asked yet */
	struct sa_address *address;  /* NULL: asked for with the next query */
	struct list_head groups;     /* struct sa_group */
	struct list_head notices;    /* struct sa_inform */
	struct ib_mad_agent *report_agent;
	struct list_head cache; /* struct sa_cached, the youngest first */
	unsigned int num_cached;
	unsigned int cache_epoch; /* an answer to an older question is not kept */
	struct sa_watch watch[SA_WATCHES];
	unsigned int queries; /* outstanding */
	bool closing;	      /* the device goes: nothing begins any more */
};

/** struct sa_reply - an answer without error: @num records of the wire, the
 *  first at @records, each @stride bytes behind the one before */
struct sa_reply {
	const u8 *records;
	size_t stride;
	unsigned int num;
};

/**
 * struct ib_sa_query - a question, from its call to its callback
 * @answer: called once from the loop; @reply is NULL when @status is not 0
 */
struct ib_sa_query {
	struct list_head node;	  /* client->queries */
	struct list_head id_node; /* by id */
	struct sa_port *port;
	int id;
	struct ib_mad_send_buf *buf; /* the try under way; NULL between two */
	struct ib_mad_recv_wc *reply; /* came; the send's handler follows */
	mono_t deadline;
	u64 try_ns;
	bool cancelled;
	struct rt_timer again; /* begins the next try */
	size_t record_bytes;   /* on the wire */
	void (*answer)(struct ib_sa_query *query, int status, const struct sa_reply *reply);
	/* --- the asker's --- */
	void (*callback)(void);
	void *context;
	ib_sa_comp_mask comp_mask;
	unsigned int cache_epoch;
	struct rdma_restrack_entry res;
	struct sa_path_rec path; /* as it was asked for; what the cache goes by */
	_Alignas(8) u8 mad[IB_MGMT_MAD_SIZE];
};

/** struct sa_request - what a query asks for */
struct sa_request {
	u8 method;
	u16 attr_id;
	ib_sa_comp_mask comp_mask;
	unsigned long timeout_ms;
	const struct wire_codec *codec;
	const void *record; /* the codec's struct */
};

/* --- sa.c --- */

/** sa_client_of() - the core's own consumer, of multicast and notices */
static inline struct ib_sa_client *sa_client_of(const struct sa_port *port)
{
	return &core_fabric_of(port->device->rt)->sa_client;
}
/** sa_port_find() - Return: NULL when @device is gone or has no such port */
struct sa_port *sa_port_find(struct ib_device *device, u32 port_num);
/** sa_port_open() - its MAD agent and its SA's address are there. 0; -EAGAIN no
 *  subnet manager is known; -errno */
int sa_port_open(struct sa_port *port);
void sa_address_put(struct sa_address *address);

/* --- sa_query.c --- */

/** sa_query_alloc() - Return: a query of @port to be filled; NULL */
struct ib_sa_query *sa_query_alloc(struct sa_port *port);
/**
 * sa_query_start() - send @request
 * @query: with answer, callback and context filled; freed on failure
 * Return: its id; -errno
 */
int sa_query_start(struct ib_sa_query *query, struct ib_sa_client *client,
		   const struct sa_request *request);
/** sa_query_known() - the same for a query whose answer is at hand: @fn, run
 *  from the loop, ends it, with -EINTR when it was cancelled. Return: its id */
int sa_query_known(struct ib_sa_query *query, struct ib_sa_client *client,
		   void (*fn)(struct rt_timer *timer));
/** sa_query_end() - call back, and forget it */
void sa_query_end(struct ib_sa_query *query, int status, const struct sa_reply *reply);
/** sa_queries_end() - those of @port end with -EINTR: the device goes */
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

/** sa_cache_find() - the path that @query asks for; NULL: ask the SA */
const struct sa_path_rec *sa_cache_find(struct sa_port *port, const struct ib_sa_query *query);
/** sa_cache_keep() - what the SA said to @query */
void sa_cache_keep(struct sa_port *port, const struct ib_sa_query *query,
		   const struct sa_path_rec *rec);
void sa_cache_drop(struct sa_port *port);
/** sa_cache_close() - drop it all, and its subscriptions */
void sa_cache_close(struct sa_port *port);

/* --- sa_mcast.c --- */

/** sa_groups_lost() - every membership of the port is lost: tell the members */
void sa_groups_lost(struct sa_port *port);
/** sa_groups_check_pkeys() - so are those whose P_Key the port no longer has */
void sa_groups_check_pkeys(struct sa_port *port);
/** sa_groups_close() - the device goes: its clients have freed their members */
void sa_groups_close(struct sa_port *port);

/* --- sa_notice.c --- */

/** sa_notices_lost() - the subnet manager forgot, or is another one */
void sa_notices_lost(struct sa_port *port);
void sa_notices_close(struct sa_port *port);

#endif
