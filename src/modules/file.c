/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A module's file. A copy of it is loaded, so that each node has its own variables of the
 * module, and rebuilding the module does not change the running code. The copy stays in
 * the fabric's directory while the module is loaded, for debuggers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modules/private.h"

#define FILE_BYTES_MAX ((off_t)256 << 20)

static int copy_all(int from, int to)
{
	off_t at = 0;
	char buf[16384];
	ssize_t n;

	while ((n = pread(from, buf, sizeof(buf), at)) > 0) {
		at += n;
		if (at > FILE_BYTES_MAX)
			return -EFBIG;
		for (ssize_t done = 0; done < n;) {
			ssize_t put = write(to, buf + done, (size_t)(n - done));
			if (put < 0)
				return -errno;
			done += put;
		}
	}
	return n < 0 ? -errno : 0;
}

static int copy(struct module_state *state, int from, char err[MODULE_TEXT_BYTES])
{
	struct stat st;
	int to, ret;

	if (from < 0 || fstat(from, &st) || !S_ISREG(st.st_mode)) {
		snprintf(err, MODULE_TEXT_BYTES, "the file of a module has to be a regular file");
		return -1;
	}
	snprintf(state->path, sizeof(state->path), "%.*s/module-%u-%s-%s.so", PATH_MAX - 200,
		 state->loader->dir, state->loader->serial++, state->node_name, state->name);
	unlink(state->path);
	to = open(state->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	ret = to < 0 ? -errno : copy_all(from, to);
	if (to >= 0)
		close(to);
	if (!ret)
		return 0;
	snprintf(err, MODULE_TEXT_BYTES, "cannot copy it to %.300s: %s", state->path, strerror(-ret));
	return -1;
}

/* find the addresses of the object that was loaded from the copy */
static int find_range(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct module_state *state = ctx;

	if (strcmp(info->dlpi_name, state->path))
		return 0;
	state->from = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_GNU_RELRO) {
			state->relro_from = from;
			state->relro_to = from + ph->p_memsz;
		}
		if (ph->p_type != PT_LOAD)
			continue;
		state->from = MIN(state->from, from);
		state->to = MAX(state->to, from + ph->p_memsz);
	}
	return 1;
}

/* the message of the dynamic linker, without the name of the copy */
static void say_why(const struct module_state *state, char err[MODULE_TEXT_BYTES])
{
	const char *why = dlerror(), *missing;
	size_t n = strlen(state->path);

	if (!why)
		why = "unknown";
	if (!strncmp(why, state->path, n) && !strncmp(why + n, ": ", 2))
		why += n + 2;
	missing = strstr(why, "undefined symbol: ");
	if (missing)
		snprintf(err, MODULE_TEXT_BYTES, "%.200s: neither softibd, nor the libraries that it "
			 "is linked with, nor another module of %s has it; include/rdma lists what "
			 "softibd has, and a module that exports it has to be loaded first", missing,
			 state->node_name);
	else
		snprintf(err, MODULE_TEXT_BYTES, "it cannot be loaded: %.400s", why);
}

static int check(struct module_state *state, char err[MODULE_TEXT_BYTES])
{
	int (*const *init)(void) = dlsym(state->handle, "softib_module_init");
	void (*const *exit)(void) = dlsym(state->handle, "softib_module_exit");
	struct module *module = dlsym(state->handle, "__this_module");

	if (!module || !init) {
		snprintf(err, MODULE_TEXT_BYTES, "it is no module: a module includes softib/module.h and "
			 "has module_init() (docs/MODULES.md)");
		return -1;
	}
	if (module->abi != SOFTIB_MODULE_ABI || module->device_bytes != sizeof(struct ib_device) ||
	    module->ops_bytes != sizeof(struct ib_device_ops)) {
		snprintf(err, MODULE_TEXT_BYTES, "it was built for another version of softib: build it "
			 "again with this one's headers");
		return -1;
	}
	module->name = state->name;
	module->state = state;
	state->module = module;
	state->init = *init;
	state->exit = exit ? *exit : NULL;
	return module_check_exports(state, err);
}

int module_open(struct module_state *state, int fd, char err[MODULE_TEXT_BYTES])
{
	int ret;

	if (copy(state, fd, err))
		return -1;
	ret = module_weaken_symbols(state);
	if (ret) {
		snprintf(err, MODULE_TEXT_BYTES, "cannot read its copy %.300s: %s", state->path,
			 strerror(-ret));
		return -1;
	}
	state->handle = dlopen(state->path, RTLD_NOW | RTLD_LOCAL);
	if (!state->handle) {
		say_why(state, err);
		return -1;
	}
	dl_iterate_phdr(find_range, state);
	ret = module_bind_symbols(state);
	if (ret) {
		snprintf(err, MODULE_TEXT_BYTES, "it cannot use symbols of other modules: %s",
			 strerror(-ret));
		return -1;
	}
	if (check(state, err))
		return -1;
	if (!module_trace_begin(state))
		return 0;
	snprintf(err, MODULE_TEXT_BYTES, "out of memory");
	return -1;
}

void module_close(struct module_state *state, bool keep)
{
	module_trace_end(state);
	if (state->handle && !keep)
		dlclose(state->handle);
	if (state->path[0])
		unlink(state->path);
	state->path[0] = 0;
}
