/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The address for which softibd has accepted RESOLVE_ADDR last. It would accept the same for another id
 * that had no command since it was created, so that the program need not wait for its answer. The
 * caller serialises.
 */
#ifndef SOFTIB_LIBRDMACM_RESOLVED_H
#define SOFTIB_LIBRDMACM_RESOLVED_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#include "abi/ahead.h"

/** struct resolved - @fresh: ids of RDMA_PS_TCP that had no command yet, unless their numbers are before
 *  @fresh_from: ABI_AHEAD_COUNTERS of them, by the rest of their numbers; 0: none
 *  @all: the changes of all ids (abi/ahead.h) when softibd accepted @cmd; @valid: it did */
struct resolved {
	uint32_t *fresh, fresh_from, last_created;
	bool valid;
	uint32_t all;
	struct rdma_ucm_resolve_addr cmd;
};

/** resolved_open() - Return: 0; -ENOMEM */
int resolved_open(struct resolved *resolved);
void resolved_close(struct resolved *resolved);
/** resolved_created() - an id of the port space @ps (enum rdma_port_space) was created */
void resolved_created(struct resolved *resolved, uint32_t id, uint16_t ps);
/** resolved_touched() - any id may have had a command */
void resolved_touched(struct resolved *resolved);
/** resolved_takes() - had the id no command yet? RESOLVE_ADDR is one */
bool resolved_takes(struct resolved *resolved, uint32_t id);
/** resolved_keep() - softibd has accepted @cmd for an id that had no command before */
void resolved_keep(struct resolved *resolved, const struct rdma_ucm_resolve_addr *cmd, uint32_t all);
/** resolved_before() - has softibd accepted such a command, and would do so again? */
bool resolved_before(const struct resolved *resolved, const struct rdma_ucm_resolve_addr *cmd, uint32_t all);

#endif
