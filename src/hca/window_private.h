/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of softibd's windows share: see window.c. */
#ifndef SOFTIB_HCA_WINDOW_PRIVATE_H
#define SOFTIB_HCA_WINDOW_PRIVATE_H

#include "abi/window.h"
#include "hca/private.h"

#define REMOTE_RIGHTS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define FLOW_WORDS     (ABI_WINDOW_FLOWS / 64)

/** struct window_flow - a QP that uses windows, and the ways it is counted on */
struct window_flow {
	struct list_head node; /* hca_windows.flows */
	struct hca_windows *windows;
	uint32_t qpn, index;
	struct fab_way *way, *back;
	struct abi_window_total counted;
};

/** struct hca_windows - a program's half of all its windows */
struct hca_windows {
	struct list_head all; /* hca_set.windows */
	struct hca_user *user;
	uint32_t id;
	int fd, page_fd; /* our end of ABI_FD_WINDOWS; the page, read-only */
	struct rt_io io;
	bool dead; /* it does not read what it is told: it takes no part */
	const struct abi_window_page *page;
	bool page_sealed;
	unsigned num_asks;
	struct list_head given; /* struct given: what it may close */
	unsigned num_given;
	struct list_head flows;
	uint64_t flow_used[FLOW_WORDS];
};

/** struct window_connection - what an ASK names, as softibd knows it */
struct window_connection {
	struct hca_windows *to;
	const struct hca_qp *from_qp, *to_qp;
	const struct ib_mr *mr; /* NULL: the key is a memory window's */
	int access;
	struct fab_way *way, *back;
};

/* --- window_count.c --- */

/** hca_window_flow() - the flow of QP @qpn, its own of before or a new one;
 *  NULL: none is left */
struct window_flow *hca_window_flow(struct hca_windows *w, uint32_t qpn);
/** hca_window_flow_set() - @f is counted on these ways from here on, which it owns */
void hca_window_flow_set(const struct hca_windows *w, struct window_flow *f, struct fab_way *way,
			 struct fab_way *back);
/** hca_window_count_end() - all of @w is counted, and no more will come */
void hca_window_count_end(struct hca_windows *w);

/* --- window_check.c --- */

/** hca_qp_pkey() - the P_Key of @qp's packets; 0: none */
uint16_t hca_qp_pkey(const struct hca_qp *qp);
/** hca_qp_way() - the way of @qp's packets to its peer; NULL: it is not clean */
struct fab_way *hca_qp_way(const struct hca_qp *qp);
/** hca_window_find() - may QP @qpn of @w use @rkey of its peer? Return: true
 *  and *@c, whose ways are the caller's */
bool hca_window_find(struct hca_windows *w, uint32_t qpn, uint32_t rkey, struct window_connection *c);
void hca_window_free_ways(struct window_connection *c);

#endif
