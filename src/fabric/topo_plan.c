/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fabric/topo_plan.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_address.h"

/* limits of a prefix's length: it must leave bits for networks and for hosts */
#define IPV4_BITS_MIN 8
#define IPV4_BITS_MAX 30
#define IPV6_BITS_MIN 16
#define IPV6_BITS_MAX 112

void topo_plan_init(struct topo_plan *plan)
{
	char err[128];

	plan->topo = NULL;
	plan->vlans = plan->ports = 0;
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
	uint32_t address = ntohl(in->s_addr), host;

	if (bits < IPV4_BITS_MIN || bits > IPV4_BITS_MAX)
		return -EINVAL;
	host = address & (uint32_t)host_mask(32 - bits);
	plan->ipv4 = address - host;
	plan->ipv4_bits = bits;
	plan->ipv4_skip = host ? host - 1 : 0;
	return 0;
}

static int set_ipv6(struct topo_plan *plan, const struct in6_addr *in, unsigned bits)
{
	uint64_t half[2], host;

	memcpy(half, in, sizeof(half));
	half[0] = be64toh(half[0]);
	half[1] = be64toh(half[1]);
	host = half[1] & (bits < 64 ? UINT64_MAX : host_mask(128 - bits));
	if (bits < IPV6_BITS_MIN || bits > IPV6_BITS_MAX || half[0] & (bits < 64 ? host_mask(64 - bits) : 0) ||
	    host > UINT32_MAX)
		return -EINVAL;
	half[1] -= host;
	memcpy(plan->ipv6, half, sizeof(half));
	plan->ipv6_bits = bits;
	plan->ipv6_skip = host ? (uint32_t)host - 1 : 0;
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
			 "/%d) or fd00:1::/64 (/%d to /%d), or the first node's address "
			 "in it",
			 text, IPV4_BITS_MIN, IPV4_BITS_MAX, IPV6_BITS_MIN,
			 IPV6_BITS_MAX);
	return error;
}

/* --- the plan alone --------------------------------------------------------- */

/* Return: the host part of the address of node @number; 0, the network's, for node 0 */
static uint32_t host_part(unsigned number, uint32_t skip)
{
	return number ? number + skip : 0;
}

/* Return: the node whose address has this host part; 0: none */
static unsigned node_of(uint64_t host, uint32_t skip)
{
	return host > skip ? (unsigned)(host - skip) : 0;
}

static uint32_t planned_ipv4(const struct topo_plan *plan, unsigned number, unsigned port)
{
	return plan->ipv4 + ((port - 1) << (32 - plan->ipv4_bits)) + host_part(number, plan->ipv4_skip);
}

static bool find_planned_ipv4(const struct topo_plan *plan, uint32_t address,
			      unsigned *number, unsigned *port)
{
	uint32_t offset = address - plan->ipv4;

	*number = node_of(offset & (uint32_t)host_mask(32 - plan->ipv4_bits), plan->ipv4_skip);
	*port = (offset >> (32 - plan->ipv4_bits)) + 1;
	return address > plan->ipv4 && *number;
}

static void join_halves(uint64_t upper, uint64_t lower, struct in6_addr *address)
{
	uint64_t half[2] = {htobe64(upper), htobe64(lower)};

	memcpy(address, half, sizeof(*address));
}

static void planned_ipv6(const struct topo_plan *plan, unsigned number, unsigned port,
			 struct in6_addr *address)
{
	uint64_t half[2] = {plan->ipv6[0], plan->ipv6[1] + host_part(number, plan->ipv6_skip)}, next = port - 1;
	unsigned bits = plan->ipv6_bits;

	if (bits <= 64)
		half[0] += next << (64 - bits);
	else
		half[1] += next << (128 - bits);
	join_halves(half[0], half[1], address);
}

static bool find_planned_ipv6(const struct topo_plan *plan, const struct in6_addr *address,
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
	if (host > UINT32_MAX || network >= UINT32_MAX)
		return false;
	*number = node_of(host, plan->ipv6_skip);
	if (!*number)
		return false;
	*port = (unsigned)network + 1;
	/* what neither number holds must be zero */
	planned_ipv6(plan, *number, *port, &found);
	return !memcmp(&found, address, sizeof(found));
}

static uint32_t ipv4_of_mapped(const struct in6_addr *ip)
{
	uint32_t address;

	memcpy(&address, &ip->s6_addr[12], sizeof(address));
	return ntohl(address);
}

/* @ip: IPv4-mapped for IPv4. Return: false: it is outside of the plan */
static bool find_planned(const struct topo_plan *plan, const struct in6_addr *ip,
			 unsigned *number, unsigned *port)
{
	return IN6_IS_ADDR_V4MAPPED(ip) ? find_planned_ipv4(plan, ipv4_of_mapped(ip), number, port) :
					  find_planned_ipv6(plan, ip, number, port);
}

/* --- networks -------------------------------------------------------------- */

unsigned topo_plan_network(const struct topo_plan *plan, unsigned port, unsigned vlan)
{
	return vlan * plan->ports + port;
}

unsigned topo_plan_vlan(const struct topo_plan *plan, unsigned *port)
{
	unsigned vlan = plan->vlans ? (*port - 1) / plan->ports : 0;

	*port -= vlan * plan->ports;
	return vlan;
}

/* --- room ------------------------------------------------------------------ */

static unsigned most_ports(const struct topology *topo)
{
	unsigned most = 1;

	for (int i = 0; i < topo->num_nodes; i++)
		if (topo->node[i].kind == TOPO_CA)
			most = MAX(most, topo->node[i].ports_before + topo->node[i].num_ports);
	return most;
}

static int check_room(const struct topo_plan *plan, const struct topology *topo, char *err,
		      size_t err_bytes)
{
	uint64_t hosts =
		host_mask(32 - plan->ipv4_bits) - 1 - plan->ipv4_skip; /* without the broadcast address */
	uint64_t networks =
		(UINT32_MAX - (uint64_t)plan->ipv4 + 1) >> (32 - plan->ipv4_bits);
	unsigned nodes = 0, ports = 1, of_vlans = plan->vlans * plan->ports;

	for (int i = 0; i < topo->num_nodes; i++) {
		const struct topo_node *nd = &topo->node[i];

		if (nd->kind != TOPO_CA)
			continue;
		for (unsigned p = 1; p <= nd->num_ports; p++) {
			if (!of_vlans && topo_address(topo, nd->number, nd->ports_before + p, false))
				continue;
			nodes = MAX(nodes, nd->number);
			ports = MAX(ports, nd->ports_before + p);
		}
	}
	ports += of_vlans;
	if (nodes > hosts)
		snprintf(err, err_bytes,
			 "--ip: a network of /%u has %llu addresses, and the topology %u "
			 "nodes with adapters",
			 plan->ipv4_bits, (unsigned long long)hosts, nodes);
	else if (ports > networks)
		snprintf(err, err_bytes,
			 "--ip: nodes have up to %u ports and VLAN interfaces, each in a network "
			 "of its own, and "
			 "from this one on there are %llu of /%u",
			 ports, (unsigned long long)networks, plan->ipv4_bits);
	return nodes > hosts || ports > networks ? -ENOSPC : 0;
}

static bool has_port(const struct topo_plan *plan, const struct topology *topo, unsigned number,
		     unsigned port)
{
	topo_plan_vlan(plan, &port);
	for (int i = 0; i < topo->num_nodes; i++)
		if (topo->node[i].kind == TOPO_CA && topo->node[i].number == number)
			return topo_host_adapter(topo, topo->node[i].host, &port) >= 0;
	return false;
}

/* Does any port have by the plan what the topology gives to another? */
static int check_given(const struct topo_plan *plan, const struct topology *topo, char *err,
		       size_t err_bytes)
{
	for (int i = 0; i < topo->num_addresses; i++) {
		const struct topo_address *a = &topo->address[i];
		char text[TOPO_ADDRESS_BYTES];
		unsigned number, port;

		if (!find_planned(plan, &a->ip, &number, &port) ||
		    topo_address(topo, number, port, !IN6_IS_ADDR_V4MAPPED(&a->ip)) ||
		    !has_port(plan, topo, number, port))
			continue;
		snprintf(err, err_bytes,
			 "the topology gives %s to node %u, and it would be that of port %u of "
			 "node %u: give this one an address as well, or choose another network "
			 "with --ip",
			 topo_address_text(a, text), a->number, port, number);
		return -EADDRINUSE;
	}
	return 0;
}

int topo_plan_fit(struct topo_plan *plan, const struct topology *topo, char *err,
		  size_t err_bytes)
{
	int error;

	plan->ports = most_ports(topo);
	error = check_room(plan, topo, err, err_bytes);
	if (!error)
		error = check_given(plan, topo, err, err_bytes);
	if (!error)
		plan->topo = topo;
	return error;
}

/* --- addresses ------------------------------------------------------------- */

/* Return: the address that the topology gives to the port; NULL */
static const struct topo_address *given(const struct topo_plan *plan, unsigned number,
					unsigned port, bool ipv6)
{
	return plan->topo ? topo_address(plan->topo, number, port, ipv6) : NULL;
}

/* Who has @ip? The topology's own addresses are few. */
static bool find_port(const struct topo_plan *plan, const struct in6_addr *ip,
		      unsigned *number, unsigned *port)
{
	for (int i = 0; plan->topo && i < plan->topo->num_addresses; i++) {
		const struct topo_address *a = &plan->topo->address[i];

		if (memcmp(&a->ip, ip, sizeof(*ip)) != 0)
			continue;
		*number = a->number;
		*port = a->port;
		return true;
	}
	return find_planned(plan, ip, number, port) &&
	       !given(plan, *number, *port, !IN6_IS_ADDR_V4MAPPED(ip));
}

uint32_t topo_plan_ipv4_of(const struct topo_plan *plan, unsigned number, unsigned port)
{
	const struct topo_address *own = given(plan, number, port, false);

	return own ? ipv4_of_mapped(&own->ip) : planned_ipv4(plan, number, port);
}

bool topo_plan_find_ipv4(const struct topo_plan *plan, uint32_t address, unsigned *number,
			 unsigned *port)
{
	struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	address = htonl(address);
	memcpy(&mapped.s6_addr[12], &address, sizeof(address));
	return find_port(plan, &mapped, number, port);
}

const char *topo_plan_ipv4(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES])
{
	struct in_addr in = {.s_addr = htonl(planned_ipv4(plan, number, port))};
	const struct topo_address *own = given(plan, number, port, false);
	size_t n;

	if (own)
		return topo_address_text(own, text);
	inet_ntop(AF_INET, &in, text, TOPO_PLAN_BYTES);
	n = strlen(text);
	snprintf(text + n, TOPO_PLAN_BYTES - n, "/%u", plan->ipv4_bits);
	return text;
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
	const struct topo_address *own = given(plan, number, port, true);

	if (own)
		*address = own->ip;
	else
		planned_ipv6(plan, number, port, address);
}

bool topo_plan_find_ipv6(const struct topo_plan *plan, const struct in6_addr *address,
			 unsigned *number, unsigned *port)
{
	return !IN6_IS_ADDR_V4MAPPED(address) && find_port(plan, address, number, port);
}

const char *topo_plan_ipv6(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES])
{
	const struct topo_address *own = given(plan, number, port, true);
	struct in6_addr in;

	if (own)
		return topo_address_text(own, text);
	planned_ipv6(plan, number, port, &in);
	return print_ipv6(&in, plan->ipv6_bits, text);
}

static bool find_text(const struct topo_plan *plan, const char *text, unsigned *number, unsigned *port)
{
	struct in_addr ipv4;
	struct in6_addr ipv6;

	if (inet_pton(AF_INET, text, &ipv4) == 1)
		return topo_plan_find_ipv4(plan, ntohl(ipv4.s_addr), number, port);
	return inet_pton(AF_INET6, text, &ipv6) == 1 && topo_plan_find_ipv6(plan, &ipv6, number, port);
}

int topo_plan_find_host(const struct topo_plan *plan, const char *text)
{
	const struct topology *topo = plan->topo;
	unsigned number, port;

	if (!topo || !find_text(plan, text, &number, &port))
		return -1;
	topo_plan_vlan(plan, &port);
	for (int i = 0; i < topo->num_nodes; i++)
		if (topo->node[i].number == number)
			return topo_host_adapter(topo, i, &port) < 0 ? -1 : i;
	return -1;
}

const char *topo_plan_link_local(uint64_t guid, char text[TOPO_PLAN_BYTES])
{
	const uint64_t universal = 1ull << 57; /* of the modified EUI-64 */
	struct in6_addr in;

	join_halves(0xfe80ull << 48, guid | universal, &in);
	return print_ipv6(&in, 64, text);
}
