/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A query to the subnet administrator: the path to the port of GUID `dguid`. add() waits
 * for the answer, which comes by a callback.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <rdma/ib_sa.h>

#define TIMEOUT_MS 5000

static unsigned long long dguid;
module_param(dguid, ullong, 0444);
MODULE_PARM_DESC(dguid, "GUID of the port that the path leads to");

static struct ib_sa_client sa_client;

struct query {
	struct completion done;
	struct sa_path_rec path;
	int status;
};

static void on_path(int status, struct sa_path_rec *resp, unsigned int num_prs, void *context)
{
	struct query *query = context;

	query->status = status;
	if (!status)
		query->path = *resp;
	complete(&query->done);
}

static int path_add(struct ib_device *device)
{
	struct query query = {.path = {.numb_path = 1, .reversible = 1}};
	u32 port = rdma_start_port(device);
	int ret = ib_query_gid(device, port, 0, &query.path.sgid);

	if (ret)
		return ret;
	query.path.dgid.global.subnet_prefix = query.path.sgid.global.subnet_prefix;
	query.path.dgid.global.interface_id = cpu_to_be64(dguid);
	init_completion(&query.done);
	ret = ib_sa_path_rec_get(&sa_client, device, port, &query.path,
				 IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_NUMB_PATH |
					 IB_SA_PATH_REC_REVERSIBLE,
				 TIMEOUT_MS, GFP_KERNEL, on_path, &query, NULL);
	if (ret < 0)
		return ret;
	wait_for_completion(&query.done);
	if (query.status)
		pr_err("no path to 0x%llx: error %d\n", dguid, query.status);
	else
		pr_info("path to 0x%llx: dlid %u, sl %u\n", dguid,
			be32_to_cpu(sa_path_get_dlid(&query.path)), query.path.sl);
	return 0;
}

static struct ib_client client = {.name = "path_query", .add = path_add};

static int __init path_init(void)
{
	int ret;

	ib_sa_register_client(&sa_client);
	ret = ib_register_client(&client);
	if (ret)
		ib_sa_unregister_client(&sa_client);
	return ret;
}

static void __exit path_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(path_init);
module_exit(path_exit);
MODULE_LICENSE("Dual BSD/GPL");
