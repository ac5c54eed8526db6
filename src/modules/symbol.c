/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Symbols that the modules of a node export to each other.
 *
 * Each node has a copy of a module of its own, so the dynamic linker, which knows one scope
 * for the process, cannot choose between them. Here a module's copy is edited before it is
 * loaded: an undefined symbol that a module of the node exports becomes a weak one, which the
 * dynamic linker may leave at 0. Afterwards, and before any function of the module runs, the
 * relocations against these symbols are done again with the exporter's addresses.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modules/private.h"

#if defined(__x86_64__)
#define RELOC_WORD    R_X86_64_64
#define RELOC_ADDRESS R_X86_64_GLOB_DAT
#define RELOC_CALL    R_X86_64_JUMP_SLOT
#elif defined(__aarch64__)
#define RELOC_WORD    R_AARCH64_ABS64
#define RELOC_ADDRESS R_AARCH64_GLOB_DAT
#define RELOC_CALL    R_AARCH64_JUMP_SLOT
#endif

/** struct use - a module whose symbols this one uses */
struct use {
	struct list_head node; /* state->uses */
	struct module_state *exporter;
};

static const struct kernel_symbol *find_in(const struct module *module, const char *name)
{
	for (const struct kernel_symbol *s = module->symbols; s && s < module->symbols_end; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

/* Return: the symbol, and its module in *@exporter, which is of @state's node; NULL */
static const struct kernel_symbol *find(const struct module_state *state, const char *name,
					struct module_state **exporter)
{
	struct module_state *other;

	list_for_each_entry(other, &state->loader->modules, node) {
		const struct kernel_symbol *symbol = NULL;

		if (other != state && other->phase == MODULE_LIVE && !other->dead &&
		    !strcmp(other->node_name, state->node_name))
			symbol = find_in(other->module, name);
		if (symbol) {
			*exporter = other;
			return symbol;
		}
	}
	return NULL;
}

static const struct use *find_use(const struct module_state *state,
				  const struct module_state *exporter)
{
	struct use *use;

	list_for_each_entry(use, &state->uses, node)
		if (use->exporter == exporter)
			return use;
	return NULL;
}

bool module_uses(const struct module_state *state, const struct module_state *exporter)
{
	return find_use(state, exporter);
}

static int add_use(struct module_state *state, struct module_state *exporter)
{
	struct use *use;

	if (find_use(state, exporter))
		return 0;
	use = rt_zalloc(sizeof(*use));
	if (!use)
		return -ENOMEM;
	use->exporter = exporter;
	exporter->refs++;
	list_add_tail(&use->node, &state->uses);
	return 0;
}

void module_uses_drop(struct module_state *state)
{
	struct use *use, *next;

	list_for_each_entry_safe(use, next, &state->uses, node) {
		if (use->exporter->refs)
			use->exporter->refs--;
		list_del(&use->node);
		rt_free(use);
	}
}

int module_check_exports(const struct module_state *state, char err[MODULE_TEXT_BYTES])
{
	const struct module *module = state->module;
	struct module_state *other;

	for (const struct kernel_symbol *s = module->symbols; s && s < module->symbols_end; s++)
		if (find(state, s->name, &other)) {
			snprintf(err, MODULE_TEXT_BYTES, "it exports %.100s, which the module %s "
				 "exports already: unload that one first", s->name, other->name);
			return -1;
		}
	return 0;
}

/* --- the file, before it is loaded --- */

static const Elf64_Shdr *section(const char *file, size_t bytes, unsigned int i)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Shdr *s;

	if (i >= head->e_shnum || head->e_shentsize != sizeof(*s) || head->e_shoff % 8 ||
	    !range_covers(0, bytes, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*s)))
		return NULL;
	s = (const Elf64_Shdr *)(const void *)(file + head->e_shoff) + i;
	return range_covers(0, bytes, s->sh_offset, s->sh_size) ? s : NULL;
}

static int weaken_table(struct module_state *state, char *file, const Elf64_Shdr *symbols,
			const Elf64_Shdr *names)
{
	Elf64_Sym *symbol = (void *)(file + symbols->sh_offset);
	struct module_state *exporter;

	for (size_t i = 0; i < symbols->sh_size / sizeof(*symbol); i++) {
		const char *name = file + names->sh_offset + symbol[i].st_name;

		if (symbol[i].st_shndx != SHN_UNDEF || symbol[i].st_name >= names->sh_size ||
		    ELF64_ST_BIND(symbol[i].st_info) != STB_GLOBAL ||
		    !memchr(name, 0, names->sh_size - symbol[i].st_name) ||
		    !find(state, name, &exporter))
			continue;
		if (add_use(state, exporter))
			return -ENOMEM;
		symbol[i].st_info =
			ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol[i].st_info));
	}
	return 0;
}

/* what is no file of this kind, the dynamic linker has the words for */
static int weaken(struct module_state *state, char *file, size_t bytes)
{
	const Elf64_Ehdr *head = (const void *)file;

	if (bytes < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (unsigned int i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *symbols = section(file, bytes, i), *names;

		if (!symbols || symbols->sh_type != SHT_DYNSYM || symbols->sh_offset % 8)
			continue;
		names = section(file, bytes, symbols->sh_link);
		return names ? weaken_table(state, file, symbols, names) : 0;
	}
	return 0;
}

int module_weaken_symbols(struct module_state *state)
{
	int fd = open(state->path, O_RDWR | O_CLOEXEC), ret = 0;
	struct stat st;
	char *file;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_size > 0) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ret = file == MAP_FAILED ? -errno : weaken(state, file, (size_t)st.st_size);
		if (file != MAP_FAILED)
			munmap(file, (size_t)st.st_size);
	}
	close(fd);
	return ret;
}

/* --- the memory, after that --- */

#ifdef RELOC_WORD
/** struct dynamic - what of a loaded object's dynamic section is needed */
struct dynamic {
	uintptr_t base;
	const Elf64_Sym *symbols;
	const char *names;
	struct {
		const Elf64_Rela *rela;
		size_t bytes;
	} list[2];
};

static const void *address_in(const struct link_map *map, Elf64_Addr at)
{
	return (const void *)(at < map->l_addr ? map->l_addr + at : at);
}

static struct dynamic dynamic_of(const struct link_map *map)
{
	struct dynamic d = {.base = map->l_addr};

	for (const Elf64_Dyn *dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			d.symbols = address_in(map, dyn->d_un.d_ptr);
			break;
		case DT_STRTAB:
			d.names = address_in(map, dyn->d_un.d_ptr);
			break;
		case DT_RELA:
			d.list[0].rela = address_in(map, dyn->d_un.d_ptr);
			break;
		case DT_RELASZ:
			d.list[0].bytes = dyn->d_un.d_val;
			break;
		case DT_JMPREL:
			d.list[1].rela = address_in(map, dyn->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			d.list[1].bytes = dyn->d_un.d_val;
			break;
		}
	}
	return d;
}

static void relocate(const struct module_state *state, const struct dynamic *d,
		     const Elf64_Rela *rela)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info), symbol = ELF64_R_SYM(rela->r_info);
	const struct kernel_symbol *exported;
	struct module_state *exporter;
	uintptr_t value;

	if (!symbol || d->symbols[symbol].st_shndx != SHN_UNDEF ||
	    (type != RELOC_WORD && type != RELOC_ADDRESS && type != RELOC_CALL))
		return;
	exported = find(state, d->names + d->symbols[symbol].st_name, &exporter);
	if (!exported)
		return;
	value = (uintptr_t)exported->address + (type == RELOC_WORD ? (uintptr_t)rela->r_addend : 0);
	memcpy((void *)(d->base + rela->r_offset), &value, sizeof(value));
}

int module_bind_symbols(const struct module_state *state)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	/* the part that is read-only once it is relocated, as the dynamic linker rounds it */
	uintptr_t from = state->relro_from & ~(page - 1), to = state->relro_to & ~(page - 1);
	struct dynamic d;

	if (list_empty(&state->uses))
		return 0;
	d = dynamic_of(state->handle);
	if (from < to && mprotect((void *)from, to - from, PROT_READ | PROT_WRITE))
		return -errno;
	for (int l = 0; l < 2; l++)
		for (size_t i = 0; i < d.list[l].bytes / sizeof(Elf64_Rela); i++)
			relocate(state, &d, &d.list[l].rela[i]);
	if (from < to && mprotect((void *)from, to - from, PROT_READ))
		return -errno;
	return 0;
}
#else
int module_bind_symbols(const struct module_state *state)
{
	return list_empty(&state->uses) ? 0 : -EOPNOTSUPP;
}
#endif
