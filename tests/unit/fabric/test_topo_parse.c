/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Topology files: both formats, what each line gives, the way round through
 * the printer, and the message of every kind of error.
 */
#include "topo_check.h"

static struct topology *parse(const char *text)
{
	struct topology *t = NULL;
	char err[300] = "";

	if (topo_parse_text("f", "t", text, strlen(text), &t, err, sizeof(err)))
		fail_msg("%s", err);
	return t;
}

static struct topology *print_and_parse(const struct topology *t)
{
	struct topology *again;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	topo_print_ibnetdiscover(t, NULL, out);
	fclose(out);
	again = parse(text);
	free(text);
	return again;
}

/* after ibnetdiscover(8)'s example, with chassis headings and a CRLF */
static const char discovered[] =
	"#\n# Topology file: generated on Tue Jun  5 14:15:10 2007\n#\n"
	"# Max of 3 hops discovered\n# Initiated from node 0008f10403960558 port 0008f10403960559\n\n"
	"Non-Chassis Nodes\n\n"
	"vendid=0x8f1\r\ndevid=0x5a06\nsysimgguid=0x5442ba00003000\n"
	"switchguid=0x5442ba00003080(5442ba00003080)\n"
	"Switch  24 \"S-005442ba00003080\"         # \"ISR9024 # Voltaire\" base port 0 lid 6 lmc 0\n"
	"[22]    \"H-0008f10403961354\"[1](8f10403961355)         # \"MT23108 InfiniHost\" lid 4 4xSDR\n"
	"[10]    \"S-0008f10400410015\"[1]         # \"SW-6IB4 Voltaire\" lid 3 12xQDR\n"
	"\nvendid=0x8f1\ndevid=0x5a05\nswitchguid=0x8f10400410015(8f10400410015)\n"
	"Switch  8 \"S-0008f10400410015\"          # \"SW-6IB4 Voltaire\" base port 0 lid 3 lmc 0\n"
	"[1]     \"S-005442ba00003080\"[10]                # \"ISR9024 # Voltaire\" lid 6 12xQDR\n"
	"[4]     \"H-005442b100004900\"[2](5442b100004902)        # \"far away\" lid 12 4xNDR\n"
	"\nvendid=0x2c9\ndevid=0x5a44\ncaguid=0x8f10403961354\n"
	"Ca      2 \"H-0008f10403961354\"          # \"MT23108 InfiniHost\"\n"
	"[1](8f10403961355)     \"S-005442ba00003080\"[22]  # lid 4 lmc 1 \"ISR9024 # Voltaire\" lid 6 4xSDR\n"
	"\nrtguid=0x8f10403969999\nRt      1 \"R-0008f10403969999\"          # \"a router\"\n"
	"[1](8f1040396999a)     \"S-005442ba00003080\"[1]  # lid 9 lmc 0 \"ISR9024 # Voltaire\" lid 6 4xSDR\n";

static void ibnetdiscover_format(void **state)
{
	struct topology *t = parse(discovered);
	int sw = topo_find(t, "0x005442ba00003080"),
	    ca = topo_find(t, "MT23108 InfiniHost");
	const struct topo_node *nd = &t->node[sw];

	assert_int_equal(t->num_nodes, 5);
	check_cables(t);
	assert_string_equal(nd->name, "s1");
	assert_string_equal(nd->desc, "ISR9024 # Voltaire");
	assert_string_equal(nd->id, "S-005442ba00003080");
	assert_int_equal(nd->vendor_id, 0x8f1);
	assert_int_equal(nd->device_id, 0x5a06);
	assert_int_equal(nd->sys_guid, 0x5442ba00003000);
	assert_int_equal(nd->port[0].lid_hint, 6);
	assert_int_equal(nd->port[10].width_enc, 8);
	assert_int_equal(nd->port[10].speed_enc, 4);
	assert_int_equal(nd->port[22].speed_enc, 1);
	nd = &t->node[ca];
	assert_string_equal(nd->name, "n1");
	assert_int_equal(nd->num_ports, 2);
	assert_int_equal(topo_port_guid(nd, 1), 0x8f10403961355);
	assert_int_equal(nd->port[1].lid_hint, 4);
	assert_int_equal(nd->port[2].peer_node, -1);
	assert_int_equal(t->node[topo_find(t, "a router")].kind, TOPO_ROUTER);
	topo_free(t);
}

/* "far away" has no record: discovery ended there */
static void implied_far_end(void **state)
{
	struct topology *t = parse(discovered);
	const struct topo_node *nd = &t->node[topo_find(t, "far away")];

	assert_int_equal(nd->kind, TOPO_CA);
	assert_int_equal(nd->guid, 0x5442b100004900);
	assert_int_equal(nd->num_ports, 2);
	assert_int_equal(nd->port[2].guid, 0x5442b100004902);
	assert_int_equal(nd->port[2].speed_enc, 128);
	assert_int_equal(nd->port[1].peer_node, -1);
	topo_free(t);
}

static void ibsim_format(void **state)
{
	struct topology *t = parse(
		"# comment\nspeed=4\n\nSwitch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1] w=8 s=3\n"
		"[2]\t\"Hca1\"[2]\n[8]\t\"Hca 2\"\n\nHca\t2 \"Hca1\" \"with a name\"\n"
		"[1]\t\"Switch1\"[1]\t\tw=8 s=3\n[2]\t\"Switch1\"[2]\n\nHca 1 \"Hca 2\"\n");
	const struct topo_node *sw = &t->node[0];

	assert_int_equal(t->num_nodes, 3);
	check_cables(t);
	assert_int_equal(count_cables(t), 3);
	assert_int_equal(sw->port[1].width_enc, 8);
	assert_int_equal(sw->port[1].speed_enc, 2);
	assert_int_equal(sw->port[2].speed_enc, 4);
	assert_int_equal(sw->port[8].peer_port, 1);
	assert_string_equal(t->node[1].desc, "with a name");
	assert_string_equal(t->node[1].id, "Hca1");
	assert_int_equal(topo_find(t, "Hca 2"), 2);
	assert_int_equal(t->node[2].guid & 0xfffffff, 0x1000200); /* an adapter, n2 */
	topo_free(t);
}

static void round_trips(void **state)
{
	static const char *const specs[] = {
		"direct",      "pair:2",	"star:8",      "star:3,adapters=2",
		"star:3,ports=2,link=infiniband+ethernet", "direct,ports=2,link=ethernet+infiniband",
		"torus:3x2,link=ethernet",
		"fattree:3,3", "torus:3x4x2,2", "dragonfly:3,2,1,speed=HDR,width=2x"};
	struct topology *t = parse(discovered), *again = print_and_parse(t);

	check_same(t, again);
	topo_free(t);
	topo_free(again);
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		t = load(specs[i]);
		again = print_and_parse(t);
		check_same(t, again);
		for (int n = 0; n < t->num_nodes; n++) /* and the names are kept */
			assert_int_equal(topo_find(again, t->node[n].name),
					 topo_find(again, t->node[n].id));
		topo_free(t);
		topo_free(again);
	}
}

static const struct {
	const char *text, *message;
} errors[] = {
	{"", "f: no node in it"},
	{"\n# nothing\n", "f: no node in it"},
	{"Ca 1 \"H-b8e92403009ca838\" # \"alone\"\n",
	 "f:1: \"H-b8e92403009ca838\" and the whole file without"},
	{"\nSwitch\n", "f:2: Switch without its number of ports"},
	{"Switch 0 \"a\"\n", "f:1: Switch without its number"},
	{"Switch 255 \"a\"\n", "f:1: Switch without its number"},
	{"Switch 8\n", "f:1: Switch without an id"},
	{"Switch 8 \"a\n", "f:1: Switch without an id"},
	{"Switch 8 \"\"\n", "f:1: Switch without an id"},
	{"Switch 8 \"a\"\nSwitch 8 \"a\"\n",
	 "f:2: a second record of \"a\"; the first is in line 1"},
	{"[1] \"a\"[1]\n", "f:1: a port that belongs to no node"},
	{"Switch 8 \"a\"\nvendid=1\n[1] \"b\"\n", "f:3: a port that belongs to no node"},
	{"Switch 8 \"a\"\n[9] \"b\"[1]\n",
	 "f:2: not a port of \"a\"; expected [1] to [8]"},
	{"Switch 8 \"a\"\n[0] \"b\"[1]\n", "f:2: not a port"},
	{"Switch 8 \"a\"\n[] \"b\"[1]\n", "f:2: not a port"},
	{"Switch 8 \"a\"\n[1] b[1]\n", "f:2: no far end"},
	{"Switch 8 \"a\"\n[1] \"b\"[]\n", "f:2: the far end's port"},
	{"Switch 8 \"a\"\n[1] \"b\"[1](zz)\n", "f:2: the far end's GUID"},
	{"Switch 8 \"a\"\n[1](q) \"b\"[1]\n", "f:2: the port's GUID"},
	{"Switch 8 \"a\"\n[1] \"b\"[1]\n", "f:2: \"b\" has no record"},
	{"Switch 8 \"a\"\n[1] \"b\"[1] x\n", "f:2: text behind the cable"},
	{"Switch 8 \"a\"\n[1] \"b\"[1] w=16\n", "f:2: option w="},
	{"Switch 8 \"a\"\n[1] \"b\"[1] q=1\n", "f:2: option q="},
	{"Switch 8 \"a\"\n[1] \"S-0000000000000001\"[1] # \"b\" lid 4 4xFOO\n",
	 "f:2: \"4xFOO\" is no link speed"},
	{"Switch 8 \"a\" # link=token-ring\n", "f:1: \"link=token-ring\" is no link layer"},
	{"Switch 8 \"a\"\n[1] \"b\"[1] # link=\nCa 1 \"b\"\n", "f:2: \"link=\" is no link layer"},
	{"Switch 8 \"a\"\n[1] \"b\"[1] # link=ethernet\n[2] \"b\"[2]\nCa 2 \"b\"\n",
	 "f: \"a\" has cables of both link layers"},
	{"Rt 2 \"a\" # link=ethernet\n[1] \"b\"[1]\nCa 1 \"b\"\n",
	 "f: the router \"a\" has a cable of Ethernet"},
	{"Switch 8 \"a\"\n[1] \"a\"[1]\n",
	 "f:2: port 1 of \"a\" is taken or is this port itself"},
	{"Switch 8 \"a\"\n[1] \"b\"[1]\nCa 1 \"b\"\n[1] \"a\"[2]\n",
	 "f:4: port 1 of \"b\" has a cable to \"a\"[1] already"},
	{"Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[1]\nCa 1 \"b\"\n",
	 "f:3: port 1 of \"b\" is taken"},
	{"Switch 8 \"a\"\n[1] \"b\"[2]\nCa 1 \"b\"\n",
	 "f:2: \"b\" has no port 2; expected 1 to 1"},
	{"bogus line\n", "f:1: \"bogus\" is not known"},
	{"!!\n", "f:1: neither a node"},
	{"vendid=\n", "f:1: vendid without a value"},
	{"vendid=0x1 2\n", "f:1: vendid: text behind"},
	{"switchguid=0x1(\n", "f:1: switchguid: expected the port's GUID"},
	{"switchguid=0x11111111111111111\n", "f:1: switchguid without a value"},
	{"width=16\n", "f:1: width= takes"},
	{"include \"x\"\n", "f:1: ibsim's \"include\""},
	{"caguid=0x5\nCa 1 \"a\"\n[1] \"b\"\ncaguid=0x5\nCa 1 \"b\"\n",
	 "f: \"a\" and \"b\" have the same GUID 0x0000000000000005"},
};

static void error_messages(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct topology *t = NULL;
		char err[300];

		assert_int_equal(topo_parse_text("f", "t", errors[i].text,
						 strlen(errors[i].text), &t, err,
						 sizeof(err)),
				 -EINVAL);
		assert_null(t);
		if (strncmp(err, errors[i].message, strlen(errors[i].message)))
			fail_msg("got \"%s\", expected \"%s\"", err, errors[i].message);
		assert_non_null(strstr(err, "expected") ?: strstr(err, "takes"));
	}
}

static void short_message_room(void **state)
{
	struct topology *t = NULL;
	char err[8];

	assert_int_equal(topo_parse_text("f", "t", "?", 1, &t, err, sizeof(err)), -EINVAL);
	assert_int_equal(strlen(err), 7);
	assert_int_equal(topo_parse_text("f", "t", "?", 1, &t, NULL, 0), -EINVAL);
}

/* a zero byte, and every prefix of a good file: an answer, never a crash */
static void cut_short(void **state)
{
	char err[300];

	for (size_t len = 0; len < sizeof(discovered); len++) {
		struct topology *t = NULL;
		char *copy = malloc(len + 1); /* exact, so that a sanitizer sees */

		memcpy(copy, discovered, len);
		copy[len] = '\0';
		if (!topo_parse_text("f", "t", copy, len, &t, err, sizeof(err)))
			check_cables(t);
		else
			assert_true(err[0]);
		topo_free(t);
		free(copy);
	}
	struct topology *t;
	assert_int_equal(topo_parse_text("f", "t", "Ca\0 1", 5, &t, err, sizeof(err)),
			 -EINVAL);
	assert_string_equal(err, "f:1: a zero byte; expected text");
}

static void allocation_failures(void **state)
{
	struct topology *t;
	char err[300];
	int nth = 0, error;

	do {
		rt_fail_alloc((uint64_t)++nth);
		error = topo_parse_text("f", "t", discovered, strlen(discovered), &t, err,
					sizeof(err));
	} while (error && nth < 1000);
	rt_fail_alloc(0);
	assert_in_range(nth, 8, 999);
	topo_free(t);
}

/* the groups of a large drawing hold each adapter once, whatever its ports */
static void drawing_counts_adapters(void **state)
{
	struct topology *t = load("star:100,ports=2");
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	topo_print_dot(t, NULL, out);
	fclose(out);
	assert_non_null(strstr(text, "\"100 adapters\\nn1 … n100\""));
	topo_free(t);
	free(text);
}

static char *draw(const char *spec)
{
	struct topology *t = load(spec);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	topo_print_dot(t, NULL, out);
	fclose(out);
	topo_free(t);
	return text;
}

/* a torus is a grid, a dragonfly has groups: nodes stand where their shape says */
static void drawing_follows_the_shape(void **state)
{
	char *torus = draw("torus:3x2"), *fly = draw("dragonfly:2,1,1"), *star = draw("star:3");

	assert_non_null(strstr(torus, "layout=neato"));
	assert_non_null(strstr(torus, "s1 [label=\"s1\""));
	assert_non_null(strstr(torus, "pos=\"0.00,0.00!\""));
	assert_non_null(strstr(torus, "pos=\"3.80,-1.90!\"")); /* s6: the last of the second row */
	assert_non_null(strstr(fly, "layout=neato"));
	assert_non_null(strstr(fly, "pos="));
	assert_null(strstr(star, "pos="));
	free(torus);
	free(fly);
	free(star);
}

/* n2 before n10, and a speed stands only at a cable that is not as most are */
static void drawing_is_in_order(void **state)
{
	char *star = draw("star:12"), *slow;

	assert_non_null(strstr(star, "n1 -- n2 [style=invis, weight=0]; n2 -- n3 "));
	assert_non_null(strstr(star, "n9 -- n10 "));
	assert_non_null(strstr(star, "cables: 4xEDR where none is named"));
	assert_null(strstr(star, "label=\"4xEDR\""));
	slow = draw("star:2,speed=HDR");
	assert_non_null(strstr(slow, "cables: 4xHDR where none is named"));
	free(star);
	free(slow);
}

/* --- dumps as people have them --- */

#define SWITCH(id) "Switch 8 \"" id "\"\n"
#define TWO_SWITCHES(first, second) \
	first "[1] \"S-00000000000000b2\"[1]\n[2] \"H-00000000000000c1\"[1](c2)\n" second

static void a_copied_terminal(void **state)
{
	static const char *const before[] = {
		"[root@head ~]# ibnetdiscover\n", "me@head-1:~/dumps$ ibnetdiscover -p > x\r\n",
		"head:~ # ibnetdiscover\n", "$ sudo ibnetdiscover\n", "ibnetdiscover\n",
		"sudo /usr/sbin/ibnetdiscover --node-name-map /etc/map\n",
		"Script started on 2026-11-23 02:06:24+00:00\n(venv) [me@head ~]$ ibnetdiscover\n"};
	static const char *const behind[] = {
		"[root@head ~]# ", "me@head-1:~/dumps$", "head:~ # \n", "$ \n", "$\n", "% ",
		"(venv) [me@head ~]$ exit\nexit@head$ \nScript done on 2026-11-23\n"};

	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		struct topology *t;
		char *text;

		assert_true(asprintf(&text, "\xef\xbb\xbf%s%s\n%s", before[i], discovered, behind[i]) > 0);
		t = parse(text);
		assert_int_equal(t->num_nodes, 5);
		assert_int_equal(count_cables(t), 4);
		assert_string_equal(t->warning, "");
		topo_free(t);
		free(text);
	}
}

static const struct topo_node *find_node(const struct topology *t, const char *id)
{
	int i = topo_find(t, id);

	assert_true(i >= 0);
	return &t->node[i];
}

static void masked_guids_are_invented(void **state)
{
	struct topology *t = parse(
		"switchguid=0x248a0703xxxxxxxx(248a0703xxxxxxxx)\nsysimgguid=0xXXXXXXXXXXXXXXXX\n"
		SWITCH("S-248a0703xxxxxx01")
		"[1] \"H-248a0703xxxxxx02\"[1](xxxxxxxxxxxxxxxx) # \"a host\" lid 3 4xEDR\n"
		"[2] \"S-****************\"[1]\n"
		"caguid=0x248a0703xxxxxx03\nCa 1 \"H-248a0703xxxxxx03\"\n"
		"[1](0x*) \"S-248a0703xxxxxx01\"[3]\n");
	uint64_t seen = 0;

	assert_int_equal(t->num_nodes, 4);
	check_cables(t);
	for (int i = 0; i < t->num_nodes; i++) {
		assert_int_equal(t->node[i].guid >> 56, 0x02);
		assert_int_not_equal(t->node[i].guid, seen);
		seen = t->node[i].guid;
	}
	assert_int_equal(find_node(t, "a host")->kind, TOPO_CA);
	assert_non_null(strstr(t->warning, "f:1: masked GUIDs"));
	topo_free(t);
	t = parse(SWITCH("S-xxxx") "[1] \"H-00000000000000c1\"[1]\n");
	assert_non_null(strstr(t->warning, "f:1: masked GUIDs"));
	topo_free(t);
}

/* switches of a chassis that all say its GUID: the id tells them apart, else the port */
static void a_chassis_guid_is_shared(void **state)
{
	struct topology *t = parse(TWO_SWITCHES(
		"sysimgguid=0xa0\nswitchguid=0xa0(b1)\n" SWITCH("S-00000000000000b1"),
		"sysimgguid=0xa0\nswitchguid=0xa0(b2)\n" SWITCH("S-00000000000000b2")));

	assert_int_equal(find_node(t, "S-00000000000000b1")->guid, 0xb1);
	assert_int_equal(find_node(t, "S-00000000000000b2")->guid, 0xb2);
	assert_int_equal(find_node(t, "S-00000000000000b2")->sys_guid, 0xa0);
	assert_non_null(strstr(t->warning, "2 nodes share a GUID (0x00000000000000a0"));
	topo_free(t);
	t = parse("switchguid=0xa0(b1)\n" SWITCH("leaf 1") "[1] \"leaf 2\"[1]\n"
		  "switchguid=0xa0(b2)\n" SWITCH("leaf 2"));
	assert_int_equal(find_node(t, "leaf 1")->guid, 0xb1);
	assert_int_equal(find_node(t, "leaf 2")->guid, 0xb2);
	assert_int_equal(find_node(t, "leaf 2")->sys_guid, 0xa0);
	topo_free(t);
	/* the switch whose own it is keeps it */
	t = parse(TWO_SWITCHES("switchguid=0xb1(b1)\n" SWITCH("S-00000000000000b1"),
			       "switchguid=0xb1(b2)\n" SWITCH("S-00000000000000b2")));
	assert_int_equal(find_node(t, "S-00000000000000b1")->guid, 0xb1);
	assert_int_equal(find_node(t, "S-00000000000000b2")->guid, 0xb2);
	topo_free(t);
}

#define CA(guid, desc, n)                                                                 \
	"caguid=" guid "\nCa 1 \"H-" guid "\" # \"" desc "\"\n[1] \"S-1\"[" n "]\n"

/* descriptions that Linux sets say which adapters are in one host; others do not */
static void hosts_are_in_descriptions(void **state)
{
	struct topology *t = parse("switchguid=0x1\nSwitch 8 \"S-1\" # \"leaf\"\n"
				   CA("0xa1", "alpha mlx5_10", "1") CA("0xb1", "beta HCA-1", "2")
				   CA("0xa2", "alpha mlx5_2", "3") CA("0xc1", "localhost mlx4_0", "4")
				   CA("0xc2", "localhost mlx4_0", "5") CA("0xd1", "MT25408 ConnectX", "6")
				   CA("0xd2", "MT25408 ConnectX", "7"));
	const struct topo_node *first = find_node(t, "alpha mlx5_2");

	assert_string_equal(first->name, "n1");
	assert_string_equal(find_node(t, "alpha mlx5_10")->name, "n1.softib1");
	assert_int_equal(t->node[first->next].guid, 0xa1);
	assert_string_equal(find_node(t, "beta HCA-1")->name, "n2");
	assert_int_equal(t->node[t->num_nodes - 1].number, 6);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ibnetdiscover_format),
		cmocka_unit_test(implied_far_end),
		cmocka_unit_test(ibsim_format),
		cmocka_unit_test(a_copied_terminal),
		cmocka_unit_test(masked_guids_are_invented),
		cmocka_unit_test(a_chassis_guid_is_shared),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(hosts_are_in_descriptions),
		cmocka_unit_test(error_messages),
		cmocka_unit_test(short_message_room),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(allocation_failures),
		cmocka_unit_test(drawing_counts_adapters),
		cmocka_unit_test(drawing_follows_the_shape),
		cmocka_unit_test(drawing_is_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
