/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* IP over InfiniBand: addresses that two hosts have (RFC 5227, RFC 4862). */
#include "ipoib_bench.h"

static const struct ipoib_link peer = {.qpn = 0x48, .gid = {.raw = {0xfe, 0x80, [15] = 12}}};

#define NONE "0.0.0.0"

/* --- what is sent and received -------------------------------------------------- */

struct seen {
	bool v4;
	int op;
	u32 qpn;
	struct in6_addr sender_ip, target_ip;
};

/* frame @i: an ARP packet, a neighbour solicitation or an advertisement */
static struct seen seen(int i)
{
	const struct bench_frame *f = &bench.sent[i];
	const u8 *at = f->at + IPOIB_ENCAP_BYTES;
	struct seen s = {.qpn = f->qpn, .v4 = get_be16(f->at) == IPOIB_ARP};

	assert_true(i < bench.num_sent);
	if (s.v4) {
		assert_int_equal(f->bytes, IPOIB_ENCAP_BYTES + IPOIB_ARP_BYTES);
		s.op = get_be16(at + 6);
		s.sender_ip = ipoib_from_v4(*(__be32 *)(at + 28));
		s.target_ip = ipoib_from_v4(*(__be32 *)(at + 52));
		return s;
	}
	assert_int_equal(get_be16(f->at), IPOIB_IPV6);
	s.op = at[40] == 135 ? IPOIB_REQUEST : IPOIB_REPLY;
	memcpy(&s.sender_ip, at + 8, 16);
	memcpy(&s.target_ip, at + 48, 16);
	return s;
}

static void assert_sent(int i, const char *sender_ip, const char *target_ip)
{
	struct seen s = seen(i);
	struct in6_addr sender = address(sender_ip), target = address(target_ip);

	assert_int_equal(s.qpn, IB_MULTICAST_QPN);
	assert_memory_equal(&s.sender_ip, &sender, sizeof(sender));
	assert_memory_equal(&s.target_ip, &target, sizeof(target));
}

static void nd(enum ipoib_ask op, const struct ipoib_link *link, const char *from_ip,
	       const char *to_ip, const char *about)
{
	struct in6_addr from = address(from_ip), to = address(to_ip), target = address(about);
	u8 packet[IPOIB_ND_BYTES];

	bench_arrives(&peer, IPOIB_IPV6, packet,
		      ipoib_put_nd(packet, op, link, &from, &to, &target));
	run_ms(10);
}

/* --- what is known ------------------------------------------------------------- */

static int reports, duplicates;

static void report(const struct ipoib *p, const struct ipoib_own_address *a)
{
	assert_ptr_equal(p, bench_interface());
	reports++;
	duplicates += a->duplicate;
}

static u64 conflicts(void)
{
	return ipoib_stats(bench_interface())->conflicts;
}

static int count_duplicate(void *ctx, const struct ipoib_own_address *a)
{
	*(int *)ctx += a->duplicate;
	return 0;
}

static int duplicates_known(void)
{
	int n = 0;

	ipoib_each_address(bench_interface(), count_duplicate, &n);
	return n;
}

static int setup(void **state)
{
	reports = duplicates = 0;
	ipoib_report_conflicts(report);
	return bench_setup_open(state);
}

static int teardown(void **state)
{
	ipoib_report_conflicts(NULL);
	return bench_teardown(state);
}

/* --- IPv4 ------------------------------------------------------------------------ */

static void a_new_address_is_probed_and_announced(void **state)
{
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	run_ms(VERIFIED_MS);
	assert_int_equal(bench.num_sent, 2);
	assert_sent(0, NONE, "10.0.0.7");
	assert_sent(1, "10.0.0.7", "10.0.0.7");
	run_ms(60000);
	assert_int_equal(bench.num_sent, 2); /* that was all */
	assert_int_equal(conflicts() + (u64)reports, 0);
}

static void who_answers_a_probe_keeps_the_address(void **state)
{
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	run_ms(1000);
	assert_true(bench.num_sent >= 1);
	arp(IPOIB_REPLY, &peer, "10.0.0.7", NONE);
	assert_int_equal(conflicts(), 1);
	assert_true(reports == 1 && duplicates == 1);
	assert_int_equal(duplicates_known(), 1);
	bench.num_sent = 0;
	run_ms(60000);
	assert_int_equal(bench.num_sent, 0); /* neither announced nor defended */
	arp(IPOIB_REQUEST, &peer, "10.0.0.9", "10.0.0.7");
	assert_int_equal(bench.num_sent, 0); /* nor answered for */
	host_has("10.0.0.7", 16, RTM_DELADDR);
	assert_int_equal(duplicates_known(), 0);
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	run_ms(VERIFIED_MS);
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(duplicates_known(), 0);
}

/* each probes, and hears the other's probe and the first announcement */
static void of_two_that_verify_the_first_to_announce_wins(void **state)
{
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	run_ms(1000);
	assert_int_equal(bench.num_sent, 1);
	arp(IPOIB_REQUEST, &peer, NONE, "10.0.0.7");
	assert_int_equal(bench.num_sent, 1); /* undecided */
	arp(IPOIB_REQUEST, &peer, "10.0.0.7", "10.0.0.7");
	assert_int_equal(duplicates_known(), 1);
	run_ms(VERIFIED_MS);
	assert_int_equal(bench.num_sent, 1); /* the peer hears nothing that it would have to defend against */
}

static void probes_of_others_are_answered_to_all(void **state)
{
	arp(IPOIB_REQUEST, &peer, NONE, "10.0.0.1");
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(seen(0).op, IPOIB_REPLY);
	assert_sent(0, "10.0.0.1", NONE);
	assert_int_equal(conflicts(), 0); /* to ask is not to claim */
	arp(IPOIB_REQUEST, &peer, NONE, "10.0.0.9");
	assert_int_equal(bench.num_sent, 1);
}

static void an_address_is_defended_once_in_ten_seconds(void **state)
{
	for (int i = 0; i < 5; i++)
		arp(IPOIB_REQUEST, &peer, "10.0.0.1", "10.0.0.1");
	assert_int_equal(bench.num_sent, 1);
	assert_sent(0, "10.0.0.1", "10.0.0.1");
	assert_int_equal(conflicts(), 5);
	assert_true(reports == 1 && !duplicates && !duplicates_known());
	run_ms(10000);
	arp(IPOIB_REPLY, &peer, "10.0.0.1", "10.0.0.9");
	assert_int_equal(bench.num_sent, 2);
	assert_sent(1, "10.0.0.1", "10.0.0.1");
	assert_int_equal(reports, 2);
}

/* its packets come back from the groups, or by another port */
static void ones_own_messages_are_no_conflict(void **state)
{
	struct ipoib_link own = *ipoib_own_link(bench_interface());

	own.connected = true;
	arp(IPOIB_REQUEST, &own, "10.0.0.1", "10.0.0.1");
	bench.num_sent = 0;
	assert_int_equal(conflicts(), 0);
	assert_int_equal(reports, 0);
}

static void a_link_that_returns_is_asked_anew(void **state)
{
	host_has("10.0.0.1", 16, RTM_DELADDR);
	host_has("10.0.0.7", 16, RTM_NEWADDR);
	run_ms(1000);
	arp(IPOIB_REPLY, &peer, "10.0.0.7", NONE);
	assert_int_equal(duplicates_known(), 1);
	port_event(IB_EVENT_PORT_ERR);
	port_event(IB_EVENT_PORT_ACTIVE);
	bench.num_sent = 0;
	run_ms(VERIFIED_MS);
	assert_int_equal(duplicates_known(), 0);
	assert_true(bench.num_sent >= 2);
	assert_sent(bench.num_sent - 1, "10.0.0.7", "10.0.0.7");
}

/* --- IPv6 ------------------------------------------------------------------------- */

static void an_ipv6_address_is_solicited(void **state)
{
	host_has_with("fe80::7", 64, RTM_NEWADDR, IFA_F_NODAD);
	run_ms(VERIFIED_MS);
	assert_int_equal(bench.num_sent, 1);
	assert_sent(0, "::", "fe80::7");
	host_has_with("fe80::8", 64, RTM_NEWADDR, IFA_F_NODAD);
	run_ms(1000);
	nd(IPOIB_REPLY, &peer, "fe80::8", "ff02::1", "fe80::8");
	assert_true(duplicates_known() == 1 && duplicates == 1);
	nd(IPOIB_REPLY, &peer, "fe80::7", "ff02::1", "fe80::7"); /* that one is settled */
	assert_sent(bench.num_sent - 1, "fe80::7", "fe80::7");
	assert_int_equal(seen(bench.num_sent - 1).op, IPOIB_REPLY);
	assert_true(reports == 2 && duplicates_known() == 1);
}

/* what Linux says while it verifies an address, and when it has found another's */
static void the_host_verifies_with_the_fabrics_answers(void **state)
{
	u8 got[IPOIB_MTU];

	host_has_with("fe80::7", 64, RTM_NEWADDR, IFA_F_TENTATIVE);
	run_ms(VERIFIED_MS);
	assert_int_equal(bench.num_sent, 0);
	nd(IPOIB_REQUEST, NULL, "fe80::9", "ff02::1:ff00:7", "fe80::7"); /* it is not its own yet */
	assert_int_equal(bench.num_sent, 0);
	assert_int_equal(host_hears(got), 0);
	nd(IPOIB_REQUEST, NULL, "::", "ff02::1:ff00:7", "fe80::7"); /* who verifies it, too */
	assert_int_equal(host_hears(got), 64);
	assert_int_equal(got[40], 135);
	nd(IPOIB_REPLY, &peer, "fe80::7", "ff02::1", "fe80::7");
	assert_int_equal(host_hears(got), 64); /* without a link address */
	assert_int_equal(got[40], 136);
	assert_int_equal(reports, 0);
	host_has_with("fe80::7", 64, RTM_NEWADDR, IFA_F_TENTATIVE | IFA_F_DADFAILED);
	assert_true(reports == 1 && duplicates == 1 && duplicates_known() == 1);
	assert_int_equal(conflicts(), 1);
	nd(IPOIB_REQUEST, NULL, "::", "ff02::1:ff00:7", "fe80::7");
	assert_int_equal(bench.num_sent, 0); /* it does not defend what is another's */
}

static void the_host_hears_nothing_of_its_own_addresses(void **state)
{
	u8 got[IPOIB_MTU];

	nd(IPOIB_REQUEST, NULL, "::", "ff02::1:ff00:1", "fe80::1");
	assert_int_equal(bench.num_sent, 1);
	assert_sent(0, "fe80::1", "fe80::1");
	nd(IPOIB_REPLY, &peer, "fe80::1", "ff02::1", "fe80::1");
	assert_int_equal(host_hears(got), 0);
	assert_int_equal(conflicts(), 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_new_address_is_probed_and_announced),
		CASE(who_answers_a_probe_keeps_the_address),
		CASE(of_two_that_verify_the_first_to_announce_wins),
		CASE(probes_of_others_are_answered_to_all),
		CASE(an_address_is_defended_once_in_ten_seconds),
		CASE(ones_own_messages_are_no_conflict),
		CASE(a_link_that_returns_is_asked_anew),
		CASE(an_ipv6_address_is_solicited),
		CASE(the_host_verifies_with_the_fabrics_answers),
		CASE(the_host_hears_nothing_of_its_own_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
