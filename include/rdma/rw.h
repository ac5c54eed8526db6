/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Transfers between a scatter list and a peer's memory, for servers: RDMA WRITEs or RDMA READs that
 * carry as many entries as a request has room for. Names and rules are those of the Linux
 * InfiniBand core. There, some adapters need regions for some transfers; those of softib need none,
 * so a transfer is one request for each full list of entries.
 *
 *	struct ib_qp_init_attr attr = {.cap = {.max_rdma_ctxs = 8, ...}, ...};
 *	...
 *	rdma_rw_ctx_init(&ctx, qp, port, sg, entries, 0, remote_addr, rkey, DMA_FROM_DEVICE);
 *	rdma_rw_ctx_post(&ctx, qp, port, &cqe, NULL);
 *	...			done() of cqe: the transfer is over
 *	rdma_rw_ctx_destroy(&ctx, qp, port, sg, entries, DMA_FROM_DEVICE);
 */
#ifndef RDMA_RW_H
#define RDMA_RW_H

#include "rdma/ib_verbs.h"
#include "rdma/mr_pool.h"

#pragma GCC visibility push(default)

/** struct rdma_rw_ctx - a transfer. The client sees nr_ops alone */
struct rdma_rw_ctx {
	u32 nr_ops; /* requests */
	struct ib_sge *sges;
	struct ib_rdma_wr *wrs;
	/* --- of one request with one entry, which allocates nothing --- */
	struct ib_sge sge;
	struct ib_rdma_wr wr;
};

/**
 * rdma_rw_ctx_init() - prepare a transfer
 * @ctx: the client's, and in use until rdma_rw_ctx_destroy(). It must not be moved
 * @port_num: of @qp
 * @sg: @sg_cnt entries, whose memory stays lent until the transfer is over
 * @sg_offset: bytes to leave out from the start of @sg
 * @remote_addr, @rkey: the peer's memory
 * @dir: DMA_TO_DEVICE: to the peer, by RDMA WRITE; DMA_FROM_DEVICE: from the peer, by RDMA READ
 *
 * Context: any; never sleeps. Return: how many requests it needs in the send queue, one at least;
 * -EINVAL @dir, or nothing is left behind @sg_offset; -ENOMEM
 */
int rdma_rw_ctx_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
		     struct scatterlist *sg, u32 sg_cnt, u32 sg_offset, u64 remote_addr, u32 rkey,
		     enum dma_data_direction dir);
/** rdma_rw_ctx_destroy() - with the arguments of rdma_rw_ctx_init(): the transfer is over, or was
 *  not posted. Context: any; never sleeps */
void rdma_rw_ctx_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
			 struct scatterlist *sg, u32 sg_cnt, enum dma_data_direction dir);
/**
 * rdma_rw_ctx_wrs() - the requests of a transfer, to be posted by the client
 * @cqe: its done() is called when the transfer is over, or has failed; not with @chain_wr
 * @chain_wr: requests to be posted behind the transfer, the last of which the client has signalled;
 *	NULL: the transfer's last request is signalled
 *
 * done() of @cqe is called once, whether the transfer succeeds or not; requests before the
 * last complete without any call. With @chain_wr a failed transfer flushes these.
 * Context: any; never sleeps. Return: the first request; they are valid until rdma_rw_ctx_destroy()
 */
struct ib_send_wr *rdma_rw_ctx_wrs(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
				   struct ib_cqe *cqe, struct ib_send_wr *chain_wr);
/** rdma_rw_ctx_post() - post the requests of rdma_rw_ctx_wrs(). Context: any; never sleeps.
 *  Return: 0; -errno of ib_post_send() */
int rdma_rw_ctx_post(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num, struct ib_cqe *cqe,
		     struct ib_send_wr *chain_wr);

/** rdma_rw_mr_factor() - into how many transfers of one region each @maxpages pages would have to
 *  be cut: a bound of max_rdma_ctxs for each of the client's requests. Context: any. Return: 0: the
 *  device has no such regions */
unsigned int rdma_rw_mr_factor(struct ib_device *device, u32 port_num, unsigned int maxpages);
/** rdma_rw_max_send_wr() - the send queue's share of @max_rdma_ctxs transfers, of one request each.
 *  Context: any */
unsigned int rdma_rw_max_send_wr(struct ib_device *device, u32 port_num,
				 unsigned int max_rdma_ctxs, u32 create_flags);

/* --- the core's own --- */

/** rdma_rw_init_qp() - make room in the send queue for attr->cap.max_rdma_ctxs transfers, as far as
 *  the device has it */
void rdma_rw_init_qp(struct ib_device *device, struct ib_qp_init_attr *attr);

#pragma GCC visibility pop

#endif
