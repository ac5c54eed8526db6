/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Network interfaces of a node: TUN and TAP devices whose other end is in softibd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev.h"
#include "sysfs.h"

#define TUN "/dev/net/tun"

static int call(const char *interface, unsigned long what, struct ifreq *req)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	snprintf(req->ifr_name, sizeof(req->ifr_name), "%s", interface);
	error = ioctl(fd, what, req) ? -errno : 0;
	close(fd);
	return error;
}

int netdev_up(const char *interface)
{
	struct ifreq req;
	int error = call(interface, SIOCGIFFLAGS, &req);

	req.ifr_flags |= IFF_UP;
	return error ? error : call(interface, SIOCSIFFLAGS, &req);
}

/* A TUN device is made as one without address resolution, on which Linux does not verify the
 * IPv6 addresses that it is given. softibd resolves addresses. Where /proc/sys cannot be written
 * softibd alone verifies them. */
static int resolve_addresses(const char *interface)
{
	struct ifreq req;
	int error = call(interface, SIOCGIFFLAGS, &req);
	char path[64 + IFNAMSIZ];

	req.ifr_flags &= (short)~IFF_NOARP;
	if (!error)
		error = call(interface, SIOCSIFFLAGS, &req);
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", interface);
	node_write(path, "1");
	return error;
}

int netdev_ask_kernel(const struct nlmsghdr *req)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char room[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, req, req->nlmsg_len, 0) < 0 ||
	    (n = recv(fd, &answer, sizeof(answer), 0)) < 0)
		error = -errno;
	else if (n < (ssize_t)NLMSG_LENGTH(sizeof(answer.error)) ||
		 answer.head.nlmsg_type != NLMSG_ERROR)
		error = -EPROTO;
	else
		error = answer.error.error;
	close(fd);
	return error;
}

/* A large segment becomes as many packets as softibd has room for (IPOIB_SENDS_OF_READ): with a
 * small MSS the kernel would cut 64 KiB into more. Old kernels do not let one say so. */
static void limit_segments(const char *interface, unsigned segments)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
		struct rtattr attr;
		unsigned value;
	} req = {
		.head = {.nlmsg_len = sizeof(req),
			 .nlmsg_type = RTM_NEWLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.body = {.ifi_index = (int)if_nametoindex(interface)},
		.attr = {.rta_len = RTA_LENGTH(sizeof(req.value)), .rta_type = IFLA_GSO_MAX_SEGS},
		.value = segments,
	};

	netdev_ask_kernel(&req.head);
}

int netdev_delete(const char *interface)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} req = {
		.head = {.nlmsg_len = sizeof(req),
			 .nlmsg_type = RTM_DELLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.body = {.ifi_index = (int)if_nametoindex(interface)},
	};
	int error = req.body.ifi_index ? netdev_ask_kernel(&req.head) : -ENODEV;

	return error == -ENODEV ? 0 : error;
}

/* @kind: IFF_TUN or IFF_TAP. Return: the descriptor of a new device; -errno */
static int open_tun(const char *interface, int kind)
{
	struct ifreq req = {.ifr_flags = (short)(kind | IFF_NO_PI | IFF_VNET_HDR)};
	int fd = open(TUN, O_RDWR | O_NONBLOCK | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", interface);
	if (!ioctl(fd, TUNSETIFF, &req)) {
		if (kind == IFF_TUN) /* what programs take it for; or none */
			ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND);
		return fd;
	}
	error = -errno;
	close(fd);
	return error;
}

/* Return: a socket that hears of each change of an address, a route or a link; -errno */
static int open_rtnl(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK,
				      .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
						   RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
						   RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE |
						   1 << (RTNLGRP_IPV6_RULE - 1)};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		int error = -errno;

		if (fd >= 0)
			close(fd);
		return error;
	}
	return fd;
}

/* @req: of softibd, which names the port. Return: the answer; NULL (printed) */
static struct json_object *hand_over(const struct node_place *at, struct json_object *req,
				     const char *interface, const int fd[2])
{
	const struct client_fds fds = {.send = fd, .num_send = 2};

	request_number(req, "ifindex", if_nametoindex(interface));
	return client_call_fds(at->dir, req, &fds);
}

static struct json_object *request_of(const char *op, const char *adapter, unsigned port)
{
	struct json_object *req = request(op);

	request_text(req, "node", adapter);
	request_number(req, "port", port);
	return req;
}

/* Return: 0; -errno; -EPROTO (printed) */
static int begin_ipoib(const struct node_place *at, struct json_object *req, const char *interface,
		       const int fd[2])
{
	struct json_object *answer = hand_over(at, req, interface, fd);
	int error;

	if (!answer)
		return -EPROTO;
	limit_segments(interface, (unsigned)number_of(answer, "segments"));
	json_object_put(answer);
	error = resolve_addresses(interface);
	sysfs_net_lay(at, interface); /* where the kernel does not let us, the files are missing */
	return error ? error : netdev_up(interface);
}

bool netdev_is_possible(void)
{
	int fd = open(TUN, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Return: 0; -errno */
static int set_ethernet(const char *interface, struct json_object *answer)
{
	struct ifreq req = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};
	unsigned char *mac = (unsigned char *)req.ifr_hwaddr.sa_data;
	int error;

	if (sscanf(text_of(answer, "mac"), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2],
		   &mac[3], &mac[4], &mac[5]) != 6)
		return -EPROTO;
	error = call(interface, SIOCSIFHWADDR, &req);
	if (error)
		return error;
	req = (struct ifreq){.ifr_mtu = (int)number_of(answer, "mtu")};
	return call(interface, SIOCSIFMTU, &req);
}

/* Return: 0; -errno; -EPROTO (printed) */
static int begin_ethernet(const struct node_place *at, struct json_object *req,
			  const char *interface, const int fd[2])
{
	struct json_object *answer = hand_over(at, req, interface, fd);
	int error;

	if (!answer)
		return -EPROTO;
	limit_segments(interface, (unsigned)number_of(answer, "segments"));
	error = set_ethernet(interface, answer);
	json_object_put(answer);
	return error ? error : netdev_up(interface);
}

/* @begin: hands over what was opened, and brings the interface up. Return: as it */
static int make(const struct node_place *at, struct json_object *req, const char *interface, int kind,
		int (*begin)(const struct node_place *at, struct json_object *req,
			     const char *interface, const int fd[2]))
{
	int fd[2] = {open_tun(interface, kind), -1}, error;

	if (fd[0] < 0) {
		json_object_put(req);
		return fd[0];
	}
	fd[1] = open_rtnl();
	if (fd[1] < 0)
		json_object_put(req);
	error = fd[1] < 0 ? fd[1] : begin(at, req, interface, fd);
	close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	return error;
}

int netdev_ipoib(const struct node_place *at, const char *adapter, unsigned port,
		 unsigned pkey, const char *interface)
{
	struct json_object *req = request_of("ipoib_open", adapter, port);

	request_number(req, "pkey", pkey);
	return make(at, req, interface, IFF_TUN, begin_ipoib);
}

int netdev_ethernet(const struct node_place *at, const char *adapter, unsigned port, unsigned vlan,
		    const char *interface)
{
	struct json_object *req = request_of("eth_open", adapter, port);

	if (vlan)
		request_number(req, "vlan", vlan);
	return make(at, req, interface, IFF_TAP, begin_ethernet);
}
