/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration file libsdp.conf. Its lines have the form
 *
 *   use sdp|tcp|both  server|client  PROGRAM  ADDRESS[/PREFIX]:PORT[-PORT]
 *
 * where PROGRAM is a pattern (fnmatch(3)), and any of the others can be *. An IPv6 address is in
 * brackets. "listen" and "connect" are synonyms of "server" and "client". The first line that
 * matches decides. Lines that begin with "log" are ignored.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdp_private.h"

#define RULES_MAX	64
#define DEFAULT_FILE	"/etc/libsdp.conf"
#define FILE_VARIABLE	"LIBSDP_CONFIG_FILE"

struct rule {
	enum sdp_use use;
	enum sdp_role role;
	char program[64];
	int family; /* AF_UNSPEC: any address */
	unsigned char address[16];
	unsigned int prefix_bits;
	unsigned int first_port, last_port;
};

static struct rule rules[RULES_MAX];
static unsigned int num_rules;

/* --- reading --- */

struct word {
	const char *text;
	int value;
};

static const struct word uses[] = {
	{"sdp", SDP_USE_SDP}, {"tcp", SDP_USE_TCP}, {"both", SDP_USE_BOTH}, {NULL, 0}};
static const struct word roles[] = {{"server", SDP_SERVER},
				    {"listen", SDP_SERVER},
				    {"client", SDP_CLIENT},
				    {"connect", SDP_CLIENT},
				    {NULL, 0}};

static bool find_word(const struct word *words, const char *text, int *value)
{
	for (; words->text; words++) {
		if (strcmp(words->text, text) != 0)
			continue;
		*value = words->value;
		return true;
	}
	return false;
}

static bool parse_number(const char *text, unsigned int max, unsigned int *n)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*n = (unsigned int)value;
	return *text >= '0' && *text <= '9' && !*end && value <= max;
}

static const char *parse_ports(char *text, struct rule *rule)
{
	char *dash = strchr(text, '-');

	rule->first_port = 0;
	rule->last_port = UINT16_MAX;
	if (!strcmp(text, "*"))
		return NULL;
	if (dash)
		*dash++ = '\0';
	if (!parse_number(text, UINT16_MAX, &rule->first_port) ||
	    !parse_number(dash ? dash : text, UINT16_MAX, &rule->last_port) ||
	    rule->first_port > rule->last_port)
		return "the port is a number, two with '-' between them, or '*'";
	return NULL;
}

static const char *parse_address(char *text, struct rule *rule)
{
	char *slash = strchr(text, '/');
	size_t len;

	if (!strcmp(text, "*"))
		return NULL;
	if (slash)
		*slash++ = '\0';
	len = strlen(text);
	if (text[0] == '[' && len > 1 && text[len - 1] == ']') {
		text[len - 1] = '\0';
		text++;
	}
	rule->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	rule->prefix_bits = rule->family == AF_INET6 ? 128 : 32;
	if (inet_pton(rule->family, text, rule->address) != 1)
		return "the address is one of IPv4, one of IPv6 in brackets, or '*'";
	if (slash && !parse_number(slash, rule->prefix_bits, &rule->prefix_bits))
		return "the length of the prefix is a number of bits";
	return NULL;
}

static const char *parse_place(char *text, struct rule *rule)
{
	char *colon = strrchr(text, ':');
	const char *error;

	if (!colon)
		return "ADDRESS:PORT is missing, such as *:*";
	*colon = '\0';
	error = parse_address(text, rule);
	return error ? error : parse_ports(colon + 1, rule);
}

const char *sdp_rules_parse(const char *line)
{
	struct rule rule = {.family = AF_UNSPEC};
	char text[256], *save = NULL, *word[5] = {NULL};
	int use, role, n = 0;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "#\n"), line);
	for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		if (n++ < 5)
			word[n - 1] = w;
	if (!n || !strcmp(word[0], "log"))
		return NULL;
	if (strcmp(word[0], "use") != 0 || n != 5)
		return "a rule is: use sdp|tcp|both server|client PROGRAM ADDRESS:PORT";
	if (!find_word(uses, word[1], &use))
		return "what to use is sdp, tcp or both";
	if (!find_word(roles, word[2], &role))
		return "the role is server or client";
	if (num_rules == RULES_MAX)
		return "there are more than 64 rules";
	rule.use = (enum sdp_use)use;
	rule.role = (enum sdp_role)role;
	snprintf(rule.program, sizeof(rule.program), "%s", word[3]);
	line = parse_place(word[4], &rule);
	if (!line)
		rules[num_rules++] = rule;
	return line;
}

void sdp_rules_load(void)
{
	const char *path = getenv(FILE_VARIABLE), *error;
	FILE *f = fopen(path && *path ? path : DEFAULT_FILE, "re");
	char line[256];

	if (!f) {
		if (path && *path)
			fprintf(stderr, "libsdp: cannot read %s (" FILE_VARIABLE "): %s\n", path,
				strerror(errno));
		return;
	}
	for (int n = 1; fgets(line, sizeof(line), f); n++) {
		error = sdp_rules_parse(line);
		if (error)
			fprintf(stderr, "libsdp: %s:%d is ignored: %s\n",
				path && *path ? path : DEFAULT_FILE, n, error);
	}
	fclose(f);
}

/* --- matching --- */

static bool has_prefix(const unsigned char *address, const unsigned char *prefix,
		       unsigned int bits)
{
	const unsigned int bytes = bits / 8, rest = bits % 8;

	return !memcmp(address, prefix, bytes) &&
	       (!rest || !((address[bytes] ^ prefix[bytes]) >> (8 - rest)));
}

static bool address_matches(const struct rule *rule, const union abi_sdp_address *address)
{
	const unsigned char *bytes = address->any.sa_family == AF_INET6
					     ? address->in6.sin6_addr.s6_addr
					     : (const unsigned char *)&address->in.sin_addr;

	if (rule->family == AF_UNSPEC)
		return true;
	if (address->any.sa_family == AF_INET6 && rule->family == AF_INET &&
	    IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		bytes += 12;
	else if (address->any.sa_family != rule->family)
		return false;
	return has_prefix(bytes, rule->address, rule->prefix_bits);
}

enum sdp_use sdp_rules_use(enum sdp_role role, const struct sockaddr *addr)
{
	union abi_sdp_address address;
	unsigned int port;

	memcpy(&address, addr,
	       addr->sa_family == AF_INET6 ? sizeof(address.in6) : sizeof(address.in));
	port = ntohs(address.in.sin_port);
	for (unsigned int i = 0; i < num_rules; i++) {
		const struct rule *rule = &rules[i];

		if (rule->role == role && port >= rule->first_port && port <= rule->last_port &&
		    !fnmatch(rule->program, program_invocation_short_name, 0) &&
		    address_matches(rule, &address))
			return rule->use;
	}
	return SDP_USE_BOTH;
}
