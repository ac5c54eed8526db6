/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What softibd has answered ahead (abi/ahead.h), for one channel: the answers about an id that
 * came with its last event, until they hold no more. The caller serialises.
 */
#ifndef SOFTIB_LIBRDMACM_AHEAD_H
#define SOFTIB_LIBRDMACM_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <rdma/rdma_user_cm.h>

#include "abi/ahead.h"

struct ahead {
	const struct abi_ahead_page *page;
	struct ahead_answers **slot; /* ABI_AHEAD_COUNTERS of them, by the rest of the id's number */
};

/** ahead_open() - @page_fd: of struct abi_ahead_page, the caller's. Return: 0; -errno */
int ahead_open(struct ahead *ahead, int page_fd);
/** ahead_close() - also of one that could not be opened */
void ahead_close(struct ahead *ahead);
/** ahead_keep() - @bytes: struct abi_ahead and its answers; without memory for them, or if they
 *  make no sense, nothing is kept */
void ahead_keep(struct ahead *ahead, const void *bytes, size_t len);
/**
 * ahead_find() - the response to a command, if softibd has given it and would give no other
 * @len: of @hdr and what follows it
 * Return: its bytes, copied to @to; -1: ask softibd
 */
ssize_t ahead_find(struct ahead *ahead, const struct rdma_ucm_cmd_hdr *hdr, size_t len, void *to,
		   size_t room);
/** ahead_flow() - Return: what softibd has said of the flow of the id's queue pair (struct abi_flow_answer);
 *  NULL: nothing */
const void *ahead_flow(struct ahead *ahead, uint32_t id);
/** ahead_accepts() - would softibd accept the command @cmd for the id? */
bool ahead_accepts(struct ahead *ahead, uint32_t id, uint32_t cmd);
/** ahead_drop() - forget the answers about an id, which a command on its way to softibd changes */
void ahead_drop(struct ahead *ahead, uint32_t id);

#endif
