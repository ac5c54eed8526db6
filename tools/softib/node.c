/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program on a node: SOFTIB_DIR and SOFTIB_NODE say where it is, the
 * library path leads to the drop-in libraries, PATH to softib itself and to
 * the fabric tools.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "node_namespaces.h"
#include "softib.h"
#include "sysfs.h"

long node_split_port(char *word, long otherwise)
{
	char *colon = strrchr(word, ':');

	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return otherwise;
	*colon = '\0';
	return strtol(colon + 1, NULL, 10);
}

/* Programs run on hosts; the first adapter stands for its host. */
static bool is_host(struct json_object *node)
{
	return !strcmp(text_of(node, "kind"), "ca") &&
	       !strcmp(text_of(node, "host"), text_of(node, "name"));
}

/* the @n-th host among @nodes, or the last one; NULL: there is none */
static struct json_object *nth_host(struct json_object *nodes, size_t n)
{
	struct json_object *found = NULL;

	for (size_t i = 0, seen = 0; i < count_of(nodes) && seen <= n; i++) {
		struct json_object *node = item_of(nodes, i);

		if (!is_host(node))
			continue;
		found = node;
		seen++;
	}
	return found;
}

/* whose network: as @at says, or as the fabric does that answered */
static enum node_net net_of(const struct node_place *at, struct json_object *answer)
{
	if (at->net != NET_OF_FABRIC)
		return at->net;
	return strcmp(text_of(answer, "net"), "node") ? NET_HOST : NET_NODE;
}

static void place_port(struct node_port *port, struct json_object *address)
{
	const char *ipv4 = text_of(address, "ipv4");

	snprintf(port->device, sizeof(port->device), "%s", text_of(address, "device"));
	snprintf(port->interface, sizeof(port->interface), "%s", text_of(address, "interface"));
	snprintf(port->address, sizeof(port->address), "%.*s", (int)strcspn(ipv4, "/"), ipv4);
	port->number = (int)number_of(address, "port");
}

/* Let @at be at @node. The nodes that share the machine's network are met at its address, except by SDP. */
static void place_at(struct node_place *at, struct json_object *node)
{
	struct json_object *addresses = member_of(node, "addresses");
	const char *own;

	at->num_ports = (int)MIN(count_of(addresses), (size_t)NODE_PORTS_MAX);
	for (int i = 0; i < at->num_ports; i++) {
		place_port(&at->ports[i], item_of(addresses, (size_t)i));
	}
	own = at->num_ports ? at->ports[0].address : "";
	snprintf(at->node, sizeof(at->node), "%s", text_of(node, "name"));
	snprintf(at->adapter, sizeof(at->adapter), "%s", text_of(node, "name"));
	snprintf(at->address, sizeof(at->address), "%s",
		 (at->net == NET_NODE || at->sdp) && *own ? own : "127.0.0.1");
}

/* Keep which of the adapters of a host @name names; one that names none, such as a port's
 * GUID, stands for the first. */
static void keep_adapter(struct node_place *at, struct json_object *nodes, const char *name)
{
	static const char *const keys[] = {"name", "desc", "id", "guid"};

	for (size_t i = 0; i < count_of(nodes) * ARRAY_SIZE(keys); i++) {
		struct json_object *node = item_of(nodes, i / ARRAY_SIZE(keys));

		if (strcmp(text_of(node, keys[i % ARRAY_SIZE(keys)]), name))
			continue;
		snprintf(at->adapter, sizeof(at->adapter), "%s", text_of(node, "name"));
		return;
	}
}

static int find(struct node_place *at, const char *name, size_t n)
{
	struct json_object *req = request("nodes"), *answer, *node;
	int error = -1;

	if (name)
		request_host(req, name);
	answer = client_call(at->dir, req);
	if (!answer)
		return -1;
	node = nth_host(member_of(answer, "nodes"), n);
	at->net = net_of(at, answer);
	if (node) {
		place_at(at, node);
		if (name)
			keep_adapter(at, member_of(answer, "nodes"), name);
		error = 0;
	} else if (name) {
		complain(
			"%s is a switch or a router: programs run on adapters' nodes such as n1",
			name);
	} else {
		complain("this fabric has no adapter to run a program on");
	}
	json_object_put(answer);
	return error;
}

int node_find(struct node_place *at, const char *name)
{
	return find(at, name, 0);
}

int node_nth(struct node_place *at, size_t n)
{
	return find(at, NULL, n);
}

struct node_place *node_all(const struct node_place *at, size_t *count)
{
	struct json_object *answer = client_call(at->dir, request("nodes"));
	struct json_object *nodes = member_of(answer, "nodes");
	struct node_place *all = calloc(count_of(nodes) + 1, sizeof(*all));

	*count = 0;
	for (size_t i = 0; all && i < count_of(nodes); i++) {
		struct json_object *node = item_of(nodes, i);

		if (!is_host(node))
			continue;
		all[*count] = *at;
		all[*count].net = net_of(at, answer);
		place_at(&all[(*count)++], node);
	}
	if (answer && !*count)
		complain("this fabric has no adapter to run a program on");
	json_object_put(answer);
	if (*count)
		return all;
	free(all);
	return NULL;
}

size_t node_count(const struct node_place *at)
{
	struct json_object *answer = client_call(at->dir, request("nodes"));
	struct json_object *nodes = member_of(answer, "nodes");
	size_t n = 0;

	for (size_t i = 0; i < count_of(nodes); i++)
		n += is_host(item_of(nodes, i));
	json_object_put(answer);
	return n;
}

void node_prepend(const char *key, const char *dir)
{
	const char *old = getenv(key);
	size_t len = strlen(dir);
	char *value;

	if (old && !strncmp(old, dir, len) && (!old[len] || old[len] == ':'))
		return;
	if (asprintf(&value, "%s%s%s", dir, old && old[0] ? ":" : "", old ? old : "") < 0)
		return;
	setenv(key, value, 1);
	free(value);
}

/* Does the colon-separated @list name @dir? */
static bool lists(const char *list, const char *dir)
{
	size_t len = strlen(dir);

	for (const char *at = list; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL)
		if (!strncmp(at, dir, len) && (!at[len] || at[len] == ':'))
			return true;
	return false;
}

/*
 * Debian installs ibnetdiscover, opensm and most other fabric tools where only
 * the superuser's PATH leads. They need no privilege here, so every program of
 * a node finds them, behind all that its own PATH has.
 */
static void append_tool_dirs(void)
{
	static const char *const dirs[] = {"/usr/local/sbin", "/usr/sbin", "/sbin"};
	const char *old = getenv("PATH");
	char *value;

	if (!old) /* what execvp(3) searches then */
		setenv("PATH", "/bin:/usr/bin", 1);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		old = getenv("PATH");
		if (lists(old, dirs[i]) || asprintf(&value, "%s:%s", old, dirs[i]) < 0)
			continue;
		setenv("PATH", value, 1);
		free(value);
	}
}

/* opensm writes its caches and lists below /var, where only the superuser may. */
static void place_manager_files(const struct node_place *at)
{
	static const char *const keys[] = {"OSM_TMP_DIR", "OSM_CACHE_DIR"};
	char dir[PATH_MAX];

	if (snprintf(dir, sizeof(dir), "%s/" MANAGER_FILES, at->dir) >= (int)sizeof(dir) ||
	    (mkdir(dir, 0700) && errno != EEXIST))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		setenv(keys[i], dir, 0);
}

/*
 * Launchers start their daemons on other nodes by softib-rsh; a choice that was made
 * before stays. The names are Open MPI's until 4 and from 5 on, MPICH's (hydra, also
 * MVAPICH's) and Intel MPI's.
 */
static void name_remote_shell(const char *self_dir)
{
	static const char *const agents[] = {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent",
					     "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"};
	static const char *const kinds[] = {"HYDRA_LAUNCHER", "I_MPI_HYDRA_BOOTSTRAP"};
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/softib-rsh", self_dir);
	for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
		setenv(agents[i], path, 0);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		setenv(kinds[i], "ssh", 0);
	/* MPICH would give all ranks the variables of the launcher's node, in place of those
	 * that softib-rsh has set: SOFTIB_NODE above all. */
	if (!strcmp(getenv("HYDRA_LAUNCHER_EXEC"), path))
		setenv("HYDRA_ENV", "none", 0);
}

static int say_no_devices(int error)
{
	complain("cannot lay device files over /dev/infiniband: %s. %s. Without --devices all "
		 "runs but UCX",
		 strerror(-error), node_namespace_advice(error));
	return -1;
}

enum node_net node_parse_net(struct argp_state *state, const char *word)
{
	if (strcmp(word, "node") && strcmp(word, "host"))
		argp_error(state, "--net takes node or host, not '%s'", word);
	return strcmp(word, "node") ? NET_HOST : NET_NODE;
}

/* The node's namespaces are all its programs'; device files are only for those that
 * asked for them. Return: 0; -1 (printed) */
static int enter_own_network(const struct node_place *at, const char *files)
{
	int error;

	if (node_join(at, files))
		return -1;
	if (!at->devices)
		return 0;
	error = unshare(CLONE_NEWNS) ? -errno : node_dev(at);
	return error ? say_no_devices(error) : 0;
}

/* behind what is preloaded already: a sanitizer's runtime insists on being first */
static void preload(const char *lib_dir, const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;

	if (old && strstr(old, library)) /* by the program that started this one */
		return;
	if (asprintf(&value, "%s%s%s/%s", old ? old : "", old && *old ? ":" : "", lib_dir,
		     library) < 0)
		return;
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

/* Where the kernel allows no mount namespace, a preloaded library finds the node's files in @files.
 * Return: 0; -1 (printed) */
static int lead_to_files(const struct node_place *at, const char *files)
{
	char lib_dir[PATH_MAX];
	int error = place_lib_dir(lib_dir) ? -ENOENT : node_files(at, files);

	if (error)
		return complain("cannot make device files of %s: %s", at->node, strerror(-error)), -1;
	preload(lib_dir, "libnodefiles.so");
	return 0;
}

/* Return: 0; -1 (printed) */
static int enter_namespaces(const struct node_place *at)
{
	char files[PATH_MAX];
	int error = sysfs_prepare(at, files);

	if (at->net == NET_NODE)
		return error ? complain("cannot make the files of /sys for %s: %s", at->node,
					strerror(-error)),
		       -1		 : enter_own_network(at, files);
	if (error && at->devices)
		return complain("cannot make device files of %s: %s", at->node, strerror(-error)), -1;
	if (error)
		return 0;
	if (!at->no_namespace) {
		error = node_sysfs(files); /* without it no ibstatus, but all else works */
		if (at->devices && !error)
			error = node_dev(at);
		if (!at->devices || !error)
			return 0;
	}
	return lead_to_files(at, files);
}

/* the distribution's libibumad in the place of ours, if the user says so */
static void prefer_genuine(const char *lib_dir)
{
	const char *choice = getenv("SOFTIB_LIBIBUMAD");
	char path[PATH_MAX];

	if (!choice || strcmp(choice, "genuine") != 0 ||
	    snprintf(path, sizeof(path), "%s/genuine", lib_dir) >= (int)sizeof(path))
		return;
	node_prepend("LD_LIBRARY_PATH", path);
}

int node_enter(const struct node_place *at)
{
	char path[PATH_MAX];

	if (client_check_owner(at->dir))
		return -1;
	node_prompt(at->node);
	setenv(ABI_ENV_DIR, at->dir, 1);
	setenv(ABI_ENV_NODE, at->node, 1);
	if (!place_lib_dir(path)) {
		node_prepend("LD_LIBRARY_PATH", path);
		prefer_genuine(path);
		if (at->sdp)
			preload(path, "libsdp.so");
	}
	append_tool_dirs();
	place_manager_files(at);
	node_dat(at);
	if (!place_self_dir(path)) {
		node_prepend("PATH", path);
		name_remote_shell(path);
	}
	return at->no_namespace && !at->devices ? 0 : enter_namespaces(at);
}

int node_exec(char **argv)
{
	int error;

	execvp(argv[0], argv);
	error = errno;
	complain("cannot run %s: %s", argv[0], strerror(error));
	return error == ENOENT ? 127 : 126;
}
