/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib-rpcrdma: options and signals. */
#include <argp.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpcgate/gate.h"

#define RDMA_PORT "20049" /* of NFS over RDMA (RFC 8267, 6) */
#define TCP_PORT  "2049"  /* of NFS */

enum key { KEY_LONGEST = 256, KEY_INLINE };

/* argp finds it by name, so it may not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softib-rpcrdma " SOFTIB_VERSION;

static const char doc[] =
	"Carry RPC, and thereby NFS, over RDMA: programs and servers that know TCP alone meet at "
	"two gateways, which speak RPC-over-RDMA (RFC 8166) with each other.\v"
	"Examples:\n"
	"  softib exec n1 -- softib-rpcrdma serve                beside an NFS server\n"
	"  softib exec n2 -- softib-rpcrdma connect n1           beside its clients\n"
	"  softib exec n2 -- nfs-ls 'nfs://127.0.0.1/export?version=4'\n"
	"\n"
	"It runs until it gets SIGINT or SIGTERM.";

static const struct argp_option options[] = {
	{"listen", 'l', "ADDRESS[:PORT]", 0, "Where to listen (serve: every address, port " RDMA_PORT "; connect: 127.0.0.1:" TCP_PORT ")", 1},
	{"to", 't', "HOST[:PORT]", 0, "serve: the server to connect to (default 127.0.0.1:" TCP_PORT ")", 1},
	{"credits", 'c', "N", 0, "Calls under way on a connection, 1..1024 (default 32)", 2},
	{"longest", KEY_LONGEST, "BYTES", 0, "Longest message, 4096..1073741824 (default 1114112: 1 MiB of data)", 2},
	{"inline", KEY_INLINE, "BYTES", 0, "Longest message in one SEND, 1024..65536 (default 4096)", 2},
	{"verbose", 'v', NULL, 0, "Say when connections begin and end", 3},
	{0},
};

struct arguments {
	struct gate_options opt;
	const char *listen, *to;
	unsigned int words;
};

static uint32_t number(struct argp_state *state, const char *arg, const char *what, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || *arg == '-' || v < min || v > max)
		argp_error(state, "%s: \"%s\" is not a number from %u to %u", what, arg, min, max);
	return (uint32_t)v;
}

/* HOST, HOST:PORT, [IPV6] or [IPV6]:PORT */
static void find_address(struct argp_state *state, const char *arg, const char *port, struct sockaddr_storage *address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	char host[256], *colon, *from = host;
	int error;

	snprintf(host, sizeof(host), "%s", arg);
	colon = strrchr(host, ':');
	if (*host == '[' && strchr(host, ']')) {
		from = host + 1;
		colon = strchr(host, ']');
		*colon++ = 0;
		if (*colon && *colon != ':')
			argp_error(state, "\"%s\": a port stands behind a colon", arg);
		colon = *colon ? colon : NULL;
	} else if (colon && strchr(host, ':') != colon) {
		colon = NULL; /* an IPv6 address without a port */
	}
	if (colon) {
		*colon = 0;
		port = colon + 1;
	}
	error = getaddrinfo(from, port, &hints, &found);
	if (error)
		argp_error(state, "\"%s\": %s", arg, gai_strerror(error));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

static error_t on_word(struct arguments *a, struct argp_state *state, char *arg)
{
	if (a->words == 0 && !strcmp(arg, "serve"))
		a->opt.serves = true;
	else if (a->words == 0 && strcmp(arg, "connect"))
		argp_error(state, "\"%s\": serve or connect", arg);
	else if (a->words == 1 && !a->opt.serves)
		a->to = arg;
	else if (a->words)
		return ARGP_ERR_UNKNOWN;
	a->words++;
	return 0;
}

static void on_end(struct arguments *a, struct argp_state *state)
{
	struct gate_options *opt = &a->opt;

	if (!a->words)
		argp_error(state, "say what to do: serve, or connect SERVER");
	if (!opt->serves && a->words < 2)
		argp_error(state, "connect: name the node with the server");
	if (opt->serves) {
		find_address(state, a->listen ? a->listen : "0.0.0.0", RDMA_PORT, &opt->rdma);
		find_address(state, a->to ? a->to : "127.0.0.1", TCP_PORT, &opt->tcp);
	} else {
		find_address(state, a->listen ? a->listen : "127.0.0.1", TCP_PORT, &opt->tcp);
		find_address(state, a->to, RDMA_PORT, &opt->rdma);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'l':
		a->listen = arg;
		break;
	case 't':
		a->to = arg;
		break;
	case 'c':
		a->opt.credits = number(state, arg, "--credits", 1, 1024);
		break;
	case KEY_LONGEST:
		a->opt.longest = number(state, arg, "--longest", 4096, 1 << 30);
		break;
	case KEY_INLINE:
		a->opt.inline_bytes = number(state, arg, "--inline", 1024, 65536) & ~1023u;
		break;
	case 'v':
		a->opt.is_verbose = true;
		break;
	case ARGP_KEY_ARG:
		return on_word(a, state, arg);
	case ARGP_KEY_END:
		on_end(a, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void on_signal(struct ev_loop *loop, struct ev_signal *signal, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "serve\nconnect SERVER[:PORT]", doc};
	struct arguments a = {
		.opt = {.credits = 32, .longest = (1 << 20) + (1 << 16), .inline_bytes = 4096},
	};
	struct gate gate = {0};
	struct ev_signal signals[2];
	int error;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	gate.opt = a.opt;
	gate.loop = ev_default_loop(0);
	ev_signal_init(&signals[0], on_signal, SIGINT);
	ev_signal_init(&signals[1], on_signal, SIGTERM);
	ev_signal_start(gate.loop, &signals[0]);
	ev_signal_start(gate.loop, &signals[1]);
	error = gate_open(&gate);
	if (!error)
		ev_run(gate.loop, 0);
	gate_close(&gate);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
