# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A Ceph cluster on a fabric: a monitor on n1, and a storage daemon on each further node but the last, which
is the client's. All of their messages go by RDMA."""
import json
import subprocess
import uuid

from interop.fabric import kill, wait_until

COMMAND_S = 60
GROUPS = 8  # placement groups of the pool
CONFIGURATION = """[global]
fsid = {fsid}
mon_host = [v2:{monitor}:3300]
ms_type = async+rdma
ms_cluster_type = async+rdma
ms_public_type = async+rdma
ms_async_rdma_type = {type}
ms_async_rdma_cm = {cm}
ms_async_rdma_device_name = softib0
ms_async_rdma_buffer_size = 16384
ms_async_rdma_send_buffers = 512
ms_async_rdma_receive_buffers = 16384
ms_async_rdma_receive_queue_len = 2048
ms_async_op_threads = 1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
auth_allow_insecure_global_id_reclaim = true
mon_allow_pool_size_one = true
mon_data = {home}/mon
osd_data = {home}/osd.$id
osd_objectstore = memstore
memstore_device_bytes = 1073741824
osd_crush_chooseleaf_type = 0
osd_pool_default_size = {copies}
osd_pool_default_min_size = 1
osd_pool_default_pg_num = {groups}
osd_pool_default_pg_autoscale_mode = off
osd_numa_auto_affinity = false
log_file = {home}/$name.log
admin_socket = {home}/$name.asok
pid_file = {home}/$name.pid
run_dir = {home}
crash_dir = {home}
"""


class Cluster:
    """Daemons that end with the fabric."""

    def __init__(self, fabric, disks, rdma_cm):
        """@disks: nodes of storage daemons, each of which keeps a copy of every object; @rdma_cm: connections
        are made by the RDMA CM, which Ceph names iwarp but uses on any adapter; else by TCP"""
        self.fabric, self.disks, self.client = fabric, disks, f"n{len(disks) + 2}"
        self.home = fabric.home / "ceph"
        self.configuration = self.home / "ceph.conf"
        self.daemons = {}
        fabric.run("n1", "mkdir", "-p", self.home / "mon", *[self.home / f"osd.{i}" for i in range(len(disks))])
        self.write_configuration(CONFIGURATION.format(
            fsid=uuid.uuid4(), monitor=self.address("n1"), home=self.home, copies=len(disks), groups=GROUPS,
            type="iwarp" if rdma_cm else "ib", cm="true" if rdma_cm else "false"))
        self.start_monitor()
        for i, node in enumerate(disks):
            self.make_disk(i, node)
            self.start_disk(i)
        self.wait_for_disks(len(disks))
        self.ceph("osd", "pool", "create", "pool")

    def write_configuration(self, text):
        """As the fabric's user."""
        subprocess.run([*self.fabric.user, "tee", self.configuration], input=text, text=True,
                       stdout=subprocess.DEVNULL, check=True)

    @staticmethod
    def address(node):
        return f"10.1.0.{node[1:]}"

    # --- daemons ---

    def daemon(self, name, node):
        """The arguments of a daemon of this name on this node."""
        program, number = name.split(".")
        return (f"ceph-{program}", "-c", self.configuration, "-i", number, "--public-addr", self.address(node))

    def start(self, name, node):
        """Its output goes to its log."""
        self.daemons[name] = self.fabric.start(node, *self.daemon(name, node), "-f",
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_monitor(self):
        monmap = self.home / "monmap"
        fsid = self.configuration.read_text().split("fsid = ")[1].split()[0]
        self.fabric.run("n1", "monmaptool", "--create", "--fsid", fsid, "--addv", "a",
                        f"[v2:{self.address('n1')}:3300]", monmap)
        self.fabric.run("n1", *self.daemon("mon.a", "n1"), "--mkfs", "--monmap", monmap, timeout=COMMAND_S)
        self.start("mon.a", "n1")

    def make_disk(self, number, node):
        name = str(uuid.uuid4())
        self.ceph("osd", "new", name, str(number))
        self.fabric.run(node, *self.daemon(f"osd.{number}", node), "--mkfs", "--osd-uuid", name,
                        timeout=COMMAND_S)

    def start_disk(self, number):
        self.start(f"osd.{number}", self.disks[number])

    def kill_disk(self, number):
        """Without a word to its peers; the monitor is told, as its own time-out is 20 seconds."""
        kill(self.daemons.pop(f"osd.{number}"))
        self.ceph("osd", "down", str(number))
        self.wait_for_disks(len(self.disks) - 1)

    def end(self):
        """All daemons."""
        while self.daemons:
            kill(self.daemons.popitem()[1])

    def wait_for_disks(self, up):
        wait_until(lambda: self.ask("osd", "stat")["num_up_osds"] == up, f"{up} storage daemons are up", COMMAND_S)

    def wait_until_clean(self):
        """All copies are equal again."""
        for group in range(GROUPS):
            wait_until(lambda: self.ask("tell", f"1.{group}", "query")["state"] == "active+clean",
                       f"placement group {group} is clean", COMMAND_S)

    # --- programs of the client ---

    def run(self, program, *args):
        return self.fabric.run(self.client, program, "-c", self.configuration, *args, timeout=COMMAND_S)

    def ceph(self, *args):
        return self.run("ceph", *args)

    def ask(self, *args):
        """An answer as JSON, which stands among what Ceph's RDMA code says."""
        out = self.ceph(*args, "-f", "json")
        return json.loads(out[out.index("{"):out.rindex("}") + 1])

    def rados(self, *args):
        return self.run("rados", "-p", "pool", *args)
