/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Scatter lists: memory that is not in one piece, as a kernel consumer hands it to the
 * midlayer (ib_dma_map_sg(), ib_map_mr_sg()). softibd is one process, so an entry is an
 * address and a length, and its DMA address is its address.
 */
#ifndef RDMA_IB_SCATTERLIST_H
#define RDMA_IB_SCATTERLIST_H

#include <string.h>

#include "rdma/ib_types.h"

/** struct scatterlist - one entry of an array. Use the functions below */
struct scatterlist {
	void *addr;
	unsigned int length;
	bool last;
};

static inline void sg_mark_end(struct scatterlist *sg)
{
	sg->last = true;
}

/** sg_init_table() - @nents entries, empty; the last one ends the list */
static inline void sg_init_table(struct scatterlist *sg, unsigned int nents)
{
	memset(sg, 0, nents * sizeof(*sg));
	sg_mark_end(&sg[nents - 1]);
}

static inline void sg_set_buf(struct scatterlist *sg, const void *buf, unsigned int length)
{
	sg->addr = (void *)buf;
	sg->length = length;
}

/** struct page - a page of memory, or the first of several: its address stands for it */
struct page;

/** sg_set_page() - @length bytes at @offset in @page and those behind it */
static inline void sg_set_page(struct scatterlist *sg, struct page *page, unsigned int length,
			       unsigned int offset)
{
	sg_set_buf(sg, (const char *)page + offset, length);
}

/** sg_init_one() - a list of one entry */
static inline void sg_init_one(struct scatterlist *sg, const void *buf, unsigned int length)
{
	sg_init_table(sg, 1);
	sg_set_buf(sg, buf, length);
}

/** sg_next() - Return: the next entry; NULL: @sg is the last one */
static inline struct scatterlist *sg_next(struct scatterlist *sg)
{
	return sg->last ? NULL : sg + 1;
}

static inline void *sg_virt(const struct scatterlist *sg)
{
	return sg->addr;
}

#define sg_dma_address(sg) ((dma_addr_t)(uintptr_t)(sg)->addr)
#define sg_dma_len(sg)	   ((sg)->length)
#define for_each_sg(sglist, sg, nr, i)                                         \
	for ((i) = 0, (sg) = (sglist); (i) < (nr); (i)++, (sg) = sg_next(sg))

#endif
