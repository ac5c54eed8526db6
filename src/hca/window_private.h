/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files about windows share. window.c describes softibd's part in windows. */
#ifndef SOFTIB_HCA_WINDOW_PRIVATE_H
#define SOFTIB_HCA_WINDOW_PRIVATE_H

#include "abi/window.h"
#include "hca/private.h"

#define REMOTE_RIGHTS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WRITING_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define FLOW_WORDS     (ABI_WINDOW_FLOWS / 64)

/** struct window_flow - a QP that accesses memory through windows. Since its operations pass no port,
 *  window_count.c adds them to the counters of the ports on @way (requests) and @back (responses).
 *  @counted: what has been added so far */
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
	bool dead; /* the program does not read softibd's messages, and gets no grant any more */
	const struct abi_window_page *page;
	bool page_sealed;
	unsigned num_asks;
	struct list_head given; /* struct given: memory of this program that peers have been granted */
	unsigned num_given;
	struct list_head flows;
	uint64_t flow_used[FLOW_WORDS];
};

/** struct window_connection - the connection and the memory that a program's ASK names, as softibd
 *  found them */
struct window_connection {
	struct hca_windows *to;
	const struct hca_qp *from_qp, *to_qp;
	const struct ib_mr *mr; /* NULL: the R_Key names a memory window */
	int access;
	struct fab_way *way, *back;
};

/* --- window_count.c --- */

/** hca_window_flow() - Return: the flow of QP @qpn, which is made if the QP has none; NULL: all flows
 *  are in use, or there is no memory */
struct window_flow *hca_window_flow(struct hca_windows *w, uint32_t qpn);
/** hca_window_flow_set() - from now on, count @f on these ways, and take ownership of them */
void hca_window_flow_set(const struct hca_windows *w, struct window_flow *f, struct fab_way *way,
			 struct fab_way *back);
/** hca_window_count_end() - count the program's last requests, and free all flows of @w */
void hca_window_count_end(struct hca_windows *w);

/* --- window_check.c --- */

/** hca_qp_pkey() - Return: the P_Key of @qp's packets; 0: its index names none */
uint16_t hca_qp_pkey(const struct hca_qp *qp);
/** hca_qp_way() - Return: the way of @qp's packets to its peer, which the caller frees; NULL:
 *  there is none, or a rule or a filter affects packets on it */
struct fab_way *hca_qp_way(const struct hca_qp *qp);
/** hca_window_find() - may QP @qpn of program @w use @rkey of its peer through a window?
 *  Return: true, and *@c is set; the caller frees its ways by hca_window_free_ways() */
bool hca_window_find(struct hca_windows *w, uint32_t qpn, uint32_t rkey, struct window_connection *c);
void hca_window_free_ways(struct window_connection *c);

#endif
