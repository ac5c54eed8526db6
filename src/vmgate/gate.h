/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program softib-pvrdma: it starts QEMU with the devices vmxnet3 and pvrdma, and is what both are
 * connected to.
 *
 *                    stream socket                       umad: MADs of the CM
 *  QEMU  pvrdma   ──────────────────► mads.c      ──────────────────────────────► port of the node
 *                                     addresses.c  addresses of eth0: the GID table
 *        vmxnet3  ──────────────────► frames.c    ──────────────────────────────►
 *                    datagram socket                     raw packet queue pair
 *        pvrdma   ───────────────────────────────────────────────────────────────►
 *                                       verbs: queue pairs of the guest
 *
 * QEMU itself opens the adapter for the guest's queue pairs, by libibverbs. One thread, one libev loop.
 */
#ifndef SOFTIB_VMGATE_GATE_H
#define SOFTIB_VMGATE_GATE_H

#include <ev.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "pvrdma/mux.h"

#define GATE_ADDRESSES 8 /* that one port has beside those of the address plan */
#define GATE_MAC_BYTES 6

/** struct gate_options - @device NULL: the first one; @command: QEMU and its arguments, up to NULL */
struct gate_options {
	const char *device;
	uint8_t port;
	bool has_mac;
	uint8_t mac[GATE_MAC_BYTES];
	const char *memory;
	char **command;
	bool is_verbose;
};

/** struct gate_address - an IP address that the port's interface has been given for the guest */
struct gate_address {
	union ibv_gid gid;
	bool is_there;
	bool is_ours; /* to be removed; otherwise the interface had it before */
};

/**
 * struct gate - @interface: of the port
 * @mads_fd, @frames_fd: this end of the two sockets
 * @waiting: the GID that QEMU waits for to be in the port's table, since @request asked for it
 */
struct gate {
	struct gate_options opt;
	struct ev_loop *loop;
	struct ibv_context *context;
	char interface[IF_NAMESIZE];
	int status; /* of QEMU's process */

	/* --- mads.c --- */
	int mads_fd, umad_fd, umad_agent;
	ev_io mads_io, umad_io;
	struct pvrdma_message request, last_mad;
	struct pvrdma_routes routes;

	/* --- addresses.c --- */
	ev_io async_io;
	ev_timer wait_limit;
	bool is_waiting;
	union ibv_gid waiting;
	struct gate_address address[GATE_ADDRESSES];

	/* --- frames.c --- */
	int frames_fd;
	ev_io frames_io, completions_io;
	struct gate_frames *frames;
};

/** gate_fail() - say on standard error what does not work; @error: an errno, 0: none. Return: -1 */
__attribute__((format(printf, 2, 3))) int gate_fail(int error, const char *format, ...);
/** gate_say() - the same of what is worth to know with --verbose */
__attribute__((format(printf, 2, 3))) void gate_say(const struct gate *gate, const char *format, ...);

/** gate_mads_open() - become the guest's GSI: @fd is QEMU's chardev
 *  Return: 0; -1 it was told why not */
int gate_mads_open(struct gate *gate, int fd);
void gate_mads_close(struct gate *gate);
/** gate_mads_answer() - answer @gate->request, and wait for the next */
void gate_mads_answer(struct gate *gate, enum pvrdma_error error);

/** gate_addresses_open() - find the port's interface. Return: 0; -1 it was told why not */
int gate_addresses_open(struct gate *gate);
/** gate_addresses_close() - remove all that was added */
void gate_addresses_close(struct gate *gate);
/** gate_address_add() - have @gid in the port's GID table; gate_mads_answer() is called when it is there,
 *  or will not be */
void gate_address_add(struct gate *gate, const union ibv_gid *gid);
/** gate_address_remove() - Return: whether the guest had @gid */
bool gate_address_remove(struct gate *gate, const union ibv_gid *gid);
/** gate_address_is_there() - does the guest have @gid? */
bool gate_address_is_there(const struct gate *gate, const union ibv_gid *gid);

/** gate_frames_open() - carry the frames of the guest's interface: @fd is QEMU's netdev
 *  Return: 0; -1 it was told why not */
int gate_frames_open(struct gate *gate, int fd);
void gate_frames_close(struct gate *gate);

/** gate_qemu_start() - start QEMU with the two sockets. Return: its pid; -1 it was told why not */
int gate_qemu_start(struct gate *gate, int mads_fd, int frames_fd);

#endif
