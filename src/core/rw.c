/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Transfers between scatter lists and peers' memory. */
#include "core/private.h"
#include "rdma/rw.h"

static u32 entries_of_request(const struct ib_qp *qp, enum dma_data_direction dir)
{
	const struct ib_device_attr *max = &qp->device->attrs;
	u32 most = (u32)(dir == DMA_FROM_DEVICE && max->max_sge_rd ? max->max_sge_rd :
								     max->max_send_sge);

	most = MIN(most, qp->cap.max_send_sge);
	return most ? most : 1;
}

/* Leave out @offset bytes. Return: the entry that they end in, and what is left out of it in
 * *@offset; NULL: nothing is left */
static struct scatterlist *skip(struct scatterlist *sg, u32 *num, u32 *offset)
{
	for (; *num && *offset >= sg_dma_len(sg); sg = sg_next(sg)) {
		*offset -= sg_dma_len(sg);
		--*num;
	}
	return *num ? sg : NULL;
}

static int alloc_requests(struct rdma_rw_ctx *ctx, u32 entries)
{
	ctx->sges = &ctx->sge;
	ctx->wrs = &ctx->wr;
	if (entries == 1)
		return 0;
	ctx->wrs = rt_zalloc(ctx->nr_ops * sizeof(*ctx->wrs) + entries * sizeof(*ctx->sges));
	if (!ctx->wrs)
		return -ENOMEM;
	ctx->sges = (struct ib_sge *)(ctx->wrs + ctx->nr_ops);
	return 0;
}

static void free_requests(struct rdma_rw_ctx *ctx)
{
	if (ctx->wrs != &ctx->wr)
		rt_free(ctx->wrs);
	ctx->wrs = NULL;
}

int rdma_rw_ctx_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
		     struct scatterlist *sg, u32 sg_cnt, u32 sg_offset, u64 remote_addr, u32 rkey,
		     enum dma_data_direction dir)
{
	const u32 most = entries_of_request(qp, dir);

	if (dir != DMA_TO_DEVICE && dir != DMA_FROM_DEVICE)
		return -EINVAL;
	sg = skip(sg, &sg_cnt, &sg_offset);
	if (!sg)
		return -EINVAL;
	*ctx = (struct rdma_rw_ctx){.nr_ops = (sg_cnt + most - 1) / most};
	if (alloc_requests(ctx, sg_cnt))
		return -ENOMEM;
	for (u32 i = 0; i < sg_cnt; i++, sg = sg_next(sg)) {
		struct ib_rdma_wr *wr = &ctx->wrs[i / most];
		u32 skipped = i ? 0 : sg_offset;

		ctx->sges[i] = (struct ib_sge){.addr = sg_dma_address(sg) + skipped,
					       .length = sg_dma_len(sg) - skipped,
					       .lkey = qp->pd->local_dma_lkey};
		if (i % most == 0)
			*wr = (struct ib_rdma_wr){
				.wr = {.opcode = dir == DMA_TO_DEVICE ? IB_WR_RDMA_WRITE :
									IB_WR_RDMA_READ,
				       .sg_list = &ctx->sges[i],
				       .next = i + most < sg_cnt ? &wr[1].wr : NULL},
				.remote_addr = remote_addr,
				.rkey = rkey};
		wr->wr.num_sge++;
		remote_addr += ctx->sges[i].length;
	}
	return (int)ctx->nr_ops;
}

void rdma_rw_ctx_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
			 struct scatterlist *sg, u32 sg_cnt, enum dma_data_direction dir)
{
	free_requests(ctx);
}

struct ib_send_wr *rdma_rw_ctx_wrs(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
				   struct ib_cqe *cqe, struct ib_send_wr *chain_wr)
{
	struct ib_send_wr *last = &ctx->wrs[ctx->nr_ops - 1].wr;

	last->next = chain_wr;
	last->wr_cqe = chain_wr ? NULL : cqe;
	last->send_flags = chain_wr ? 0 : IB_SEND_SIGNALED;
	return &ctx->wrs[0].wr;
}

int rdma_rw_ctx_post(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num, struct ib_cqe *cqe,
		     struct ib_send_wr *chain_wr)
{
	return ib_post_send(qp, rdma_rw_ctx_wrs(ctx, qp, port_num, cqe, chain_wr), NULL);
}

unsigned int rdma_rw_mr_factor(struct ib_device *device, u32 port_num, unsigned int maxpages)
{
	unsigned int most = MIN(device->attrs.max_fast_reg_page_list_len, 256u);

	return most ? (maxpages + most - 1) / most : 0;
}

unsigned int rdma_rw_max_send_wr(struct ib_device *device, u32 port_num,
				 unsigned int max_rdma_ctxs, u32 create_flags)
{
	return max_rdma_ctxs;
}

void rdma_rw_init_qp(struct ib_device *device, struct ib_qp_init_attr *attr)
{
	struct ib_qp_cap *cap = &attr->cap;
	u32 more = rdma_rw_max_send_wr(device, attr->port_num, cap->max_rdma_ctxs,
				       attr->create_flags);
	u32 most = (u32)device->attrs.max_qp_wr;

	if (cap->max_send_wr < most)
		cap->max_send_wr += MIN(more, most - cap->max_send_wr);
}
