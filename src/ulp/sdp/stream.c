/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bytes between the program's socket and the state machine. Nothing is read from the
 * program without a credit to send it, and what the program does not take stays in its
 * slot, which is then not posted: so each end's kernel buffer and slots push back, as TCP's
 * windows do.
 *
 * Out-of-band data is one byte, which a program sends and receives by MSG_OOB, and
 * at which its socket has a mark. A message that carries it has nothing else. Kernels before
 * 5.15 know none on Unix sockets: the byte is in line there.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/posix/closer.h"
#include "ulp/sdp/private.h"

/* --- to the program --- */

/* Return: bytes that were written; 0: none now; -1: the program is gone */
static ssize_t give(struct sdp_conn *c, const u8 *bytes, u32 n, int flags)
{
	ssize_t ret = send(c->fd, bytes, n, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

	if (ret < 0 && errno == EOPNOTSUPP && flags)
		return give(c, bytes, n, 0);
	if (ret >= 0) {
		c->fabric->stats.rx_bytes += (u64)ret;
		sdp_ring_delivered(c, (u32)ret);
		return ret;
	}
	c->writable = false;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	c->writable = true; /* nothing to wait for */
	return -1;
}

/* What a slot has for the program; its last byte may be out-of-band data. */
static ssize_t give_slot(struct sdp_conn *c, const struct sdp_item *head)
{
	const u8 *bytes = c->slot[head->slot].bytes + head->offset;

	if (head->oob && head->bytes > 1)
		return give(c, bytes, head->bytes - 1, 0);
	return give(c, bytes, head->bytes, head->oob ? MSG_OOB : 0);
}

/* The peer's memory: read a part of it, and deliver that before the next. */
static bool read_more(struct sdp_conn *c, const struct sdp_item *head)
{
	if (c->reading || c->sdp.state != SDP_OPEN)
		return false;
	if (!c->read_memory) {
		c->read_room = sdp_conn_take(c, SDP_READ_BYTES) ? SDP_READ_BYTES : SDP_READ_LEAST;
		c->read_memory = rt_zalloc(c->read_room);
	}
	if (!c->read_memory) {
		sdp_abort(&c->sdp);
		return false;
	}
	sdp_queue_read(c, head, MIN(head->left, c->read_room));
	return false;
}

/* Return: bytes; 0: nothing can be delivered now; -1: the program is gone */
static ssize_t deliver_some(struct sdp_conn *c)
{
	struct sdp_item *head;
	u16 slot;
	ssize_t n;

	if (c->reading)
		return 0;
	if (c->read_at < c->read_bytes) {
		n = give(c, c->read_memory + c->read_at, c->read_bytes - c->read_at, 0);
		c->read_at += n > 0 ? (u32)n : 0;
		return n;
	}
	head = sdp_rx_head(&c->sdp);
	if (!head) {
		sdp_sink_offer(c);
		return 0;
	}
	if (head->in_sink) {
		n = give(c, (u8 *)(uintptr_t)head->address + head->offset, head->bytes, 0);
		if (n > 0)
			sdp_rx_took(&c->sdp, (u32)n);
		return n;
	}
	if (!head->bytes)
		return read_more(c, head);
	slot = head->slot;
	n = give_slot(c, head);
	if (n > 0 && sdp_rx_took(&c->sdp, (u32)n))
		sdp_queue_free(c, slot);
	return n;
}

static bool all_delivered(const struct sdp_conn *c)
{
	return sdp_rx_ended(&c->sdp) && !c->reading && c->read_at == c->read_bytes;
}

static bool was_reset(const struct sdp_conn *c)
{
	return c->sdp.end == SDP_RESET || c->sdp.end == SDP_BROKEN;
}

/* A program that writes to a connection that was reset is told at once, even if it may not read what it
 * has not got yet. */
static void end_writes(struct sdp_conn *c)
{
	if (c->writes_ended)
		return;
	c->writes_ended = true;
	sdp_channel_tell(c, ECONNRESET);
	shutdown(c->fd, SHUT_RD);
}

static void end_for_program(struct sdp_conn *c)
{
	if (was_reset(c))
		end_writes(c);
	shutdown(c->fd, SHUT_WR);
	c->rx_eof = true;
}

bool sdp_stream_deliver(struct sdp_conn *c)
{
	u32 budget = SDP_TURN_BYTES;

	while (c->writable && !c->rx_eof) {
		ssize_t n = deliver_some(c);

		if (n < 0) { /* it reads no more: as TCP, reset what comes */
			c->rx_eof = true;
			sdp_close(&c->sdp);
			break;
		}
		if (!n)
			break;
		if ((u32)n >= budget)
			return true;
		budget -= (u32)n;
	}
	if (!c->rx_eof && all_delivered(c)) {
		end_for_program(c);
		sdp_ring_delivered(c, 0);
	} else if (!c->rx_eof && was_reset(c)) {
		end_writes(c);
	}
	return false;
}

/* --- from the program --- */

bool sdp_stream_hung_up(const struct sdp_conn *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

static void at_eof(struct sdp_conn *c)
{
	c->tx_eof = true;
	if (sdp_stream_hung_up(c)) {
		c->rx_eof = true;
		if (sdp_channel_resets(c))
			sdp_abort(&c->sdp);
		else
			sdp_close(&c->sdp);
	} else {
		sdp_shutdown(&c->sdp);
	}
}

/* The program had nothing to read. @n: what rt_receive() has returned */
static void at_no_bytes(struct sdp_conn *c, ssize_t n)
{
	if (!n) {
		at_eof(c);
	} else if (n == -EAGAIN || n == -EINTR) {
		c->readable = false;
	} else { /* the program ended with bytes unread: as TCP, a reset */
		c->tx_eof = c->rx_eof = true;
		sdp_abort(&c->sdp);
	}
}

/* Is the program's next byte out-of-band data? What is read before it ends there. Only if
 * there is a next byte can the answer not change until it is read: that is why readable ends
 * with a read that did not fill its room. */
static bool at_mark(const struct sdp_conn *c)
{
	int mark;

	return !ioctl(c->fd, SIOCATMARK, &mark) && mark;
}

/* The program's bytes, those of the ring first. Descriptors that it sends along are closed as foreign
 * ones. Return: how many; 0: none */
static u32 take(struct sdp_conn *c, void *to, u32 room)
{
	u32 rest = sdp_ring_take(c, to, room);
	ssize_t n;

	if (rest)
		return rest;
	n = rt_receive(c->fd, to, room, MSG_DONTWAIT, NULL, 0);
	if (n <= 0)
		at_no_bytes(c, n);
	else
		c->readable = n == room;
	return n > 0 ? (u32)n : 0;
}

/* Read from the program into a free buffer, where the payload of a message is. */
static u32 fill_pending(struct sdp_conn *c, u32 room, bool oob)
{
	struct sdp_buffer *b = &c->send[c->free_send[c->num_free_sends - 1]];
	u32 n;

	room = oob ? 1 : MIN(room, (u32)(SDP_SEND_BYTES - SDP_PAYLOAD_AT));
	n = take(c, b->bytes + SDP_PAYLOAD_AT, room);
	c->bulk = n == room && !oob;
	if (!n)
		return 0;
	c->num_free_sends--;
	c->pending = b;
	c->pending_bytes = n;
	c->pending_oob = oob;
	return n;
}

/* Read much from the program at once, into memory that the peer can read. */
static u32 fill_region(struct sdp_conn *c, u8 *bytes)
{
	u32 n = take(c, bytes, SDP_REGION_BYTES);

	c->bulk = n >= SDP_ADVERT_BYTES;
	if (n)
		sdp_region_filled(c, n);
	return n;
}

/* Return: bytes that were read from the program, as far as they can be sent next */
static u32 fill(struct sdp_conn *c)
{
	struct sdp_offer none;
	u32 n = 0, room, rest;
	u8 *region;
	bool oob;

	if (c->pending || c->tx_eof || sdp_region_offer(c, &none) || !sdp_ring_yields(c))
		return 0;
	rest = sdp_ring_rest(c);
	if (!c->readable && !rest)
		return 0;
	room = sdp_room(&c->sdp);
	oob = !rest && at_mark(c);
	region = c->bulk && !oob && (sdp_may_advertise(&c->sdp) || (room && c->sdp.num_sinks)) &&
				 sdp_memory_open(c) ?
			 sdp_region_free(c) :
			 NULL;
	if (region)
		n = fill_region(c, region);
	else if (room && c->num_free_sends > 1)
		n = fill_pending(c, room, oob);
	c->fabric->stats.tx_bytes += n;
	return n;
}

/* @msg is about the region that waits to be sent, or about nothing of the stream. Return:
 * the message's buffer */
static struct sdp_buffer *from_region(struct sdp_conn *c, const struct wire_sdp_msg *msg)
{
	struct sdp_buffer *b = &c->send[c->free_send[--c->num_free_sends]];

	if (msg->bsdh.mid == WIRE_SDP_RDMA_WR_COMPL)
		sdp_region_write(c, msg->count.bytes);
	if (msg->payload_bytes)
		memcpy(b->bytes + SDP_PAYLOAD_AT, sdp_region_bytes(c), msg->payload_bytes);
	if (msg->payload_bytes || msg->bsdh.mid == WIRE_SDP_SRC_AVAIL)
		sdp_region_sent(c, msg);
	return b;
}

/* The pending data's buffer has become a message with its first @sent bytes: if the peer's buffers have become
 * smaller since it was read, the others get another buffer. A free one is there */
static void keep_rest(struct sdp_conn *c, u32 sent)
{
	const u8 *rest = c->pending->bytes + SDP_PAYLOAD_AT + sent;

	c->pending_bytes -= sent;
	if (!c->pending_bytes) {
		c->pending = NULL;
		return;
	}
	c->pending = &c->send[c->free_send[--c->num_free_sends]];
	memcpy(c->pending->bytes + SDP_PAYLOAD_AT, rest, c->pending_bytes);
}

/* Return: was a message sent? A free buffer is there */
static bool send_one(struct sdp_conn *c)
{
	struct sdp_offer offer = {.bytes = c->pending ? c->pending_bytes : 0,
				  .oob = c->pending && c->pending_oob};
	const bool region = sdp_region_offer(c, &offer);
	struct sdp_buffer *b = c->pending;
	struct wire_sdp_msg msg;

	if (!sdp_next(&c->sdp, &offer, &msg))
		return false;
	if (msg.payload_bytes && !region)
		keep_rest(c, msg.payload_bytes);
	else
		b = from_region(c, &msg);
	sdp_queue_send(c, b, &msg);
	return true;
}

bool sdp_stream_send(struct sdp_conn *c)
{
	u32 budget = SDP_TURN_BYTES;

	/* one buffer stays free for messages without data */
	while (c->num_free_sends && c->sdp.state == SDP_OPEN && !c->qp_failed) {
		u32 n;

		sdp_queue_more_sends(c);
		n = fill(c);

		if (!send_one(c))
			return false;
		if (n >= budget)
			return true;
		budget -= n;
	}
	return false;
}

/* --- what to wait for --- */

void sdp_stream_watch(struct sdp_conn *c)
{
	const bool sends = !c->tx_eof && !c->pending && !c->readable &&
			   c->sdp.state == SDP_OPEN;

	rt_io_watch(&c->io, sends, !c->writable);
}

static void on_io(struct rt_io *io, bool readable, bool writable)
{
	struct sdp_conn *c = container_of(io, struct sdp_conn, io);

	c->readable |= readable;
	c->writable |= writable;
	sdp_stream_watch(c);
	sdp_conn_wake(c);
}

void sdp_stream_open(struct sdp_conn *c)
{
	const int on = 1;

	/* at worst, out-of-band data is in line */
	(void)setsockopt(c->fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	c->readable = c->writable = true;
	rt_io_init(c->rt, &c->io, c->fd, on_io);
}
