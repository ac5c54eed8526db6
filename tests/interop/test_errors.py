# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Every completion status and every asynchronous event of <infiniband/verbs.h>,
seen by programs that no one here wrote: docs/ERRORS.md row by row. What has a
cause on our adapter has it here too; the rest is told by a fault."""
import re
import sys
import threading
from pathlib import Path

import pytest

from interop.fabric import BUILD, TIMEOUT, Fabric, wait_until
from interop.test_lanes import background

SCRIPT = Path(__file__).with_name("verbs_errors.py")
ERRORS = Path(__file__).parents[2] / "docs/ERRORS.md"
SM = str(BUILD / "bin/softib-sm")

STATUSES = """SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR
BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR
RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR
INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR TM_ERR TM_RNDV_INCOMPLETE""".split()
EVENTS = """CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR
DEVICE_FATAL PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR SRQ_LIMIT_REACHED
QP_LAST_WQE_REACHED CLIENT_REREGISTER GID_CHANGE""".split()


def verbs(fabric, *case, node="n1"):
    """The lines of verbs_errors.py CASE."""
    return fabric.run(node, sys.executable, SCRIPT, *case).split("\n")[:-1]


class Fault:
    """with Fault(fabric, "completion", ...): a rule that stands meanwhile."""

    def __init__(self, fabric, *words):
        self.fabric, self.words = fabric, words

    def __enter__(self):
        self.fabric.softib("fault", "add", *self.words)
        return self

    def __exit__(self, *exc):
        self.fabric.softib("fault", "clear", "all")


def word(name):
    return name.lower().replace("_", "-")


# --- the table itself ---

def rows(prefix):
    return re.findall(rf"^\| (\d+) \| `{prefix}_(\w+)` \|", ERRORS.read_text(), re.M)


def test_the_table_has_every_status_and_event():
    header = Path("/usr/include/infiniband/verbs.h").read_text()
    enum = re.search(r"enum ibv_wc_status \{(.*?)\}", header, re.S)[1]
    assert [name for _, name in rows("IBV_WC")] == re.findall(r"IBV_WC_(\w+)", enum) == STATUSES
    enum = re.search(r"enum ibv_event_type \{(.*?)\}", header, re.S)[1]
    assert [name for _, name in rows("IBV_EVENT")][:19] == EVENTS
    assert re.findall(r"IBV_EVENT_(\w+)", enum)[:19] == EVENTS


def losing_client(fabric, program, *args):
    """What the client on n2 says, which fails; its server on n1 is sent away."""
    server, client = background(fabric, program, *args)
    out = fabric.finish(client)
    server.kill()
    server.communicate()
    assert client.returncode, out
    return out


# --- completions that have a cause ---

@pytest.mark.parametrize("case, seen", [
    ("loc_len_err", ["recv IBV_WC_LOC_LEN_ERR", "send IBV_WC_REM_INV_REQ_ERR"]),
    ("loc_qp_op_err", ["send IBV_WC_LOC_QP_OP_ERR"]),
    ("loc_prot_err", ["send IBV_WC_LOC_PROT_ERR"]),
    ("wr_flush_err", ["send IBV_WC_LOC_PROT_ERR", "send IBV_WC_WR_FLUSH_ERR",
                      "recv IBV_WC_WR_FLUSH_ERR"]),
    ("mw_bind_err", ["send IBV_WC_MW_BIND_ERR"]),
    ("loc_access_err", ["recv IBV_WC_LOC_ACCESS_ERR", "send IBV_WC_REM_ACCESS_ERR"]),
    ("rem_inv_req_err", ["send IBV_WC_REM_INV_REQ_ERR"]),
    ("rem_access_err", ["send IBV_WC_REM_ACCESS_ERR", "event IBV_EVENT_QP_ACCESS_ERR"]),
    ("rem_op_err", ["recv IBV_WC_LOC_PROT_ERR", "send IBV_WC_REM_OP_ERR"]),
    ("retry_exc_err", ["send IBV_WC_RETRY_EXC_ERR"]),
    ("rnr_retry_exc_err", ["send IBV_WC_RNR_RETRY_EXC_ERR"]),
    ("read", ["send IBV_WC_SUCCESS"]),
])
def test_status_with_a_cause(pair, case, seen):
    assert verbs(pair, case) == seen


def test_bad_resp_err(pair):
    """The answer to a READ is spoilt into one that was not asked for: its opcode
    READ Response Only becomes READ Response First, with right CRCs."""
    with Fault(pair, "port", "n1:1", "corrupt", "opcode=0x10", "offset=8", "mask=0x1d",
               "crc=fixed", "count=1"):
        assert verbs(pair, "read") == ["send IBV_WC_BAD_RESP_ERR"]


def test_perftest_meets_a_dead_peer(pair):
    """RETRY_EXC_ERR by Debian's own program: the cable is pulled under it."""
    server, client = background(pair, "ib_write_bw", "-D", "30", "-u", "10")
    pair.wait_for_traffic("n1", 100)
    pair.softib("link", "n1:1", "down")
    out, _ = client.communicate(timeout=TIMEOUT)
    server.kill()
    server.communicate()
    pair.softib("link", "n1:1", "up")
    pair.softib("wait")
    assert client.returncode and "Failed status 12" in out


# --- completions that are told ---

@pytest.mark.parametrize("number, status", list(enumerate(STATUSES))[1:],
                         ids=STATUSES[1:])
def test_status_that_a_fault_tells(pair, number, status):
    """Any status, on ibv_rc_pingpong, which prints what it gets."""
    with Fault(pair, "node", "n2", "completion", word(status), "after=10", "count=1"):
        assert f"({number}) for wr_id" in losing_client(pair, "ibv_rc_pingpong", "-n", "100")
    pair.pair("ibv_rc_pingpong", "-n", "100")  # and nothing of it stays


def test_the_rest_is_flushed(pair):
    """Behind the completion that was told, as behind any in error."""
    with Fault(pair, "all", "completion", "fatal-err", "count=1"):
        assert verbs(pair, "read") == ["send IBV_WC_FATAL_ERR"]
    with Fault(pair, "all", "completion", "general-err", "op=recv", "count=1"):
        assert verbs(pair, "comm_est")[0] == "recv IBV_WC_GENERAL_ERR"


def test_a_rule_counts_across_programs(pair):
    with Fault(pair, "node", "n1", "completion", "tm-err", "after=2", "count=1"):
        assert [verbs(pair, "read") for _ in range(4)] == [
            ["send IBV_WC_SUCCESS"], ["send IBV_WC_SUCCESS"], ["send IBV_WC_TM_ERR"],
            ["send IBV_WC_SUCCESS"]]


# --- creations ---

@pytest.mark.parametrize("number", ["ENOMEM", "EAGAIN", "EPERM"])
@pytest.mark.parametrize("kind", ["pd", "cq", "qp", "srq", "mr", "mw"])
def test_creation_fails(pair, kind, number):
    """The second one, and no other."""
    made = verbs(pair, kind, "4")
    assert made == ["made"] * 4
    skipped = {"pd": 1, "mr": 1}.get(kind, 0)  # what the script makes before
    with Fault(pair, "node", "n1", "fail", kind, f"errno={number.lower()}",
               f"after={1 + skipped}", "count=1"):
        assert verbs(pair, kind, "4") == ["made", f"errno {number}", "made", "made"]


def test_opening_fails(pair):
    with Fault(pair, "node", "n2", "fail", "context", "errno=emfile"):
        out = pair.run("n2", "ibv_devinfo", check=False)
        assert pair.running[-1].returncode and "Failed to open" in out
        assert "PORT_ACTIVE" in pair.run("n1", "ibv_devinfo")
    assert "PORT_ACTIVE" in pair.run("n2", "ibv_devinfo")


def test_perftest_says_what_it_could_not_make(pair):
    with Fault(pair, "node", "n2", "fail", "mr", "errno=enomem"):
        assert "Couldn't allocate MR" in losing_client(pair, "ib_write_bw", "-n", "100")


def test_joining_a_group_fails(pair):
    with Fault(pair, "node", "n1", "fail", "multicast", "errno=enomem"):
        server, client = background(pair, "ib_send_bw", "-c", "UD", "-g", "-n", "100")
        out = pair.finish(server)
        client.kill()
        client.communicate()
    assert server.returncode and "attach" in out, out


# --- events of queues ---

@pytest.mark.parametrize("case, seen", [
    ("cq_err", "CQ_ERR"), ("qp_fatal", "QP_FATAL"), ("qp_req_err", "QP_REQ_ERR"), ("qp_access_err", "QP_ACCESS_ERR"),
    ("comm_est", "COMM_EST"), ("sq_drained", "SQ_DRAINED"),
    ("srq_limit_reached", "SRQ_LIMIT_REACHED"), ("srq_err", "SRQ_ERR"),
    ("qp_last_wqe_reached", "QP_LAST_WQE_REACHED")])
def test_event_with_a_cause(pair, case, seen):
    assert verbs(pair, case)[-1] == f"event IBV_EVENT_{seen}"


def test_cq_overrun_by_a_fault(pair):
    with Fault(pair, "node", "n1", "overrun", "count=1"):
        process = pair.start("n1", sys.executable, SCRIPT, "wait_for_overrun")
        assert pair.finish(process).split("\n")[:2] == ["event IBV_EVENT_CQ_ERR", "poll failed"]


@pytest.mark.parametrize("event", [e for e in EVENTS if e.startswith(
    ("CQ_", "QP_", "COMM", "SQ_", "PATH", "SRQ"))])
def test_event_of_a_queue_that_a_fault_tells(pair, event):
    process = pair.start("n1", sys.executable, SCRIPT, "wait_for_event")
    qpn = process.stdout.readline().split()[1]
    with Fault(pair, "qp", f"n1:{qpn}", "event", word(event)):
        assert pair.finish(process) == f"event IBV_EVENT_{event}\n"


# --- events of ports and of the device, by ibv_asyncwatch ---

class Watch:
    """ibv_asyncwatch on a node: the events that it prints."""

    def __init__(self, fabric, node):
        self.process = fabric.start(node, "stdbuf", "-oL", "ibv_asyncwatch")
        assert "async" in self.process.stdout.readline()

    def wait_for(self, event):
        limit = threading.Timer(TIMEOUT, self.process.kill)
        limit.start()
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if f"IBV_EVENT_{event} " in line:
                limit.cancel()
                return
        raise AssertionError(f"no {event}: {seen}")

    def end(self):
        self.process.kill()
        self.process.communicate()


PORT_EVENTS = ["PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE",
               "CLIENT_REREGISTER", "GID_CHANGE"]


@pytest.mark.parametrize("event", PORT_EVENTS)
def test_event_of_a_port_that_a_fault_tells(pair, event):
    watch = Watch(pair, "n2")
    with Fault(pair, "port", "n2:1", "event", word(event)):
        watch.wait_for(event)
    watch.end()


def test_events_of_a_cable_and_a_manager():
    """PORT_ERR, PORT_ACTIVE, CLIENT_REREGISTER, SM_CHANGE, LID_CHANGE as they come."""
    with Fabric("pair", sm="none") as fabric:
        manager = fabric.start("n1", SM)
        fabric.softib("wait")
        watch = Watch(fabric, "n2")
        fabric.softib("link", "n2:1", "down")
        watch.wait_for("PORT_ERR")
        fabric.softib("link", "n2:1", "up")
        watch.wait_for("PORT_ACTIVE")
        manager.terminate()
        manager.wait()
        manager = fabric.start("n2", SM)
        watch.wait_for("SM_CHANGE")
        manager.terminate()
        manager.wait()
        lid = re.search(r"(\d+)", fabric.run("n2", "smpquery", "-D", "portinfo", "0", "1")
                        .split("Lid:")[1])[1]
        fabric.run("n2", "ibportstate", "-D", "0", "1", "lid", str(int(lid) + 40))
        watch.wait_for("LID_CHANGE")
        watch.end()


def test_pkey_and_gid_change_by_the_manager(tmp_path):
    """A manager that comes with other partitions, and one with another prefix of the subnet."""
    with Fabric("pair", sm="none") as fabric:
        config = tmp_path / "partitions.conf"
        config.write_text("Default=0x7fff,ipoib:ALL=full;\n")
        argv = ("opensm", "-e", "-P", config, "-f", tmp_path / "log")
        manager = fabric.start("n1", *argv)
        fabric.softib("wait")
        watch = Watch(fabric, "n2")
        manager.terminate()
        manager.wait()
        config.write_text("Default=0x7fff,ipoib:ALL=full;\nP=0x1234:ALL=full;\n")
        manager = fabric.start("n1", *argv)
        watch.wait_for("PKEY_CHANGE")
        manager.terminate()
        manager.wait()
        options = tmp_path / "opensm.conf"
        options.write_text("subnet_prefix 0xfec0000000001234\n")
        manager = fabric.start("n1", *argv, "-F", options)
        watch.wait_for("GID_CHANGE")
        watch.end()
        gid = fabric.run("n2", "cat", "/sys/class/infiniband/softib0/ports/1/gids/0")
        assert gid.startswith("fec0:0000:0000:1234:")
        manager.terminate()
        manager.wait()


# --- the adapter is pulled ---

def devices(fabric, node):
    return "softib0" in fabric.run(node, "ibv_devices")


def test_hot_unplug_under_running_programs():
    """What programs see, what the fabric sees, and that all comes back."""
    with Fabric("star:3") as fabric:
        program = fabric.start("n2", sys.executable, SCRIPT, "hot_unplug")
        watch = Watch(fabric, "n2")
        assert program.stdout.readline() == "ready\n"
        assert devices(fabric, "n2")
        fabric.softib("fault", "add", "node", "n2", "remove")
        watch.wait_for("DEVICE_FATAL")
        watch.end()
        assert fabric.finish(program).split("\n") == [
            "event IBV_EVENT_DEVICE_FATAL", "send IBV_WC_WR_FLUSH_ERR", "recv IBV_WC_WR_FLUSH_ERR",
            "errno EIO", "errno EIO", "errno EIO", "errno EIO", "errno EIO", "closed", ""]
        assert program.returncode == 0
        assert not devices(fabric, "n2") and devices(fabric, "n3")
        assert "softib0" not in fabric.run("n2", "ls", "/sys/class/infiniband", check=False)
        assert "no adapter on node \"n2\"" in fabric.run("n2", "ibv_devinfo", check=False)
        port = [p for n in fabric.json("topo")["nodes"] if n["name"] == "s1"
                for p in n["ports"] if p.get("peer") == "n2"][0]
        assert port["state"] == "Down"
        assert not [r for r in fabric.json("resource", "show") if r["node"] == "n2"]
        fabric.pair("ib_send_bw", "-n", "100", server="n1", client="n3")  # nobody else is harmed
        fabric.softib("fault", "clear", "all")
        fabric.softib("wait")
        assert devices(fabric, "n2")
        fabric.pair("ib_send_bw", "-n", "100", server="n2", client="n3")
        assert "softib0" in fabric.run("n2", "ls", "/sys/class/infiniband")


def test_hot_unplug_under_perftest():
    with Fabric("pair") as fabric:
        server, client = background(fabric, "ib_write_bw", "-D", "30")
        fabric.wait_for_traffic("n1", 100)
        with Fault(fabric, "node", "n2", "remove"):
            out, _ = client.communicate(timeout=TIMEOUT)
            assert client.returncode and "Failed status 5" in out, out
        server.kill()
        server.communicate()
        fabric.softib("wait")
        fabric.expect_no_leftovers()


def test_hot_unplug_under_umad():
    """Agents go with the adapter; a server of MADs ends or hears nothing, and a
    new one serves when it is back."""
    with Fabric("pair") as fabric:
        server = fabric.start("n2", "ibping", "-S")
        wait_until(lambda: any(r["node"] == "n2" for r in fabric.json("resource", "show")), "n2")
        for _ in range(3):
            with Fault(fabric, "node", "n2", "remove"):
                out = fabric.run("n2", "smpquery", "-D", "nodeinfo", "0", check=False)
                assert fabric.running[-1].returncode and "NodeInfo" not in out
            fabric.softib("wait")
            assert "Channel Adapter" in fabric.run("n2", "smpquery", "-D", "nodeinfo", "0")
        server.kill()
        server.wait()
        fabric.expect_no_leftovers()


def test_the_managers_own_adapter_is_pulled():
    """softib-sm waits for it and manages the subnet again when it is back."""
    with Fabric("pair") as fabric:
        for _ in range(2):
            with Fault(fabric, "node", "n1", "remove"):
                wait_until(lambda: "gone: no port has its lid 1" in fabric.softib("status"), "gone")
            fabric.softib("wait")
        fabric.pair("ib_send_lat", "-n", "10")
        log = (fabric.dir / "sm.log").read_text()
        assert log.count("the adapter is gone; waiting") == 2, log
        assert "the manager's own port does not answer" not in log, log
        fabric.softib("fault", "add", "node", "n1", "remove")
        wait_until(lambda: (fabric.dir / "sm.log").read_text().count("is gone; waiting") == 3,
                   "the manager sees it")
        # one that waits ends as well


def test_an_adapter_that_comes_and_goes():
    """Twenty times under programs that open it: nothing is left, nothing hangs."""
    with Fabric("pair") as fabric:
        fds = lambda: len(list(Path(f"/proc/{fabric.json('status')['pid']}/fd").iterdir()))
        fabric.run("n2", "ibv_devinfo")
        before = fds()
        for _ in range(20):
            programs = [fabric.start("n2", "ibv_devinfo") for _ in range(3)]
            with Fault(fabric, "node", "n2", "remove"):
                for program in programs:
                    program.communicate(timeout=TIMEOUT)
        fabric.softib("wait")
        fabric.pair("ib_send_lat", "-n", "10")
        fabric.expect_no_leftovers()
        assert fds() <= before + 2
