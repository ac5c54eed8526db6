/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address handles are the library's own: an address vector that post_send
 * copies into the request. A message goes to softibd only on Ethernet, to look
 * the destination's station up.
 */
#include <endian.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/objects.h"
#include "soft.h"
#include "wire/address.h"

#define MAX_SL	15
#define NO_VLAN 0xffff
#define FIRST_WAIT_US 1000	/* for a host outside of the fabric, each twice as long as the one before: */
#define LAST_WAIT_US  512000 /* a second in all */

static struct abi_find_station station_request(const struct ibv_ah_attr *attr, uint8_t port)
{
	struct abi_find_station req = {.port_num = port, .sgid_index = attr->grh.sgid_index};

	memcpy(req.gid, attr->grh.dgid.raw, sizeof(req.gid));
	return req;
}

/* A host outside of the fabric may have to be asked for, which softibd does each time. The kernel waits a second for it, too.
 * Return: 0; -EHOSTUNREACH; -EIO */
static int find_station(struct soft_context *ctx, const struct abi_find_station *req, struct abi_find_station_resp *resp)
{
	long wait_us = FIRST_WAIT_US;
	int rc;

	while ((rc = session_command(ctx, ABI_CMD_FIND_STATION, req, sizeof(*req), resp, sizeof(*resp))) == -EAGAIN &&
	       wait_us <= LAST_WAIT_US) {
		usleep((useconds_t)wait_us);
		wait_us *= 2;
	}
	return rc == -EAGAIN ? -EHOSTUNREACH : rc;
}

/**
 * ah_resolve() - on a port of Ethernet, look the station of the DGID up (A16), in the VLAN of
 * the SGID; it takes the place of a LID, and the VLAN that of path bits
 * @port_num: used if @attr names no port
 * Return: 0; -EINVAL no GRH, which RoCE requires, or no such entry of the GID table;
 * -EHOSTUNREACH no station has the DGID; -EIO
 */
int ah_resolve(struct soft_context *ctx, struct ibv_ah_attr *attr, uint8_t port_num)
{
	static const uint8_t no_gid[16];
	uint8_t port = attr->port_num ? attr->port_num : port_num;
	const struct abi_devport *own;
	struct abi_find_station req;
	struct abi_find_station_resp resp;
	int rc;

	if (!device_is_ethernet(ctx, port))
		return 0;
	own = &ctx->devpage->port[port - 1];
	if (!attr->is_global || attr->grh.sgid_index >= own->num_gids ||
	    !memcmp(own->gid[attr->grh.sgid_index], no_gid, sizeof(no_gid)))
		return -EINVAL;
	req = station_request(attr, port);
	rc = find_station(ctx, &req, &resp);
	if (!rc) {
		attr->dlid = resp.station;
		attr->src_path_bits = wire_path_bits((uint16_t)resp.station, own->lmc);
	}
	return rc;
}

/* Return: 0; -EINVAL port, SL or source GID index out of range */
static int to_av(struct soft_context *ctx, const struct ibv_ah_attr *attr, struct tp_av *av)
{
	if (attr->port_num < 1 || attr->port_num > ctx->num_ports || attr->sl > MAX_SL ||
	    (attr->is_global &&
	     attr->grh.sgid_index >= ctx->devpage->port[attr->port_num - 1].num_gids))
		return -EINVAL;
	*av = (struct tp_av){
		.dlid = attr->dlid,
		.sl = attr->sl,
		.src_path_bits = attr->src_path_bits,
		.static_rate_enc = attr->static_rate,
		.port_num = attr->port_num,
		.is_global = attr->is_global != 0,
		.sgid_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.flow_label = attr->grh.flow_label & IB_GRH_FLOWLABEL_MASK,
	};
	memcpy(av->dgid.raw, attr->grh.dgid.raw, sizeof(av->dgid.raw));
	return 0;
}

/** ibv_create_ah() - Return: the AH; NULL and errno: EINVAL; ENOMEM memory, or the program has
 *  max_ah; on Ethernet EHOSTUNREACH no port has the DGID */
EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct soft_context *ctx = to_context(pd->context);
	struct soft_ah *ah = calloc(1, sizeof(*ah));
	struct ibv_ah_attr resolved = *attr;
	int rc;

	if (!ah)
		return verbs_null(-ENOMEM);
	rc = ah_resolve(ctx, &resolved, 0);
	if (!rc)
		rc = to_av(ctx, &resolved, &ah->av);
	if (!rc && !take_room(&ctx->num_ahs, (uint32_t)ctx->attr.orig_attr.max_ah))
		rc = -ENOMEM;
	if (rc) {
		free(ah);
		return verbs_null(rc);
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	return &ah->ibv;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	give_room(&to_context(ah->context)->num_ahs);
	free(container_of(ah, struct soft_ah, ibv));
	return 0;
}

/** ah_av() - what eng_post_send() asks of a request's AH */
const struct tp_av *ah_av(struct ibv_ah *ah)
{
	return ah ? &container_of(ah, struct soft_ah, ibv)->av : NULL;
}

/* @path: of Ethernet the VLAN in which the datagram came: the link-local address of a port is
 * the same in each */
static int find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid, uint8_t path)
{
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port, &live);

	for (int i = 0; !rc && i < live.num_gids; i++) {
		if (!memcmp(live.gid[i], gid->raw, sizeof(gid->raw)) &&
		    (live.link_layer != IBV_LINK_LAYER_ETHERNET || live.gid_path[i] == path))
			return i;
	}
	return rc ? rc : -ENOENT;
}

/**
 * ibv_init_ah_from_wc() - the way back to the sender of a datagram
 * @grh: the receive buffer's first 40 bytes; read when @wc says IBV_WC_GRH
 * Return: 0; -1 and errno: EINVAL port, ENOENT the GID it came to is not ours
 * Spec: IBA v1 11.4.2.1, 8.3 (fields of the GRH)
 */
EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	uint32_t flow;
	int index;

	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	index = find_gid(context, port_num, &grh->dgid, wc->dlid_path_bits);
	if (index < 0) {
		errno = -index;
		return -1;
	}
	flow = be32toh(grh->version_tclass_flow);
	attr->is_global = 1;
	attr->grh.dgid = grh->sgid;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = grh->hop_limit;
	attr->grh.flow_label = flow & IB_GRH_FLOWLABEL_MASK;
	attr->grh.traffic_class = (uint8_t)(flow >> 20);
	return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/** ibv_resolve_eth_l2_from_gid() - the MAC address that a DGID leads to, and the VLAN of the SGID
 *  Return: 0; EINVAL the port's link layer is not Ethernet; EHOSTUNREACH */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct soft_context *ctx = to_context(context);
	struct abi_find_station_resp resp;
	struct abi_find_station req = station_request(attr, attr->port_num);
	uint16_t vlan;
	int rc;

	if (!device_is_ethernet(ctx, attr->port_num) || attr->grh.sgid_index >= ABI_GIDS)
		return verbs_err(-EINVAL);
	vlan = ctx->devpage->port[attr->port_num - 1].gid_vlan[attr->grh.sgid_index];
	rc = find_station(ctx, &req, &resp);
	if (rc)
		return verbs_err(rc);
	memcpy(eth_mac, resp.mac, sizeof(resp.mac));
	if (vid)
		*vid = vlan ? vlan : NO_VLAN;
	return 0;
}
