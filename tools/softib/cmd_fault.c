/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib fault: rules of what shall go wrong on a fabric that is up. The words
 * of a rule go to softibd as they are; it parses them (src/fault).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/types.h"
#include "softib.h"
#include "verbs.h"

struct fault_args {
	struct common common;
	const char *seed;
	char **words; /* behind the verb */
	int num_words;
};

static const struct argp_option seed_option[] = {
	{"seed", 'S', "N", 0, "seed of the rule's random numbers, 1 or more", 0},
	{0},
};

static error_t parse_fault(int key, char *arg, struct argp_state *state)
{
	struct fault_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'S':
		args->seed = arg;
		return 0;
	case ARGP_KEY_ARG:
		args->words[args->num_words++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&argp_fabric, 0, NULL, 0}, {&argp_json, 0, NULL, 0}, {0}};

static void words_end(struct fault_args *args)
{
	free(args->words);
}
#define WORDS_END __attribute__((cleanup(words_end)))

/* options wherever they stand; the rest are words. Return: 0; -1 (printed) */
static int parse(struct fault_args *args, int argc, char **argv, const struct argp *argp)
{
	args->words = calloc((size_t)argc + 1, sizeof(*args->words));
	if (!args->words)
		return complain("out of memory"), -1;
	argp_parse(argp, argc, argv, 0, NULL, args);
	return 0;
}

/* --- add --------------------------------------------------------------- */

/* behind the place's kind stands a node; blanks are a part of its name */
static bool needs_quotes(char **words, int i)
{
	return i == 1 && !strchr(words[0], ' ') && strchr(words[1], ' ') && !strchr(words[1], '"');
}

static char *join(char **words)
{
	size_t bytes = 1;
	char *text;

	for (char **w = words; *w; w++)
		bytes += strlen(*w) + 3;
	text = calloc(1, bytes);
	for (int i = 0; text && words[i]; i++) {
		const char *quote = needs_quotes(words, i) ? "\"" : "";

		strcat(text, quote);
		strcat(text, words[i]);
		strcat(text, quote);
		if (words[i + 1])
			strcat(text, " ");
	}
	return text;
}

static int add_seed(struct json_object *req, const char *text)
{
	char *end;
	long long seed;

	if (!text)
		return 0;
	errno = 0;
	seed = strtoll(text, &end, 0);
	if (errno || *end || end == text || seed < 1)
		return complain("--seed takes a number from 1 on, not '%s'", text), -1;
	request_number(req, "seed", seed);
	return 0;
}

static int fault_add(int argc, char **argv)
{
	static const struct argp argp = {
		.options = seed_option,
		.parser = parse_fault,
		.children = children,
		.args_doc = "PLACE ACTION [NAME=VALUE...]",
		.doc = "Add a rule that injects a fault, starting with the next packet. PLACE is all, "
		       "link NODE:PORT, port NODE:PORT, node NODE, qp NODE:QPN or class CLASS; "
		       "softib-fault(5) describes places, actions and conditions.\v"
		       "Examples:\n"
		       "  softib fault add link n1:1 drop 1% --seed 7\n"
		       "  softib fault add qp n2:0x12 corrupt nth=10\n"
		       "  softib fault add link s1:1 delay 50us jitter=10us\n"
		       "  softib fault add link s1:1 bandwidth 100MB/s dir=out\n"
		       "  softib fault add class sa drop method=get-table count=2\n"
		       "  softib fault add link s1:2 down for=500ms period=5s\n"
		       "  softib fault add node s2 death for=10s\n"};
	struct fault_args args WORDS_END = {0};
	struct json_object *req, *answer;
	char *text;

	for (int i = 1; i < argc; i++) /* or it would be an unknown option */
		if (argv[i][0] == '-' && argv[i][1] >= '0' && argv[i][1] <= '9' &&
		    strpbrk(argv[i], "%p"))
			return complain("'%s' is negative; a share is from 1ppm to 100%%", argv[i]),
			       EX_USAGE;
	if (parse(&args, argc, argv, &argp))
		return EXIT_FAILURE;
	req = request("fault_add");
	text = join(args.words);
	request_text(req, "rule", text ? text : "");
	free(text);
	if (add_seed(req, args.seed)) {
		json_object_put(req);
		return EX_USAGE;
	}
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(answer);
	else
		printf("%lld: %s\n", (long long)number_of(answer, "id"), text_of(answer, "rule"));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- list -------------------------------------------------------------- */

static int fault_list(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_fault,
		.children = children,
		.doc = "List the rules with the numbers of packets that matched and that were hit. "
		       "NOW is 'on' while a rule keeps its link or node down, else 'off'.\v"
		       "Examples:\n"
		       "  softib fault list\n"
		       "  softib fault list --json\n"};
	struct fault_args args WORDS_END = {0};
	struct json_object *answer, *list;

	if (parse(&args, argc, argv, &argp))
		return EXIT_FAILURE;
	if (args.num_words)
		return complain("'softib fault list' takes no '%s'; see --help", args.words[0]),
		       EX_USAGE;
	answer = client_ask(&args.common, request("fault_list"));
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "rules");
	if (args.common.json)
		print_json(answer);
	else if (count_of(list))
		printf("%-4s %12s %12s  %-3s  %s\n", "ID", "MATCHED", "HIT", "NOW", "RULE");
	else
		puts("no rules; 'softib fault add --help' shows how to add one");
	for (size_t i = 0; !args.common.json && i < count_of(list); i++) {
		struct json_object *rule = item_of(list, i), *on = member_of(rule, "on");

		printf("%-4lld %12lld %12lld  %-3s  %s\n", (long long)number_of(rule, "id"),
		       (long long)number_of(rule, "matched"), (long long)number_of(rule, "hits"),
		       !on ? "" : json_object_get_boolean(on) ? "on" : "off",
		       text_of(rule, "rule"));
	}
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- clear ------------------------------------------------------------- */

/* a rule's number, or 0 for all of them. Return: -1: it is neither */
static long rule_id(const char *word)
{
	char *end;
	long id = strtol(word, &end, 10);

	if (!strcmp(word, "all"))
		return 0;
	return *end || end == word || id < 1 ? -1 : id;
}

static int fault_clear(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_fault,
		.children = children,
		.args_doc = "ID...|all",
		.doc = "Clear rules. Packets that they delay are sent on, and links and switches that they "
		       "took down come up again.\v"
		       "Examples:\n"
		       "  softib fault clear 3 4\n"
		       "  softib fault clear all\n"};
	struct fault_args args WORDS_END = {0};
	struct json_object *req, *answer;
	int status = EXIT_SUCCESS;

	if (parse(&args, argc, argv, &argp))
		return EXIT_FAILURE;
	if (!args.num_words)
		return complain("expected the numbers of rules as in 'softib fault list', or all"), EX_USAGE;
	for (int i = 0; i < args.num_words; i++)
		if (rule_id(args.words[i]) < 0)
			return complain("no rule '%s'; expected a number as in 'softib fault list', or all",
					args.words[i]),
			       EX_USAGE;
	for (int i = 0; i < args.num_words; i++) {
		long id = rule_id(args.words[i]);

		req = request("fault_clear");
		if (id)
			request_number(req, "id", id);
		answer = client_ask(&args.common, req);
		if (!answer) /* said; the others are to go all the same */
			status = EXIT_FAILURE;
		json_object_put(answer);
	}
	return status;
}

/* --- log --------------------------------------------------------------- */

/* of a completion or an event */
static unsigned long long qp_of(struct json_object *hit)
{
	return (unsigned long long)number_of(hit, member_of(hit, "qpn") ? "qpn" : "src_qpn");
}

static void print_hit(struct json_object *hit, int64_t now_ns)
{
	double ago = (double)(now_ns - number_of(hit, "when_ns")) / 1e9;

	printf("%-8lld %12.6f s ago  %-4lld %-10s %s", (long long)number_of(hit, "serial"), ago,
	       (long long)number_of(hit, "rule"), text_of(hit, "action"), text_of(hit, "from"));
	if (member_of(hit, "to"))
		printf(" > %s", text_of(hit, "to"));
	if (member_of(hit, "what"))
		printf("  %s", text_of(hit, "what"));
	if (!member_of(hit, "opcode") && qp_of(hit))
		printf(" QP 0x%06llx", qp_of(hit));
	if (member_of(hit, "opcode"))
		printf("  %s LID %lld > %lld QP %s%06llx PSN %06llx %lld bytes", text_of(hit, "opcode"),
		       (long long)number_of(hit, "slid"), (long long)number_of(hit, "dlid"), "0x",
		       (long long)number_of(hit, "qpn"), (long long)number_of(hit, "psn"),
		       (long long)number_of(hit, "bytes"));
	if (member_of(hit, "class"))
		printf(" class 0x%02llx method 0x%02llx attr 0x%04llx",
		       (long long)number_of(hit, "class"), (long long)number_of(hit, "method"),
		       (long long)number_of(hit, "attr"));
	putchar('\n');
}

static int fault_log(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_fault,
		.children = children,
		.args_doc = "[ID]",
		.doc = "Show the hits of the rules: each has its time and its link and packet, or its "
		       "node and object. The last 65,536 hits are kept.\v"
		       "Examples:\n"
		       "  softib fault log\n"
		       "  softib fault log 3\n"};
	struct fault_args args WORDS_END = {0};
	struct json_object *answer, *list, *req, *all = NULL;
	int64_t since = 0, only = 0, logged, shown = 0;
	size_t n;

	if (parse(&args, argc, argv, &argp))
		return EXIT_FAILURE;
	if (args.num_words)
		only = rule_id(args.words[0]);
	if (args.num_words > 1 || (args.num_words && only < 1))
		return complain("expected at most one rule's number as in 'softib fault list'"), EX_USAGE;
	if (args.common.json)
		all = json_object_new_array();
	do {
		req = request("fault_log");
		request_number(req, "since", since);
		answer = client_ask(&args.common, req);
		if (!answer)
			return EXIT_FAILURE;
		list = member_of(answer, "hits");
		logged = number_of(answer, "logged");
		n = count_of(list);
		for (size_t i = 0; i < n; i++) {
			struct json_object *hit = item_of(list, i);

			since = number_of(hit, "serial");
			if (only && number_of(hit, "rule") != only)
				continue;
			shown++;
			if (all)
				json_object_array_add(all, json_object_get(hit));
			else
				print_hit(hit, number_of(answer, "now_ns"));
		}
		json_object_put(answer);
	} while (n && since < logged);
	if (all)
		print_json(all);
	else if (!shown)
		puts(only ? "no hits of that rule" : "no hits");
	json_object_put(all);
	return EXIT_SUCCESS;
}

/* --- the verbs --------------------------------------------------------- */

static const struct command verbs[] = {
	{"add", "let something go wrong", fault_add},
	{"list", "the rules and how often they hit", fault_list},
	{"clear", "end rules", fault_clear},
	{"log", "each hit: when, where, which packet", fault_log},
	{"run", "a scenario from a file", fault_run},
};

int cmd_fault(int argc, char **argv)
{
	static const struct verbs fault = {
		.name = "softib fault",
		.about = "Faults on a fabric that is up: packets lost, spoiled, late; links, switches "
			 "and\n"
			 "adapters that fail. softib-fault(5) describes rules and scenarios.\n",
		.examples = "  softib fault add link n1:1 drop 1% --seed 7\n"
			    "  softib fault log\n"
			    "  softib fault clear all\n",
		.table = verbs,
		.nr = ARRAY_SIZE(verbs),
	};

	return verbs_run(&fault, argc, argv);
}
