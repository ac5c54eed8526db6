/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Conversion of the midlayer's structs to those of the kernel's user interfaces (<rdma/ib_user_*.h>), and
 * back. The endpoints rdma_cm and ucm have these in common. */
#ifndef SOFTIB_ACCESS_MARSHALL_H
#define SOFTIB_ACCESS_MARSHALL_H

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "rdma/ib_sa.h"
#include "rdma/ib_verbs.h"

void marshall_ah(struct ib_uverbs_ah_attr *to, const struct rdma_ah_attr *from);
/** marshall_qp_attr() - @mask: which attributes a modification needs (enum ib_qp_attr_mask) */
void marshall_qp_attr(struct ib_uverbs_qp_attr *to, const struct ib_qp_attr *from, int mask);
void marshall_path(struct ib_user_path_rec *to, const struct sa_path_rec *from);
/** unmarshall_path() - @from: a program's, of any values. What its struct has no room for is 0 */
void unmarshall_path(struct sa_path_rec *to, const struct ib_user_path_rec *from);

#endif
