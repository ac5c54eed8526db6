/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The members that all structs of an address vector have by the same names: those of
 * <rdma/ib_user_verbs.h>, of programs and of the midlayer. They differ in the GID's type, in how
 * they say that there is a GRH, and in whether its members stand in a struct of their own.
 */
#ifndef SOFTIB_ABI_AH_H
#define SOFTIB_ABI_AH_H

/** ABI_COPY_AH() - what the LRH is made of */
#define ABI_COPY_AH(to, from)                                                                  \
	do {                                                                                   \
		(to).dlid = (from).dlid;                                                       \
		(to).sl = (from).sl;                                                           \
		(to).src_path_bits = (from).src_path_bits;                                     \
		(to).static_rate = (from).static_rate;                                         \
		(to).port_num = (from).port_num;                                               \
	} while (0)

/** ABI_COPY_GRH() - what the GRH is made of, but for the DGID */
#define ABI_COPY_GRH(to, from)                                                                 \
	do {                                                                                   \
		(to).flow_label = (from).flow_label;                                           \
		(to).sgid_index = (from).sgid_index;                                           \
		(to).hop_limit = (from).hop_limit;                                             \
		(to).traffic_class = (from).traffic_class;                                     \
	} while (0)

#endif
