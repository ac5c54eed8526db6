/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of a cable between two fabrics (fabric/outlet.h), over a connection that keeps bytes in
 * order and loses none: TCP, or a Unix stream socket. This file reads no descriptor and asks no clock.
 *
 * A message is its length (4 bytes, big-endian, without themselves), its type (1 byte) and its body. Numbers are
 * big-endian.
 *
 *   HELLO    magic, nonce (32), whether the sender has a key (1), instance (8), GUID of the fabric's first
 *            node (8), the name of the sender's port: the first message of each side
 *   PROOF    HMAC-SHA-256 (32) of role and both nonces with the key: the second message where both have a key
 *   LINK     plugged (1), phys_request (1), width_enabled (1), speed_enabled (2): struct fab_outlet_link
 *   CREDIT   how many bytes of data packets the receiver of this message may have sent in all (8)
 *   PACKET   hops (1), then the packet from its LRH to its pad
 *
 * Credits do here what flow control does on a link of InfiniBand (IBA v1 7.9): a data packet leaves only if
 * there is room for it at the other end, and VL15 needs none. They are counted in bytes, and are as many as the
 * far side can keep for destinations that have no room.
 *
 * A cable of Ethernet speaks another protocol (frames.c), which its other side chooses: QEMU (-netdev stream) or another
 * softibd. A message is the length of a frame (4 bytes, big-endian) and the frame, without FCS. There is nothing before
 * the first frame, no key, and no credits: a side that has no room does not read.
 *
 * Both sides prove that they have the same key, before anything else is believed. What follows is neither
 * encrypted nor signed.
 */
#ifndef SOFTIB_CABLE_SESSION_H
#define SOFTIB_CABLE_SESSION_H

#include "fabric/frames.h"
#include "fabric/outlet.h"

#define CABLE_KEY_BYTES	   32
#define CABLE_NONCE_BYTES  32
#define CABLE_NAME_BYTES   64		/* of the name of a port, with the final 0 */
#define CABLE_WINDOW	   (2u << 20)	/* bytes of data packets that a side takes in before their destinations do */
#define CABLE_MESSAGE_MAX  (6u + WIRE_PACKET_MAX)

enum cable_message { CABLE_HELLO = 1, CABLE_PROOF, CABLE_LINK, CABLE_CREDIT, CABLE_PACKET };

/** enum cable_state - of a session */
enum cable_state { CABLE_EXPECTS_HELLO, CABLE_EXPECTS_PROOF, CABLE_OPEN, CABLE_BROKEN };

/** struct cable_identity - a side of a cable, as its HELLO has it */
struct cable_identity {
	uint64_t instance; /* of this softibd, random */
	uint64_t guid;	   /* of its fabric's first node */
	char name[CABLE_NAME_BYTES]; /* "lab/s1:5"; of the other side: printable ASCII */
};

/** struct cable_ops - what a session asks of its owner */
struct cable_ops {
	/** opened() - the other side is who it should be */
	void (*opened)(void *ctx);
	/** far_link() - see fab_outlet_far_link() */
	void (*far_link)(void *ctx, const struct fab_outlet_link *link);
	/** packet() - a packet arrived; one that is not on VL15 is to be followed by cable_session_consumed()
	 *  @pkt: valid during the call */
	void (*packet)(void *ctx, struct fab_packet *pkt);
};

struct cable_config {
	const struct cable_ops *ops;
	void *ctx;
	struct cable_identity own;
	bool listens;	    /* the role: exactly one side does */
	const uint8_t *key; /* CABLE_KEY_BYTES, copied; NULL: none */
	struct fab_frames *frames; /* of a cable of Ethernet; NULL: the other side is a softibd's port of InfiniBand */
	uint8_t nonce[CABLE_NONCE_BYTES];
};

struct cable_session {
	struct cable_config config;
	const struct cable_protocol *protocol;
	uint8_t key[CABLE_KEY_BYTES];
	enum cable_state state;
	const char *error; /* of CABLE_BROKEN: a sentence for the user */
	struct cable_identity far;
	uint8_t far_nonce[CABLE_NONCE_BYTES];
	/* --- credits, in bytes of data packets --- */
	uint64_t sent, may_send;
	uint64_t received, consumed, granted;
	/* --- what is to be written --- */
	uint8_t *tx; /* CABLE_TX_BYTES */
	size_t tx_begin, tx_end;
	bool link_due, credit_due;
	struct fab_outlet_link link;
	/* --- statistics --- */
	uint64_t packets_sent, packets_received, waits;
};

/** cable_session_init() - begin, with a HELLO
 *  @config: copied
 *  Return: 0; -ENOMEM */
int cable_session_init(struct cable_session *s, const struct cable_config *config);
/** cable_session_start() - the connection is made */
void cable_session_start(struct cable_session *s);
void cable_session_exit(struct cable_session *s);

/** cable_session_input() - bytes have arrived
 *  Return: how many of them were complete messages, and need not be offered again; -EPROTO the session is broken, and
 *  @s->error says why */
ssize_t cable_session_input(struct cable_session *s, const uint8_t *bytes, size_t len);

/** cable_session_output() - Return: bytes that are to be written, *@len of them; maybe 0 */
const uint8_t *cable_session_output(struct cable_session *s, size_t *len);
/** cable_session_written() - the first @len of them were */
void cable_session_written(struct cable_session *s, size_t len);

/** cable_session_send() - Return: 0; -EAGAIN no credit, or no room to write; -ENOTCONN not open */
int cable_session_send(struct cable_session *s, const struct fab_packet *pkt);
/** cable_session_link() - tell the far side of this side's contribution to the link */
void cable_session_link(struct cable_session *s, const struct fab_outlet_link *link);
/** cable_session_consumed() - a data packet of @bytes was delivered, or dropped */
void cable_session_consumed(struct cable_session *s, size_t bytes);
/** cable_session_is_full() - so much waits for cable_session_consumed() that nothing more is to be read. Only on Ethernet:
 *  others have credits */
bool cable_session_is_full(const struct cable_session *s);

/** cable_key_of() - the key that the contents of a key file stand for */
void cable_key_of(const void *secret, size_t len, uint8_t key[CABLE_KEY_BYTES]);

#endif
