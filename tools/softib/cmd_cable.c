/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib cable: cables that lead to another fabric, in another process or on another host. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"
#include "softib.h"

#define SECRET_MIN   16
#define SECRET_MAX   1024
#define NEW_SECRET   32 /* random bytes, of which the file has the digits */
#define ADDRESS_BYTES (PATH_MAX + 64)

struct cable_args {
	struct common common;
	char *node;
	long port;
	const char *listen, *connect, *key;
	bool remove;
};

static error_t parse_cable(int key, char *arg, struct argp_state *state)
{
	struct cable_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'l':
		args->listen = arg;
		return 0;
	case 'c':
		args->connect = arg;
		return 0;
	case 'k':
		args->key = arg;
		return 0;
	case 'r':
		args->remove = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->node)
			argp_error(state, "'%s': one port is enough", arg);
		parse_node_port(state, arg, &args->node, &args->port);
		return 0;
	case ARGP_KEY_END:
		if (args->node && !args->listen + !args->connect + !args->remove != 2)
			argp_error(state, "one of --listen, --connect and --remove is needed");
		if (!args->node && (args->listen || args->connect || args->remove || args->key))
			argp_error(state, "at which port? For example: softib cable s1:5 --listen /tmp/cable");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- the key --- */

static void put_hex(char *text, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* Write a new key file, for its user alone. Return: false, after saying why */
static bool make_key(const char *path)
{
	uint8_t secret[NEW_SECRET];
	char text[2 * NEW_SECRET + 1];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool good;

	if (fd < 0)
		return !complain("cannot make the key file %s: %s", path, strerror(errno));
	good = getrandom(secret, sizeof(secret), 0) == sizeof(secret);
	put_hex(text, secret, sizeof(secret));
	text[2 * NEW_SECRET] = '\n';
	good = good && write(fd, text, sizeof(text)) == sizeof(text);
	if (close(fd) || !good) {
		unlink(path);
		return !complain("cannot write the key file %s", path);
	}
	fprintf(stderr, "softib: a new key is in %s; the other side needs a copy of this file\n", path);
	return true;
}

/* Return: bytes of the key; -1, after saying why */
static ssize_t read_key(const char *path, uint8_t secret[SECRET_MAX + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st)) {
		complain("cannot read the key file %s: %s", path, strerror(errno));
		return -1;
	}
	n = read(fd, secret, SECRET_MAX + 1);
	close(fd);
	if (st.st_mode & 077)
		complain("others can read the key file %s, so it is not used; 'chmod 600 %s' ends that", path, path);
	else if (n < SECRET_MIN || n > SECRET_MAX)
		complain("the key file %s has to have %d to %d bytes", path, SECRET_MIN, SECRET_MAX);
	else
		return n;
	return -1;
}

/* Return: false, after saying why */
static bool add_key(struct json_object *req, const struct cable_args *args)
{
	uint8_t secret[SECRET_MAX + 1];
	char text[2 * SECRET_MAX + 1];
	ssize_t n;

	if (!args->key)
		return true;
	if (args->listen && access(args->key, F_OK) && errno == ENOENT && !make_key(args->key))
		return false;
	n = read_key(args->key, secret);
	if (n < 0)
		return false;
	put_hex(text, secret, (size_t)n);
	request_text(req, "key", text);
	return true;
}

/* --- the address --- */

/* A path of a Unix socket is made absolute, since softibd has another working directory. */
static bool absolute(const char *path, char text[ADDRESS_BYTES])
{
	char here[PATH_MAX];

	if (path[0] == '/')
		snprintf(text, ADDRESS_BYTES, "%s", path);
	else if (getcwd(here, sizeof(here)))
		snprintf(text, ADDRESS_BYTES, "%s/%s", here, path);
	else
		return !complain("the working directory has no name: %s", strerror(errno));
	return true;
}

/* HOST:PORT or [HOST]:PORT, whose host may be a name. Return: false, after saying why */
static bool resolve(const char *address, char text[ADDRESS_BYTES])
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	const char *colon = strrchr(address, ':');
	char host[256], number[INET6_ADDRSTRLEN + 16];
	bool brackets = address[0] == '[' && colon && colon > address + 1 && colon[-1] == ']';
	struct addrinfo *found;
	int error;

	if (!colon || colon == address || colon - address >= (long)sizeof(host))
		return !complain("'%s' is no address: expected HOST:PORT or the path of a Unix socket, "
				 "which has a slash", address);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - address) - 2 * brackets, address + brackets);
	error = getaddrinfo(host, colon + 1, &hints, &found);
	if (error)
		return !complain("%s: %s", address, gai_strerror(error));
	error = getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof(number), NULL, 0, NI_NUMERICHOST);
	snprintf(text, ADDRESS_BYTES, found->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", number, colon + 1);
	freeaddrinfo(found);
	return !error || !complain("%s: %s", address, gai_strerror(error));
}

static bool add_address(struct json_object *req, const struct cable_args *args)
{
	const char *given = args->listen ? args->listen : args->connect;
	char text[ADDRESS_BYTES];

	if (!(strchr(given, '/') ? absolute(given, text) : resolve(given, text)))
		return false;
	request_text(req, args->listen ? "listen" : "connect", text);
	return true;
}

/* --- what there is --- */

static void print_cable(struct json_object *o)
{
	const char *listens = text_of(o, "listen"), *reason = text_of(o, "reason");

	printf("%s:%lld  %s %s%s\n", text_of(o, "node"), (long long)number_of(o, "port"), *listens ? "listens at" : "to",
	       *listens ? listens : text_of(o, "connect"), json_object_get_boolean(member_of(o, "key")) ? " with a key" : "");
	if (json_object_get_boolean(member_of(o, "connected")))
		printf("  connected to %s, %s\n", text_of(o, "peer"), text_of(o, "state"));
	else
		printf("  not connected%s%s\n", *reason ? ": " : "", reason);
	printf("  packets  %lld sent, %lld received, %lld discarded; waited %lld times\n",
	       (long long)number_of(o, "packets_sent"), (long long)number_of(o, "packets_received"),
	       (long long)number_of(o, "discarded"), (long long)number_of(o, "waits"));
	printf("  bytes    %lld sent, %lld received\n", (long long)number_of(o, "bytes_sent"),
	       (long long)number_of(o, "bytes_received"));
	if (json_object_get_boolean(member_of(o, "ethernet")))
		printf("  frames   %lld malformed, %lld from others than they say, all dropped\n",
		       (long long)number_of(o, "malformed"), (long long)number_of(o, "spoofed"));
}

static int list_cables(const struct cable_args *args)
{
	struct json_object *answer = client_ask(&args->common, request("cables")), *list;

	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "cables");
	if (args->common.json)
		print_json(list);
	for (size_t i = 0; !args->common.json && i < json_object_array_length(list); i++)
		print_cable(json_object_array_get_idx(list, i));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* Send @req, which is freed. Return: exit status */
static int change(const struct cable_args *args, struct json_object *req)
{
	struct json_object *answer;

	request_text(req, "node", args->node);
	request_number(req, "port", args->port);
	answer = client_ask(&args->common, req);
	json_object_put(answer);
	return answer ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cmd_cable(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp_option options[] = {
		{"listen", 'l', "ADDRESS", 0, "let the other side connect here: HOST:PORT, or a path with a slash", 0},
		{"connect", 'c', "ADDRESS", 0, "connect to the other side, again and again until it is there", 0},
		{"key", 'k', "FILE", 0, "both sides prove that they have this file; --listen makes it, if it is missing. "
					"TCP needs it", 0},
		{"remove", 'r', NULL, 0, "pull the cable out and forget it", 0},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_cable,
		.children = children,
		.args_doc = "[NODE:PORT]",
		.doc = "Join a port that has no cable to a port of another fabric, in another softibd or on another host. "
		       "Both fabrics become one subnet, which one subnet manager brings up: start the other "
		       "fabric with --sm none. A port of Ethernet is joined to any program that sends frames as QEMU does with "
		       "-netdev stream. Without a port, list these cables.\v"
		       "Examples:\n"
		       "  softib cable s1:9 --listen 192.0.2.1:7471 --key cable.key\n"
		       "  softib cable s1:9 --connect 192.0.2.1:7471 --key cable.key\n"
		       "  softib cable --fabric lab s1:9 --listen /tmp/cable\n"
		       "  softib cable s1:9 --remove\n"};
	struct cable_args args = {0};
	struct json_object *req;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (!args.node)
		return list_cables(&args);
	req = request(args.remove ? "cable_remove" : "cable_add");
	if (args.remove || (add_address(req, &args) && add_key(req, &args)))
		return change(&args, req);
	json_object_put(req);
	return EXIT_FAILURE;
}
