/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events that queue pairs count for their ports: those of the kernel engine, of the programs that run, and of those
 * that have ended. The names are those of the kernel's drivers (drivers/infiniband/sw/rxe/rxe_hw_counters.c; the time-out's
 * is mlx5's).
 */
#include "hca/private.h"

_Static_assert((int)TP_COUNTERS == ABI_COUNTERS, "a program counts as many");

static const char *const names[ABI_COUNTERS] = {
	[TP_DUPLICATE_REQUEST] = "duplicate_request",
	[TP_OUT_OF_SEQUENCE] = "out_of_seq_request",
	[TP_RNR_NAK_SENT] = "send_rnr_err",
	[TP_RNR_NAK_RECEIVED] = "rcvd_rnr_err",
	[TP_SEQUENCE_NAK_RECEIVED] = "rcvd_seq_err",
	[TP_TIMEOUT] = "local_ack_timeout_err",
	[TP_RETRY] = "completer_retry_err",
	[TP_RETRY_EXCEEDED] = "retry_exceeded_err",
	[TP_RNR_RETRY_EXCEEDED] = "retry_rnr_exceeded_err",
	[TP_DUPLICATE_RESPONSE] = "duplicate_response",
};

const char *hca_counter_name(unsigned i)
{
	return names[i];
}

/* Return: what stays when a program ends, of all ports; NULL: no memory */
static struct abi_counters *kept(struct hca *hca)
{
	if (!hca->counted)
		hca->counted = rt_zalloc(hca->ib.phys_port_cnt * sizeof(*hca->counted));
	return hca->counted;
}

void hca_count(void *ctx, unsigned port_num, enum tp_counter counter)
{
	struct abi_counters *counters = kept(ctx);

	if (counters)
		abi_count(&counters[port_num - 1], counter);
}

static void add(uint64_t values[ABI_COUNTERS], const struct abi_counters *counters)
{
	for (unsigned i = 0; i < ABI_COUNTERS; i++)
		values[i] += abi_counted(counters, i);
}

static bool is_zero(const uint64_t values[ABI_COUNTERS])
{
	for (unsigned i = 0; i < ABI_COUNTERS; i++)
		if (values[i])
			return false;
	return true;
}

void hca_counters_keep(struct hca_user *user)
{
	struct hca *hca = user->hca;

	for (unsigned p = 0; p < hca->ib.phys_port_cnt; p++) {
		uint64_t values[ABI_COUNTERS] = {0};

		add(values, &user->counters[p]);
		if (is_zero(values) || !kept(hca))
			continue;
		for (unsigned i = 0; i < ABI_COUNTERS; i++)
			atomic_fetch_add_explicit(&hca->counted[p].count[i], values[i], memory_order_relaxed);
	}
}

void hca_counters(const struct hca *hca, unsigned port_num, uint64_t values[ABI_COUNTERS])
{
	const struct ib_ucontext *context;

	memset(values, 0, ABI_COUNTERS * sizeof(*values));
	if (hca->counted)
		add(values, &hca->counted[port_num - 1]);
	list_for_each_entry(context, &hca->ib.ucontext_list, node)
		add(values, &container_of(context, struct hca_user, ib)->counters[port_num - 1]);
}
