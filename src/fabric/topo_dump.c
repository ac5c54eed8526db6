/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Corrects common defects of dumps. They were copied from a terminal, with the
 * shell's prompt; GUIDs were masked before they were published; and switches of a
 * chassis may report the chassis' GUID as their own. None of that prevents a fabric
 * from being created, but the user is warned of what was guessed (topology.warning).
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_parse.h"
#include "runtime/rt.h"

/* --- warnings ---------------------------------------------------------- */

__attribute__((format(printf, 2, 3)))
static void warn(struct parser *ps, const char *fmt, ...)
{
	char *text = ps->b.topo->warning;
	size_t used = strlen(text), room = sizeof(ps->b.topo->warning) - used;
	va_list ap;

	if (used && room > 1) {
		strcpy(text + used++, "\n");
		room--;
	}
	va_start(ap, fmt);
	vsnprintf(text + used, room, fmt, ap);
	va_end(ap);
}

/* --- prompts ----------------------------------------------------------- */

static bool ends_prompt(const char *at, const char *end)
{
	return at < end && strchr("#$%>", *at) && (at + 1 == end || at[1] == ' ');
}

static bool mentions(const struct scan *sc, const char *word)
{
	return memmem(sc->at, (size_t)(sc->end - sc->at), word, strlen(word));
}

/* Recognises "[root@head ~]# ibnetdiscover", "me@head:~$", "head:~ # ", "$ ibnetdiscover",
 * and before the first record also the command alone. */
bool parse_is_prompt(const struct parser *ps, const struct scan *sc)
{
	const char *at = sc->at;

	if (ends_prompt(at, sc->end))
		return true;
	while (at < sc->end && (isalnum((unsigned char)*at) || strchr("[(_.-) ", *at)))
		at++;
	if (at > sc->at && at < sc->end && (*at == '@' || *at == ':'))
		while (++at < sc->end)
			if (ends_prompt(at, sc->end))
				return true;
	return !ps->refs && mentions(sc, "ibnetdiscover");
}

/* --- masked GUIDs ------------------------------------------------------ */

static void note_masked(struct parser *ps)
{
	if (!ps->masked)
		ps->masked_line = ps->line;
	ps->masked = true;
}

bool parse_guid(struct parser *ps, struct scan *sc, uint64_t *guid)
{
	if (!scan_masked(sc))
		return scan_hex(sc, guid);
	note_masked(ps);
	*guid = 0;
	return true;
}

uint64_t parse_guid_of_id(const char *id)
{
	char *end;
	uint64_t guid;

	if (!strchr("SHR", id[0]) || id[1] != '-' || strlen(id) != 18)
		return 0;
	guid = strtoull(id + 2, &end, 16);
	return *end ? 0 : guid;
}

bool parse_id_is_masked(struct parser *ps, const char *id)
{
	struct scan sc = {id, id + strlen(id)};

	if (!strchr("SHR", id[0]) || id[1] != '-')
		return false;
	sc.at += 2;
	if (!scan_masked(&sc) || !scan_end(&sc))
		return false;
	note_masked(ps);
	return true;
}

/* --- GUIDs that several nodes have ------------------------------------- */

static int by_guid(const void *a, const void *b)
{
	const struct topo_node *x = *(struct topo_node *const *)a;
	const struct topo_node *y = *(struct topo_node *const *)b;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* @nd has the GUID of its chassis: use the one in its id instead, or that of its port 0 */
static void give_own_guid(struct topo_node *nd)
{
	uint64_t shared = nd->guid, of_id = parse_guid_of_id(nd->id);

	if (of_id && of_id != shared)
		nd->guid = of_id;
	else if (!of_id && nd->kind == TOPO_SWITCH && nd->port[0].guid)
		nd->guid = nd->port[0].guid;
	if (!nd->sys_guid)
		nd->sys_guid = shared;
}

static int part_shared_guids(struct parser *ps)
{
	struct topology *topo = ps->b.topo;
	int n = topo->num_nodes, shared = 0;
	struct topo_node **sorted = rt_zalloc((size_t)MAX(n, 1) * sizeof(*sorted));
	uint64_t guid = 0;

	if (!sorted)
		return build_fail(&ps->b, -ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		sorted[i] = &topo->node[i];
	qsort(sorted, (size_t)n, sizeof(*sorted), by_guid);
	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sorted[end]->guid == sorted[i]->guid;)
			end++;
		if (!sorted[i]->guid || end == i + 1)
			continue;
		shared += end - i;
		guid = guid ? guid : sorted[i]->guid;
		for (int j = i; j < end; j++)
			give_own_guid(sorted[j]);
	}
	rt_free(sorted);
	if (shared)
		warn(ps, "%s: %d nodes share a GUID (0x%016" PRIx64 " for one): the GUID in the "
			 "id of each, or its port's, is taken for its own",
		     ps->name, shared, guid);
	return 0;
}

/* --- the end ----------------------------------------------------------- */

int parse_name_nodes(struct parser *ps)
{
	int error = part_shared_guids(ps);
	char what[256];

	if (!error)
		error = build_name_nodes(&ps->b);
	if (!error && ps->masked)
		warn(ps, "%s:%d: masked GUIDs, this is the first: softib invents those of nodes and "
			 "ports that have no other",
		     ps->name, ps->masked_line);
	if (error != -EINVAL || !ps->b.err_bytes)
		return error;
	snprintf(what, sizeof(what), "%s", ps->b.err); /* an error of the whole file, without a line */
	ps->b.err[0] = '\0';
	return build_fail(&ps->b, error, "%s: %s", ps->name, what);
}
