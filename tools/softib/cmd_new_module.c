/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib new-module: the files of a module that builds, loads and unloads. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"
#include "softib.h"

#define NAME_BYTES_MAX 15 /* what a module may be called: docs/MODULES.md */

/* In what follows @NAME@ stands for the module's name, @SELF@ for the folder of this program
 * and @HEADERS@ for that of softib-module.pc. */
static const char source[] =
	"/* @NAME@: a client of the InfiniBand midlayer. */\n"
	"#include <linux/module.h>\n"
	"#include <rdma/ib_verbs.h>\n"
	"\n"
	"static bool verbose;\n"
	"module_param(verbose, bool, 0444);\n"
	"MODULE_PARM_DESC(verbose, \"print the state of each port\");\n"
	"\n"
	"static void print_port(struct ib_device *device, u32 port)\n"
	"{\n"
	"\tstruct ib_port_attr attr;\n"
	"\n"
	"\tif (!ib_query_port(device, port, &attr))\n"
	"\t\tpr_info(\"%s port %u: lid %u, state %d\\n\", device->name, port, attr.lid, attr.state);\n"
	"}\n"
	"\n"
	"/* An adapter is there. May sleep. A negative result leaves the adapter to others. */\n"
	"static int @NAME@_add(struct ib_device *device)\n"
	"{\n"
	"\tpr_info(\"add %s\\n\", device->name);\n"
	"\tfor (u32 port = rdma_start_port(device); verbose && port <= rdma_end_port(device); port++)\n"
	"\t\tprint_port(device, port);\n"
	"\treturn 0;\n"
	"}\n"
	"\n"
	"/* It goes: give back all that belongs to it. May sleep. */\n"
	"static void @NAME@_remove(struct ib_device *device, void *client_data)\n"
	"{\n"
	"\tpr_info(\"remove %s\\n\", device->name);\n"
	"}\n"
	"\n"
	"static struct ib_client client = {\n"
	"\t.name = \"@NAME@\", .add = @NAME@_add, .remove = @NAME@_remove};\n"
	"\n"
	"static int __init @NAME@_init(void)\n"
	"{\n"
	"\treturn ib_register_client(&client);\n"
	"}\n"
	"\n"
	"static void __exit @NAME@_exit(void)\n"
	"{\n"
	"\tib_unregister_client(&client);\n"
	"}\n"
	"\n"
	"module_init(@NAME@_init);\n"
	"module_exit(@NAME@_exit);\n"
	"MODULE_LICENSE(\"Dual BSD/GPL\");\n";

static const char makefile[] =
	"# make builds @NAME@.so; make load and make unload put it into a node's stack and back.\n"
	"NODE ?= n1\n"
	"SOFTIB ?= $(firstword $(wildcard @SELF@/softib) softib)\n"
	"CFLAGS ?= -O2 -g -Wall\n"
	"# where softib-module.pc is; a directory of PKG_CONFIG_PATH that has one comes first\n"
	"SOFTIB_PKGCONFIG ?= @HEADERS@\n"
	"\n"
	"HEADERS := $(shell PKG_CONFIG_PATH=\"$$PKG_CONFIG_PATH:$(SOFTIB_PKGCONFIG)\" \\\n"
	"\tpkg-config --cflags softib-module)\n"
	"ifeq ($(HEADERS),)\n"
	"$(error pkg-config does not find softib-module: set SOFTIB_PKGCONFIG to its folder)\n"
	"endif\n"
	"\n"
	"@NAME@.so: @NAME@.c Makefile\n"
	"\t$(CC) -std=gnu17 $(CFLAGS) $(HEADERS) -shared -fPIC $(LDFLAGS) $< -o $@\n"
	"\n"
	"load: @NAME@.so\n"
	"\t$(SOFTIB) modprobe $(NODE) ./@NAME@.so $(PARAMS)\n"
	"unload:\n"
	"\t$(SOFTIB) rmmod $(NODE) @NAME@\n"
	"clean:\n"
	"\trm -f @NAME@.so\n"
	".PHONY: load unload clean\n";

static const char readme[] =
	"# @NAME@\n"
	"\n"
	"A loadable module of softib: a client of the InfiniBand midlayer.\n"
	"\n"
	"    make                       # builds @NAME@.so\n"
	"    softib up                  # a fabric, when none is up\n"
	"    make load NODE=n1          # softib modprobe n1 ./@NAME@.so\n"
	"    make load PARAMS=verbose   # the same with a parameter\n"
	"    make unload NODE=n1        # softib rmmod n1 @NAME@\n"
	"\n"
	"What it prints goes to softibd.log in the fabric's folder. docs/MODULES.md of softib describes\n"
	"what a module may do.\n";

struct new_module {
	const char *name, *dir;
	char self[PATH_MAX], headers[PATH_MAX];
};

static error_t parse_new_module(int key, char *arg, struct argp_state *state)
{
	struct new_module *args = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (args->dir)
			argp_error(state, "'%s' is one word too many", arg);
		*(args->name ? &args->dir : &args->name) = arg;
		return 0;
	case ARGP_KEY_END:
		if (!args->name)
			argp_error(state, "give the module a name");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* It is a part of the names of functions, which may not be those of softib/module.h, and
 * none of softibd's own parts may have it. */
static bool name_is_good(const char *name)
{
	static const char *const taken[] = {"module", "core", "mad", "sa", "cm", "rdma_cm", "ipoib"};
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(name, taken[i]))
			return false;
	for (const char *c = name; *c; c++)
		if (!isascii(*c) || !(isalnum(*c) || *c == '_'))
			return false;
	return n && n <= NAME_BYTES_MAX && !isdigit(name[0]);
}

static const char *meaning(const struct new_module *m, const char *at, size_t *len)
{
	static const char *const words[] = {"@NAME@", "@SELF@", "@HEADERS@"};
	const char *const values[] = {m->name, m->self, m->headers};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		*len = strlen(words[i]);
		if (!strncmp(at, words[i], *len))
			return values[i];
	}
	return NULL;
}

static void print_filled(FILE *file, const struct new_module *m, const char *text)
{
	while (*text) {
		size_t len;
		const char *value = *text == '@' ? meaning(m, text, &len) : NULL;

		if (value) {
			fputs(value, file);
			text += len;
		} else {
			fputc(*text++, file);
		}
	}
}

/* Write @text to the file @name of the module's folder. Return: 0; -1 (said) */
static int write_file(const struct new_module *m, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd, failed;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", m->dir, name) >= (int)sizeof(path)) {
		complain("%s is too long a name for a folder", m->dir);
		return -1;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		complain("cannot write %s: %s%s", path, strerror(errno),
			 errno == EEXIST ? "; name another folder, or remove it" : "");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	print_filled(file, m, text);
	failed = ferror(file);
	if (fclose(file) || failed) {
		complain("cannot write %s: %s", path, strerror(errno));
		unlink(path);
		return -1;
	}
	return 0;
}

/* The folders' names stand in the Makefile, where these characters mean something. */
static bool fits_in_makefile(const char *path)
{
	return !path[strcspn(path, " \t$#:\"'`\\;&|<>()*?")];
}

int cmd_new_module(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_new_module,
		.args_doc = "NAME [DIR]",
		.doc = "Write a module that builds, loads and unloads.\v"
		       "DIR, ./NAME when it is not given, gets the source NAME.c, a Makefile and a "
		       "README.md. Files that are there already are left as they are.\n\n"
		       "Examples:\n  softib new-module hello\n  make -C hello load NODE=n1\n"};
	struct new_module m = {0};
	char file[NAME_BYTES_MAX + sizeof(".c")];

	argp_parse(&argp, argc, argv, 0, NULL, &m);
	if (!name_is_good(m.name))
		return complain("'%s' is no name for a module: letters, digits and '_', a letter first, "
				"at most %d of them, and no name of a part of softib", m.name, NAME_BYTES_MAX);
	if (!m.dir)
		m.dir = m.name;
	if (place_self_dir(m.self) || place_module_headers(m.headers))
		return EXIT_FAILURE;
	if (!fits_in_makefile(m.self) || !fits_in_makefile(m.headers))
		return complain("a Makefile cannot name the folder %s, where softib is: install it "
				"elsewhere", m.self);
	if (mkdir(m.dir, 0777) && errno != EEXIST)
		return complain("cannot make the folder %s: %s", m.dir, strerror(errno));
	snprintf(file, sizeof(file), "%s.c", m.name);
	if (write_file(&m, file, source) || write_file(&m, "Makefile", makefile) ||
	    write_file(&m, "README.md", readme))
		return EXIT_FAILURE;
	printf("%s/%s.c, Makefile and README.md are written. 'make -C %s' builds the module.\n", m.dir,
	       m.name, m.dir);
	return EXIT_SUCCESS;
}
