/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers that softibd gives ahead. Behind the response of GET_EVENT stand the answers to the
 * questions that librdmacm asks as soon as it has the event (addresses, path, attributes of a
 * queue pair), so that a connection does not cost an exchange for each.
 *
 * An answer holds as long as softibd would give the same. softibd counts the changes of each
 * id in a page that programs can read: whoever finds another count than the one that came
 * with the answer asks again.
 */
#ifndef SOFTIB_ABI_AHEAD_H
#define SOFTIB_ABI_AHEAD_H

#include <stdatomic.h>
#include <stdint.h>

/* Ids share them by the rest of their numbers. Those of thousands of connections, which are made at once,
 * have counters of their own: answers wait in a socket until the program reads the event. */
#define ABI_AHEAD_COUNTERS 16384

/** struct abi_ahead_page - a memfd that softibd alone can write. It comes with the answer to the
 *  opening message, after the socket of commands. @all: changes of all ids */
struct abi_ahead_page {
	_Atomic uint32_t changes[ABI_AHEAD_COUNTERS];
	_Atomic uint32_t all;
};

/** abi_ahead_all_changes() - Return: how often all ids have changed. It never decreases */
static inline uint32_t abi_ahead_all_changes(const struct abi_ahead_page *page)
{
	return atomic_load_explicit(&page->all, memory_order_acquire);
}

/** abi_ahead_changes() - Return: how often the id has changed. It never decreases */
static inline uint32_t abi_ahead_changes(const struct abi_ahead_page *page, uint32_t id)
{
	return atomic_load_explicit(&page->changes[id % ABI_AHEAD_COUNTERS], memory_order_acquire) +
	       abi_ahead_all_changes(page);
}

/** struct abi_ahead - answers about @id follow, each struct abi_ahead_answer and its bytes.
 *  @changes: the id's count when they were true */
struct abi_ahead {
	uint32_t id;
	uint32_t changes;
};

/** ABI_AHEAD_FLOW - not a command: struct abi_flow_answer, for the queue pair that librdmacm takes to RTR
 *  next. An answer that names no lane is not given */
#define ABI_AHEAD_FLOW 0x5f00u

/** struct abi_ahead_answer - @cmd: RDMA_USER_CM_CMD_QUERY or _INIT_QP_ATTR; @option: of the
 *  query, or the state of the queue pair; @bytes: of the response, a multiple of eight.
 *  Or @cmd: RESOLVE_ROUTE, CONNECT or ACCEPT, without a response: softibd would not refuse it, so
 *  that the program may tell it (ABI_CM_TOLD). If softibd does fail, it says so by an event, unless another
 *  one tells of what came in between */
struct abi_ahead_answer {
	uint16_t cmd, option;
	uint32_t bytes;
};

#endif
