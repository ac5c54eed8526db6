/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib srp target: the units that a node serves by SRP. This command opens the files,
 * so that softibd serves nothing that its user may not open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/types.h"
#include "verbs.h"

#define UNITS_MAX  256
#define RAM_PREFIX "ram:"
#define KEPT_OPTION "aptpl="

/** struct unit - one --unit */
struct unit {
	const char *file; /* or ram:SIZE */
	bool read_only, write_through, sparse, large_blocks;
	bool keeps;	  /* its reservations */
	const char *kept; /* the file that they are kept in; NULL: the unit's name and ".aptpl" */
	uint64_t ram_bytes; /* 0: a file */
};

struct target_args {
	struct common common;
	const char *node;
	const char *lun, *controller;
	struct unit unit[UNITS_MAX];
	unsigned nr_units;
};

#define CONTROLLER_OPTION                                                                  \
	{                                                                                \
		"controller", 'c', "N", 0,                                               \
			"of the node's I/O controllers, each of which is a target: 1 to 4", 0    \
	}

static const struct argp_child children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

/* --- units in words ------------------------------------------------------------ */

/* Return: "64M" in bytes; 0: it is no such number */
static uint64_t parse_bytes(const char *word)
{
	static const char suffixes[] = "KMGT";
	char *end;
	uint64_t n;
	const char *suffix;

	errno = 0;
	n = strtoull(word, &end, 10);
	if (end == word || word[0] == '-' || errno)
		return 0;
	if (!*end)
		return n;
	suffix = strchr(suffixes, *end);
	if (!suffix || end[1] || n > UINT64_MAX >> (10 * (suffix - suffixes + 1)))
		return 0;
	return n << (10 * (suffix - suffixes + 1));
}

/* Return: false: a unit has no such option */
static bool parse_option(struct unit *unit, const char *word)
{
	const struct {
		const char *word;
		bool *flag;
	} options[] = {{"ro", &unit->read_only},
		       {"wt", &unit->write_through},
		       {"sparse", &unit->sparse},
		       {"4k", &unit->large_blocks},
		       {"aptpl", &unit->keeps}};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(options[i].word, word)) {
			*options[i].flag = true;
			return true;
		}
	if (strncmp(word, KEPT_OPTION, strlen(KEPT_OPTION)) != 0)
		return false;
	unit->keeps = true;
	unit->kept = word + strlen(KEPT_OPTION);
	return true;
}

/* The options are cut off from the end, so that a file's name may have colons. */
static void parse_unit(struct target_args *args, char *word, struct argp_state *state)
{
	struct unit *unit = &args->unit[args->nr_units];
	char *colon;

	if (args->nr_units == UNITS_MAX)
		argp_error(state, "a target has at most %d units", UNITS_MAX);
	while ((colon = strrchr(word, ':')) && parse_option(unit, colon + 1))
		*colon = '\0';
	unit->file = word;
	if (!strncmp(word, RAM_PREFIX, strlen(RAM_PREFIX))) {
		unit->ram_bytes = parse_bytes(word + strlen(RAM_PREFIX));
		if (!unit->ram_bytes)
			argp_error(state,
				   "expected ram:SIZE such as ram:64M, not '%s' (a file "
				   "of that name: ./%s)",
				   word, word);
		if (unit->keeps)
			argp_error(state,
				   "'%s' ends with its unit, and so do its reservations: "
				   "':aptpl' is for files and block devices",
				   word);
	}
	args->nr_units++;
}

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
	struct target_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'c':
		args->controller = arg;
		return 0;
	case 'u':
		parse_unit(args, arg, state);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "'%s' is one word too many", arg);
		*(state->arg_num ? &args->lun : &args->node) = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Let @req name the controller. Return: false (printed) */
static bool put_controller(struct json_object *req, const char *word)
{
	char *end;
	long number;

	if (!word)
		return true;
	number = strtol(word, &end, 10);
	if (*end || end == word || number < 0) {
		complain("expected the number of an I/O controller, 1 to 4, not '%s'", word);
		return false;
	}
	request_number(req, "controller", number);
	return true;
}

/* --- add ------------------------------------------------------------------------- */

static int open_ram(const struct unit *unit)
{
	int fd = memfd_create(unit->file, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)unit->ram_bytes)) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Return: a descriptor; -1 (printed) */
static int open_unit(const struct unit *unit)
{
	struct stat st;
	int fd = unit->ram_bytes ? open_ram(unit)
				 : open(unit->file,
					O_CLOEXEC | O_NONBLOCK |
						(unit->read_only ? O_RDONLY : O_RDWR));

	if (fd < 0 || fstat(fd, &st)) {
		complain("cannot open the unit '%s': %s%s", unit->file, strerror(errno),
			 errno == EACCES || errno == EROFS
				 ? "; a unit that is only read has ':ro' behind its name"
			 : errno == ENOENT ? "; 'truncate -s 1G FILE' makes an empty disk"
					   : "");
		return -1;
	}
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		return fd;
	complain("'%s' is neither a file nor a block device", unit->file);
	close(fd);
	return -1;
}

/* Return: a descriptor; -1 (printed) */
static int open_kept(const struct unit *unit, int unit_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (!unit->kept && (fstat(unit_fd, &st) || !S_ISREG(st.st_mode))) {
		complain("'%s' is a device: name the file for its reservations, as in "
			 "'%s:aptpl=PATH'", unit->file, unit->file);
		return -1;
	}
	if (snprintf(path, sizeof(path), "%s%s", unit->kept ? unit->kept : unit->file,
		     unit->kept ? "" : ".aptpl") >= (int)sizeof(path)) {
		complain("the name of the file for the reservations of '%s' is too long",
			 unit->file);
		return -1;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		complain("cannot open '%s', in which the reservations of '%s' are kept: %s; "
			 "':aptpl=PATH' names another file", path, unit->file, strerror(errno));
	return fd;
}

/* Return: the answer, the caller's; NULL (printed) */
static struct json_object *add_unit(const char *dir, const struct target_args *args,
				    const struct unit *unit)
{
	struct json_object *req = request("srp_unit_add"), *answer = NULL;
	int fd[2] = {open_unit(unit), -1};
	bool is_open = fd[0] >= 0 && put_controller(req, args->controller);

	request_text(req, "node", args->node);
	request_text(req, "name", unit->file);
	request_number(req, "block_bytes", unit->large_blocks ? 4096 : 512);
	json_object_object_add(req, "read_only",
			       json_object_new_boolean(unit->read_only));
	json_object_object_add(req, "write_through",
			       json_object_new_boolean(unit->write_through));
	json_object_object_add(req, "sparse", json_object_new_boolean(unit->sparse));
	if (is_open && unit->keeps) {
		fd[1] = open_kept(unit, fd[0]);
		is_open = fd[1] >= 0;
	}
	if (is_open)
		answer = client_call_fds(
			dir, req,
			&(struct client_fds){.send = fd, .num_send = unit->keeps ? 2 : 1});
	else
		json_object_put(req);
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return answer;
}

/* NODE, or NODE.CONTROLLER of another controller than the first */
static void print_target_name(struct json_object *o)
{
	char name[256];

	if (number_of(o, "controller") == 1)
		snprintf(name, sizeof(name), "%s", text_of(o, "node"));
	else
		snprintf(name, sizeof(name), "%s.%lld", text_of(o, "node"),
			 (long long)number_of(o, "controller"));
	paint("1", name, 0);
}

static void print_added(struct json_object *answer, const char *file)
{
	print_target_name(answer);
	printf(" LUN %lld: %s\n", (long long)number_of(answer, "lun"), file);
}

static int target_add(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"unit", 'u', "FILE[:ro][:wt][:sparse][:4k][:aptpl[=PATH]]", 0,
		 "a file or block device, or ram:SIZE (such as ram:64M). ro: it is only "
		 "read; "
		 "wt: a write is on the disk before it is acknowledged; sparse: "
		 "discarded "
		 "blocks are given back to the file system; 4k: blocks of 4096 bytes; "
		 "aptpl: "
		 "hosts may have their persistent reservations kept, in PATH or FILE.aptpl",
		 0},
		CONTROLLER_OPTION,
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_target,
		.children = children,
		.args_doc = "NODE",
		.doc = "Serve disks from a node. The units get the next free LUNs; the "
		       "first one "
		       "of a node starts its target.\v"
		       "Examples:\n"
		       "  softib srp target add n1 --unit disk.img --unit boot.iso:ro\n"
		       "  softib srp target add n2 --unit ram:64M\n"};
	struct target_args *args = calloc(1, sizeof(*args));
	int status = EXIT_SUCCESS;
	char dir[PATH_MAX];

	if (!args)
		return complain("out of memory");
	argp_parse(&argp, argc, argv, 0, NULL, args);
	if (!args->node || args->lun || !args->nr_units) {
		complain("expected one node and its units, as in 'softib srp target add "
			 "n1 "
			 "--unit disk.img'");
		status = EX_USAGE;
	} else if (place_choose(args->common.fabric, dir)) {
		status = EXIT_FAILURE;
	}
	for (unsigned i = 0; !status && i < args->nr_units; i++) {
		struct json_object *answer = add_unit(dir, args, &args->unit[i]);

		if (!answer)
			status = EXIT_FAILURE;
		else if (args->common.json)
			print_json(answer);
		else
			print_added(answer, args->unit[i].file);
		json_object_put(answer);
	}
	free(args);
	return status;
}

/* --- list ------------------------------------------------------------------------ */

static void print_unit(struct json_object *unit)
{
	static const char *const flags[] = {"read_only", "write_through", "sparse",
					     "keeps_reservations"};
	char size[16];

	printf("  LUN %-3lld %10s  %s", (long long)number_of(unit, "lun"),
	       human_bytes((uint64_t)number_of(unit, "bytes"), size),
	       text_of(unit, "name"));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (json_object_get_boolean(member_of(unit, flags[i])))
			printf(", %s", flags[i]);
	putchar('\n');
}

static void print_session(struct json_object *session)
{
	printf("  initiator %s (%s, port %lld): %lld commands, %lld outstanding\n",
	       text_of(session, "initiator"), text_of(session, "gid"),
	       (long long)number_of(session, "port"),
	       (long long)number_of(session, "commands"),
	       (long long)number_of(session, "outstanding"));
}

static void print_target(struct json_object *target)
{
	struct json_object *units = member_of(target, "units");
	struct json_object *sessions = member_of(target, "channels");

	print_target_name(target);
	printf(": service %s, I/O controller %s\n", text_of(target, "service_name"),
	       text_of(target, "ioc_guid"));
	for (size_t i = 0; i < count_of(units); i++)
		print_unit(item_of(units, i));
	for (size_t i = 0; i < count_of(sessions); i++)
		print_session(item_of(sessions, i));
}

static int target_list(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse_target,
					 .children = children,
					 .args_doc = "[NODE]",
					 .doc = "List the targets of nodes: their units, "
						"and the initiators that are "
						"logged in.\v"
						"Examples:\n"
						"  softib srp target list\n"
						"  softib srp target list n1 --json\n"};
	struct json_object *req = request("srp_targets"), *answer, *list;
	static struct target_args args;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.node)
		request_text(req, "node", args.node);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "targets");
	if (args.common.json)
		print_json(list);
	else if (!count_of(list))
		puts("no targets; 'softib srp target add --help' shows how to add one");
	for (size_t i = 0; !args.common.json && i < count_of(list); i++)
		print_target(item_of(list, i));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- remove ---------------------------------------------------------------------- */

static int target_remove(int argc, char **argv)
{
	static const struct argp_option options[] = {CONTROLLER_OPTION, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_target,
		.children = children,
		.args_doc = "NODE [LUN]",
		.doc = "Remove a unit, or a node's targets with all units. Initiators "
		       "find the "
		       "unit gone; those of a target that ends are logged out.\v"
		       "Examples:\n"
		       "  softib srp target remove n1\n"
		       "  softib srp target remove n1 2\n"};
	struct json_object *req = request("srp_unit_remove"), *answer;
	static struct target_args args;
	char *end = NULL;
	long lun = -1;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.lun)
		lun = strtol(args.lun, &end, 10);
	if (!args.node || (args.lun && (*end || end == args.lun || lun < 0))) {
		json_object_put(req);
		return complain("expected a node and perhaps the LUN of one unit, as "
				"'softib srp target list' shows them"),
		       EX_USAGE;
	}
	if (!put_controller(req, args.controller)) {
		json_object_put(req);
		return EX_USAGE;
	}
	request_text(req, "node", args.node);
	if (args.lun)
		request_number(req, "lun", lun);
	answer = client_ask(&args.common, req);
	json_object_put(answer);
	return answer ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- the verbs ------------------------------------------------------------------- */

static const struct command verbs[] = {
	{"add", "serve a disk from a node", target_add},
	{"list", "the targets, their units and who is logged in", target_list},
	{"remove", "end a unit or a target", target_remove},
};

int srp_target(int argc, char **argv)
{
	static const struct verbs target = {
		.name = "softib srp target",
		.about = "Files, block devices and RAM that nodes serve as SCSI disks by "
			 "SRP.\n",
		.examples = "  softib srp target add n1 --unit disk.img --unit ram:64M\n"
			    "  softib srp target list\n"
			    "  softib srp target remove n1\n",
		.table = verbs,
		.nr = ARRAY_SIZE(verbs),
	};

	return verbs_run(&target, argc, argv);
}
