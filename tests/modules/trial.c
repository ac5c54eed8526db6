/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A module for tests of the loader: a client that does what its parameter `what` says, at
 * the place that the parameter's name tells, or nothing in particular.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "what to do, and where");
static int count = 1;
module_param(count, int, 0444);
static bool verbose;
module_param(verbose, bool, 0444);

static struct ib_sa_client sa_client;
static struct completion answered;
static struct work_struct work;
static struct delayed_work later;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_qp *qp;

static bool is(const char *trial)
{
	return !strcmp(what, trial);
}

static void *nowhere(void)
{
	void *volatile at = (void *)16;

	return at;
}

static void on_work(struct work_struct *w)
{
	msleep(1);
	pr_info("work has run\n");
	complete(&answered);
}

static void on_answer(int status, struct sa_path_rec *resp, unsigned int num, void *context)
{
	if (is("crash-in-handler"))
		memset(nowhere(), 0, 8);
	if (is("sleep-in-handler"))
		msleep(1);
	pr_info("answer %d, dlid %d\n", status, resp ? be32_to_cpu(sa_path_get_dlid(resp)) : 0);
	complete(&answered);
}

/* a path to itself: the subnet administrator's answer comes by the loop */
static void ask(struct ib_device *device)
{
	struct sa_path_rec rec = {.numb_path = 1};

	ib_query_gid(device, 1, 0, &rec.sgid);
	rec.dgid = rec.sgid;
	if (ib_sa_path_rec_get(&sa_client, device, 1, &rec,
			       IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_NUMB_PATH,
			       5000, GFP_KERNEL, on_answer, NULL, NULL) < 0)
		pr_err("no query");
	else
		wait_for_completion(&answered);
}

static void nothing_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
			     struct ib_mad_recv_wc *wc)
{
	ib_free_recv_mad(wc);
}

static void leave_things(struct ib_device *device)
{
	struct ib_mad_reg_req req = {.mgmt_class = 0x30, .mgmt_class_version = 1, .oui = {0, 0, 1}};
	struct ib_cq_init_attr attr = {.cqe = 4};
	struct ib_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_recv_wr = 1},
				       .qp_type = IB_QPT_UD};

	pd = ib_alloc_pd(device, 0);
	cq = ib_create_cq(device, NULL, NULL, NULL, &attr);
	init.send_cq = init.recv_cq = cq;
	qp = ib_create_qp(pd, &init);
	req.method_mask[0] = 1ul << IB_MGMT_METHOD_GET;
	ib_register_mad_agent(device, 1, IB_QPT_GSI, &req, 0, NULL, nothing_received, NULL, 0);
	ib_create_cm_id(device, NULL, NULL);
	schedule_delayed_work(&later, 1000000);
}

static int overflow(volatile char *above)
{
	volatile char here[4096];

	here[0] = above[0];
	return above[0] ? 0 : overflow(here) + here[0];
}

static int add_one(struct ib_device *device)
{
	char first = 0;

	if (is("fail-in-add"))
		return -ENOSYS;
	if (is("overflow"))
		overflow(&first);
	if (is("call-nothing"))
		((void (*)(void))nowhere())();
	if (is("bad-pointer"))
		ib_dealloc_pd(nowhere());
	if (is("bug"))
		BUG_ON(device != NULL);
	if (is("ask") || is("crash-in-handler") || is("sleep-in-handler"))
		ask(device);
	if (is("work")) {
		schedule_work(&work);
		wait_for_completion(&answered);
	}
	if (is("leak") || is("crash-with-things"))
		leave_things(device);
	if (is("crash-with-things"))
		memset(nowhere(), 0, 8);
	if (is("sleep-for-ever"))
		wait_for_completion(&answered);
	pr_info("add %s, count %d%s\n", device->name, count, verbose ? ", verbose" : "");
	return 0;
}

static void remove_one(struct ib_device *device, void *client_data)
{
	msleep(1);
	if (is("crash-in-remove"))
		memset(nowhere(), 0, 8);
	pr_info("remove %s\n", device->name);
}

static struct ib_client client = {.name = "trial", .add = add_one, .remove = remove_one};

static int __init trial_init(void)
{
	init_completion(&answered);
	INIT_WORK(&work, on_work);
	INIT_DELAYED_WORK(&later, on_work);
	if (is("fail"))
		return -EPERM;
	if (is("crash"))
		memset(nowhere(), 0, 8);
	if (is("use"))
		__module_get(THIS_MODULE);
	ib_sa_register_client(&sa_client);
	return ib_register_client(&client);
}

static void __exit trial_exit(void)
{
	if (is("leave-client"))
		return;
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(trial_init);
module_exit(trial_exit);
MODULE_LICENSE("Dual BSD/GPL");
