/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An ordered set of objects, found by keys that a program or a peer chose. Finding,
 * inserting and removing cost O(log n) whatever the keys are: the tree is a treap,
 * whose shape follows from random priorities that nobody outside knows. No memory is
 * needed besides the nodes, which the owner embeds, and it never has to be rebuilt,
 * as a hash table that grows with its load has.
 */
#ifndef SOFTIB_RUNTIME_TREE_H
#define SOFTIB_RUNTIME_TREE_H

#include "runtime/rt.h"

struct rt_tree;

/** struct rt_tree_node - the owner embeds it and calls rt_tree_node_init() once */
struct rt_tree_node {
	struct rt_tree *tree; /* NULL: in none */
	struct rt_tree_node *parent, *left, *right;
	uint64_t priority; /* no child's is higher */
};

struct rt_tree {
	struct rt_tree_node *root;
	/** compare() - how the key at @key compares with that of @node: <0, 0, >0 */
	int (*compare)(const void *key, const struct rt_tree_node *node);
	uint64_t random; /* the state of a generator; never 0 */
	size_t count;
};

/** rt_tree_init() - an empty tree; its priorities are seeded by @rt */
void rt_tree_init(struct rt *rt, struct rt_tree *tree,
		  int (*compare)(const void *key, const struct rt_tree_node *node));
static inline void rt_tree_node_init(struct rt_tree_node *node)
{
	node->tree = NULL;
}

/** rt_tree_insert() - put @node, whose key is @key, behind those of equal keys */
void rt_tree_insert(struct rt_tree *tree, struct rt_tree_node *node, const void *key);
/** rt_tree_remove() - nothing happens to a node that is in no tree */
void rt_tree_remove(struct rt_tree_node *node);
/** rt_tree_find() - Return: the node of that key that was inserted first; NULL */
struct rt_tree_node *rt_tree_find(const struct rt_tree *tree, const void *key);
/** rt_tree_first() - Return: a node of the lowest key; NULL when the tree is empty */
struct rt_tree_node *rt_tree_first(const struct rt_tree *tree);

#endif
