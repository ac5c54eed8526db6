/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of kernel consumers (IBA v1 10.6, 11.2.8): regions of all memory, of physical buffers,
 * of pages that are registered by work requests or mapped by calls, and memory windows.
 * Included by ib_verbs.h.
 *
 * softibd is one process: the "DMA" or "physical" address of a buffer is its address there.
 * A region that is made of pages gives access to them as to one buffer, under addresses that
 * begin at the region's iova. Each use of a key is checked against its protection domain,
 * bounds and rights; where one fails, the request ends with IB_WC_LOC_PROT_ERR at the end
 * whose key it is, and with IB_WC_REM_ACCESS_ERR at the requester when it is its peer's.
 */
#ifndef RDMA_IB_MEMORY_H
#define RDMA_IB_MEMORY_H

#include "rdma/ib_scatterlist.h"
#include "rdma/ib_verbs.h"

#pragma GCC visibility push(default)

/* --- regions --- */

/** ib_get_dma_mr() - a key for all memory of kernel consumers */
struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int access);

/** struct ib_phys_buf - a piece of memory */
struct ib_phys_buf {
	u64 addr;
	u64 size; /* bytes */
};

/**
 * ib_reg_phys_mr() - make one region of a list of buffers
 * @phys_buf_array: @num_phys_buf of them; all but the first begin at the start of a page, and
 *  all but the last end at the end of one. Copied
 * @access: enum ib_access_flags
 * @iova_start: the address that the region begins at; it has the offset in a page that the
 *  first buffer has. Not changed
 *
 * Context: may sleep. Return: the region; ERR_PTR(-EINVAL: the buffers, @iova_start or the
 * rights; -ENOMEM). Spec: IBA v1 11.2.8.3
 */
struct ib_mr *ib_reg_phys_mr(struct ib_pd *pd, struct ib_phys_buf *phys_buf_array,
			     int num_phys_buf, int access, u64 *iova_start);

/**
 * ib_rereg_phys_mr() - change a region of ib_reg_phys_mr()
 * @mr_rereg_mask: enum ib_mr_rereg_flags: what changes. IB_MR_REREG_TRANS: the buffers and
 *  @iova_start; IB_MR_REREG_PD: @pd; IB_MR_REREG_ACCESS: @mr_access_flags
 *
 * The keys stay, and what they give access to changes at once.
 * Context: may sleep. Return: 0; -EINVAL, -ENOMEM, or -EBUSY: a memory window is bound to it;
 * nothing has changed then. Spec: IBA v1 11.2.8.5
 */
int ib_rereg_phys_mr(struct ib_mr *mr, int mr_rereg_mask, struct ib_pd *pd,
		     struct ib_phys_buf *phys_buf_array, int num_phys_buf, int mr_access_flags,
		     u64 *iova_start);

/** struct ib_mr_attr - what a region is */
struct ib_mr_attr {
	struct ib_pd *pd;
	u64 device_virt_addr; /* the address that it begins at */
	u64 size;	      /* bytes */
	int mr_access_flags;
	u32 lkey, rkey;
};
/** ib_query_mr() - Return: 0. Spec: IBA v1 11.2.8.2 */
int ib_query_mr(struct ib_mr *mr, struct ib_mr_attr *mr_attr);

/** ib_dereg_mr() - nothing touches the memory by the region's keys after return.
 *  Context: may sleep. Return: 0; -EBUSY: a memory window is bound to it */
int ib_dereg_mr(struct ib_mr *mr);

/* --- fast registration, by work requests --- */

enum ib_mr_type {
	IB_MR_TYPE_MEM_REG,
	IB_MR_TYPE_SG_GAPS, /* not supported */
};

/**
 * ib_alloc_mr() - a region that IB_WR_REG_MR requests register
 * @max_num_sg: pages that it has room for: ib_device_attr.max_fast_reg_page_list_len at most
 *
 * It is free at first: it gives access to nothing. ib_map_mr_sg() says what the next
 * IB_WR_REG_MR makes of it. IB_WR_LOCAL_INV, or IB_WR_SEND_WITH_INV of a peer, frees it again.
 * Context: may sleep. Return: the region, for ib_dereg_mr(); ERR_PTR(-EINVAL: @max_num_sg;
 * -EOPNOTSUPP: the type; -ENOMEM)
 */
struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type, u32 max_num_sg);

/**
 * ib_map_mr_sg() - what the next registration of @mr makes of it
 * @sg: @sg_nents entries; all but the first begin at the start of a page and all but the last
 *  end at the end of one, or they follow each other in memory
 * @sg_offset: bytes of the first entry to leave out; NULL: 0
 * @page_size: a power of 2, 4096 at least
 *
 * Sets mr->iova, which is the address of the first byte, and mr->length. The request has to
 * have completed before the next call, and the memory stays in use until the region is free.
 * Context: any; never sleeps. Return: how many entries fit from the first one on: fewer than
 * @sg_nents when the pages are too many, or one begins or ends within a page; -EINVAL
 */
int ib_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int sg_nents, unsigned int *sg_offset,
		 unsigned int page_size);

/** ib_map_mr_sg_zbva() - as ib_map_mr_sg(), for a region whose address is small: mr->iova is the
 *  offset of the first byte in its page */
int ib_map_mr_sg_zbva(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
		      unsigned int *sg_offset, unsigned int page_size);

/** ib_update_fast_reg_key() - the keys that the next registration gives @mr end in @newkey */
static inline void ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	mr->lkey = (mr->lkey & 0xffffff00u) | newkey;
	mr->rkey = (mr->rkey & 0xffffff00u) | newkey;
}

/** ib_inc_rkey() - Return: the key after @rkey, of the same region or window */
static inline u32 ib_inc_rkey(u32 rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xff);
}

/** struct ib_reg_wr - IB_WR_REG_MR: register @mr, which is free, as ib_map_mr_sg() said. It
 *  ends with IB_WC_MW_BIND_ERR when @mr is not free, is of another PD, or was not mapped */
struct ib_reg_wr {
	struct ib_send_wr wr;
	struct ib_mr *mr;
	u32 key; /* mr->rkey or mr->lkey, which are the same */
	int access;
};

static inline const struct ib_reg_wr *reg_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_reg_wr, wr);
}

/* --- fast memory regions (FMRs), by calls --- */

struct ib_fmr_pool;

/** struct ib_fmr - a region whose pages are mapped and unmapped by calls that do not sleep */
struct ib_fmr {
	struct ib_device *device;
	struct ib_pd *pd;
	struct list_head list; /* the consumer's: ib_unmap_fmr() */
	u32 lkey, rkey;	       /* those of the last ib_map_phys_fmr() */
	/* --- the core's --- */
	struct ib_mr *mr;
	int access;
	u32 max_pages;
	int maps, max_maps; /* since it was unmapped last */
	u8 page_shift;
	struct ib_fmr_pool *pool; /* that it is of; NULL: of none */
	struct rdma_restrack_entry res;
};

struct ib_fmr_attr {
	int max_pages;
	int max_maps; /* maps in a row without an unmap; ib_device_attr.max_map_per_fmr at most */
	u8 page_shift; /* a page has 2^page_shift bytes; 12 at least */
};

/** ib_alloc_fmr() - an FMR that nothing is mapped to. Context: may sleep.
 *  Return: the FMR; ERR_PTR(-EINVAL: the attributes or the rights; -ENOMEM) */
struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags, struct ib_fmr_attr *fmr_attr);

/**
 * ib_map_phys_fmr() - @fmr is these pages from now on, by new keys
 * @page_list: addresses of @list_len pages; copied
 * @iova: the address that the region begins at, a multiple of the page size
 *
 * Context: any; never sleeps. Return: 0; -EINVAL: @list_len, a page or @iova; -ENOMEM: it was
 * mapped max_maps times since it was unmapped last
 */
int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova);

/** ib_unmap_fmr() - the keys of the FMRs in @fmr_list (by ib_fmr.list) give access to nothing any
 *  more. They stay in the list. Context: may sleep. Return: 0 */
int ib_unmap_fmr(struct list_head *fmr_list);

/** ib_dealloc_fmr() - whether it is mapped or not. Context: may sleep. Return: 0 */
int ib_dealloc_fmr(struct ib_fmr *fmr);

/* --- memory windows --- */

/** ib_alloc_mw() - ib_alloc_mw(pd, type), or ib_alloc_mw(pd) for type 1: a window that is bound
 *  to nothing. Context: may sleep. Return: the window; ERR_PTR(-EINVAL no such type;
 *  -EOPNOTSUPP; -ENOMEM). Spec: IBA v1 11.2.8.8 */
#define ib_alloc_mw(...) IB_ALLOC_MW_(__VA_ARGS__, IB_MW_TYPE_1, )
#define IB_ALLOC_MW_(pd, type, ...) ib_alloc_mw_(pd, type)
struct ib_mw *ib_alloc_mw_(struct ib_pd *pd, enum ib_mw_type type);

/** ib_dealloc_mw() - bound or not. Context: may sleep. Return: 0 */
int ib_dealloc_mw(struct ib_mw *mw);

/** struct ib_mw_bind_info - part of a region, and what peers may do there */
struct ib_mw_bind_info {
	struct ib_mr *mr;
	u64 addr;
	u64 length;	     /* 0: unbind, of type 1 */
	int mw_access_flags; /* of enum ib_access_flags the remote ones, and IB_ZERO_BASED */
};

struct ib_mw_bind {
	u64 wr_id;
	int send_flags;
	struct ib_mw_bind_info bind_info;
};

/** ib_bind_mw() - queue a request that binds a window of type 1. mw->rkey is the new key at
 *  return; peers may use it when the request has completed, with IB_WC_BIND_MW. Context: any;
 *  never sleeps. Return: 0; -EINVAL: the type, or as ib_post_send(). Spec: IBA v1 11.2.8.10 */
int ib_bind_mw(struct ib_qp *qp, struct ib_mw *mw, struct ib_mw_bind *mw_bind);

/** struct ib_bind_mw_wr - IB_WR_BIND_MW, of windows of either type. mw->rkey is the caller's to set
 *  to @rkey once the request has completed */
struct ib_bind_mw_wr {
	struct ib_send_wr wr;
	struct ib_mw *mw;
	u32 rkey; /* its key from then on: ib_inc_rkey(mw->rkey) */
	struct ib_mw_bind_info bind_info;
};

static inline const struct ib_bind_mw_wr *bind_mw_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_bind_mw_wr, wr);
}

/* --- DMA addresses --- */

enum dma_data_direction {
	DMA_BIDIRECTIONAL,
	DMA_TO_DEVICE,
	DMA_FROM_DEVICE,
};

/** ib_dma_map_single() - a kernel consumer's buffer as the engine sees it:
 *  both live in one address space, so its address is its pointer */
static inline u64 ib_dma_map_single(struct ib_device *device, void *ptr, size_t size,
				    enum dma_data_direction direction)
{
	return (u64)(uintptr_t)ptr;
}

static inline void ib_dma_unmap_single(struct ib_device *device, u64 addr, size_t size,
				       enum dma_data_direction direction)
{
}

static inline int ib_dma_mapping_error(struct ib_device *device, u64 addr)
{
	return 0;
}

/** ib_dma_map_page() - as ib_dma_map_single(), of @size bytes at @offset in a page or in several
 *  that are one behind the other */
static inline u64 ib_dma_map_page(struct ib_device *device, struct page *page, unsigned long offset,
				  size_t size, enum dma_data_direction direction)
{
	return (u64)(uintptr_t)page + offset;
}

static inline void ib_dma_unmap_page(struct ib_device *device, u64 addr, size_t size,
				     enum dma_data_direction direction)
{
}

/** ib_dma_sync_single_for_cpu() - the client will read or write a buffer that is mapped: there is
 *  nothing to do where memory and device have one view of it */
static inline void ib_dma_sync_single_for_cpu(struct ib_device *device, u64 addr, size_t size,
					      enum dma_data_direction direction)
{
}

/** ib_dma_sync_single_for_device() - the device will */
static inline void ib_dma_sync_single_for_device(struct ib_device *device, u64 addr, size_t size,
						 enum dma_data_direction direction)
{
}

/** ib_dma_max_seg_size() - Return: the most bytes of an entry of a scatter list */
static inline unsigned int ib_dma_max_seg_size(struct ib_device *device)
{
	return UINT32_MAX;
}

/** ib_dma_pci_p2p_dma_supported() - there are no buffers in other devices */
static inline bool ib_dma_pci_p2p_dma_supported(struct ib_device *device)
{
	return false;
}

/** ibdev_to_node() - the device's NUMA node. Return: NUMA_NO_NODE */
#define NUMA_NO_NODE (-1)
static inline int ibdev_to_node(struct ib_device *device)
{
	return NUMA_NO_NODE;
}

/** ib_dma_map_sg() - Return: how many entries there are then: @nents */
static inline int ib_dma_map_sg(struct ib_device *device, struct scatterlist *sg, int nents,
				enum dma_data_direction direction)
{
	return nents;
}

static inline void ib_dma_unmap_sg(struct ib_device *device, struct scatterlist *sg, int nents,
				   enum dma_data_direction direction)
{
}

#pragma GCC visibility pop

#endif
