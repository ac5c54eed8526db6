/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A node's IP addresses: on its interfaces, by rtnetlink(7), and those of all nodes in
 * /etc/hosts, with the order in which a name's are tried. Which they are is softibd's plan.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"
#include "netdev.h"
#include "node_namespaces.h"

#define HOSTS "/etc/hosts"

/* --- interfaces -------------------------------------------------------------- */

/** struct add_address - RTM_NEWADDR with one attribute */
struct add_address {
	struct nlmsghdr head;
	struct ifaddrmsg body;
	struct rtattr attr;
	unsigned char address[sizeof(struct in6_addr)];
};

/* @text: "10.1.0.7/16". Return: 0; -EINVAL */
static int fill_request(struct add_address *req, const char *interface, const char *text,
			bool whole)
{
	char address[INET6_ADDRSTRLEN];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	const char *slash = strchr(text, '/');
	size_t bytes = family == AF_INET6 ? 16 : 4;

	if (!slash || slash - text >= (ptrdiff_t)sizeof(address))
		return -EINVAL;
	snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
	if (inet_pton(family, address, req->address) != 1)
		return -EINVAL;
	req->body.ifa_family = (uint8_t)family;
	req->body.ifa_prefixlen =
		(uint8_t)(whole ? bytes * 8 : strtoul(slash + 1, NULL, 10));
	req->body.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
	req->body.ifa_index = if_nametoindex(interface);
	req->attr.rta_type = IFA_LOCAL;
	req->attr.rta_len = (uint16_t)RTA_LENGTH(bytes);
	req->head.nlmsg_type = RTM_NEWADDR;
	req->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
	req->head.nlmsg_len =
		(uint32_t)(NLMSG_LENGTH(sizeof(req->body)) + RTA_LENGTH(bytes));
	return 0;
}

/* Until its adapter has an interface of its own the node itself has the address: its
 * own name leads to it, and nothing leads to another node. */
int node_add_address(const char *interface, const char *text)
{
	bool exists = if_nametoindex(interface), link_local = !strncmp(text, "fe80:", 5);
	struct add_address req = {.head = {0}};
	int error;

	if (!*text || (link_local && !exists))
		return 0;
	error = fill_request(&req, exists ? interface : "lo", text, !exists);
	if (!error)
		error = netdev_ask_kernel(&req.head);
	/* a kernel without IPv6 has no addresses of it to give */
	return strchr(text, ':') && (error == -EOPNOTSUPP || error == -EAFNOSUPPORT ||
				     error == -EACCES)
		       ? 0
		       : error;
}

/* Return: 0; -errno */
static int add_all(struct json_object *list)
{
	static const char *const kinds[] = {"ipv4", "ipv6", "link_local"};
	int error = 0;

	for (size_t i = 0; i < count_of(list) * ARRAY_SIZE(kinds) && !error; i++) {
		struct json_object *each = item_of(list, i / ARRAY_SIZE(kinds));
		const char *kind = kinds[i % ARRAY_SIZE(kinds)];

		error = node_add_address(text_of(each, "interface"), text_of(each, kind));
	}
	return error;
}

int node_add_addresses(struct json_object *node)
{
	int error = add_all(member_of(node, "addresses"));

	return error ? error : add_all(member_of(node, "vlans"));
}

/* --- names ------------------------------------------------------------------- */

/* NAME or, of an interface but the first, NAME-ib1; what is no host name is none */
static void print_host(FILE *out, struct json_object *node, struct json_object *each, bool is_first)
{
	static const char *const kinds[] = {"ipv4", "ipv6"};
	const char *name = text_of(node, "name");

	if (strpbrk(name, " \t\n#"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *address = text_of(each, kinds[i]);

		fprintf(out, "%.*s\t%s", (int)strcspn(address, "/"), address, name);
		if (!is_first)
			fprintf(out, "-%s", text_of(each, "interface"));
		fputc('\n', out);
	}
}

static void copy_hosts(FILE *out)
{
	FILE *in = fopen(HOSTS, "re");
	char text[4096];
	size_t n;

	while (in && (n = fread(text, 1, sizeof(text), in)) > 0)
		fwrite(text, 1, n, out);
	if (in)
		fclose(in);
}

static int write_hosts(const char *path, struct json_object *nodes)
{
	FILE *out = fopen(path, "we");
	bool failed;

	if (!out)
		return -errno;
	fputs("# the nodes of the fabric, by softib; then the machine's own\n", out);
	for (size_t i = 0; i < count_of(nodes); i++) {
		struct json_object *node = item_of(nodes, i);
		struct json_object *list = member_of(node, "addresses");
		bool is_first = !strcmp(text_of(node, "name"), text_of(node, "host"));

		for (size_t a = 0; is_first && a < count_of(list); a++)
			print_host(out, node, item_of(list, a), !a);
		list = member_of(node, "vlans");
		for (size_t a = 0; is_first && a < count_of(list); a++)
			print_host(out, node, item_of(list, a), false);
	}
	copy_hosts(out);
	fchmod(fileno(out), 0644);
	failed = ferror(out);
	failed |= fclose(out);
	return failed ? -EIO : 0;
}

/* RFC 6724 section 2.1, where a unique local address comes behind an IPv4 one. The C library has the
 * table of RFC 3484, by which the name of a node led to its IPv6 address; and many servers of RDMA
 * programs listen on IPv4 addresses alone. */
static int write_precedence(const char *path, struct json_object *unused)
{
	FILE *out = fopen(path, "we");
	bool failed;

	if (!out)
		return -errno;
	fputs("# which address of a name is tried first: RFC 6724 section 2.1, by softib\n"
	      "precedence ::1/128 50\n"
	      "precedence ::/0 40\n"
	      "precedence ::ffff:0:0/96 35\n"
	      "precedence 2002::/16 30\n"
	      "precedence 2001::/32 5\n"
	      "precedence fc00::/7 3\n"
	      "precedence ::/96 1\n"
	      "precedence fec0::/10 1\n"
	      "precedence 3ffe::/16 1\n",
	      out);
	fchmod(fileno(out), 0644);
	failed = ferror(out);
	failed |= fclose(out);
	return failed ? -EIO : 0;
}

/** struct laid - a file of the fabric that takes the place of one of the machine's */
static const struct laid {
	const char *name, *path;
	int (*write)(const char *path, struct json_object *nodes);
} laid[] = {
	{"hosts", HOSTS, write_hosts},
	{"gai.conf", "/etc/gai.conf", write_precedence},
};

static int write_file(const char *dir, const struct laid *file, struct json_object *nodes)
{
	char path[PATH_MAX + 16], made[PATH_MAX + 16];
	int error;

	snprintf(path, sizeof(path), "%s/%s", dir, file->name);
	snprintf(made, sizeof(made), "%s/%s.new", dir, file->name);
	error = file->write(made, nodes);
	return !error && rename(made, path) ? -errno : error;
}

int node_write_names(const char *dir)
{
	char last[PATH_MAX + 16];
	struct json_object *answer;
	int error;

	snprintf(last, sizeof(last), "%s/%s", dir, laid[ARRAY_SIZE(laid) - 1].name);
	if (!access(last, F_OK))
		return 0; /* the nodes of a fabric stay what they are */
	answer = client_call_quiet(dir, request("nodes"));
	error = answer ? 0 : -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(laid) && !error; i++)
		error = write_file(dir, &laid[i], member_of(answer, "nodes"));
	json_object_put(answer);
	return error;
}

int node_lay_names(const char *dir)
{
	char path[PATH_MAX + 16];

	for (size_t i = 0; i < ARRAY_SIZE(laid); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, laid[i].name);
		/* a machine without the file has no place for it */
		if (mount(path, laid[i].path, NULL, MS_BIND, NULL) && errno != ENOENT)
			return -errno;
	}
	return 0;
}
