/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * verbs [-d PID] [-f N] client|server FD TEST...: measure, with N times fewer
 * messages; FD is a stream socket to the other side, inherited. The client prints "TEST value unit" lines. A test is
 * KIND:SIZE[:QPS].
 * verbs both TEST...: tests that are both sides in one process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

#define LIMIT_SECONDS 60 /* for one test: a hang, not a measure */

static const struct kind *const tables[] = {latency_kinds,	one_sided_kinds,
					    stream_kinds,	many_kinds,
					    registration_kinds, count_kinds};
pid_t daemon_pid;
unsigned fewer = 1;

void figure(struct bench *b, const char *part, double value, const char *unit)
{
	printf("%s%s%s %.4f %s\n", b->text, part ? "/" : "", part ? part : "", value,
	       unit);
	fflush(stdout);
}

size_t memory_of(pid_t pid)
{
	char path[64] = "/proc/self/smaps_rollup", line[256];
	size_t kib = 0;
	FILE *f;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %zu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

static const struct kind *find(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct kind *k = tables[i]; k->name; k++)
			if (strlen(k->name) == length && !strncmp(k->name, name, length))
				return k;
	return NULL;
}

static struct bench parse(const char *text)
{
	struct bench b = {.text = text, .size = 8, .count = 1, .sock = -1};

	b.kind = find(text, strcspn(text, ":"));
	if (strchr(text, ':') &&
	    sscanf(strchr(text, ':'), ":%zu:%u", &b.size, &b.count) < 1)
		b.kind = NULL;
	if (b.kind && b.size && b.count)
		return b;
	fprintf(stderr, "verbs: no such test: %s\n", text);
	exit(2);
}

static void run_side(struct bench *b)
{
	(b->client ? b->kind->client : b->kind->server)(b);
}

/* A server's, or a client's, part of one test; memory on the stack when asked. */
static void run(struct bench *b)
{
	alignas(4096) char stack[8192];
	bool on_stack = b->kind->shape.on_stack;

	alarm(LIMIT_SECONDS);
	if (on_stack)
		memset(stack, 0, sizeof(stack));
	end_open(&b->end, &b->kind->shape, b->size, b->count,
		 on_stack ? stack + 8 : NULL);
	if (b->sock >= 0) {
		exchange(b);
		end_connect(&b->end);
		sync_sides(b);
	}
	run_side(b);
	if (b->sock < 0)
		return; /* the process ends with it */
	sync_sides(b);
	end_close(&b->end);
}

static int usage(void)
{
	fprintf(stderr, "usage: verbs [-d PID] [-f N] client|server FD TEST...\n"
			"       verbs both TEST...\n");
	return 2;
}

int main(int argc, char **argv)
{
	bool client, both;
	int option, sock;

	while ((option = getopt(argc, argv, "+d:f:")) != -1) {
		if (option == 'd')
			daemon_pid = (pid_t)atoi(optarg);
		else if (option != 'f' || !(fewer = (unsigned)atoi(optarg)))
			return usage();
	}
	argv += optind;
	argc -= optind;
	both = argc >= 2 && !strcmp(argv[0], "both");
	client = both || (argc >= 3 && !strcmp(argv[0], "client"));
	if (!client && (argc < 3 || strcmp(argv[0], "server")))
		return usage();
	sock = both ? -1 : atoi(argv[1]);
	for (int i = both ? 1 : 2; i < argc; i++) {
		struct bench b = parse(argv[i]);

		b.sock = sock;
		b.client = client;
		run(&b);
	}
	return 0;
}
