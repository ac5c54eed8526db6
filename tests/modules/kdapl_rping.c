/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The server that librdmacm's rping talks to, as a consumer of kDAPL. The client
 * announces a buffer by a message of 16 bytes: its address, key and size in network
 * order. The server reads it by RDMA and says so by a message; then the client announces
 * another, where the server writes what it has read.
 */
#include <dat/kdat.h>
#include <linux/module.h>
#include <linux/slab.h>

#define PORT	   7174
#define DATA_BYTES 65536
#define EVENTS	   32

struct announcement {
	__be64 address;
	__be32 key, size;
} __attribute__((packed));

/** struct conn - @writes: the next announcement is of a buffer to write into */
struct conn {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	struct announcement in, out;
	bool writes;
	u8 data[DATA_BYTES];
};

enum { RECV, READ };

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, evd;
static DAT_PZ_HANDLE pz;
static DAT_PSP_HANDLE psp;
static int failures;

#define must(call)                                                                       \
	do {                                                                             \
		DAT_RETURN ret_ = (call);                                                \
		if (ret_ != DAT_SUCCESS) {                                               \
			failures++;                                                      \
			pr_err("%s: %#x\n", #call, ret_);                                \
		}                                                                        \
	} while (0)

static DAT_LMR_TRIPLET part(const struct conn *c, const void *at, size_t bytes)
{
	return (DAT_LMR_TRIPLET){.lmr_context = c->key,
				 .virtual_address = (uintptr_t)at,
				 .segment_length = bytes};
}

static void post_recv(struct conn *c)
{
	DAT_LMR_TRIPLET iov = part(c, &c->in, sizeof(c->in));

	must(dat_ep_post_recv(c->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = RECV}, 0));
}

/* behind what was posted before: the client may go on */
static void go_on(struct conn *c)
{
	DAT_LMR_TRIPLET iov = part(c, &c->out, sizeof(c->out));

	post_recv(c);
	must(dat_ep_post_send(c->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = RECV},
			      DAT_COMPLETION_SUPPRESS_FLAG));
	c->writes = !c->writes;
}

static void on_announcement(struct conn *c)
{
	const u32 size = be32_to_cpu(c->in.size);
	const DAT_RMR_TRIPLET buffer = {.rmr_context = be32_to_cpu(c->in.key),
					.target_address = be64_to_cpu(c->in.address),
					.segment_length = size};
	DAT_LMR_TRIPLET iov = part(c, c->data, size);

	if (size > DATA_BYTES) {
		dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	} else if (!c->writes) {
		must(dat_ep_post_rdma_read(c->ep, 1, &iov,
					   (DAT_DTO_COOKIE){.as_64 = READ}, &buffer, 0));
	} else {
		must(dat_ep_post_rdma_write(c->ep, 1, &iov,
					    (DAT_DTO_COOKIE){.as_64 = RECV}, &buffer,
					    DAT_COMPLETION_SUPPRESS_FLAG));
		go_on(c);
	}
}

static void close_conn(struct conn *c)
{
	if (c->ep)
		must(dat_ep_free(c->ep));
	if (c->lmr)
		must(dat_lmr_free(c->lmr));
	kfree(c);
}

static void on_request(DAT_CR_HANDLE cr)
{
	struct conn *c = kzalloc(sizeof(*c), GFP_KERNEL);

	must(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL,
			     (DAT_REGION_DESCRIPTION){.for_va = c}, sizeof(*c), pz,
			     DAT_MEM_PRIV_READ_FLAG | DAT_MEM_PRIV_WRITE_FLAG, 0, &c->lmr,
			     &c->key, NULL, NULL, NULL));
	must(dat_ep_create(ia, pz, evd, evd, evd, NULL, &c->ep));
	must(dat_set_consumer_context(c->ep, (DAT_CONTEXT){.as_ptr = c}));
	post_recv(c);
	must(dat_cr_accept(cr, c->ep, 0, NULL));
}

static struct conn *conn_of(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context = {.as_ptr = NULL};

	must(dat_get_consumer_context(ep, &context));
	return context.as_ptr;
}

static void on_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more_events)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		on_request(event->event_data.cr_arrival_event_data.cr_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		break;
	case DAT_DTO_COMPLETION_EVENT:
		if (dto->status == DAT_DTO_ERR_FLUSHED)
			break;
		failures += dto->status != DAT_DTO_SUCCESS;
		if (dto->user_cookie.as_64 == RECV)
			on_announcement(conn_of(dto->ep_handle));
		else
			go_on(conn_of(dto->ep_handle));
		break;
	default:
		pr_info("the connection is over: %#x\n", event->event_number);
		close_conn(conn_of(event->event_data.connect_event_data.ep_handle));
	}
}

static int __init rping_init(void)
{
	const DAT_UPCALL_OBJECT upcall = {NULL, on_event};
	DAT_PROVIDER_INFO provider, *list[] = {&provider};
	DAT_COUNT n = 0;

	must(dat_registry_list_providers(1, &n, list));
	if (!n || dat_ia_open(provider.ia_name, 8, &async_evd, &ia) != DAT_SUCCESS)
		return -ENODEV;
	must(dat_pz_create(ia, &pz));
	must(dat_evd_kcreate(ia, EVENTS, DAT_UPCALL_MANY, &upcall, DAT_EVD_DEFAULT_FLAG,
			     &evd));
	must(dat_psp_create(ia, PORT, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	return 0;
}

static void __exit rping_exit(void)
{
	must(dat_psp_free(psp));
	must(dat_evd_free(evd));
	must(dat_pz_free(pz));
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	pr_info("over, %d failures\n", failures);
}

module_init(rping_init);
module_exit(rping_exit);
MODULE_LICENSE("Dual BSD/GPL");
