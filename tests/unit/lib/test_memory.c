/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program may register besides its own memory (device memory, what others share by a
 * descriptor), what is paged on demand, and objects that are imported by their handles.
 */
#include "program.h"

static int advise(struct program *p, enum ibv_advise_mr_advice advice, const void *at,
		  uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, bytes, lkey};

	return ibv_advise_mr(p->pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static bool is_present(const void *page)
{
	unsigned char present;

	assert_int_equal(mincore((void *)page, 4096, &present), 0);
	return present & 1;
}

/* Registered, nothing is touched; advised, the pages are there; unmapped, there is an error
 * and no death. */
static void memory_is_paged_on_demand(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	struct program *p = *state;
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(p->pd, at, 8192, access);
	struct ibv_mr *all = ibv_reg_mr(p->pd, NULL, SIZE_MAX, access);
	struct ibv_mr *readable = ibv_reg_mr(p->pd, at, 8192, IBV_ACCESS_ON_DEMAND);

	assert_true(mr && all && readable);
	assert_false(is_present(at));
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, at, 8192, mr->lkey), 0);
	assert_false(is_present(at));
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, at, 4096, mr->lkey), 0);
	assert_true(is_present(at));
	assert_false(is_present(at + 4096));
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH, at, 8192, readable->lkey), 0);
	assert_true(is_present(at + 4096));
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, at, 8192, readable->lkey),
			 EFAULT);
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH, at, 8193, mr->lkey), EFAULT);
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH, p->memory, 1, p->mr->lkey), EFAULT);
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH, at, 1, 0xffffff00), EFAULT);
	assert_int_equal(advise(p, 99, at, 1, mr->lkey), EOPNOTSUPP);
	assert_int_equal(ibv_advise_mr(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EINVAL);
	munmap(at, 8192);
	assert_int_equal(advise(p, IBV_ADVISE_MR_ADVICE_PREFETCH, at, 1, all->lkey), EFAULT);
	assert_int_equal(ibv_dereg_mr(readable), 0);
	assert_int_equal(ibv_dereg_mr(all), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void device_memory_is_copied_by_words(void **state)
{
	struct program *p = *state;
	struct ibv_dm *dm = alloc_dm(p, 100, 6);
	uint8_t there[100] = {0};

	assert_non_null(dm);
	assert_null(alloc_dm(p, 4097, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc_dm(p, 0, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc_dm(p, 64, 13));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4, p->memory, 96), 0);
	assert_int_equal(ibv_memcpy_from_dm(there, dm, 0, 100), 0);
	assert_memory_equal(there + 4, p->memory, 96);
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, p->memory, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, p->memory, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, p->memory, 104), EFAULT);
	assert_int_equal(ibv_memcpy_from_dm(there, dm, 104, 4), EFAULT);
	assert_int_equal(ibv_memcpy_from_dm(there, dm, UINT64_MAX - 3, 8), EFAULT);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* A region on device memory begins at address 0, for requests and for peers. */
static void requests_use_device_memory(void **state)
{
	struct program *p = *state;
	struct ibv_dm *dm = alloc_dm(p, 256, 0);
	int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	uint8_t there[200];

	assert_null(ibv_reg_dm_mr(p->pd, dm, 100, 200, access));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_dm_mr(p->pd, dm, 56, 200, access);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, 200);
	make_rc_pair(p);
	sge = (struct ibv_sge){(uintptr_t)p->memory, 200, p->mr->lkey};
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(there, dm, 56, 200), 0);
	assert_memory_equal(there, p->memory, 200);
	wr.wr.rdma.remote_addr = 1; /* the last byte is beyond it */
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	assert_int_equal(poll_one(p).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void write_to(struct program *p, const struct ibv_mr *mr, uint64_t addr, uint32_t bytes,
		     enum ibv_wc_status status)
{
	struct ibv_sge sge = {(uintptr_t)p->memory, bytes, p->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = addr, .rkey = mr->rkey}}, *bad;

	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	assert_int_equal(poll_one(p).status, status);
}

/* A memfd in the place of a dma-buf: bytes arrive in the file, wherever it is mapped. */
static void a_region_is_of_shared_memory(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const uint64_t offset = 4096 + 24;
	struct program *p = *state;
	int fd = memfd_create("shared", MFD_CLOEXEC), file = open("/proc/self/exe", O_RDONLY);
	uint8_t there[200];
	struct ibv_mr *mr;

	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_null(ibv_reg_dmabuf_mr(p->pd, offset, 200, 23, fd, access)); /* not as far */
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dmabuf_mr(p->pd, offset, 200, 24, fd, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dmabuf_mr(p->pd, offset, 200, 24, file, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dmabuf_mr(p->pd, offset, 8192, 24, fd, access));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_dmabuf_mr(p->pd, offset, 200, 24, -1, access));
	assert_int_equal(errno, EBADF);
	mr = ibv_reg_dmabuf_mr(p->pd, offset, 200, 24, fd, access);
	assert_non_null(mr);
	make_rc_pair(p);
	write_to(p, mr, 24, 200, IBV_WC_SUCCESS);
	assert_int_equal(pread(fd, there, 200, (off_t)offset), 200);
	assert_memory_equal(there, p->memory, 200);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->memory, 8, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	write_to(p, mr, 25, 200, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(file);
	close(fd);
}

/* --- what exists, once more by its descriptor and its handles --- */

static void a_device_is_imported(void **state)
{
	struct program *p = *state;
	struct ibv_context *context;
	int fds[2];

	assert_null(ibv_import_device(-1));
	assert_int_equal(errno, EBADF);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	assert_null(ibv_import_device(fds[0]));
	assert_int_equal(errno, EOPNOTSUPP);
	close(fds[0]);
	fds[0] = dup(p->context->cmd_fd);
	context = ibv_import_device(fds[0]);
	assert_non_null(context);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1); /* the library has taken it */
	assert_int_equal(ibv_close_device(context), 0);
	assert_true(fcntl(p->context->cmd_fd, F_GETFD) >= 0);
	close(fds[1]);
}

static void imported_objects_are_those_that_exist(void **state)
{
	struct program *p = *state;
	struct ibv_context *context = ibv_import_device(dup(p->context->cmd_fd));
	struct ibv_dm *dm = alloc_dm(p, 100, 0), *dm_too = ibv_import_dm(context, dm->handle);
	struct ibv_pd *pd = ibv_import_pd(context, p->pd->handle), *other = ibv_alloc_pd(context);
	int before = fake_objects(p->fake);
	struct ibv_mr *mr = ibv_import_mr(pd, p->mr->handle);
	uint32_t word;

	assert_true(dm_too && pd && mr && !mr->addr);
	assert_int_equal(pd->handle, p->pd->handle);
	assert_int_equal(mr->rkey, p->mr->rkey);
	assert_null(ibv_import_mr(other, p->mr->handle)); /* it is not of this domain */
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_import_pd(context, 1000));
	assert_null(ibv_import_dm(context, 1000));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 96, p->memory, 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(&word, dm_too, 96, 4), 0);
	assert_memory_equal(&word, p->memory, 4);
	make_rc_pair(p);
	write_to(p, mr, (uintptr_t)p->memory + BYTES, 8, IBV_WC_SUCCESS);
	ibv_unimport_mr(mr);
	ibv_unimport_dm(dm_too);
	ibv_unimport_pd(pd);
	assert_int_equal(fake_objects(p->fake), before + 2); /* the QPs */
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory_is_paged_on_demand),
		CASE(device_memory_is_copied_by_words),
		CASE(requests_use_device_memory),
		CASE(a_region_is_of_shared_memory),
		CASE(a_device_is_imported),
		CASE(imported_objects_are_those_that_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
