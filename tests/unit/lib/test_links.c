/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Link-layer addresses in the kernel's messages about interfaces. */
#include "../test.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../../lib/links/links.h"

/** struct messages - netlink messages as the kernel puts them */
struct messages {
	_Alignas(4) uint8_t bytes[1024];
	size_t used;
};

static struct nlmsghdr *add_message(struct messages *m, uint16_t type, size_t payload)
{
	struct nlmsghdr *msg = (void *)(m->bytes + m->used);

	*msg = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH((uint32_t)payload), .nlmsg_type = type};
	m->used += NLMSG_ALIGN(msg->nlmsg_len);
	return msg;
}

static void add_attribute(struct messages *m, struct nlmsghdr *msg, uint16_t type, const void *data,
			  size_t bytes)
{
	struct rtattr *attr = (void *)(m->bytes + m->used);

	*attr = (struct rtattr){.rta_len = (uint16_t)RTA_LENGTH(bytes), .rta_type = type};
	memcpy(RTA_DATA(attr), data, bytes);
	m->used += RTA_ALIGN(attr->rta_len);
	msg->nlmsg_len += RTA_ALIGN(attr->rta_len);
}

static struct nlmsghdr *add_link(struct messages *m, uint16_t hardware, const char *name)
{
	struct nlmsghdr *msg = add_message(m, RTM_NEWLINK, sizeof(struct ifinfomsg));
	struct ifinfomsg *info = NLMSG_DATA(msg);

	*info = (struct ifinfomsg){.ifi_type = hardware, .ifi_flags = IFF_UP | IFF_POINTOPOINT};
	add_attribute(m, msg, IFLA_IFNAME, name, strlen(name) + 1);
	return msg;
}

static bool find(const char *name, struct link_addresses *addresses)
{
	memset(addresses->own, 0x11, sizeof(addresses->own));
	memset(addresses->broadcast, 0xff, sizeof(addresses->broadcast));
	return !strcmp(name, "ib0");
}

/* Return: the attribute's value, of LINKS_ADDRESS_BYTES; NULL: there is none */
static const uint8_t *address_in(const struct nlmsghdr *msg, uint16_t type)
{
	const struct rtattr *attr = IFLA_RTA(NLMSG_DATA(msg));
	int left = (int)IFLA_PAYLOAD(msg);

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == type) {
			assert_int_equal(RTA_PAYLOAD(attr), LINKS_ADDRESS_BYTES);
			return RTA_DATA(attr);
		}
	return NULL;
}

static void an_interface_of_infiniband_gets_its_addresses(void **state)
{
	_Alignas(4) uint8_t out[LINKS_ROOM(1024)];
	const struct nlmsghdr *msg = (void *)out;
	const struct ifinfomsg *info = NLMSG_DATA(msg);
	struct messages m = {0};
	struct link_addresses want;
	int left;

	find("ib0", &want);
	add_link(&m, ARPHRD_LOOPBACK, "lo");
	add_link(&m, ARPHRD_INFINIBAND, "ib0");
	add_message(&m, NLMSG_DONE, 4);
	left = (int)links_complete(m.bytes, m.used, out, find);
	assert_int_equal(left, m.used + 2 * RTA_SPACE(LINKS_ADDRESS_BYTES));
	assert_null(address_in(msg, IFLA_ADDRESS));
	assert_int_equal(info->ifi_flags, IFF_UP | IFF_POINTOPOINT);
	msg = NLMSG_NEXT(msg, left);
	info = NLMSG_DATA(msg);
	assert_true(NLMSG_OK(msg, left));
	assert_memory_equal(address_in(msg, IFLA_ADDRESS), want.own, LINKS_ADDRESS_BYTES);
	assert_memory_equal(address_in(msg, IFLA_BROADCAST), want.broadcast, LINKS_ADDRESS_BYTES);
	assert_int_equal(info->ifi_flags, IFF_UP | IFF_BROADCAST);
	msg = NLMSG_NEXT(msg, left);
	assert_true(NLMSG_OK(msg, left));
	assert_int_equal(msg->nlmsg_type, NLMSG_DONE);
	NLMSG_NEXT(msg, left);
	assert_int_equal(left, 0);
}

static void expect_unchanged(const void *in, size_t bytes)
{
	_Alignas(4) uint8_t out[LINKS_ROOM(1024)];

	memset(out, 0xee, sizeof(out));
	assert_int_equal(links_complete(in, bytes, out, find), bytes);
	assert_memory_equal(out, in, bytes);
}

static void everything_else_is_copied(void **state)
{
	const uint8_t address[LINKS_ADDRESS_BYTES] = {1};
	struct messages has_one = {0}, unknown = {0}, nameless = {0};
	struct nlmsghdr *msg = add_link(&has_one, ARPHRD_INFINIBAND, "ib0");

	add_attribute(&has_one, msg, IFLA_ADDRESS, address, sizeof(address));
	expect_unchanged(has_one.bytes, has_one.used);
	add_link(&unknown, ARPHRD_INFINIBAND, "ib1");
	expect_unchanged(unknown.bytes, unknown.used);
	msg = add_message(&nameless, RTM_NEWLINK, sizeof(struct ifinfomsg));
	((struct ifinfomsg *)NLMSG_DATA(msg))->ifi_type = ARPHRD_INFINIBAND;
	expect_unchanged(nameless.bytes, nameless.used);
}

/* Every length that a message may be cut to, and those that its own fields may claim */
static void malformed_messages_are_copied(void **state)
{
	struct messages m = {0};
	struct nlmsghdr *msg = add_link(&m, ARPHRD_INFINIBAND, "ib0");
	struct rtattr *attr = IFLA_RTA(NLMSG_DATA(msg));

	for (size_t bytes = 0; bytes < m.used; bytes++)
		expect_unchanged(m.bytes, bytes);
	attr->rta_len = 2;
	expect_unchanged(m.bytes, m.used);
	attr->rta_len = 200;
	expect_unchanged(m.bytes, m.used);
	attr->rta_len = RTA_LENGTH(3); /* the name has no end */
	expect_unchanged(m.bytes, m.used);
	for (uint32_t len = 0; len < NLMSG_LENGTH(sizeof(struct ifinfomsg)); len++) {
		msg->nlmsg_len = len;
		expect_unchanged(m.bytes, m.used);
	}
	for (uint32_t len = 16; len < NLMSG_LENGTH(sizeof(struct ifinfomsg)); len++) { /* the last one */
		msg->nlmsg_len = len;
		expect_unchanged(m.bytes, len);
	}
	msg->nlmsg_len = ~0U;
	expect_unchanged(m.bytes, m.used);
}

static int ask_for_loopback(void)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct messages m = {0};
	struct nlmsghdr *msg = add_message(&m, RTM_GETLINK, sizeof(struct ifinfomsg));

	assert_true(fd >= 0);
	*(struct ifinfomsg *)NLMSG_DATA(msg) = (struct ifinfomsg){.ifi_index = (int)if_nametoindex("lo")};
	msg->nlmsg_flags = NLM_F_REQUEST;
	assert_int_equal(send(fd, m.bytes, m.used, 0), m.used);
	return fd;
}

/* A look at the length, a look at the beginning, and then the message, as libnl and iproute2 do it */
static void a_routing_socket_is_read_as_without_softib(void **state)
{
	const int fd = ask_for_loopback();
	struct sockaddr_nl from = {0};
	char text[8192];
	struct iovec parts[] = {{text, 7}, {text + 7, sizeof(text) - 7}};
	struct msghdr msg = {.msg_iov = parts, .msg_name = &from, .msg_namelen = sizeof(from)};
	ssize_t bytes = links_receive(fd, &msg, MSG_PEEK | MSG_TRUNC);

	assert_true(bytes > (ssize_t)sizeof(struct nlmsghdr));
	msg.msg_iovlen = 1;
	assert_int_equal(links_receive(fd, &msg, MSG_PEEK), 7);
	assert_true(msg.msg_flags & MSG_TRUNC);
	msg.msg_iovlen = 2;
	assert_int_equal(links_receive(fd, &msg, 0), bytes);
	assert_false(msg.msg_flags & MSG_TRUNC);
	assert_int_equal(from.nl_family, AF_NETLINK);
	assert_int_equal(from.nl_pid, 0);
	assert_int_equal(((struct nlmsghdr *)text)->nlmsg_len, bytes);
	assert_int_equal(((struct nlmsghdr *)text)->nlmsg_type, RTM_NEWLINK);
	assert_int_equal(links_receive(fd, &msg, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

static void other_sockets_are_those_of_libc(void **state)
{
	char text[4];
	struct iovec part = {text, sizeof(text)};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(write(fd[1], "abc", 3), 3);
	assert_int_equal(links_receive(fd[0], &msg, 0), 3);
	assert_memory_equal(text, "abc", 3);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(links_receive(-1, &msg, 0), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interface_of_infiniband_gets_its_addresses),
		cmocka_unit_test(everything_else_is_copied),
		cmocka_unit_test(malformed_messages_are_copied),
		cmocka_unit_test(a_routing_socket_is_read_as_without_softib),
		cmocka_unit_test(other_sockets_are_those_of_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
