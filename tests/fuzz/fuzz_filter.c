/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any text as a capture's filter, and after its 0 byte any bytes as the
 * packet that it judges. "not (F)" takes what F leaves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_BYTES 500

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void judge(const struct fab_filter *filter, const char *text, const struct topology *topo,
		  const struct fab_sight *sight)
{
	char negated[TEXT_BYTES + 16], err[256];
	struct wire_packet packet;
	struct fab_filter not;

	snprintf(negated, sizeof(negated), "not (%s)", text);
	if (!filter->num_ops || fab_filter_parse(negated, topo, &not, err, sizeof(err)))
		return; /* one operation more may be too many */
	/* what is no packet is none of those that are meant, either way */
	check(!fab_filter_match(filter, sight) || !fab_filter_match(&not, sight));
	if (wire_packet_decode(sight->bytes, sight->len, &packet) > 0)
		check(fab_filter_match(filter, sight) || fab_filter_match(&not, sight));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topology *topo;
	const uint8_t *end = memchr(data, 0, size);
	size_t len = end ? (size_t)(end - data) : size;
	struct fab_sight sight = {.node = 0, .port = 1, .sent = size & 1};
	char text[TEXT_BYTES], err[256];
	struct fab_filter filter;
	int ret;

	if (!topo && topo_load("pair", "fuzz", &topo, err, sizeof(err)))
		abort();
	if (len >= sizeof(text))
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	memset(err, 0, sizeof(err));
	ret = fab_filter_parse(text, topo, &filter, err, sizeof(err));
	check(ret == 0 || (ret == -EINVAL && err[0]));
	if (ret)
		return 0;
	check(filter.num_ops <= FAB_FILTER_OPS_MAX);
	if (end) {
		sight.bytes = end + 1;
		sight.len = size - len - 1;
		judge(&filter, text, topo, &sight);
	}
	return 0;
}
