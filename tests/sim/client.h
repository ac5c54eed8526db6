/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A node's client of the subnet administrator: requests by MADs on QP1, with
 * answers by RMPP when they are long. It belongs to the node, not to a
 * program, and lives as long as the traffic. */
#ifndef SOFTIB_SIM_CLIENT_H
#define SOFTIB_SIM_CLIENT_H

#include "program.h"
#include "wire/sa.h"

struct client;

/** sa_answer_fn - the end of a request
 * @status: 0; -ETIMEDOUT and other -errno; else the MAD's status
 * @mad: the whole answer, @len bytes; NULL unless @status is 0 */
typedef void (*sa_answer_fn)(void *ctx, int status, const uint8_t *mad, size_t len);

/** clients_start() - one for each program's node, and what they ask by plan */
void clients_start(struct sim *sim);
/** clients_begin_calm() - each asks once more, and must be answered rightly */
void clients_begin_calm(struct sim *sim);
bool clients_done(struct sim *sim);
/** clients_stop() - Every request has ended by now, or ends here */
void clients_stop(struct sim *sim);

/**
 * client_ask() - a request to the administrator that the node's port knows
 * @program: whose node's client
 * Return: 0, and @fn is called once, later; -errno, and it is not
 */
int client_ask(struct sim *sim, int program, uint8_t method, uint16_t attr, uint64_t mask,
	       const struct wire_codec *codec, const void *record, sa_answer_fn fn, void *ctx);

/* --- group.c: programs in a multicast group --- */

void groups_start(struct sim *sim);
void groups_begin_calm(struct sim *sim);
bool groups_done(struct sim *sim);
/** groups_stop(), groups_free() - before and after the clients go */
void groups_stop(struct sim *sim);
void groups_free(struct sim *sim);
/** group_of_dead() - @p dies: its membership's QP goes with it */
void group_of_dead(struct program *p);
void group_completion(struct program *p, const struct ibv_wc *wc);
#define GROUP_BIT (1ull << 62) /* in wr_id */

#endif
