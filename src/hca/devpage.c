/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device page: the current attributes of the ports, which engines read. It
 * follows the state of the SMA. The kernel engine has one copy. A second copy,
 * in a memfd that programs can map but not write, is made when the first
 * program opens the device.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fabric/ethernet.h"
#include "hca/private.h"

int hca_page_create(struct hca *hca)
{
	unsigned ports = hca->ib.phys_port_cnt;

	hca->shared_fd = -1;
	INIT_LIST_HEAD(&hca->shared_node);
	hca->page = rt_zalloc(abi_devpage_bytes(ports));
	if (!hca->page)
		return -ENOMEM;
	hca->page->magic = ABI_DEVPAGE_MAGIC;
	hca->page->num_ports = ports;
	return 0;
}

void hca_page_destroy(struct hca *hca)
{
	list_del(&hca->shared_node);
	if (hca->shared)
		munmap(hca->shared, abi_devpage_bytes(hca->ib.phys_port_cnt));
	if (hca->shared_fd >= 0)
		close(hca->shared_fd);
	rt_free(hca->page);
}

void hca_set_min_ack_timeout(struct hca *hca, uint32_t us)
{
	hca->page->min_ack_timeout_us = us;
}

static void fill_roce_gids(const struct hca *hca, unsigned port_num, struct abi_devport *out)
{
	struct fab_roce_gid gids[FAB_ROCE_GIDS];
	unsigned n = fab_ethernet_gids(hca->fab, hca->node, (int)port_num, gids);

	_Static_assert(FAB_ROCE_GIDS <= ABI_GIDS, "a port's table has room");
	out->num_gids = ABI_GIDS;
	for (unsigned i = 0; i < n; i++) {
		memcpy(out->gid[i], gids[i].gid.raw, sizeof(out->gid[i]));
		out->gid_path[i] = gids[i].path;
		out->gid_vlan[i] = gids[i].vlan_id;
		out->gid_type[i] = gids[i].v2 ? ABI_GID_ROCE_V2 : ABI_GID_ROCE_V1;
	}
}

static void fill_gids(const struct ag_port *p, struct abi_devport *out)
{
	out->num_gids = ABI_GIDS_IB;
	for (unsigned i = 0; i < ABI_GIDS_IB; i++) {
		uint64_t guid = i < p->num_guids ? p->guids[i] : 0;

		if (!guid)
			continue;
		put_be64(out->gid[i], p->gid_prefix);
		put_be64(out->gid[i] + 8, guid);
	}
}

static struct abi_devport snapshot(const struct hca *hca, unsigned port_num)
{
	const struct ag_port *p = &fab_node(hca->fab, hca->node)->port[port_num];
	bool ethernet = fab_is_ethernet(hca->fab, hca->node, (int)port_num);
	struct abi_devport out = {
		.lid = p->lid,
		.lmc = p->lmc,
		.state = p->state,
		.phys_state = p->phys_state,
		.active_mtu_enc = p->neighbor_mtu_enc,
		.max_mtu_enc = p->mtu_cap_enc,
		.frame_mtu = ethernet ? fab_ethernet_mtu(hca->fab, hca->node, (int)port_num) : 0,
		.sm_sl = p->sm_sl,
		.subnet_timeout_enc = p->subnet_timeout_enc,
		.max_vl_num = p->vl_cap_enc,
		.init_type_reply = p->init_type_reply,
		.link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
		.width_enc = p->width_active,
		.speed_enc = p->speed_active,
		.sm_lid = p->sm_lid,
		.cap_mask = ethernet ? IB_PORT_CM_SUP : p->cap_mask,
		.qkey_violations = p->qkey_violations,
		.pkey_violations = p->pkey_violations,
	};

	if (ethernet)
		fill_roce_gids(hca, port_num, &out);
	else
		fill_gids(p, &out);
	for (unsigned i = 0; i < p->num_pkeys && i < ABI_PKEYS; i++)
		out.pkey[i] = p->pkeys[i];
	return out;
}

static void write_port(struct abi_devpage *page, unsigned port_num, const struct abi_devport *port)
{
	abi_devpage_store(page, &page->port[port_num - 1], port, sizeof(*port));
}

void hca_page_publish(struct hca *hca, unsigned port_num)
{
	struct abi_devport port = snapshot(hca, port_num);

	write_port(hca->page, port_num, &port);
	if (hca->shared)
		write_port(hca->shared, port_num, &port);
}

void hca_route_moved(void *ctx)
{
	struct hca *hca = ctx;

	if (++hca->route_epoch == 0)
		hca->route_epoch = 1;
	if (hca->shared)
		atomic_store_explicit(&hca->shared->route_epoch, hca->route_epoch,
				      memory_order_release);
}

void hca_rules_changed(void *ctx)
{
	struct hca_set *set = ctx;
	const bool spoils = hca_spoils(set->fab), refuses = hca_refuses(set->fab);
	struct hca *hca;

	list_for_each_entry(hca, &set->shared, shared_node) {
		atomic_store(&hca->shared->completion_faults, spoils);
		atomic_store(&hca->shared->creation_faults, refuses);
		hca_route_moved(hca);
	}
	hca_bypass_revoke(set);
}

int hca_page_share(struct hca *hca)
{
	size_t bytes = abi_devpage_bytes(hca->ib.phys_port_cnt);
	void *map;
	int fd, err;

	if (hca->shared)
		return 0;
	fd = memfd_create("softib-ports", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes))
		goto fail;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	/* after this nobody can make a writable mapping of the file or change its size */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		munmap(map, bytes);
		goto fail;
	}
	memcpy(map, hca->page, bytes);
	hca->shared = map;
	hca->shared_fd = fd;
	list_add_tail(&hca->shared_node, &hca->set->shared);
	hca_rules_changed(hca->set);
	return 0;
fail:
	err = errno;
	close(fd);
	return -err;
}
