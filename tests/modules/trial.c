/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A module for tests of the loader: a client that does what its parameter `what` says, at
 * the place that the parameter's name tells, or nothing in particular.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/timer.h>
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
static int numbers[4] = {1, 2, 3, 4};
static unsigned int num_numbers;
module_param_array(numbers, int, &num_numbers, 0444);
static char *words[2] = {"one", "two"};
module_param_array(words, charp, NULL, 0444);
static unsigned short secret = 7;
module_param(secret, ushort, 0);

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

static volatile unsigned long spun;

static void spin(void)
{
	for (;;)
		spun++;
}

static void on_answer(int status, struct sa_path_rec *resp, unsigned int num, void *context)
{
	if (is("crash-in-handler"))
		memset(nowhere(), 0, 8);
	if (is("sleep-in-handler"))
		msleep(1);
	if (is("spin-in-handler"))
		spin();
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

/* --- timers and threads --- */

static int rings;
static struct completion rung;

static void on_ring(struct timer_list *t)
{
	rings++;
	complete(&rung);
}

static DEFINE_TIMER(bell, on_ring);

static void use_timer(void)
{
	int pending[5];

	init_completion(&rung);
	pending[0] = mod_timer(&bell, jiffies + 1000000);
	pending[1] = mod_timer(&bell, jiffies - 1);
	wait_for_completion(&rung);
	pending[2] = timer_pending(&bell);
	bell.expires = jiffies + 1000000;
	add_timer(&bell);
	pending[3] = del_timer_sync(&bell);
	pending[4] = del_timer(&bell);
	pr_info("timer: %d%d%d%d%d, rung %d\n", pending[0], pending[1], pending[2], pending[3],
		pending[4], rings);
}

static DECLARE_WAIT_QUEUE_HEAD(orders);
static int ordered, done;

static int worker(void *data)
{
	bool is_current = current != NULL;

	while (!kthread_should_stop()) {
		wait_event_interruptible(orders, ordered > done || kthread_should_stop());
		for (; done < ordered; done++)
			cond_resched();
	}
	schedule_timeout(1);
	return is_current ? *(int *)data + done : -1;
}

static int sleeper(void *data)
{
	while (data)
		schedule();
	return 0;
}

static void use_threads(void)
{
	int base = 40, results[2];
	struct task_struct *runs = kthread_run(worker, &base, "worker/%d", 1);
	struct task_struct *never = kthread_create(worker, &base, "never");

	results[1] = kthread_stop(never);
	ordered = 2;
	wake_up(&orders);
	while (done < ordered)
		msleep(1);
	results[0] = kthread_stop(runs);
	pr_info("thread: %d, and %d of one that never ran\n", results[0], results[1]);
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
	mod_timer(&bell, jiffies + 1000000);
	kthread_run(sleeper, device, "sleeper");
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
	if (is("spin"))
		spin();
	if (is("poll-for-ever")) {
		struct ib_cq_init_attr attr = {.cqe = 4};
		struct ib_wc wc;

		cq = ib_create_cq(device, NULL, NULL, NULL, &attr);
		while (!ib_poll_cq(cq, 1, &wc))
			spun++;
	}
	if (is("timer"))
		use_timer();
	if (is("thread"))
		use_threads();
	if (is("array"))
		pr_info("array: %u given, %d %d, %s %s\n", num_numbers, numbers[0], numbers[1],
			words[0], words[1]);
	if (is("ask") || is("crash-in-handler") || is("sleep-in-handler") || is("spin-in-handler"))
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
