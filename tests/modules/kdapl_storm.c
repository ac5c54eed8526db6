/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls of kDAPL in a random order, with handles of all kinds, that are valid, freed or
 * of another type: nothing may crash, and all that is left is freed when the IA is
 * closed. Connections lead to the node itself. The same `seed` gives the same calls.
 */
#include <arpa/inet.h>
#include <dat/kdat.h>
#include <linux/delay.h>
#include <linux/module.h>

static unsigned int seed = 1, steps = 5000;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the random numbers");
module_param(steps, uint, 0444);
MODULE_PARM_DESC(steps, "how many calls");

#define HANDLES	   24 /* of each kind: the last ones that there were */
#define DATA_BYTES 4096
#define QUALS	   4
#define FIRST_QUAL 9000

enum { EVD, PZ, EP, LMR, RMR, PSP, RSP, CR, SRQ, KINDS };

static DAT_HANDLE handle[KINDS][HANDLES];
static u32 key[HANDLES];	/* of LMRs, and of RMRs */
static DAT_EP_HANDLE newest[2]; /* the ends that were connected last */
static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd;
static u8 data[DATA_BYTES];
static struct sockaddr_storage own;
static u64 random_state;
static unsigned int good, bad, connected, moved;

static u32 random_below(u32 n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(random_state >> 33) % n;
}

/* Few zones and EVDs: objects often have the same. */
static u32 any_slot(int kind)
{
	return random_below(kind == PZ ? 2 : kind == EVD ? 4 : HANDLES);
}

/* seldom of another kind */
static DAT_HANDLE any(int kind)
{
	if (kind == EP && connected > 1 && random_below(2))
		return newest[random_below(2)];
	return handle[random_below(50) ? kind : (int)random_below(KINDS)][any_slot(kind)];
}

static void note(DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		good++;
	else
		bad++;
}

static void on_event(DAT_PVOID context, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EVENT other;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		handle[CR][random_below(HANDLES)] =
			event->event_data.cr_arrival_event_data.cr_handle;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		newest[connected++ % 2] = event->event_data.connect_event_data.ep_handle;
	moved += event->event_number == DAT_DTO_COMPLETION_EVENT &&
		 event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
	if (!random_below(10))
		note(dat_evd_dequeue(event->evd_handle, &other));
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT && random_below(4))
		note(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle,
				   any(EP), 0, NULL));
	if (!random_below(40))
		note(dat_ep_free(any(EP)));
	if (!random_below(200))
		note(dat_evd_free(event->evd_handle));
}

static DAT_LMR_TRIPLET local(void)
{
	u32 at = random_below(DATA_BYTES);

	return (DAT_LMR_TRIPLET){.lmr_context = key[random_below(HANDLES)],
				 .virtual_address = (uintptr_t)data + at,
				 .segment_length = random_below(DATA_BYTES - at + 1)};
}

/* --- one call each --- */

static void create_some(void)
{
	static const DAT_UPCALL_POLICY policy[] = {DAT_UPCALL_DISABLE,
						   DAT_UPCALL_SINGLE_INSTANCE,
						   DAT_UPCALL_MANY, DAT_UPCALL_MANY};
	const DAT_UPCALL_OBJECT upcall = {NULL, on_event};
	const DAT_REGION_DESCRIPTION region = {.for_va = data};
	DAT_SRQ_ATTR attr = {.max_recv_dtos = 1 + (int)random_below(8),
			     .max_recv_iov = 1};
	const u32 qual = FIRST_QUAL + random_below(QUALS), slot = random_below(HANDLES);

	switch (random_below(9)) {
	case 0:
		if (random_below(8) && handle[EVD][3])
			break;
		note(dat_evd_kcreate(ia, 1 + (int)random_below(16),
				     policy[random_below(4)], &upcall,
				     DAT_EVD_DEFAULT_FLAG, &handle[EVD][any_slot(EVD)]));
		break;
	case 1:
		if (random_below(8) && handle[PZ][0] && handle[PZ][1])
			break;
		note(dat_pz_create(ia, &handle[PZ][any_slot(PZ)]));
		break;
	case 2:
	case 3:
		note(dat_ep_create(ia, any(PZ), any(EVD), any(EVD), any(EVD), NULL,
				   &handle[EP][slot]));
		break;
	case 4:
		note(dat_ep_create_with_srq(ia, any(PZ), any(EVD), any(EVD), any(EVD),
					    any(SRQ), NULL, &handle[EP][slot]));
		break;
	case 5:
		note(dat_lmr_kcreate(
			ia, DAT_MEM_TYPE_VIRTUAL, region, DATA_BYTES, any(PZ),
			(DAT_MEM_PRIV_FLAGS)(random_below(4) ? DAT_MEM_PRIV_ALL_FLAG : 0),
			0, &handle[LMR][slot], &key[slot], NULL, NULL, NULL));
		break;
	case 6:
		note(dat_rmr_create(any(PZ), &handle[RMR][slot]));
		break;
	case 7:
		if (random_below(3))
			note(dat_psp_create(ia, qual, any(EVD),
					    (DAT_PSP_FLAGS)random_below(2),
					    &handle[PSP][slot]));
		else
			note(dat_rsp_create(ia, qual, any(EP), any(EVD),
					    &handle[RSP][slot]));
		break;
	default:
		note(dat_srq_create(ia, any(PZ), &attr, &handle[SRQ][slot]));
	}
}

static void free_some(void)
{
	switch (random_below(9)) {
	case 0:
		note(random_below(8) ? DAT_SUCCESS : dat_evd_free(any(EVD)));
		break;
	case 1:
		note(random_below(8) ? DAT_SUCCESS : dat_pz_free(any(PZ)));
		break;
	case 2:
		note(dat_ep_free(any(EP)));
		break;
	case 3:
		note(dat_lmr_free(any(LMR)));
		break;
	case 4:
		note(dat_rmr_free(any(RMR)));
		break;
	case 5:
		note(dat_psp_free(any(PSP)));
		break;
	case 6:
		note(dat_rsp_free(any(RSP)));
		break;
	case 7:
		note(dat_srq_free(any(SRQ)));
		break;
	default:
		note(dat_ep_reset(any(EP)));
	}
}

static void connect_some(void)
{
	switch (random_below(8)) {
	case 0:
	case 1:
	case 2:
		note(dat_ep_connect(any(EP), (DAT_IA_ADDRESS_PTR)&own,
				    FIRST_QUAL + random_below(QUALS),
				    1 + random_below(20000), (int)random_below(56), data,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		break;
	case 3:
	case 4:
		note(dat_cr_accept(any(CR), random_below(3) ? any(EP) : NULL, 0, NULL));
		break;
	case 5:
		note(random_below(2)
			     ? dat_cr_reject(any(CR))
			     : dat_cr_handoff(any(CR), FIRST_QUAL + random_below(QUALS)));
		break;
	case 6:
		if (random_below(4))
			break;
		note(dat_ep_disconnect(any(EP), (DAT_CLOSE_FLAGS)random_below(2)));
		break;
	default:
		note(dat_ep_dup_connect(any(EP), any(EP), 1 + random_below(20000), 0,
					NULL, 0));
	}
}

static void post_some(void)
{
	DAT_LMR_TRIPLET iov = local();
	const DAT_COMPLETION_FLAGS flags = (DAT_COMPLETION_FLAGS)random_below(16);
	const DAT_RMR_TRIPLET remote = {.rmr_context = key[random_below(HANDLES)],
					.target_address = (uintptr_t)data,
					.segment_length = random_below(DATA_BYTES)};
	const DAT_DTO_COOKIE cookie = {.as_64 = 1};

	switch (random_below(6)) {
	case 0:
		note(dat_ep_post_send(any(EP), 1, &iov, cookie, flags));
		break;
	case 1:
		note(dat_ep_post_recv(any(EP), 1, &iov, cookie, flags & 4));
		break;
	case 2:
		note(dat_ep_post_rdma_read(any(EP), 1, &iov, cookie, &remote, flags));
		break;
	case 3:
		note(dat_ep_post_rdma_write(any(EP), 1, &iov, cookie, &remote, flags));
		break;
	case 4:
		note(dat_rmr_bind(any(RMR), &iov, DAT_MEM_PRIV_REMOTE_READ_FLAG, any(EP),
				  cookie, flags, &key[random_below(HANDLES)]));
		break;
	default:
		note(dat_srq_post_recv(any(SRQ), 1, &iov, cookie));
	}
}

static void change_some(void)
{
	DAT_EP_PARAM param = {.pz_handle = any(PZ),
			      .recv_evd_handle = any(EVD),
			      .request_evd_handle = any(EVD),
			      .connect_evd_handle = any(EVD)};
	const u64 mask = random_below(16) * DAT_EP_FIELD_PZ_HANDLE;
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	switch (random_below(6)) {
	case 0:
		note(dat_ep_modify(any(EP), mask, &param));
		break;
	case 1:
		note(dat_evd_resize(any(EVD), 1 + (int)random_below(32)));
		break;
	case 2:
		note(dat_evd_dequeue(any(EVD), &event));
		break;
	case 3:
		note(dat_srq_resize(any(SRQ), 1 + (int)random_below(64)));
		break;
	case 4:
		note(dat_srq_set_lw(any(SRQ), (int)random_below(8)));
		break;
	default:
		note(dat_evd_modify_upcall(
			any(EVD), random_below(2) ? DAT_UPCALL_MANY : DAT_UPCALL_DISABLE,
			DAT_UPCALL_SAME));
	}
}

static void (*const calls[])(void) = {create_some,  create_some, free_some, connect_some,
				      connect_some, post_some,	 post_some, change_some};

static int __init storm_init(void)
{
	DAT_PROVIDER_INFO provider, *list[] = {&provider};
	DAT_IA_ATTR attr;
	DAT_COUNT n = 0;

	random_state = seed;
	dat_registry_list_providers(1, &n, list);
	if (!n || dat_ia_open(provider.ia_name, 4, &async_evd, &ia) != DAT_SUCCESS)
		return -ENODEV;
	dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	memcpy(&own, attr.ia_address_ptr, sizeof(struct sockaddr_in));
	for (unsigned int i = 0; i < steps; i++) {
		calls[random_below(ARRAY_SIZE(calls))]();
		if (!random_below(8))
			msleep(random_below(2));
	}
	pr_info("%u calls succeeded, %u did not; %u ends connected, %u DTOs completed\n",
		good, bad, connected, moved);
	return 0;
}

static void __exit storm_exit(void)
{
	if (dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS)
		pr_err("the IA cannot be closed\n");
}

module_init(storm_init);
module_exit(storm_exit);
MODULE_LICENSE("Dual BSD/GPL");
