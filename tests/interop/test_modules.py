# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Modules in a node's stack: they load, sleep, fail, forget and crash, and the fabric goes on."""
import re
import subprocess

import pytest

from hostile.attack import ask
from interop.fabric import BUILD, FABRIC_NAME, NOBODY, OUTSIDE, TIMEOUT, Fabric, wait_until
from interop.test_capture import Capture, tshark

MODULES = BUILD / "tests/modules"
TRIAL = MODULES / "trial.so"
RD_SEND_ONLY, RD_ACKNOWLEDGE = "68", "81"  # as tshark prints opcodes


def softib(fabric, *args):
    """Exit status, and what it said on stderr."""
    done = subprocess.run([fabric.program, *map(str, args)], env=fabric.env, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    return done.returncode, done.stderr


def modules(fabric):
    return [(row["node"], row["name"], row["state"]) for row in fabric.json("lsmod")]


def log_of(fabric):
    return (fabric.dir / "softibd.log").read_text()


def play(fabric, what, *params):
    """Load and unload it; what was said, and the log's lines since."""
    before = len(log_of(fabric)) if (fabric.dir / "softibd.log").exists() else 0
    said = [softib(fabric, "modprobe", "n1", TRIAL, f"what={what}", *params),
            softib(fabric, "rmmod", "n1", "trial")]
    assert not modules(fabric)
    return said, log_of(fabric)[before:]


@pytest.mark.parametrize("what, line", [
    ("nothing", "n1 trial: add softib0, count 7, verbose"),
    ("ask", "n1 trial: answer 0, dlid 1"),  # add() sleeps until the loop brings the answer
    ("work", "n1 trial: work has run"),
    ("timer", "n1 trial: timer: 01010, rung 1"),
    ("thread", "n1 trial: thread: 42, and -4 of one that never ran"),
])
def test_functions_that_sleep(pair, what, line):
    said, log = play(pair, what, "count=7", "verbose")
    assert said == [(0, ""), (0, "")]
    assert line in log and "n1 trial: remove softib0" in log, log


def test_each_node_has_its_own(pair):
    for node in ("n1", "n2"):
        assert softib(pair, "modprobe", node, TRIAL) == (0, "")
    assert modules(pair) == [("n1", "trial", "live"), ("n2", "trial", "live")]
    status, said = softib(pair, "modprobe", "n1", TRIAL)
    assert status == 1 and "has a module trial, which is live" in said
    for node in ("n1", "n2"):
        assert softib(pair, "rmmod", node, "trial") == (0, "")


def test_what_it_forgets_is_freed(pair):
    said, _ = play(pair, "leak")
    assert said[1] == (0, "softib: left behind, and freed: 1 thread 1 timer 1 work 1 mad_agent 1 pd 1 cq 1 qp 1 cm_id\n")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "trial"]
    said, _ = play(pair, "leave-client")
    assert "2 clients" in said[1][1]


def test_an_add_that_fails(pair):
    """The module stays without the adapter: its remove() is not called for that. The log says who failed."""
    said, log = play(pair, "fail-in-add")
    assert said == [(0, ""), (0, "")]
    assert "n1 module trial: add() of client trial failed for softib0: Function not implemented" in log, log
    assert "remove softib0" not in log, log


CRASHES = ["crash", "crash-in-handler", "sleep-in-handler", "crash-with-things", "call-nothing",
           "bad-pointer", "bug", "overflow"]


@pytest.mark.parametrize("what", CRASHES)
def test_a_crash_ends_the_module_alone(pair, what):
    pid = pair.json("status")["pid"]
    said, log = play(pair, what)
    assert said[0][0] == 1 and "the module crashed" in said[0][1], said
    assert said[1] == (0, "softib: it had crashed: its code stays in memory\n")
    assert "n1 module trial: " in log, log
    assert pair.json("status")["pid"] == pid
    assert "sgid" in pair.softib("path", "n1", "n2", "--json")


@pytest.mark.parametrize("what", ["spin", "spin-in-handler", "poll-for-ever"])
def test_what_does_not_return_is_ended(pair, what):
    pid = pair.json("status")["pid"]
    before = len(log_of(pair))
    status, said = softib(pair, "modprobe", "--watchdog", 0.1, "n1", TRIAL, f"what={what}")
    assert status == 1 and "the module crashed" in said, said
    assert "n1 module trial: " in log_of(pair)[before:]
    assert "does not return" in log_of(pair)[before:]
    assert softib(pair, "rmmod", "n1", "trial")[0] == 0
    assert pair.json("status")["pid"] == pid
    assert "sgid" in pair.softib("path", "n1", "n2", "--json")


def test_parameters(pair):
    args = ["what=array", "numbers=7,0x8", "words=a,b", "secret=9"]
    before = len(log_of(pair))
    assert softib(pair, "modprobe", "n1", TRIAL, *args) == (0, "")
    assert "n1 trial: array: 2 given, 7 8, a b" in log_of(pair)[before:]
    assert pair.json("lsmod")[0]["parameters"] == {
        "what": "array", "count": "1", "verbose": "N", "numbers": "7,8", "words": "a,b"}
    assert "n1 trial numbers=7,8\n" in pair.softib("lsmod", "--parameters")
    assert softib(pair, "rmmod", "n1", "trial") == (0, "")
    for arg in ("numbers=1,2,3,4,5", "numbers=1,x", "numbers="):
        status, said = softib(pair, "modprobe", "n1", TRIAL, arg)
        assert status == 1 and "array of int" in said and "4 elements at most" in said, said


@pytest.mark.parametrize("borrower", ["borrower", "borrower_now", "borrower_lazy"])
def test_symbols_of_another_module(pair, borrower):
    """Each node has a copy of each module: n2's lender is not n1's."""
    borrower_so, before = MODULES / f"{borrower}.so", len(log_of(pair))
    status, said = softib(pair, "modprobe", "n1", borrower_so)
    assert status == 1 and "undefined symbol: lender_" in said and "loaded first" in said, said
    for node in ("n1", "n2"):
        assert softib(pair, "modprobe", node, MODULES / "lender.so") == (0, "")
    for node in ("n2", "n1"):
        assert softib(pair, "modprobe", node, borrower_so) == (0, "")
        assert f"{node} {borrower}: borrowed of 5: 4, then 2; 2" in log_of(pair)[before:]
    assert [row["used_by"] for row in pair.json("lsmod", "n1")] == [borrower, ""]
    status, said = softib(pair, "rmmod", "n1", "lender")
    assert status == 1 and f"in use by {borrower}" in said
    for name in (borrower, "lender"):
        assert softib(pair, "rmmod", "n1", name) == (0, "")
    assert "n1 lender: 5 are left" in log_of(pair)[before:]
    assert softib(pair, "rmmod", "n2", borrower)[0] == 0
    assert softib(pair, "rmmod", "n2", "lender")[0] == 0


def test_no_two_modules_export_a_symbol(pair, tmp_path):
    (tmp_path / "again.so").write_bytes((MODULES / "lender.so").read_bytes())
    assert softib(pair, "modprobe", "n1", MODULES / "lender.so") == (0, "")
    status, said = softib(pair, "modprobe", "n1", tmp_path / "again.so")
    assert status == 1 and "which the module lender exports already" in said, said
    assert softib(pair, "rmmod", "n1", "lender") == (0, "")


def test_users_go_before_whom_they_use():
    """'softib down' unloads all: a borrower's exit function still calls its lender."""
    with Fabric() as fabric:
        for name in ("lender", "borrower"):
            assert softib(fabric, "modprobe", "n1", MODULES / f"{name}.so") == (0, "")
        fabric.softib("down")
        log = log_of(fabric)
        fabric.softib("up", "--topology", "pair", "--sm", "none", FABRIC_NAME)
    assert "n1 lender: 5 are left" in log and "crashed" not in log, log


def test_resources_of_modules_are_listed(pair):
    rows = {}
    for module in ("cm_message", "vendor_mad"):
        assert softib(pair, "modprobe", "n2", BUILD / f"examples/{module}.so") == (0, "")
    for row in pair.json("resource", "show", "n2"):
        rows.setdefault((row["comm"], row["type"]), row.get("details", ""))
    for module in ("cm_message", "vendor_mad"):
        assert softib(pair, "rmmod", "n2", module) == (0, "")
    assert rows["cm_message", "cm_id"] == "listening, service 0x0000000053544942"
    assert rows["cm", "mad_agent"] == "port 1, QP1, class 0x07 version 2"
    assert rows["vendor_mad", "mad_agent"].startswith("port 1, QP1, class 0x")
    assert rows["cm_message", "mr"] == "all memory"


def test_a_crash_in_remove(pair):
    assert softib(pair, "modprobe", "n1", TRIAL, "what=crash-in-remove") == (0, "")
    status, said = softib(pair, "rmmod", "n1", "trial")
    assert status == 1 and "the module crashed" in said
    assert modules(pair) == [("n1", "trial", "crashed")]
    assert softib(pair, "rmmod", "n1", "trial")[0] == 0


@pytest.mark.other_user
def test_only_the_fabric_s_user_loads_modules():
    """softibd answers root, whoever's fabric it is, but runs no code for it."""
    with Fabric(user=NOBODY) as fabric:
        for op in ("module_load", "module_unload"):
            sock, answer, _ = ask(fabric, op, node="n1", name="trial")
            sock.close()
            assert "only that user may load and unload modules" in answer["error"], answer
        assert not modules(fabric)


def test_verbs_of_a_module(pair):
    """Memory, address handles, receive queues, queries: by the module's own checks."""
    before = len(log_of(pair))
    assert softib(pair, "modprobe", "n1", MODULES / "verbs.so") == (0, "")
    assert softib(pair, "rmmod", "n1", "verbs") == (0, "")  # nothing is left behind
    log = log_of(pair)[before:]
    assert re.search(r"n1 verbs: [1-9][0-9]+ checks, 0 failed", log), log


def test_a_class_moves_to_a_queue_pair(pair):
    """QP1 redirects a class to a module's pair. libibmad follows where a program asks by mad_rpc(),
    as ibccquery does; ibping asks by mad_rpc_rmpp(), which takes the redirection for an error, so for
    ibping the module's pair answers what arrives at QP1."""
    module, lid = MODULES / "redirect.so", pair.json("path", "n1", "n2")["dlid"]
    before = len(log_of(pair))
    assert softib(pair, "modprobe", "n2", module, "class=0x21") == (0, "")
    out = pair.run("n1", "ibccquery", "CI", lid)
    assert "CongestionInfo:..................0x0001" in out and "ControlTableCap:.................7" in out, out
    log = log_of(pair)[before:]
    assert log.count("n2 redirect: class 0x21 is redirected") == log.count("n2 redirect: class message") == 1, log
    assert softib(pair, "rmmod", "n2", "redirect") == (0, "")

    assert softib(pair, "modprobe", "n2", module, "class=0x32") == (0, "")
    out = pair.run("n1", "ibping", "-e", "-f", "-c", 2, lid)
    assert "MAD completed with error status 0x2" in out and " 0 received" in out, out
    assert softib(pair, "rmmod", "n2", "redirect") == (0, "")

    assert softib(pair, "modprobe", "n2", module, "class=0x32", "stand_in") == (0, "")
    out = pair.run("n1", "ibping", "-f", "-c", 50, lid)
    assert "--- n2 (Lid " in out and "50 packets transmitted, 50 received, 0% packet loss" in out, out
    assert softib(pair, "rmmod", "n2", "redirect") == (0, "")


def test_refusals(pair):
    for args, why in [
            (["modprobe", "n1", MODULES / "no_module.so"], "it is no module"),
            (["modprobe", "n1", MODULES / "wants.so"], "undefined symbol: ib_do_the_impossible"),
            (["modprobe", "n1", __file__], "is no name for a module"),
            (["modprobe", "n1", "/dev/null"], "the file of a module has to be a regular file"),
            (["modprobe", "s1", TRIAL], "s1 is a switch"),
            (["modprobe", "n1", TRIAL, "size=3"], "no parameter 'size'; it has"),
            (["modprobe", "n1", TRIAL, "count=many"], "'many' is no value of type int"),
            (["modprobe", "n1", TRIAL, "what=fail"], "returned -1 (Operation not permitted)"),
            (["rmmod", "n1", "trial"], "n1 has no module trial")]:
        status, said = softib(pair, *args)
        assert status == 1 and why in said, (args, said)
    assert not modules(pair)


def test_one_in_use_stays(pair):
    assert softib(pair, "modprobe", "n2", TRIAL, "what=use") == (0, "")
    status, said = softib(pair, "rmmod", "n2", "trial")
    assert status == 1 and "is in use" in said  # `softib down` ends it


def test_the_adapter_goes_and_returns(pair):
    assert softib(pair, "modprobe", "n1", TRIAL) == (0, "")
    adds = log_of(pair).count("n1 trial: add")
    removes = log_of(pair).count("n1 trial: remove")
    pair.softib("fault", "add", "node", "n1", "remove")
    wait_until(lambda: log_of(pair).count("n1 trial: remove") == removes + 1, "remove() runs")
    pair.softib("fault", "clear", "all")
    wait_until(lambda: log_of(pair).count("n1 trial: add") == adds + 1, "add() runs")
    pair.softib("wait")  # the subnet manager brings the new adapter's port up
    assert softib(pair, "rmmod", "n1", "trial") == (0, "")


# --- softib new-module ---

def make(folder, **env):
    """Exit status and output of make, as a user outside of the tree runs it."""
    done = subprocess.run(["make", "-C", folder], env={**OUTSIDE, **env}, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    return done.returncode, done.stdout + done.stderr


def test_new_module_builds_and_loads(pair, tmp_path):
    folder = tmp_path / "of a friend"
    assert softib(pair, "new-module", "hello_2", folder) == (0, "")
    status, said = make(folder)
    assert status == 0 and "warning" not in said, said
    before = len(log_of(pair))
    assert softib(pair, "modprobe", "n2", folder / "hello_2.so", "verbose") == (0, "")
    assert softib(pair, "rmmod", "n2", "hello_2") == (0, "")
    log = log_of(pair)[before:]
    for line in ("add softib0", "softib0 port 1: lid", "remove softib0"):
        assert f"n2 hello_2: {line}" in log, log


def test_new_module_leaves_files_alone(pair, tmp_path):
    (tmp_path / "hello.c").write_text("mine")
    status, said = softib(pair, "new-module", "hello", tmp_path)
    assert status == 1 and "hello.c: File exists; name another folder" in said
    assert (tmp_path / "hello.c").read_text() == "mine"
    for name in ("2hello", "hel-lo", "", "module", "a_name_of_16_char"):
        status, said = softib(pair, "new-module", name, tmp_path)
        assert status == 1 and "is no name for a module" in said, said


def test_installed_headers_build_a_module(pair, tmp_path):
    """An installed softib writes a Makefile that finds the installed headers."""
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                    tmp_path / "root"], env=OUTSIDE, capture_output=True, timeout=TIMEOUT, check=True)
    program = next((tmp_path / "root").rglob("bin/softib"))
    subprocess.run([program, "new-module", "hello", tmp_path / "hello"], env=OUTSIDE,
                   timeout=TIMEOUT, check=True)
    # the folder that a package would be unpacked from stands for /
    status, said = make(tmp_path / "hello", PKG_CONFIG_SYSROOT_DIR=str(tmp_path / "root"))
    assert status == 0 and f"-I{tmp_path / 'root'}/" in said, said
    assert softib(pair, "modprobe", "n1", tmp_path / "hello/hello.so") == (0, "")
    assert softib(pair, "rmmod", "n1", "hello") == (0, "")


# --- examples/ ---

def load_example(fabric, name, *params):
    """Load it into n1 and unload it; what it said in the log."""
    before = len(log_of(fabric)) if (fabric.dir / "softibd.log").exists() else 0
    assert softib(fabric, "modprobe", "n1", BUILD / f"examples/{name}.so", *params) == (0, "")
    assert softib(fabric, "rmmod", "n1", name) == (0, "")
    return log_of(fabric)[before:]


def port_guid(fabric, name):
    return next(port["guid"] for node in fabric.json("topo")["nodes"] if node["name"] == name
                for port in node["ports"] if port["port"] == 1)


def test_example_client(pair):
    log = load_example(pair, "client")
    assert "n1 client: softib0 port 1: lid 1, state 4" in log
    assert "n1 client: softib0 is gone" in log


def test_example_path_query(pair):
    path = pair.json("path", "n1", "n2")
    assert "error" in load_example(pair, "path_query", "dguid=0x1234")
    log = load_example(pair, "path_query", f"dguid={port_guid(pair, 'n2')}")
    assert f"dlid {path['dlid']}," in log, log


def test_example_vendor_mad(pair):
    """The one in n2 answers the one in n1."""
    dlid = pair.json("path", "n1", "n2")["dlid"]
    assert softib(pair, "modprobe", "n2", BUILD / "examples/vendor_mad.so") == (0, "")
    assert f"n1 vendor_mad: lid {dlid} is softib0 of n2" in load_example(pair, "vendor_mad", f"dlid={dlid}")
    assert softib(pair, "rmmod", "n2", "vendor_mad") == (0, "")


def test_example_cm_message(pair):
    """n1 connects to n2, twice."""
    guid = port_guid(pair, "n2")
    assert softib(pair, "modprobe", "n2", BUILD / "examples/cm_message.so") == (0, "")
    for text in ("hello", "x" * 63):
        log = load_example(pair, "cm_message", f"dguid={guid}", f"text={text}")
        assert f"n1 cm_message: sent '{text}'" in log and f"n2 cm_message: received '{text}'" in log, log
    # both ends are given back, also what waits for its time-wait to end
    assert softib(pair, "rmmod", "n2", "cm_message") == (0, "")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "cm_message"]


def test_example_rd_message(pair):
    """Reliable datagrams from n1 to n2, whose one RD QP has receives for all. tshark 4.0 takes the
    opcodes of RD for those of another transport, so it judges the BTH alone."""
    assert softib(pair, "modprobe", "n2", BUILD / "examples/rd_message.so") == (0, "")
    capture = Capture(pair, "n2:1")
    for text in ("hello", "x" * 63):
        log = load_example(pair, "rd_message", f"dguid={port_guid(pair, 'n2')}", f"text={text}")
        lid = pair.json("path", "n2", "n1")["dlid"]
        assert f"n1 rd_message: sent '{text}'" in log, log
        assert re.search(f"n2 rd_message: received '{text}' from QP 0x[0-9a-f]+ of lid {lid}", log), log
    opcodes = tshark("-r", capture.end(), "-T", "fields", "-e", "infiniband.bth.opcode").split()
    assert opcodes.count(RD_SEND_ONLY) == opcodes.count(RD_ACKNOWLEDGE) == 2
    assert softib(pair, "rmmod", "n2", "rd_message") == (0, "")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "rd_message"]


ERR_STATE = r"{} rc_message: disconnected, QP 0x[0-9a-f]+ is in state 6"


def test_example_rc_message(pair):
    """Each end's queue pair is its id's: a message goes and returns, and both pairs end in ERR."""
    module = BUILD / "examples/rc_message.so"
    assert softib(pair, "modprobe", "n2", module) == (0, "")
    before = len(log_of(pair))
    for text in ("hello", "x" * 63):
        log = load_example(pair, "rc_message", "server=10.1.0.2", f"text={text}")
        assert f"n2 rc_message: received '{text}'" in log and f"n1 rc_message: returned '{text}'" in log, log
        assert re.search(ERR_STATE.format("n1"), log), log
    wait_until(lambda: len(re.findall(ERR_STATE.format("n2"), log_of(pair)[before:])) == 2,
               "n2 has disconnected")
    assert softib(pair, "rmmod", "n2", "rc_message") == (0, "")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "rc_message"]
    status, said = softib(pair, "modprobe", "n1", module, "server=10.1.0.2")
    assert status == 1 and "Connection refused" in said, said


def test_example_block_store(pair):
    """Blocks go to a store in n2 and return: transfers of rw.h, regions and completion queues of
    pools. Requests have from 1 to 16 blocks; the last block of the store is one of them."""
    module = BUILD / "examples/block_store.so"
    assert softib(pair, "modprobe", "n2", module) == (0, "")
    for first, blocks in ((3, 1), (0, 300), (4095 - 63, 64)):
        log = load_example(pair, "block_store", "server=10.1.0.2", f"first={first}", f"blocks={blocks}")
        assert f"n1 block_store: wrote and read {blocks} blocks at block {first} of 10.1.0.2" in log, log
    status, said = softib(pair, "modprobe", "n1", module, "server=10.1.0.2", "first=4090", "blocks=16")
    assert status == 1 and "Invalid argument" in said, said  # beyond the end of the store
    assert softib(pair, "rmmod", "n2", "block_store") == (0, "")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "block_store"]


SRQ_MESSAGE = r"n2 xrc_message: SRQ 0x[0-9a-f]+ received {} by QP 0x[0-9a-f]+"


def test_example_xrc_message(pair):
    """XRC between modules: one connection reaches both queues. Then rdma-core's programs are
    the other end of each side; their message is 16 bytes of 0."""
    module = BUILD / "examples/xrc_message.so"
    assert softib(pair, "modprobe", "n2", module) == (0, "")
    log = load_example(pair, "xrc_message", "server=10.1.0.2", "text=good evening")
    assert len(re.findall("n1 xrc_message: sent 'good evening' to SRQ 0x[0-9a-f]+ of 10.1.0.2", log)) == 2, log
    assert len(set(re.findall(SRQ_MESSAGE.format("12 bytes 'good evening'"), log))) == 2, log
    pair.run("n1", "rdma_xclient", "-c", "x", "-s", "10.1.0.2")
    wait_until(lambda: re.search(SRQ_MESSAGE.format("16 bytes ''"), log_of(pair)), "n2 has the message")
    assert softib(pair, "rmmod", "n2", "xrc_message") == (0, "")
    server = pair.start("n2", "rdma_xserver", "-c", "x", "-p", 7472)
    wait_until(lambda: [row for row in pair.json("resource", "show") if row["comm"] == "rdma_xserver"],
               "rdma_xserver listens")
    log = load_example(pair, "xrc_message", "server=10.1.0.2", "port=7472", f"text={'x' * 15}")
    assert f"n1 xrc_message: sent '{'x' * 15}' to SRQ" in log, log
    assert "rdma_xserver: end 0" in pair.finish(server)
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "xrc_message"]


def test_example_multicast(pair):
    assert softib(pair, "modprobe", "n2", BUILD / "examples/multicast.so") == (0, "")

    def hear():  # a datagram is lost while the switches do not know of the member yet
        log = load_example(pair, "multicast", "text=good morning")
        assert "n1 multicast: softib0 is a member" in log, log
        return "n2 multicast: heard 'good morning' from lid" in log_of(pair)

    wait_until(hear, "n2 hears n1")
    assert softib(pair, "rmmod", "n2", "multicast") == (0, "")
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "multicast"]


def test_example_datagram(pair):
    """Pairs of ids for datagrams: to a service, and to the group that an address means."""
    module = BUILD / "examples/datagram.so"
    assert softib(pair, "modprobe", "n2", module, "group=239.1.2.3") == (0, "")
    lid = pair.json("path", "n2", "n1")["dlid"]
    load_example(pair, "datagram", "server=10.1.0.2", "text=hello")
    wait_until(lambda: re.search(f"n2 datagram: the service received 'hello' from QP 0x[0-9a-f]+ of lid {lid}\n",
                                 log_of(pair)), "n2 has the message")

    def hear():  # a datagram is lost while the switches do not know of the member yet
        load_example(pair, "datagram", "group=239.1.2.3", "text=good morning")
        return "n2 datagram: the member received 'good morning' from QP" in log_of(pair)

    wait_until(hear, "n2 hears n1")
    # who has left the group hears nothing of it
    before = len(log_of(pair))
    assert softib(pair, "rmmod", "n2", "datagram") == (0, "")
    assert softib(pair, "modprobe", "n2", module) == (0, "")
    load_example(pair, "datagram", "group=239.1.2.3", "server=10.1.0.2", "text=good night")
    wait_until(lambda: "the service received 'good night'" in log_of(pair)[before:], "n2 has the message")
    assert "n2 datagram: the member received" not in log_of(pair)[before:]
    assert softib(pair, "rmmod", "n2", "datagram") == (0, "")
    status, said = softib(pair, "modprobe", "n1", module, "server=10.1.0.2")
    assert status == 1 and "Connection refused" in said, said
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "datagram"]
    assert "a member of 239.1.2.3" in log_of(pair)[before:]


def test_the_adapter_of_examples_goes(pair):
    """A member of a group, a service with a client, a store with one: all end with the adapter."""
    for name, params in (("block_store", []), ("datagram", ["group=239.1.2.4"])):
        assert softib(pair, "modprobe", "n2", BUILD / f"examples/{name}.so", *params) == (0, "")
        load_example(pair, name, "server=10.1.0.2")
    before = len(log_of(pair))
    pair.softib("fault", "add", "node", "n2", "remove")
    wait_until(lambda: not [row for row in pair.json("resource", "show")
                            if row["node"] == "n2" and row["comm"] in ("block_store", "datagram")],
               "nothing is left")
    wait_until(lambda: softib(pair, "path", "n1", "n2")[0], "the subnet manager misses n2")
    pair.softib("fault", "clear", "all")
    wait_until(lambda: not softib(pair, "path", "n1", "n2")[0], "n2 has come")
    # The service listens at the adapter that has come. So does the store, but the adapter begins
    # with the numbers of pairs that it had, and so a connection may have to wait for the last
    # one's time-wait.
    load_example(pair, "datagram", "server=10.1.0.2", "text=again")
    wait_until(lambda: "n2 datagram: the service received 'again'" in log_of(pair)[before:], "n2 has the message")
    for name in ("block_store", "datagram"):
        assert softib(pair, "rmmod", "n2", name) == (0, "")  # nothing was left behind
    assert "crash" not in log_of(pair)[before:]


def test_example_fmr_pool(pair):
    log = load_example(pair, "fmr_pool", "uses=40")
    assert "n1 fmr_pool: softib0: 40 times 16384 bytes over 4 pages" in log, log
    assert "after 1 flush: remote: access error" in log, log
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "fmr_pool"]
