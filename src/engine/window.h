/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's part of windows (src/abi/window.h, docs/WINDOWS.md): requests
 * that are performed at once in the peer's memory, and the tokens that allow a
 * peer to do the same here. The owner of the engine provides the shared memory
 * and decides which peers may map it (lib/libibverbs/windows_give.c).
 */
#ifndef SOFTIB_ENGINE_WINDOW_H
#define SOFTIB_ENGINE_WINDOW_H

#include "abi/window.h"
#include "engine/engine.h"

/** struct eng_ask - a request for a grant: memory at @va under @rkey, for one of our QPs */
struct eng_ask {
	uint32_t qpn, rkey;
	uint32_t connection; /* eng_qp.connection: a grant for an earlier peer is ignored */
	uint64_t va, length_bytes;
};

/** struct eng_window_config - copied by eng_windows_enable() */
struct eng_window_config {
	struct abi_window_page *page; /* our own window page, mapped writable */
	/** fenced - targets do not use membarrier(2), so each section needs a fence */
	bool fenced;
	/** ask() - ask the peer of a QP for a grant. The answer is eng_window_grant() or
	 *  eng_window_denied(). Context: under the engine's lock. Return: false: not now */
	bool (*ask)(void *ctx, const struct eng_ask *ask);
	/** quiesce() - called after a token has changed: return when no initiator that saw the
	 *  old value is in a section. Context: without the engine's lock */
	void (*quiesce)(void *ctx);
	/** sections_end() - the same, and nothing else. Under the engine's lock */
	void (*sections_end)(void *ctx);
	/** unbound() - memory windows were unbound: return when no peer has a mapping
	 *  that it was granted by a key for which eng_mw_is_bound() is false. Without the lock */
	void (*unbound)(void *ctx);
	void *ctx;
};

/** eng_windows_enable() - use windows. Context: before the engine has QPs. Return: 0; -ENOMEM */
int eng_windows_enable(struct engine *engine, const struct eng_window_config *config);

/* --- as an initiator --- */

/** struct eng_grant - memory of a peer under one key that one of our QPs may use */
struct eng_grant {
	uint32_t qpn, rkey;
	uint32_t connection;   /* of the eng_ask */
	uint32_t peer, window; /* the peer's program, and its number for the memory */
	uint32_t epoch;	       /* the grant is valid while this is the route epoch */
	int access;
	uint64_t va, length_bytes;
	char *base; /* where va is mapped here */
	const _Atomic uint64_t *qp_token, *window_token;
	uint64_t qp_value, window_value;
	struct abi_window_flow *flow;
};

/** eng_window_grant() - store a grant. Return: false: no QP waits for it any more */
bool eng_window_grant(struct engine *engine, const struct eng_grant *grant);
void eng_window_denied(struct engine *engine, uint32_t qpn, uint32_t rkey);
#define ENG_WINDOW_ALL 0xffffffffu
/** eng_window_forget() - drop the grants for the memory @window of @peer, which is not used after
 *  return. ENG_WINDOW_ALL: for all its memory */
void eng_window_forget(struct engine *engine, uint32_t peer, uint32_t window);
/** eng_window_operations() - the number of requests performed through windows */
uint64_t eng_window_operations(struct engine *engine);

/* --- as a target --- */

/** struct eng_offer - what a peer may do as long as the token has @value */
struct eng_offer {
	struct eng_mr_attr mr;
	int access;
	uint32_t token;
	uint64_t value;
	/* of a memory window: a token that stands for what it is bound to, besides one for the
	 * memory; 0: the key is a region's */
	uint32_t key_token;
	uint64_t key_value;
};

/** eng_window_offer() - what may the peer of QP @qpn do with @rkey? Return: 0 and *@offer;
 *  -EACCES: nothing; -ENOSPC: no token is left */
int eng_window_offer(struct engine *engine, uint32_t qpn, uint32_t rkey,
		     struct eng_offer *offer);
/** eng_mw_is_bound() - is @key the present key of a memory window that is bound? */
bool eng_mw_is_bound(struct engine *engine, uint32_t key);
/** eng_mw_revoke() - revoke what was granted by @key, if it is a memory window's */
void eng_mw_revoke(struct engine *engine, uint32_t key);
/** eng_token_take() - allocate a token. Return: 0: none is left */
uint32_t eng_token_take(struct engine *engine, uint64_t *value);
/** eng_token_give() - free a token; its value changes, which revokes what depends on it */
void eng_token_give(struct engine *engine, uint32_t token);

#endif
