/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two fabrics in one process, each with a subnet manager, an SRP target on n1 and an initiator on
 * n2: logins find the targets of their own fabric, and each fabric has its own NBD socket.
 */
#include "../test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca/hca.h"
#include "nbd/nbd.h"
#include "rdma/ib_cm.h"
#include "rdma/ib_sa.h"
#include "sim.h"
#include "ulp/srp/srp.h"
#include "ulp/srpt/srpt.h"

/** struct host - one fabric, its adapters and its subnet manager */
struct host {
	struct sim sim; /* manager.c takes the fabric from it */
	struct plan plan;
	char dir[32];
	struct hca *hca[2];
	struct ib_device *n1, *n2;
	bool logged_in;
	char error[100];
	unsigned int found;
};

static struct host host[2];

/* What the subnet managers report to the simulator is of no interest here. */
void sim_note(struct sim *sim, uint64_t a, uint64_t b)
{
}

void sim_log(struct sim *sim, const char *fmt, ...)
{
}

bool oracle_tables(struct sim *sim)
{
	return true;
}

static void turn(void)
{
	for (int i = 0; i < 2; i++)
		if (host[i].sim.rt)
			rt_posix_turn(host[i].sim.rt);
}

static bool has_path(struct ib_device *device)
{
	struct ib_port_attr attr;

	return !ib_query_port(device, 1, &attr) && attr.state == IB_PORT_ACTIVE && attr.sm_lid;
}

static void host_start(struct host *h)
{
	struct sim *sim = &h->sim;
	char err[200] = "";
	int n = 0;

	*h = (struct host){.sim.plan = &h->plan, .dir = "/tmp/softib-srp-XXXXXX"};
	assert_non_null(mkdtemp(h->dir));
	assert_int_equal(rt_posix_create(&sim->rt), 0);
	assert_int_equal(topo_load("pair", h == host ? "a" : "b", &sim->topo, err, sizeof(err)), 0);
	assert_int_equal(fab_create(sim->rt, sim->topo, &sim->fab), 0);
	assert_int_equal(ib_mad_init(sim->rt), 0);
	assert_int_equal(ib_sa_init(sim->rt), 0);
	assert_int_equal(ib_cm_init(sim->rt), 0);
	assert_int_equal(srpt_init(sim->rt), 0);
	assert_int_equal(srp_init(sim->rt, h->dir), 0);
	assert_int_equal(hca_set_create(sim->rt, sim->fab, &sim->adapters), 0);
	for (int i = 0; i < sim->topo->num_nodes; i++)
		if (sim->topo->node[i].kind == TOPO_CA)
			assert_int_equal(hca_create(sim->adapters, i, &h->hca[n++]), 0);
	h->n1 = ib_device_get_by_name(sim->rt, "n1", "softib0");
	h->n2 = ib_device_get_by_name(sim->rt, "n2", "softib0");
	sim->manager[0] = manager_start(sim, topo_find(sim->topo, "n1"), 0);
	assert_non_null(sim->manager[0]);
	while (!has_path(h->n1) || !has_path(h->n2))
		rt_posix_turn(sim->rt);
}

static void host_stop(struct host *h)
{
	struct sim *sim = &h->sim;

	if (!sim->rt)
		return;
	manager_kill(sim->manager[0]);
	hca_destroy(h->hca[0]);
	hca_destroy(h->hca[1]);
	hca_set_destroy(sim->adapters);
	srp_cleanup(sim->rt);
	srpt_cleanup(sim->rt);
	ib_cm_cleanup(sim->rt);
	ib_sa_cleanup(sim->rt);
	ib_mad_cleanup(sim->rt);
	fab_destroy(sim->fab);
	topo_free(sim->topo);
	rt_posix_destroy(sim->rt);
	sim->rt = NULL;
	rmdir(h->dir);
}

static int64_t balance;

static int setup(void **state)
{
	balance = rt_alloc_balance();
	host_start(&host[0]);
	host_start(&host[1]);
	return 0;
}

static int teardown(void **state)
{
	host_stop(&host[0]);
	host_stop(&host[1]);
	assert_int_equal(rt_alloc_balance(), balance);
	return 0;
}

/* --- targets and initiators --- */

/** struct outcome - of a unit that is added */
struct outcome {
	bool over;
	int result;
	unsigned int lun;
};

static void unit_added(void *ctx, int result, unsigned int lun)
{
	struct outcome *outcome = ctx;

	assert_false(outcome->over);
	*outcome = (struct outcome){true, result, lun};
}

/* Return: what srpt_unit_add() or its callback says */
static int add_unit(struct host *h, const struct srpt_unit_config *config)
{
	struct outcome outcome = {0};
	struct srpt_adding *adding;
	int ret = srpt_unit_add(h->n1, config, unit_added, &outcome, &adding);

	while (!ret && !outcome.over)
		turn();
	if (!ret && !outcome.result)
		assert_int_equal(outcome.lun, 0);
	return ret ? ret : outcome.result;
}

/* n1 serves a disk of @mib MiB of memory. */
static void serve(struct host *h, unsigned int mib)
{
	struct srpt_unit_config config = {
		.slot = 1, .kept_fd = -1, .name = "disk", .block_bytes = 512};

	config.fd = memfd_create("disk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(config.fd >= 0);
	assert_int_equal(ftruncate(config.fd, (off_t)mib << 20), 0);
	assert_int_equal(add_unit(h, &config), 0);
}

static void logged_in(void *ctx, struct srp_session *session, const char *error)
{
	struct host *h = ctx;

	h->logged_in = session != NULL;
	snprintf(h->error, sizeof(h->error), "%s", error ? error : "");
}

static void found(void *ctx, int status, const struct srp_found *found, unsigned int nr)
{
	struct host *h = ctx;
	struct srp_session_config config = {
		.device = h->n2, .name = "n1", .nr_paths = 1, .timeouts = SRPI_TIMEOUTS,
		.command_timeout_s = 30, .done = logged_in, .ctx = h};

	h->found = nr;
	if (status || nr != 1) {
		snprintf(h->error, sizeof(h->error), "%d, %u targets", status, nr);
		return;
	}
	config.target = found->target;
	config.path[0] = found->path;
	assert_int_equal(srp_login(&config), 0);
	assert_int_equal(srp_login(&config), -EEXIST);
}

static void log_in(struct host *h)
{
	assert_false(IS_ERR(srp_discover(h->n2, 1, NULL, 0, found, h)));
}

static int note_session(void *ctx, struct srp_session *session)
{
	struct srp_session_info *info = ctx;

	assert_null(info->device); /* the only one */
	srp_session_describe(session, info);
	return 0;
}

static void expect_disk(struct host *h, unsigned int mib)
{
	struct srp_session_info session = {0};
	struct srp_unit_info unit;

	assert_int_equal(srp_each_session(h->sim.rt, note_session, &session), 0);
	assert_ptr_equal(session.device, h->n2);
	assert_int_equal(session.nr_units, 1);
	srp_unit_describe(srp_find(h->n2, "n1"), 0, &unit);
	assert_int_equal(unit.disk->blocks * unit.disk->block_bytes, mib << 20);
}

/* Return: is there a server of NBD in the folder of @h? */
static bool has_exports(const struct host *h)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char greeting[8];
	ssize_t n = -1;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/nbd", h->dir);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		while ((n = recv(fd, greeting, sizeof(greeting), MSG_DONTWAIT)) < 0)
			turn();
	close(fd);
	turn();
	return n == sizeof(greeting) && !memcmp(greeting, "NBDMAGIC", sizeof(greeting));
}

static void both_log_in(void)
{
	for (int i = 0; i < 2; i++) {
		serve(&host[i], 1u + (unsigned int)i);
		log_in(&host[i]);
	}
	while ((!host[0].logged_in && !host[0].error[0]) ||
	       (!host[1].logged_in && !host[1].error[0]))
		turn();
	for (int i = 0; i < 2; i++) {
		assert_string_equal(host[i].error, "");
		assert_int_equal(host[i].found, 1);
	}
}

static void each_fabric_has_its_target_and_its_sessions(void **state)
{
	both_log_in();
	for (int i = 0; i < 2; i++) {
		expect_disk(&host[i], 1u + (unsigned int)i);
		assert_true(has_exports(&host[i]));
	}
	assert_int_not_equal(srpt_guid(srpt_find(host[0].n1, 1)), srpt_guid(srpt_find(host[1].n1, 1)));
}

static void the_end_of_a_fabric_leaves_the_other_its_disks(void **state)
{
	both_log_in();
	host_stop(&host[0]);
	assert_false(has_exports(&host[0]));
	expect_disk(&host[1], 2);
	assert_true(has_exports(&host[1]));
	assert_int_equal(srpt_unit_remove(host[1].n1, 1, 0), 0);
	assert_null(srpt_find(host[1].n1, 1));
	srp_logout(srp_find(host[1].n2, "n1"));
	assert_false(has_exports(&host[1])); /* it was the fabric's last session */
}

static void a_fabric_starts_its_initiators_once(void **state)
{
	assert_int_equal(srp_init(host[0].sim.rt, host[0].dir), -EEXIST);
	assert_int_equal(srpt_init(host[0].sim.rt), -EEXIST);
}

/** struct files - of a unit that preserves its reservations */
struct files {
	char disk[32], kept[32];
};

static void make_files(struct files *f)
{
	int fd[2];

	*f = (struct files){"/tmp/softib-disk-XXXXXX", "/tmp/softib-kept-XXXXXX"};
	fd[0] = mkstemp(f->disk);
	fd[1] = mkstemp(f->kept);
	assert_true(fd[0] >= 0 && fd[1] >= 0);
	assert_int_equal(ftruncate(fd[0], 1 << 20), 0);
	close(fd[0]);
	close(fd[1]);
}

static void remove_files(const struct files *f)
{
	unlink(f->disk);
	unlink(f->kept);
}

/* Return: the parameters of a unit, with new descriptors, which become the unit's */
static struct srpt_unit_config unit_of(const struct files *f)
{
	struct srpt_unit_config config = {.slot = 1, .name = "disk", .block_bytes = 512,
					  .fd = open(f->disk, O_RDWR | O_CLOEXEC),
					  .kept_fd = open(f->kept, O_RDWR | O_CLOEXEC)};

	assert_true(config.fd >= 0 && config.kept_fd >= 0);
	return config;
}

/* Whoever sent the descriptors of a unit may have them longer than softibd. They must not keep another unit
 * from the file of the reservations. */
static void a_refused_unit_does_not_hold_the_file_of_its_reservations(void **state)
{
	struct srpt_unit_config config;
	struct files files;
	int sender;

	make_files(&files);
	config = unit_of(&files);
	sender = dup(config.kept_fd);
	assert_int_equal(write(sender, "text", 4), 4);
	assert_int_equal(add_unit(&host[0], &config), -EBADMSG);
	assert_int_equal(ftruncate(sender, 0), 0);
	config = unit_of(&files);
	assert_int_equal(add_unit(&host[0], &config), 0);
	config = unit_of(&files);
	assert_int_equal(add_unit(&host[0], &config), -ETXTBSY);
	close(sender);
	remove_files(&files);
}

/* A thread closes the files of a unit that was removed. Who needs the file of its reservations waits for it. */
static void the_file_of_reservations_is_free_when_its_unit_is_removed(void **state)
{
	struct srpt_unit_config config;
	struct files files;

	make_files(&files);
	for (int i = 0; i < 20; i++) {
		config = unit_of(&files);
		assert_int_equal(add_unit(&host[0], &config), 0);
		assert_int_equal(srpt_unit_remove(host[0].n1, 1, 0), 0);
	}
	remove_files(&files);
}

static void a_unit_that_nobody_waits_for_is_not_added(void **state)
{
	struct outcome outcome = {0};
	struct srpt_unit_config config;
	struct srpt_adding *adding;
	struct files files;
	int tries = 0;

	make_files(&files);
	config = unit_of(&files);
	assert_int_equal(srpt_unit_add(host[0].n1, &config, unit_added, &outcome, &adding), 0);
	srpt_adding_forget(adding);
	do /* it has the same file of reservations: the first one is over then */
		config = unit_of(&files);
	while (add_unit(&host[0], &config) == -ETXTBSY && ++tries < 1000);
	assert_true(tries < 1000);
	assert_int_equal(srpt_unit_remove(host[0].n1, 1, 0), 0);
	assert_null(srpt_find(host[0].n1, 1)); /* it was the only unit */
	assert_false(outcome.over);
	remove_files(&files);
}

static void units_are_examined_in_bounded_number(void **state)
{
	enum { MOST = 16 }; /* SRPT_ADDING_MOST */
	struct outcome outcome[MOST + 1] = {0};
	struct srpt_unit_config config;
	struct srpt_adding *adding;
	struct files files;
	int added = 0;

	make_files(&files);
	for (int i = 0; i <= MOST; i++) {
		config = unit_of(&files);
		assert_int_equal(srpt_unit_add(host[0].n1, &config, unit_added, &outcome[i], &adding),
				 i < MOST ? 0 : -EAGAIN);
	}
	close(config.fd);
	close(config.kept_fd);
	for (int i = 0; i < MOST; i++) {
		while (!outcome[i].over)
			turn();
		assert_true(!outcome[i].result || outcome[i].result == -ETXTBSY);
		added += !outcome[i].result;
	}
	assert_int_equal(added, 1);
	remove_files(&files);
}

static void a_unit_ends_with_its_fabric_while_it_is_examined(void **state)
{
	struct outcome outcome[3] = {0};
	struct srpt_unit_config config;
	struct srpt_adding *adding;
	struct files files;

	make_files(&files);
	for (int i = 0; i < 3; i++) {
		config = unit_of(&files);
		if (i == 2) {
			close(config.fd);
			close(config.kept_fd);
			config.fd = memfd_create("disk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			config.kept_fd = -1;
		}
		assert_int_equal(srpt_unit_add(host[0].n1, &config, unit_added, &outcome[i], &adding), 0);
	}
	host_stop(&host[0]);
	for (int i = 0; i < 3; i++)
		assert_true(outcome[i].over && outcome[i].result == -ENODEV);
	remove_files(&files);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(each_fabric_has_its_target_and_its_sessions),
		CASE(the_end_of_a_fabric_leaves_the_other_its_disks),
		CASE(a_fabric_starts_its_initiators_once),
		CASE(a_refused_unit_does_not_hold_the_file_of_its_reservations),
		CASE(the_file_of_reservations_is_free_when_its_unit_is_removed),
		CASE(a_unit_that_nobody_waits_for_is_not_added),
		CASE(units_are_examined_in_bounded_number),
		CASE(a_unit_ends_with_its_fabric_while_it_is_examined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
