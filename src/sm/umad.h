/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The manager's port on libibumad. */
#ifndef SOFTIB_SM_UMAD_H
#define SOFTIB_SM_UMAD_H

#include "runtime/posix/rt_posix.h"
#include "sm/sm.h"

struct sm_umad;

/** struct sm_umad_port - which port to take: the first that fits */
struct sm_umad_port {
	const char *device; /* NULL: any */
	int port;	    /* 0: any */
	uint64_t guid;	    /* port GUID, 0: any */
};

/**
 * sm_umad_open() - open a port, register the three agents, announce IsSM
 * @error: a sentence for the user when it fails, in a static buffer
 * Return: 0 and *@out; -errno
 */
int sm_umad_open(struct rt *rt, const struct sm_umad_port *want, struct sm_umad **out,
		 const char **error);
/**
 * sm_umad_start() - let incoming MADs go to @sm
 * @lost: called in the loop when the adapter is pulled; only sm_umad_close()
 *        is of use from then on, not from within
 * Return: 0; -errno
 */
int sm_umad_start(struct sm_umad *u, struct sm *sm, void (*lost)(void *ctx), void *ctx);
void sm_umad_close(struct sm_umad *u);
struct sm_io *sm_umad_io(struct sm_umad *u);
uint64_t sm_umad_guid(const struct sm_umad *u);
/** sm_umad_name() - "device:port" */
const char *sm_umad_name(const struct sm_umad *u);

#endif
