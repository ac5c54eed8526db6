/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * dma-bufs for rdma-core's tests, which allocate them by functions of pyverbs' own. Debian builds
 * pyverbs without the interface of graphics drivers, so there these functions refuse on any machine
 * (EOPNOTSUPP). Preloaded, these take their place: the kernel makes a dma-buf of a memfd
 * (/dev/udmabuf), and on a machine that cannot, the memfd stands for it.
 */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct dmabuf {
	int fd, memfd;
};

struct dmabuf *dmabuf_alloc(uint64_t size, int gpu, int gtt);
void dmabuf_free(struct dmabuf *dmabuf);
int dmabuf_get_drm_fd(struct dmabuf *dmabuf);
int dmabuf_get_fd(struct dmabuf *dmabuf);
uint64_t dmabuf_get_offset(struct dmabuf *dmabuf);

/* Return: a dma-buf; @memfd if there is no such device */
static int export(int memfd, uint64_t bytes)
{
	struct udmabuf_create create = {.memfd = (uint32_t)memfd, .flags = UDMABUF_FLAGS_CLOEXEC,
					.size = bytes};
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (device < 0)
		return memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	close(device);
	return fd;
}

struct dmabuf *dmabuf_alloc(uint64_t size, int gpu, int gtt)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = (size + page - 1) / page * page;
	struct dmabuf *made = malloc(sizeof(*made));

	if (!made)
		return NULL;
	made->memfd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made->memfd >= 0 && !ftruncate(made->memfd, (off_t)bytes) &&
	    !fcntl(made->memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		made->fd = export(made->memfd, bytes);
		if (made->fd >= 0)
			return made;
	}
	close(made->memfd);
	free(made);
	return NULL;
}

void dmabuf_free(struct dmabuf *dmabuf)
{
	if (!dmabuf)
		return;
	if (dmabuf->fd != dmabuf->memfd)
		close(dmabuf->fd);
	close(dmabuf->memfd);
	free(dmabuf);
}

/* by which the tests map the buffer, at the offset */
int dmabuf_get_drm_fd(struct dmabuf *dmabuf)
{
	return dmabuf->memfd;
}

int dmabuf_get_fd(struct dmabuf *dmabuf)
{
	return dmabuf->fd;
}

uint64_t dmabuf_get_offset(struct dmabuf *dmabuf)
{
	return 0;
}
