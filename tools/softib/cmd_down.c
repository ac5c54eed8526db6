/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fabrics that are up: down, list. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/session.h"
#include "softib.h"

/* The kernel takes some 40 ms to remove the network of a node, and more on a busy machine. */
#define DOWN_NOTICE_MS	5000
#define DOWN_TIMEOUT_MS 300000

/* --- down ----------------------------------------------------------------------- */

static error_t parse_down(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (state->arg_num)
		argp_error(state, "one name only, not '%s' as well", arg);
	parse_name(state, arg);
	*(const char **)state->input = arg;
	return 0;
}

/* ask process @pid to end and wait for it. Return: 0; -1 it does not */
static int end_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), n;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return errno == ESRCH ? 0 : -1;
	kill(pid, SIGTERM);
	n = poll(&pfd, 1, DOWN_NOTICE_MS);
	if (!n) {
		complain("process %d is still ending: the kernel removes the networks of the nodes", pid);
		n = poll(&pfd, 1, DOWN_TIMEOUT_MS);
	}
	close(fd);
	return n == 1 ? 0 : -1;
}

/* a softibd that no `softib` watches over: by hand, or its softib was killed */
static int end_softibd(const char *dir)
{
	struct json_object *answer = client_call_quiet(dir, request("ping"));
	pid_t pid = (pid_t)number_of(answer, "pid");

	json_object_put(answer);
	if (pid <= 0)
		return -1;
	answer = client_call(dir, request("stop"));
	if (!answer)
		return -1;
	json_object_put(answer);
	return end_process(pid);
}

/* as place_choose(); where several are up `default`, which 'softib up' made */
static int choose_to_end(const char *name, char dir[PATH_MAX])
{
	const char *env = getenv(ABI_ENV_DIR);

	if (name || (env && env[0]) || place_live() == 1)
		return place_choose(name, dir);
	return place_named(DEFAULT_NAME, dir, false);
}

/* the last part of a path */
static const char *name_in(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash ? slash + 1 : dir;
}

/* the process that serves @dir. Return: exit status */
static int end_owner(const char *dir, pid_t owner, bool named)
{
	if (!named && place_is_private(name_in(dir)))
		return complain("%s is the fabric of a 'softib run' (process %d): it ends "
				"with its command",
				dir, owner);
	if (end_process(owner))
		return complain("softib process %d of %s does not end", owner, dir);
	log_say_left(dir);
	return EXIT_SUCCESS;
}

/* the fabric of @dir is down, or never was up */
static void say_none(const char *dir)
{
	complain("no fabric '%s' is up: 'softib list' shows those that are",
		 place_is_ours(dir) ? name_in(dir) : dir);
	log_say_left(dir);
}

int cmd_down(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_down,
		.args_doc = "[NAME]",
		.doc = "Stop the fabric NAME and all its processes. The default is the fabric "
		       "that SOFTIB_DIR names, else the only one that is up, else 'default'.\v"
		       "Examples:\n"
		       "  softib down\n"
		       "  softib down lab\n"};
	const char *name = NULL;
	char dir[PATH_MAX];
	int status = EXIT_SUCCESS;
	pid_t owner;
	bool ours;

	argp_parse(&argp, argc, argv, 0, NULL, &name);
	if (choose_to_end(name, dir))
		return EXIT_FAILURE;
	ours = place_is_ours(dir);
	owner = session_owner(dir);
	if (owner)
		return end_owner(dir, owner, name);
	if (access(dir, F_OK)) {
		say_none(dir);
		return EXIT_FAILURE;
	}
	if (end_softibd(dir)) {
		if (errno != ENOENT && errno != ECONNREFUSED)
			return complain("softibd in %s does not end: %s", dir,
					strerror(errno));
		if (!ours)
			return complain("no softibd serves %s: does SOFTIB_DIR name the right "
					"directory? 'softib list' shows the fabrics",
					dir);
		if (log_left(dir)) {
			say_none(dir);
			status = EXIT_FAILURE;
		}
	}
	if (ours)
		log_sweep(dir, true);
	return status;
}

/* --- list ------------------------------------------------------------------------ */

struct listing {
	struct json_object *list;
	bool silent; /* a softibd does not answer */
};

static int add_fabric(const char *name, const char *dir, void *arg)
{
	struct listing *l = arg;
	struct json_object *status = client_call_quiet(dir, request("status"));

	if (!status) {
		l->silent |= errno == ETIMEDOUT;
		return -1;
	}
	json_object_object_add(status, "name", json_object_new_string(name));
	json_object_object_add(status, "dir", json_object_new_string(dir));
	json_object_array_add(l->list, status);
	return 0;
}

static void print_fabrics(struct json_object *list)
{
	if (!count_of(list)) {
		puts("no fabric is up");
		return;
	}
	paint("1", "NAME", 16);
	paint("1", "NODES", 7);
	paint("1", "SWITCHES", 10);
	paint("1", "ACTIVE", 13);
	paint("1", "PID", 9);
	paint("1", "TOPOLOGY", 0);
	putchar('\n');
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *f = item_of(list, i);
		struct json_object *ports = member_of(f, "ports");
		int64_t active = number_of(ports, "active");
		int64_t all = active + number_of(ports, "armed") +
			      number_of(ports, "init") + number_of(ports, "down") +
			      number_of(ports, "unplugged");
		char text[48];

		snprintf(text, sizeof(text), "%lld/%lld", (long long)active,
			 (long long)all);
		printf("%-16s%-7lld%-10lld", text_of(f, "name"),
		       (long long)number_of(f, "adapters"),
		       (long long)number_of(f, "switches"));
		paint(active == all ? "32" : "33", text, 13);
		printf("%-9lld%s\n", (long long)number_of(f, "pid"),
		       text_of(f, "topology"));
	}
}

int cmd_list(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.children = children,
		.doc = "List the fabrics that are up.\v"
		       "Examples:\n  softib list\n  softib list --json\n"};
	struct common common = {0};
	struct listing l = {.list = json_object_new_array()};

	argp_parse(&argp, argc, argv, 0, NULL, &common);
	place_each(add_fabric, &l);
	if (common.json)
		print_json(l.list);
	else if (count_of(l.list) || !l.silent)
		print_fabrics(l.list);
	place_say_left();
	json_object_put(l.list);
	return l.silent ? EXIT_FAILURE : EXIT_SUCCESS;
}
