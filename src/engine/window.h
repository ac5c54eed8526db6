/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows, the engine's part (src/abi/window.h, docs/WINDOWS.md): requests
 * that are done at once in the peer's memory, and the tokens that allow a
 * peer to do the same here. Where memory comes from, and who may have it,
 * is its owner's business (lib/libibverbs/windows_give.c).
 */
#ifndef SOFTIB_ENGINE_WINDOW_H
#define SOFTIB_ENGINE_WINDOW_H

#include "abi/window.h"
#include "engine/engine.h"

/** struct eng_ask - a QP of ours wants the memory at @va of @rkey */
struct eng_ask {
	uint32_t qpn, rkey;
	uint32_t connection; /* to which peer: the grant is for no other */
	uint64_t va, length_bytes;
};

/** struct eng_window_config - copied by eng_windows_enable() */
struct eng_window_config {
	struct abi_window_page *page; /* ours, writable */
	/** fenced - targets do not use membarrier(2) on us: fence ourselves */
	bool fenced;
	/** ask() - have the peer of a QP grant memory. Under the engine's lock;
	 *  answered by eng_window_grant() or _denied(). Return: false: not now */
	bool (*ask)(void *ctx, const struct eng_ask *ask);
	/** quiesce() - a token changed: return when no initiator that saw the
	 *  old one is still copying. Without the engine's lock */
	void (*quiesce)(void *ctx);
	void *ctx;
};

/** eng_windows_enable() - 0; -ENOMEM. Before the engine has QPs */
int eng_windows_enable(struct engine *engine, const struct eng_window_config *config);

/* --- as an initiator --- */

/** struct eng_grant - one peer's memory under one key, for one QP of ours */
struct eng_grant {
	uint32_t qpn, rkey;
	uint32_t connection;   /* eng_ask's */
	uint32_t peer, window; /* its program, its name for the memory */
	uint32_t epoch;	       /* holds while this is the route epoch */
	int access;
	uint64_t va, length_bytes;
	char *base; /* where va is mapped here */
	const _Atomic uint64_t *qp_token, *window_token;
	uint64_t qp_value, window_value;
	struct abi_window_flow *flow;
};

/** eng_window_grant() - Return: false: nobody waits for it any more */
bool eng_window_grant(struct engine *engine, const struct eng_grant *grant);
void eng_window_denied(struct engine *engine, uint32_t qpn, uint32_t rkey);
#define ENG_WINDOW_ALL 0xffffffffu
/** eng_window_forget() - memory @window of @peer is not used after return;
 *  ENG_WINDOW_ALL: any */
void eng_window_forget(struct engine *engine, uint32_t peer, uint32_t window);
/** eng_window_operations() - requests done by windows */
uint64_t eng_window_operations(struct engine *engine);

/* --- as a target --- */

/** struct eng_offer - what a peer may do, as long as the token is @value */
struct eng_offer {
	struct eng_mr_attr mr;
	int access;
	uint32_t token;
	uint64_t value;
};

/** eng_window_offer() - may the peer of QP @qpn use @rkey? 0 and *@offer;
 *  -EACCES; -ENOSPC no token is left. */
int eng_window_offer(struct engine *engine, uint32_t qpn, uint32_t rkey,
		     struct eng_offer *offer);
/** eng_token_take() - a token of one's own: 0 none is left */
uint32_t eng_token_take(struct engine *engine, uint64_t *value);
/** eng_token_give() - it changes, and is free for others */
void eng_token_give(struct engine *engine, uint32_t token);

#endif
