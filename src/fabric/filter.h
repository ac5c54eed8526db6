/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Filters that select packets: "qpn 0x12 and sent", "mad and not class sa". The
 * terms are a table in filter.c; docs/CAPTURES.md documents them.
 */
#ifndef SOFTIB_FABRIC_FILTER_H
#define SOFTIB_FABRIC_FILTER_H

#include "fabric/fabric.h"

#define FAB_FILTER_OPS_MAX 60 /* terms, ands, ors and nots of one filter */

struct filter_term;

/** struct fab_filter - an expression in postfix order; one without operations selects all */
struct fab_filter {
	int num_ops;
	struct fab_filter_op {
		char kind; /* 't' a term, '&', '|', '!' */
		const struct filter_term *term;
		uint64_t low, high; /* the values that match */
	} op[FAB_FILTER_OPS_MAX];
};

/**
 * fab_filter_parse() - parse a filter expression
 * @text: terms joined by "and" (may be omitted), "or", "not", "(", ")";
 *	  "" selects every packet
 * @topo: has the nodes that the term "node" names
 * @filter: owned by the caller, set on success
 * @err: set to a message on failure, @err_bytes long
 * Return: 0; -EINVAL
 */
int fab_filter_parse(const char *text, const struct topology *topo,
		     struct fab_filter *filter, char *err, size_t err_bytes);

/** fab_filter_match() - does the filter select this packet? */
bool fab_filter_match(const struct fab_filter *filter, const struct fab_sight *sight);

#endif
