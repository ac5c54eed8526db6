/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IP over InfiniBand: gateways. The test is the kernel on the routing socket: it lists
 * addresses and routes, notifies of changes and says which route a packet takes. Whom the
 * interface asks for its link address tells the next hop.
 */
#include "ipoib_bench.h"

#include <linux/fib_rules.h>

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

/* --- the kernel's routing --- */

/** struct kernel_route - @src NULL: whatever the source; @via NULL: on the link */
static struct kernel_route {
	const char *dst, *src, *via;
	bool elsewhere;
} kernel[4];
static int questions;
static u16 last_port;

static bool is(const char *text, const struct in6_addr *ip)
{
	struct in6_addr wanted = address(text);

	return !memcmp(&wanted, ip, sizeof(wanted));
}

static void read_address(int family, const struct rtattr *a, struct in6_addr *ip)
{
	__be32 v4;

	memcpy(&v4, RTA_DATA(a), sizeof(v4));
	*ip = ipoib_from_v4(v4);
	if (family == AF_INET6)
		memcpy(ip, RTA_DATA(a), sizeof(*ip));
}

static void refuse(u32 seq)
{
	const struct nlmsgerr error = {.error = -EINVAL};

	begin(NLMSG_ERROR, 0, &error, sizeof(error));
	((struct nlmsghdr *)message)->nlmsg_seq = seq;
}

static void answer_with(const struct kernel_route *r, int family, u32 seq)
{
	struct __attribute__((packed)) {
		u16 family;
		struct in6_addr ip;
	} other = {.family = AF_INET6};

	begin_route(0, r->dst, family == AF_INET ? 32 : 128, IFINDEX + r->elsewhere);
	((struct nlmsghdr *)message)->nlmsg_seq = seq;
	((struct rtmsg *)(message + sizeof(struct nlmsghdr)))->rtm_flags = RTM_F_CLONED;
	if (r->via && family == AF_INET && strchr(r->via, ':')) {
		other.ip = address(r->via);
		attribute(RTA_VIA, &other, sizeof(other));
	} else if (r->via) {
		address_attribute(RTA_GATEWAY, r->via);
	}
}

static void route(const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	struct in6_addr dst = {0}, src = {0};
	const struct kernel_route *found = NULL;
	int left = (int)RTM_PAYLOAD(h);
	bool has_src = false, foreign;

	questions++;
	for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_DST)
			read_address(m->rtm_family, a, &dst);
		if (a->rta_type == RTA_SRC)
			read_address(m->rtm_family, a, &src);
		has_src |= a->rta_type == RTA_SRC;
		if (a->rta_type == RTA_DPORT)
			last_port = get_be16(RTA_DATA(a));
		if (a->rta_type == RTA_OIF)
			assert_int_equal(*(u32 *)RTA_DATA(a), IFINDEX);
	}
	foreign = has_src && is("198.51.100.1", &src);
	for (size_t i = 0; i < ARRAY_SIZE(kernel) && !found && !foreign; i++)
		if (kernel[i].dst && is(kernel[i].dst, &dst) &&
		    (!kernel[i].src || (has_src && is(kernel[i].src, &src))))
			found = &kernel[i];
	if (found)
		answer_with(found, m->rtm_family, h->nlmsg_seq);
	else
		refuse(h->nlmsg_seq);
	((struct nlmsghdr *)message)->nlmsg_len = (u32)filled;
	assert_int_equal(send(bench.address, message, filled, 0), filled);
}

/* --- the host --- */

/* Return: who was asked for his link address in frame @i */
static const char *wanted(int i)
{
	static char text[INET6_ADDRSTRLEN];
	const u8 *at = bench.sent[i].at;

	assert_int_equal(bench.num_sent, i + 1);
	if (get_be16(at) == IPOIB_ARP)
		return inet_ntop(AF_INET, at + IPOIB_ENCAP_BYTES + 52, text, sizeof(text));
	assert_int_equal(get_be16(at), IPOIB_IPV6);
	return inet_ntop(AF_INET6, at + IPOIB_ENCAP_BYTES + 48, text, sizeof(text));
}

static const char *next_hop_from(const char *src, const char *dst, const u8 udp[8])
{
	int before;

	run_ms(VERIFIED_MS);
	before = bench.num_sent;
	host_sends_packet(src, dst, IPPROTO_UDP, udp, 8);
	run_ms(100);
	return wanted(before);
}

/* Return: who is asked for when the host sends to @dst */
static const char *next_hop(const char *dst)
{
	int before = bench.num_sent;

	host_sends(dst);
	run_ms(100); /* the group of an IPv6 address is joined first */
	return wanted(before);
}

static int setup(void **state)
{
	int ret = bench_setup_open(state);

	memset(kernel, 0, sizeof(kernel));
	questions = 0;
	bench.route = route;
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

static void the_kernel_chooses_the_gateway(void **state)
{
	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	kernel[0] = (struct kernel_route){"10.7.0.2", NULL, "10.0.0.8"};
	kernel[1] = (struct kernel_route){"10.0.0.2", NULL, NULL};
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2"); /* the list has not ended */
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "10.0.0.8");
	assert_string_equal(next_hop("10.0.0.2"), "10.0.0.2");
	assert_string_equal(next_hop("192.0.2.1"), "192.0.2.1"); /* it has no route */
	assert_int_equal(questions, 4);
}

static void rules_look_at_the_source_and_the_port(void **state)
{
	u8 udp[8] = {0x12, 0x34, 0, 53};

	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	tell_done();
	kernel[0] = (struct kernel_route){"192.0.2.1", "10.0.0.7", "10.0.0.8"};
	kernel[1] = (struct kernel_route){"192.0.2.1", NULL, "10.0.0.9"};
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	assert_string_equal(next_hop_from("10.0.0.1", "192.0.2.1", udp), "10.0.0.9");
	assert_int_equal(last_port, 53);
	assert_string_equal(next_hop_from("10.0.0.7", "192.0.2.1", udp), "10.0.0.8");
}

/* about a source that is not the host's it answers with an error */
static void a_packet_that_is_forwarded_has_a_gateway_as_well(void **state)
{
	u8 udp[8] = {0};

	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	tell_done();
	kernel[0] = (struct kernel_route){"192.0.2.1", NULL, "10.0.0.9"};
	assert_string_equal(next_hop_from("198.51.100.1", "192.0.2.1", udp), "10.0.0.9");
	assert_int_equal(questions, 2);
}

static void answers_are_kept_until_something_changes(void **state)
{
	const struct fib_rule_hdr rule = {.family = AF_INET};

	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	tell_done();
	kernel[0] = (struct kernel_route){"192.0.2.1", NULL, "10.0.0.9"};
	assert_string_equal(next_hop("192.0.2.1"), "10.0.0.9");
	host_sends("192.0.2.1");
	assert_int_equal(questions, 1);
	kernel[0].via = "10.0.0.8";
	begin(RTM_NEWRULE, 0, &rule, sizeof(rule));
	tell();
	assert_string_equal(next_hop("192.0.2.1"), "10.0.0.8");
	kernel[0].via = "10.0.0.7";
	tell_change(RTM_DELROUTE);
	assert_string_equal(next_hop("192.0.2.1"), "10.0.0.7");
	kernel[0].via = "10.0.0.6"; /* by a redirect */
	run_ms(5001);
	assert_string_equal(next_hop("192.0.2.1"), "10.0.0.6");
	assert_int_equal(questions, 4);
}

static void families_do_not_mix(void **state)
{
	struct __attribute__((packed)) {
		u16 family;
		struct in6_addr ip;
	} via = {AF_INET6, address("fe80::9")};

	begin_route(NLM_F_MULTI, "10.7.0.0", 16, IFINDEX);
	attribute(RTA_VIA, &via, sizeof(via));
	tell();
	tell_done();
	kernel[0] = (struct kernel_route){"10.7.0.2", NULL, "fe80::9"};
	kernel[1] = (struct kernel_route){"2001:db8::1", NULL, "fe80::8"};
	assert_string_equal(next_hop("10.7.0.2"), "fe80::9");
	assert_string_equal(next_hop("2001:db8::1"), "fe80::8");
}

static void a_gateway_may_be_one_of_several(void **state)
{
	struct {
		struct rtnexthop hop;
		struct rtattr attr;
		u32 ip;
	} hops[2];

	for (int i = 0; i < 2; i++) {
		hops[i].hop = (struct rtnexthop){.rtnh_len = sizeof(hops[i]),
						 .rtnh_ifindex = IFINDEX + 1 - i};
		hops[i].attr = (struct rtattr){.rta_len = 8, .rta_type = RTA_GATEWAY};
		hops[i].ip = inet_addr("10.0.0.8");
	}
	begin_route(NLM_F_MULTI, "10.7.0.0", 16, 0);
	attribute(RTA_MULTIPATH, hops, sizeof(hops));
	tell();
	tell_done();
	kernel[0] = (struct kernel_route){"10.7.0.2", NULL, "10.0.0.8"};
	assert_string_equal(next_hop("10.7.0.2"), "10.0.0.8");
}

static void without_a_gateway_nothing_is_asked(void **state)
{
	begin_route(NLM_F_MULTI, "10.7.0.0", 16, IFINDEX + 1);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	tell();
	begin_route(NLM_F_MULTI, "10.8.0.0", 16, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	number_attribute(RTA_TABLE, RT_TABLE_LOCAL);
	tell();
	list_route("10.0.0.0", 8, NULL, 0);
	tell_done();
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2");
	assert_int_equal(questions, 0);
	begin_route(NLM_F_MULTI, "10.9.0.0", 16, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	number_attribute(RTA_TABLE, OTHER_TABLE);
	tell_change(RTM_NEWROUTE);
	begin_route(NLM_F_MULTI, "10.9.0.0", 16, IFINDEX);
	address_attribute(RTA_GATEWAY, "10.0.0.8");
	number_attribute(RTA_TABLE, OTHER_TABLE);
	tell();
	tell_done();
	kernel[0] = (struct kernel_route){"10.9.0.2", NULL, "10.0.0.8"};
	assert_string_equal(next_hop("10.9.0.2"), "10.0.0.8");
}

static void a_change_lists_them_again(void **state)
{
	list_route("10.7.0.0", 16, "10.0.0.9", 0);
	tell_done();
	assert_int_equal(asked(), 0);
	tell_change(RTM_DELROUTE);
	assert_int_equal(asked(), RTM_GETROUTE);
	tell_change(RTM_NEWLINK); /* while they are listed: once more */
	tell_change(RTM_NEWROUTE);
	assert_int_equal(asked(), 0);
	tell_done();
	assert_int_equal(asked(), RTM_GETROUTE);
	tell_done();
	assert_int_equal(asked(), 0);
}

/* An answer by another interface is of a rule that sees more than the packet. */
static void a_route_by_another_interface_is_no_answer(void **state)
{
	list_route("0.0.0.0", 0, "10.0.0.9", 0);
	tell_done();
	kernel[0] = (struct kernel_route){"10.7.0.2", NULL, "10.0.0.8", .elsewhere = true};
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2");
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
	assert_string_equal(next_hop("10.7.0.2"), "10.7.0.2");
	assert_int_equal(questions, 0);
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
		CASE(the_kernel_chooses_the_gateway),
		CASE(rules_look_at_the_source_and_the_port),
		CASE(a_packet_that_is_forwarded_has_a_gateway_as_well),
		CASE(answers_are_kept_until_something_changes),
		CASE(families_do_not_mix),
		CASE(a_gateway_may_be_one_of_several),
		CASE(without_a_gateway_nothing_is_asked),
		CASE(a_change_lists_them_again),
		CASE(a_route_by_another_interface_is_no_answer),
		CASE(a_kernel_without_room_is_asked_again),
		CASE(what_is_malformed_is_no_route),
		cmocka_unit_test_setup_teardown(what_is_not_listed_any_more_is_gone, bench_setup_open,
						bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
