/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One interface on a bench: its device notes what it sends and which groups it is
 * attached to, a subnet administrator on another node answers (core/fake_sa.h), and the
 * test is the host: socket pairs stand in for the TUN device and the routing socket.
 */
#ifndef SOFTIB_TESTS_IPOIB_BENCH_H
#define SOFTIB_TESTS_IPOIB_BENCH_H

#include "../core/fake_sa.h"

#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/ib_cm.h"
#include "ulp/ipoib/ipoib.h"
#include "ulp/net/segment.h"

#define OWN_QPN	   0x100 /* that mad_net.h gives */
#define IFINDEX	   7
#define BENCH_SENT 512
#define FULL	   (1 << FULLMEMBER_JOIN)
#define SEND_ONLY  (1 << SENDONLY_NONMEBER_JOIN)

/** struct bench_frame - what the interface gave its queue pair */
struct bench_frame {
	u32 qpn; /* the destination's; of a connection: its own */
	size_t bytes;
	enum ib_wr_opcode opcode;
	int flags, hlen, mss; /* @hlen, @mss: of IB_WR_LSO */
	const u8 *header;
	u8 at[4096]; /* its beginning, if it is longer */
};

static struct bench {
	struct ib_device_ops ops;
	int tun, address; /* the host's ends */
	bool carrier, persists;
	u32 create_flags; /* of the last queue pair of datagrams */
	bool kernel_is_full; /* the routing socket takes no request */
	/** route() - the host answers RTM_GETROUTE on @address, before send() returns */
	void (*route)(const struct nlmsghdr *request);
	struct bench_frame sent[BENCH_SENT];
	int num_sent, attached, connections;
	bool hold; /* completions of sends wait for bench_release() */
	u64 held[BENCH_SENT];
	int num_held;
	enum ib_wc_status status; /* of the next sends */
	int restarts;		  /* of the send queue */
	int64_t balance;
} bench;

/* --- the system calls that tell a TUN device and a routing socket from others --- */

int (statx)(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	*st = (struct statx){.stx_mode = S_IFCHR, .stx_rdev_major = 10, .stx_rdev_minor = 200};
	return 0;
}

int (ioctl)(int fd, unsigned long request, ...)
{
	void *arg;
	va_list ap;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request == TUNSETCARRIER)
		bench.carrier = *(int *)arg;
	else if (request == TUNSETPERSIST)
		bench.persists = true;
	else if (request == TUNGETIFF)
		((struct ifreq *)arg)->ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
	return 0;
}

int (getsockopt)(int fd, int level, int name, void *value, socklen_t *bytes)
{
	*(int *)value = name == SO_DOMAIN ? AF_NETLINK : NETLINK_ROUTE;
	return 0;
}

ssize_t (send)(int fd, const void *data, size_t bytes, int flags)
{
	if (bench.kernel_is_full && flags) { /* the interface's: the test sends without flags */
		errno = ENOBUFS;
		return -1;
	}
	if (flags && bench.route && bytes > sizeof(struct nlmsghdr) &&
	    ((const struct nlmsghdr *)data)->nlmsg_type == RTM_GETROUTE &&
	    !(((const struct nlmsghdr *)data)->nlmsg_flags & NLM_F_DUMP)) {
		bench.route(data);
		return (ssize_t)bytes;
	}
	return sendto(fd, data, bytes, flags, NULL, 0);
}

/* --- the device --- */

static inline void bench_complete(struct ib_qp *qp, u64 wr_id, enum ib_wc_status status)
{
	net_complete(qp->send_cq, &(struct ib_wc){.wr_id = wr_id, .status = status,
						  .opcode = IB_WC_SEND, .qp = qp});
}

static inline int bench_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
				  const struct ib_send_wr **bad)
{
	struct bench_frame *f = &bench.sent[bench.num_sent];

	if (qp->qp_num < 2)
		return net_post_send(qp, wr, bad);
	assert_true(bench.num_sent < BENCH_SENT && wr->num_sge == 1);
	assert_true(wr->sg_list[0].length <= sizeof(f->at) || wr->opcode == IB_WR_LSO);
	f->qpn = qp->qp_type == IB_QPT_UD ? ud_wr(wr)->remote_qpn : qp->qp_num;
	f->bytes = wr->sg_list[0].length;
	f->opcode = wr->opcode;
	f->flags = wr->send_flags;
	if (wr->opcode == IB_WR_LSO) {
		f->header = ud_wr(wr)->header;
		f->hlen = ud_wr(wr)->hlen;
		f->mss = ud_wr(wr)->mss;
	}
	memcpy(f->at, (void *)(uintptr_t)wr->sg_list[0].addr, MIN(f->bytes, sizeof(f->at)));
	bench.num_sent++;
	if (bench.hold)
		bench.held[bench.num_held++] = wr->wr_id;
	else
		bench_complete(qp, wr->wr_id, bench.status);
	return 0;
}

static inline void bench_release(struct ib_qp *qp, enum ib_wc_status status)
{
	for (int i = 0; i < bench.num_held; i++)
		bench_complete(qp, bench.held[i], status);
	bench.num_held = 0;
	bench.hold = false;
}

static inline void bench_flush_receives(struct ib_qp *ib_qp)
{
	struct net_qp *qp = container_of(ib_qp, struct net_qp, ib);

	while (qp->head != qp->tail)
		net_complete(ib_qp->recv_cq,
			     &(struct ib_wc){.wr_id = qp->receive[qp->head++ % NET_RECEIVES].wr_id,
					     .status = IB_WC_WR_FLUSH_ERR,
					     .opcode = IB_WC_RECV, .qp = ib_qp});
}

static inline int bench_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	if (qp->qp_num > 1 && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR) {
		bench_release(qp, IB_WC_WR_FLUSH_ERR);
		bench_flush_receives(qp);
	}
	bench.restarts += mask & IB_QP_CUR_STATE && attr->cur_qp_state == IB_QPS_SQE;
	return 0;
}

static inline int bench_attach(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	assert_int_equal(lid, 0xc005);
	bench.attached++;
	return 0;
}

static inline int bench_detach(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	bench.attached--;
	return 0;
}

/* Connections are made, and nothing arrives by them. */
static inline struct ib_srq *bench_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr,
					      struct ib_udata *udata)
{
	struct ib_srq *srq = NET_NEW(pd->device, struct ib_srq);

	return srq ? srq : ERR_PTR(-ENOMEM);
}

static inline void bench_destroy_srq(struct ib_srq *srq)
{
	NET_FREE(srq->device, srq);
}

static inline int bench_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
				      const struct ib_recv_wr **bad)
{
	return 0;
}

/* The CM tells connections of a peer apart by their QPNs. */
static inline struct ib_qp *bench_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
					    struct ib_udata *udata)
{
	struct ib_qp *qp = net_create_qp(pd, attr, udata);

	if (attr->qp_type == IB_QPT_UD)
		bench.create_flags = attr->create_flags;
	if (!IS_ERR(qp) && attr->qp_type == IB_QPT_RC)
		qp->qp_num = 0x10000 + (u32)bench.connections++;
	return qp;
}

static inline int bench_resize_cq(struct ib_cq *cq, int cqe)
{
	return 0;
}

static inline struct ib_qp *bench_qp(void)
{
	struct net_qp *qp = net_find_qp(net->node[1], OWN_QPN);

	return qp ? &qp->ib : NULL;
}

/* a frame comes from the fabric, with @grh's source; nothing has run since. @flags: of its completion */
static inline void bench_puts_with(const struct ipoib_link *from, u16 type, const void *packet,
				   size_t bytes, int flags)
{
	struct net_qp *qp = container_of(bench_qp(), struct net_qp, ib);
	unsigned int i = qp->head++ % NET_RECEIVES;
	struct ib_wc wc = {.wr_id = qp->receive[i].wr_id, .opcode = IB_WC_RECV, .qp = &qp->ib,
			   .byte_len = (u32)(44 + bytes), .src_qp = from->qpn,
			   .wc_flags = IB_WC_GRH | flags};
	u8 *to = (u8 *)(uintptr_t)qp->receive[i].addr;

	assert_true(qp->head <= qp->tail);
	memset(to, 0, 44);
	memcpy(to + 8, &from->gid, sizeof(from->gid));
	put_be16(to + 40, type);
	memcpy(to + 44, packet, bytes);
	net_complete(qp->ib.recv_cq, &wc);
}

static inline void bench_puts(const struct ipoib_link *from, u16 type, const void *packet,
			      size_t bytes)
{
	bench_puts_with(from, type, packet, bytes, 0);
}

/* receives that are posted */
static inline unsigned int bench_posted(void)
{
	struct net_qp *qp = container_of(bench_qp(), struct net_qp, ib);

	return qp->tail - qp->head;
}

static inline void bench_arrives(const struct ipoib_link *from, u16 type, const void *packet,
				 size_t bytes)
{
	bench_puts(from, type, packet, bytes);
	run_ms(1);
}

/* --- the host --- */

/* @flags: IFA_F_*, as the kernel tells them of an IPv6 address */
static inline void host_has_with(const char *address, unsigned int prefix, u16 type, u32 flags)
{
	struct in6_addr ip;
	int family = strchr(address, ':') ? AF_INET6 : AF_INET;
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg message;
		struct rtattr flags_attr;
		u32 flags;
		struct rtattr attr;
		u8 ip[16];
	} m = {
		.header = {.nlmsg_type = type},
		.message = {.ifa_family = (u8)family, .ifa_prefixlen = (u8)prefix,
			    .ifa_index = IFINDEX},
		.flags_attr = {.rta_type = IFA_FLAGS, .rta_len = RTA_LENGTH(sizeof(flags))},
		.flags = flags,
		.attr = {.rta_type = IFA_ADDRESS},
	};
	const size_t bytes = family == AF_INET ? 4 : 16;

	assert_int_equal(inet_pton(family, address, &ip), 1);
	memcpy(m.ip, &ip, bytes);
	m.attr.rta_len = (u16)(sizeof(m.attr) + bytes);
	m.header.nlmsg_len = (u32)(offsetof(typeof(m), ip) + bytes);
	assert_int_equal(send(bench.address, &m, m.header.nlmsg_len, 0), m.header.nlmsg_len);
	rt_sim_look(net->rt);
	run_ms(1);
}

static inline void host_has(const char *address, unsigned int prefix, u16 type)
{
	host_has_with(address, prefix, type, 0);
}

/* the MTU that the interface has given its device since the last question; 0: none */
static inline u32 host_mtu(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attr;
		u32 mtu;
	} m;
	u32 mtu = 0;

	while (recv(bench.address, &m, sizeof(m), MSG_DONTWAIT) > 0)
		if (m.header.nlmsg_type == RTM_SETLINK) {
			assert_int_equal(m.link.ifi_index, IFINDEX);
			assert_int_equal(m.attr.rta_type, IFLA_MTU);
			mtu = m.mtu;
		}
	return mtu;
}

static inline struct in6_addr address(const char *text)
{
	struct in6_addr ip;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return ipoib_from_v4(v4.s_addr);
	assert_int_equal(inet_pton(AF_INET6, text, &ip), 1);
	return ip;
}

static inline void arp(enum ipoib_ask op, const struct ipoib_link *from, const char *from_ip,
		       const char *about)
{
	struct in6_addr sender = address(from_ip), target = address(about);
	u8 packet[IPOIB_ARP_BYTES];

	ipoib_put_arp(packet, op, from, &sender, NULL, &target);
	bench_arrives(from, IPOIB_ARP, packet, sizeof(packet));
	run_ms(10);
}

/* a packet of the host's, @protocol and @payload */
static inline size_t bench_packet(u8 *to, const char *from, const char *dst, u8 protocol,
				  const void *payload, size_t bytes)
{
	struct in6_addr src = address(from), dest = address(dst);

	memset(to, 0, 40);
	if (IN6_IS_ADDR_V4MAPPED(&dest)) {
		to[0] = 0x45;
		put_be16(to + 2, (u16)(20 + bytes));
		to[8] = 64;
		to[9] = protocol;
		memcpy(to + 12, &src.s6_addr[12], 4);
		memcpy(to + 16, &dest.s6_addr[12], 4);
		memcpy(to + 20, payload, bytes);
		return 20 + bytes;
	}
	to[0] = 0x60;
	put_be16(to + 4, (u16)bytes);
	to[6] = protocol;
	to[7] = 64;
	memcpy(to + 8, &src, 16);
	memcpy(to + 24, &dest, 16);
	memcpy(to + 40, payload, bytes);
	return 40 + bytes;
}

/* it waits in the device until the loop looks for it */
static inline void host_queues_bytes(const struct virtio_net_hdr *header, const u8 *packet,
				     size_t bytes)
{
	static u8 whole[sizeof(*header) + NET_LARGE_BYTES];

	memcpy(whole, header, sizeof(*header));
	memcpy(whole + sizeof(*header), packet, bytes);
	assert_int_equal(send(bench.tun, whole, sizeof(*header) + bytes, 0),
			 sizeof(*header) + bytes);
}

static inline void host_sends_bytes(const struct virtio_net_hdr *header, const u8 *packet,
				    size_t bytes)
{
	host_queues_bytes(header, packet, bytes);
	rt_sim_look(net->rt);
}

static inline void host_sends_packet(const char *from, const char *dst, u8 protocol,
				     const void *payload, size_t bytes)
{
	static u8 packet[IPOIB_CONNECTED_MTU];

	host_sends_bytes(&(struct virtio_net_hdr){0}, packet,
			 bench_packet(packet, from, dst, protocol, payload, bytes));
}

static inline void host_sends(const char *dst)
{
	host_sends_packet(strchr(dst, ':') ? "fe80::1" : "10.0.0.1", dst, IPPROTO_UDP, "message",
			  8);
}

/* Return: bytes that the interface delivered; 0 nothing is there */
static inline size_t host_hears(u8 packet[IPOIB_MTU])
{
	struct virtio_net_hdr header;
	struct iovec part[] = {{&header, sizeof(header)}, {packet, IPOIB_MTU}};
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t n = recvmsg(bench.tun, &msg, MSG_DONTWAIT);

	return n < 0 ? 0 : (size_t)n - sizeof(header);
}

/* --- setting up --- */

static inline int bench_pair(int *host)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	*host = fd[0];
	return fd[1];
}

static inline int bench_open(void)
{
	struct ipoib_config config = {.device = device, .port_num = 1, .pkey = 0xffff,
				      .ifindex = IFINDEX};
	int ret, host_tun, host_address;

	config.tun_fd = bench_pair(&host_tun);
	config.rtnl_fd = bench_pair(&host_address);
	ret = ipoib_open(&config);
	if (ret) {
		close(config.tun_fd);
		close(config.rtnl_fd);
		close(host_tun);
		close(host_address);
		return ret;
	}
	bench.tun = host_tun;
	bench.address = host_address;
	return 0;
}

static inline struct ipoib *bench_interface(void)
{
	return ipoib_find(device, 1, 0xffff);
}

static inline int bench_setup(void **state)
{
	bench = (struct bench){.tun = -1, .address = -1, .balance = rt_alloc_balance()};
	if (sa_setup(state))
		return -1;
	sa->count_attr = IB_SA_ATTR_MC_MEMBER_REC;
	bench.ops = net_ops;
	bench.ops.post_send = bench_post_send;
	bench.ops.modify_qp = bench_modify_qp;
	bench.ops.resize_cq = bench_resize_cq;
	bench.ops.create_qp = bench_create_qp;
	bench.ops.create_srq = bench_create_srq;
	bench.ops.destroy_srq = bench_destroy_srq;
	bench.ops.post_srq_recv = bench_post_srq_recv;
	device->attrs.max_srq = device->attrs.max_srq_sge = 1;
	device->attrs.max_srq_wr = 64;
	bench.ops.attach_mcast = bench_attach;
	bench.ops.detach_mcast = bench_detach;
	device->ops = &bench.ops;
	device->attrs.max_mcast_grp = device->attrs.max_mcast_qp_attach = 16;
	device->attrs.max_total_mcast_qp_attach = 16;
	return ib_cm_init(net->rt) || ipoib_init(net->rt) ? -1 : 0;
}

static inline int bench_teardown(void **state)
{
	ipoib_cleanup(net->rt); /* ends what is open */
	ib_cm_cleanup(net->rt);
	if (bench.tun >= 0)
		close(bench.tun);
	if (bench.address >= 0)
		close(bench.address);
	assert_int_equal(bench.attached, 0);
	sa_teardown(state);
	assert_int_equal(rt_alloc_balance(), bench.balance);
	return 0;
}

#define VERIFIED_MS 4000 /* no question about a new address is sent after that */

/* an interface that is joined, with an address of each kind that nobody else has */
static inline int bench_setup_open(void **state)
{
	if (bench_setup(state) || bench_open())
		return -1;
	host_has("10.0.0.1", 16, RTM_NEWADDR);
	host_has("fe80::1", 64, RTM_NEWADDR);
	run_ms(VERIFIED_MS);
	bench.num_sent = 0;
	return 0;
}

#endif
