/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A consumer of kDAPL: load the module kdapl first. Each node listens at one connection
 * qualifier, and answers a message by writing it, in capitals, into the sender's memory.
 * With the parameter `peer`, an IPv4 address, the init function connects there, sends
 * `text` together with the key of a remote memory region, and prints what is in that
 * region afterwards.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dat/kdat.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>

#define CONN_QUAL  1745
#define TEXT_BYTES 64
#define EVENTS	   64

static char *peer = "";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IPv4 address of a node to send a message to; none: only listen");
static char *text = "hello";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "the message");

/** struct message - and where its answer is to be written */
struct message {
	DAT_RMR_TRIPLET answer;
	char text[TEXT_BYTES];
};

/** struct end - of a connection, with the memory of one message and of one answer */
struct end {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_CONTEXT key;
	struct message message;
	char answer[TEXT_BYTES];
	bool asks;
	DAT_EVENT_NUMBER over; /* how the connection of who asks ended */
	struct completion done;
};

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, evd;
static DAT_PZ_HANDLE pz;
static DAT_PSP_HANDLE psp;

/* Print what failed. Return: did it? */
static bool fails(const char *what, DAT_RETURN ret)
{
	const char *type, *subtype;

	if (ret == DAT_SUCCESS)
		return false;
	dat_strerror(ret, &type, &subtype);
	pr_err("%s: %s, %s\n", what, type, subtype);
	return true;
}
#define FAILS(call) fails(#call, call)

/* --- an end --- */

static DAT_LMR_TRIPLET part(const struct end *end, const void *at, size_t bytes)
{
	return (DAT_LMR_TRIPLET){.lmr_context = end->key,
				 .virtual_address = (uintptr_t)at,
				 .segment_length = bytes};
}

static void close_end(struct end *end)
{
	if (end->ep)
		dat_ep_free(end->ep);
	if (end->rmr)
		dat_rmr_free(end->rmr);
	if (end->lmr)
		dat_lmr_free(end->lmr);
	kfree(end);
}

static struct end *open_end(bool asks)
{
	struct end *end = kzalloc(sizeof(*end), GFP_KERNEL);
	const DAT_REGION_DESCRIPTION memory = {.for_va = end};
	DAT_LMR_TRIPLET iov;

	if (!end)
		return NULL;
	end->asks = asks;
	init_completion(&end->done);
	if (FAILS(dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, memory, sizeof(*end), pz,
				  DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_OPTIMIZE_DONT_CARE,
				  &end->lmr, &end->key, NULL, NULL, NULL)) ||
	    FAILS(dat_rmr_create(pz, &end->rmr)) ||
	    FAILS(dat_ep_create(ia, pz, evd, evd, evd, NULL, &end->ep))) {
		close_end(end);
		return NULL;
	}
	dat_set_consumer_context(end->ep, (DAT_CONTEXT){.as_ptr = end});
	iov = part(end, &end->message, sizeof(end->message));
	if (!asks)
		FAILS(dat_ep_post_recv(end->ep, 1, &iov, (DAT_DTO_COOKIE){.as_ptr = end},
				       DAT_COMPLETION_DEFAULT_FLAG));
	return end;
}

/* --- who listens --- */

static void on_request(const DAT_CR_ARRIVAL_EVENT_DATA *request)
{
	struct end *end = open_end(false);

	if (!end)
		dat_cr_reject(request->cr_handle);
	else
		FAILS(dat_cr_accept(request->cr_handle, end->ep, 0, NULL));
}

static void on_message(struct end *end)
{
	DAT_LMR_TRIPLET iov = part(end, end->answer, TEXT_BYTES);

	end->message.text[TEXT_BYTES - 1] = 0;
	pr_info("received '%s'\n", end->message.text);
	for (int i = 0; i < TEXT_BYTES; i++)
		end->answer[i] = (char)toupper(end->message.text[i]);
	FAILS(dat_ep_post_rdma_write(end->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0},
				     &end->message.answer, DAT_COMPLETION_SUPPRESS_FLAG));
	FAILS(dat_ep_disconnect(end->ep, DAT_CLOSE_GRACEFUL_FLAG)); /* after the write */
}

/* --- who asks --- */

/* The request that binds the region is before the message, and so complete when that
 * arrives. */
static void ask(struct end *end)
{
	const DAT_LMR_TRIPLET memory = part(end, end->answer, TEXT_BYTES);
	DAT_LMR_TRIPLET iov = part(end, &end->message, sizeof(end->message));
	DAT_RMR_CONTEXT key;

	if (FAILS(dat_rmr_bind(end->rmr, &memory, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, end->ep,
			       (DAT_RMR_COOKIE){.as_ptr = end},
			       DAT_COMPLETION_SUPPRESS_FLAG, &key)))
		return;
	end->message.answer = (DAT_RMR_TRIPLET){.rmr_context = key,
						.target_address = memory.virtual_address,
						.segment_length = TEXT_BYTES};
	snprintf(end->message.text, TEXT_BYTES, "%s", text);
	FAILS(dat_ep_post_send(end->ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 0},
			       DAT_COMPLETION_SUPPRESS_FLAG));
}

/* --- events --- */

static void on_connection(const DAT_EVENT *event)
{
	DAT_CONTEXT context;
	struct end *end;

	if (FAILS(dat_get_consumer_context(event->event_data.connect_event_data.ep_handle,
					   &context)))
		return;
	end = context.as_ptr;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		if (end->asks)
			ask(end);
	} else if (end->asks) {
		end->over = event->event_number;
		complete(&end->done);
	} else {
		close_end(end);
	}
}

static void on_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more_events)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		on_request(&event->event_data.cr_arrival_event_data);
	else if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		on_connection(event);
	else if (dto->status == DAT_DTO_SUCCESS)
		on_message(dto->user_cookie.as_ptr);
}

/* --- the module --- */

static int send_message(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct end *end = open_end(true);

	if (!end)
		return -ENOMEM;
	if (inet_pton(AF_INET, peer, &addr.sin_addr) != 1 ||
	    FAILS(dat_ep_connect(end->ep, (DAT_IA_ADDRESS_PTR)&addr, CONN_QUAL,
				 DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_DEFAULT_FLAG))) {
		close_end(end);
		return -EINVAL;
	}
	wait_for_completion(&end->done);
	if (end->over == DAT_CONNECTION_EVENT_DISCONNECTED)
		pr_info("the answer is '%s'\n", end->answer);
	else
		pr_err("no connection to %s: event %#x\n", peer, end->over);
	close_end(end);
	return 0;
}

static int open_adapter(void)
{
	const DAT_UPCALL_OBJECT upcall = {NULL, on_event};
	DAT_PROVIDER_INFO provider, *list[] = {&provider};
	DAT_COUNT found = 0;

	if (FAILS(dat_registry_list_providers(1, &found, list)) || !found)
		return -ENODEV;
	if (FAILS(dat_ia_open(provider.ia_name, EVENTS, &async_evd, &ia)))
		return -ENODEV;
	if (FAILS(dat_pz_create(ia, &pz)) ||
	    FAILS(dat_evd_kcreate(ia, EVENTS, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				  DAT_EVD_DEFAULT_FLAG, &evd)) ||
	    FAILS(dat_psp_create(ia, CONN_QUAL, evd, DAT_PSP_CONSUMER_FLAG, &psp)))
		return -EIO;
	return 0;
}

static int __init message_init(void)
{
	int ret = open_adapter();

	if (!ret && *peer)
		ret = send_message();
	if (ret && ia)
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return ret;
}

static void __exit message_exit(void)
{
	dat_psp_free(psp);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); /* frees what is left */
}

module_init(message_init);
module_exit(message_exit);
MODULE_LICENSE("Dual BSD/GPL");
