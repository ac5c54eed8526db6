/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast: the groups of addresses, and the memberships of ids. The SA client counts the
 * memberships of a port, which leaves the group with the last one. */
#include <netinet/in.h>

#include "core/rdma_cm_priv.h"
#include "rdma/ib.h"
#include "wire/packet.h"

#define LINK_LOCAL_SCOPE 0x12 /* flags and scope of a MGID: a transient group of the subnet */
#define IPV4_SIGNATURE	 0x40 /* RFC 4391 section 4: 0x401b, 0x601b; ... */
#define IPV6_SIGNATURE	 0x60
#define IPOIB_GROUP	 0x1b
#define RDMA_CM_GROUP	 0x01 /* ... and the second byte of it in groups other than those of IPoIB */

/** struct rcm_mcast - a membership, or a request for one */
struct rcm_mcast {
	struct list_head node; /* rcm_id.mcasts */
	struct rcm_id *id;
	struct sockaddr_storage addr;
	struct ib_sa_multicast *sa;
	void *context;
};

/* --- addresses --- */

bool rcm_addr_is_multicast(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_ib *ib = (const void *)addr;

	if (addr->ss_family == AF_IB)
		return ib->sib_addr.sib_raw[0] == 0xff;
	if (addr->ss_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&in6->sin6_addr);
	return addr->ss_family == AF_INET && IN_MULTICAST(ntohl(in->sin_addr.s_addr));
}

static void begin_mgid(const struct rcm_id *id, u8 signature, union ib_gid *mgid)
{
	__be16 pkey = cpu_to_be16(id->pkey | WIRE_PKEY_FULL);

	*mgid = (union ib_gid){.raw = {0xff, LINK_LOCAL_SCOPE, signature,
				       id->id.ps == RDMA_PS_IPOIB ? IPOIB_GROUP :
								    RDMA_CM_GROUP}};
	memcpy(mgid->raw + 4, &pkey, sizeof(pkey));
}

static void mgid_of_ipv4(const struct rcm_id *id, struct in_addr addr, union ib_gid *mgid)
{
	__be32 low = cpu_to_be32(ntohl(addr.s_addr) & 0x0fffffff);

	begin_mgid(id, IPV4_SIGNATURE, mgid);
	memcpy(mgid->raw + 12, &low, sizeof(low));
}

/* Is the IPv6 address in fact an MGID? As in Linux, its first bytes show that. */
static bool is_mgid(const struct in6_addr *addr)
{
	return addr->s6_addr[0] == 0xff && (addr->s6_addr[1] & 0xf0) == 0x10 &&
	       addr->s6_addr[2] == 0xa0 && addr->s6_addr[3] == 0x1b;
}

int rcm_addr_mgid(const struct rcm_id *id, const struct sockaddr_storage *addr,
		  union ib_gid *mgid)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_ib *ib = (const void *)addr;

	*mgid = (union ib_gid){0}; /* the wildcard address: the SA chooses the MGID */
	if (rcm_addr_is_any(addr))
		return 0;
	if (!rcm_addr_is_multicast(addr))
		return -EINVAL;
	if (addr->ss_family == AF_IB) {
		memcpy(mgid, &ib->sib_addr, sizeof(*mgid));
	} else if (addr->ss_family == AF_INET) {
		mgid_of_ipv4(id,
			     ((const struct sockaddr_in *)(const void *)addr)->sin_addr,
			     mgid);
	} else if (is_mgid(&in6->sin6_addr)) {
		memcpy(mgid, &in6->sin6_addr, sizeof(*mgid));
	} else {
		begin_mgid(id, IPV6_SIGNATURE, mgid);
		memcpy(mgid->raw + 6, in6->sin6_addr.s6_addr + 6, 10);
	}
	return 0;
}

/* --- joining --- */

static void drop(struct rcm_mcast *mcast)
{
	list_del(&mcast->node);
	if (mcast->sa)
		ib_sa_free_multicast(mcast->sa);
	rt_free(mcast);
}

/* Look up the group of the IPv4 broadcast address (RFC 4391 section 4). */
static int get_broadcast(const struct rcm_id *id, struct ib_sa_mcmember_rec *rec)
{
	union ib_gid mgid;

	if (!id->id.device)
		return -EINVAL;
	begin_mgid(id, IPV4_SIGNATURE, &mgid);
	memset(mgid.raw + 12, 0xff, 4);
	return ib_sa_get_mcmember_rec(id->id.device, id->id.port_num, &mgid, rec);
}

int rcm_take_qkey(struct rcm_id *id)
{
	struct ib_sa_mcmember_rec rec;
	int ret;

	if (id->id.ps != RDMA_PS_IPOIB || id->qkey)
		return 0;
	ret = get_broadcast(id, &rec);
	if (!ret)
		id->qkey = be32_to_cpu(rec.qkey);
	return ret;
}

static void report_joined(const struct rcm_mcast *mcast, struct rdma_cm_event *event)
{
	const struct ib_sa_mcmember_rec *rec = &mcast->sa->rec;
	const struct rdma_cm_id *id = &mcast->id->id;

	event->event = RDMA_CM_EVENT_MULTICAST_JOIN;
	event->param.ud.qp_num = WIRE_QPN_MULTICAST;
	event->param.ud.qkey = be32_to_cpu(rec->qkey);
	event->status = ib_init_ah_from_mcmember(id->device, id->port_num, rec,
						 &event->param.ud.ah_attr);
	if (event->status)
		event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
}

/* Return: 0; 1: the id was destroyed by its handler, and the membership with it */
static int on_membership(int status, struct ib_sa_multicast *sa)
{
	struct rcm_mcast *mcast = sa->context;
	struct rcm_id *id = mcast->id;
	struct rdma_cm_event event = {.event = RDMA_CM_EVENT_MULTICAST_ERROR,
				      .status = status};

	if (!status)
		report_joined(mcast, &event);
	event.param.ud.private_data = mcast->context;
	if (!id->id.event_handler(&id->id, &event))
		return 0;
	mcast->sa = NULL; /* the caller frees it, because this function returns an error */
	rdma_destroy_id(&id->id);
	return 1;
}

static struct rcm_mcast *find(const struct rcm_id *id,
			      const struct sockaddr_storage *addr)
{
	struct rcm_mcast *mcast;

	list_for_each_entry(mcast, &id->mcasts, node)
		if (!memcmp(&mcast->addr, addr, sizeof(*addr)))
			return mcast;
	return NULL;
}

/* Request a membership with the attributes that the creator of a group has to specify beside the MGID
 * (15.2.5.17). The SA chooses the others. */
static struct ib_sa_multicast *join(struct rcm_mcast *mcast, const union ib_gid *mgid,
				    u8 join_state)
{
	ib_sa_comp_mask mask =
		IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
		IB_SA_MCMEMBER_REC_PKEY | IB_SA_MCMEMBER_REC_QKEY |
		IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL |
		IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_JOIN_STATE;
	const struct rcm_id *id = mcast->id;
	struct ib_sa_mcmember_rec broadcast, rec = {
		.mgid = *mgid,
		.port_gid = id->id.route.sgid,
		.pkey = cpu_to_be16(id->pkey),
		.qkey = cpu_to_be32(id->qkey),
		.join_state = join_state,
	};

	if (id->id.ps == RDMA_PS_IPOIB && !get_broadcast(id, &broadcast)) {
		mask |= IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU |
			IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE |
			IB_SA_MCMEMBER_REC_HOP_LIMIT;
		rec.mtu_selector = rec.rate_selector = IB_SA_EQ;
		rec.mtu = broadcast.mtu;
		rec.rate = broadcast.rate;
		rec.hop_limit = broadcast.hop_limit;
		rec.sl = broadcast.sl;
	}
	return ib_sa_join_multicast(&core_fabric_of(id->rt)->rcm_sa_client, id->id.device,
				    id->id.port_num, &rec, mask, GFP_KERNEL, on_membership, mcast);
}

int rdma_join_multicast(struct rdma_cm_id *rdma_id, const struct sockaddr *addr,
			u8 join_state, void *context)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct sockaddr_storage to;
	struct rcm_mcast *mcast;
	union ib_gid mgid;
	int ret = rcm_take_addr(addr, &to);

	rcm_trace_call(id, "join_multicast");
	if (!ret)
		ret = rcm_addr_mgid(id, &to, &mgid);
	if (ret)
		return ret;
	if (!rdma_id->device || id->state == RCM_GONE || rdma_id->qp_type != IB_QPT_UD)
		return -EINVAL;
	if (find(id, &to))
		return -EADDRINUSE;
	ret = rcm_take_qkey(id);
	if (ret)
		return ret;
	mcast = rt_zalloc(sizeof(*mcast));
	if (!mcast)
		return -ENOMEM;
	mcast->id = id;
	mcast->addr = to;
	mcast->context = context;
	mcast->sa = join(mcast, &mgid, join_state);
	if (IS_ERR(mcast->sa)) {
		ret = (int)PTR_ERR(mcast->sa);
		rt_free(mcast);
		return ret;
	}
	list_add_tail(&mcast->node, &id->mcasts);
	return 0;
}

void rdma_leave_multicast(struct rdma_cm_id *rdma_id, const struct sockaddr *addr)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct sockaddr_storage from;
	struct rcm_mcast *mcast;

	rcm_trace_call(id, "leave_multicast");
	if (rcm_take_addr(addr, &from))
		return;
	mcast = find(id, &from);
	if (mcast)
		drop(mcast);
}

void rcm_drop_mcasts(struct rcm_id *id)
{
	while (!list_empty(&id->mcasts))
		drop(list_first_entry(&id->mcasts, struct rcm_mcast, node));
}
