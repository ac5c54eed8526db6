/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any text as fault rules, one a line; after an empty line, any bytes as
 * packets that pass them. What a rule is parsed from is printed and parsed to
 * the same; a verdict names a rule that is there and fits the packet.
 */
#include <errno.h>
#include <stdlib.h>

#include "../unit/fault/lab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINE_BYTES 512
#define LOG_ROOM 16
#define PACKETS_MAX 64

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void print_and_parse(const struct flt_rule *rule)
{
	char text[LINE_BYTES * 2], second[LINE_BYTES * 2], err[LINE_BYTES];
	struct flt_rule again;

	check(flt_print(rule, &lab_names, text, sizeof(text)) < sizeof(text));
	check(!flt_parse(text, &lab_names, &again, err, sizeof(err)));
	flt_print(&again, &lab_names, second, sizeof(second));
	check(!strcmp(text, second));
}

static void add_line(struct flt_set *set, const uint8_t *line, size_t len)
{
	char err[64], text[LINE_BYTES];
	struct flt_rule rule;
	uint64_t ns;
	int ret;

	len = MIN(len, sizeof(text) - 1);
	memcpy(text, line, len);
	text[len] = '\0';
	memset(err, 0, sizeof(err));
	if (!flt_time_parse(text, &ns))
		check(text[0] >= '0' && text[0] <= '9');
	ret = flt_parse(text, &lab_names, &rule, err, sizeof(err));
	check(ret == 0 || ret == -EINVAL);
	check(!ret == !err[0]); /* who is refused is told why */
	if (ret)
		return;
	print_and_parse(&rule);
	flt_add(set, &rule);
}

/* Return: where the packets begin */
static size_t add_rules(struct flt_set *set, const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t len = end ? (size_t)(end - data) - at : size - at;

		if (!len)
			return at + 1;
		add_line(set, data + at, len);
		at += len + 1;
	}
	return size;
}

static void check_verdict(struct flt_set *set, const struct flt_verdict *v)
{
	check(!v->rule || flt_find(set, v->rule));
	check(v->copies < 0x10000 && v->hold_way <= 1);
	check(!v->drop || !v->corrupt);
	if (v->hold_ns)
		(void)flt_hold_over(set, v->rule, v->hold_way, v->hold_until);
}

static void pass(struct flt_set *set, const uint8_t *bytes, size_t len, mono_t now)
{
	static const struct flt_end ends[] = {
		{N1, 1, false}, {S1, 1, true}, {S1, 2, true}, {N2, 1, false}};
	struct flt_event ev = {.now = now, .first = true};
	uint64_t logged = set->logged;
	struct flt_verdict v;

	if (flt_event_packet(&ev, bytes, len))
		return;
	for (unsigned link = 0; link < 2; link++, ev.first = false) {
		ev.from = ends[2 * link];
		ev.to = ends[2 * link + 1];
		(void)flt_busy(set, &ev);
		memset(&v, 0, sizeof(v));
		if (flt_packet(set, &ev, &v))
			check_verdict(set, &v);
	}
	check(set->logged >= logged);
}

static void objects(struct flt_set *set, mono_t now)
{
	for (uint32_t kind = 0; kind < 8; kind++) {
		struct flt_object_event ev = {.now = now, .node = (int32_t)(kind & 1), .kind = kind,
					      .qpn = 0x11 + kind, .opcode = kind};

		check(flt_object(set, &ev) >= 0);
		check(flt_completion(set, &ev) >= FLT_OVERRUN_CQ);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct flt_set set;
	struct flt_hit log[LOG_ROOM];
	mono_t now = {1000};
	size_t at;

	memset(&set, 0, sizeof(set));
	flt_set_init(&set, 1, log, LOG_ROOM);
	at = add_rules(&set, data, size);
	for (int n = 0; n < PACKETS_MAX && at + 1 < size; n++) {
		size_t len = MIN((size_t)data[at] * 4, size - at - 1);

		pass(&set, data + at + 1, len, now);
		now = mono_add(now, 1000);
		at += 1 + len;
	}
	objects(&set, now);
	for (uint32_t i = 0; flt_log_at(&set, i); i++)
		check(flt_log_at(&set, i)->serial <= set.logged);
	return 0;
}
