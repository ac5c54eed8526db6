/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A treap: a binary search tree by key, and a heap by priority. Each node gets a
 * random priority, so the tree has the shape that inserting its nodes in random
 * order would have given. Rotations restore the heap's order after an insertion, and
 * bring a node down to a place without two children before it is removed.
 */
#include "runtime/tree.h"

/* xorshift64*: who sees none of its output does not guess the next */
static uint64_t next_priority(struct rt_tree *tree)
{
	tree->random ^= tree->random >> 12;
	tree->random ^= tree->random << 25;
	tree->random ^= tree->random >> 27;
	return tree->random * 0x2545f4914f6cdd1dull;
}

void rt_tree_init(struct rt *rt, struct rt_tree *tree,
		  int (*compare)(const void *key, const struct rt_tree_node *node))
{
	uint64_t high = rt_random(rt);

	*tree = (struct rt_tree){.compare = compare, .random = high << 32 | rt_random(rt) | 1};
}

/* the pointer that leads to @node */
static struct rt_tree_node **link_to(struct rt_tree_node *node)
{
	if (!node->parent)
		return &node->tree->root;
	return node->parent->left == node ? &node->parent->left : &node->parent->right;
}

/* @node takes the place of @old under its parent. @node may be NULL */
static void replace(struct rt_tree_node *old, struct rt_tree_node *node)
{
	*link_to(old) = node;
	if (node)
		node->parent = old->parent;
}

/* @node changes places with its parent; the order of keys stays */
static void rotate_up(struct rt_tree_node *node)
{
	struct rt_tree_node *parent = node->parent, *between;
	bool is_left = parent->left == node;

	replace(parent, node);
	between = is_left ? node->right : node->left;
	*(is_left ? &parent->left : &parent->right) = between;
	if (between)
		between->parent = parent;
	*(is_left ? &node->right : &node->left) = parent;
	parent->parent = node;
}

void rt_tree_insert(struct rt_tree *tree, struct rt_tree_node *node, const void *key)
{
	struct rt_tree_node **link = &tree->root, *parent = NULL;

	while (*link) {
		parent = *link;
		link = tree->compare(key, parent) < 0 ? &parent->left : &parent->right;
	}
	*node = (struct rt_tree_node){
		.tree = tree, .parent = parent, .priority = next_priority(tree)};
	*link = node;
	tree->count++;
	while (node->parent && node->parent->priority < node->priority)
		rotate_up(node);
}

void rt_tree_remove(struct rt_tree_node *node)
{
	if (!node->tree)
		return;
	while (node->left && node->right)
		rotate_up(node->left->priority > node->right->priority ? node->left : node->right);
	replace(node, node->left ? node->left : node->right);
	node->tree->count--;
	node->tree = NULL;
}

struct rt_tree_node *rt_tree_find(const struct rt_tree *tree, const void *key)
{
	struct rt_tree_node *node = tree->root, *found = NULL;

	while (node) {
		int order = tree->compare(key, node);

		if (order == 0)
			found = node;
		node = order > 0 ? node->right : node->left;
	}
	return found;
}

struct rt_tree_node *rt_tree_first(const struct rt_tree *tree)
{
	struct rt_tree_node *node = tree->root;

	while (node && node->left)
		node = node->left;
	return node;
}
