/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copies of received payloads (put.c). Included by engine/private.h, which has struct eng_put. */
#ifndef SOFTIB_ENGINE_PUT_H
#define SOFTIB_ENGINE_PUT_H

void eng_put_init(struct engine *e);
/** eng_put_class() - the state that selects the copy kernel for payloads of @len bytes, which is
 *  at least 4 KiB */
struct eng_put *eng_put_class(struct engine *e, uint32_t len);
/** eng_put() - copy a received payload into the memory of the program
 *  @to: is guarded: what has no page any more is dropped (transport/guard.h)
 *  @offset: of the payload in its piece of memory */
void eng_put(struct engine *e, void *to, const void *from, uint32_t len, uint32_t offset);

#endif
