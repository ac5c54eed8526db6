/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "links.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* --- one message --- */

/* @attribute: aligned; Return: where the next one stands */
static uint8_t *put_attribute(uint8_t *at, unsigned short type, const uint8_t *address)
{
	const struct rtattr head = {.rta_len = RTA_LENGTH(LINKS_ADDRESS_BYTES), .rta_type = type};

	memcpy(at, &head, sizeof(head));
	memcpy(at + RTA_LENGTH(0), address, LINKS_ADDRESS_BYTES);
	return at + RTA_SPACE(LINKS_ADDRESS_BYTES);
}

/* Return: the interface's name; NULL: the message is none of an interface of InfiniBand, or tells an
 * address itself */
static const char *lacks_address(const struct nlmsghdr *msg)
{
	const struct ifinfomsg *info = NLMSG_DATA(msg);
	const struct rtattr *attr = IFLA_RTA(info);
	const char *name = NULL;
	int left = (int)IFLA_PAYLOAD(msg);

	if (msg->nlmsg_type != RTM_NEWLINK || msg->nlmsg_len < NLMSG_LENGTH(sizeof(*info)) ||
	    info->ifi_family != AF_UNSPEC || info->ifi_type != ARPHRD_INFINIBAND)
		return NULL;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == IFLA_ADDRESS)
			return NULL;
		if (attr->rta_type == IFLA_IFNAME && memchr(RTA_DATA(attr), 0, RTA_PAYLOAD(attr)))
			name = RTA_DATA(attr);
	}
	return name;
}

/* @bytes: the message, with the padding behind it. Return: bytes of @out */
static size_t complete(const struct nlmsghdr *in, size_t bytes, uint8_t *out,
		       bool (*find)(const char *name, struct link_addresses *addresses))
{
	const char *name = lacks_address(in);
	struct nlmsghdr *msg = (void *)out;
	struct link_addresses addresses;
	struct ifinfomsg *info;
	uint8_t *end;

	memcpy(out, in, bytes);
	if (!name || !find(name, &addresses))
		return bytes;
	info = NLMSG_DATA(msg);
	info->ifi_flags = (info->ifi_flags & ~(unsigned int)IFF_POINTOPOINT) | IFF_BROADCAST;
	memset(out + bytes, 0, NLMSG_ALIGN(bytes) - bytes);
	end = put_attribute(out + NLMSG_ALIGN(bytes), IFLA_ADDRESS, addresses.own);
	end = put_attribute(end, IFLA_BROADCAST, addresses.broadcast);
	msg->nlmsg_len = (uint32_t)(end - out);
	return msg->nlmsg_len;
}

size_t links_complete(const void *in, size_t bytes, void *out,
		      bool (*find)(const char *name, struct link_addresses *addresses))
{
	const struct nlmsghdr *msg = in;
	size_t used = 0, left = bytes, step;

	while (left >= sizeof(*msg) && msg->nlmsg_len >= sizeof(*msg) && msg->nlmsg_len <= left) {
		step = NLMSG_ALIGN(msg->nlmsg_len);
		step = step < left ? step : left;
		used += complete(msg, step, (uint8_t *)out + used, find);
		left -= step;
		msg = (const void *)((const uint8_t *)msg + step);
	}
	memcpy((uint8_t *)out + used, msg, left);
	return used + left;
}

/* --- addresses of sysfs --- */

static bool read_address(const char *name, const char *file, uint8_t *address)
{
	char path[64 + IF_NAMESIZE];
	unsigned int byte, n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, file);
	f = strlen(name) < IF_NAMESIZE && !strchr(name, '/') ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	while (n < LINKS_ADDRESS_BYTES && fscanf(f, n ? ":%2x" : "%2x", &byte) == 1)
		address[n++] = (uint8_t)byte;
	fclose(f);
	return n == LINKS_ADDRESS_BYTES;
}

static bool find_in_sysfs(const char *name, struct link_addresses *addresses)
{
	return read_address(name, "address", addresses->own) &&
	       read_address(name, "broadcast", addresses->broadcast);
}

/* --- the socket --- */

static bool has_option(int fd, int name, int value)
{
	socklen_t len = sizeof(int);
	int is;

	return !getsockopt(fd, SOL_SOCKET, name, &is, &len) && is == value;
}

static size_t scatter(const struct msghdr *msg, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < msg->msg_iovlen && done < len; i++) {
		size_t part = msg->msg_iov[i].iov_len;

		part = part < len - done ? part : len - done;
		memcpy(msg->msg_iov[i].iov_base, bytes + done, part);
		done += part;
	}
	return done;
}

/* @in: room for the datagram that is next; @out: LINKS_ROOM() of it */
static ssize_t receive_into(int fd, struct msghdr *msg, int flags, uint8_t *in, size_t bytes,
			    uint8_t *out)
{
	struct iovec whole = {.iov_base = in, .iov_len = bytes};
	struct msghdr own = *msg;
	size_t total, given;
	ssize_t n;

	own.msg_iov = &whole;
	own.msg_iovlen = 1;
	n = recvmsg(fd, &own, flags);
	if (n < 0)
		return n;
	msg->msg_namelen = own.msg_namelen;
	msg->msg_controllen = own.msg_controllen;
	msg->msg_flags = own.msg_flags;
	total = links_complete(in, (size_t)n < bytes ? (size_t)n : bytes, out, find_in_sysfs);
	given = scatter(msg, out, total);
	if (given < total)
		msg->msg_flags |= MSG_TRUNC;
	return (ssize_t)(flags & MSG_TRUNC ? total : given);
}

ssize_t links_receive(int fd, struct msghdr *msg, int flags)
{
	ssize_t bytes, ret;
	uint8_t *room;

	if (!has_option(fd, SO_DOMAIN, AF_NETLINK) || !has_option(fd, SO_PROTOCOL, NETLINK_ROUTE))
		return recvmsg(fd, msg, flags);
	bytes = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | (flags & MSG_DONTWAIT));
	if (bytes < 0)
		return bytes;
	bytes = (ssize_t)NLMSG_ALIGN((size_t)bytes);
	room = malloc((size_t)bytes + LINKS_ROOM((size_t)bytes));
	if (!room)
		return recvmsg(fd, msg, flags);
	ret = receive_into(fd, msg, flags, room, (size_t)bytes, room + bytes);
	free(room);
	return ret;
}
