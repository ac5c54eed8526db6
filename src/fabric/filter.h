/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which packets are meant: "qpn 0x12 and sent", "mad and not class sa". The
 * terms are a table in filter.c; docs/CAPTURES.md lists them for people.
 */
#ifndef SOFTIB_FABRIC_FILTER_H
#define SOFTIB_FABRIC_FILTER_H

#include "fabric/fabric.h"

#define FAB_FILTER_OPS_MAX 60 /* terms, ands, ors and nots of one filter */

struct filter_term;

/** struct fab_filter - an expression in postfix order; no operations: all */
struct fab_filter {
	int num_ops;
	struct fab_filter_op {
		char kind; /* 't' a term, '&', '|', '!' */
		const struct filter_term *term;
		uint64_t low, high; /* the values that it takes */
	} op[FAB_FILTER_OPS_MAX];
};

/**
 * fab_filter_parse() - an expression of people
 * @text: terms joined by "and" (may be left out), "or", "not", "(", ")";
 *	  "" takes every packet
 * @topo: whose nodes the term "node" names
 * @filter: set on success, the caller's
 * @err: says what is wrong, @err_bytes long
 * Return: 0; -EINVAL
 */
int fab_filter_parse(const char *text, const struct topology *topo,
		     struct fab_filter *filter, char *err, size_t err_bytes);

/** fab_filter_match() - is this one of the packets? */
bool fab_filter_match(const struct fab_filter *filter, const struct fab_sight *sight);

#endif
