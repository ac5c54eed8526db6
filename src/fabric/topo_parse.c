/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parses topologies: the output of ibnetdiscover (ibnetdiscover(8), section
 * "Topology file format") and ibsim's net files, which differ in a few words
 * only. A file consists of records, one for each node:
 *
 *	vendid=0x2c9			attributes of the node to come
 *	switchguid=0x2c90200417670(2c90200417670)
 *	Switch 36 "S-0002c90200417670"	# "description" base port 0 lid 18 lmc 0
 *	[1]	"H-78e7d10300229794"[1](78e7d10300229795)  # "..." lid 23 4xQDR
 *
 * Byte order marks, CRLF, shell prompts and masked GUIDs are accepted as well
 * (topo_dump.c).
 *
 * A cable is listed at both ends or at one. A far end without a record
 * (ibnetdiscover may be limited to a number of hops) becomes a node with the
 * attributes in that line, if its id tells its kind: S-, H- or R- and a GUID.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_parse.h"
#include "runtime/rt.h"

/* --- attribute lines --------------------------------------------------- */

enum attr { ATTR_VENDOR, ATTR_DEVICE, ATTR_SYS_GUID, ATTR_GUID, ATTR_WIDTH, ATTR_SPEED };

static const struct {
	const char *key;
	enum attr attr;
} attrs[] = {
	{"vendid", ATTR_VENDOR},   {"devid", ATTR_DEVICE},  {"sysimgguid", ATTR_SYS_GUID},
	{"switchguid", ATTR_GUID}, {"caguid", ATTR_GUID},   {"rtguid", ATTR_GUID},
	{"hcaguid", ATTR_GUID},	   {"hcaguids", ATTR_GUID}, {"width", ATTR_WIDTH},
	{"speed", ATTR_SPEED},
};

/* ibsim gives widths and speeds as masks (LinkWidthEnabled, LinkSpeedEnabled), of
 * which the link gets the highest */
static unsigned best_bit(uint64_t mask, uint64_t valid)
{
	mask &= valid;
	while (mask & (mask - 1))
		mask &= mask - 1;
	return (unsigned)mask;
}

static int set_attr(struct parser *ps, enum attr attr, uint64_t value)
{
	switch (attr) {
	case ATTR_VENDOR:
		ps->next.vendor_id = (uint32_t)value & 0xffffff;
		break;
	case ATTR_DEVICE:
		ps->next.device_id = (uint32_t)value & 0xffff;
		break;
	case ATTR_SYS_GUID:
		ps->next.sys_guid = value;
		break;
	case ATTR_GUID:
		ps->next.guid = value;
		break;
	case ATTR_WIDTH:
		ps->width_enc = best_bit(value, 15);
		return ps->width_enc
			       ? 0
			       : parse_fail(ps, "width= takes 1 (1x), 2 (4x), 4 (8x), 8 (12x)");
	case ATTR_SPEED:
		ps->speed_enc = best_bit(value, 7);
		return ps->speed_enc ? 0
				     : parse_fail(ps, "speed= takes 1 (SDR), 2 (DDR), 4 (QDR)");
	}
	return 0;
}

static bool attr_value(struct parser *ps, struct scan *sc, enum attr attr, uint64_t *value)
{
	if ((attr == ATTR_GUID || attr == ATTR_SYS_GUID) && parse_guid(ps, sc, value))
		return true;
	return scan_number(sc, value);
}

static int attr_line(struct parser *ps, struct scan *sc, const char *key)
{
	uint64_t value;

	ps->node = -1;
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		if (strcmp(attrs[i].key, key))
			continue;
		if (!scan_char(sc, '=') || !attr_value(ps, sc, attrs[i].attr, &value))
			return parse_fail(ps, "%s without a value; expected %s=0xHEX", key,
					  key);
		if (attrs[i].attr == ATTR_GUID && scan_char(sc, '(') &&
		    (!parse_guid(ps, sc, &ps->next.port_guid) || !scan_char(sc, ')')))
			return parse_fail(ps, "%s: expected the port's GUID in ()", key);
		scan_space(sc);
		if (!scan_end(sc))
			return parse_fail(ps,
					  "%s: text behind the value; expected the line to end",
					  key);
		return set_attr(ps, attrs[i].attr, value);
	}
	return parse_fail(
		ps,
		"\"%s\" is not known; expected an attribute (vendid=, devid=, sysimgguid=, "
		"switchguid=, caguid=, rtguid=), a node (Switch, Ca, Hca, Rt) or a port ([1] ...)",
		key);
}

/* --- node lines -------------------------------------------------------- */

/* what follows "link=": "ethernet" or "infiniband" */
static int link_layer(struct parser *ps, struct scan *sc, bool *ethernet)
{
	char word[16] = "";

	if (!scan_word(sc, word, sizeof(word)) ||
	    (strcmp(word, "ethernet") && strcmp(word, "infiniband")))
		return parse_fail(ps, "\"link=%s\" is no link layer; expected link=ethernet or "
				      "link=infiniband", word);
	*ethernet = !strcmp(word, "ethernet");
	return 0;
}

/* the link layer in a node's line is that of all its ports */
static int node_link_layer(struct parser *ps, struct scan *sc, struct topo_node *nd)
{
	bool ethernet;

	if (link_layer(ps, sc, &ethernet))
		return -EINVAL;
	for (int p = 0; p <= nd->num_ports; p++)
		nd->port[p].ethernet = ethernet;
	return 0;
}

/* `"description" enhanced port 0 lid N lmc 0 ip=ADDRESS link=LAYER`, of which all may be
 * missing */
static int node_comment(struct parser *ps, struct scan *sc, struct topo_node *nd)
{
	char word[16];
	uint64_t lid;

	scan_comment(sc);
	scan_string(sc, nd->desc, sizeof(nd->desc));
	while (scan_space(sc), !scan_end(sc)) {
		if (!scan_word(sc, word, sizeof(word)))
			scan_skip(sc);
		else if (!strcmp(word, "ip") && scan_char(sc, '=')) {
			if (parse_address(ps, sc, ps->node, 1))
				return -EINVAL;
		} else if (!strcmp(word, "link") && scan_char(sc, '=')) {
			if (node_link_layer(ps, sc, nd))
				return -EINVAL;
		} else if (nd->kind == TOPO_SWITCH && !strcmp(word, "lid") &&
			   scan_number(sc, &lid) && lid < 0xc000)
			nd->port[0].lid_hint = (uint16_t)lid;
	}
	return 0;
}

/* the attributes before a record belong to its node */
static void apply_attrs(struct parser *ps, struct topo_node *nd, const char *id)
{
	nd->vendor_id = ps->next.vendor_id;
	nd->device_id = ps->next.device_id;
	nd->sys_guid = ps->next.sys_guid;
	nd->guid = ps->next.guid ? ps->next.guid : parse_guid_of_id(id);
	if (!nd->guid)
		parse_id_is_masked(ps, id); /* this has recorded the warning */
	if (nd->kind == TOPO_SWITCH)
		nd->port[0].guid = ps->next.port_guid;
	memset(&ps->next, 0, sizeof(ps->next));
	strcpy(nd->id, id);
	for (int p = 0; p <= nd->num_ports; p++) {
		nd->port[p].width_enc = (uint8_t)ps->width_enc;
		nd->port[p].speed_enc = (uint16_t)ps->speed_enc;
	}
}

static int node_line(struct parser *ps, struct scan *sc, enum topo_kind kind,
		     const char *word)
{
	struct topo_node *nd;
	uint64_t ports;
	char id[72];
	int ref;

	ps->node = -1;
	if (!scan_number(sc, &ports) || ports < 1 || ports > TOPO_MAX_NODE_PORTS)
		return parse_fail(ps,
				  "%s without its number of ports; expected %s 1..%d \"ID\"",
				  word, word, TOPO_MAX_NODE_PORTS);
	if (!scan_string(sc, id, sizeof(id)))
		return parse_fail(ps,
				  "%s without an id; expected %s %d \"ID\" of 1 to %zu bytes",
				  word, word, (int)ports, sizeof(id) - 1);
	ref = parse_ref(ps, id);
	if (ref < 0)
		return ref;
	if (ps->ref[ref].node >= 0)
		return parse_fail(ps,
				  "a second record of \"%s\"; the first is in line %d; "
				  "expected one for each id, also where GUIDs are masked",
				  id, ps->ref[ref].line);
	ps->node = build_node(&ps->b, kind, (int)ports);
	if (ps->node < 0)
		return parse_fail(ps, "no room");
	ps->ref[ref].node = ps->node;
	ps->ref[ref].line = ps->line;
	nd = &ps->b.topo->node[ps->node];
	apply_attrs(ps, nd, id);
	return node_comment(ps, sc, nd);
}

/* --- port lines -------------------------------------------------------- */

/* `w=4 s=1` (ibsim), masks as above */
static int port_options(struct parser *ps, struct scan *sc, struct end *end)
{
	char key[8];
	uint64_t value;

	while (scan_space(sc), !scan_end(sc) && !scan_at(sc, '#')) {
		if (!scan_word(sc, key, sizeof(key)) || !scan_char(sc, '=') ||
		    !scan_number(sc, &value))
			return parse_fail(
				ps,
				"text behind the cable; expected w=WIDTH, s=SPEED or a # comment");
		if (!strcmp(key, "w"))
			end->width_enc = (uint8_t)best_bit(value, 15);
		else if (!strcmp(key, "s"))
			end->speed_enc = (uint16_t)best_bit(value, 7);
		if (strcmp(key, "w") ? strcmp(key, "s") || !end->speed_enc
				     : !end->width_enc)
			return parse_fail(ps,
					  "option %s=: expected w=1|2|4|8 (1x, 4x, 8x, 12x) or "
					  "s=1|2|4 (SDR, DDR, QDR)",
					  key);
	}
	return 0;
}

/* "4xQDR" */
static int link_word(struct parser *ps, const char *word, struct end *end)
{
	const char *x = strchr(word, 'x');

	end->width_enc = (uint8_t)topo_width_enc(word, (size_t)(x + 1 - word));
	end->speed_enc = (uint16_t)topo_speed_enc(x + 1, strlen(x + 1));
	if (!end->width_enc || (!end->speed_enc && x[1] != '?'))
		return parse_fail(
			ps,
			"\"%s\" is no link speed; expected for example 4xSDR, 4xDDR, 4xQDR, "
			"4xFDR10, 4xFDR, 4xEDR, 4xHDR, 4xNDR",
			word);
	return 0;
}

/* Parse the comment of a port line: for a switch `"far description" lid N 4xQDR`, for
 * other nodes the same after their own `lid N lmc N`. *@lid is set to the local LID. */
static int port_comment(struct parser *ps, struct scan *sc, struct end *end, char *desc,
			size_t desc_bytes, uint16_t *lid)
{
	bool described = false;
	char word[16];
	uint64_t value;

	if (!scan_comment(sc))
		return 0;
	while (scan_space(sc), !scan_end(sc)) {
		if (!described && scan_string(sc, desc, desc_bytes))
			described = true;
		else if (!scan_word(sc, word, sizeof(word)))
			scan_skip(sc);
		else if (!described && !strcmp(word, "lid") && scan_number(sc, &value))
			*lid = value < 0xc000 ? (uint16_t)value : 0;
		else if (!strcmp(word, "ip") && scan_char(sc, '=')) {
			if (parse_address(ps, sc, end->node, end->port))
				return -EINVAL;
		} else if (!strcmp(word, "link") && scan_char(sc, '=')) {
			if (link_layer(ps, sc, &end->ethernet))
				return -EINVAL;
		} else if (described && word[0] >= '1' && word[0] <= '9' &&
			 strchr(word, 'x') && link_word(ps, word, end))
			return -EINVAL;
	}
	return 0;
}

/* "ID"[PORT](GUID); ibsim leaves out [PORT] for 1 */
static int far_end(struct parser *ps, struct scan *sc, struct end *end)
{
	uint64_t port = 1;
	char id[72];

	if (!scan_string(sc, id, sizeof(id)))
		return parse_fail(ps, "no far end; expected [%d] \"ID\"[PORT]", end->port);
	if (scan_char(sc, '[') && (!scan_number(sc, &port) || !scan_char(sc, ']') ||
				   port < 1 || port > TOPO_MAX_NODE_PORTS))
		return parse_fail(ps, "the far end's port; expected \"%s\"[1..%d]", id,
				  TOPO_MAX_NODE_PORTS);
	if (scan_char(sc, '(') && (!parse_guid(ps, sc, &end->far_guid) || !scan_char(sc, ')')))
		return parse_fail(ps, "the far end's GUID; expected \"%s\"[%d](HEX)", id,
				  (int)port);
	end->far_port = (int)port;
	end->ref = parse_ref(ps, id);
	return end->ref < 0 ? end->ref : 0;
}

static int port_line(struct parser *ps, struct scan *sc)
{
	struct end end = {.line = ps->line, .node = ps->node};
	struct topo_node *nd = &ps->b.topo->node[ps->node];
	struct ref *ref;
	uint64_t port, guid = 0;
	uint16_t lid = 0;
	char desc[65] = "";

	if (!scan_char(sc, '[') || !scan_number(sc, &port) || !scan_char(sc, ']') ||
	    port < 1 || port > nd->num_ports)
		return parse_fail(ps, "not a port of \"%s\"; expected [1] to [%d]", nd->id,
				  nd->num_ports);
	end.port = (int)port;
	if (scan_char(sc, '(') && (!parse_guid(ps, sc, &guid) || !scan_char(sc, ')')))
		return parse_fail(ps, "the port's GUID; expected [%d](HEX)", end.port);
	if (far_end(ps, sc, &end) || port_options(ps, sc, &end) ||
	    port_comment(ps, sc, &end, desc, sizeof(desc), &lid))
		return -EINVAL;
	if (guid && nd->kind != TOPO_SWITCH)
		nd->port[port].guid = guid;
	if (lid && nd->kind != TOPO_SWITCH)
		nd->port[port].lid_hint = lid;
	ref = &ps->ref[end.ref];
	ref->ports = MAX(ref->ports, end.far_port);
	if (!ref->desc[0])
		strcpy(ref->desc, desc);
	return parse_add_end(ps, &end);
}

/* --- lines ------------------------------------------------------------- */

static const struct {
	const char *word;
	enum topo_kind kind;
} node_words[] = {
	{"Switch", TOPO_SWITCH}, {"Ca", TOPO_CA}, {"Hca", TOPO_CA}, {"Rt", TOPO_ROUTER}};

/* headings that ibnetdiscover prints between chassis */
static const char *const headings[] = {"Chassis", "Non-Chassis", "Spine", "Line", "Slot",
				       "Script" /* first and last line of script(1) */};
static const char *const commands[] = {"include", "module", "do", "pdebug"};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, list[i]))
			return true;
	return false;
}

static int parse_line(struct parser *ps, struct scan *sc)
{
	char word[24];

	scan_space(sc);
	if (scan_end(sc) || scan_at(sc, '#'))
		return 0;
	if (parse_is_prompt(ps, sc)) {
		ps->node = -1;
		return 0;
	}
	if (scan_at(sc, '[')) {
		if (ps->node < 0)
			return parse_fail(
				ps,
				"a port that belongs to no node; expected a node line before it");
		return port_line(ps, sc);
	}
	if (!scan_word(sc, word, sizeof(word)))
		return parse_fail(
			ps,
			"neither a node, a port, an attribute nor a comment; expected for "
			"example Switch 8 \"s1\", or [1] \"n1\"[1]");
	for (size_t i = 0; i < ARRAY_SIZE(node_words); i++)
		if (!strcmp(word, node_words[i].word))
			return node_line(ps, sc, node_words[i].kind, word);
	if (is_one_of(word, headings, ARRAY_SIZE(headings)))
		return 0;
	if (is_one_of(word, commands, ARRAY_SIZE(commands)))
		return parse_fail(
			ps,
			"ibsim's \"%s\" is not read here; expected one file with all nodes",
			word);
	return attr_line(ps, sc, word);
}

static int parse_lines(struct parser *ps, const char *text, size_t len)
{
	const char *end = text + len;
	int error = 0;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* a byte order mark */
		text += 3;
	while (text < end && !error) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		struct scan sc = {text, eol ? eol : end};

		ps->line++;
		if (sc.end > sc.at && sc.end[-1] == '\r')
			sc.end--;
		if (scan_has_zero(&sc))
			error = parse_fail(ps, "a zero byte; expected text");
		else
			error = parse_line(ps, &sc);
		text = eol ? eol + 1 : end;
	}
	return error;
}

int topo_parse_text(const char *name, const char *fabric, const char *text, size_t len,
		    struct topology **topo, char *err, size_t err_bytes)
{
	struct parser ps = {.name = name,
			    .node = -1,
			    .width_enc = TOPO_WIDTH_DEFAULT,
			    .speed_enc = TOPO_SPEED_DEFAULT};
	int error = build_begin(&ps.b, fabric, err, err_bytes);

	if (!error)
		error = parse_lines(&ps, text, len);
	if (!error)
		error = parse_join(&ps);
	if (!error)
		error = parse_name_nodes(&ps);
	if (!error)
		error = parse_addresses(&ps);
	rt_free(ps.ref);
	rt_free(ps.slot);
	rt_free(ps.end);
	rt_free(ps.given);
	if (error) {
		topo_free(ps.b.topo);
		return error;
	}
	*topo = ps.b.topo;
	return 0;
}
