# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Cables between two fabrics, each of a softibd of its own: they are one subnet for subnet managers, diagnostic tools
and programs, and a cable that breaks, is refused or is given wrongly says why."""
import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from interop.fabric import Fabric, _ports, guid, kill, link_local, wait_until
from interop.test_bad_input import node_lid
from interop.test_capture import Capture, tshark
from interop.test_faults import add, rule_of
from interop.test_kill import softibd_pid
from interop.test_nodes import allowed
from interop.test_rdma_cm import hear_a_group
from interop.test_sdp_shell import Sshd, sshd_folder  # noqa: F401

STAR = "star:2,spare=2"
END = "s1:3"  # the first free port of the switch of STAR; the second is s1:4
HERE, THERE = "t", "u"
BEHIND = "--ip", "10.1.0.11/16", "--ip", "fd73:6f66:7469:6201::11/64"  # the addresses of the second fabric


def cables(fabric):
    """What softib cable says of each: {"s1:3": ...}"""
    return {f"{cable['node']}:{cable['port']}": cable for cable in fabric.json("cable")}


def state(fabric, port=END):
    return cables(fabric)[port]["state"]


def is_up(*fabrics, port=END):
    return all(cables(fabric)[port]["connected"] and state(fabric, port) == "Active" for fabric in fabrics)


def wait_for_cable(*fabrics, port=END):
    wait_until(lambda: is_up(*fabrics, port=port), lambda: f"the cable is Active: {list(map(cables, fabrics))}")
    for fabric in fabrics:
        fabric.softib("wait", "--timeout", "60")


def plug(here, there, address, options=(), port=END):
    """@here listens."""
    here.softib("cable", port, "--listen", str(address), *options)
    there.softib("cable", port, "--connect", str(address), *options)


@contextlib.contextmanager
def two(managers=("softib-sm", "none"), joined=True, up_args=()):
    """Two fabrics, joined by a cable between their first free ports."""
    with Fabric(STAR, sm=managers[0], name=HERE, up_args=up_args) as here, \
            Fabric(STAR, sm=managers[1], name=THERE, up_args=(*up_args, *BEHIND)) as there:
        if joined:
            plug(here, there, here.home / "cable")
            wait_for_cable(here, there)
        yield here, there


@pytest.fixture(scope="module")
def both():
    with two() as fabrics:
        yield fabrics
        for fabric in fabrics:
            fabric.expect_no_leftovers()


@pytest.fixture(scope="module")
def loose():
    """Two fabrics without a manager, for cables that come and go."""
    with two(managers=("none", "none"), joined=False) as fabrics:
        yield fabrics


@pytest.fixture
def bare(loose, home):
    """These, and a folder; the cables of the test are pulled behind it."""
    yield *loose, home
    for fabric in loose:
        for port in cables(fabric):
            fabric.softib("cable", port, "--remove")


def fails(fabric, *args):
    """Return: what softib cable says when it fails."""
    done = subprocess.run([fabric.program, "cable", *map(str, args)], env=fabric.env, capture_output=True, text=True,
                          check=False)
    assert done.returncode and not done.stdout, done
    return done.stderr


def reason(fabric, text, port=END):
    """Wait until the cable says why it is not connected."""
    wait_until(lambda: text in cables(fabric)[port]["reason"] and not cables(fabric)[port]["connected"],
               lambda: f"'{text}': {cables(fabric)}")
    assert f"not connected: {cables(fabric)[port]['reason']}" in fabric.softib("cable")


# --- one subnet ---

NODES = [guid(node, fabric=name) for name in (HERE, THERE) for node in ("n1", "n2")]
SWITCHES = [guid("s1", fabric=name) for name in (HERE, THERE)]


def shows_all(fabric):
    """The tools of a node find the nodes and both switches, each once."""
    out = fabric.run("n1", "ibnodes")
    assert sorted(re.findall(r"^Ca\s*: 0x(\w+)", out, re.M)) == sorted(NODES), out
    assert sorted(re.findall(r"^Switch\s*: 0x(\w+)", out, re.M)) == sorted(SWITCHES), out
    out = fabric.run("n1", "ibnetdiscover")
    ends = {re.search(rf'^\[3\]\s+"S-{peer}"\[3\]', out, re.M) is not None for peer in SWITCHES}
    assert ends == {True}, out


def test_softib_sm_brings_both_up(both):
    for fabric in both:
        shows_all(fabric)


def test_opensm_brings_both_up():
    with two(managers=("none", "opensm")) as (here, there):
        shows_all(here)
        shows_all(there)
        here.pair("ibv_rc_pingpong", "-n", "20", client_of=there)


def manager_state(fabric, at, lid):
    said = re.search(r"SMINFO_(\w+)", fabric.run(at, "sminfo", lid, check=False))
    return said and said[1]


@pytest.mark.parametrize("manager", ["softib-sm --priority 3", "opensm -p 3"])
def test_one_of_two_managers_is_master(manager):
    """The other stands by, and is master when the fabric of the first is gone."""
    with two(managers=(manager, "softib-sm --sweep 1"), joined=False) as (first, second), contextlib.ExitStack() as last:
        plug(first, second, first.home / "cable")
        wait_for_cable(first, second)
        wait_until(lambda: manager_state(second, "n2", node_lid(first, "n1")) == "MASTER" and
                   manager_state(first, "n2", node_lid(second, "n1")) == "STANDBY", "one is master, the other stands by")
        first.pair("ibv_rc_pingpong", "-n", "20", client_of=second)
        last.callback(lambda: first.softib("up", first.name, "--sm", "none"))  # which two() takes down again
        first.softib("down", first.name)
        reason(second, "")
        wait_until(lambda: manager_state(second, "n2", node_lid(second, "n1")) == "MASTER", "the other takes over")
        second.pair("ibv_rc_pingpong", "-n", "20")


# --- programs ---

@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_lat", "ib_atomic_bw", "ib_send_lat -c UD",
                                     "ib_write_lat -c UC", "ibv_rc_pingpong -c", "ibv_ud_pingpong", "ibv_srq_pingpong"])
def test_programs_meet(both, program):
    """From node to node of the same name, in either direction."""
    here, there = both
    name, *args = program.split()
    before = cables(here)[END]
    here.pair(name, *args, "-n", "20", client_of=there)
    there.pair(name, *args, "-n", "20", server="n2", client="n1", client_of=here)
    after = cables(here)[END]
    assert all(after[f"packets_{way}"] - before[f"packets_{way}"] >= 20 for way in ("sent", "received"))
    assert after["discarded"] == before["discarded"]


def test_a_connection_by_gid(both):
    """The RDMA CM with addresses of InfiniBand, whose path softib-sm names."""
    here, there = both
    gid = link_local("n1")
    server = here.start("n1", "ucmatose", "-f", "gid", "-b", gid)

    def is_served():
        client = there.start("n2", "ucmatose", "-f", "gid", "-s", gid)
        there.finish(client)
        return client.returncode == 0  # else the server does not listen yet

    wait_until(is_served, "the server listens")
    assert "return status 0" in here.finish(server)


def test_tools_ask_across_the_cable(both):
    here, there = both
    lids = {node: node_lid(here, node) for node in ("n1", "s1")}
    for node, lid in lids.items():
        assert guid(node) in there.run("n1", "smpquery", "nodeinfo", lid)
        assert guid(node) in there.run("n1", "smpquery", "nodeinfo", "-D", {"n1": "0,1,3,1", "s1": "0,1,3"}[node])
        assert "PortXmitPkts:" in there.run("n1", "perfquery", lid, "1")
    assert "SMINFO_MASTER" in there.run("n2", "sminfo")
    assert len(re.findall("^NodeRecord dump:", there.run("n2", "saquery", "-N"), re.M)) == len(NODES + SWITCHES)
    assert f"{lids['n1']}" in there.run("n2", "saquery", "--src-to-dst", f"{node_lid(there, 'n2')}:{lids['n1']}")


def test_ibping(both):
    here, there = both
    lid = node_lid(here, "n2")
    server = here.start("n2", "ibping", "-S")
    wait_until(lambda: "1 received" in there.run("n1", "ibping", "-f", "-c", "1", lid, check=False), "it answers")
    assert "20 packets transmitted, 20 received, 0% packet loss" in there.run("n1", "ibping", "-c", "20", "-f", lid)
    kill(server)


def test_multicast(both):
    """Members on both sides hear what a node of one side sends."""
    for out in hear_a_group(both, both[1]):
        assert "return status 0" in out, out


@pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")
def test_ip_over_infiniband():
    """Nodes of one network, the second fabric's behind the first one's."""
    with two(up_args=("--net", "node")) as (here, there):
        for fabric, node, address in (here, "n1", "10.1.0.11"), (there, "n1", "10.1.0.2"), (there, "n2", "fd73:6f66:7469:6201::1"):
            out = fabric.run(node, "ping", "-c", "2", "-i", "0.2", "-s", "1900", address)
            assert " 0% packet loss" in out, out
        connects_by_address(here, there)


def connects_by_address(here, there):
    server = here.start("n1", "rping", "-s", "-a", "10.1.0.1", "-C", 5)

    def is_served():
        out = there.run("n2", "rping", "-c", "-v", "-V", "-a", "10.1.0.1", "-C", 5, check=False)
        return out.count("ping data: rdma-ping-") == 5  # else the server does not listen yet

    wait_until(is_served, "rping connects")
    here.finish(server)


def test_a_connection_by_address(both):
    """The RDMA CM with IP addresses of the other fabric."""
    connects_by_address(*both)


# --- what a cable counts, and who looks at it ---

def counts(fabric):
    out = fabric.run("n1", "perfquery", "-x", node_lid(fabric, "s1"), END.split(":")[1])
    return {name: int(number) for name, number in re.findall(r"^(Port\w+):\.*(\d+)", out, re.M)}


def test_both_ports_count_the_same(both):
    """What leaves at one end arrives at the other: as packets and as words, and by more than was to be sent."""
    here, there = both
    last = []

    def agree():
        before = [counts(fabric) for fabric in both]
        here.pair("ib_send_bw", "-n", "100", client_of=there)
        last[:] = ({name: after - first[name] for name, after in counts(fabric).items()}
                   for fabric, first in zip(both, before))
        assert last[0]["PortRcvPkts"] >= 100
        return all(one[f"PortXmit{what}"] == other[f"PortRcv{what}"]
                   for one, other in (last, reversed(last)) for what in ("Data", "Pkts"))

    wait_until(agree, lambda: f"both ends count the same: {last}")  # a sweep may begin or end in between


RC = "infiniband.bth.opcode < 0x20"


def captured(pcap, direction):
    """What tshark sees of RC packets of one direction, in order."""
    fields = ("infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.lrh.dlid",
              "infiniband.invariant.crc")
    return tshark("-r", pcap, "--disable-protocol", "rpcordma", "-Y", f"{RC} && frame.packet_flags_direction == {direction}",
                  "-T", "fields", *(word for name in fields for word in ("-e", name)))


def test_captures_of_both_ends(both):
    """What leaves at one end arrives at the other, with the same invariant CRC, and nothing is malformed."""
    here, there = both
    captures = [Capture(fabric, END) for fabric in both]
    here.pair("ib_send_bw", "-n", "20", client_of=there)
    there.run("n1", "ibnetdiscover")
    files = [capture.end() for capture in captures]
    for one, other in (files, reversed(files)):
        assert captured(one, 2) == captured(other, 1) != ""
    for file in files:
        assert not tshark("-r", file, "--disable-protocol", "rpcordma", "-Y", "_ws.malformed")
        assert tshark("-r", file, "-Y", "infiniband.mad.mgmtclass == 0x81")


# --- a link like any other ---

def down_and_up_again(both, take, give):
    downed = [fabric.json("counters", END)["counters"][0]["link_downed"] for fabric in both]
    take()
    wait_until(lambda: {state(fabric) for fabric in both} == {"Down"}, "both ports are Down")
    assert all(cable["connected"] for cable in (cables(fabric)[END] for fabric in both))
    give()
    wait_for_cable(*both)
    assert [fabric.json("counters", END)["counters"][0]["link_downed"] for fabric in both] == [n + 1 for n in downed]
    both[0].pair("ibv_rc_pingpong", "-n", "20", client_of=both[1])


@pytest.mark.parametrize("side", [0, 1])
def test_a_cable_is_pulled_on_one_side(both, side):
    down_and_up_again(both, lambda: both[side].softib("link", END, "down"), lambda: both[side].softib("link", END, "up"))


@pytest.mark.parametrize("side", [0, 1])
def test_a_rule_takes_the_link_down(both, side):
    rule = []
    down_and_up_again(both, lambda: rule.append(add(both[side], f"link {END} down")),
                      lambda: both[side].softib("fault", "clear", str(rule[0])))


def test_a_rule_takes_the_link_down_for_a_time(both):
    """Nobody has to end it."""
    rule = add(both[1], f"link {END} down for=20ms")
    wait_until(lambda: rule_of(both[1], rule)["hits"] == 1, "it falls")
    wait_for_cable(*both)
    both[0].pair("ibv_rc_pingpong", "-n", "20", client_of=both[1])
    both[1].softib("fault", "clear", "all")


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("what", ["drop first=3", "corrupt first=3", "duplicate first=3", "reorder 2 first=3",
                                  "delay 1ms first=3"])
def test_rules_of_packets(both, what, side):
    """RC loses nothing to a rule of either end."""
    rule = add(both[side], f"link {END} {what} transport=rc")
    both[0].pair("ibv_rc_pingpong", "-c", "-n", "20", client_of=both[1])
    assert rule_of(both[side], rule)["hits"] == 3
    both[side].softib("fault", "clear", "all")


def test_a_program_that_does_not_read_holds_up_no_other(both):
    """The receiver of a flow without acknowledgements is stopped. What comes for it is discarded in the end, and another
    flow gets through meanwhile."""
    here, there = both
    port = next(_ports)
    args = ["ib_write_bw", "-d", "softib0", "-p", port, "-c", "UC", "-n", "5000000"]
    server = here.serve("n1", *args, port=port)
    before = cables(here)[END]["discarded"]
    client = there.start("n1", *args, "127.0.0.1")
    here.wait_for_traffic("n1", 100)
    receiver = next(row["pid"] for row in here.user_resources() if row["type"] == "qp" and row["node"] == "n1")
    os.kill(receiver, signal.SIGSTOP)
    try:
        wait_until(lambda: cables(here)[END]["discarded"] > before, "packets for it are discarded")
        here.pair("ib_send_lat", "-n", "20", "-u", "20", server="n2", client="n2", client_of=there)
        assert " T " in Path(f"/proc/{receiver}/stat").read_text(encoding="ascii") and client.poll() is None
    finally:
        os.kill(receiver, signal.SIGCONT)
        kill(client)
        kill(server)


# --- the end of a softibd ---

@pytest.mark.parametrize("dies", ["listens", "connects"])
def test_a_softibd_is_killed(dies):
    """The other side says so. With a new softibd and the cable plugged in again, there is traffic as before: who listens
    takes the place of the killed one's socket file, who connects does so again by itself."""
    with two(joined=False) as (lives, victim):
        address = lives.home / "cable"
        ways = ("--listen", "--connect") if dies == "listens" else ("--connect", "--listen")
        victim.softib("cable", END, ways[0], str(address))
        lives.softib("cable", END, ways[1], str(address))
        wait_for_cable(lives, victim)
        os.kill(softibd_pid(victim), signal.SIGKILL)
        wait_until(lambda: not cables(lives)[END]["connected"] and state(lives) == "Down", "the port is Down")
        reason(lives, "the other side has ended the connection" if dies == "connects" else "")
        assert cables(lives)[END]["reason"]
        victim.wait_for_cleaning()
        victim.softib("up", THERE, "--topology", STAR, "--sm", "none")
        victim.softib("cable", END, ways[0], str(address))
        wait_for_cable(lives, victim)
        lives.pair("ibv_rc_pingpong", "-n", "20", client_of=victim)


def test_a_fabric_that_goes_down_leaves_no_socket(home):
    with Fabric(STAR, sm="none") as fabric:
        for port in (END, "s1:4"):
            fabric.softib("cable", port, "--listen", str(home / port))
        assert sorted(path.name for path in home.iterdir()) == [END, "s1:4"]
        fabric.softib("cable", "s1:4", "--remove")
        assert [path.name for path in home.iterdir()] == [END]
    assert not list(home.iterdir())


# --- keys, by TCP ---

def key_file(path, text="0123456789abcdef0123456789abcdef", mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def address():
    return f"127.0.0.1:{next(_ports)}"


def test_tcp_with_a_key(bare, address):
    """--listen makes it; the other side has a copy."""
    here, there, home = bare
    key = home / "key"
    here.softib("cable", END, "--listen", address, "--key", str(key))
    assert key.stat().st_mode & 0o777 == 0o600 and re.fullmatch(r"[0-9a-f]{64}\n", key.read_text())
    there.softib("cable", END, "--connect", address, "--key", str(key_file(home / "copy", key.read_text())))
    wait_until(lambda: cables(here)[END]["connected"] and cables(there)[END]["connected"], "they connect")
    assert "with a key" in here.softib("cable") and f"connected to {HERE}/{END}" in there.softib("cable")
    wait_until(lambda: state(here) == state(there) == "Init", "the link trains")


@pytest.mark.no_sanitizer("ssh does not start under a sanitizer's runtime")
def test_ssh_carries_a_cable(bare, sshd_folder):
    """From one Unix socket to another: both sides see a process of their own user."""
    here, there, home = bare
    sshd = Sshd(here, home, "127.0.0.1", options=())
    here.softib("cable", END, "--listen", str(home / "far"))
    there.start("n1", "sh", "-c", f"exec ssh {sshd.options} -N -L {home}/near:{home}/far 127.0.0.1")
    wait_until((home / "near").exists, "ssh listens")
    there.softib("cable", END, "--connect", str(home / "near"))
    wait_until(lambda: all(cables(fabric)[END]["connected"] for fabric in (here, there)), "the cable is connected")
    assert cables(there)[END]["peer"] == f"{HERE}/{END}"


def test_tcp_of_ipv6_and_a_name(bare):
    here, there, home = bare
    key, port = key_file(home / "key"), next(_ports)
    here.softib("cable", END, "--listen", f"[::1]:{port}", "--key", str(key))
    there.softib("cable", END, "--connect", f"[::1]:{port}", "--key", str(key))
    wait_until(lambda: cables(here)[END]["connected"], "they connect")
    port = next(_ports)
    here.softib("cable", "s1:4", "--listen", f"localhost:{port}", "--key", str(key))
    there.softib("cable", "s1:4", "--connect", f"localhost:{port}", "--key", str(key))
    wait_until(lambda: cables(here)["s1:4"]["connected"], "they connect")


def test_keys_that_differ(bare, address):
    here, there, home = bare
    here.softib("cable", END, "--listen", address, "--key", str(key_file(home / "a")))
    there.softib("cable", END, "--connect", address, "--key", str(key_file(home / "b", "another secret, as long")))
    for fabric in (here, there):
        reason(fabric, "the other side has another key")
        assert "the other side has another key" in (fabric.dir / "softibd.log").read_text()


@pytest.mark.parametrize("side", [0, 1])
def test_a_key_on_one_side_alone(bare, side):
    here, there, home = bare
    options = ["--key", str(key_file(home / "key"))]
    here.softib("cable", END, "--listen", str(home / "cable"), *(options if side == 0 else []))
    there.softib("cable", END, "--connect", str(home / "cable"), *(options if side == 1 else []))
    reason((here, there)[side], "the other side has no key; give it this one by --key")
    reason((here, there)[not side], "the other side has a key; give it here by --key, too")


def test_key_files_that_are_not_used(bare, address):
    here, _, home = bare
    here_cable = END, "--listen", address
    for text, mode, said in (("x" * 32, 0o640, "others can read the key file"), ("x" * 15, 0o600, "16 to 1024 bytes"),
                             ("x" * 1025, 0o600, "16 to 1024 bytes")):
        key = key_file(home / f"key{len(text)}", text, mode)
        assert said in fails(here, *here_cable, "--key", key)
    assert "cannot make the key file" in fails(here, *here_cable, "--key", home / "none" / "key")
    assert "cannot read the key file" in fails(here, END, "--connect", address, "--key", home / "none")
    assert "needs a key that both sides have: --key FILE" in fails(here, *here_cable)
    assert not cables(here)


# --- what is refused ---

def test_two_fabrics_of_one_name():
    with Fabric(STAR, sm="none") as one, Fabric(STAR, sm="none") as other:
        plug(one, other, one.home / "cable")
        for fabric in (one, other):
            reason(fabric, "both fabrics have the same GUIDs, because they have the same name")
            assert state(fabric) == "Down"


@pytest.mark.parametrize("args,said", [
    (["s1:1", "--listen", "./c"], "s1:1: this port has a cable; 'softib topo' shows those that are free"),
    (["s1:9", "--listen", "./c"], "s1"),
    (["s1:0", "--listen", "./c"], "'s1:0' is no NODE:PORT"),
    (["x1:1", "--listen", "./c"], "x1"),
    ([END, "--listen", "nowhere"], "'nowhere' is no address: expected HOST:PORT or the path of a Unix socket"),
    ([END, "--connect", ":17"], "':17' is no address"),
    ([END, "--connect", "127.0.0.1:none"], "127.0.0.1:none: "),
    ([END, "--listen", "/tmp/" + "x" * 120], "is no address"),
    ([END, "--listen", "/nowhere/cable"], "/nowhere/cable: No such file or directory"),
    ([END], "one of --listen, --connect and --remove is needed"),
    ([END, "--listen", "./c", "--remove"], "one of --listen, --connect and --remove is needed"),
    ([END, "--remove"], f"{END} has no cable that leaves the fabric; 'softib cable' lists them"),
    (["--listen", "./c"], "at which port?"),
    ([END, "s1:4", "--remove"], "one port is enough"),
], ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "")
def test_words_that_are_wrong(loose, args, said):
    assert said in fails(loose[0], *args)
    assert not cables(loose[0])


def test_an_address_in_use(bare, address):
    """Of TCP, of a Unix socket; and no file is taken for the socket of a softibd that was killed."""
    here, there, home = bare
    key = ["--key", str(key_file(home / "key"))]
    here.softib("cable", END, "--listen", address, *key)
    here.softib("cable", "s1:4", "--listen", str(home / "cable"))
    assert f"{address}: Address already in use" in fails(there, END, "--listen", address, *key)
    assert "cable: Address already in use" in fails(there, END, "--listen", home / "cable")
    (home / "thesis").write_text("years of work")
    assert "thesis: Address already in use" in fails(there, END, "--listen", home / "thesis")
    assert (home / "thesis").read_text() == "years of work"
    there.softib("cable", "s1:4", "--connect", str(home / "cable"))
    wait_until(lambda: cables(here)["s1:4"]["connected"], "the first one's cable still takes who comes")


def test_a_port_has_one_cable(bare):
    here, _, home = bare
    here.softib("cable", END, "--listen", str(home / "cable"))
    assert "this port has a cable" in fails(here, END, "--listen", home / "other")
    assert "this port has a cable" in fails(here, END, "--connect", home / "other")
    here.softib("cable", END, "--remove")
    here.softib("cable", END, "--connect", str(home / "other"))
    reason(here, "No such file or directory")


def test_what_is_listed(bare):
    """For people and for programs."""
    here, there, home = bare
    assert here.softib("cable") == "" and here.json("cable") == []
    plug(here, there, home / "cable")
    wait_until(lambda: state(here) == "Init" and state(there) == "Init", "the link trains")
    cable = cables(there)[END]
    assert {key: cable[key] for key in ("node", "port", "connect", "key", "connected", "peer", "reason")} == {
        "node": "s1", "port": 3, "connect": str(home / "cable"), "key": False, "connected": True, "peer": f"{HERE}/{END}",
        "reason": ""}
    assert cables(here)[END]["listen"] == str(home / "cable")
    assert set(cable) >= {"packets_sent", "packets_received", "bytes_sent", "bytes_received", "waits", "discarded"}
    assert f"{END}  listens at {home / 'cable'}\n  connected to {THERE}/{END}, Init\n" in here.softib("cable")
    there.softib("cable", END, "--remove")
    reason(here, "the other side has ended the connection")


def test_a_path_is_of_the_callers_folder(bare):
    here, there, home = bare
    for fabric, way in (here, "--listen"), (there, "--connect"):
        subprocess.run([fabric.program, "cable", END, way, "./cable"], env=fabric.env, cwd=home, check=True)
    wait_until(lambda: cables(here)[END]["connected"], "they connect")
    assert (home / "cable").is_socket() and (home / "cable").stat().st_mode & 0o777 == 0o600
