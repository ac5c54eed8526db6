/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Creation and removal of an adapter, and the events of its engine. */
#include "hca/hca.h"

#include <stdio.h>
#include <string.h>

#include "hca/private.h"

static mono_t engine_now(void *ctx)
{
	return rt_now(((struct hca *)ctx)->rt);
}

/* The engine calls this with its lock held. So the event is only queued, and the handler of the CQ is
 * called from the loop. */
static void engine_cq_event(void *ctx, void *cq_ctx)
{
	struct hca_cq *cq = cq_ctx;
	struct hca *hca = ctx;

	if (!hca->ib.polled)
		rt_work_queue(hca->rt, &cq->completed);
	else if (list_empty(&cq->event_node))
		list_add_tail(&cq->event_node, &hca->cq_events);
}

/* Events that the handlers cause are delivered in the next turn. */
bool hca_poll_events(struct ib_device *device)
{
	struct hca *hca = hca_of(device);
	LIST_HEAD(turn);

	list_splice_tail_init(&hca->cq_events, &turn);
	if (list_empty(&turn))
		return false;
	while (!list_empty(&turn)) { /* a handler may destroy any other CQ in the list */
		struct hca_cq *cq = list_first_entry(&turn, struct hca_cq, event_node);

		list_del_init(&cq->event_node);
		cq->completed.fn(&cq->completed);
	}
	return true;
}

/* The engine calls this with its lock held, too. The core queues the event. */
static void engine_async_event(void *ctx, enum ibv_event_type type, void *element)
{
	struct ib_event event = {
		.device = &((struct hca *)ctx)->ib,
		.event = (enum ib_event_type)type,
	};

	switch (type) {
	case IBV_EVENT_CQ_ERR:
		event.element.cq = &((struct hca_cq *)element)->ib;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event.element.srq = &((struct hca_srq *)element)->ib;
		break;
	default:
		event.element.qp = &((struct hca_qp *)element)->ib;
	}
	ib_dispatch_event(&event);
}

static void engine_kick(void *ctx, mono_t by)
{
	struct hca *hca = ctx;

	rt_work_queue(hca->rt, &hca->progress);
}

static int make_engine(struct hca *hca)
{
	struct eng_config config = {
		.devpage = hca->page,
		.link_ops = &hca_link_ops,
		.link = hca,
		.now = engine_now,
		.cq_event = engine_cq_event,
		.async_event = engine_async_event,
		.kick = engine_kick,
		.count = hca_count,
		.ctx = hca,
	};

	return eng_create(&config, &hca->engine);
}

static void attach_ports(struct hca *hca)
{
	for (unsigned i = 1; i <= hca->ib.phys_port_cnt; i++) {
		struct hca_port *port = &hca->port[i - 1];
		struct fab_sink sink = {
			.deliver = hca_port_deliver, .deliver_train = hca_port_deliver_train,
			.changed = hca_port_changed, .ctx = port};

		port->hca = hca;
		port->port_num = i;
		INIT_LIST_HEAD(&port->flows);
		hca_page_publish(hca, i);
		port->last_state = hca_devport(hca, i)->state;
		fab_attach(hca->fab, hca->node, (int)i, &sink);
	}
}

static void describe(struct hca *hca, const struct topology *topo, const struct ag_node *node)
{
	snprintf(hca->ib.node_name, sizeof(hca->ib.node_name), "%s",
		 topo_host_name(topo, hca->node));
	memcpy(hca->ib.node_desc, node->desc, sizeof(node->desc));
	hca->ib.node_guid = cpu_to_be64(node->guid);
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.phys_port_cnt = node->num_ports;
	hca->ib.ops = &hca_ops;
	hca->ib.answers_mads = true;
	hca->next_qpn = hca->set->numbers[hca->node].qpn;
	hca->next_key = hca->set->numbers[hca->node].key;
	hca->route_epoch = 1;
	hca->ib.polled = hca->set->polled && hca->set->polled[hca->node];
	INIT_LIST_HEAD(&hca->cq_events);
	INIT_LIST_HEAD(&hca->kernel_qps);
	INIT_LIST_HEAD(&hca->user_qps);
}

int hca_set_create(struct rt *rt, struct fabric *fab, struct hca_set **out)
{
	const size_t num_nodes = (size_t)fab_topology(fab)->num_nodes;
	struct hca_set *set = rt_zalloc(sizeof(*set));

	if (set)
		set->numbers = rt_zalloc(num_nodes * sizeof(set->numbers[0]));
	if (!set || !set->numbers) {
		rt_free(set);
		return -ENOMEM;
	}
	for (size_t i = 0; i < num_nodes; i++)
		set->numbers[i] = (struct hca_numbers){.qpn = HCA_FIRST_QPN, .key = 1};
	set->rt = rt;
	set->fab = fab;
	INIT_LIST_HEAD(&set->shared);
	hca_users_init(set);
	INIT_LIST_HEAD(&set->windows);
	INIT_LIST_HEAD(&set->bypasses);
	INIT_LIST_HEAD(&set->questions);
	INIT_LIST_HEAD(&set->pairs);
	fab_on_rules(fab, hca_rules_changed, set);
	*out = set;
	return 0;
}

void hca_set_profile(struct hca_set *set, const struct profile *profile)
{
	set->profile = profile;
}

void hca_set_polled(struct hca_set *set, const bool *polled)
{
	set->polled = polled;
}

void hca_set_destroy(struct hca_set *set)
{
	fab_on_rules(set->fab, NULL, NULL);
	rt_work_cancel(&set->flush);
	rt_free(set->reserved);
	rt_free(set->numbers);
	rt_free(set);
}

int hca_create(struct hca_set *set, int node, struct hca **out)
{
	struct fabric *fab = set->fab;
	const struct topology *topo = fab_topology(fab);
	char name[IB_DEVICE_NAME_BYTES];
	struct hca *hca;
	int ret = -ENOMEM;

	if (topo->node[node].kind != TOPO_CA)
		return -EINVAL;
	hca = ib_alloc_device(struct hca, ib);
	if (!hca)
		return -ENOMEM;
	hca->set = set;
	hca->rt = hca->ib.rt = set->rt;
	hca->fab = fab;
	hca->node = node;
	describe(hca, topo, fab_node(fab, node));
	hca_link_init(hca);
	hca->port = rt_zalloc(hca->ib.phys_port_cnt * sizeof(*hca->port));
	if (!hca->port || hca_page_create(hca))
		goto undo_ports;
	ret = make_engine(hca);
	if (ret)
		goto undo_page;
	attach_ports(hca);
	snprintf(name, sizeof(name), "softib%u", topo->node[node].device);
	ret = ib_register_device(&hca->ib, name);
	if (ret)
		goto undo_engine;
	*out = hca;
	return 0;

undo_engine:
	for (unsigned i = 1; i <= hca->ib.phys_port_cnt; i++)
		fab_attach(fab, node, (int)i, NULL);
	eng_destroy(hca->engine);
undo_page:
	hca_page_destroy(hca);
undo_ports:
	rt_free(hca->port);
	rt_free(hca->counted);
	ib_dealloc_device(&hca->ib);
	return ret;
}

void hca_destroy(struct hca *hca)
{
	for (unsigned i = 1; i <= hca->ib.phys_port_cnt; i++)
		fab_attach(hca->fab, hca->node, (int)i, NULL);
	ib_unregister_device(&hca->ib);
	hca_link_drain(hca);
	hca->set->numbers[hca->node] = (struct hca_numbers){.qpn = hca->next_qpn, .key = hca->next_key};
	eng_destroy(hca->engine);
	hca_page_destroy(hca);
	eng_table_free(&hca->qps, rt_free);
	eng_table_free(&hca->reserved, NULL);
	eng_table_free(&hca->keys, rt_free);
	eng_table_free(&hca->xrc_srqs, rt_free);
	rt_free(hca->port);
	rt_free(hca->counted);
	ib_dealloc_device(&hca->ib);
}
