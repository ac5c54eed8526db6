/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softibd: one fabric. It reads the topology, creates the fabric and the adapter
 * of each node, opens the sockets, and serves until it is told to stop. This is the
 * only file that uses all layers.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access/sdp.h"
#include "access/nldev.h"
#include "access/ucm.h"
#include "access/ucma.h"
#include "access/umad.h"
#include "access/uverbs.h"
#include "fabric/topo_plan.h"
#include "daemon/cable.h"
#include "daemon/control.h"
#include "daemon/hosts.h"
#include "daemon/polled.h"
#include "daemon/rundir.h"
#include "daemon/sdp_bypass.h"
#include "fabric/ethernet.h"
#include "fabric/fabric.h"
#include "hca/hca.h"
#include "modules/modules.h"
#include "profile/profile.h"
#include "rdma/ib_sa.h"
#include "rdma/rdma_cm.h"
#include "runtime/fiber.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/log.h"
#include "runtime/posix/rt_posix.h"
#include "runtime/posix/slice.h"
#include "ulp/eth/eth.h"
#include "ulp/ipoib/ipoib.h"
#include "ulp/net/tun.h"
#include "ulp/srp/srp.h"
#include "ulp/srpt/srpt.h"

/* argp finds it by name, so it must not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softibd " SOFTIB_VERSION;

/* A time that the scheduler of a busy machine can keep: a peer that needs a core gets one
 * within this time, or within the retries. */
#define MIN_ACK_TIMEOUT_US     4000
#define MIN_ACK_TIMEOUT_US_MAX 1000000
/* how long modules have for their exit functions when the fabric is taken down */
#define UNLOAD_NS	       (3 * NSEC_PER_SEC)

struct options {
	const char *dir;
	char name[NAME_MAX + 1];
	const char *topology;
	const char *net;
	struct topo_plan addresses;
	int ready_fd;
	bool memlock, net_raw, ethernet, ipoib_connected;
	const char *vlans; /* NULL: none */
	const char *polled; /* --polled; NULL: no node */
	uint32_t min_ack_timeout_us;
	struct profile profile;
};

/** struct daemon - all parts, in the order of their creation */
struct daemon {
	struct rt *rt;
	int lock_fd;
	struct topology *topo;
	struct topo_plan addresses; /* the address plan of @topo */
	struct fabric *fab;
	struct hca_set *adapters;
	struct hca **hca; /* by node; NULL for switches */
	const char *counter_names[NLDEV_COUNTERS_MAX];
	bool *polled;	  /* by node; NULL: no adapter is polled */
	struct removal *removals; /* adapters that are being removed */
	struct modules *modules;
	struct cables *cables;
	uint32_t min_ack_timeout_us;
	char profile_less[1024]; /* the limits of the profile that the adapters do not reach */
	struct uverbs *uverbs;
	struct umad *umad;
	struct ucm *ucm;
	struct ucma *ucma;
	struct nldev *nldev;
	struct sdp_endpoint *sdp;
	struct hosts *hosts;
	struct fab_vlans vlans;
	struct control *control;
	ev_signal term, intr;
};

static const struct argp_option option_list[] = {
	{"dir", 'd', "DIR", 0, "runtime directory: made if missing, 0700", 0},
	{"name", 'N', "NAME", 0,
	 "the fabric's name, from which the GUIDs follow that the topology leaves open; default "
	 "DIR's last component",
	 0},
	{"topology", 't', "SPEC", 0,
	 "shorthand (pair, star:8, fattree:2,4, torus:4x4x4, dragonfly:4,2,2) or file; "
	 "default pair",
	 0},
	{"memlock", 'M', NULL, 0,
	 "hold programs to their limit on locked memory (ulimit -l), as with hardware", 0},
	{"net-raw", 'R', NULL, 0,
	 "demand CAP_NET_RAW of programs for raw packet QPs and flow steering, as Linux does", 0},
	{"min-ack-timeout", 'A', "US", 0,
	 "no queue pair waits a shorter time for an ACK than so many microseconds; default "
	 "4000, 0: exactly what programs ask for",
	 0},
	{"link-layer", 'l', "LAYER", 0,
	 "of all ports: infiniband (default, unless the topology says otherwise) or ethernet, for RoCE",
	 0},
	{"vlan", 'v', "VLAN[,VLAN..]", 0,
	 "VLAN interfaces of the ports of Ethernet: ids, each with :NODE+NODE.. or of all nodes", 0},
	{"net", 'n', "NET", 0,
	 "node or host (default): whose network softib(1) gives to the programs of a node", 0},
	{"ip", 'i', "NETWORK", 0,
	 "the nodes' IPv4 or IPv6 addresses are in this one; default " TOPO_PLAN_IPV4
	 " and " TOPO_PLAN_IPV6,
	 0},
	{"ipoib-mode", 'I', "MODE", 0,
	 "in which the nodes' IP interfaces begin: datagram (default) or connected", 0},
	{"hca-profile", 'p', "PROFILE", 0,
	 "adapters report the limits and capabilities of this one: connectx3, connectx5, "
	 "connectx7, rxe, efa-like, max (default) or a file of 'softib profile record'",
	 0},
	{"polled", 'P', "NODES", 0,
	 "the adapters of these nodes, names with commas or all, raise no interrupt: the midlayer "
	 "polls them",
	 0},
	{"ready-fd", 'r', "FD", 0, "write one byte here once programs can connect", 0},
	{0},
};

static int parse_ready_fd(struct argp_state *state, const char *arg)
{
	char *end;
	long fd = strtol(arg, &end, 10);

	if (*end || end == arg || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		argp_error(state, "--ready-fd takes the number of an open descriptor, not '%s'",
			   arg);
	return (int)fd;
}

static uint32_t parse_min_ack_timeout(struct argp_state *state, const char *arg)
{
	char *end;
	long us = strtol(arg, &end, 10);

	if (*end || end == arg || us < 0 || us > MIN_ACK_TIMEOUT_US_MAX)
		argp_error(state, "--min-ack-timeout takes 0 to %d microseconds, not '%s'",
			   MIN_ACK_TIMEOUT_US_MAX, arg);
	return (uint32_t)us;
}

/* Set the name of the fabric to the last component of its directory. */
static void name_by_dir(struct options *opt)
{
	const char *end = opt->dir + strlen(opt->dir), *start;

	while (end > opt->dir && end[-1] == '/')
		end--;
	for (start = end; start > opt->dir && start[-1] != '/';)
		start--;
	snprintf(opt->name, sizeof(opt->name), "%.*s", (int)(end - start), start);
}

/* Return: true if @arg is @other; false if it is @usual. Any other argument ends softibd with an
 * error. */
static bool parse_choice(struct argp_state *state, const char *option, const char *arg,
			 const char *usual, const char *other)
{
	if (strcmp(arg, usual) && strcmp(arg, other))
		argp_error(state, "--%s takes %s or %s, not '%s'", option, usual, other, arg);
	return !strcmp(arg, other);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *opt = state->input;
	char err[256];

	switch (key) {
	case 'd':
		opt->dir = arg;
		return 0;
	case 'N':
		snprintf(opt->name, sizeof(opt->name), "%s", arg);
		return 0;
	case 't':
		opt->topology = arg;
		return 0;
	case 'l':
		opt->ethernet = parse_choice(state, "link-layer", arg, "infiniband", "ethernet");
		return 0;
	case 'v':
		opt->vlans = arg;
		return 0;
	case 'n':
		parse_choice(state, "net", arg, "node", "host");
		opt->net = arg;
		return 0;
	case 'i':
		if (topo_plan_set(&opt->addresses, arg, err, sizeof(err)))
			argp_error(state, "--ip: %s", err);
		return 0;
	case 'I':
		opt->ipoib_connected =
			parse_choice(state, "ipoib-mode", arg, "datagram", "connected");
		return 0;
	case 'P':
		opt->polled = arg;
		return 0;
	case 'A':
		opt->min_ack_timeout_us = parse_min_ack_timeout(state, arg);
		return 0;
	case 'p':
		if (profile_load(arg, &opt->profile, err, sizeof(err)))
			argp_error(state, "--hca-profile: %s", err);
		return 0;
	case 'M':
		opt->memlock = true;
		return 0;
	case 'R':
		opt->net_raw = true;
		return 0;
	case 'r':
		opt->ready_fd = parse_ready_fd(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, such as '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END:
		if (!opt->dir || !opt->dir[0])
			argp_error(state, "--dir DIR is missing: where shall the sockets be?");
		if (!opt->name[0])
			name_by_dir(opt);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int fail(const char *what, int ret)
{
	fprintf(stderr, "softibd: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* Raise the limit on descriptors to its maximum, because each program needs a few, except for the numbers
 * that descriptors in a message get. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max > (rlim_t)8 * RT_FOREIGN_FDS_MAX)
		limit.rlim_cur -= RT_FOREIGN_FDS_MAX;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int make_adapter(struct daemon *d, int node)
{
	int ret = hca_create(d->adapters, node, &d->hca[node]);

	if (!ret)
		hca_set_min_ack_timeout(d->hca[node], d->min_ack_timeout_us);
	return ret;
}

static int make_adapters_of(struct daemon *d, int host)
{
	for (int i = host; i >= 0; i = d->topo->node[i].next) {
		int ret = make_adapter(d, i);

		if (ret)
			return ret;
		hca_profile_less(d->hca[i], d->profile_less, sizeof(d->profile_less));
	}
	return 0;
}

static int make_adapters(struct daemon *d, const struct profile *profile)
{
	int ret = hca_set_create(d->rt, d->fab, &d->adapters);

	if (ret)
		return ret;
	hca_set_profile(d->adapters, profile);
	hca_set_polled(d->adapters, d->polled);
	d->hca = calloc((size_t)d->topo->num_nodes, sizeof(*d->hca));
	if (!d->hca)
		return -ENOMEM;
	/* the order of the adapters of a host is visible to programs */
	for (int i = 0; i < d->topo->num_nodes && !ret; i++)
		if (d->topo->node[i].kind == TOPO_CA && d->topo->node[i].host == i)
			ret = make_adapters_of(d, i);
	return ret;
}

/* --- functions of adapters for fault rules --- */

static bool has_qp(void *ctx, int node, uint32_t qpn)
{
	struct daemon *d = ctx;

	return d->hca[node] && hca_has_qp(d->hca[node], qpn);
}

static uint32_t source_qpn(void *ctx, int node, uint16_t dlid, uint32_t dest_qpn)
{
	struct daemon *d = ctx;

	return d->hca[node] ? hca_source_qpn(d->hca[node], dlid, dest_qpn) : 0;
}

/** struct removal - the removal of an adapter, which takes time if remove() of a module sleeps */
struct removal {
	struct removal *next;
	struct daemon *d;
	int node;
	bool comes_back; /* the state that was requested last */
};

static struct removal *find_removal(struct daemon *d, int node)
{
	struct removal *r = d->removals;

	while (r && r->node != node)
		r = r->next;
	return r;
}

/* Remove the adapter. This runs on a fiber, because remove() of a module may sleep. */
static void remove_adapter(void *arg)
{
	struct removal *r = arg, **at = &r->d->removals;
	struct daemon *d = r->d;

	hca_destroy(d->hca[r->node]);
	d->hca[r->node] = NULL;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (r->comes_back && make_adapter(d, r->node))
		rt_log("out of memory: the adapter of %s was not brought back; add and clear a 'remove' rule to try again",
		       d->topo->node[r->node].name);
	free(r);
}

/* Hot-unplug an adapter, or plug it in again in its initial state. */
static int set_adapter(void *ctx, int node, bool present)
{
	struct daemon *d = ctx;
	struct removal *r = find_removal(d, node);

	if (d->topo->node[node].kind != TOPO_CA)
		return -EINVAL;
	if (r) {
		r->comes_back = present;
		return 0;
	}
	if (present == (d->hca[node] != NULL))
		return 0;
	if (present)
		return make_adapter(d, node);
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct removal){d->removals, d, node, false};
	d->removals = r;
	if (!rt_fiber_start(d->rt, remove_adapter, r, NULL))
		return 0;
	d->removals = r->next;
	free(r);
	return -ENOMEM;
}

static int raise_event(void *ctx, int node, int port, uint32_t qpn, uint32_t event)
{
	struct daemon *d = ctx;

	return d->hca[node] ? hca_raise(d->hca[node], port, qpn, event) : -ENODEV;
}

static void serve_faults(struct daemon *d)
{
	const struct fab_fault_ops ops = {
		.has_qp = has_qp,
		.source_qpn = source_qpn,
		.adapter = set_adapter,
		.event = raise_event,
		.ctx = d,
	};

	fab_fault_ops_set(d->fab, &ops);
}

/* The counters of a port that both the kernel's rxe and a fabric have; those of queue pairs follow. */
static const struct {
	const char *name;
	enum ag_counter counter;
} counters[] = {
	{"sent_pkts", AG_XMIT_PACKETS}, {"rcvd_pkts", AG_RCV_PACKETS}, {"link_downed", AG_LINK_DOWNED}};
#define COUNTERS (ARRAY_SIZE(counters) + ABI_COUNTERS)

static void name_counters(const char *names[COUNTERS])
{
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		names[i] = counters[i].name;
	for (unsigned i = 0; i < ABI_COUNTERS; i++)
		names[ARRAY_SIZE(counters) + i] = hca_counter_name(i);
}

static bool hca_port_counters(void *ctx, int node, unsigned port_num, uint64_t values[ABI_COUNTERS])
{
	const struct hca *hca = ((const struct daemon *)ctx)->hca[node];

	if (hca)
		hca_counters(hca, port_num, values);
	return hca;
}

static int read_counters(void *ctx, const struct ib_device *device, uint32_t port_num,
			 uint64_t *values)
{
	const struct daemon *d = ctx;
	const struct ag_port *port;

	for (int i = 0; i < d->topo->num_nodes; i++) {
		if (d->topo->node[i].guid != be64_to_cpu(device->node_guid))
			continue;
		fab_fold_node(d->fab, i);
		port = &fab_node(d->fab, i)->port[port_num];
		for (size_t n = 0; n < ARRAY_SIZE(counters); n++)
			values[n] = port->count.raw[counters[n].counter] -
				    port->seldom->base_ext[counters[n].counter];
		return hca_port_counters(ctx, i, port_num, values + ARRAY_SIZE(counters)) ? 0 : -ENODEV;
	}
	return -ENODEV;
}

static uint64_t window_operations(void *ctx)
{
	return hca_windows_operations(((struct daemon *)ctx)->adapters);
}

static void stop(void *ctx)
{
	rt_posix_stop(((struct daemon *)ctx)->rt);
}

static int make_endpoints(struct daemon *d, const struct options *opt)
{
	const char *dir = opt->dir;
	struct control_ops ops = {
		.topology = opt->topology,
		.min_ack_timeout_us = opt->min_ack_timeout_us,
		.addresses = &d->addresses,
		.vlans = &d->vlans,
		.net = opt->net,
		.link_layer = !topo_has_link(d->topo, true)  ? "infiniband" :
			      !topo_has_link(d->topo, false) ? "ethernet" : "mixed",
		.profile = opt->profile.name[0] ? opt->profile.name : "max",
		.profile_less = d->profile_less,
		.polled = opt->polled,
		.ipoib_connected = opt->ipoib_connected,
		.window_operations = window_operations,
		.port_counter_names = d->counter_names + ARRAY_SIZE(counters),
		.port_counters = hca_port_counters,
		.modules = d->modules,
		.cables = d->cables,
		.stop = stop,
		.ctx = d,
	};
	const struct nldev_counters port_counters = {
		.num = COUNTERS, .names = d->counter_names, .read = read_counters, .ctx = d};
	int ret = uverbs_create(d->rt, dir, &d->uverbs);

	if (ret)
		return fail("cannot open the uverbs socket", ret);
	name_counters(d->counter_names);
	if (opt->memlock)
		uverbs_enforce_memlock(d->uverbs);
	if (opt->net_raw)
		uverbs_demand_net_raw(d->uverbs);
	ret = umad_create(d->rt, dir, &d->umad);
	if (ret)
		return fail("cannot open the umad socket", ret);
	ret = ucm_create(d->rt, dir, &d->ucm);
	if (ret)
		return fail("cannot open the ucm socket", ret);
	ret = ucma_create(d->rt, dir, &d->ucma);
	if (ret)
		return fail("cannot open the rdma_cm socket", ret);
	ret = nldev_create(d->rt, dir, &port_counters, &d->nldev);
	if (ret)
		return fail("cannot open the netlink socket", ret);
	daemon_set_sdp_bypass();
	ret = sdp_endpoint_create(d->rt, dir, &d->sdp);
	if (ret)
		return fail("cannot open the sdp socket", ret);
	ret = control_create(d->rt, d->fab, dir, &ops, &d->control);
	return ret ? fail("cannot open the control socket", ret) : 0;
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	rt_posix_stop(w->data);
}

static void watch_signal(struct daemon *d, ev_signal *w, int number)
{
	ev_signal_init(w, on_signal, number);
	w->data = d->rt;
	ev_signal_start(rt_posix_loop(d->rt), w);
}

static int fail_with(const char *err, int ret)
{
	fprintf(stderr, "softibd: %s\n", err[0] ? err : strerror(-ret));
	return ret;
}

/* Read the topology, and apply the options that refer to its nodes and ports. */
static int load_topology(struct daemon *d, const struct options *opt)
{
	char err[512] = "";
	int ret = topo_load(opt->topology, opt->name, &d->topo, err, sizeof(err));

	if (ret)
		return fail_with(err, ret);
	if (d->topo->warning[0])
		fprintf(stderr, "softibd: %s\n", d->topo->warning);
	if (opt->ethernet)
		topo_set_ethernet(d->topo);
	d->addresses = opt->addresses;
	ret = opt->vlans ? fab_vlans_parse(&d->vlans, d->topo, opt->vlans, err, sizeof(err)) : 0;
	d->addresses.vlans = d->vlans.num;
	if (!ret)
		ret = topo_plan_fit(&d->addresses, d->topo, err, sizeof(err));
	if (!ret && opt->polled)
		ret = polled_nodes(d->topo, opt->polled, &d->polled, err, sizeof(err));
	return ret ? fail_with(err, ret) : 0;
}

static int make_fabric(struct daemon *d, const struct options *opt)
{
	char err[512] = "";
	int ret = rt_posix_create(&d->rt);

	if (ret)
		return fail("cannot make an event loop", ret);
	d->lock_fd = rundir_claim(opt->dir, err, sizeof(err));
	if (d->lock_fd < 0)
		return fail_with(err, d->lock_fd);
	ret = fab_create(d->rt, d->topo, &d->fab);
	if (!ret && topo_has_link(d->topo, true))
		ret = fab_ethernet_start(d->fab, &d->addresses, &d->vlans);
	return ret ? fail("cannot make the fabric", ret) : 0;
}

/* The midlayer and the upper-level protocols, in the order in which they are started: each uses only
 * those before it. */
static const struct {
	int (*start)(struct rt *rt);
	const char *error;
} protocols[] = {
	{ib_mad_init, "cannot start the MAD layer"},
	{ib_sa_init, "cannot start the SA client"},
	{ib_cm_init, "cannot start the CM"},
	{rdma_cm_init, "cannot start the RDMA CM"},
	{ipoib_init, "cannot start IP over InfiniBand"},
	{eth_init, "cannot start Ethernet interfaces"},
	{srpt_init, "cannot start the SRP target"},
};

static int start_protocols(struct daemon *d, const struct options *opt)
{
	int ret = 0;

	ipoib_report_conflicts(control_report_conflict);
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		ret = protocols[i].start(d->rt);
		if (ret)
			return fail(protocols[i].error, ret);
	}
	ret = hosts_create(d->rt, d->fab, &d->addresses, &d->vlans, &d->hosts);
	if (ret)
		return fail("cannot make the host table of the RDMA CM", ret);
	ret = srp_init(d->rt, opt->dir);
	if (ret)
		return fail("cannot start the SRP initiator", ret);
	ret = modules_create(d->rt, opt->dir, &d->modules);
	return ret ? fail("cannot start the loader of modules", ret) : 0;
}

static int bring_up(struct daemon *d, const struct options *opt)
{
	int ret = load_topology(d, opt);

	if (!ret)
		ret = make_fabric(d, opt);
	if (!ret)
		ret = start_protocols(d, opt);
	if (ret)
		return ret;
	ret = make_adapters(d, &opt->profile);
	if (ret)
		return fail("cannot make the adapters", ret);
	d->cables = cables_create(d->rt, d->fab, opt->name);
	if (!d->cables)
		return fail("cannot serve cables that leave the fabric", -ENOMEM);
	serve_faults(d);
	watch_signal(d, &d->term, SIGTERM);
	watch_signal(d, &d->intr, SIGINT);
	return make_endpoints(d, opt);
}

/* Modules are unloaded while everything else still works. softibd does not wait for a module whose
 * exit function does not return. */
static void unload_modules(struct daemon *d)
{
	mono_t until = mono_add(rt_now(d->rt), UNLOAD_NS);
	const char *name;

	modules_unload_all(d->modules);
	while (((name = modules_busy(d->modules)) || d->removals) && mono_before(rt_now(d->rt), until))
		rt_posix_turn(d->rt);
	if (name)
		rt_log("the exit function of module %s does not return: softibd exits without waiting for it", name);
}

static void take_down(struct daemon *d, const struct options *opt)
{
	net_tun_leave();
	if (d->modules)
		unload_modules(d);
	if (d->control)
		control_destroy(d->control);
	if (d->sdp)
		sdp_endpoint_destroy(d->sdp);
	if (d->nldev)
		nldev_destroy(d->nldev);
	if (d->ucma)
		ucma_destroy(d->ucma);
	if (d->ucm)
		ucm_destroy(d->ucm);
	if (d->umad)
		umad_destroy(d->umad);
	if (d->uverbs)
		uverbs_destroy(d->uverbs);
	for (int i = 0; d->hca && i < d->topo->num_nodes; i++)
		if (d->hca[i] && !find_removal(d, i))
			hca_destroy(d->hca[i]);
	free(d->hca);
	if (d->modules)
		modules_destroy(d->modules);
	if (d->adapters)
		hca_set_destroy(d->adapters);
	free(d->polled);
	if (d->hosts)
		hosts_destroy(d->hosts);
	if (d->fab) {
		srp_cleanup(d->rt);
		srpt_cleanup(d->rt);
		rdma_cm_cleanup(d->rt);
		ib_cm_cleanup(d->rt);
		eth_cleanup(d->rt);
		ipoib_cleanup(d->rt);
		ib_sa_cleanup(d->rt);
		ib_mad_cleanup(d->rt);
		cables_destroy(d->cables);
		fab_destroy(d->fab);
	}
	if (d->lock_fd >= 0)
		rundir_release(opt->dir, d->lock_fd);
	fab_vlans_free(&d->vlans);
	topo_free(d->topo);
	if (d->rt)
		rt_posix_destroy(d->rt);
}

/* Write the log to a file in @dir, with the time of each line. */
static void begin_log(const char *dir)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/softibd.log", dir);
	rt_log_begin(path);
}

static void say_ready(int fd)
{
	if (fd < 0)
		return;
	if (write(fd, "", 1) != 1)
		fprintf(stderr, "softibd: --ready-fd %d is not writable: pass the writing end of a pipe\n", fd);
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_list,
		.parser = parse_option,
		.doc = "One InfiniBand fabric in a process: switches, adapters and the stack of "
		       "every node.\vUsually started by softib(1): 'softib up', 'softib run'.",
	};
	struct options opt = {.topology = "pair",
			      .net = "host",
			      .ready_fd = -1,
			      .min_ack_timeout_us = MIN_ACK_TIMEOUT_US};
	struct daemon d = {.lock_fd = -1};
	int ret;

	rt_hold_standard_fds();
	topo_plan_init(&opt.addresses);
	argp_parse(&argp, argc, argv, 0, NULL, &opt);
	d.min_ack_timeout_us = opt.min_ack_timeout_us;
	signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	rt_closer_begin();
	rt_short_slice();
	ret = bring_up(&d, &opt);
	if (!ret) {
		begin_log(opt.dir);
		say_ready(opt.ready_fd);
		rt_posix_run(d.rt);
	}
	take_down(&d, &opt);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
