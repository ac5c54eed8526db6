/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pages of the program that change what lies behind them (docs/WINDOWS.md,
 * "Moving memory"): windows_memory.c, and windows_area.c for what is where.
 * Everything here is under windows.lock.
 */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_MEMORY_H
#define SOFTIB_LIBIBVERBS_WINDOWS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define MEMORY_NAME  "softib-window" /* of the memfds */
#define EXTENT_KEYS 16

/** struct extent - whole pages of ours that lie in a memfd, for peers to map.
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
	MEMORY_MOVES_ALONE, /* while the program has one thread, and that calls us:
			     * threads can be held off, system calls cannot */
	MEMORY_MOVES,	    /* at any time */
};
/** memory_moves() - when may pages of this program move, by the rights that the system gives it? */
enum memory_moves memory_moves(void);
/** memory_can_move() - can pages move now, in a call by this thread? */
bool memory_can_move(void);
/** memory_make_file() - the memfd of an extent that is zeroed else, before there is
 *  anything to move: its making takes a third of moving a page. 0; -errno */
int memory_make_file(struct extent *x);
/** memory_drop_file() - close the memfd, into which nothing was moved */
void memory_drop_file(struct extent *x);
/** memory_move_out() - private pages from @x->addr, at most @x->bytes, into a
 *  memfd, its own or one that is made; x gets what was moved. Context:
 *  memory_can_move(). 0; -errno: nothing was, and it has no memfd */
int memory_move_out(struct extent *x);
/** memory_seal() - before peers have the file of what was moved: nobody changes its
 *  seals, and nobody but this program writes it when it is @read_only, not even who
 *  opens it anew. Return: false: it cannot be, or was sealed otherwise before */
bool memory_seal(struct extent *x, bool read_only);
/** memory_take_back() - its pages are private again, contents kept; those
 *  that the program unmapped meanwhile are left alone. Closes the memfd.
 *  Context: any thread, whatever others do */
void memory_take_back(struct extent *x);
/** memory_copy_for_child() - in a child: what memory_take_back() does, when
 *  nobody else runs */
void memory_copy_for_child(struct extent *x);

/** memory_moves_forget() - in a child, after memory_copy_for_child(): pages can move, but what holds
 *  off their writers is the parent's and would hold off the parent's */
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
/** memory_areas_forget() - in a child: what was known is of the parent. Its
 *  descriptor is left to exec() */
void memory_areas_forget(void);

#endif
