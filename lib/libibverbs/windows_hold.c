/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Write protection of pages by userfaultfd(2): a thread that stores into a protected page waits
 * until it is woken, and then repeats the store. In the mode that needs no privilege, system
 * calls that write into such a page fail instead. */
#include "windows_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"
#include "windows_memory.h"

#ifndef UFFD_FEATURE_WP_UNPOPULATED /* Linux 6.4 */
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#define NEEDED (UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

static pthread_mutex_t userfault_lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by userfault_lock until asked is set; constant afterwards --- */
static int userfault = -1;
static bool asked, holes_too; /* pages that do not exist yet are protected as well */
static bool threads_only;     /* system calls do not wait, but fail */

/* Return: a userfaultfd that makes system calls wait as well; or, without the privilege for
 * that, one with which they fail, and *@threads is set to true; or -1 if there is neither */
static int create_userfault(bool *threads)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), dev;

	*threads = false;
	if (fd >= 0)
		return fd;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev >= 0) {
		fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
		close(dev);
	}
	if (fd >= 0)
		return fd;
	*threads = true;
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
}

static int open_userfault(uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = create_userfault(&threads_only);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

enum memory_moves memory_moves(void)
{
	pthread_mutex_lock(&userfault_lock);
	if (!asked) {
		userfault = open_userfault(NEEDED | UFFD_FEATURE_WP_UNPOPULATED);
		holes_too = userfault >= 0;
		if (!holes_too)
			userfault = open_userfault(NEEDED);
	}
	asked = true;
	pthread_mutex_unlock(&userfault_lock);
	if (userfault < 0)
		return MEMORY_STAYS;
	return threads_only ? MEMORY_MOVES_ALONE : MEMORY_MOVES;
}

bool memory_can_move(void)
{
	switch (memory_moves()) {
	case MEMORY_MOVES:
		return true;
	case MEMORY_MOVES_ALONE:
		return threads_alone();
	default:
		return false;
	}
}

bool writers_watch(char *addr, size_t bytes)
{
	struct uffdio_register r = {.range = {(uintptr_t)addr, bytes},
				    .mode = UFFDIO_REGISTER_MODE_WP};

	return ioctl(userfault, UFFDIO_REGISTER, &r) == 0;
}

void writers_unwatch(char *addr, size_t bytes)
{
	struct uffdio_range r = {(uintptr_t)addr, bytes};

	ioctl(userfault, UFFDIO_UNREGISTER, &r);
}

bool writers_hold(char *addr, size_t bytes, bool on)
{
	struct uffdio_writeprotect wp = {.range = {(uintptr_t)addr, bytes},
					 .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
	int rc;

	do
		rc = ioctl(userfault, UFFDIO_WRITEPROTECT, &wp);
	while (rc < 0 && errno == EAGAIN);
	return rc == 0;
}

void writers_wake(char *addr, size_t bytes)
{
	struct uffdio_range r = {(uintptr_t)addr, bytes};

	ioctl(userfault, UFFDIO_WAKE, &r);
}

bool writers_miss_holes(void)
{
	return !holes_too;
}

void writers_forget(void)
{
	if (userfault >= 0)
		close(userfault);
	writers_disown();
}

void writers_disown(void)
{
	pthread_mutex_init(&userfault_lock, NULL); /* a thread of the parent may have held it */
	userfault = -1;
	asked = false;
}
