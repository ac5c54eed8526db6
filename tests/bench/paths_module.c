/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * paths_module: how many path records a client of the midlayer asks for in a second, the median of
 * rounds of `queries` queries by ib_sa_path_rec_get(), from the device's first port to the LIDs 1 to `dlids`.
 *
 * `window` of them are under way at once. Each names a service of its own, so that no cache answers
 * it; with `cached=1` all name the same one. The figure is in softibd's log.
 */
#include <stdlib.h>
#include <time.h>

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_sa.h>

#define TIMEOUT_MS 5000
#define ROUNDS_MAX 100

static uint queries = 1000, rounds = 20, window = 64, dlids = 3, cached;
module_param(queries, uint, 0444);
module_param(rounds, uint, 0444);
module_param(window, uint, 0444);
module_param(dlids, uint, 0444);
module_param(cached, uint, 0444);

static struct ib_sa_client sa_client;

/** struct round - queries that are under way; @failed: without the path that they asked for */
struct round {
	struct ib_device *device;
	struct sa_path_rec want;
	unsigned int sent, answered, failed;
	struct completion done;
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

static void ask(struct round *round);

static void on_path(int status, struct sa_path_rec *path, unsigned int num_prs, void *context)
{
	struct round *round = context;
	const u32 dlid = path ? be32_to_cpu(sa_path_get_dlid(path)) : 0;

	round->failed += status || dlid < 1 || dlid > dlids;
	if (++round->answered == queries)
		complete(&round->done);
	else if (round->sent < queries)
		ask(round);
}

static void ask(struct round *round)
{
	static u64 service;
	struct sa_path_rec want = round->want;

	want.service_id = cpu_to_be64(cached ? 1 : ++service);
	sa_path_set_dlid(&want, 1 + round->sent++ % dlids);
	if (ib_sa_path_rec_get(&sa_client, round->device, 1, &want,
			       IB_SA_PATH_REC_SERVICE_ID | IB_SA_PATH_REC_SLID | IB_SA_PATH_REC_DLID |
				       IB_SA_PATH_REC_NUMB_PATH,
			       TIMEOUT_MS, GFP_KERNEL, on_path, round, NULL) < 0)
		on_path(-ENOMEM, NULL, 0, round);
}

/* Return: thousands of queries in a second; 0: some failed */
static u64 measure(struct round *round)
{
	const u64 start = now_ns();

	round->sent = round->answered = 0;
	init_completion(&round->done);
	while (round->sent < window && round->sent < queries)
		ask(round);
	wait_for_completion(&round->done);
	return round->failed ? 0 : (u64)queries * 1000000 / (now_ns() - start);
}

static int compare(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int paths_add(struct ib_device *device)
{
	struct round *round = kzalloc(sizeof(*round), GFP_KERNEL);
	struct ib_port_attr port;
	u64 found[ROUNDS_MAX];

	if (!round || ib_query_port(device, 1, &port)) {
		kfree(round);
		return -ENOMEM;
	}
	round->device = device;
	round->want.numb_path = 1;
	sa_path_set_slid(&round->want, port.lid);
	for (uint i = 0; i < rounds; i++)
		found[i] = measure(round);
	qsort(found, rounds, sizeof(found[0]), compare);
	if (round->failed)
		pr_err("%u queries failed\n", round->failed);
	else
		pr_info("paths_%s %llu k/s\n", cached ? "cached" : "midlayer",
			(unsigned long long)found[rounds / 2]);
	kfree(round);
	return 0;
}

static struct ib_client client = {.name = "paths_module", .add = paths_add};

static int __init paths_init(void)
{
	int ret;

	if (!queries || !rounds || rounds > ROUNDS_MAX || !window || !dlids)
		return -EINVAL;
	ib_sa_register_client(&sa_client);
	ret = ib_register_client(&client);
	if (ret)
		ib_sa_unregister_client(&sa_client);
	return ret;
}

static void __exit paths_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(paths_init);
module_exit(paths_exit);
MODULE_LICENSE("Dual BSD/GPL");
