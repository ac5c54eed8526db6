/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ethernet interfaces on a bench: the device notes what is sent and which addresses and MTU it is told, and
 * the test is the host: socket pairs stand in for the TAP device and the routing socket.
 */
#include "../test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ulp/eth/private.h"
#include "ulp/net/tun.h"
#include "../core/mad_net.h"
#include "base/bytes.h"

#define IFINDEX	     7
#define VLAN_IFINDEX 8
#define SENT_MOST    64
#define VLAN	     5

struct sent {
	size_t bytes;
	u8 at[ETH_FRAME_MAX];
};

static struct bench {
	struct net *net;
	struct ib_device *device;
	struct ib_device_ops ops;
	int tap, kernel; /* the host's ends */
	bool carrier;
	struct sent sent[SENT_MOST];
	int num_sent, flows, resets;
	bool hold; /* completions of sends wait for release() */
	u64 held[SENT_MOST];
	int num_held;
	enum ib_wc_status status; /* of the next sends */
	struct ib_port_address address[ETH_ADDRESSES];
	unsigned int num_addresses, mtu;
	int64_t balance;
	u16 type; /* of the file that the TAP device is; 0: a device */
	int ioctls;
} bench;

/* --- the system calls that tell a TAP device and a routing socket from others --- */

int (statx)(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	*st = (struct statx){.stx_mode = bench.type ? bench.type : S_IFCHR, .stx_rdev_major = 10, .stx_rdev_minor = 200};
	return 0;
}

int (ioctl)(int fd, unsigned long request, ...)
{
	void *arg;
	va_list ap;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	bench.ioctls++;
	if (request == TUNSETCARRIER)
		bench.carrier = *(int *)arg;
	else if (request == TUNGETIFF)
		((struct ifreq *)arg)->ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	return 0;
}

int (getsockopt)(int fd, int level, int name, void *value, socklen_t *bytes)
{
	*(int *)value = name == SO_DOMAIN ? AF_NETLINK : NETLINK_ROUTE;
	return 0;
}

/* --- the device --- */

static struct net_qp *raw_qp(void)
{
	return net_find_qp(bench.net->node[0], 0x100);
}

static void complete(struct ib_qp *qp, u64 wr_id, enum ib_wc_status status)
{
	net_complete(qp->send_cq,
		     &(struct ib_wc){.wr_id = wr_id, .status = status, .opcode = IB_WC_SEND, .qp = qp});
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct sent *s = &bench.sent[bench.num_sent];

	if (qp->qp_type != IB_QPT_RAW_PACKET)
		return net_post_send(qp, wr, bad);
	assert_true(bench.num_sent < SENT_MOST && wr->num_sge == 1);
	assert_true(wr->sg_list[0].length <= sizeof(s->at));
	s->bytes = wr->sg_list[0].length;
	memcpy(s->at, (void *)(uintptr_t)wr->sg_list[0].addr, s->bytes);
	bench.num_sent++;
	if (bench.hold)
		bench.held[bench.num_held++] = wr->wr_id;
	else
		complete(qp, wr->wr_id, bench.status);
	return 0;
}

static void release(enum ib_wc_status status)
{
	for (int i = 0; i < bench.num_held; i++)
		complete(&raw_qp()->ib, bench.held[i], status);
	bench.num_held = 0;
	bench.hold = false;
}

static void flush_receives(struct net_qp *qp)
{
	while (qp->head != qp->tail)
		net_complete(qp->ib.recv_cq,
			     &(struct ib_wc){.wr_id = qp->receive[qp->head++ % NET_RECEIVES].wr_id,
					     .status = IB_WC_WR_FLUSH_ERR,
					     .opcode = IB_WC_RECV,
					     .qp = &qp->ib});
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	if (qp->qp_type != IB_QPT_RAW_PACKET || !(mask & IB_QP_STATE))
		return 0;
	if (attr->qp_state == IB_QPS_ERR) {
		release(IB_WC_WR_FLUSH_ERR);
		flush_receives(container_of(qp, struct net_qp, ib));
	}
	bench.resets += attr->qp_state == IB_QPS_RESET;
	return 0;
}

static struct ib_flow *create_flow(struct ib_qp *qp, const struct ib_flow_attr *attr)
{
	struct ib_flow *flow = rt_zalloc(sizeof(*flow));

	const struct wire_frame_key *value = (const void *)attr->value, *mask = (const void *)attr->mask;
	u16 vlan = get_be16(value->vlan_tag) & get_be16(mask->vlan_tag);

	/* behind those of programs, and of all VLANs behind those of one */
	assert_int_equal(attr->priority, vlan ? UINT16_MAX - 1 : UINT16_MAX);
	assert_true(!vlan || (vlan == VLAN && get_be16(mask->vlan_tag) == 0xfff));
	bench.flows += flow != NULL;
	return flow ? flow : ERR_PTR(-ENOMEM);
}

static void destroy_flow(struct ib_flow *flow)
{
	bench.flows--;
	rt_free(flow);
}

static void set_addresses(struct ib_device *device, u32 port_num, const struct ib_port_address *address,
			  unsigned int num)
{
	bench.num_addresses = num;
	if (num)
		memcpy(bench.address, address, num * sizeof(*address));
}

static void set_mtu(struct ib_device *device, u32 port_num, unsigned int bytes)
{
	bench.mtu = bytes;
}

static void run(void)
{
	rt_sim_look(bench.net->rt);
	rt_sim_run_for(bench.net->rt, NSEC_PER_MSEC);
}

/* a frame comes from the fabric, in a burst */
static void lands_at(struct net_qp *qp, const void *frame, size_t bytes)
{
	unsigned int i = qp->head++ % NET_RECEIVES;

	assert_true(qp->head <= qp->tail && bytes <= qp->receive[i].length);
	memcpy((u8 *)(uintptr_t)qp->receive[i].addr, frame, bytes);
	net_complete(qp->ib.recv_cq, &(struct ib_wc){.wr_id = qp->receive[i].wr_id,
						     .opcode = IB_WC_RECV,
						     .byte_len = (u32)bytes,
						     .qp = &qp->ib});
}

static void lands(const void *frame, size_t bytes)
{
	lands_at(raw_qp(), frame, bytes);
}

static void arrives(const void *frame, size_t bytes)
{
	lands(frame, bytes);
	run();
}

/* --- the host --- */

static const struct eth_stats *stats(void)
{
	return eth_stats(eth_find(bench.device, 1, 0));
}

/* it waits in the TAP device until the loop looks for it */
static void host_queues(const struct virtio_net_hdr *header, const void *frame, size_t bytes)
{
	static u8 whole[sizeof(*header) + 70000];

	memcpy(whole, header, sizeof(*header));
	memcpy(whole + sizeof(*header), frame, bytes);
	assert_int_equal(send(bench.tap, whole, sizeof(*header) + bytes, 0), sizeof(*header) + bytes);
}

static void host_sends_with(const struct virtio_net_hdr *header, const void *frame, size_t bytes)
{
	host_queues(header, frame, bytes);
	run();
}

static void host_sends(const void *frame, size_t bytes)
{
	host_sends_with(&(struct virtio_net_hdr){0}, frame, bytes);
}

/* @room: of @frame. Return: bytes of a frame for the host; 0: none is there */
static size_t host_hears_with(struct virtio_net_hdr *header, u8 *frame, size_t room)
{
	struct iovec part[] = {{header, sizeof(*header)}, {frame, room}};
	ssize_t n = readv(bench.tap, part, 2);

	return n < 0 ? 0 : (size_t)n - sizeof(*header);
}

static size_t host_hears(u8 frame[ETH_FRAME_MAX])
{
	struct virtio_net_hdr header;

	return host_hears_with(&header, frame, ETH_FRAME_MAX);
}

/* @tagged: with a tag of VLAN 5 */
static size_t put_frame(u8 *frame, size_t payload, bool tagged)
{
	size_t at = 12;

	memset(frame, 0x22, 12);
	if (tagged) {
		put_be32(frame + at, 0x81000005);
		at += 4;
	}
	put_be16(frame + at, 0x88b5); /* local experimental */
	at += 2;
	for (size_t i = 0; i < payload; i++)
		frame[at + i] = (u8)i;
	return at + payload;
}

/* --- the kernel's routing socket --- */

struct message {
	union {
		struct nlmsghdr header;
		u8 bytes[512];
	};
};

static void begin(struct message *m, u16 type, u16 flags, const void *body, size_t bytes)
{
	memset(m, 0, sizeof(*m));
	m->header = (struct nlmsghdr){.nlmsg_type = type, .nlmsg_flags = flags,
				      .nlmsg_len = (u32)NLMSG_LENGTH(bytes)};
	if (bytes)
		memcpy(NLMSG_DATA(&m->header), body, bytes);
}

static void add(struct message *m, u16 type, const void *value, size_t bytes)
{
	struct rtattr *a = (void *)(m->bytes + NLMSG_ALIGN(m->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (u16)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), value, bytes);
	m->header.nlmsg_len = (u32)(NLMSG_ALIGN(m->header.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

static void tell(const struct message *m)
{
	assert_int_equal(send(bench.kernel, m, m->header.nlmsg_len, 0), m->header.nlmsg_len);
	run();
}

static void tell_done(void)
{
	struct message m;

	begin(&m, NLMSG_DONE, NLM_F_MULTI, NULL, 0);
	tell(&m);
}

/* Return: the type of the interface's question; 0: it has none */
static u16 asked(void)
{
	struct message m = {.header = {.nlmsg_type = 0}};

	return recv(bench.kernel, &m, sizeof(m), MSG_DONTWAIT) > 0 ? m.header.nlmsg_type : 0;
}

static void tell_link(u32 mtu, unsigned int flags)
{
	const struct ifinfomsg link = {.ifi_index = IFINDEX, .ifi_flags = flags};
	struct message m;

	begin(&m, RTM_NEWLINK, NLM_F_MULTI, &link, sizeof(link));
	add(&m, IFLA_MTU, &mtu, sizeof(mtu));
	tell(&m);
}

static void tell_vlan(u32 below, const char *kind, u16 protocol, u16 id, unsigned int flags)
{
	const struct ifinfomsg link = {.ifi_index = VLAN_IFINDEX, .ifi_flags = flags};
	struct message m, data, info;

	begin(&data, 0, 0, NULL, 0);
	add(&data, IFLA_VLAN_ID, &id, sizeof(id));
	add(&data, IFLA_VLAN_PROTOCOL, &protocol, sizeof(protocol));
	begin(&info, 0, 0, NULL, 0);
	add(&info, IFLA_INFO_KIND, kind, strlen(kind) + 1);
	add(&info, IFLA_INFO_DATA, data.bytes + NLMSG_HDRLEN, data.header.nlmsg_len - NLMSG_HDRLEN);
	begin(&m, RTM_NEWLINK, NLM_F_MULTI, &link, sizeof(link));
	add(&m, IFLA_LINK, &below, sizeof(below));
	add(&m, IFLA_LINKINFO, info.bytes + NLMSG_HDRLEN, info.header.nlmsg_len - NLMSG_HDRLEN);
	tell(&m);
}

static void tell_address(u32 ifindex, const char *text, u8 flags)
{
	const struct ifaddrmsg address = {.ifa_family = AF_INET, .ifa_index = ifindex, .ifa_flags = flags};
	struct in_addr in;
	struct message m;

	assert_int_equal(inet_pton(AF_INET, text, &in), 1);
	begin(&m, RTM_NEWADDR, NLM_F_MULTI, &address, sizeof(address));
	add(&m, IFA_LOCAL, &in, sizeof(in));
	tell(&m);
}

static void tell_change(void)
{
	const struct ifinfomsg link = {.ifi_index = IFINDEX};
	struct message m;

	begin(&m, RTM_NEWLINK, 0, &link, sizeof(link));
	tell(&m);
}

/* --- setting up --- */

static int pair_of(int *host)
{
	int fd[2], room = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	*host = fd[0];
	return fd[1];
}

static int setup(void **state)
{
	struct eth_config config = {.port_num = 1, .ifindex = IFINDEX};

	memset(&bench, 0, sizeof(bench)); /* too large for the stack */
	bench.balance = rt_alloc_balance();
	bench.net = net_create(1);
	bench.device = config.device = &bench.net->node[0]->ib;
	bench.net->node[0]->link_layer = IB_LINK_LAYER_ETHERNET;
	bench.ops = net_ops;
	bench.ops.post_send = post_send;
	bench.ops.modify_qp = modify_qp;
	bench.ops.create_flow = create_flow;
	bench.ops.destroy_flow = destroy_flow;
	bench.ops.set_addresses = set_addresses;
	bench.ops.set_mtu = set_mtu;
	bench.device->ops = &bench.ops;
	config.tap_fd = pair_of(&bench.tap);
	config.rtnl_fd = pair_of(&bench.kernel);
	return eth_init(bench.net->rt) || eth_open(&config) ? -1 : 0;
}

static int teardown(void **state)
{
	eth_cleanup(bench.net->rt); /* ends what is open */
	close(bench.tap);
	close(bench.kernel);
	assert_int_equal(bench.flows, 0);
	assert_int_equal(net_destroy(bench.net), 0);
	assert_int_equal(rt_alloc_balance(), bench.balance);
	return 0;
}

/* --- frames --- */

static void frames_pass_as_they_are(void **state)
{
	static const size_t payloads[] = {0, 46, 1500, ETH_MTU};
	static u8 frame[ETH_FRAME_MAX], heard[ETH_FRAME_MAX];

	assert_true(bench.carrier);
	assert_int_equal(bench.flows, ETH_RULES);
	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++)
		for (int tagged = 0; tagged < 2; tagged++) {
			size_t bytes = put_frame(frame, payloads[i], tagged);
			const struct sent *s = &bench.sent[bench.num_sent];

			host_sends(frame, bytes);
			assert_int_equal(s->bytes, bytes);
			assert_memory_equal(s->at, frame, bytes);
			arrives(frame, bytes);
			assert_int_equal(host_hears(heard), bytes);
			assert_memory_equal(heard, frame, bytes);
		}
	assert_int_equal(stats()->tx_packets, 8);
	assert_int_equal(stats()->rx_packets, 8);
	assert_int_equal(stats()->tx_bytes, stats()->rx_bytes);
	assert_int_equal(stats()->tx_errors + stats()->rx_errors + stats()->rx_dropped, 0);
}

/* The MTU counts neither the header of a frame nor its tag. */
static void what_is_too_long_or_too_short_is_counted(void **state)
{
	static u8 frame[70000], heard[ETH_FRAME_MAX];
	size_t sizes[] = {1, 13, put_frame(frame, ETH_MTU + 1, false), ETH_FRAME_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_frame(frame, ETH_MTU + 1, false);
		host_sends(frame, sizes[i]);
		arrives(frame, sizes[i]);
		assert_int_equal(stats()->tx_length_errors, i + 1);
		assert_int_equal(stats()->rx_length_errors, i + 1);
	}
	host_sends(frame, 65000); /* of a host whose MTU is larger than the port's may be */
	assert_int_equal(stats()->tx_length_errors, 5);
	assert_int_equal(stats()->tx_errors, 5);
	assert_int_equal(stats()->rx_errors, 4);
	assert_int_equal(bench.num_sent, 0);
	assert_int_equal(host_hears(heard), 0);
	host_sends(frame, put_frame(frame, ETH_MTU + 1, true));
	assert_int_equal(stats()->tx_length_errors, 6);
	host_sends(frame, put_frame(frame, ETH_MTU, true)); /* the next one passes */
	assert_int_equal(bench.num_sent, 1);
}

/* The header of a frame is the host's word, which may be anything. */
static void a_header_that_lies(void **state)
{
	enum { CSUM = VIRTIO_NET_HDR_F_NEEDS_CSUM, V4 = VIRTIO_NET_HDR_GSO_TCPV4, V6 = VIRTIO_NET_HDR_GSO_TCPV6 };
	static const struct virtio_net_hdr lies[] = {
		{.flags = CSUM, .csum_start = 100, .csum_offset = 0},
		{.flags = CSUM, .csum_start = 0xffff, .csum_offset = 0xffff},
		{.flags = CSUM, .csum_start = 98, .csum_offset = 1},
		{.flags = CSUM, .gso_type = V4, .gso_size = 0, .csum_start = 34, .csum_offset = 16},
		{.flags = 0, .gso_type = V4, .gso_size = 10, .csum_start = 34, .csum_offset = 16},
		{.flags = CSUM, .gso_type = V4, .gso_size = 10, .csum_start = 5, .csum_offset = 16},
		{.flags = CSUM, .gso_type = V4, .gso_size = 10, .csum_start = 0xfff0, .csum_offset = 16},
		{.flags = CSUM, .gso_type = V4, .gso_size = 0xffff, .csum_start = 34, .csum_offset = 16},
		{.flags = CSUM, .gso_type = V6, .gso_size = 10, .csum_start = 54, .csum_offset = 16},
		{.flags = CSUM, .gso_type = 0x7f, .gso_size = 10, .csum_start = 34, .csum_offset = 16},
	};
	u8 frame[99];

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		put_frame(frame, sizeof(frame) - 14, false);
		host_sends_with(&lies[i], frame, sizeof(frame));
		assert_int_equal(stats()->tx_errors, i + 1);
	}
	host_sends_with(&lies[3], frame, 5);
	assert_int_equal(stats()->tx_errors, ARRAY_SIZE(lies) + 1);
	assert_int_equal(bench.num_sent, 0);
	host_sends_with(&(struct virtio_net_hdr){.flags = CSUM, .csum_start = 14, .csum_offset = 16}, frame,
			sizeof(frame));
	assert_int_equal(bench.num_sent, 1);
}

/* @payload: of the whole segment. Return: bytes of the frame */
static size_t put_segment(u8 *frame, size_t payload, bool tagged)
{
	size_t ip = tagged ? 18 : 14;

	put_frame(frame, 40 + payload, tagged);
	put_be16(frame + ip - 2, 0x0800);
	memset(frame + ip, 0, 40);
	frame[ip] = 0x45;
	put_be16(frame + ip + 2, (u16)(40 + payload));
	frame[ip + 9] = IPPROTO_TCP;
	frame[ip + 32] = 0x50;
	return ip + 40 + payload;
}

static void large_segments_are_cut_behind_their_header(void **state)
{
	static u8 frame[70000];

	for (u16 tagged = 0; tagged < 2; tagged++) {
		u16 ip = tagged ? 18 : 14;
		const struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						      .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
						      .gso_size = 1460,
						      .csum_start = (u16)(ip + 20),
						      .csum_offset = 16};

		bench.num_sent = 0;
		host_sends_with(&header, frame, put_segment(frame, 14 * 1460 + 1, tagged));
		assert_int_equal(bench.num_sent, 15);
		for (int i = 0; i < 15; i++) {
			assert_int_equal(bench.sent[i].bytes, ip + 40u + (i < 14 ? 1460 : 1));
			assert_memory_equal(bench.sent[i].at, frame, ip);
			assert_int_equal(get_be32(bench.sent[i].at + ip + 24), i * 1460);
		}
	}
	assert_int_equal(stats()->tx_errors, 0);
}

enum { MSS = 1460, PARTS = 10 };

/* The host sends a large segment, which is cut into PARTS: bench.sent. Return: bytes of its frame */
static size_t send_segment(u8 *frame, bool tagged)
{
	u16 ip = tagged ? 18 : 14;
	size_t bytes = put_segment(frame, PARTS * MSS, tagged);
	const struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					      .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					      .gso_size = MSS,
					      .hdr_len = (u16)(ip + 40),
					      .csum_start = (u16)(ip + 20),
					      .csum_offset = 16};

	put_be16(frame + ip + 6, 0x4000); /* don't fragment */
	frame[ip + 33] = 0x10;		  /* ACK */
	bench.num_sent = 0;
	host_sends_with(&header, frame, bytes);
	assert_int_equal(bench.num_sent, PARTS);
	return bytes;
}

static void what_was_cut_is_put_together(void **state)
{
	static u8 frame[70000], heard[70000];
	size_t bytes = send_segment(frame, false), received = 0;
	struct virtio_net_hdr h;

	for (int i = 0; i < PARTS; i++) {
		lands(bench.sent[i].at, bench.sent[i].bytes);
		received += bench.sent[i].bytes;
	}
	run();
	assert_int_equal(host_hears_with(&h, heard, sizeof(heard)), bytes);
	assert_memory_equal(heard, frame, 14);
	assert_memory_equal(heard + 54, frame + 54, PARTS * MSS);
	assert_int_equal(h.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(h.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(h.gso_size, MSS);
	assert_int_equal(h.hdr_len, 54);
	assert_int_equal(h.csum_start, 34);
	assert_int_equal(host_hears_with(&h, heard, sizeof(heard)), 0);
	assert_int_equal(stats()->rx_packets, PARTS);
	assert_int_equal(stats()->rx_bytes, received);
}

/* frames of another station, of another type, or with a VLAN tag */
static void different_ethernet_headers_are_not_merged(void **state)
{
	static u8 frame[70000], heard[ETH_FRAME_MAX];
	struct virtio_net_hdr h;

	for (int other = 0; other < 2; other++) {
		send_segment(frame, false);
		bench.sent[1].at[11] ^= !other; /* its source */
		for (int i = 0; i < 2; i++) {
			put_be16(bench.sent[i].at + 12, other ? 0x88b5 : 0x0800);
			lands(bench.sent[i].at, bench.sent[i].bytes);
		}
		run();
		for (int i = 0; i < 2; i++) {
			assert_int_equal(host_hears_with(&h, heard, sizeof(heard)), bench.sent[i].bytes);
			assert_memory_equal(heard, bench.sent[i].at, bench.sent[i].bytes);
			assert_int_equal(h.flags | h.gso_type, 0);
		}
	}
	send_segment(frame, true);
	for (int i = 0; i < PARTS; i++)
		lands(bench.sent[i].at, bench.sent[i].bytes);
	run();
	for (int i = 0; i < PARTS; i++) {
		assert_int_equal(host_hears(heard), bench.sent[i].bytes);
		assert_memory_equal(heard, bench.sent[i].at, bench.sent[i].bytes);
	}
}

/* The interface ends while a frame waits for others: the host gets it. */
static void what_was_kept_is_the_hosts_when_the_interface_ends(void **state)
{
	static u8 frame[70000], heard[ETH_FRAME_MAX];

	send_segment(frame, false);
	lands(bench.sent[0].at, bench.sent[0].bytes);
	eth_queue_poll(eth_find(bench.device, 1, 0)); /* it is taken up, and nothing else */
	assert_int_equal(host_hears(heard), 0);
	eth_close(eth_find(bench.device, 1, 0));
	assert_int_equal(host_hears(heard), bench.sent[0].bytes);
	assert_memory_equal(heard, bench.sent[0].at, bench.sent[0].bytes);
}

/* The kernel keeps what a full send queue has no room for, and drops what exceeds its own. */
static void a_full_send_queue_holds_up_the_host(void **state)
{
	static u8 frame[60];
	const int most = ETH_SENDS - ETH_SEGMENTS + 1;

	bench.hold = true;
	put_frame(frame, sizeof(frame) - 14, false);
	for (int i = 0; i < most + 10; i++)
		host_queues(&(struct virtio_net_hdr){0}, frame, sizeof(frame));
	run();
	assert_int_equal(bench.num_sent, most);
	assert_int_equal(stats()->tx_waits, 1);
	release(IB_WC_SUCCESS);
	run();
	run(); /* now it reads on */
	assert_int_equal(bench.num_sent, most + 10);
	assert_int_equal(stats()->tx_packets, most + 10);
	assert_int_equal(stats()->tx_errors + stats()->tx_dropped, 0);
}

static void what_the_host_does_not_take_is_counted(void **state)
{
	static u8 frame[ETH_FRAME_MAX];
	size_t bytes = put_frame(frame, 1000, false);
	int sent = 0;

	while (!stats()->rx_dropped && sent++ < 10000)
		arrives(frame, bytes);
	assert_int_equal(stats()->rx_packets, sent - 1);
	assert_int_equal(stats()->rx_dropped, 1);
	while (host_hears(frame))
		;
	arrives(frame, bytes);
	assert_int_equal(stats()->rx_packets, sent);
}

static void a_failed_queue_pair_is_restarted(void **state)
{
	u8 frame[60];

	put_frame(frame, sizeof(frame) - 14, false);
	bench.status = IB_WC_LOC_PROT_ERR;
	host_sends(frame, sizeof(frame));
	assert_int_equal(stats()->tx_errors, 1);
	assert_int_equal(stats()->restarts, 1);
	assert_int_equal(bench.resets, 1);
	bench.status = IB_WC_SUCCESS;
	host_sends(frame, sizeof(frame));
	arrives(frame, sizeof(frame));
	assert_int_equal(stats()->tx_packets, 1);
	assert_int_equal(stats()->rx_packets, 1);
}

/* --- interfaces of VLANs --- */

#define OWN_IFINDEX 9

/** struct vlan_bench - a second interface of the port */
struct vlan_bench {
	struct eth *eth;
	int tap, kernel; /* the host's ends, as those of the bench */
};

static struct vlan_bench open_vlan(void)
{
	struct vlan_bench v;
	struct eth_config config = {.device = bench.device, .port_num = 1, .vlan_id = VLAN, .ifindex = OWN_IFINDEX};

	config.tap_fd = pair_of(&v.tap);
	config.rtnl_fd = pair_of(&v.kernel);
	assert_int_equal(eth_open(&config), 0);
	assert_int_equal(eth_open(&config), -EEXIST);
	v.eth = eth_find(bench.device, 1, VLAN);
	assert_ptr_not_equal(v.eth, eth_find(bench.device, 1, 0));
	assert_int_equal(bench.flows, 2 * ETH_RULES);
	return v;
}

static void close_vlan(struct vlan_bench *v)
{
	eth_close(v->eth);
	close(v->tap);
	close(v->kernel);
}

static void vlan_host_sends(const struct vlan_bench *v, const struct virtio_net_hdr *h, void *frame, size_t bytes)
{
	struct iovec part[] = {{(void *)(uintptr_t)h, sizeof(*h)}, {frame, bytes}};

	assert_int_equal(writev(v->tap, part, 2), sizeof(*h) + bytes);
	run();
}

/* What the host sends without a tag leaves with one, and the other way round. */
static void an_interface_of_a_vlan_has_the_tag_in_the_fabric_alone(void **state)
{
	static u8 frame[ETH_FRAME_MAX], heard[ETH_FRAME_MAX];
	struct vlan_bench v = open_vlan();
	size_t bytes = put_frame(frame, ETH_MTU, false);
	const struct sent *s = bench.sent;

	vlan_host_sends(&v, &(struct virtio_net_hdr){0}, frame, bytes);
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(s->bytes, bytes + 4);
	assert_memory_equal(s->at, frame, 12);
	assert_int_equal(get_be32(s->at + 12), 0x81000000 | VLAN);
	assert_memory_equal(s->at + 16, frame + 12, bytes - 12);
	lands_at(container_of(v.eth->qp, struct net_qp, ib), s->at, s->bytes);
	run();
	assert_int_equal(read(v.tap, heard, sizeof(heard)), sizeof(struct virtio_net_hdr) + bytes);
	assert_memory_equal(heard + sizeof(struct virtio_net_hdr), frame, bytes);
	assert_int_equal(host_hears(heard), 0);
	assert_int_equal(stats()->tx_packets + stats()->rx_packets, 0);
	assert_int_equal(eth_stats(v.eth)->rx_bytes, bytes);
	vlan_host_sends(&v, &(struct virtio_net_hdr){0}, frame, put_frame(frame, ETH_MTU + 1, false));
	assert_int_equal(eth_stats(v.eth)->tx_length_errors, 1);
	close_vlan(&v);
}

static void segments_of_a_vlan_are_cut_and_put_together(void **state)
{
	static u8 frame[70000], heard[70000];
	struct vlan_bench v = open_vlan();
	const struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					      .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					      .gso_size = MSS,
					      .hdr_len = 54,
					      .csum_start = 34,
					      .csum_offset = 16};
	size_t bytes = put_segment(frame, PARTS * MSS, false);
	const size_t h = sizeof(header);

	put_be16(frame + 20, 0x4000);
	frame[47] = 0x10;
	vlan_host_sends(&v, &header, frame, bytes);
	assert_int_equal(bench.num_sent, PARTS);
	for (int i = 0; i < PARTS; i++) {
		assert_int_equal(get_be32(bench.sent[i].at + 12), 0x81000000 | VLAN);
		lands_at(container_of(v.eth->qp, struct net_qp, ib), bench.sent[i].at, bench.sent[i].bytes);
	}
	run();
	assert_int_equal(read(v.tap, heard, sizeof(heard)), h + bytes);
	assert_memory_equal(heard + h, frame, 14);
	assert_memory_equal(heard + h + 54, frame + 54, PARTS * MSS);
	vlan_host_sends(&v, &header, frame, put_segment(frame, PARTS * MSS, true)); /* that has a tag already */
	assert_int_equal(eth_stats(v.eth)->tx_errors, 1);
	close_vlan(&v);
}

/* --- what the kernel tells --- */

/* The untagged interface tells the port the addresses of both; the other one has an MTU of its own. */
static void addresses_of_an_interface_of_a_vlan(void **state)
{
	struct vlan_bench v = open_vlan();
	const struct ifinfomsg link = {.ifi_index = OWN_IFINDEX, .ifi_flags = IFF_UP};
	u32 mtu = 1500;
	struct message m;

	assert_int_equal(asked(), RTM_GETLINK);
	tell_done();
	assert_int_equal(asked(), RTM_GETADDR);
	tell_address(IFINDEX, "10.1.0.1", 0);
	tell_address(OWN_IFINDEX, "10.2.0.1", 0);
	tell_address(OWN_IFINDEX + 1, "10.3.0.1", 0);
	tell_done();
	assert_int_equal(bench.num_addresses, 2);
	assert_int_equal(bench.address[0].vlan_id, 0);
	assert_int_equal(bench.address[1].vlan_id, VLAN);
	begin(&m, RTM_NEWLINK, NLM_F_MULTI, &link, sizeof(link));
	add(&m, IFLA_MTU, &mtu, sizeof(mtu));
	assert_int_equal(send(v.kernel, &m, m.header.nlmsg_len, 0), m.header.nlmsg_len);
	begin(&m, NLMSG_DONE, NLM_F_MULTI, NULL, 0);
	assert_int_equal(send(v.kernel, &m, m.header.nlmsg_len, 0), m.header.nlmsg_len);
	run();
	run();
	assert_int_equal(eth_mtu(v.eth), 1500);
	assert_int_equal(bench.mtu, ETH_MTU);
	close_vlan(&v);
	assert_int_equal(bench.num_addresses, 2); /* until the kernel tells */
}

static void addresses_of_vlan_interfaces_have_their_vlan(void **state)
{
	assert_int_equal(asked(), RTM_GETLINK);
	tell_vlan(IFINDEX, "vlan", htobe16(0x8100), 5, IFF_UP);
	tell_link(1500, IFF_UP);
	assert_int_equal(asked(), 0);
	tell_done();
	assert_int_equal(asked(), RTM_GETADDR);
	tell_address(IFINDEX, "10.1.0.1", 0);
	tell_address(1, "127.0.0.1", 0);
	tell_address(VLAN_IFINDEX, "192.168.5.1", 0);
	tell_address(VLAN_IFINDEX, "192.168.5.2", IFA_F_TENTATIVE);
	tell_done();
	assert_int_equal(bench.num_addresses, 2);
	assert_int_equal(bench.address[0].vlan_id, 0);
	assert_int_equal(bench.address[1].vlan_id, 5);
	assert_int_equal(get_be32(bench.address[1].gid.raw + 12), 0xc0a80501);
	assert_int_equal(bench.mtu, 1500);
	assert_int_equal(asked(), 0);
	tell_change();
	assert_int_equal(asked(), RTM_GETLINK); /* all again */
}

/* of another kind, of another interface, of provider bridging, or down */
static void other_interfaces_are_none_of_ours(void **state)
{
	static const struct {
		u32 below;
		const char *kind;
		u16 protocol;
		unsigned int flags;
	} others[] = {{IFINDEX, "macvlan", 0x8100, IFF_UP}, {IFINDEX, "vlanx", 0x8100, IFF_UP},
		      {99, "vlan", 0x8100, IFF_UP},	    {IFINDEX, "vlan", 0x88a8, IFF_UP},
		      {IFINDEX, "vlan", 0x8100, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(asked(), RTM_GETLINK);
		tell_vlan(others[i].below, others[i].kind, htobe16(others[i].protocol), 5, others[i].flags);
		tell_done();
		assert_int_equal(asked(), RTM_GETADDR);
		tell_address(VLAN_IFINDEX, "192.168.5.1", 0);
		tell_done();
		assert_int_equal(bench.num_addresses, 0);
		tell_change();
	}
}

/* Who serves the file system of a file (FUSE) may never answer an ioctl. */
static void a_file_is_asked_nothing(void **state)
{
	assert_int_equal(net_tun_check(bench.tap, bench.tap, IFF_TAP), 0);
	bench.type = S_IFREG;
	bench.ioctls = 0;
	assert_int_equal(net_tun_check(bench.tap, bench.tap, IFF_TAP), -EINVAL);
	assert_int_equal(bench.ioctls, 0);
}

static void the_mtu_is_that_of_the_device(void **state)
{
	static u8 frame[ETH_FRAME_MAX + 100];

	assert_int_equal(bench.mtu, ETH_MTU);
	tell_link(1500, 0); /* a new one is down until it has been told its own */
	assert_int_equal(bench.mtu, ETH_MTU);
	tell_link(9000, IFF_UP);
	assert_int_equal(bench.mtu, 9000);
	host_sends(frame, put_frame(frame, 9000, false));
	assert_int_equal(bench.num_sent, 1);
	tell_link(65000, IFF_UP);
	assert_int_equal(eth_mtu(eth_find(bench.device, 1, 0)), WIRE_FRAME_MTU_MAX);
	host_sends(frame, put_frame(frame, 9001, false));
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(stats()->tx_length_errors, 1);
}

static void a_malformed_message_is_ignored(void **state)
{
	const struct ifinfomsg link = {.ifi_index = IFINDEX, .ifi_flags = IFF_UP};
	u16 half = 1500;
	struct message m;

	begin(&m, RTM_NEWLINK, NLM_F_MULTI, &link, 4);
	tell(&m);
	begin(&m, RTM_NEWADDR, NLM_F_MULTI, &link, 2);
	tell(&m);
	begin(&m, RTM_NEWLINK, NLM_F_MULTI, &link, sizeof(link));
	add(&m, IFLA_MTU, &half, sizeof(half));
	tell(&m);
	add(&m, IFLA_LINKINFO, "", 0);
	m.bytes[m.header.nlmsg_len - 4] = 200; /* longer than the message */
	tell(&m);
	assert_int_equal(bench.mtu, ETH_MTU);
	tell_done();
	assert_int_equal(asked(), RTM_GETLINK);
	assert_int_equal(asked(), RTM_GETADDR);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(frames_pass_as_they_are),
		CASE(what_is_too_long_or_too_short_is_counted),
		CASE(a_header_that_lies),
		CASE(large_segments_are_cut_behind_their_header),
		CASE(what_was_cut_is_put_together),
		CASE(different_ethernet_headers_are_not_merged),
		CASE(what_was_kept_is_the_hosts_when_the_interface_ends),
		CASE(a_full_send_queue_holds_up_the_host),
		CASE(what_the_host_does_not_take_is_counted),
		CASE(a_failed_queue_pair_is_restarted),
		CASE(an_interface_of_a_vlan_has_the_tag_in_the_fabric_alone),
		CASE(segments_of_a_vlan_are_cut_and_put_together),
		CASE(addresses_of_an_interface_of_a_vlan),
		CASE(addresses_of_vlan_interfaces_have_their_vlan),
		CASE(other_interfaces_are_none_of_ours),
		CASE(a_file_is_asked_nothing),
		CASE(the_mtu_is_that_of_the_device),
		CASE(a_malformed_message_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
