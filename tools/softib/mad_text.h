/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A management datagram as a line of text, and its fields by name. */
#ifndef SOFTIB_TOOLS_MAD_TEXT_H
#define SOFTIB_TOOLS_MAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/**
 * mad_text() - print what a MAD says, without the end of the line
 * @mad: @len bytes in wire order. A MAD has 256 bytes (13.4.1); for fewer the text says
 *	 that they are too few
 * @fields: also print each field of the attribute that is not zero, on a line of its own,
 *	    by the name that it has in the tables of src/wire
 *
 * The text is, for example, "SubnDirectGet(NodeInfo) modifier 0 tid 0x1d path 0,1,2": the
 * class, the method and the attribute as the specification names them (13.4), what belongs
 * to the class alone (14.2.2 directed routes, 13.6 RMPP), and a status other than 0 in words.
 */
void mad_text(FILE *out, const void *mad, size_t len, bool fields);

#endif
