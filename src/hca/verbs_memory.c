/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's operations on memory regions, memory windows and device memory. softibd assigns the
 * keys of a program; only the program's engine knows the memory to which they give access. The keys
 * of the midlayer's consumers are in the adapter's engine.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/private.h"

/* --- regions --- */

static struct ib_mr *new_mr(struct hca *hca)
{
	struct hca_mr *mr = rt_zalloc(sizeof(*mr));
	int ret = mr ? hca_key_alloc(hca, &mr->key, &mr->ib.rkey) : -ENOMEM;

	if (ret) {
		rt_free(mr);
		return ERR_PTR(ret);
	}
	mr->ib.lkey = mr->ib.rkey;
	return &mr->ib;
}

void hca_dereg_mr(struct ib_mr *ibmr)
{
	struct hca_mr *mr = container_of(ibmr, struct hca_mr, ib);
	struct hca *hca = hca_of(ibmr->device);

	if (mr->in_engine)
		eng_mr_del(hca->engine, ibmr->lkey);
	hca_key_free(hca, ibmr->rkey);
	rt_free(mr);
}

static u32 number_of(struct ib_pd *pd)
{
	return container_of(pd, struct hca_pd, ib)->number;
}

/* Finish the creation of a region. @ret: result of its creation in the engine
 * Return: the region; if @ret is an error, ERR_PTR() of it, and the region is freed */
static struct ib_mr *in_engine(struct ib_mr *ibmr, int ret)
{
	if (ret) {
		hca_dereg_mr(ibmr);
		return ERR_PTR(ret);
	}
	container_of(ibmr, struct hca_mr, ib)->in_engine = true;
	return ibmr;
}

struct ib_mr *hca_get_dma_mr(struct ib_pd *pd, int access)
{
	struct hca *hca = hca_of(pd->device);
	struct ib_mr *ibmr = new_mr(hca);
	struct eng_mr_attr attr = {
		.pd = number_of(pd), .length = UINT64_MAX, .access = access};

	if (IS_ERR(ibmr))
		return ibmr;
	ibmr->device = pd->device;
	attr.key = ibmr->lkey;
	return in_engine(ibmr, eng_mr_add(hca->engine, &attr));
}

struct ib_mr *hca_alloc_mr(struct ib_pd *pd, u32 max_pages)
{
	struct hca *hca = hca_of(pd->device);
	struct ib_mr *ibmr = new_mr(hca);

	if (IS_ERR(ibmr))
		return ibmr;
	ibmr->device = pd->device;
	return in_engine(ibmr, eng_paged_add(hca->engine, ibmr->lkey, number_of(pd), max_pages));
}

static struct eng_mapping mapping_of(const struct ib_pages *pages)
{
	return (struct eng_mapping){pages->iova, pages->length, pages->shift, pages->num,
				    pages->page};
}

int hca_map_mr(struct ib_mr *mr, struct ib_pd *pd, int access, const struct ib_pages *pages)
{
	struct engine *engine = hca_of(mr->device)->engine;
	struct eng_mapping mapping;

	if (!pages)
		return eng_paged_map(engine, mr->lkey, number_of(pd), 0, NULL);
	mapping = mapping_of(pages);
	return eng_paged_map(engine, mr->lkey, number_of(pd), access, &mapping);
}

int hca_stage_mr(struct ib_mr *mr, const struct ib_pages *pages)
{
	struct eng_mapping mapping = mapping_of(pages);

	return eng_paged_stage(hca_of(mr->device)->engine, mr->lkey, &mapping);
}

bool hca_mr_is_bound(const struct ib_mr *mr)
{
	return container_of(mr, struct hca_mr, ib)->in_engine &&
	       eng_mr_is_bound(hca_of(mr->device)->engine, mr->lkey);
}

/* Assign the keys of a program's region. The region itself is in the program's engine. */
struct ib_mr *hca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_udata *udata)
{
	int ret = hca_refused(hca_of(pd->device), FLT_OBJECT_MR);

	return ret ? ERR_PTR(ret) : new_mr(hca_of(pd->device));
}

int hca_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
			 struct ib_pd *pd)
{
	return 0;
}

/* --- windows --- */

struct ib_mw *hca_alloc_mw(struct ib_pd *pd, enum ib_mw_type type, struct ib_udata *udata)
{
	struct hca *hca = hca_of(pd->device);
	int ret = udata ? hca_refused(hca, FLT_OBJECT_MW) : 0;
	struct hca_mw *mw;

	if (ret)
		return ERR_PTR(ret);
	mw = rt_zalloc(sizeof(*mw));
	ret = mw ? hca_key_alloc(hca, &mw->key, &mw->ib.rkey) : -ENOMEM;
	if (ret)
		goto undo_alloc;
	mw->key.is_window = true;
	/* a program's memory window is in the program's engine, which knows what it is bound to */
	ret = udata ? 0 :
		      eng_mw_add(hca->engine, mw->ib.rkey, number_of(pd), (enum ibv_mw_type)type);
	if (!ret)
		return &mw->ib;
	hca_key_free(hca, mw->ib.rkey);
undo_alloc:
	rt_free(mw);
	return ERR_PTR(ret);
}

void hca_dealloc_mw(struct ib_mw *mw)
{
	if (!mw->uobject)
		eng_mw_del(hca_of(mw->device)->engine, mw->rkey);
	hca_key_free(hca_of(mw->device), mw->rkey);
	rt_free(container_of(mw, struct hca_mw, ib));
}

/* --- device memory --- */

static int make_memory(u64 length)
{
	int fd = memfd_create("softib-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)length) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static u64 whole_units(u64 length)
{
	return (length + HCA_DM_UNIT_BYTES - 1) & ~(u64)(HCA_DM_UNIT_BYTES - 1);
}

struct ib_dm *hca_alloc_dm(struct ib_device *device, u64 length, struct ib_udata *udata)
{
	struct hca *hca = hca_of(device);
	u64 bytes = whole_units(length);
	struct ib_dm *dm;

	if (hca->dm_bytes + bytes > device->attrs.max_dm_size)
		return ERR_PTR(-ENOMEM);
	dm = rt_zalloc(sizeof(*dm));
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->fd = make_memory(length);
	if (dm->fd < 0) {
		int ret = dm->fd;

		rt_free(dm);
		return ERR_PTR(ret);
	}
	hca->dm_bytes += bytes;
	return dm;
}

void hca_dealloc_dm(struct ib_dm *dm)
{
	hca_of(dm->device)->dm_bytes -= whole_units(dm->length);
	close(dm->fd);
	rt_free(dm);
}

struct ib_mr *hca_reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, u64 offset, u64 length,
			       int access, struct ib_udata *udata)
{
	return hca_reg_user_mr(pd, offset, length, 0, access, udata);
}
