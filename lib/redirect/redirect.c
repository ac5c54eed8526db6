/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The slots that a library calls other libraries through. Interposition by the order of
 * symbols cannot serve a library that a plug-in loads: libc comes first in the scope of
 * the program then. The slots are of the one library alone, whoever loaded it.
 */
#include "redirect.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
#error "the types of relocations of this processor are not known here"
#endif

/** struct library - what its dynamic section and program headers say */
struct library {
	ElfW(Addr) base;
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * table[2]; /* of functions; of data, functions among them */
	size_t bytes[2];
	uintptr_t read_only, read_only_end; /* pages that are so after relocation */
};

/* --- reading --- */

static void read_dynamic(struct library *lib, const ElfW(Dyn) * dyn)
{
	for (; dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			lib->symbols = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_STRTAB)
			lib->names = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_JMPREL)
			lib->table[0] = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_PLTRELSZ)
			lib->bytes[0] = dyn->d_un.d_val;
		else if (dyn->d_tag == DT_RELA)
			lib->table[1] = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_RELASZ)
			lib->bytes[1] = dyn->d_un.d_val;
	}
}

static int find_read_only(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct library *lib = ctx;

	if (info->dlpi_addr != lib->base)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_GNU_RELRO)
			continue;
		lib->read_only = start & ~(page - 1);
		lib->read_only_end = (start + header->p_memsz) & ~(page - 1);
	}
	return 1;
}

static bool find_library(const char *path, struct library *lib)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	struct link_map *map;
	bool found = handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map);

	if (found) {
		lib->base = map->l_addr;
		read_dynamic(lib, map->l_ld);
		dl_iterate_phdr(find_read_only, lib);
	}
	if (handle)
		dlclose(handle); /* who asked for this holds it, too */
	return found;
}

/* --- writing --- */

static int protect(const struct library *lib, int protection)
{
	if (lib->read_only_end <= lib->read_only)
		return 0;
	return mprotect((void *)lib->read_only, lib->read_only_end - lib->read_only,
			protection)
		       ? -errno
		       : 0;
}

static bool is_slot(const ElfW(Rela) * entry)
{
	return ELF64_R_TYPE(entry->r_info) == JUMP_SLOT ||
	       ELF64_R_TYPE(entry->r_info) == GLOB_DAT;
}

static int write_slot(const struct library *lib, const ElfW(Rela) * entry,
		      const struct redirection *redirections, size_t num)
{
	const char *name = lib->names + lib->symbols[ELF64_R_SYM(entry->r_info)].st_name;

	for (size_t i = 0; i < num; i++) {
		if (strcmp(name, redirections[i].symbol) != 0)
			continue;
		memcpy((void *)(lib->base + entry->r_offset), &redirections[i].function,
		       sizeof(redirections[i].function));
		return 1;
	}
	return 0;
}

int redirect_calls(const char *path, const struct redirection *redirections, size_t num)
{
	struct library lib = {0};
	int written = 0, ret;

	if (!find_library(path, &lib))
		return -ENOENT;
	ret = protect(&lib, PROT_READ | PROT_WRITE);
	if (ret)
		return ret;
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < lib.bytes[t] / sizeof(lib.table[t][0]); i++)
			if (is_slot(&lib.table[t][i]))
				written += write_slot(&lib, &lib.table[t][i],
						      redirections, num);
	ret = protect(&lib, PROT_READ);
	return ret ? ret : written;
}

void redirect_or_warn(const char *path, const struct redirection *redirections, size_t num,
		      const char *name, const char *lead_to, const char *else_what)
{
	int written = redirect_calls(path, redirections, num);

	if (written < (int)num)
		fprintf(stderr,
			"softib: %s: %d of %zu calls of %s lead to %s: is this the library that "
			"softib was built for? %s\n",
			name, written > 0 ? written : 0, num, path, lead_to, else_what);
}
