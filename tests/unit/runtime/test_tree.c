/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ordered set: it holds what was put in, in order, and stays shallow. */
#include "../test.h"

#include "runtime/sim/rt_sim.h"
#include "runtime/tree.h"

#define NODES 4096
#define DEEPEST 64 /* 4,096 nodes: 12 at best, about 25 to 35 in a treap */

struct item {
	struct rt_tree_node node;
	int key, serial;
};

static struct rt *rt;
static struct rt_tree tree;
static struct item items[NODES];

static struct item *item_of(struct rt_tree_node *node)
{
	return container_of(node, struct item, node);
}

static int compare(const void *key, const struct rt_tree_node *node)
{
	int a = *(const int *)key, b = container_of(node, struct item, node)->key;

	return (a > b) - (a < b);
}

static int setup(void **state)
{
	assert_int_equal(rt_sim_create(7, &rt), 0);
	rt_tree_init(rt, &tree, compare);
	return 0;
}

static int teardown(void **state)
{
	rt_sim_destroy(rt);
	return 0;
}

static void put(struct item *item, int key, int serial)
{
	*item = (struct item){.key = key, .serial = serial};
	rt_tree_insert(&tree, &item->node, &key);
}

/* Return: the depth below @node, whose keys are at least @low and at most @high */
static int check(struct rt_tree_node *node, int low, int high)
{
	int left, right, key;

	if (!node)
		return 0;
	key = item_of(node)->key;
	assert_in_range(key, low, high);
	for (int i = 0; i < 2; i++) {
		struct rt_tree_node *child = i ? node->right : node->left;

		assert_true(!child || (child->parent == node && child->priority <= node->priority));
	}
	left = check(node->left, low, key);
	right = check(node->right, key, high);
	return 1 + MAX(left, right);
}

static void ascending_keys_make_no_list(void **state)
{
	for (int i = 0; i < NODES; i++)
		put(&items[i], i, 0);
	assert_in_range(check(tree.root, 0, NODES), 12, DEEPEST);
	for (int i = 0; i < NODES; i++) {
		assert_ptr_equal(rt_tree_find(&tree, &i), &items[i].node);
		assert_ptr_equal(rt_tree_first(&tree), &items[i].node);
		rt_tree_remove(&items[i].node);
		assert_null(rt_tree_find(&tree, &i));
	}
	assert_null(tree.root);
}

static void equal_keys_make_no_list_and_the_first_is_found(void **state)
{
	int key = 5, other = 6;

	put(&items[0], other, 0);
	for (int i = 1; i < NODES; i++)
		put(&items[i], key, i);
	assert_in_range(check(tree.root, 0, NODES), 12, DEEPEST);
	for (int i = 1; i < NODES; i++) {
		assert_int_equal(item_of(rt_tree_find(&tree, &key))->serial, i);
		rt_tree_remove(&items[i].node);
	}
	assert_null(rt_tree_find(&tree, &key));
	assert_ptr_equal(rt_tree_find(&tree, &other), &items[0].node);
}

/* against a table that says which keys are in */
static void it_holds_what_was_put_in(void **state)
{
	int in = 0;

	for (int i = 0; i < NODES; i++)
		rt_tree_node_init(&items[i].node);
	for (int step = 0; step < 20000; step++) {
		int key = (int)(rt_random(rt) % NODES);
		struct item *item = &items[key];

		assert_ptr_equal(rt_tree_find(&tree, &key), item->node.tree ? &item->node : NULL);
		if (item->node.tree) {
			rt_tree_remove(&item->node);
			in--;
		} else {
			put(item, key, 0);
			in++;
		}
		assert_int_equal(tree.count, in);
		if (step % 1000 == 0)
			check(tree.root, 0, NODES);
	}
}

static void removing_twice_is_nothing(void **state)
{
	put(&items[0], 1, 0);
	put(&items[1], 2, 0);
	rt_tree_remove(&items[0].node);
	rt_tree_remove(&items[0].node);
	assert_int_equal(tree.count, 1);
	assert_ptr_equal(rt_tree_first(&tree), &items[1].node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ascending_keys_make_no_list, setup, teardown),
		cmocka_unit_test_setup_teardown(equal_keys_make_no_list_and_the_first_is_found,
						setup, teardown),
		cmocka_unit_test_setup_teardown(it_holds_what_was_put_in, setup, teardown),
		cmocka_unit_test_setup_teardown(removing_twice_is_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
