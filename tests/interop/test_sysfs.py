# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""/sys/class/infiniband of a node is live, as node_exporter and scripts read it:
the kernel's names and units, one process that sleeps while nobody reads."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from interop.commands import processes, softib
from interop.fabric import SOFTIB, TIMEOUT, Fabric, _ports, kill, wait_until
from interop.test_nodes import users

PORT = "/sys/class/infiniband/softib0/ports/1"
COUNTERS = {  # Documentation/ABI/stable/sysfs-class-infiniband
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
    "local_link_integrity_errors", "multicast_rcv_packets", "multicast_xmit_packets",
    "port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors", "port_rcv_packets",
    "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors", "port_xmit_data", "port_xmit_discards", "port_xmit_packets",
    "port_xmit_wait", "symbol_error", "unicast_rcv_packets", "unicast_xmit_packets"}


class Shell:
    """One that lives on a node, and is told what to run there."""

    def __init__(self, fabric, node):
        self.process = fabric.start(node, "sh", stdin=subprocess.PIPE)

    def run(self, command):
        self.process.stdin.write(f"{command}; echo; echo end of it\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) != "end of it\n":
            assert line, "the shell has ended"
            lines.append(line)
        return "".join(lines)[:-1]  # without our own empty line

    def number(self, file):
        return int(self.run(f"cat {PORT}/{file}"))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(TIMEOUT)


@pytest.fixture
def shell(quiet):
    with Shell(quiet, "n2") as a_shell:
        yield a_shell


def send(fabric, count):
    done = subprocess.run([SOFTIB, "pair", "--fabric", "t", "-q", "n2", "n1", "--", "ib_send_bw",
                           "-d", "softib0", "-s", "4096", "-n", str(count), "-p",
                           str(next(_ports))], env=fabric.env, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def row(fabric):
    return fabric.json("counters", "n2:1")["counters"][0]


def test_the_kernel_s_names(shell):
    assert set(shell.run(f"ls {PORT}/counters").split()) == COUNTERS
    assert {"link_downed", "rcvd_pkts", "sent_pkts"} <= set(shell.run(f"ls {PORT}/hw_counters").split())
    for name in COUNTERS:
        assert re.fullmatch(r"\d+\n", shell.run(f"cat {PORT}/counters/{name}"))
    assert shell.run(f"stat -c %a {PORT}/counters/port_rcv_data {PORT}/lid") == "444\n444\n"


def test_live_in_units_of_four_octets(quiet, shell):
    """A program that runs all the time sees each transfer, exactly."""
    for count in (100, 300):
        before = {name: shell.number(f"counters/{name}") for name in COUNTERS}
        send(quiet, count)
        now, said = row(quiet), {name: shell.number(f"counters/{name}") for name in COUNTERS}
        assert said["port_rcv_packets"] - before["port_rcv_packets"] >= count
        assert said["port_rcv_packets"] == said["unicast_rcv_packets"] == now["rcv_packets"]
        assert said["port_rcv_data"] * 4 == now["rcv_bytes"]
        assert said["port_xmit_data"] * 4 == now["xmit_bytes"]
        assert shell.number("hw_counters/rcvd_pkts") == now["rcv_packets"]


def test_a_descriptor_that_is_read_again(quiet):
    """... is as live as one that is opened anew, after a moment."""
    code = (f"import os, sys; f = os.open('{PORT}/counters/port_rcv_packets', os.O_RDONLY)\n"
            "while sys.stdin.readline(): print(int(os.pread(f, 99, 0)), flush=True)")
    process = quiet.start("n2", "python3", "-c", code, stdin=subprocess.PIPE)

    def now():
        process.stdin.write("\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    before = now()
    send(quiet, 100)
    wait_until(lambda: now() - before >= 100, "the open file follows")
    process.stdin.close()
    assert process.wait(TIMEOUT) == 0
    with Shell(quiet, "n2") as shell:  # and the lease is taken again
        assert shell.number("counters/port_rcv_packets") == row(quiet)["rcv_packets"]


def test_state_and_lid_are_live():
    with Fabric("pair") as fabric, Shell(fabric, "n2") as shell:
        assert shell.run(f"cat {PORT}/state") == "4: ACTIVE\n"
        fabric.softib("link", "n2:1", "down")
        assert shell.run(f"cat {PORT}/state {PORT}/phys_state") == "1: DOWN\n2: Polling\n"
        assert shell.number("counters/link_downed") == 1
        fabric.softib("link", "n2:1", "up")
        fabric.softib("wait")
        assert shell.run(f"cat {PORT}/state") == "4: ACTIVE\n"


@pytest.mark.parametrize("user", users(), ids=lambda user: "nobody" if user else "self")
def test_a_node_describes_itself(user):
    """A text that is written, and that of rdma-ndd, which does not truncate the file: the subnet manager has it
    by trap 144."""
    file = "/sys/class/infiniband/softib0/node_desc"
    with Fabric("pair", up_args=("--net", "node"), user=user) as fabric:
        def said():
            return re.findall(r"NodeDescription\.+(.*)", fabric.run("n2", "saquery", "-N"))

        fabric.run("n1", "sh", "-c", f"echo 'row 7, rack 3' >{file}")
        wait_until(lambda: "row 7, rack 3" in said(), "the administrator knows")
        assert fabric.run("n1", "cat", file) == "row 7, rack 3\n"
        daemon = fabric.start("n1", "rdma-ndd", "--foreground")
        wait_until(lambda: "n1 softib0" in said(), "rdma-ndd has written")
        assert fabric.run("n1", "cat", file) == "n1 softib0\n"
        kill(daemon)
        fabric.run("n1", "sh", "-c", f"printf '%065d' 0 >{file}")
        wait_until(lambda: "0000\" into /sys/class/infiniband/softib0/node_desc: " in
                   (fabric.dir / "softibd.log").read_text(), "the log says why it is refused")
        assert fabric.run("n1", "cat", file) == "n1 softib0\n"


def test_perfquery_resets_them(quiet, shell):
    send(quiet, 50)
    assert shell.number("counters/port_rcv_packets") >= 50
    quiet.run("n1", "perfquery", "-R", "-x", str(lid(quiet)), "1")
    assert shell.number("counters/port_rcv_packets") < 10


def lid(fabric):
    return next(n for n in fabric.json("topo")["nodes"] if n["name"] == "n2")["ports"][0]["lid"]


def servers(fabric):
    """The processes that keep files live: softib node-files DIR NODE"""
    return [pid for pid in processes(str(fabric.dir), "softib")
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1] == "node-files"]


def test_one_process_for_a_node_and_it_ends_with_the_fabric():
    with Fabric("pair") as fabric:
        for node in ("n1", "n2", "n2"):
            fabric.run(node, "true")
        fabric.run("n2", SOFTIB, "exec", "--fabric", "t", "n1", "--", "true")
        found = servers(fabric)
        assert len(found) == 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found),
               "they end with the fabric")


def test_one_that_was_killed_is_replaced():
    """What runs meanwhile sees the files of the new one."""
    with Fabric("pair") as fabric, Shell(fabric, "n2") as shell:
        shell.number("counters/port_rcv_packets")
        found = servers(fabric)
        assert len(found) == 1
        os.kill(found[0], signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{found[0]}").exists(), "it is gone")
        fabric.run("n2", "true")
        fabric.softib("link", "n2:1", "down")
        assert shell.run(f"cat {PORT}/state") == "1: DOWN\n"


def test_nothing_is_done_while_nobody_reads(quiet, shell):
    """Neither softibd nor that process runs: their processor time stands still
    while another node's files are read a hundred times."""
    def used(pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        switches = re.search(r"^voluntary_ctxt_switches:\s+(\d+)",
                             Path(f"/proc/{pid}/status").read_text(), re.M)
        return fields[11:13], switches[1]

    shell.number("counters/port_rcv_packets")
    mine = [pid for pid in servers(quiet)
            if Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").endswith("n2")]
    assert len(mine) == 1
    previous = None

    def at_rest():
        nonlocal previous
        before, previous = previous, used(mine[0])
        return before == previous
    wait_until(at_rest, "its last lease is taken")
    with Shell(quiet, "n1") as other:
        for _ in range(100):
            other.number("counters/port_xmit_data")
    assert used(mine[0]) == previous


def test_readers_by_the_hundred(quiet):
    """Many at once, and each has its number."""
    out = quiet.run("n2", "sh", "-c",
                    f"for i in $(seq 100); do cat {PORT}/counters/* & done; wait")
    numbers = out.split()
    assert len(numbers) == 100 * len(COUNTERS) and all(n.isdigit() for n in numbers)


def test_programs_start_while_files_are_read(quiet, shell):
    """The process that keeps files live replaces those that are read, while whoever starts a
    program writes those that are missing: neither meets the other's half-written files."""
    shell.run("true")  # the node has its files
    folder = quiet.dir / "sys/n2/infiniband/softib0/ports/1"
    still = {file: file.read_text() for kind in ("gids", "pkeys") for file in (folder / kind).iterdir()}
    assert len(still) > 8
    reader = quiet.start("n2", "sh", "-c", f"while cat {PORT}/counters/* {PORT}/lid; do :; done",
                         stdout=subprocess.DEVNULL)
    for _ in range(4):
        for file in still:
            file.unlink()
        quiet.run("n2", "true")
        assert {file: file.read_text() for file in still} == still
    assert reader.poll() is None
    reader.terminate()
    for name in COUNTERS:
        assert re.fullmatch(r"\d+\n", shell.run(f"cat {PORT}/counters/{name}"))


def test_as_an_own_private_fabric(home):
    done = softib(home, "run", "--", "sh", "-c", f"cat {PORT}/state; ls {PORT}/counters | wc -l")
    assert (done.returncode, done.stdout) == (0, f"4: ACTIVE\n{len(COUNTERS)}\n")
    assert not list((home / "softib").iterdir())
