/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of windows share: see windows.c. */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_PRIVATE_H
#define SOFTIB_LIBIBVERBS_WINDOWS_PRIVATE_H

#include "windows.h"

/* --- windows.c --- */

/** windows_say() - send a message to softibd, with the descriptor @fd, or without if it is -1.
 *  Errors are ignored: they mean that softibd has ended */
void windows_say(struct windows *w, const struct abi_window_msg *m, int fd);

/* --- windows_peers.c --- */

long windows_membarrier(int command);
/** windows_peer_take() - the window page of program @id, mapped from @fd if it is new. Return:
 *  NULL: it cannot be mapped. Context: the thread of windows, as all functions that use peers */
const struct abi_window_page *windows_peer_take(struct windows *w, uint32_t id, int fd);
void windows_peer_gone(struct windows *w, uint32_t id);
void windows_peers_gone(struct windows *w);
/** windows_sections_end() - after a token has changed, wait until no peer that saw the old value
 *  is in a section. Return: false: one still is, perhaps because it is stopped */
bool windows_sections_end(struct windows *w);

/* --- windows_give.c --- */

/** windows_wanted() - answer a peer's request for a grant */
void windows_wanted(struct soft_context *ctx, const struct abi_window_msg *want, int page_fd);
/** windows_quiesce() - eng_window_config.quiesce: wait for sections after the grants of a QP's
 *  peer were revoked */
void windows_quiesce(void *ctx);
/** windows_sections_over() - eng_window_config.sections_end */
void windows_sections_over(void *ctx);
/** windows_unbound() - eng_window_config.unbound: take back the memory that peers were granted by
 *  keys of memory windows that are no longer bound */
void windows_unbound(void *ctx);
void windows_end_extents(struct soft_context *ctx);
/** windows_drop_next() - free the extent that is being made. Context: the thread of windows has
 *  ended, or a forked child */
void windows_drop_next(struct windows *w);

/* --- windows_take.c --- */

/** windows_granted() - map memory that a peer has granted. Return: false: it is not used */
bool windows_granted(struct soft_context *ctx, const struct abi_window_msg *g, const int fds[2]);
/** windows_forget() - unmap the memory @window of @peer. ENG_WINDOW_ALL as either stands for all */
void windows_forget(struct soft_context *ctx, uint32_t peer, uint32_t window);

#endif
