/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The IP addresses that a topology file gives to ports of adapters, in comments that other
 * programs skip: "ip=10.7.0.5/16" in the comment of an adapter's line is the address of its
 * port 1, in that of a port's line the address of this port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_parse.h"
#include "runtime/rt.h"

#define MAPPED_BITS 96 /* of an IPv4-mapped address before the IPv4 address */

/* --- one address ----------------------------------------------------------- */

/* are all bits of @ip from bit @from on equal to @value? */
static bool bits_are(const struct in6_addr *ip, unsigned from, unsigned value)
{
	for (unsigned i = from; i < 128; i++)
		if ((ip->s6_addr[i / 8] >> (7 - i % 8) & 1u) != value)
			return false;
	return true;
}

static bool is_ipv4_of_host(const struct topo_address *a)
{
	unsigned first = a->ip.s6_addr[12], bits = a->prefix_bits;

	return bits >= MAPPED_BITS + 1 && bits <= 128 && first && first != 127 && first < 224 &&
	       (bits > 126 || (!bits_are(&a->ip, bits, 0) && !bits_are(&a->ip, bits, 1)));
}

/* An interface's link-local address follows from its GUID. */
static bool is_ipv6_of_host(const struct topo_address *a)
{
	const struct in6_addr *ip = &a->ip;

	return a->prefix_bits >= 1 && a->prefix_bits <= 128 && !IN6_IS_ADDR_MULTICAST(ip) &&
	       !IN6_IS_ADDR_LINKLOCAL(ip) && !IN6_IS_ADDR_UNSPECIFIED(ip) &&
	       !IN6_IS_ADDR_LOOPBACK(ip) && !IN6_IS_ADDR_V4MAPPED(ip);
}

/* "10.7.0.5/16" or "fd00:7::5/64". Return: is it an address that a host can have? */
static bool read_address(const char *text, struct topo_address *a)
{
	const char *slash = strchr(text, '/');
	char ip[INET6_ADDRSTRLEN], *end;
	unsigned long bits;

	if (!slash || slash[1] < '0' || slash[1] > '9' || slash - text >= (ptrdiff_t)sizeof(ip))
		return false;
	snprintf(ip, sizeof(ip), "%.*s", (int)(slash - text), text);
	bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > 128)
		return false;
	a->prefix_bits = (uint8_t)bits;
	if (strchr(ip, ':'))
		return inet_pton(AF_INET6, ip, &a->ip) == 1 && is_ipv6_of_host(a);
	a->ip = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	a->prefix_bits = (uint8_t)MIN(bits + MAPPED_BITS, 255ul);
	return inet_pton(AF_INET, ip, &a->ip.s6_addr[12]) == 1 && is_ipv4_of_host(a);
}

static int add(struct parser *ps, const struct given *new)
{
	struct given *grown;
	int room = ps->given_room ? 2 * ps->given_room : 64;

	if (ps->givens == ps->given_room) {
		grown = rt_zalloc((size_t)room * sizeof(*grown));
		if (!grown)
			return build_fail(&ps->b, -ENOMEM, "out of memory");
		if (ps->givens)
			memcpy(grown, ps->given, (size_t)ps->givens * sizeof(*grown));
		rt_free(ps->given);
		ps->given = grown;
		ps->given_room = room;
	}
	ps->given[ps->givens++] = *new;
	return 0;
}

int parse_address(struct parser *ps, struct scan *sc, int node, int port)
{
	struct given given = {.line = ps->line, .node = node, .address = {.port = (unsigned)port}};
	char text[INET6_ADDRSTRLEN + sizeof("/128")];
	size_t n = 0;

	while (sc->at + n < sc->end && sc->at[n] != ' ' && sc->at[n] != '\t')
		n++;
	snprintf(text, sizeof(text), "%.*s", (int)MIN(n, sizeof(text)), sc->at);
	if (n >= sizeof(text) || !read_address(text, &given.address))
		return parse_fail(ps, "\"ip=%s\" is no address of a host; expected one with the "
				      "length of its prefix, such as ip=10.7.0.5/16 or ip=fd00:7::5/64",
				  text);
	sc->at += n;
	if (ps->b.topo->node[node].kind != TOPO_CA)
		return parse_fail(ps, "ip=%s: only adapters have IP addresses; expected it in the "
				      "record of an adapter", text);
	return add(ps, &given);
}

/* --- all of them ------------------------------------------------------------ */

static bool is_ipv6(const struct topo_address *a)
{
	return !IN6_IS_ADDR_V4MAPPED(&a->ip);
}

static int by_ip(const void *a, const void *b)
{
	const struct given *x = a, *y = b;
	int order = memcmp(&x->address.ip, &y->address.ip, sizeof(x->address.ip));

	return order ? order : x->line - y->line;
}

static int compare_ports(const struct topo_address *a, const struct topo_address *b)
{
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	if (a->port != b->port)
		return a->port < b->port ? -1 : 1;
	return is_ipv6(a) - is_ipv6(b);
}

static int by_port(const void *a, const void *b)
{
	const struct given *x = a, *y = b;
	int order = compare_ports(&x->address, &y->address);

	return order ? order : x->line - y->line;
}

/* A node's port is counted over its adapters. */
static void set_numbers(struct parser *ps)
{
	for (int i = 0; i < ps->givens; i++) {
		struct topo_address *a = &ps->given[i].address;
		const struct topo_node *nd = &ps->b.topo->node[ps->given[i].node];

		a->number = nd->number;
		a->port += nd->ports_before;
	}
}

/* Return: 0; -EINVAL two of them, one behind the other in the order of @compare, clash */
static int check(struct parser *ps, bool same_ip)
{
	for (int i = 1; i < ps->givens; i++) {
		const struct given *a = &ps->given[i - 1], *b = &ps->given[i];

		if (same_ip ? memcmp(&a->address.ip, &b->address.ip, sizeof(a->address.ip)) :
			      compare_ports(&a->address, &b->address))
			continue;
		ps->line = b->line;
		return parse_fail(ps, same_ip ? "the address of line %d again; expected one for "
						"each port" :
						"port %2$u has an address of this kind in line %1$d; "
						"expected one IPv4 and one IPv6 address",
				  a->line, b->address.port - ps->b.topo->node[b->node].ports_before);
	}
	return 0;
}

int parse_addresses(struct parser *ps)
{
	struct topology *topo = ps->b.topo;
	int error;

	if (!ps->givens)
		return 0;
	set_numbers(ps);
	qsort(ps->given, (size_t)ps->givens, sizeof(*ps->given), by_ip);
	error = check(ps, true);
	qsort(ps->given, (size_t)ps->givens, sizeof(*ps->given), by_port);
	error = error ? error : check(ps, false);
	if (error)
		return error;
	topo->address = rt_zalloc((size_t)ps->givens * sizeof(*topo->address));
	if (!topo->address)
		return build_fail(&ps->b, -ENOMEM, "out of memory");
	for (int i = 0; i < ps->givens; i++)
		topo->address[i] = ps->given[i].address;
	topo->num_addresses = ps->givens;
	return 0;
}

static int of_port(const void *key, const void *address)
{
	return compare_ports(key, address);
}

const struct topo_address *topo_address(const struct topology *topo, unsigned number,
					unsigned port, bool ipv6)
{
	struct topo_address key = {.number = number, .port = port};

	if (!topo->num_addresses)
		return NULL;
	if (!ipv6)
		key.ip = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	return bsearch(&key, topo->address, (size_t)topo->num_addresses, sizeof(key), of_port);
}

const char *topo_address_text(const struct topo_address *a, char text[TOPO_ADDRESS_BYTES])
{
	bool v6 = is_ipv6(a);
	size_t n;

	inet_ntop(v6 ? AF_INET6 : AF_INET, &a->ip.s6_addr[v6 ? 0 : 12], text, TOPO_ADDRESS_BYTES);
	n = strlen(text);
	snprintf(text + n, TOPO_ADDRESS_BYTES - n, "/%u", a->prefix_bits - (v6 ? 0 : MAPPED_BITS));
	return text;
}
