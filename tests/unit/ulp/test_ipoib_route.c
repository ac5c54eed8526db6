/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IP over InfiniBand: gateways. The test is the kernel on the routing socket: it lists
 * addresses and routes, and notifies of changes. Whom the interface asks for its link
 * address tells the next hop.
 */
#include "ipoib_bench.h"

#define OTHER_TABLE 77

static u8 message[1024];
static size_t filled;

/* --- the kernel --- */

static void *append(const void *data, size_t bytes)
{
	void *at = message + filled;

	assert_true(filled + NLMSG_ALIGN(bytes) <= sizeof(message));
	memset(at, 0, NLMSG_ALIGN(bytes));
	memcpy(at, data, bytes);
	filled += NLMSG_ALIGN(bytes);
	return at;
}

static void attribute(u16 type, const void *data, size_t bytes)
{
	struct rtattr a = {.rta_type = type, .rta_len = (u16)RTA_LENGTH(bytes)};

	append(&a, sizeof(a));
	append(data, bytes);
}

static void address_attribute(u16 type, const char *text)
{
	struct in6_addr ip = address(text);

	if (IN6_IS_ADDR_V4MAPPED(&ip))
		attribute(type, &ip.s6_addr[12], 4);
	else
		attribute(type, &ip, 16);
}

static void number_attribute(u16 type, u32 value)
{
	attribute(type, &value, sizeof(value));
}

static void begin(u16 type, u16 flags, const void *body, size_t bytes)
{
	const struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = flags};

	filled = 0;
	append(&header, sizeof(header));
	append(body, bytes);
}

static void tell(void)
{
	((struct nlmsghdr *)message)->nlmsg_len = (u32)filled;
	assert_int_equal(send(bench.address, message, filled, 0), filled);
	rt_sim_look(net->rt);
	run_ms(1);
}

static void begin_route(u16 flags, const char *prefix, u8 bits, u32 ifindex)
{
	const struct rtmsg body = {.rtm_family = strchr(prefix, ':') ? AF_INET6 : AF_INET,
				   .rtm_dst_len = bits, .rtm_type = RTN_UNICAST,
				   .rtm_table = RT_TABLE_MAIN};

	begin(RTM_NEWROUTE, flags, &body, sizeof(body));
	if (bits)
		address_attribute(RTA_DST, prefix);
	if (ifindex)
		number_attribute(RTA_OIF, ifindex);
}

/* @via NULL: on the link */
static void list_route(const char *prefix, u8 bits, const char *via, u32 metric)
{
	begin_route(NLM_F_MULTI, prefix, bits, IFINDEX);
	if (via)
		address_attribute(RTA_GATEWAY, via);
	number_attribute(RTA_PRIORITY, metric);
	tell();
}

static void tell_done(void)
{
	int zero = 0;

	begin(NLMSG_DONE, NLM_F_MULTI, &zero, sizeof(zero));
	tell();
}

/* Return: the type of what the interface asks next; 0 nothing */
static int asked(void)
{
	struct nlmsghdr header[4];

	while (recv(bench.address, header, sizeof(header), MSG_DONTWAIT) > 0)
		if (header->nlmsg_type != RTM_SETLINK) /* it orders that */
			return header->nlmsg_type;
	return 0;
}

static void tell_change(u16 type)
{
	const struct rtmsg body = {.rtm_family = AF_INET};

	begin(type, 0, &body, sizeof(body));
	tell();
}

/* --- the host --- */

/* Return: who is asked for when the host sends to @dst */
static const char *next_hop(const char *dst)
{
	static char text[INET6_ADDRSTRLEN];
	const u8 *at;
	int before = bench.num_sent;

	host_sends(dst);
	run_ms(100); /* the group of an IPv6 address is joined first */
	assert_int_equal(bench.num_sent, before + 1);
	at = bench.sent[before].at;
	if (get_be16(at) == IPOIB_ARP)
		return inet_ntop(AF_INET, at + IPOIB_ENCAP_BYTES + 52, text, sizeof(text));
	assert_int_equal(get_be16(at), IPOIB_IPV6);
	return inet_ntop(AF_INET6, at + IPOIB_ENCAP_BYTES + 48, text, sizeof(text));
}

static int setup(void **state)
{
	int ret = bench_setup_open(state);

	assert_int_equal(asked(), RTM_GETADDR);
	host_has("10.0.0.1", 16, RTM_NEWADDR);
	tell_done();
	assert_int_equal(asked(), RTM_GETROUTE);
	return ret;
}

/* --- tests --- */

static void without_gateways_all_is_on_the_link(void **state)
{
	list_route("10.0.0.0", 16, NULL, 0);
	list_route("10.7.0.0", 16, NULL, 0);
	tell_done();
	assert_string_equal(next_hop("10.0.0.2"), "10.0.0.2");
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2");
	assert_string_equal(next_hop("192.0.2.1"), "192.0.2.1");
}

static void the_longest_prefix_wins_and_then_the_metric(void **state)
{
	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	list_route("10.7.0.0", 16, "10.0.0.8", 20);
	list_route("10.7.0.0", 16, "10.0.0.7", 10);
	list_route("10.0.0.0", 16, NULL, 0);
	list_route("10.7.7.0", 24, NULL, 100);
	list_route("10.0.5.5", 32, "10.0.0.6", 0);
	assert_string_equal(next_hop("10.7.0.3"), "10.7.0.3"); /* the list has not ended */
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "10.0.0.7");
	assert_string_equal(next_hop("10.0.0.2"), "10.0.0.2");
	assert_string_equal(next_hop("10.7.7.2"), "10.7.7.2");
	assert_string_equal(next_hop("192.0.2.1"), "10.0.0.9");
	assert_string_equal(next_hop("10.0.5.5"), "10.0.0.6");
}

static void families_do_not_mix(void **state)
{
	list_route("::", 0, "fe80::9", 0);
	list_route("fd00::", 8, NULL, 0);
	tell_done();
	assert_string_equal(next_hop("192.0.2.1"), "192.0.2.1");
	assert_string_equal(next_hop("2001:db8::1"), "fe80::9");
	assert_string_equal(next_hop("fd00::1"), "fd00::1");
}

static void an_ipv4_route_has_an_ipv6_gateway(void **state)
{
	struct __attribute__((packed)) {
		u16 family;
		struct in6_addr ip;
	} via = {AF_INET6, address("fe80::9")};

	begin_route(NLM_F_MULTI, "10.7.0.0", 16, IFINDEX);
	attribute(RTA_VIA, &via, sizeof(via));
	tell();
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "fe80::9");
}

static void several_gateways_share_the_destinations(void **state)
{
	const u32 via[] = {inet_addr("10.0.0.8"), inet_addr("10.0.0.9"), inet_addr("10.0.0.7")};
	struct {
		struct rtnexthop hop;
		struct rtattr attr;
		u32 ip;
	} hops[3];

	for (int i = 0; i < 3; i++) {
		hops[i].hop = (struct rtnexthop){.rtnh_len = sizeof(hops[i]),
						 .rtnh_ifindex = i < 2 ? IFINDEX : IFINDEX + 1};
		hops[i].attr = (struct rtattr){.rta_len = 8, .rta_type = RTA_GATEWAY};
		hops[i].ip = via[i];
	}
	begin_route(NLM_F_MULTI, "10.7.0.0", 16, 0);
	attribute(RTA_MULTIPATH, hops, sizeof(hops));
	tell();
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "10.0.0.8");
	assert_string_equal(next_hop("10.7.0.3"), "10.0.0.9");
}

static void other_interfaces_and_the_local_table_do_not_count(void **state)
{
	begin_route(NLM_F_MULTI, "10.7.0.0", 16, IFINDEX + 1);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	tell();
	begin_route(NLM_F_MULTI, "10.8.0.0", 16, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	number_attribute(RTA_TABLE, RT_TABLE_LOCAL);
	tell();
	begin_route(NLM_F_MULTI, "10.9.0.0", 16, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	number_attribute(RTA_TABLE, OTHER_TABLE);
	tell();
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2");
	assert_string_equal(next_hop("10.8.0.2"), "10.8.0.2");
	assert_string_equal(next_hop("10.9.0.2"), "10.0.0.8");
}

static void a_change_lists_them_again(void **state)
{
	list_route("10.7.0.0", 16, "10.0.0.9", 0);
	tell_done();
	assert_int_equal(asked(), 0);
	assert_string_equal(next_hop("10.7.0.2"), "10.0.0.9");
	tell_change(RTM_DELROUTE);
	assert_int_equal(asked(), RTM_GETROUTE);
	tell_change(RTM_NEWLINK); /* while they are listed: once more */
	tell_change(RTM_NEWROUTE);
	assert_int_equal(asked(), 0);
	tell_done();
	assert_int_equal(asked(), RTM_GETROUTE);
	list_route("10.7.0.0", 16, "10.0.0.8", 0);
	tell_done();
	assert_int_equal(asked(), 0);
	assert_string_equal(next_hop("10.7.0.3"), "10.0.0.8");
}

static void a_kernel_without_room_is_asked_again(void **state)
{
	tell_done();
	bench.kernel_is_full = true;
	tell_change(RTM_NEWROUTE);
	run_ms(5000);
	assert_int_equal(asked(), 0);
	bench.kernel_is_full = false;
	run_ms(5000);
	assert_int_equal(asked(), RTM_GETROUTE);
	tell_done();
	run_ms(5000);
	assert_int_equal(asked(), 0);
}

static void what_is_malformed_is_no_route(void **state)
{
	begin_route(NLM_F_MULTI, "10.7.0.0", 33, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	tell();
	begin_route(NLM_F_MULTI, "10.8.0.0", 16, IFINDEX);
	attribute(RTA_GATEWAY, "abc", 3);
	tell();
	begin_route(NLM_F_MULTI, "10.9.0.0", 16, IFINDEX);
	attribute(RTA_VIA, "a", 1);
	tell();
	begin_route(NLM_F_MULTI, "10.10.0.0", 16, 0);
	attribute(RTA_MULTIPATH, "\x40", 1);
	tell();
	begin(RTM_NEWROUTE, NLM_F_MULTI, "short", 5);
	tell();
	tell_done();
	for (int i = 7; i < 11; i++) {
		char dst[16];

		snprintf(dst, sizeof(dst), "10.%d.0.2", i);
		assert_string_equal(next_hop(dst), dst);
	}
}

static int count_address(void *ctx, const struct ipoib_own_address *address)
{
	++*(int *)ctx;
	return 0;
}

static int addresses(void)
{
	int n = 0;

	ipoib_each_address(bench_interface(), count_address, &n);
	return n;
}

static void what_is_not_listed_any_more_is_gone(void **state)
{
	assert_int_equal(addresses(), 2);
	assert_int_equal(asked(), RTM_GETADDR);
	begin(NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, "\0\0\0", 4);
	tell();
	assert_int_equal(addresses(), 2);
	assert_int_equal(asked(), RTM_GETADDR); /* as the list changed meanwhile */
	host_has("10.0.0.1", 16, RTM_NEWADDR);
	tell_done();
	assert_int_equal(addresses(), 1);
	assert_int_equal(asked(), RTM_GETROUTE);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		CASE(without_gateways_all_is_on_the_link),
		CASE(the_longest_prefix_wins_and_then_the_metric),
		CASE(families_do_not_mix),
		CASE(an_ipv4_route_has_an_ipv6_gateway),
		CASE(several_gateways_share_the_destinations),
		CASE(other_interfaces_and_the_local_table_do_not_count),
		CASE(a_change_lists_them_again),
		CASE(a_kernel_without_room_is_asked_again),
		CASE(what_is_malformed_is_no_route),
		cmocka_unit_test_setup_teardown(what_is_not_listed_any_more_is_gone, bench_setup_open,
						bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
