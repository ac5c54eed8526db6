/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses and ports of ids, and their resolution to ports of adapters and paths. */
#include <netinet/in.h>

#include "core/rdma_cm_priv.h"
#include "rdma/ib.h"

#define FIRST_FREE_PORT 32768
#define LAST_FREE_PORT	60999
#define ASKED_FIRST_NS	NSEC_PER_MSEC /* until the first look whether a host outside has answered */

/* --- socket addresses --- */

static struct sockaddr_in *in4(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_in *)(uintptr_t)addr;
}

static struct sockaddr_in6 *in6(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_in6 *)(uintptr_t)addr;
}

static struct sockaddr_ib *ib(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_ib *)(uintptr_t)addr;
}

static const struct in6_addr *gid_of_ib(const struct sockaddr_storage *addr)
{
	return (const struct in6_addr *)&ib(addr)->sib_addr;
}

u8 *rcm_ip(const struct sockaddr_storage *addr, size_t *bytes)
{
	if (addr->ss_family == AF_INET6) {
		*bytes = sizeof(struct in6_addr);
		return in6(addr)->sin6_addr.s6_addr;
	}
	*bytes = sizeof(struct in_addr);
	return (u8 *)&in4(addr)->sin_addr;
}

bool rcm_addr_is_any(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
	if (addr->ss_family == AF_IB)
		return IN6_IS_ADDR_UNSPECIFIED(gid_of_ib(addr));
	return addr->ss_family == AF_INET &&
	       in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&in6(addr)->sin6_addr);
	if (addr->ss_family == AF_IB)
		return IN6_IS_ADDR_LOOPBACK(gid_of_ib(addr));
	return addr->ss_family == AF_INET &&
	       ntohl(in4(addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* A link-local address is the GID of its port. */
static bool is_link_local(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6(addr)->sin6_addr);
}

static const union ib_gid *gid_of_link_local(const struct sockaddr_storage *addr)
{
	return (const union ib_gid *)&in6(addr)->sin6_addr;
}

/* An id that binds to the loopback address is bound to all addresses of the node, as in the kernel. */
bool rcm_addr_is_anywhere(const struct sockaddr_storage *addr)
{
	return rcm_addr_is_any(addr) || is_loopback(addr);
}

/* The port stands at the same place in both kinds of IP addresses. */
u16 rcm_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_IB)
		return (u16)be64_to_cpu(ib(addr)->sib_sid & ib(addr)->sib_sid_mask);
	return ntohs(in4(addr)->sin_port);
}

void rcm_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family != AF_IB) {
		in4(addr)->sin_port = htons(port);
		return;
	}
	ib(addr)->sib_sid &= cpu_to_be64(RDMA_IB_IP_PS_MASK);
	ib(addr)->sib_sid |= cpu_to_be64(port);
}

int rdma_addr_size(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	}
	return 0;
}

int rcm_take_addr(const struct sockaddr *addr, struct sockaddr_storage *out)
{
	struct sockaddr_in plain = {.sin_family = AF_INET};
	struct sockaddr_in6 six;

	memset(out, 0, sizeof(*out));
	if (addr->sa_family == AF_IB) {
		memcpy(out, addr, sizeof(struct sockaddr_ib));
		return 0;
	}
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (addr->sa_family == AF_INET) {
		memcpy(out, addr, sizeof(plain));
		return 0;
	}
	memcpy(&six, addr, sizeof(six));
	if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
		plain.sin_port = six.sin6_port;
		memcpy(&plain.sin_addr, &six.sin6_addr.s6_addr[12], 4);
		memcpy(out, &plain, sizeof(plain));
	} else {
		memcpy(out, &six, sizeof(six));
	}
	return 0;
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	size_t bytes;
	const u8 *ip = rcm_ip(a, &bytes);

	if (a->ss_family == AF_IB)
		return b->ss_family == AF_IB &&
		       !memcmp(&ib(a)->sib_addr, &ib(b)->sib_addr, sizeof(struct ib_addr));
	return a->ss_family == b->ss_family && !memcmp(ip, rcm_ip(b, &bytes), bytes);
}

/* Does an id that is bound to @own have @addr? */
static bool means(const struct sockaddr_storage *own, bool afonly,
		  const struct sockaddr_storage *addr)
{
	if (!rcm_addr_is_anywhere(own))
		return is_same_host(own, addr);
	return own->ss_family == addr->ss_family ||
	       (own->ss_family == AF_INET6 && addr->ss_family == AF_INET && !afonly);
}

bool rcm_listens_for(const struct rcm_id *id, const struct sockaddr_storage *addr)
{
	return means(&id->id.route.addr.src_addr, id->afonly, addr);
}

__be64 rcm_service_id(enum rdma_ucm_port_space ps, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_IB)
		return ib(addr)->sib_sid;
	/* A11.3: the port space and the port are the last bytes */
	return cpu_to_be64((u64)ps << 16 | rcm_port(addr));
}

/* --- ports --- */

#define SHARERS_MOST 4096  /* ids that may share a port of a node, since each bind looks at all of them */
#define TRIES_MOST   4096  /* to find a free port; if 1 in 700 is free, one is found in more than 9 of 10
			    * searches */

/* Return: the list of bound ids with the same node and the same port, which is the end of the
 * service id */
static struct list_head *bound_ids(const struct rcm_id *id, __be64 service_id)
{
	u64 at = be64_to_cpu(service_id);

	for (const char *c = id->node_name; *c; c++)
		at = at * 31 + (u8)*c;
	return list_bucket(&core_fabric_of(id->rt)->rcm_bound[at % RCM_PORT_BUCKETS]);
}

/* Is there an address to which both are bound? @id and @other have the same port. */
static bool overlap(const struct rcm_id *id, const struct sockaddr_storage *addr,
		    const struct rcm_id *other)
{
	const struct sockaddr_storage *taken = &other->id.route.addr.src_addr;

	return means(addr, id->afonly, taken) || means(taken, other->afonly, addr);
}

bool rcm_is_taken(const struct rcm_id *id, const struct sockaddr_storage *addr)
{
	__be64 service_id = rcm_service_id(id->id.ps, addr);
	const struct rcm_id *other;
	unsigned int sharers = 0;

	list_for_each_entry(other, bound_ids(id, service_id), bound_node) {
		if (other == id || other->rt != id->rt ||
		    rcm_service_id(other->id.ps, &other->id.route.addr.src_addr) != service_id ||
		    strcmp(other->node_name, id->node_name) != 0)
			continue;
		if (++sharers >= SHARERS_MOST)
			return true;
		if (overlap(id, addr, other) &&
		    !(other->reuse && id->reuse && other->state != RCM_LISTEN))
			return true;
	}
	return false;
}

static int take_port(struct rcm_id *id, struct sockaddr_storage *addr)
{
	u32 range = LAST_FREE_PORT - FIRST_FREE_PORT + 1,
	    start = rt_random(id->rt) % range;

	if (rcm_port(addr))
		return rcm_is_taken(id, addr) ? -EADDRINUSE : 0;
	for (u32 i = 0; i < MIN(range, (u32)TRIES_MOST); i++) {
		rcm_set_port(addr, (u16)(FIRST_FREE_PORT + (start + i) % range));
		if (!rcm_is_taken(id, addr))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* --- binding --- */

static int first_device(struct ib_device *device, void *ctx)
{
	*(struct ib_device **)ctx = device;
	return 1;
}

/* Find the port that has an address of the node; for the loopback address, it is the node's first
 * port. */
static int find_own(const struct rcm_id *id, const struct sockaddr_storage *addr,
		    struct ib_device **device, u32 *port_num)
{
	const struct rdma_hosts *hosts = rcm_hosts(id->rt);

	if (!hosts)
		return -ENODEV;
	if (is_loopback(addr)) {
		*device = NULL;
		ib_device_for_each_of_node(id->rt, id->node_name, first_device, device);
		*port_num = 1;
		return *device ? 0 : -EADDRNOTAVAIL;
	}
	if (is_link_local(addr))
		return rcm_find_gid(id, gid_of_link_local(addr), device, port_num);
	if (hosts->find(hosts->ctx, (const struct sockaddr *)addr, device, port_num) ||
	    strcmp((*device)->node_name, id->node_name) != 0)
		return -EADDRNOTAVAIL;
	return 0;
}

static int attach(struct rcm_id *id, struct ib_device *device, u32 port_num)
{
	int ret = ib_get_cached_gid(device, port_num, 0, &id->id.route.sgid);

	if (ret)
		return ret;
	ib_get_cached_pkey(device, port_num, 0, &id->pkey);
	rcm_attach(id, device, port_num);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *rdma_id, struct sockaddr *addr)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct sockaddr_storage own;
	struct ib_device *device = NULL;
	u32 port_num = 0;
	int ret;

	rcm_trace_call(id, "bind_addr");
	if (id->state != RCM_IDLE)
		return -EINVAL;
	ret = rcm_take_addr(addr, &own);
	if (!ret && own.ss_family == AF_IB)
		ret = rcm_ib_take_port_space(id, &own);
	else if (!ret && !rcm_addr_is_anywhere(&own))
		ret = find_own(id, &own, &device, &port_num);
	if (!ret)
		ret = take_port(id, &own);
	if (!ret && device)
		ret = attach(id, device, port_num);
	else if (!ret && own.ss_family == AF_IB && !rcm_addr_is_anywhere(&own))
		ret = rcm_ib_bind(id, &own);
	if (ret)
		return ret;
	id->id.route.addr.src_addr = own;
	list_add_tail(&id->bound_node, bound_ids(id, rcm_service_id(id->id.ps, &own)));
	id->state = RCM_BOUND;
	return 0;
}

int rdma_port_addr(struct ib_device *device, u32 port_num, sa_family_t family,
		   struct sockaddr_storage *addr)
{
	const struct rdma_hosts *hosts = rcm_hosts(device->rt);

	return hosts ? hosts->address(hosts->ctx, device, port_num, family, addr) : -ENOENT;
}

/* --- the route to a destination --- */

static int first_port(const struct rcm_id *id, struct ib_device **device, u32 *port_num)
{
	const struct sockaddr_storage loopback = {.ss_family = AF_INET};
	struct sockaddr_storage addr = loopback;

	in4(&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return find_own(id, &addr, device, port_num);
}

/* Find the node's port in the network of the destination, and its address there. If there is none,
 * use the first port. */
static int port_toward(const struct rcm_id *id, const struct rdma_hosts *hosts,
		       struct ib_device **device, u32 *port_num, struct sockaddr_storage *src)
{
	const struct sockaddr *dst = (const struct sockaddr *)&id->id.route.addr.dst_addr;
	int ret;

	if (hosts->toward && !hosts->toward(hosts->ctx, id->node_name, dst, device, port_num, src))
		return 0;
	ret = first_port(id, device, port_num);
	return ret ? ret : hosts->address(hosts->ctx, *device, *port_num, dst->sa_family, src);
}

/* Choose the source: the port that the id is bound to, or else the port that leads to the
 * destination, with its address of the destination's family. */
static int choose_source(struct rcm_id *id, const struct rdma_hosts *hosts)
{
	struct sockaddr_storage *src = &id->id.route.addr.src_addr, found;
	struct ib_device *device = NULL;
	in_port_t port = in4(src)->sin_port;
	u32 port_num = 0;
	int ret;

	if (id->id.device)
		return 0;
	ret = port_toward(id, hosts, &device, &port_num, &found);
	if (!ret)
		ret = attach(id, device, port_num);
	if (ret)
		return ret;
	*src = found;
	in4(src)->sin_port = port;
	if (is_link_local(&id->id.route.addr.dst_addr)) {
		memcpy(&in6(src)->sin6_addr, &id->id.route.sgid, sizeof(in6(src)->sin6_addr));
		in6(src)->sin6_scope_id = in6(&id->id.route.addr.dst_addr)->sin6_scope_id;
	}
	return 0;
}

/* Find the GID by which a port is reached. For InfiniBand it is the first one. For Ethernet it is
 * the GID of the IP address @addr, which is the address itself or contains it (A17). The loopback
 * address is in no table; the port's first address is used for it (fabric/ethernet.h). */
static int gid_of(struct ib_device *device, u32 port_num, const struct sockaddr_storage *addr,
		  union ib_gid *gid)
{
	const struct sockaddr_in6 *ipv6 = (const void *)addr;
	const struct sockaddr_in *ipv4 = (const void *)addr;
	struct ib_port_attr attr;
	int ret = ib_query_port(device, port_num, &attr);

	if (ret || attr.link_layer != IB_LINK_LAYER_ETHERNET)
		return ret ? ret : ib_get_cached_gid(device, port_num, 0, gid);
	if (is_loopback(addr))
		return ib_get_cached_gid(device, port_num, addr->ss_family == AF_INET6 ? 2 : 1, gid);
	if (addr->ss_family == AF_INET6) {
		memcpy(gid->raw, &ipv6->sin6_addr, sizeof(gid->raw));
		return 0;
	}
	*gid = (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff}};
	memcpy(gid->raw + 12, &ipv4->sin_addr, 4);
	return 0;
}

static void end_resolving(struct rcm_id *id, int status)
{
	struct rdma_cm_event event = {
		.event = status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, .status = status};

	id->state = status ? RCM_BOUND : RCM_ADDR_RESOLVED;
	rcm_deliver(id, &event);
}

static void got_gid(int status, struct ib_sa_service_rec *resp, void *context)
{
	struct rcm_id *id = context;

	id->query_id = -1;
	if (!id->id.event_handler) { /* the id was destroyed meanwhile */
		rt_free(id);
		return;
	}
	if (id->state != RCM_ADDR_QUERY)
		return;
	if (!status)
		id->id.route.dgid = resp->gid;
	end_resolving(id, status ? -ENETUNREACH : 0);
}

/* Find the port that has the destination, or for a host outside of the fabric the own one. Return: 0; -EAGAIN such
 * a host is asked for; -EINPROGRESS got_gid() goes on; -ENETUNREACH */
static int find_far(struct rcm_id *id, const struct rdma_hosts *hosts, struct ib_device **device, u32 *port_num)
{
	const struct sockaddr *dst = (const struct sockaddr *)&id->id.route.addr.dst_addr;
	int ret = hosts->find(hosts->ctx, dst, device, port_num);

	if (!ret)
		return 0;
	*device = id->id.device;
	*port_num = id->id.port_num;
	ret = hosts->outside ? hosts->outside(hosts->ctx, *device, *port_num, dst) : -ENOENT;
	if (ret != -ENOENT)
		return ret;
	return rcm_ats_ask(id, got_gid) ? -ENETUNREACH : -EINPROGRESS; /* it may be the address of another fabric */
}

/* Return: as find_far(), and other -errno */
static int find_way(struct rcm_id *id)
{
	const struct rdma_hosts *hosts = rcm_hosts(id->rt);
	struct rdma_route *route = &id->id.route;
	struct ib_device *device;
	u32 port_num;
	int ret;

	if (route->addr.dst_addr.ss_family == AF_IB)
		return rcm_ib_find_way(id);
	ret = hosts ? choose_source(id, hosts) : -ENODEV;
	if (ret)
		return ret;
	if (rcm_addr_is_multicast(&route->addr.dst_addr))
		return rcm_addr_mgid(id, &route->addr.dst_addr, &route->dgid);
	if (is_link_local(&route->addr.dst_addr)) {
		route->dgid = *gid_of_link_local(&route->addr.dst_addr);
		return 0;
	}
	if (is_loopback(&route->addr.dst_addr))
		ret = find_own(id, &route->addr.dst_addr, &device, &port_num);
	else
		ret = find_far(id, hosts, &device, &port_num);
	if (ret)
		return ret == -EAGAIN || ret == -EINPROGRESS ? ret : -ENETUNREACH;
	ret = gid_of(id->id.device, id->id.port_num, &route->addr.src_addr, &route->sgid);
	return ret ? ret : gid_of(device, port_num, &route->addr.dst_addr, &route->dgid);
}

void rcm_resolved(struct rt_work *work)
{
	struct rcm_id *id = container_of(work, struct rcm_id, resolved);
	const mono_t now = rt_now(id->rt);
	int ret = find_way(id);

	if (ret == -EAGAIN && mono_before(now, id->give_up)) {
		rt_timer_arm(&id->asked, mono_add(now, id->asked_ns));
		id->asked_ns *= 2;
	} else if (ret != -EINPROGRESS) {
		end_resolving(id, ret == -EAGAIN ? -ETIMEDOUT : ret);
	}
}

void rcm_asked(struct rt_timer *timer)
{
	rcm_resolved(&container_of(timer, struct rcm_id, asked)->resolved);
}

int rdma_resolve_addr(struct rdma_cm_id *rdma_id, struct sockaddr *src_addr,
		      const struct sockaddr *dst_addr, unsigned long timeout_ms)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct sockaddr_storage any = {0}, dst;
	int ret = rcm_take_addr(dst_addr, &dst);

	rcm_trace_call(id, "resolve_addr");
	if (ret)
		return ret;
	any.ss_family = dst.ss_family;
	if (id->state == RCM_IDLE)
		ret = rdma_bind_addr(rdma_id, src_addr && src_addr->sa_family != AF_UNSPEC
						      ? src_addr
						      : (struct sockaddr *)&any);
	if (ret)
		return ret;
	if (id->state != RCM_BOUND ||
	    (rdma_id->device && rdma_id->route.addr.src_addr.ss_family != dst.ss_family))
		return -EINVAL;
	id->id.route.addr.dst_addr = dst;
	id->state = RCM_ADDR_QUERY;
	id->give_up = mono_add(rt_now(id->rt), timeout_ms * NSEC_PER_MSEC);
	id->asked_ns = ASKED_FIRST_NS;
	rt_work_queue(id->rt, &id->resolved);
	return 0;
}

/* --- the path --- */

static void take_path(struct rcm_id *id, const struct sa_path_rec *path)
{
	id->path = *path;
	id->id.route.path_rec = &id->path;
	id->id.route.num_paths = 1;
	id->state = RCM_ROUTE_RESOLVED;
}

int rdma_set_ib_path(struct rdma_cm_id *rdma_id, const struct sa_path_rec *path_rec)
{
	struct rcm_id *id = rcm_of(rdma_id);

	if (id->state != RCM_ADDR_RESOLVED)
		return -EINVAL;
	take_path(id, path_rec);
	return 0;
}

static void got_path(int status, struct sa_path_rec *resp, unsigned int num,
		     void *context)
{
	struct rdma_cm_event event = {.event = RDMA_CM_EVENT_ROUTE_RESOLVED,
				      .status = status};
	struct rcm_id *id = context;

	id->query_id = -1;
	if (!id->id.event_handler) { /* the id was destroyed meanwhile */
		rt_free(id);
		return;
	}
	if (id->state != RCM_ROUTE_QUERY)
		return;
	if (status) {
		event.event = RDMA_CM_EVENT_ROUTE_ERROR;
		id->state = RCM_ADDR_RESOLVED;
	} else {
		take_path(id, &resp[0]);
	}
	rcm_deliver(id, &event);
}

int rdma_resolve_route(struct rdma_cm_id *rdma_id, unsigned long timeout_ms)
{
	ib_sa_comp_mask mask = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID |
			       IB_SA_PATH_REC_PKEY | IB_SA_PATH_REC_NUMB_PATH |
			       IB_SA_PATH_REC_REVERSIBLE;
	struct rcm_id *id = rcm_of(rdma_id);
	struct sa_path_rec rec;
	int ret;

	rcm_trace_call(id, "resolve_route");
	if (id->state != RCM_ADDR_RESOLVED)
		return -EINVAL;
	memset(&rec, 0, sizeof(rec));
	rec.sgid = rdma_id->route.sgid;
	rec.dgid = rdma_id->route.dgid;
	rec.pkey = cpu_to_be16(id->pkey);
	rec.numb_path = 1;
	rec.reversible = 1;
	if (id->service_type && rdma_id->route.addr.dst_addr.ss_family == AF_INET) {
		mask |= IB_SA_PATH_REC_QOS_CLASS;
		rec.qos_class = cpu_to_be16(id->service_type);
	}
	id->state = RCM_ROUTE_QUERY;
	ret = ib_sa_path_rec_get(&core_fabric_of(id->rt)->rcm_sa_client, rdma_id->device,
				 rdma_id->port_num, &rec, mask, timeout_ms, GFP_KERNEL, got_path, id, &id->query);
	if (ret < 0) {
		id->state = RCM_ADDR_RESOLVED;
		return ret;
	}
	id->query_id = ret;
	return 0;
}
