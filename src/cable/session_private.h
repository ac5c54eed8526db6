/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the two protocols of a cable share: session.c and frames.c. */
#ifndef SOFTIB_CABLE_SESSION_PRIVATE_H
#define SOFTIB_CABLE_SESSION_PRIVATE_H

#include "cable/session.h"

/** struct cable_protocol - what differs; each as the function of session.h with the same name */
struct cable_protocol {
	ssize_t (*input)(struct cable_session *s, const uint8_t *bytes, size_t len);
	int (*send)(struct cable_session *s, const struct fab_packet *pkt);
	void (*link)(struct cable_session *s, const struct fab_outlet_link *link);
	void (*due)(struct cable_session *s); /* write what is due by now; NULL: nothing ever is */
};

extern const struct cable_protocol cable_frames;

/** cable_tx_room() - bytes that may still be written
 *  cable_tx_reserve() - Return: where the next @len of them go, for which there is room */
size_t cable_tx_room(const struct cable_session *s);
uint8_t *cable_tx_reserve(struct cable_session *s, size_t len);
/** cable_session_break() - Return: -EPROTO; @why: a sentence for the user */
ssize_t cable_session_break(struct cable_session *s, const char *why);

#endif
