/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of windows share: see windows.c. */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_PRIVATE_H
#define SOFTIB_LIBIBVERBS_WINDOWS_PRIVATE_H

#include "windows.h"

/* --- windows.c --- */

/** windows_say() - to softibd; with descriptor @fd, or -1. What does not go
 *  through is its end, and then nothing matters */
void windows_say(struct windows *w, const struct abi_window_msg *m, int fd);

/* --- windows_peers.c --- */

long windows_membarrier(int command);
/** windows_peer_take() - the page of program @id, mapped from @fd when it is
 *  new; NULL. Context: the thread of windows, as all that know peers */
const struct abi_window_page *windows_peer_take(struct windows *w, uint32_t id, int fd);
void windows_peer_gone(struct windows *w, uint32_t id);
void windows_peers_gone(struct windows *w);
/** windows_sections_end() - a token changed: wait until no peer that saw the
 *  old one is at work. Return: false: one still is, stopped perhaps */
bool windows_sections_end(struct windows *w);

/* --- windows_give.c --- */

/** windows_wanted() - a peer asks for memory: answer it */
void windows_wanted(struct soft_context *ctx, const struct abi_window_msg *want, int page_fd);
/** windows_quiesce() - eng_window_config.quiesce: a QP's peer may do nothing any more */
void windows_quiesce(void *ctx);
void windows_end_extents(struct soft_context *ctx);
/** windows_drop_next() - when the thread of windows has ended, or in a child */
void windows_drop_next(struct windows *w);

/* --- windows_take.c --- */

/** windows_granted() - a peer's memory came. Return: false: it is not used */
bool windows_granted(struct soft_context *ctx, const struct abi_window_msg *g, const int fds[2]);
/** windows_forget() - memory @window of @peer, ENG_WINDOW_ALL any: unmap it */
void windows_forget(struct soft_context *ctx, uint32_t peer, uint32_t window);

#endif
