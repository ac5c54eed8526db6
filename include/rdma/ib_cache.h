/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where Linux declares the cached queries and the entries of GID tables. */
#ifndef RDMA_IB_CACHE_H
#define RDMA_IB_CACHE_H

#include "rdma/ib_port.h"
#include "rdma/ib_verbs.h"

#endif
