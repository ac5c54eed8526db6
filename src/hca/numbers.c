/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPNs and memory keys. Both are assigned in a circle, so that a number is not reused soon, and a
 * late packet does not reach another connection. A key consists of an index and a tag, which
 * changes with each use of the index. A page of the tables has 64 numbers; it is freed when the
 * circle has left it.
 *
 * An adapter that returns after it was removed continues with the next numbers. Its peers may not
 * know yet that their connections with its former queue pairs are gone, and would regard new
 * connections with the same numbers as stale (12.9.8.3.1).
 */
#include "hca/private.h"

#define QPN_END 0xfffffeu /* 0xffffff is the multicast QPN */
#define KEY_END 0x1000000u

/* Return: the next number that nobody has; 0: there is none */
static uint32_t next_qpn(struct hca *hca)
{
	for (uint32_t tries = HCA_FIRST_QPN; tries < QPN_END; tries++) {
		uint32_t qpn = hca->next_qpn++;

		if (hca->next_qpn >= QPN_END)
			hca->next_qpn = HCA_FIRST_QPN;
		if (!eng_table_get(&hca->qps, qpn) && !eng_table_get(&hca->reserved, qpn))
			return qpn;
	}
	return 0;
}

int hca_qpn_alloc(struct hca *hca, struct hca_qp *qp, u32 reserved)
{
	qp->ib.qp_num = reserved ? reserved : next_qpn(hca);
	return qp->ib.qp_num ? eng_table_set(&hca->qps, qp->ib.qp_num, qp) : -ENOMEM;
}

int hca_qpn_reserve(struct ib_device *device, u32 *qpn)
{
	struct hca *hca = hca_of(device);

	*qpn = next_qpn(hca);
	return *qpn ? eng_table_set(&hca->reserved, *qpn, hca) : -ENOMEM;
}

void hca_qpn_release(struct ib_device *device, u32 qpn)
{
	eng_table_clear(&hca_of(device)->reserved, qpn);
}

void hca_qpn_free(struct hca *hca, struct hca_qp *qp)
{
	eng_table_clear(&hca->qps, qp->ib.qp_num);
}

int hca_srqn_alloc(struct hca *hca, struct hca_srq *srq)
{
	for (uint32_t tries = 0; tries < IB_QPN_MASK; tries++) {
		uint32_t srqn = hca->next_srqn++ % IB_QPN_MASK + 1; /* 0 is none */

		if (eng_table_get(&hca->xrc_srqs, srqn))
			continue;
		srq->ib.srq_num = srqn;
		return eng_table_set(&hca->xrc_srqs, srqn, srq);
	}
	return -ENOMEM;
}

int hca_key_alloc(struct hca *hca, struct hca_key *owner, u32 *key)
{
	for (uint32_t tries = 1; tries < KEY_END; tries++) {
		uint32_t index = hca->next_key++;
		uint32_t tag = rt_random(hca->rt) & 0xff;

		if (hca->next_key >= KEY_END)
			hca->next_key = 1;
		if (eng_table_get(&hca->keys, index))
			continue;
		*key = index << 8 | tag;
		return eng_table_set(&hca->keys, index, owner);
	}
	return -ENOMEM;
}

void hca_key_free(struct hca *hca, u32 key)
{
	eng_table_clear(&hca->keys, key >> 8);
}
