/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The socket between client and server: addresses, and who is ready. */
#include <stdlib.h>
#include <sys/socket.h>

#include "verbs.h"

void tell(struct bench *b, const void *data, size_t size)
{
	measure_check(send(b->sock, data, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
}

void hear(struct bench *b, void *data, size_t size)
{
	measure_check(recv(b->sock, data, size, MSG_WAITALL) == (ssize_t)size,
		      "the other side is gone");
}

/* Both sides come here before either goes on. */
void sync_sides(struct bench *b)
{
	char c = 0;

	tell(b, &c, 1);
	hear(b, &c, 1);
}

/* Tell the other side this one's address, and take its. */
void exchange(struct bench *b)
{
	struct end *e = &b->end;
	struct address mine = {.memory = (uintptr_t)e->memory,
			       .rkey = e->mw ? ibv_inc_rkey(e->mw->rkey) : e->mr->rkey,
			       .lid = end_lid(e),
			       .qp_count = b->count,
			       .srqn = srq_number(e),
			       .initiator_qpn = e->qp[0]->qp_num};

	uint32_t *qpn = calloc(b->count, sizeof(*qpn));

	for (unsigned i = 0; i < b->count; i++)
		qpn[i] = (e->target ? e->target : e->qp[i])->qp_num;
	tell(b, &mine, sizeof(mine));
	tell(b, qpn, b->count * sizeof(*qpn));
	free(qpn);
	hear(b, &e->peer, sizeof(e->peer));
	e->peer_qpn = calloc(e->peer.qp_count, sizeof(uint32_t));
	hear(b, e->peer_qpn, e->peer.qp_count * sizeof(uint32_t));
}
