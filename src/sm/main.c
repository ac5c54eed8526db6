/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib-sm: the manager as a program. Options, signals, and where lines go. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/posix/log.h"
#include "runtime/posix/trace_link.h"
#include "sm/trace.h"
#include "sm/umad.h"

enum key {
	KEY_GUID = 256, KEY_ROUTING, KEY_ROOT, KEY_CONNECT_ROOTS, KEY_ONCE, KEY_LOG_LEVEL,
	KEY_LID_CACHE, KEY_PRIORITY, KEY_LMC, KEY_IPOIB, KEY_QOS, KEY_CHECK, KEY_WINDOW,
	KEY_TIMEOUT, KEY_RETRIES, KEY_MKEY, KEY_SM_KEY, KEY_SA_KEY, KEY_PACKET_LIFE,
};

#define ROOTS_MAX 256
#define LOOK_NS	  (NSEC_PER_SEC / 4) /* how often for an adapter that was pulled */

struct program {
	struct sm_options opt;
	struct sm_umad_port port;
	uint64_t roots[ROOTS_MAX];
	char lid_cache[4096];
	bool lid_cache_given, once;
	struct rt *rt;
	struct sm *sm;
	struct sm_umad *umad;
	struct timespec started;
	struct rt_timer look; /* for the adapter, while it is pulled */
	struct rt_trace_link *trace; /* NULL: the fabric is no softibd's */
	bool ended, lost;
	int status;
};

/* argp finds it by name, so it may not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softib-sm " SOFTIB_VERSION;

static const char doc[] =
	"Manage an InfiniBand subnet: find what there is, give LIDs, program routes, bring "
	"links up, answer queries.\v"
	"Examples:\n"
	"  softib-sm                          manage the subnet of the first port\n"
	"  softib-sm --once                   one sweep; exit status 0 when all answered\n"
	"  softib-sm --port softib0:1 --routing updn --sweep 5\n"
	"  softib exec n1 -- softib-sm        manage a softib fabric from node n1\n"
	"\n"
	"It prints SUBNET UP when the subnet is up, and runs until it gets SIGINT or "
	"SIGTERM. SIGHUP makes it sweep at once.";

static const struct argp_option options[] = {
	{"port", 'p', "DEVICE[:PORT]", 0, "Port to sit on, or :PORT, of any device (default: the first whose link is up)", 1},
	{"guid", KEY_GUID, "GUID", 0, "Port to sit on, by its port GUID", 1},
	{"routing", KEY_ROUTING, "ENGINE", 0, "minhop (default) or updn", 2},
	{"root", KEY_ROOT, "GUID", 0, "A top switch for updn; may be repeated (default: found by distance)", 2},
	{"connect-roots", KEY_CONNECT_ROOTS, NULL, 0, "Let updn join the top switches, for management", 2},
	{"check", KEY_CHECK, NULL, 0, "Judge tables before they are programmed", 2},
	{"lmc", KEY_LMC, "N", 0, "Give every adapter port 2^N LIDs, 0..7 (default 0)", 3},
	{"lid-cache", KEY_LID_CACHE, "FILE", 0, "Where LIDs are kept (default: lids-GUID in $SOFTIB_DIR or $XDG_RUNTIME_DIR/softib; \"none\": nowhere)", 3},
	{"priority", KEY_PRIORITY, "N", 0, "Among several managers, 0..15 (default 0)", 4},
	{"mkey", KEY_MKEY, "KEY", 0, "M_Key to protect ports with (default 0: none)", 4},
	{"sm-key", KEY_SM_KEY, "KEY", 0, "SM_Key that the managers of the subnet share (default 1, as opensm's)", 4},
	{"sa-key", KEY_SA_KEY, "KEY", 0, "Key of those whom the SA trusts (default 1, as opensm's and saquery's)", 4},
	{"ipoib", KEY_IPOIB, "MTU", OPTION_ARG_OPTIONAL, "Create the IPoIB broadcast group; MTU: 2048 (default), 4096 or less than both", 5},
	{"packet-life", KEY_PACKET_LIFE, "N", 0, "Packets are under way for 4.096 us * 2^N at most, 0..31 (default 18: a second); an ACK is awaited for twice that", 5},
	{"qos", KEY_QOS, NULL, 0, "Program SL to VL and VL arbitration tables", 5},
	{"sweep", 's', "SECONDS", 0, "Time between light sweeps (default 10; 0: none)", 6},
	{"once", KEY_ONCE, NULL, 0, "One sweep, then exit", 6},
	{"window", KEY_WINDOW, "N", 0, "SMPs in flight, 1..512 (default 32)", 7},
	{"timeout", KEY_TIMEOUT, "MS", 0, "Time for an answer (default 200)", 7},
	{"retries", KEY_RETRIES, "N", 0, "After a time-out (default 3)", 7},
	{"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "error, warning, info (default) or debug", 8},
	{0},
};

static uint64_t number(struct argp_state *state, const char *arg, const char *what,
		       uint64_t max)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || *arg == '-' || v > max)
		argp_error(state, "%s: \"%s\" is not a number from 0 to %" PRIu64, what, arg,
			   max);
	return v;
}

static uint64_t guid(struct argp_state *state, const char *arg)
{
	char *end;
	uint64_t v = strtoull(arg, &end, 16);

	if (end == arg || *end || !v)
		argp_error(state, "\"%s\" is not a GUID", arg);
	return v;
}

static void parse_port(struct argp_state *state, struct sm_umad_port *p, char *arg)
{
	char *colon = strrchr(arg, ':');

	p->device = arg == colon ? NULL : arg;
	if (colon) {
		*colon = 0;
		p->port = number(state, colon + 1, "port", 254);
	}
}

static enum sm_log_level level(struct argp_state *state, const char *arg)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(arg, names[i]))
			return i;
	argp_error(state, "log level \"%s\": error, warning, info or debug", arg);
	return SM_LOG_INFO;
}

static uint8_t mtu(struct argp_state *state, const char *arg)
{
	uint64_t bytes = number(state, arg, "MTU", 4096);

	for (uint8_t enc = WIRE_MTU_256; enc <= WIRE_MTU_4096; enc++)
		if (bytes == 128u << enc)
			return enc;
	argp_error(state, "MTU %s: 256, 512, 1024, 2048 or 4096", arg);
	return WIRE_MTU_2048;
}

static void choose_engine(struct argp_state *state, struct program *p, const char *arg)
{
	p->opt.engine = route_engine_find(arg);
	if (!p->opt.engine)
		argp_error(state, "no routing engine \"%s\": minhop or updn", arg);
}

static void add_root(struct argp_state *state, struct program *p, const char *arg)
{
	if (p->opt.route.n_roots == ROOTS_MAX)
		argp_error(state, "more than %d roots", ROOTS_MAX);
	p->roots[p->opt.route.n_roots++] = guid(state, arg);
	p->opt.route.roots = p->roots;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct program *p = state->input;
	struct sm_options *o = &p->opt;

	switch (key) {
	case 'p': parse_port(state, &p->port, arg); break;
	case KEY_GUID: p->port.guid = guid(state, arg); break;
	case KEY_ROUTING: choose_engine(state, p, arg); break;
	case KEY_ROOT: add_root(state, p, arg); break;
	case KEY_CONNECT_ROOTS: o->route.connect_roots = true; break;
	case KEY_CHECK: o->check = true; break;
	case KEY_LMC: o->lmc = number(state, arg, "LMC", 7); break;
	case KEY_LID_CACHE:
		p->lid_cache_given = true;
		snprintf(p->lid_cache, sizeof(p->lid_cache), "%s", arg);
		break;
	case KEY_PRIORITY: o->priority = number(state, arg, "priority", 15); break;
	case KEY_MKEY: o->mkey = number(state, arg, "M_Key", UINT64_MAX); break;
	case KEY_SM_KEY: o->sm_key = number(state, arg, "SM_Key", UINT64_MAX); break;
	case KEY_SA_KEY: o->sa_key = number(state, arg, "SA key", UINT64_MAX); break;
	case KEY_IPOIB: o->ipoib = true; o->ipoib_mtu = mtu(state, arg ? arg : "2048"); break;
	case KEY_PACKET_LIFE: o->packet_life_enc = number(state, arg, "packet lifetime", 31); break;
	case KEY_QOS: o->qos = true; break;
	case 's': o->sweep_ns = number(state, arg, "sweep", 1000000) * NSEC_PER_SEC; break;
	case KEY_ONCE: p->once = true; break;
	case KEY_WINDOW: o->window = number(state, arg, "window", 512); break;
	case KEY_TIMEOUT: o->timeout_ms = number(state, arg, "timeout", 60000); break;
	case KEY_RETRIES: o->retries = number(state, arg, "retries", 100); break;
	case KEY_LOG_LEVEL: o->log_level = level(state, arg); break;
	case ARGP_KEY_ARG: argp_error(state, "unexpected \"%s\"", arg); break;
	case ARGP_KEY_END:
		if (!o->window || !o->timeout_ms)
			argp_error(state, "window and timeout begin at 1");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void print_line(void *ctx, enum sm_log_level lvl, const char *line)
{
	static const char *const marks[] = {"error: ", "warning: ", "", ""};
	struct program *p = ctx;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(stderr, "softib-sm %7.3f %s%s\n",
		(double)(now.tv_sec - p->started.tv_sec) +
			(double)(now.tv_nsec - p->started.tv_nsec) / 1e9,
		marks[lvl], line);
}

static void happened(void *ctx, enum sm_event event)
{
	struct program *p = ctx;

	switch (event) {
	case SM_EVENT_SUBNET_UP:
		puts("SUBNET UP");
		break;
	case SM_EVENT_SWEEP_ERRORS:
		puts("SUBNET UP, with errors");
		p->status = EXIT_FAILURE;
		break;
	case SM_EVENT_STANDBY:
		puts("STANDBY");
		p->status = EXIT_FAILURE;
		break;
	}
	fflush(stdout);
	if (p->once)
		rt_posix_stop(p->rt);
}

/* Where LIDs are kept when the user does not say: per manager port, beside
 * the fabric's sockets. No such place: nowhere. */
static void default_lid_cache(struct program *p)
{
	const char *dir = getenv("SOFTIB_DIR"), *run = getenv("XDG_RUNTIME_DIR");
	char path[2048];

	if (dir) {
		snprintf(path, sizeof(path), "%s", dir);
	} else if (run) {
		snprintf(path, sizeof(path), "%s/softib", run);
		if (mkdir(path, 0700) && errno != EEXIST)
			return;
	} else {
		return;
	}
	if (!access(path, W_OK))
		snprintf(p->lid_cache, sizeof(p->lid_cache), "%s/lids-%016" PRIx64, path,
			 sm_umad_guid(p->umad));
}

/* softib's fabrics show what the manager does; others have nobody to ask */
static void let_trace(struct program *p)
{
	const char *dir = getenv("SOFTIB_DIR");

	if (dir && rt_trace_link_open(p->rt, dir, getenv("SOFTIB_NODE"), RT_TRACE_SM, sm_trace_points,
				      SM_NUM_TRACE_POINTS, &p->trace))
		p->trace = NULL;
}

static struct program program;

/* --- signals: a byte in a pipe of libev's own --- */

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	if (w->signum != SIGHUP) {
		program.ended = true;
		rt_posix_stop(program.rt);
	} else if (program.sm) {
		sm_resweep(program.sm);
	}
}

static void watch_signals(void)
{
	static ev_signal watchers[3];
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		ev_signal_init(&watchers[i], on_signal, signals[i]);
		ev_signal_start(rt_posix_loop(program.rt), &watchers[i]);
	}
}

/* --- the port: taken, lost when the adapter is pulled, taken again --- */

static void port_lost(void *ctx)
{
	struct program *p = ctx;

	p->lost = true;
	rt_posix_stop(p->rt);
}

/* manage the subnet until a signal ends it or the port is lost */
static void serve(struct program *p)
{
	int err = sm_create(p->rt, sm_umad_io(p->umad), &p->opt, &p->sm);

	err = err ?: sm_umad_start(p->umad, p->sm, port_lost, p);
	if (err) {
		fprintf(stderr, "softib-sm: cannot start on %s: %s\n",
			sm_umad_name(p->umad), strerror(-err));
		p->status = EXIT_FAILURE;
		p->ended = true;
	} else {
		print_line(p, SM_LOG_INFO, sm_umad_name(p->umad));
		sm_start(p->sm);
		rt_posix_run(p->rt);
	}
	sm_umad_close(p->umad);
	sm_destroy(p->sm);
	p->sm = NULL;
}

static void look_again(struct rt_timer *timer)
{
	struct program *p = container_of(timer, struct program, look);
	const char *error;

	p->lost = sm_umad_open(p->rt, &p->port, &p->umad, &error) != 0;
	if (p->lost)
		rt_timer_arm(timer, mono_add(rt_now(p->rt), LOOK_NS));
	else
		rt_posix_stop(p->rt);
}

/* the adapter that was pulled may come back, as it came from the factory */
static void await_port(struct program *p)
{
	print_line(p, SM_LOG_WARNING, "the adapter is gone; waiting until it is back");
	p->port.guid = p->opt.port_guid;
	rt_timer_arm(&p->look, mono_add(rt_now(p->rt), LOOK_NS));
	rt_posix_run(p->rt);
	rt_timer_disarm(&p->look);
}

static int run(struct program *p)
{
	const char *error = "";
	int err = sm_umad_open(p->rt, &p->port, &p->umad, &error);

	if (err) {
		fprintf(stderr, "softib-sm: %s\n", error);
		return EXIT_FAILURE;
	}
	p->opt.port_guid = sm_umad_guid(p->umad);
	if (!p->lid_cache_given)
		default_lid_cache(p);
	if (p->lid_cache[0] && strcmp(p->lid_cache, "none"))
		p->opt.lid_cache = p->lid_cache;
	rt_timer_init(p->rt, &p->look, look_again);
	watch_signals();
	let_trace(p);
	serve(p);
	while (p->lost && !p->ended && !p->once) {
		await_port(p);
		if (!p->lost && !p->ended)
			serve(p);
		else if (!p->lost)
			sm_umad_close(p->umad);
	}
	if (p->lost && p->once)
		p->status = EXIT_FAILURE;
	rt_trace_link_close(p->trace);
	return p->status;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, NULL, doc};
	int status, err;

	rt_hold_standard_fds();
	clock_gettime(CLOCK_MONOTONIC, &program.started);
	sm_options_default(&program.opt);
	program.opt.log = print_line;
	program.opt.event = happened;
	program.opt.ctx = &program;
	argp_parse(&argp, argc, argv, 0, NULL, &program);
	err = rt_posix_create(&program.rt);
	if (err) {
		fprintf(stderr, "softib-sm: cannot create an event loop: %s\n", strerror(-err));
		return EXIT_FAILURE;
	}
	status = run(&program);
	rt_posix_destroy(program.rt);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "softib-sm: cannot write to standard output\n");
		status = EXIT_FAILURE;
	}
	return status;
}
