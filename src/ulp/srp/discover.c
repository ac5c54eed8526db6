/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Discovery. The ports of the fabric are queried from the subnet administrator, and the targets of
 * each port from its device management agent. Several ports are asked at the same time. */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"

#define SCANS		16
#define PATH_TIMEOUT_MS 5000
#define TIMEOUT_MS	500
#define RETRIES		3

struct scan {
	struct srp_discovery *discovery;
	struct srpi_scan machine;
	union ib_gid dgid;
	struct rdma_ah_attr to;
	bool active, more;
};

struct srp_discovery {
	struct list_head node;
	struct ib_device *device;
	u32 port_num;
	struct ib_mad_agent *agent;
	struct ib_sa_client sa;
	struct sa_path_rec *path;
	unsigned int nr_paths, next_path, active;
	union ib_gid *only;
	unsigned int nr_only;
	struct scan scan[SCANS];
	struct srp_found *found;
	unsigned int nr_found, room;
	u64 tid;
	int status;
	void (*done)(void *ctx, int status, const struct srp_found *found, unsigned int nr);
	void *ctx;
	struct rt_work end;
};

static void free_discovery(struct srp_discovery *d)
{
	list_del(&d->node);
	rt_work_cancel(&d->end);
	ib_sa_unregister_client(&d->sa);
	if (!IS_ERR_OR_NULL(d->agent))
		ib_unregister_mad_agent(d->agent); /* ends all outstanding requests */
	rt_free(d->path);
	rt_free(d->only);
	rt_free(d->found);
	rt_free(d);
}

static void end(struct rt_work *work)
{
	struct srp_discovery *d = container_of(work, struct srp_discovery, end);

	d->done(d->ctx, d->status, d->found, d->nr_found);
	free_discovery(d);
}

void srp_discover_cancel(struct srp_discovery *d)
{
	free_discovery(d);
}

void srp_discover_device_gone(struct ib_device *device)
{
	struct srp_fabric *fabric = srp_fabric_of(device->rt);
	struct srp_discovery *d, *next;

	list_for_each_entry_safe(d, next, &fabric->discoveries, node)
		if (d->device == device) {
			d->done(d->ctx, -ENODEV, NULL, 0);
			free_discovery(d);
		}
}

/* --- one port --- */

static void keep_found(struct srp_discovery *d, const struct scan *scan,
		       const struct srpi_target *target)
{
	if (d->nr_found == d->room) {
		unsigned int room = d->room ? 2 * d->room : 8;
		struct srp_found *more = rt_zalloc(room * sizeof(*more));

		if (!more)
			return;
		if (d->nr_found)
			memcpy(more, d->found, d->nr_found * sizeof(*more));
		rt_free(d->found);
		d->found = more;
		d->room = room;
	}
	d->found[d->nr_found++] = (struct srp_found){
		.target = *target, .path = {d->port_num, scan->dgid}};
}

/* Handle the answer to the scan's request. @mad: NULL: there was no answer */
static void take(struct scan *scan, const u8 *mad)
{
	struct srpi_target found[SRPI_FOUND_MOST];
	unsigned int nr;

	scan->more = srpi_scan_take(&scan->machine, mad, found, &nr);
	for (unsigned int i = 0; i < nr; i++)
		keep_found(scan->discovery, scan, &found[i]);
}

static void received(struct ib_mad_agent *agent, struct ib_mad_send_buf *request,
		     struct ib_mad_recv_wc *wc)
{
	if (request)
		take(request->context[0], (const u8 *)wc->recv_buf.mad);
	ib_free_recv_mad(wc);
}

/* Send the scan's next request. Return: 0; -errno */
static int ask(struct scan *scan)
{
	struct srp_discovery *d = scan->discovery;
	struct ib_mad_send_buf *buf;
	struct ib_ah *ah = rdma_create_ah(d->agent->qp->pd, &scan->to, 0);
	u8 mad[WIRE_MAD_BYTES];
	int ret;

	if (IS_ERR(ah))
		return (int)PTR_ERR(ah);
	buf = ib_create_send_mad(d->agent, 1, 0, 0, IB_MGMT_DEVICE_HDR, IB_MGMT_DEVICE_DATA,
				 GFP_KERNEL, IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf)) {
		rdma_destroy_ah(ah, 0);
		return (int)PTR_ERR(buf);
	}
	srpi_scan_request(&scan->machine, ++d->tid, mad);
	ib_set_mad_contents(buf, mad);
	buf->ah = ah;
	buf->context[0] = scan;
	buf->timeout_ms = TIMEOUT_MS;
	buf->retries = RETRIES;
	ret = ib_post_send_mad(buf, NULL);
	if (ret) {
		ib_free_send_mad(buf);
		rdma_destroy_ah(ah, 0);
	}
	return ret;
}

/* --- all ports --- */

static bool is_wanted(const struct srp_discovery *d, const struct sa_path_rec *path)
{
	for (unsigned int i = 0; i < d->nr_only; i++)
		if (!memcmp(&d->only[i], &path->dgid, sizeof(path->dgid)))
			return true;
	return !d->nr_only;
}

static bool begin_scan(struct scan *scan, const struct sa_path_rec *path)
{
	struct srp_discovery *d = scan->discovery;

	scan->machine = (struct srpi_scan){0};
	scan->dgid = path->dgid;
	return !ib_init_ah_from_path(d->device, d->port_num, path, &scan->to) && !ask(scan);
}

/* Let each idle scan begin with the next port. If there is none, and no scan is busy, the discovery
 * ends. */
static void go_on(struct srp_discovery *d)
{
	for (unsigned int i = 0; i < SCANS; i++) {
		struct scan *scan = &d->scan[i];

		while (!scan->active && d->next_path < d->nr_paths) {
			const struct sa_path_rec *path = &d->path[d->next_path++];

			scan->active = is_wanted(d, path) && begin_scan(scan, path);
			d->active += scan->active;
		}
	}
	if (!d->active)
		rt_work_queue(d->device->rt, &d->end);
}

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct scan *scan = wc->send_buf->context[0];
	struct srp_discovery *d = scan->discovery;

	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
	if (wc->status == IB_WC_WR_FLUSH_ERR) /* free_discovery() unregisters the agent */
		return;
	if (wc->status != IB_WC_SUCCESS)
		take(scan, NULL);
	if (scan->more && !ask(scan))
		return;
	scan->active = false;
	d->active--;
	go_on(d);
}

static void on_paths(int status, struct sa_path_rec *resp, unsigned int nr, void *ctx)
{
	struct srp_discovery *d = ctx;

	if (status == -EINTR)
		return;
	d->path = nr ? rt_zalloc(nr * sizeof(*resp)) : NULL;
	d->status = status ? status : nr && !d->path ? -ENOMEM : 0;
	if (d->path) {
		memcpy(d->path, resp, nr * sizeof(*resp));
		d->nr_paths = nr;
	}
	go_on(d);
}

static int begin(struct srp_discovery *d)
{
	struct sa_path_rec rec = {.numb_path = 127, .reversible = 1};
	int ret = ib_query_gid(d->device, d->port_num, 0, &rec.sgid);

	if (ret)
		return ret;
	d->agent = ib_register_mad_agent(d->device, d->port_num, IB_QPT_GSI, NULL, 0, sent,
					 received, d, 0);
	if (IS_ERR(d->agent))
		return (int)PTR_ERR(d->agent);
	ret = ib_sa_path_rec_get(&d->sa, d->device, d->port_num, &rec,
				 IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_NUMB_PATH |
					 IB_SA_PATH_REC_REVERSIBLE,
				 PATH_TIMEOUT_MS, GFP_KERNEL, on_paths, d, NULL);
	return MIN(ret, 0);
}

struct srp_discovery *srp_discover(struct ib_device *device, u32 port_num,
				   const union ib_gid *only, unsigned int nr_only,
				   void (*done)(void *ctx, int status,
						const struct srp_found *found, unsigned int nr),
				   void *ctx)
{
	struct srp_discovery *d = rt_zalloc(sizeof(*d));
	int ret;

	if (!d)
		return ERR_PTR(-ENOMEM);
	list_add_tail(&d->node, &srp_fabric_of(device->rt)->discoveries);
	d->device = device;
	d->port_num = port_num;
	d->done = done;
	d->ctx = ctx;
	d->nr_only = nr_only;
	d->only = nr_only ? rt_zalloc(nr_only * sizeof(*only)) : NULL;
	rt_work_init(&d->end, end);
	ib_sa_register_client(&d->sa);
	for (unsigned int i = 0; i < SCANS; i++)
		d->scan[i].discovery = d;
	if (d->only)
		memcpy(d->only, only, nr_only * sizeof(*only));
	ret = nr_only && !d->only ? -ENOMEM : begin(d);
	if (!ret)
		return d;
	free_discovery(d);
	return ERR_PTR(ret);
}
