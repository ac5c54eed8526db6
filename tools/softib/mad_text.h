/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A management datagram as a line of text, and its fields by name. */
#ifndef SOFTIB_TOOLS_MAD_TEXT_H
#define SOFTIB_TOOLS_MAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/**
 * mad_text() - print what a MAD says, without the end of the line
 * @mad: @len bytes, as they stand on the wire; fewer than 256 are said to be too short
 * @fields: also print each field of the attribute that is not zero, a line each, as the
 *	    tables of src/wire name it
 *
 * "SubnDirectGet(NodeInfo) modifier 0 tid 0x1d path 0,1,2": class, method and attribute
 * as the specification names them (13.4), then what belongs to the class, and a status
 * that is not 0 in words.
 */
void mad_text(FILE *out, const void *mad, size_t len, bool fields);

#endif
