/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving the program's pages into memfds and back, without a change of their addresses
 * (docs/WINDOWS.md, "Moving memory"). windows_memory.c moves them; windows_area.c finds out
 * what is mapped at an address. Everything here is protected by windows.lock.
 */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_MEMORY_H
#define SOFTIB_LIBIBVERBS_WINDOWS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define MEMORY_NAME  "softib-window" /* of the memfds */
#define EXTENT_KEYS 16

/** struct extent - whole pages of this program that were moved into a memfd, for peers to map.
 *  It ends with the first key under which it was granted, or the last */
struct extent {
	struct list_head node; /* windows.extents */
	uint32_t id;	       /* abi_window_msg.window */
	char *addr;
	size_t bytes;
	int memfd;
	off_t offset; /* of addr in it */
	dev_t dev;
	ino_t inode;
	uint32_t token;
	uint64_t value;
	bool granted; /* ever */
	bool sealed, read_only; /* memory_seal() */
	struct {
		uint32_t key;
		bool granted;
		bool is_window; /* a memory window's */
	} key[EXTENT_KEYS];
	unsigned num_keys;
};

/** enum memory_moves - when pages of the program's can move */
enum memory_moves {
	MEMORY_STAYS,	    /* never: pages cannot be write-protected */
	MEMORY_MOVES_ALONE, /* while the caller is the program's only thread: threads can be
			     * made to wait, system calls cannot */
	MEMORY_MOVES,	    /* at any time */
};
/** memory_moves() - find out when the system's rights permit this program to move pages */
enum memory_moves memory_moves(void);
/** memory_can_move() - can pages move now, in a call by this thread? */
bool memory_can_move(void);
/** memory_make_file() - create the memfd of an extent ahead of time, unless it has one. This takes
 *  a third of the time of moving a page. The other fields of a new extent are zero.
 *  Return: 0; -errno */
int memory_make_file(struct extent *x);
/** memory_drop_file() - close the memfd of an extent into which nothing was moved */
void memory_drop_file(struct extent *x);
/** memory_move_out() - move private pages from @x->addr on, at most @x->bytes, into the memfd of
 *  @x, which is created if there is none. @x->bytes is set to what was moved. Context:
 *  memory_can_move() returned true. Return: 0; -errno: nothing was moved, and @x has no memfd */
int memory_move_out(struct extent *x);
/** memory_seal() - seal the memfd before peers get it. Nobody can change its seals then; if it is
 *  @read_only, only this program can write to it, and opening it again does not help others.
 *  Return: false: it cannot be sealed, or was sealed with another @read_only before */
bool memory_seal(struct extent *x, bool read_only);
/** memory_take_back() - make the pages private again, with their contents, and close the memfd.
 *  Pages that the program has unmapped meanwhile are left alone. Context: any thread; other
 *  threads may use the memory meanwhile */
void memory_take_back(struct extent *x);
/** memory_copy_for_child() - do what memory_take_back() does, in a forked child, where no other
 *  thread runs */
void memory_copy_for_child(struct extent *x);

/** memory_moves_forget() - forget the userfaultfd in a forked child, after
 *  memory_copy_for_child(). It belongs to the parent and would protect the parent's pages; the
 *  child opens its own when it moves pages */
void memory_moves_forget(void);

/** struct area - a mapping of this process, as /proc shows it */
struct area {
	char *start, *end;
	off_t offset;
	dev_t dev;
	ino_t inode;
	int prot;
	bool movable; /* private, readable and writable, and not of a file */
};
/** memory_area_at() - find the mapping that contains @addr. Return: false: there is none */
bool memory_area_at(const char *addr, struct area *area);
/** memory_areas_forget() - forget the open /proc file in a forked child, since it describes the
 *  parent. Its descriptor stays open until exec() */
void memory_areas_forget(void);

#endif
