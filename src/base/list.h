/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An intrusive circular doubly linked list, with the names that the users of
 * the InfiniBand midlayer know (include/rdma exposes struct list_head).
 */
#ifndef SOFTIB_BASE_LIST_H
#define SOFTIB_BASE_LIST_H

#include "base/types.h"

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name) {&(name), &(name)}
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l->prev = l;
}

/** list_bucket() - Return: @head, of a hash table that began zeroed: a page of it costs no memory until one of
 *  its buckets is used */
static inline struct list_head *list_bucket(struct list_head *head)
{
	if (!head->next)
		INIT_LIST_HEAD(head);
	return head;
}

static inline bool list_empty(const struct list_head *l)
{
	return l->next == l;
}

static inline void list_insert_(struct list_head *n, struct list_head *prev,
				struct list_head *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

/** list_add() - put @n right behind @head */
static inline void list_add(struct list_head *n, struct list_head *head)
{
	list_insert_(n, head, head->next);
}

/** list_add_tail() - put @n right before @head: the queue's end */
static inline void list_add_tail(struct list_head *n, struct list_head *head)
{
	list_insert_(n, head->prev, head);
}

/** list_del_init() - unlink @n; it may be unlinked or added again after */
static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

#define list_del(n) list_del_init(n)

/** list_splice_tail_init() - move every entry of @from to the end of @to */
static inline void list_splice_tail_init(struct list_head *from,
					 struct list_head *to)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	INIT_LIST_HEAD(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first_entry(head, type, member)                                   \
	list_entry((head)->next, type, member)
#define list_for_each_entry(pos, head, member)                                 \
	for (pos = list_entry((head)->next, __typeof__(*pos), member);         \
	     &pos->member != (head);                                           \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, tmp, head, member)                       \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),         \
	    tmp = list_entry(pos->member.next, __typeof__(*pos), member);      \
	     &pos->member != (head);                                           \
	     pos = tmp,                                                        \
	    tmp = list_entry(tmp->member.next, __typeof__(*pos), member))

#endif
