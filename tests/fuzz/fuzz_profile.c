/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any text as an adapter profile, and as the output of ibv_devinfo -v. What is read is printed
 * and read the same, and makes no adapter's limit higher.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/profile.h"
#include "rdma/ib_verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void print_and_parse(const struct profile *p)
{
	char text[PROFILE_TEXT_BYTES], second[PROFILE_TEXT_BYTES], err[256];
	struct profile again;

	profile_print(p, text, sizeof(text));
	check(strlen(text) < sizeof(text) - 1);
	check(!profile_parse("again", text, &again, err, sizeof(err)));
	profile_print(&again, second, sizeof(second));
	check(!strcmp(text, second));
}

static void apply(const struct profile *p)
{
	struct ib_device_attr attr = {.max_qp = 100, .device_cap_flags = IB_DEVICE_XRC};
	char less[64];

	profile_apply(p, &attr, less, sizeof(less));
	check(attr.max_qp <= 100 && !(attr.device_cap_flags & ~(u64)IB_DEVICE_XRC));
	check(memchr(less, 0, sizeof(less)) || !less[0]);
}

/* Return: what it returned for a file of these bytes */
static int load(const uint8_t *data, size_t size)
{
	int fd = memfd_create("profile", MFD_CLOEXEC), ret;
	struct profile p;
	char path[64], err[64] = "";

	check(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = profile_load(path, &p, err, sizeof(err));
	check(!ret == !err[0]);
	close(fd);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), err[64] = "";
	struct profile p;
	int ret;

	memcpy(text, data, size);
	text[size] = 0;
	ret = profile_parse("text", text, &p, err, sizeof(err));
	check(ret == 0 || ret == -EINVAL);
	check(!ret == !err[0]); /* who is refused is told why */
	check(!load(data, size) == (!ret && strlen(text) == size));
	if (!ret) {
		print_and_parse(&p);
		apply(&p);
	}
	err[0] = 0;
	ret = profile_from_devinfo(text, NULL, &p, err, sizeof(err));
	check(ret == 0 || ret == -EINVAL);
	check(!ret == !err[0]);
	if (!ret)
		apply(&p);
	free(text);
	return 0;
}
