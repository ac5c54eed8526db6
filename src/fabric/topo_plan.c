/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fabric/topo_plan.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology.h"

/* limits of a prefix's length: it must leave bits for networks and for hosts */
#define IPV4_BITS_MIN 8
#define IPV4_BITS_MAX 30
#define IPV6_BITS_MIN 16
#define IPV6_BITS_MAX 112

void topo_plan_init(struct topo_plan *plan)
{
	char err[128];

	topo_plan_set(plan, TOPO_PLAN_IPV4, err, sizeof(err));
	topo_plan_set(plan, TOPO_PLAN_IPV6, err, sizeof(err));
}

/* --- reading --------------------------------------------------------------- */

static uint64_t host_mask(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static int set_ipv4(struct topo_plan *plan, const struct in_addr *in, unsigned bits)
{
	uint32_t network = ntohl(in->s_addr);

	if (bits < IPV4_BITS_MIN || bits > IPV4_BITS_MAX ||
	    network & host_mask(32 - bits))
		return -EINVAL;
	plan->ipv4 = network;
	plan->ipv4_bits = bits;
	return 0;
}

static int set_ipv6(struct topo_plan *plan, const struct in6_addr *in, unsigned bits)
{
	uint64_t half[2];

	memcpy(half, in, sizeof(half));
	half[0] = be64toh(half[0]);
	half[1] = be64toh(half[1]);
	if (bits < IPV6_BITS_MIN || bits > IPV6_BITS_MAX ||
	    half[0] & (bits < 64 ? host_mask(64 - bits) : 0) ||
	    half[1] & (bits < 64 ? UINT64_MAX : host_mask(128 - bits)))
		return -EINVAL;
	memcpy(plan->ipv6, half, sizeof(half));
	plan->ipv6_bits = bits;
	return 0;
}

int topo_plan_set(struct topo_plan *plan, const char *text, char *err, size_t err_bytes)
{
	const char *slash = strchr(text, '/');
	char network[INET6_ADDRSTRLEN] = "", *end = NULL;
	long bits = slash ? strtol(slash + 1, &end, 10) : -1;
	struct in6_addr ipv6;
	struct in_addr ipv4;
	int error = -EINVAL;

	if (slash && slash - text < (ptrdiff_t)sizeof(network))
		snprintf(network, sizeof(network), "%.*s", (int)(slash - text), text);
	if (end && end != slash + 1 && !*end && bits >= 0 && bits <= 128) {
		if (inet_pton(AF_INET, network, &ipv4) == 1)
			error = set_ipv4(plan, &ipv4, (unsigned)bits);
		else if (inet_pton(AF_INET6, network, &ipv6) == 1)
			error = set_ipv6(plan, &ipv6, (unsigned)bits);
	}
	if (error)
		snprintf(err, err_bytes,
			 "'%s' is no network for nodes: expected one such as 10.1.0.0/16 "
			 "(/%d to "
			 "/%d) or fd00:1::/64 (/%d to /%d), with nothing behind its "
			 "prefix",
			 text, IPV4_BITS_MIN, IPV4_BITS_MAX, IPV6_BITS_MIN,
			 IPV6_BITS_MAX);
	return error;
}

/* --- room ------------------------------------------------------------------ */

int topo_plan_fit(const struct topo_plan *plan, const struct topology *topo, char *err,
		  size_t err_bytes)
{
	uint64_t hosts =
		host_mask(32 - plan->ipv4_bits) - 1; /* without the broadcast address */
	uint64_t networks =
		(UINT32_MAX - (uint64_t)plan->ipv4 + 1) >> (32 - plan->ipv4_bits);
	unsigned adapters = 0, ports = 1;

	for (int i = 0; i < topo->num_nodes; i++) {
		if (topo->node[i].kind != TOPO_CA)
			continue;
		adapters++;
		ports = MAX(ports, (unsigned)topo->node[i].num_ports);
	}
	if (adapters > hosts)
		snprintf(err, err_bytes,
			 "--ip: a network of /%u has %llu addresses, and the topology %u "
			 "adapters",
			 plan->ipv4_bits, (unsigned long long)hosts, adapters);
	else if (ports > networks)
		snprintf(err, err_bytes,
			 "--ip: adapters have up to %u ports, each in a network of its "
			 "own, and "
			 "from this one on there are %llu of /%u",
			 ports, (unsigned long long)networks, plan->ipv4_bits);
	return adapters > hosts || ports > networks ? -ENOSPC : 0;
}

/* --- addresses ------------------------------------------------------------- */

uint32_t topo_plan_ipv4_of(const struct topo_plan *plan, unsigned number, unsigned port)
{
	return plan->ipv4 + ((port - 1) << (32 - plan->ipv4_bits)) + number;
}

bool topo_plan_find_ipv4(const struct topo_plan *plan, uint32_t address, unsigned *number,
			 unsigned *port)
{
	uint32_t offset = address - plan->ipv4;

	*number = offset & (uint32_t)host_mask(32 - plan->ipv4_bits);
	*port = (offset >> (32 - plan->ipv4_bits)) + 1;
	return address > plan->ipv4 && *number;
}

const char *topo_plan_ipv4(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES])
{
	struct in_addr in = {.s_addr = htonl(topo_plan_ipv4_of(plan, number, port))};
	size_t n;

	inet_ntop(AF_INET, &in, text, TOPO_PLAN_BYTES);
	n = strlen(text);
	snprintf(text + n, TOPO_PLAN_BYTES - n, "/%u", plan->ipv4_bits);
	return text;
}

static void join_halves(uint64_t upper, uint64_t lower, struct in6_addr *address)
{
	uint64_t half[2] = {htobe64(upper), htobe64(lower)};

	memcpy(address, half, sizeof(*address));
}

static const char *print_ipv6(const struct in6_addr *address, unsigned bits,
			      char text[TOPO_PLAN_BYTES])
{
	size_t n;

	inet_ntop(AF_INET6, address, text, TOPO_PLAN_BYTES);
	n = strlen(text);
	snprintf(text + n, TOPO_PLAN_BYTES - n, "/%u", bits);
	return text;
}

void topo_plan_ipv6_of(const struct topo_plan *plan, unsigned number, unsigned port,
		       struct in6_addr *address)
{
	uint64_t half[2] = {plan->ipv6[0], plan->ipv6[1] + number}, next = port - 1;
	unsigned bits = plan->ipv6_bits;

	if (bits <= 64)
		half[0] += next << (64 - bits);
	else
		half[1] += next << (128 - bits);
	join_halves(half[0], half[1], address);
}

bool topo_plan_find_ipv6(const struct topo_plan *plan, const struct in6_addr *address,
			 unsigned *number, unsigned *port)
{
	unsigned bits = plan->ipv6_bits;
	struct in6_addr found;
	uint64_t half[2], network, host;

	memcpy(half, address, sizeof(half));
	half[0] = be64toh(half[0]) - plan->ipv6[0];
	half[1] = be64toh(half[1]) - plan->ipv6[1];
	network = bits <= 64 ? half[0] >> (64 - bits) : half[1] >> (128 - bits);
	host = bits <= 64 ? half[1] : half[1] & host_mask(128 - bits);
	if (!host || host > UINT32_MAX || network >= UINT32_MAX)
		return false;
	*number = (unsigned)host;
	*port = (unsigned)network + 1;
	/* what neither number holds must be zero */
	topo_plan_ipv6_of(plan, *number, *port, &found);
	return !memcmp(&found, address, sizeof(found));
}

const char *topo_plan_ipv6(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES])
{
	struct in6_addr in;

	topo_plan_ipv6_of(plan, number, port, &in);
	return print_ipv6(&in, plan->ipv6_bits, text);
}

const char *topo_plan_link_local(uint64_t guid, char text[TOPO_PLAN_BYTES])
{
	const uint64_t universal = 1ull << 57; /* of the modified EUI-64 */
	struct in6_addr in;

	join_halves(0xfe80ull << 48, guid | universal, &in);
	return print_ipv6(&in, 64, text);
}
