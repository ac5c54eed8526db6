/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Subnet administration (IBA v1 chapter 15) for clients of the midlayer: path
 * records, service records, multicast membership and notices of the subnet.
 *
 * A query returns at once; its callback runs from the loop when the subnet
 * administrator has answered, when the time is over, or when the query was
 * cancelled. Records are structs in memory order: the core packs and unpacks
 * them. A component mask says which fields of a record count.
 *
 * Names and rules are those of the Linux InfiniBand core; notices have the
 * names that the OpenFabrics distribution gave them.
 */
#ifndef RDMA_IB_SA_H
#define RDMA_IB_SA_H

#include "rdma/ib_mad.h"

#pragma GCC visibility push(default)

#define IB_SA_CLASS_VERSION 2

/* --- methods and attributes (15.2.2, 15.2.5) --- */

#define IB_SA_METHOD_GET_TABLE 0x12
#define IB_SA_METHOD_GET_TABLE_RESP 0x92
#define IB_SA_METHOD_GET_TRACE_TBL 0x13
#define IB_SA_METHOD_DELETE 0x15
#define IB_SA_METHOD_DELETE_RESP 0x95

enum {
	IB_SA_ATTR_CLASS_PORTINFO = 0x01,
	IB_SA_ATTR_NOTICE = 0x02,
	IB_SA_ATTR_INFORM_INFO = 0x03,
	IB_SA_ATTR_NODE_REC = 0x11,
	IB_SA_ATTR_PORT_INFO_REC = 0x12,
	IB_SA_ATTR_SL2VL_REC = 0x13,
	IB_SA_ATTR_SWITCH_REC = 0x14,
	IB_SA_ATTR_LINEAR_FDB_REC = 0x15,
	IB_SA_ATTR_RANDOM_FDB_REC = 0x16,
	IB_SA_ATTR_MCAST_FDB_REC = 0x17,
	IB_SA_ATTR_SM_INFO_REC = 0x18,
	IB_SA_ATTR_LINK_REC = 0x20,
	IB_SA_ATTR_GUID_INFO_REC = 0x30,
	IB_SA_ATTR_SERVICE_REC = 0x31,
	IB_SA_ATTR_PARTITION_REC = 0x33,
	IB_SA_ATTR_PATH_REC = 0x35,
	IB_SA_ATTR_VL_ARB_REC = 0x36,
	IB_SA_ATTR_MC_MEMBER_REC = 0x38,
	IB_SA_ATTR_TRACE_REC = 0x39,
	IB_SA_ATTR_MULTI_PATH_REC = 0x3a,
	IB_SA_ATTR_SERVICE_ASSOC_REC = 0x3b,
	IB_SA_ATTR_INFORM_INFO_REC = 0xf3,
};

/** enum ib_sa_selector - how MTU, rate and packet lifetime of a record are
 *  meant; the best MTU is the largest, the best lifetime the smallest */
enum ib_sa_selector { IB_SA_GT, IB_SA_LT, IB_SA_EQ, IB_SA_BEST };

/** ib_sa_comp_mask - fields of a record that count; made of IB_SA_..._REC_... */
typedef u64 ib_sa_comp_mask;
#define IB_SA_COMP_MASK(n) ((ib_sa_comp_mask)1 << (n))

/* --- path records (15.2.5.16) --- */

#define IB_SA_PATH_REC_SERVICE_ID (IB_SA_COMP_MASK(0) | IB_SA_COMP_MASK(1))
#define IB_SA_PATH_REC_DGID IB_SA_COMP_MASK(2)
#define IB_SA_PATH_REC_SGID IB_SA_COMP_MASK(3)
#define IB_SA_PATH_REC_DLID IB_SA_COMP_MASK(4)
#define IB_SA_PATH_REC_SLID IB_SA_COMP_MASK(5)
#define IB_SA_PATH_REC_RAW_TRAFFIC IB_SA_COMP_MASK(6)
#define IB_SA_PATH_REC_FLOW_LABEL IB_SA_COMP_MASK(8)
#define IB_SA_PATH_REC_HOP_LIMIT IB_SA_COMP_MASK(9)
#define IB_SA_PATH_REC_TRAFFIC_CLASS IB_SA_COMP_MASK(10)
#define IB_SA_PATH_REC_REVERSIBLE IB_SA_COMP_MASK(11)
#define IB_SA_PATH_REC_NUMB_PATH IB_SA_COMP_MASK(12)
#define IB_SA_PATH_REC_PKEY IB_SA_COMP_MASK(13)
#define IB_SA_PATH_REC_QOS_CLASS IB_SA_COMP_MASK(14)
#define IB_SA_PATH_REC_SL IB_SA_COMP_MASK(15)
#define IB_SA_PATH_REC_MTU_SELECTOR IB_SA_COMP_MASK(16)
#define IB_SA_PATH_REC_MTU IB_SA_COMP_MASK(17)
#define IB_SA_PATH_REC_RATE_SELECTOR IB_SA_COMP_MASK(18)
#define IB_SA_PATH_REC_RATE IB_SA_COMP_MASK(19)
#define IB_SA_PATH_REC_PACKET_LIFE_TIME_SELECTOR IB_SA_COMP_MASK(20)
#define IB_SA_PATH_REC_PACKET_LIFE_TIME IB_SA_COMP_MASK(21)
#define IB_SA_PATH_REC_PREFERENCE IB_SA_COMP_MASK(22)

enum sa_path_rec_type { SA_PATH_REC_TYPE_IB };

/** struct sa_path_rec_ib - the part of a path that InfiniBand has alone */
struct sa_path_rec_ib {
	__be16 dlid, slid;
	u8 raw_traffic;
};

/**
 * struct sa_path_rec - a path between two ports
 * @numb_path: how many paths to ask for, 1 to 127
 * @mtu: enum ib_mtu; @rate: as enum ibv_rate
 * @packet_life_time: exponent, 4.096 us * 2^n
 * @dlid, @slid, @raw_traffic: under two names, that of @ib and, as before
 *	Linux 4.12, their own
 */
struct sa_path_rec {
	union ib_gid dgid, sgid;
	__be64 service_id;
	__be32 flow_label;
	u8 hop_limit;
	u8 traffic_class;
	u8 reversible;
	u8 numb_path;
	__be16 pkey;
	__be16 qos_class;
	u8 sl;
	u8 mtu_selector; /* enum ib_sa_selector, here and below */
	u8 mtu;
	u8 rate_selector;
	u8 rate;
	u8 packet_life_time_selector;
	u8 packet_life_time;
	u8 preference;
	union {
		struct sa_path_rec_ib ib;
		struct {
			__be16 dlid, slid;
			u8 raw_traffic;
		};
	};
	enum sa_path_rec_type rec_type;
};
#define ib_sa_path_rec sa_path_rec /* the name before Linux 4.12 */

static inline __be32 sa_path_get_dlid(const struct sa_path_rec *rec)
{
	return cpu_to_be32(be16_to_cpu(rec->ib.dlid));
}

static inline __be32 sa_path_get_slid(const struct sa_path_rec *rec)
{
	return cpu_to_be32(be16_to_cpu(rec->ib.slid));
}

static inline void sa_path_set_dlid(struct sa_path_rec *rec, u32 dlid)
{
	rec->ib.dlid = cpu_to_be16((u16)dlid);
}

static inline void sa_path_set_slid(struct sa_path_rec *rec, u32 slid)
{
	rec->ib.slid = cpu_to_be16((u16)slid);
}

/** ib_sa_pack_path() - @rec as 64 bytes of the wire, in @attribute */
void ib_sa_pack_path(const struct sa_path_rec *rec, void *attribute);
/** ib_sa_unpack_path() - the 64 bytes of @attribute as a record */
void ib_sa_unpack_path(const void *attribute, struct sa_path_rec *rec);

/* --- multicast member records (15.2.5.17) --- */

#define IB_SA_MCMEMBER_REC_MGID IB_SA_COMP_MASK(0)
#define IB_SA_MCMEMBER_REC_PORT_GID IB_SA_COMP_MASK(1)
#define IB_SA_MCMEMBER_REC_QKEY IB_SA_COMP_MASK(2)
#define IB_SA_MCMEMBER_REC_MLID IB_SA_COMP_MASK(3)
#define IB_SA_MCMEMBER_REC_MTU_SELECTOR IB_SA_COMP_MASK(4)
#define IB_SA_MCMEMBER_REC_MTU IB_SA_COMP_MASK(5)
#define IB_SA_MCMEMBER_REC_TRAFFIC_CLASS IB_SA_COMP_MASK(6)
#define IB_SA_MCMEMBER_REC_PKEY IB_SA_COMP_MASK(7)
#define IB_SA_MCMEMBER_REC_RATE_SELECTOR IB_SA_COMP_MASK(8)
#define IB_SA_MCMEMBER_REC_RATE IB_SA_COMP_MASK(9)
#define IB_SA_MCMEMBER_REC_PACKET_LIFE_TIME_SELECTOR IB_SA_COMP_MASK(10)
#define IB_SA_MCMEMBER_REC_PACKET_LIFE_TIME IB_SA_COMP_MASK(11)
#define IB_SA_MCMEMBER_REC_SL IB_SA_COMP_MASK(12)
#define IB_SA_MCMEMBER_REC_FLOW_LABEL IB_SA_COMP_MASK(13)
#define IB_SA_MCMEMBER_REC_HOP_LIMIT IB_SA_COMP_MASK(14)
#define IB_SA_MCMEMBER_REC_SCOPE IB_SA_COMP_MASK(15)
#define IB_SA_MCMEMBER_REC_JOIN_STATE IB_SA_COMP_MASK(16)
#define IB_SA_MCMEMBER_REC_PROXY_JOIN IB_SA_COMP_MASK(17)

/** enum ib_sa_mc_join_states - positions of the bits of JoinState */
enum ib_sa_mc_join_states {
	FULLMEMBER_JOIN,
	NONMEMBER_JOIN,
	SENDONLY_NONMEBER_JOIN, /* as published */
	SENDONLY_FULLMEMBER_JOIN,
	NUM_JOIN_MEMBERSHIP_TYPES,
};

struct ib_sa_mcmember_rec {
	union ib_gid mgid, port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu_selector, mtu;
	u8 traffic_class;
	__be16 pkey;
	u8 rate_selector, rate;
	u8 packet_life_time_selector, packet_life_time;
	u8 sl;
	__be32 flow_label;
	u8 hop_limit;
	u8 scope;
	u8 join_state; /* bits: 1 << enum ib_sa_mc_join_states */
	u8 proxy_join;
};

/* --- service records (15.2.5.14) --- */

#define IB_SA_SERVICE_REC_SERVICE_ID IB_SA_COMP_MASK(0)
#define IB_SA_SERVICE_REC_SERVICE_GID IB_SA_COMP_MASK(1)
#define IB_SA_SERVICE_REC_SERVICE_PKEY IB_SA_COMP_MASK(2)
#define IB_SA_SERVICE_REC_SERVICE_LEASE IB_SA_COMP_MASK(4)
#define IB_SA_SERVICE_REC_SERVICE_KEY IB_SA_COMP_MASK(5)
#define IB_SA_SERVICE_REC_SERVICE_NAME IB_SA_COMP_MASK(6)
#define IB_SA_SERVICE_REC_SERVICE_DATA8_0 IB_SA_COMP_MASK(7)   /* ... _15: 22 */
#define IB_SA_SERVICE_REC_SERVICE_DATA16_0 IB_SA_COMP_MASK(23) /* ... _7: 30 */
#define IB_SA_SERVICE_REC_SERVICE_DATA32_0 IB_SA_COMP_MASK(31) /* ... _3: 34 */
#define IB_SA_SERVICE_REC_SERVICE_DATA64_0 IB_SA_COMP_MASK(35) /* ... _1: 36 */

#define IB_DEFAULT_SERVICE_LEASE 0xFFFFFFFF /* for ever */

struct ib_sa_service_rec {
	__be64 id;
	union ib_gid gid;
	__be16 pkey;
	__be32 lease; /* seconds */
	u8 key[16];
	u8 name[64];
	u8 data8[16];
	__be16 data16[8];
	__be32 data32[4];
	__be64 data64[2];
};

/* --- clients and queries --- */

/** struct ib_sa_client - a consumer of this interface; its queries */
struct ib_sa_client {
	struct list_head queries;
	const char *name; /* for resource tracking */
};

/** ib_sa_register_client() - before the first query of @client */
void ib_sa_register_client_(struct ib_sa_client *client, const char *name);
#define ib_sa_register_client(client) ib_sa_register_client_(client, SOFTIB_CLIENT_NAME)
/** ib_sa_unregister_client() - its outstanding queries end with -EINTR, and
 *  their callbacks have run, before this returns */
void ib_sa_unregister_client(struct ib_sa_client *client);

struct ib_sa_query;

/**
 * ib_sa_cancel_query() - end a query: its callback runs soon, with -EINTR
 * @id: what the query's call returned
 * @query: what it stored. A query that is over already is left alone.
 */
void ib_sa_cancel_query(int id, struct ib_sa_query *query);

/**
 * ib_sa_path_rec_get() - ask for a path
 * @rec: what is known of it; copied
 * @comp_mask: IB_SA_PATH_REC_...: which fields of @rec count. With
 *	IB_SA_PATH_REC_NUMB_PATH and more than one, the table is asked for
 * @timeout_ms: after this the query ends with -ETIMEDOUT; within it the
 *	request is sent several times, and again when the SA is busy
 * @callback: from the loop, once. @status is 0 and @resp has @num_prs records
 *	(valid until it returns), or @resp is NULL: -ETIMEDOUT, -EINTR
 *	(cancelled, client or device gone), -EINVAL (the SA refused, or knows no
 *	such path), -EOPNOTSUPP (the SA has no such request, or is no SA), -EIO
 * @query: set to what ib_sa_cancel_query() wants; may be NULL
 *
 * Context: any; never sleeps. Return: the query's id, 0 or more; -EAGAIN the
 * port knows no subnet manager, -ENODEV no such port, -ENOMEM.
 */
int ib_sa_path_rec_get(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		       const struct sa_path_rec *rec, ib_sa_comp_mask comp_mask,
		       unsigned long timeout_ms, gfp_t gfp_mask,
		       void (*callback)(int status, struct sa_path_rec *resp,
					unsigned int num_prs, void *context),
		       void *context, struct ib_sa_query **query);

/** ib_sa_service_rec_query() - @method: IB_MGMT_METHOD_GET, _SET (register) or
 *  IB_SA_METHOD_DELETE; -EINVAL another. Else as ib_sa_path_rec_get() */
int ib_sa_service_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			    u8 method, const struct ib_sa_service_rec *rec,
			    ib_sa_comp_mask comp_mask, unsigned long timeout_ms, gfp_t gfp_mask,
			    void (*callback)(int status, struct ib_sa_service_rec *resp,
					     void *context),
			    void *context, struct ib_sa_query **query);

/** ib_sa_mcmember_rec_query() - one request, without the counting of members
 *  that ib_sa_join_multicast() does. @method as above */
int ib_sa_mcmember_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			     u8 method, const struct ib_sa_mcmember_rec *rec,
			     ib_sa_comp_mask comp_mask, unsigned long timeout_ms, gfp_t gfp_mask,
			     void (*callback)(int status, struct ib_sa_mcmember_rec *resp,
					      void *context),
			     void *context, struct ib_sa_query **query);

/** ib_sa_mcmember_rec_set() - create a group, or join it (SubnAdmSet) */
#define ib_sa_mcmember_rec_set(client, device, port_num, ...)                                      \
	ib_sa_mcmember_rec_query(client, device, port_num, IB_MGMT_METHOD_SET, __VA_ARGS__)
/** ib_sa_mcmember_rec_delete() - leave it (SubnAdmDelete) */
#define ib_sa_mcmember_rec_delete(client, device, port_num, ...)                                   \
	ib_sa_mcmember_rec_query(client, device, port_num, IB_SA_METHOD_DELETE, __VA_ARGS__)

/* --- multicast groups --- */

/**
 * struct ib_sa_multicast - one membership
 * @rec: the group as the SA has it, once joined; join_state is this member's
 */
struct ib_sa_multicast {
	struct ib_sa_mcmember_rec rec;
	ib_sa_comp_mask comp_mask;
	int (*callback)(int status, struct ib_sa_multicast *multicast);
	void *context;
};

/**
 * ib_sa_join_multicast() - be a member of a multicast group
 *
 * Members of one port and group are counted: the first of a join state joins
 * at the SA, the last leaves there.
 *
 * @rec: the group's MGID (all zero: the SA invents one), the join state, and
 *	for who may create the group what it is like
 * @comp_mask: IB_SA_MCMEMBER_REC_...; MGID and JOIN_STATE must be among them
 * @callback: from the loop. 0: joined. Later -ENETRESET: the membership is
 *	lost (port down, LID changed, the subnet manager asks for registration
 *	anew, the P_Key went): free it and join again. Else it failed:
 *	-ETIMEDOUT, -EINVAL (refused, or other than the group is), -EIO. A
 *	return other than 0 frees the membership.
 *
 * Context: may sleep. Return: the membership, to be freed by
 * ib_sa_free_multicast() also when joining failed; ERR_PTR(-ENODEV no such
 * port, -EINVAL no MGID or join state in @comp_mask, -ENOMEM).
 */
struct ib_sa_multicast *ib_sa_join_multicast(struct ib_sa_client *client,
					     struct ib_device *device, u32 port_num,
					     const struct ib_sa_mcmember_rec *rec,
					     ib_sa_comp_mask comp_mask, gfp_t gfp_mask,
					     int (*callback)(int status,
							     struct ib_sa_multicast *multicast),
					     void *context);
/** ib_sa_free_multicast() - end a membership; the last one leaves the group.
 *  Its callback does not run any more. Not from within that callback. */
void ib_sa_free_multicast(struct ib_sa_multicast *multicast);
/** ib_sa_get_mcmember_rec() - the record of a group that this port has joined.
 *  Return: 0; -EADDRNOTAVAIL it has not; -ENODEV no such port */
int ib_sa_get_mcmember_rec(struct ib_device *device, u32 port_num, const union ib_gid *mgid,
			   struct ib_sa_mcmember_rec *rec);

/* --- notices (13.4.8.2, 15.3.3) --- */

enum {
	IB_SA_SM_TRAP_GID_IN_SERVICE = 64,
	IB_SA_SM_TRAP_GID_OUT_OF_SERVICE = 65,
	IB_SA_SM_TRAP_CREATE_MC_GROUP = 66,
	IB_SA_SM_TRAP_DELETE_MC_GROUP = 67,
	IB_SA_SM_TRAP_PORT_CHANGE_STATE = 128,
	IB_SA_SM_TRAP_LINK_INTEGRITY = 129,
	IB_SA_SM_TRAP_CAP_MASK_CHANGE = 144,
};

/** struct ib_sa_notice - what happened in the subnet; in host order.
 *  @data_details: by trap number (14.2.5.1) */
struct ib_sa_notice {
	u8 is_generic;
	u8 type;
	u32 producer;
	u16 trap_number;
	u16 issuer_lid;
	u16 count;
	u8 data_details[54];
	union ib_gid issuer_gid;
};

/** ib_sa_notice_gid() - the GID that traps 64 to 67 are about */
static inline const union ib_gid *ib_sa_notice_gid(const struct ib_sa_notice *notice)
{
	return (const union ib_gid *)&notice->data_details[6];
}

/** struct ib_inform_info - a subscription */
struct ib_inform_info {
	void *context;
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice);
	u16 trap_number;
};

/**
 * ib_sa_register_inform_info() - hear of generic notices of one trap number
 *
 * Subscribers of one port and trap number share one subscription at the SA.
 *
 * @callback: from the loop. First with @notice NULL: @status 0 says that the
 *	subscription stands, else why not (-ETIMEDOUT, -EINVAL refused, -EBUSY a
 *	program of the node has the SA's reports already). Then with each notice.
 *	Later -ENETRESET: it is lost: free it and register again. A return other
 *	than 0 frees the subscription.
 *
 * Return: the subscription, to be freed by ib_sa_unregister_inform_info();
 * ERR_PTR(-ENODEV, -ENOMEM)
 */
struct ib_inform_info *ib_sa_register_inform_info(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num, u16 trap_number,
	gfp_t gfp_mask,
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice),
	void *context);
/** ib_sa_unregister_inform_info() - the callback does not run any more. Not
 *  from within that callback. */
void ib_sa_unregister_inform_info(struct ib_inform_info *info);

/* --- addresses from records --- */

struct ib_gid_attr;

/**
 * ib_init_ah_from_path() - an address vector for a path
 * The port's path bits come from the SLID; there is a GRH when the path
 * leaves the subnet (hop limit above 1, 8.3.6).
 * Return: 0; -EINVAL no such port; -ENOENT the SGID is not the port's
 */
int ib_init_ah_from_path(struct ib_device *device, u32 port_num, const struct sa_path_rec *rec,
			 struct rdma_ah_attr *ah_attr);
/** ib_init_ah_attr_from_path() - today's name. @sgid_attr: for Ethernet ports;
 *  NULL here */
static inline int ib_init_ah_attr_from_path(struct ib_device *device, u32 port_num,
					    const struct sa_path_rec *rec,
					    struct rdma_ah_attr *ah_attr,
					    const struct ib_gid_attr *sgid_attr)
{
	return ib_init_ah_from_path(device, port_num, rec, ah_attr);
}

/** ib_init_ah_from_mcmember() - an address vector for sends to a group */
int ib_init_ah_from_mcmember(struct ib_device *device, u32 port_num,
			     const struct ib_sa_mcmember_rec *rec, struct rdma_ah_attr *ah_attr);

/* --- the core's own --- */

/** ib_sa_init() - start the SA client: behind ib_mad_init(). 0; -errno */
int ib_sa_init(struct rt *rt);
void ib_sa_cleanup(struct rt *rt);

#pragma GCC visibility pop

#endif
