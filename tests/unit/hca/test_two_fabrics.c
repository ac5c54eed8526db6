/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two fabrics whose nodes have the same names in one process: neither hears of the other. */
#include "../test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/session.h"
#include "access/umad.h"
#include "access/uverbs.h"
#include "hca/private.h"
#include "rdma/ib_mad.h"

/** struct host - one fabric, all of its adapters, and the endpoints of programs */
struct host {
	struct rt *rt;
	struct topology *topo;
	struct fabric *fab;
	struct hca_set *set;
	struct hca *hca[2];
	struct uverbs *uverbs;
	struct umad *umad;
};

static struct host host[2];

static void host_start(struct host *h)
{
	char err[200] = "";
	int n = 0;

	assert_int_equal(rt_posix_create(&h->rt), 0);
	assert_int_equal(topo_load("pair", h == host ? "a" : "b", &h->topo, err, sizeof(err)), 0);
	assert_int_equal(fab_create(h->rt, h->topo, &h->fab), 0);
	assert_int_equal(ib_mad_init(h->rt), 0);
	assert_int_equal(hca_set_create(h->rt, h->fab, &h->set), 0);
	for (int i = 0; i < h->topo->num_nodes; i++)
		if (h->topo->node[i].kind == TOPO_CA)
			assert_int_equal(hca_create(h->set, i, &h->hca[n++]), 0);
	assert_int_equal(n, 2);
	assert_int_equal(uverbs_create(h->rt, NULL, &h->uverbs), 0);
	assert_int_equal(umad_create(h->rt, NULL, &h->umad), 0);
}

static void host_stop(struct host *h)
{
	if (!h->rt)
		return;
	umad_destroy(h->umad);
	uverbs_destroy(h->uverbs);
	hca_destroy(h->hca[0]);
	hca_destroy(h->hca[1]);
	hca_set_destroy(h->set);
	ib_mad_cleanup(h->rt);
	fab_destroy(h->fab);
	topo_free(h->topo);
	rt_posix_destroy(h->rt);
	h->rt = NULL;
}

static int setup(void **state)
{
	host_start(&host[0]);
	host_start(&host[1]);
	return 0;
}

static int teardown(void **state)
{
	host_stop(&host[0]);
	host_stop(&host[1]);
	return 0;
}

/* what a program hears that opens @kind at the verbs endpoint of @h */
static int opens(struct host *h, enum abi_open_kind kind, struct abi_device_info *info)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = kind,
				.node = "n1", .device = "softib0"};
	struct {
		struct abi_reply reply;
		struct abi_device_info info[2];
	} answer = {.reply.error = -EPROTO};
	struct peer peer;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	assert_int_equal(peer_of(pair[1], &peer), 0);
	uverbs_serve(h->uverbs, pair[1], &peer);
	assert_int_equal(send(pair[0], &open, sizeof(open), 0), sizeof(open));
	for (int i = 0; i < 3; i++)
		rt_posix_turn(h->rt);
	assert_true(recv(pair[0], &answer, sizeof(answer), MSG_DONTWAIT) > 0);
	close(pair[0]);
	if (info)
		*info = answer.info[0];
	if (kind == ABI_OPEN_LIST)
		assert_int_equal(answer.reply.bytes, sizeof(struct abi_device_info));
	return answer.reply.error;
}

static void names_are_each_fabrics_own(void **state)
{
	struct ib_device *a = ib_device_get_by_name(host[0].rt, "n1", "softib0");
	struct ib_device *b = ib_device_get_by_name(host[1].rt, "n1", "softib0");

	assert_ptr_equal(a, &host[0].hca[0]->ib);
	assert_ptr_equal(b, &host[1].hca[0]->ib);
	assert_int_equal(a->index, 0);
	assert_int_equal(b->index, 0);
}

static void guids_differ(void **state)
{
	struct abi_device_info info[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(opens(&host[i], ABI_OPEN_LIST, &info[i]), 0);
		assert_int_equal(info[i].sys_image_guid, info[i].node_guid);
	}
	assert_true(info[0].node_guid != info[1].node_guid);
}

static void programs_open_their_fabrics_devices(void **state)
{
	struct abi_device_info info;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(opens(&host[i], ABI_OPEN_LIST, &info), 0);
		assert_string_equal(info.name, "softib0");
		assert_int_equal(opens(&host[i], ABI_OPEN_UVERBS, NULL), 0);
	}
	host_stop(&host[0]);
	assert_int_equal(opens(&host[1], ABI_OPEN_LIST, &info), 0);
	assert_int_equal(opens(&host[1], ABI_OPEN_UVERBS, NULL), 0);
}

/* --- clients --- */

static char journal[200];

static int note(const char *what, const struct ib_device *device)
{
	size_t len = strlen(journal);

	snprintf(journal + len, sizeof(journal) - len, "%s%d:%s ", what,
		 device->rt == host[1].rt, device->node_name);
	return 0;
}

static int add_device(struct ib_device *device)
{
	return note("+", device);
}

static void remove_device(struct ib_device *device, void *data)
{
	note("-", device);
}

static const struct ib_client client = {
	.name = "test", .add = add_device, .remove = remove_device};

static void expect(const char *text)
{
	assert_string_equal(journal, text);
	journal[0] = 0;
}

/* One client is registered with a fabric, then with the other; the first fabric ends, and the
 * second one, its client and the MAD layer there go on; then the first one is made anew. */
static void a_client_meets_the_devices_of_its_fabrics(void **state)
{
	assert_int_equal(ib_register_client(host[0].rt, &client), 0);
	expect("+0:n1 +0:n2 ");
	assert_int_equal(ib_register_client(host[0].rt, &client), -EEXIST);
	hca_destroy(host[1].hca[1]);
	expect(""); /* the other fabric's devices are nothing to it */
	assert_int_equal(hca_create(host[1].set, topo_find(host[1].topo, "n2"), &host[1].hca[1]), 0);
	assert_int_equal(ib_register_client(host[1].rt, &client), 0);
	expect("+1:n1 +1:n2 ");
	ib_unregister_client(host[0].rt, &client);
	expect("-0:n1 -0:n2 ");
	host_stop(&host[0]);
	expect("");
	assert_null(ib_get_client_data(&host[1].hca[0]->ib, &client));
	assert_ptr_equal(ib_device_get_by_name(host[1].rt, "n2", "softib0"), &host[1].hca[1]->ib);
	assert_int_equal(opens(&host[1], ABI_OPEN_UVERBS, NULL), 0);
	host_start(&host[0]);
	expect("");
	assert_int_equal(opens(&host[0], ABI_OPEN_UVERBS, NULL), 0);
	ib_unregister_client(host[1].rt, &client);
	expect("-1:n1 -1:n2 ");
}

/* Peers may not know yet that the adapter was gone: its new queue pairs are none that they knew. */
static void an_adapter_that_returns_hands_out_other_numbers(void **state)
{
	struct host *h = &host[0];
	struct hca_key before_key = {0}, after_key = {0};
	struct hca_qp before = {0}, after = {0};
	const int node = h->hca[1]->node;
	u32 key[2];

	assert_int_equal(hca_qpn_alloc(h->hca[1], &before, 0), 0);
	assert_int_equal(hca_key_alloc(h->hca[1], &before_key, &key[0]), 0);
	hca_qpn_free(h->hca[1], &before);
	hca_key_free(h->hca[1], key[0]);
	hca_destroy(h->hca[1]);
	assert_int_equal(hca_create(h->set, node, &h->hca[1]), 0);
	assert_int_equal(hca_qpn_alloc(h->hca[1], &after, 0), 0);
	assert_int_equal(hca_key_alloc(h->hca[1], &after_key, &key[1]), 0);
	assert_true(after.ib.qp_num > before.ib.qp_num);
	assert_true(key[1] >> 8 > key[0] >> 8);
	hca_qpn_free(h->hca[1], &after);
	hca_key_free(h->hca[1], key[1]);
}

/* A number that is reserved is the next one of nobody else, however far the circle has gone. */
static void a_reserved_number_is_left_out(void **state)
{
	struct hca *hca = host[0].hca[1];
	struct hca_qp qp[3] = {0};
	u32 number;

	assert_int_equal(hca_qpn_reserve(&hca->ib, &number), 0);
	hca->next_qpn = number;
	assert_int_equal(hca_qpn_alloc(hca, &qp[0], 0), 0);
	assert_int_equal(qp[0].ib.qp_num, number + 1);
	assert_int_equal(hca_qpn_alloc(hca, &qp[1], number), 0);
	assert_int_equal(qp[1].ib.qp_num, number);
	hca_qpn_free(hca, &qp[1]);
	hca->next_qpn = number; /* it is reserved still */
	assert_int_equal(hca_qpn_alloc(hca, &qp[1], 0), 0);
	assert_int_equal(qp[1].ib.qp_num, number + 2);
	hca_qpn_release(&hca->ib, number);
	hca->next_qpn = number;
	assert_int_equal(hca_qpn_alloc(hca, &qp[2], 0), 0);
	assert_int_equal(qp[2].ib.qp_num, number);
	for (int i = 0; i < 3; i++)
		hca_qpn_free(hca, &qp[i]);
}

/* --- faults --- */

static void rules_and_links_stay_in_their_fabric(void **state)
{
	char err[200];
	uint32_t epoch[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(hca_page_share(host[i].hca[0]), 0);
		epoch[i] = host[i].hca[0]->route_epoch;
	}
	assert_true(fab_fault_add(host[0].fab, "link n1:1 drop", 0, err, sizeof(err)) > 0);
	assert_int_not_equal(host[0].hca[0]->route_epoch, epoch[0]);
	assert_int_equal(host[1].hca[0]->route_epoch, epoch[1]);
	assert_false(host[0].hca[0]->shared->creation_faults);
	assert_true(fab_fault_add(host[0].fab, "node n1 fail qp", 0, err, sizeof(err)) > 0);
	assert_true(host[0].hca[0]->shared->creation_faults);
	assert_false(host[1].hca[0]->shared->creation_faults);
	assert_int_equal(fab_link_set(host[0].fab, host[0].hca[0]->node, 1, false), 0);
	assert_false(fab_link_plugged(host[0].fab, host[0].hca[0]->node, 1));
	assert_true(fab_link_plugged(host[1].fab, host[1].hca[0]->node, 1));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(names_are_each_fabrics_own),
		CASE(guids_differ),
		CASE(programs_open_their_fabrics_devices),
		CASE(an_adapter_that_returns_hands_out_other_numbers),
		CASE(a_reserved_number_is_left_out),
		CASE(a_client_meets_the_devices_of_its_fabrics),
		CASE(rules_and_links_stay_in_their_fabric),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
