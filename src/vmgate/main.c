/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib-pvrdma: options, QEMU's process and its signals. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmgate/gate.h"

/* argp finds it by name, so it may not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softib-pvrdma " SOFTIB_VERSION;

static const char doc[] =
	"Run QEMU with an RDMA adapter for the guest, which is the adapter of this node: the devices vmxnet3 and "
	"pvrdma, which the guest's kernel knows by its drivers vmxnet3 and vmw_pvrdma.\v"
	"Example:\n"
	"  softib up lab --link-layer ethernet --net node\n"
	"  softib exec --fabric lab n1 -- softib-pvrdma -m 1G qemu-system-x86_64 -drive file=disk.qcow2 -nographic\n"
	"\n"
	"It exits as QEMU does.";

static const struct argp_option options[] = {
	{"memory", 'm', "SIZE", 0, "RAM of the guest, in the words of QEMU's -m. Without it, QEMU needs a "
	 "memory-backend-ram that is shared", 1},
	{"device", 'd', "NAME", 0, "Adapter of the node (default: its first)", 1},
	{"port", 'p', "N", 0, "Port of the adapter (default 1)", 1},
	{"mac", 'a', "ADDRESS", 0, "MAC address of the guest (default: 52:54:00 and the end of the port's)", 1},
	{"verbose", 'v', NULL, 0, "Say which GIDs the guest has, and what of its MADs fails", 2},
	{0},
};

int gate_fail(int error, const char *format, ...)
{
	va_list args;

	fputs("softib-pvrdma: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, error ? ": %s\n" : "\n", strerror(error));
	return -1;
}

void gate_say(const struct gate *gate, const char *format, ...)
{
	va_list args;

	if (!gate->opt.is_verbose)
		return;
	fputs("softib-pvrdma: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* --- options --- */

static void read_mac(struct argp_state *state, struct gate_options *opt, const char *arg)
{
	int end = 0;

	if (sscanf(arg, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &opt->mac[0], &opt->mac[1], &opt->mac[2],
		   &opt->mac[3], &opt->mac[4], &opt->mac[5], &end) != 6 || arg[end] || opt->mac[0] & 1)
		argp_error(state, "--mac: \"%s\" is no MAC address of a station", arg);
	opt->has_mac = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct gate_options *opt = state->input;
	unsigned long port;
	char *end;

	switch (key) {
	case 'm':
		opt->memory = arg;
		break;
	case 'd':
		opt->device = arg;
		break;
	case 'p':
		port = strtoul(arg, &end, 10);
		if (!port || port > UINT8_MAX || *end)
			argp_error(state, "--port: \"%s\" is no port", arg);
		opt->port = (uint8_t)port;
		break;
	case 'a':
		read_mac(state, opt, arg);
		break;
	case 'v':
		opt->is_verbose = true;
		break;
	case ARGP_KEY_ARGS:
		opt->command = state->argv + state->next;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "say how to start QEMU");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* --- the adapter --- */

static int open_device(struct gate *gate)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	const char *name = gate->opt.device;
	unsigned int i = 0;

	if (!list || !list[0])
		return gate_fail(0, "there is no adapter: softib exec NODE -- softib-pvrdma ...");
	while (list[i] && name && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	gate->context = list[i] ? ibv_open_device(list[i]) : NULL;
	ibv_free_device_list(list);
	if (!gate->context)
		return gate_fail(0, "there is no adapter %s", name ? name : "");
	if (ibv_query_port(gate->context, gate->opt.port, &port))
		return gate_fail(0, "the adapter has no port %u", gate->opt.port);
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return gate_fail(0, "pvrdma needs a port of Ethernet: softib up --link-layer ethernet --net node");
	return 0;
}

/* --- life --- */

static void on_exit_of_qemu(struct ev_loop *loop, ev_child *child, int events)
{
	struct gate *gate = child->data;

	gate->status = child->rstatus;
	ev_break(loop, EVBREAK_ALL);
}

/* QEMU ends in its own way. A terminal sends SIGINT to both. */
static void on_signal(struct ev_loop *loop, ev_signal *signal, int events)
{
	ev_child *child = signal->data;

	if (signal->signum == SIGTERM)
		kill(child->pid, SIGTERM);
}

static int run(struct gate *gate, int mads_fd, int frames_fd)
{
	ev_signal signals[2];
	ev_child child;
	int pid;

	ev_signal_init(&signals[0], on_signal, SIGINT);
	ev_signal_init(&signals[1], on_signal, SIGTERM);
	for (int i = 0; i < 2; i++) {
		signals[i].data = &child;
		ev_signal_start(gate->loop, &signals[i]);
	}
	pid = gate_qemu_start(gate, mads_fd, frames_fd);
	if (pid < 0)
		return -1;
	close(mads_fd);
	close(frames_fd);
	ev_child_init(&child, on_exit_of_qemu, pid, 0);
	child.data = gate;
	ev_child_start(gate->loop, &child);
	ev_run(gate->loop, 0);
	return 0;
}

/* Each pair: this end, which closes with exec(), and QEMU's. */
static int make_sockets(int mads[2], int frames[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, mads) || socketpair(AF_UNIX, SOCK_DGRAM, 0, frames))
		return gate_fail(errno, "socketpair");
	fcntl(mads[0], F_SETFD, FD_CLOEXEC);
	fcntl(frames[0], F_SETFD, FD_CLOEXEC);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "QEMU [ARGUMENT...]", doc};
	static struct gate gate = {.opt = {.port = 1}, .umad_fd = -1, .umad_agent = -1};
	int mads[2], frames[2], error;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &gate.opt);
	gate.loop = ev_default_loop(0);
	if (open_device(&gate) || make_sockets(mads, frames))
		return EXIT_FAILURE;
	error = gate_addresses_open(&gate) || gate_frames_open(&gate, frames[0]) ||
		gate_mads_open(&gate, mads[0]) || run(&gate, mads[1], frames[1]);
	gate_mads_close(&gate);
	gate_frames_close(&gate);
	gate_addresses_close(&gate);
	ibv_close_device(gate.context);
	if (error)
		return EXIT_FAILURE;
	return WIFEXITED(gate.status) ? WEXITSTATUS(gate.status) : 128 + WTERMSIG(gate.status);
}
