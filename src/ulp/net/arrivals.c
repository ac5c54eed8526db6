/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets on their way to the hosts of a fabric's interfaces. */
#include "ulp/net/arrivals.h"

#include <string.h>
#include <sys/ioctl.h>

#include "ulp/net/tun.h"

#define USO 0x60 /* TUN_F_USO4 and TUN_F_USO6 */

/* An engine takes few packets when it has its turn, so what is merged stays until the loop has run its
 * work FLUSH_AFTER times and brought no more of it. What was received in place stays in its receives,
 * which are posted again thereafter. */
#define FLUSH_AFTER 8

/* --- what was merged --- */

/* for the host, behind @h */
static bool write_merged(const struct net_arrivals *a, struct virtio_net_hdr *h)
{
	const struct net_merge *m = &a->merge;
	struct iovec part[3 + NET_MERGED_MOST] = {
		[1] = {(void *)(uintptr_t)a->link, a->link_bytes},
		[2] = {(void *)(uintptr_t)m->header, m->headers}};

	if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		h->hdr_len = (u16)(h->hdr_len + a->link_bytes);
		h->csum_start = (u16)(h->csum_start + a->link_bytes);
	}
	memcpy(&part[3], m->part, m->num_parts * sizeof(*part));
	return net_tun_write_parts(a->owner->fd, h, part, 3 + m->num_parts);
}

static void flush(struct net_arrivals *a)
{
	struct net_merge *m = &a->merge;
	struct net_host *host = a->owner;
	struct virtio_net_hdr header;

	if (!m->count)
		return;
	net_merge_end(m, &header);
	host->delivered(host, write_merged(a, &header), m->count,
			m->bytes + (m->count - 1) * m->headers + m->count * a->link_bytes);
	m->count = 0;
	if (a->num_kept)
		host->release(host, a->kept, a->num_kept);
	a->num_kept = 0;
}

void net_arrivals_flush(struct net_arrivals *a, struct net_host *host)
{
	if (a->owner == host)
		flush(a);
}

static void flush_later(struct rt_work *work)
{
	struct net_arrivals *a = container_of(work, struct net_arrivals, flush);

	if (a->merge.count && ++a->rounds < FLUSH_AFTER)
		rt_work_queue(a->rt, work);
	else
		flush(a);
}

/* --- what arrives --- */

static const u8 *link_of(const struct net_arrival *in)
{
	return in->packet - in->link_bytes;
}

static bool may_begin(const struct net_host *host, const struct net_arrival *in)
{
	return in->is_ip && in->link_bytes <= NET_LINK_BYTES &&
	       net_merge_may_begin(in->packet, in->bytes) &&
	       (host->takes_udp || !net_merge_is_udp(in->packet));
}

/* Is it for the host of what is there, if anything is, and behind the same Ethernet header? */
static bool may_follow(const struct net_arrivals *a, const struct net_host *host,
		       const struct net_arrival *in)
{
	return !a->merge.count ||
	       (a->owner == host && a->link_bytes == in->link_bytes &&
		!memcmp(a->link, link_of(in), in->link_bytes));
}

/* Return: false: the packet is to be delivered by itself */
static bool merge(struct net_arrivals *a, struct net_host *host, const struct net_arrival *in,
		  bool *kept)
{
	if (!net_merge_add(&a->merge, in->packet, in->bytes, in->checked, in->receive))
		return false;
	*kept = in->receive;
	if (*kept)
		a->kept[a->num_kept++] = in->receive;
	a->owner = host;
	a->link_bytes = in->link_bytes;
	memcpy(a->link, link_of(in), in->link_bytes);
	a->rounds = 0;
	rt_work_queue(a->rt, &a->flush);
	return true;
}

bool net_arrivals_deliver(struct net_arrivals *a, struct net_host *host, const struct net_arrival *in)
{
	bool mergeable = may_begin(host, in), kept = false;
	size_t bytes = in->link_bytes + in->bytes;

	if (mergeable && may_follow(a, host, in) && merge(a, host, in, &kept))
		return kept;
	if (mergeable || a->owner == host)
		flush(a);
	if (!mergeable || !merge(a, host, in, &kept))
		host->delivered(host, net_host_write(host, link_of(in), bytes), 1, bytes);
	return kept;
}

/* --- coming and going --- */

bool net_host_write(struct net_host *host, const u8 *packet, size_t bytes)
{
	const struct virtio_net_hdr header = {.gso_type = VIRTIO_NET_HDR_GSO_NONE};

	return net_tun_write(host->fd, &header, packet, bytes);
}

/* Linux before 6.2 refuses the offload, and large datagrams of UDP that are written as well. It is
 * not asked for: the host would hand over such packets, too. */
void net_host_open(struct net_host *host)
{
	host->takes_udp = !ioctl(host->fd, TUNSETOFFLOAD, (unsigned long)NET_OFFLOADS | USO);
	ioctl(host->fd, TUNSETOFFLOAD, (unsigned long)NET_OFFLOADS);
}

void net_arrivals_init(struct net_arrivals *a, struct rt *rt)
{
	a->rt = rt;
	rt_work_init(&a->flush, flush_later);
}

void net_arrivals_forget(struct net_arrivals *a, struct net_host *host)
{
	if (a->owner != host)
		return;
	a->owner = NULL;
	a->merge.count = 0;
	rt_work_cancel(&a->flush);
}
