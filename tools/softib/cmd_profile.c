/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib profile: what adapters of other makes report, for --hca-profile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "profile/profile.h"
#include "softib.h"

#define OUTPUT_MAX (1 << 20) /* of ibv_devinfo */

struct profile_args {
	const char *device, *from;
	const char *words[2]; /* the verb, and what it is done to */
	unsigned num_words;
};

/* --- list, show --- */

static int list(const struct profile_args *args)
{
	for (unsigned i = 0; profile_builtin(i); i++)
		puts(profile_builtin(i));
	return EXIT_SUCCESS;
}

static int show(const struct profile_args *args)
{
	char text[PROFILE_TEXT_BYTES], err[512];
	struct profile profile;

	if (profile_load(args->words[1], &profile, err, sizeof(err)))
		return complain("%s", err);
	profile_print(&profile, text, sizeof(text));
	fputs(*text ? text : "# all that softib has\n", stdout);
	return EXIT_SUCCESS;
}

/* --- record --- */

static FILE *open_source(const struct profile_args *args)
{
	if (!args->from)
		return popen("ibv_devinfo -v", "re");
	return strcmp(args->from, "-") ? fopen(args->from, "re") : stdin;
}

/* Return: the output of ibv_devinfo, the caller's; NULL (printed) */
static char *read_devinfo(const struct profile_args *args)
{
	const char *what = args->from ? args->from : "ibv_devinfo";
	FILE *file = open_source(args);
	char *text = calloc(1, OUTPUT_MAX);
	int status = 0;

	if (!file || !text) {
		complain("cannot read %s: %s", what, strerror(errno));
		free(text);
		return NULL;
	}
	fread(text, 1, OUTPUT_MAX - 1, file);
	if (!args->from)
		status = pclose(file);
	else if (file != stdin)
		fclose(file);
	if (!status)
		return text;
	complain("ibv_devinfo failed; it is in the package ibverbs-utils. Where the adapter is on "
		 "another machine, 'ibv_devinfo -v > FILE' there and --from FILE here");
	free(text);
	return NULL;
}

static int write_profile(const struct profile *profile, const char *path)
{
	FILE *file = path ? fopen(path, "we") : stdout;
	char text[PROFILE_TEXT_BYTES];

	if (!file)
		return complain("cannot write %s: %s", path, strerror(errno));
	profile_print(profile, text, sizeof(text));
	fprintf(file, "# %s, as ibv_devinfo -v shows it\n%s", profile->name, text);
	if (path && fclose(file))
		return complain("cannot write %s: %s", path, strerror(errno));
	return EXIT_SUCCESS;
}

static int record(const struct profile_args *args)
{
	char *text = read_devinfo(args), err[512];
	struct profile profile;
	int ret;

	if (!text)
		return EXIT_FAILURE;
	ret = profile_from_devinfo(text, args->device, &profile, err, sizeof(err));
	free(text);
	if (ret)
		return complain("%s: %s", args->from ? args->from : "ibv_devinfo", err);
	return write_profile(&profile, args->words[1]);
}

/* --- the command --- */

static const struct verb {
	const char *name;
	unsigned least, most; /* words, with itself */
	int (*run)(const struct profile_args *args);
} verbs[] = {{"list", 1, 1, list}, {"show", 2, 2, show}, {"record", 1, 2, record}};

static const struct verb *find_verb(const struct profile_args *args)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs) && args->num_words; i++)
		if (!strcmp(verbs[i].name, args->words[0]))
			return &verbs[i];
	return NULL;
}

static void check_words(struct argp_state *state, const struct profile_args *args)
{
	const struct verb *verb = find_verb(args);

	if (!verb)
		argp_error(state, "list, show or record? For example: softib profile list");
	else if (args->num_words < verb->least || args->num_words > verb->most)
		argp_error(state, "profile %s takes %s", verb->name,
			   verb->least > 1  ? "a name or a file"
			   : verb->most > 1 ? "one file"
					    : "nothing");
	else if (verb->run != record && (args->from || args->device))
		argp_error(state, "--from and --device go with 'record'");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct profile_args *args = state->input;

	switch (key) {
	case 'd':
		args->device = arg;
		return 0;
	case 'F':
		args->from = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num >= ARRAY_SIZE(args->words))
			argp_error(state, "'%s' is one word too many", arg);
		args->words[args->num_words++] = arg;
		return 0;
	case ARGP_KEY_END:
		check_words(state, args);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_profile(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"device", 'd', "DEVICE", 0, "record: of this adapter, not the first", 0},
		{"from", 'F', "FILE", 0,
		 "record: the output of 'ibv_devinfo -v' is in FILE, '-': in the standard input", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "list\nshow PROFILE\nrecord [FILE]",
		.doc = "Profiles of adapters, for 'softib up --hca-profile PROFILE': those that are "
		       "built in, what is in one, and one of an adapter that ibv_devinfo shows.\v"
		       "Examples:\n"
		       "  softib profile list\n"
		       "  softib profile show connectx5\n"
		       "  softib profile record site.profile\n"
		       "  ssh host ibv_devinfo -v | softib profile record --from - site.profile\n"
		       "  softib run --hca-profile site.profile -- ibv_devinfo -v\n"};
	struct profile_args args = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	return find_verb(&args)->run(&args);
}

/* --- of a fabric that comes up --- */

void profile_say_less(const char *dir)
{
	struct json_object *status = client_call_quiet(dir, request("status"));
	const char *less = text_of(status, "hca_profile_less");

	if (*less)
		complain("of the profile %s the adapters have less: %s",
			 text_of(status, "hca_profile"), less);
	json_object_put(status);
}
