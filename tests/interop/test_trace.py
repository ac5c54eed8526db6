# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib trace: programs that no one here wrote run under it, and what it prints is what they
did, in order."""
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from hostile.attack import ask
from interop import test_sdp as sdp
from interop.fabric import BUILD, NOBODY, TIMEOUT, Fabric, wait_until
from interop.test_kdapl import SERVER_IP as N2_IP, load_kdapl, unload
from interop.test_modules import MODULES, load_example, softib
from interop.test_nodes import allowed
from interop.test_rdma_cm import SERVER_IP, play

LINE = re.compile(r"^\d\d:\d\d:\d\d\.\d{6} (\S+) (\S+): (\S+=\S*(?: \S+=\S*)*)$")


class Trace:
    """softib trace ARGS, under way once made; each event as a dictionary, by --json."""

    def __init__(self, fabric, *args, output=subprocess.PIPE, as_json=True):
        self.fabric = fabric
        self.process = subprocess.Popen(
            [*fabric.user, fabric.program, "trace", "--fabric", "t", *map(str, args),
             *(["--json"] if as_json else [])],
            env=fabric.env, stdout=output, stderr=subprocess.PIPE, text=True)
        fabric.running.append(self.process)
        self.said = ""
        while "tracing" not in self.said:
            line = self.process.stderr.readline()
            assert line, (self.said, self.process.wait())
            self.said += line

    def text(self, number=signal.SIGINT, status=0):
        """End it by a signal (0: it ends by itself), and what it has printed."""
        if number:
            self.process.send_signal(number)
        out, said = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == status, self.said + said
        return out

    def events(self, number=signal.SIGINT):
        return [json.loads(line) for line in self.text(number).splitlines()]


def in_order(events, *wanted):
    """Each of @wanted, a dictionary of some members and arguments, is met after the one before.
    Return: those events."""
    found, rest = [], iter(events)
    for want in wanted:
        for event in rest:
            if all(value in (event.get(key), event.get("args", {}).get(key))
                   for key, value in want.items()):
                found.append(event)
                break
        else:
            shown = "\n".join(f"{e.get('node')} {e.get('event')} {e.get('args')}" for e in events)
            pytest.fail(f"after {len(found)} others no {want} in\n{shown}")
    return found


def test_rping(pair):
    """A connection as both ends live it: the RDMA CM's calls and events, the SA's answer, the CM's
    messages and states, the queue pair's states."""
    trace = Trace(pair, "--all", "--modules", "rdma_cm,sa,cm,qp")
    play(pair, ["rping", "-s", "-a", SERVER_IP, "-C", 3], ["rping", "-c", "-a", SERVER_IP, "-C", 3],
         statuses=(0, 255))
    events = trace.events()
    assert {e["module"] for e in events} <= {"rdma_cm", "sa", "cm", "qp"}
    client = [e for e in events if e["node"] == "n2"]
    in_order(client, {"call": "resolve_addr"}, {"call": "resolve_route"}, {"call": "connect"},
             {"event": "cm_send", "message": "REQ"}, {"event": "cm_state", "to": "REQ_SENT"},
             {"event": "cm_receive", "message": "REP"}, {"event": "cm_state", "to": "REP_RCVD"},
             {"event": "cm_send", "message": "RTU"}, {"event": "cm_state", "to": "ESTABLISHED"},
             {"event": "cm_send", "message": "DREQ"}, {"event": "cm_receive", "message": "DREP"},
             {"event": "cm_state", "to": "TIMEWAIT"})
    server = [e for e in events if e["node"] == "n1"]
    listens = in_order(server, {"call": "listen"}, {"event": "cm_state", "to": "LISTEN"},
                       {"event": "cm_receive", "message": "REQ"},
                       {"event": "cm_state", "to": "REQ_RCVD"}, {"call": "accept"},
                       {"event": "cm_send", "message": "REP"}, {"event": "cm_receive", "message": "RTU"},
                       {"event": "cm_state", "from": "REP_SENT", "to": "ESTABLISHED"})
    assert listens[1]["args"]["service"] == listens[2]["args"]["service"]
    sent = in_order(events, {"node": "n2", "event": "cm_send", "message": "REQ"})[0]
    got = in_order(events, {"node": "n1", "event": "cm_receive", "message": "REQ"})[0]
    assert sent["args"]["id"] == got["args"]["peer"] and sent["time_ns"] <= got["time_ns"]
    for node in "n1", "n2":
        mine = [e for e in events if e["node"] == node and e["event"].startswith("qp_")]
        created = in_order(mine, {"event": "qp_create", "owner": "rping"})[0]
        in_order([e for e in mine if e["args"]["qpn"] == created["args"]["qpn"]],
                 {"from": "RESET", "to": "INIT"}, {"from": "INIT", "to": "RTR"},
                 {"from": "RTR", "to": "RTS"}, {"event": "qp_destroy"})


def test_paths_and_groups(pair):
    """A query to the subnet administrator from question to answer, and the same one again from the
    cache; and groups that are joined and left."""
    trace = Trace(pair, "n2", "--modules", "sa,rdma_cm")
    for _ in range(2):
        play(pair, ["udaddy", "-c", 1], ["udaddy", "-c", 1, "-s", SERVER_IP])
    pair.finish(pair.start("n2", "mckey", "-m", "239.1.2.3", "-b", "10.1.0.2", "-s", "-C", 1))
    events = trace.events()
    assert {e["node"] for e in events} == {"n2"}
    groups = in_order(events, {"event": "sa_member", "what": "join"},
                      {"event": "sa_query", "attr": "0x0038", "method": "0x02"},
                      {"event": "sa_send", "error": "0"}, {"event": "sa_answer", "status": "0x0000"},
                      {"event": "sa_done", "status": "0"},
                      {"event": "sa_member", "what": "joined", "status": "0"},
                      {"event": "sa_member", "what": "leave"})
    assert groups[0]["args"]["mgid"] == groups[5]["args"]["mgid"] == groups[6]["args"]["mgid"]
    assert len({e["args"]["id"] for e in groups[1:5]}) == 1
    paths = [e for e in events if e["event"] in ("sa_query", "sa_cached")]
    assert paths[-1]["event"] == "sa_query" and any(e["event"] == "sa_cached" for e in paths), paths


def test_unanswered_queries():
    """All that is asked is lost: each try times out, and the program hears it at the end."""
    with Fabric("pair") as fabric:
        fabric.softib("fault", "add", "class", "sa", "drop")
        trace = Trace(fabric, "n2", "--modules", "sa,mad")
        out = fabric.run("n2", "udaddy", "-c", 1, "-s", SERVER_IP, check=False, timeout=60)
        assert "ROUTE_ERROR" in out, out
        events = trace.events()
    query = in_order(events, {"event": "sa_query", "attr": "0x0035"})[0]["args"]["id"]
    mine = [e for e in events if e["module"] == "sa" and e["args"].get("id") == query]
    in_order(mine, {"event": "sa_send"}, {"event": "sa_timeout"}, {"event": "sa_send"},
             {"event": "sa_timeout"}, {"event": "sa_done", "status": "-110"})
    in_order(events, {"event": "mad_send", "class": "0x03", "attr": "0x0035"},
             {"event": "mad_retry", "left": "-1"}, {"event": "mad_done"})


def test_mads(pair):
    """The agents of a program, what it sends and receives, and a MAD that nobody wants."""
    trace = Trace(pair, "n1", "--modules", "mad")
    pair.run("n1", "saquery", "-p")
    pair.run("n2", "ibping", "-c", 1, "-L", 1, check=False)
    events = trace.events()
    in_order(events, {"event": "mad_agent", "what": "register"},
             {"event": "mad_send", "class": "0x03"}, {"event": "mad_receive", "class": "0x03"},
             {"event": "mad_deliver", "class": "0x03"}, {"event": "mad_done", "wc_status": "0"},
             {"event": "mad_agent", "what": "unregister"})


def test_lines_and_list(pair):
    """What people read: one line an event, and a list of all trace points with a sentence each."""
    trace = Trace(pair, "n2", as_json=False)
    pair.run("n2", "ibv_devinfo")
    play(pair, ["udaddy", "-c", 1], ["udaddy", "-c", 1, "-s", SERVER_IP])
    lines = trace.text().splitlines()
    assert lines and all(LINE.match(line) for line in lines), lines
    assert any(LINE.match(line)[1].startswith("n2/softib0") for line in lines)
    points = pair.json("trace", "--list")
    names = {point["event"] for point in points}
    assert {"cm_send", "sa_query", "mad_receive", "qp_modify", "rdma_cm_event"} <= names
    assert all(point["doc"].endswith(".") and point["format"] for point in points)
    assert {LINE.match(line)[2] for line in lines} <= names
    listed = pair.softib("trace", "--list")
    assert all(f"  {name} " in listed for name in names)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it(pair, number):
    """What came before the signal is printed, and the exit status is 0."""
    trace = Trace(pair, "n1", "--modules", "mad")
    pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    assert any(e["event"] == "mad_send" for e in trace.events(number))


def test_it_ends_by_itself(pair):
    assert Trace(pair, "n1", "--seconds", 1, "--modules", "cm").events(0) == []
    trace = Trace(pair, "n1", "--count", 2, "--modules", "mad")
    pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    assert len(trace.events(0)) == 2


def test_its_output_is_closed(pair):
    reading, writing = os.pipe()
    trace = Trace(pair, "n1", "--modules", "mad", output=writing)
    os.close(writing)
    os.close(reading)
    pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    trace.process.wait(TIMEOUT)


def test_two_readers(pair):
    """Each has what it asked for, and what one does not want is not its business."""
    one = Trace(pair, "n1", "--modules", "qp")
    two = Trace(pair, "n2", "--modules", "cm,qp")
    play(pair, ["ucmatose", "-c", 1], ["ucmatose", "-c", 1, "-s", SERVER_IP])
    first = one.events()
    play(pair, ["ucmatose", "-c", 1], ["ucmatose", "-c", 1, "-s", SERVER_IP])
    second = two.events()
    assert {(e["node"], e["module"]) for e in first} == {("n1", "qp")}
    assert {(e["node"], e["module"]) for e in second} == {("n2", "qp"), ("n2", "cm")}
    assert sum(e["event"] == "cm_send" and e["args"]["message"] == "REQ" for e in second) == 2
    assert sum(e["event"] == "qp_create" for e in first) == 1


def test_a_slow_reader(pair):
    """It is stopped until its buffer is full: softibd and another reader do not notice, and it
    learns how many events it has missed."""
    slow = Trace(pair, "n1", "--modules", "mad", "--buffer", 4)
    swift = Trace(pair, "n1", "--modules", "mad")
    slow.process.send_signal(signal.SIGSTOP)
    for _ in range(20):
        pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    slow.process.send_signal(signal.SIGCONT)
    pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    all_of_them = swift.events()
    some = slow.events()
    lost = sum(e.get("lost", 0) for e in some)
    seen = [e for e in some if "lost" not in e]
    assert lost > 0 and seen and not any("lost" in e for e in all_of_them)
    assert len(seen) + lost >= len(all_of_them)  # it began before the other, and ended after it


def test_lost_events_are_said_in_words(pair):
    slow = Trace(pair, "n1", "--modules", "mad", "--buffer", 4, as_json=False)
    slow.process.send_signal(signal.SIGSTOP)
    for _ in range(20):
        pair.run("n1", "smpquery", "nodeinfo", "-D", "0")
    slow.process.send_signal(signal.SIGCONT)
    assert re.search(r"^--- \d+ events lost: ", slow.text(), re.M)


@pytest.mark.other_user
def test_an_ordinary_user():
    with Fabric("pair", user=NOBODY) as fabric:
        trace = Trace(fabric, "--all", "--modules", "mad,cm")
        fabric.run("n1", "smpquery", "nodeinfo", "-D", "0")
        in_order(trace.events(), {"event": "mad_send", "class": "0x81"}, {"event": "mad_done"})


def test_names_that_do_not_fit(pair):
    """A module that is not there may be loaded later, so its name is only remarked on."""
    trace = Trace(pair, "n1", "--modules", "cm,mine")
    assert "no module 'mine' now" in trace.said and "'cm'" not in trace.said
    trace.events()
    for args, says in ((["n9"], 'no node "n9"'), (["s1"], "has no adapter"), ([], "name one node"),
                       (["n1", "--all"], "name one node"), (["n1", "-m", ","], "--modules takes"),
                       (["n1", "-s", "0"], "from 1 to"), (["n1", "n2"], "one node only")):
        done = subprocess.run([pair.program, "trace", "--fabric", "t", *args], env=pair.env,
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode and says in done.stderr, (args, done.stderr)


@pytest.mark.parametrize("members, says", [
    ({"modules": "cm"}, "not a list"), ({"modules": []}, "1 to 64"), ({"modules": ["cm"] * 65}, "1 to 64"),
    ({"modules": [1]}, "not a string"), ({"node": 7}, "not a string"), ({"node": "s1"}, "no adapter"),
    ({"ring_bytes": -1}, "integer"), ({"ring_bytes": 1 << 40}, "integer"), ({"ring_bytes": "x"}, "integer")])
def test_malformed_requests(pair, members, says):
    sock, answer, fds = ask(pair, "trace", **members)
    with sock:
        assert says in answer["error"] and not fds, answer


def test_requests_that_are_odd(pair):
    """Names too long or of bytes that no module has; and one connection has one trace."""
    sock, answer, fds = ask(pair, "trace", modules=["x" * 5000, "\x1b[2J\x00", ""])
    with sock:
        assert len(answer["unknown"]) == 3 and len(fds) == 2, answer
        sock.send(json.dumps({"op": "trace"}).encode())
        assert "already" in json.loads(sock.recv(65536))["error"]
    for fd in fds:
        os.close(fd)
    pair.softib("status")


# --- upper-level protocols ---

def test_ipoib():
    """A ping of the host: the neighbour is asked for, its path is looked up, packets flow; in
    connected mode a connection comes up; and groups are joined."""
    with Fabric("pair", up_args=("--net", "node", "--ipoib-mode", "connected")) as fabric:
        trace = Trace(fabric, "n2", "--modules", "ipoib")
        fabric.run("n2", "ping", "-c", "1", "n1")
        fabric.softib("ipoib", "n2", "datagram")
        events = trace.events()
    neighbours = [e for e in events if e["event"] == "ipoib_neighbour"]
    ip = neighbours[0]["args"]["ip"]
    in_order([e for e in neighbours if e["args"]["ip"] == ip], {"what": "ask"}, {"what": "link"},
             {"what": "path"}, {"what": "ready"})
    in_order(events, {"event": "ipoib_connection", "what": "ask", "passive": "0"},
             {"event": "ipoib_connection", "what": "up"}, {"event": "ipoib_interface", "what": "datagram"},
             {"event": "ipoib_connection", "what": "end"})


def test_ethernet():
    """An interface's MTU, its carrier and an address that it is given."""
    if not allowed(()):
        pytest.skip("the kernel allows no network namespaces")
    with Fabric("star:2", sm="none", up_args=("--link-layer", "ethernet", "--net", "node")) as fabric:
        trace = Trace(fabric, "n1", "--modules", "eth")
        fabric.run("n1", "ip", "link", "set", "eth0", "mtu", "1500")
        wait_until(lambda: "active_mtu:\t\t1024" in fabric.run("n1", "ibv_devinfo"), "the MTU is noticed")
        fabric.softib("link", "s1:1", "down")
        fabric.softib("link", "s1:1", "up")
        fabric.run("n1", "ip", "address", "add", "192.168.9.1/24", "dev", "eth0")
        wait_until(lambda: "::ffff:192.168.9.1" in fabric.run("n1", "ibv_devinfo", "-v"), "the address has a GID")
        events = trace.events()
    in_order(events, {"event": "eth_interface", "what": "mtu", "mtu": "1500"},
             {"event": "eth_interface", "what": "down"}, {"event": "eth_interface", "what": "up"},
             {"event": "eth_address", "gid": "00000000000000000000ffffc0a80901", "vlan": "0"})
    assert {(event["node"], event["port"]) for event in events} == {("n1", 1)}


def test_ipoib_groups():
    """The broadcast group, and those of a host whose link comes up, on a port that is plugged in
    again."""
    with Fabric("pair", up_args=("--net", "node")) as fabric:
        fabric.run("n2", "ping", "-c", "1", "n1")
        trace = Trace(fabric, "n2", "--modules", "ipoib,hca,sa")
        fabric.softib("link", "n2:1", "down")
        fabric.softib("link", "n2:1", "up")
        fabric.softib("wait")
        fabric.run("n2", "ping", "-c", "1", "-w", "30", "n1")
        wait_until(lambda: '"joined": true' in fabric.softib("ipoib", "n2", "--json"), "ib0 has joined")
        events = trace.events()
    in_order(events, {"event": "hca_event"},
             {"event": "ipoib_group", "what": "join"}, {"event": "sa_member", "what": "join"},
             {"event": "ipoib_group", "what": "joined", "status": "0"})
    in_order(events, {"event": "PORT_ERR"}, {"event": "ipoib_group", "what": "lost"},
             {"event": "PORT_ACTIVE"}, {"event": "ipoib_neighbour", "what": "ready"})


def test_sdp(pair):
    """A connection from bind to end, at both ends; a large write changes the mode."""
    trace = Trace(pair, "--all", "--modules", "sdp")
    server = sdp.Server(pair, "serve_stream")
    server.call("call_stream")
    server.end()
    wait_until(lambda: not sdp.sdp_resources(pair), "the connections are over")
    events = trace.events()
    assert {e["module"] for e in events} == {"sdp"}
    there, here = ([e for e in events if e["node"] == node] for node in ("n1", "n2"))
    in_order(there, {"what": "listen", "error": "0"}, {"event": "sdp_state", "from": "IDLE", "to": "OPEN"},
             {"event": "sdp_connected", "passive": "1", "error": "0"},
             {"event": "sdp_receive", "message": "DisConn", "error": "0"})
    in_order(here, {"event": "sdp_state", "from": "IDLE", "to": "HELLO_SENT"},
             {"event": "sdp_state", "from": "HELLO_SENT", "to": "OPEN", "end": "-"},
             {"event": "sdp_connected", "passive": "0", "error": "0"},
             {"event": "sdp_mode", "direction": "send", "from": "combined", "to": "pipelined"},
             {"event": "sdp_send", "message": "ModeChange"},
             {"event": "sdp_send", "message": "SrcAvail"}, {"event": "sdp_send", "message": "DisConn"},
             {"event": "sdp_state", "to": "ENDED", "end": "closed"})


def test_srp(pair):
    """A login, commands and a logout, at both ends; and the login that is repeated when the target
    is gone."""
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:4M")
    trace = Trace(pair, "--all", "--modules", "srp,srpt")
    pair.softib("srp", "login", "n2", "n1")
    pair.softib("srp", "target", "remove", "n1")
    wait_until(lambda: pair.json("srp", "list", "n2")[0]["state"] != "running",
               "the session has lost its channel")
    pair.softib("srp", "logout", "n2", "n1")
    events = trace.events()
    initiator = [e for e in events if e["module"] == "srp"]
    assert {e["node"] for e in initiator} == {"n2"}
    in_order(initiator, {"event": "srp_channel", "from": "DOWN", "to": "QUERYING"},
             {"event": "srp_channel", "from": "QUERYING", "to": "LOGGING_IN"},
             {"event": "srp_channel", "from": "LOGGING_IN", "to": "UP"},
             {"event": "srp_session", "state": "running", "channels": "1"},
             {"event": "srp_command", "opcode": "0xa0"}, {"event": "srp_response", "verdict": "done"},
             {"event": "srp_fail"}, {"event": "srp_channel", "to": "DOWN"})
    target = [e for e in events if e["module"] == "srpt"]
    assert {e["node"] for e in target} == {"n1"}
    in_order(target, {"event": "srpt_login", "reject": "0x00000000"},
             {"event": "srpt_command", "opcode": "0xa0"}, {"event": "srpt_response", "status": "0x00"},
             {"event": "srpt_close"})


# --- modules ---

def test_an_own_module(pair):
    """A module declares trace points of its own: they are listed while it is loaded, and seen from
    its init function on, at the node that is traced."""
    def listed():
        return {(p["module"], p["event"], p["node"]) for p in pair.json("trace", "--list")
                if p["module"] == "tracer"}

    trace = Trace(pair, "n1", "--modules", "tracer")
    assert "no module 'tracer' now" in trace.said
    for node in "n1", "n2":
        assert softib(pair, "modprobe", node, MODULES / "tracer.so") == (0, "")
    assert {("tracer", f"tracer_{what}", node) for what in ("loaded", "device", "tick")
            for node in ("n1", "n2")} == listed()
    ticks = Trace(pair, "n2", "--modules", "tracer", "--count", 2).events(0)
    assert [e["node"] for e in ticks] == ["n2"] * 2 and all(e["event"] == "tracer_tick" for e in ticks)
    for node in "n1", "n2":
        assert softib(pair, "rmmod", node, "tracer") == (0, "")
    assert not listed()
    events = trace.events()
    assert {(e["module"], e["node"]) for e in events} == {("tracer", "n1")}
    first = in_order(events, {"event": "tracer_loaded", "word": "hello", "n": "7"},
                     {"event": "tracer_device", "device": "softib0", "port": 1},
                     {"event": "tracer_tick", "n": "1"}, {"event": "tracer_tick", "n": "2"})
    assert int(first[1]["args"]["guid"], 16)


def test_kdapl(pair):
    """The end points of kDAPL's test, on both nodes."""
    trace = Trace(pair, "--all", "--modules", "kdapl")
    load_kdapl(pair)
    assert softib(pair, "modprobe", "n2", BUILD / "examples/kdapl_message.so") == (0, "")
    load_example(pair, "kdapl_message", f"peer={N2_IP}", "text=hello")
    assert softib(pair, "rmmod", "n2", "kdapl_message") == (0, "")
    unload(pair, "kdapl")
    events = trace.events()
    in_order([e for e in events if e["node"] == "n1"],
             {"event": "kdapl_state", "from": "UNCONNECTED", "to": "ACTIVE_CONNECTION_PENDING"},
             {"event": "kdapl_state", "to": "CONNECTED"}, {"event": "kdapl_event", "number": "0x4001"},
             {"event": "kdapl_state", "to": "DISCONNECTED"})
    in_order([e for e in events if e["node"] == "n2"], {"event": "kdapl_state", "to": "CONNECTED"},
             {"event": "kdapl_state", "to": "DISCONNECTED"})


# --- the subnet manager, and programs that say they are one ---

def test_a_sweep():
    """A cable that is pulled and plugged in again, as softib-sm sees it: traps, sweeps with their
    phases, the subnet that it finds; what programs ask it."""
    with Fabric("pair") as fabric:
        trace = Trace(fabric, "--all", "--modules", "sm")
        fabric.softib("link", "n2:1", "down")
        wait_until(lambda: fabric.json("status")["ports"]["active"] < 4, "the link is down")
        fabric.softib("link", "n2:1", "up")
        fabric.softib("wait")
        fabric.run("n2", "saquery", "-p")
        assert {p["node"] for p in fabric.json("trace", "--list") if p["module"] == "sm"} == {"n1"}
        events = trace.events()
        assert {(e["module"], e["node"]) for e in events} == {("sm", "n1")}
        in_order(events, {"event": "sm_trap", "trap": "128"}, {"event": "sm_job", "job": "heavy", "what": "begin"},
                 {"event": "sm_phase"}, {"event": "sm_up", "switches": "1", "adapters": "2"},
                 {"event": "sm_query", "attr": "0x0035"})


def test_a_manager_that_ends(quiet):
    """Its trace points are there as long as it is; its first sweep is seen from the beginning."""
    def has_sm():
        return any(p["module"] == "sm" for p in quiet.json("trace", "--list"))

    assert not has_sm()
    trace = Trace(quiet, "n2", "--modules", "sm")
    quiet.run("n2", "softib-sm", "--once")
    events = trace.events()
    in_order(events, {"event": "sm_job", "job": "heavy", "what": "begin"},
             {"event": "sm_state", "to": "MASTER"}, {"event": "sm_up"})
    assert {e["node"] for e in events} == {"n2"} and not has_sm()


POINT = {"event": "e", "format": "n=%d", "doc": "It happens."}


@pytest.mark.parametrize("members, says", [
    ({}, "\"module\""), ({"module": 7}, "\"module\""), ({"module": "cm"}, "\"module\""), ({"module": "x" * 32}, "\"module\""),
    ({"module": "mine"}, "\"points\""), ({"module": "mine", "points": {}}, "\"points\""),
    ({"module": "mine", "points": [POINT] * 65}, "1 to 64"), ({"module": "mine", "points": [1]}, "a trace point has"),
    ({"module": "mine", "points": [POINT, {**POINT, "doc": 1}]}, "a trace point has"),
    ({"module": "mine", "points": [{**POINT, "format": "x" * 512}]}, "a trace point has"),
    ({"module": "mine", "points": [POINT], "node": "n9"}, "no node")])
def test_trace_points_that_are_refused(pair, members, says):
    sock, answer, fds = ask(pair, "trace_provide", **members)
    with sock:
        assert says in answer["error"] and not fds, answer


def test_a_program_that_sends_anything(pair):
    """Events that are none are dropped, also very many; those that are, are cleaned of what is no
    text; and a program that does not read loses nothing but its own."""
    sock, answer, fds = ask(pair, "trace_provide", module="mine", node="n2", points=[POINT])
    assert "error" not in answer, answer
    with sock, socket.socket(fileno=fds[0]) as events:
        events.settimeout(TIMEOUT)
        for _ in range(300):  # more than its socket takes
            os.close(ask_and_end(pair))
        trace = Trace(pair, "--all", "--modules", "mine")
        assert events.recv(1) in (b"\0", b"\1")
        for message in (b"x", b"\0", b"e", b"e\0", b"e\0n=1", b"other\0n=1\0", b"\xff" * 4000, b"e\0" + b"a" * 2000 + b"\0",
                        b"e\0n=\x1b[2J\xff\0", b"e\0n=2\0"):
            events.send(message)
        for _ in range(5000):
            try:
                events.send(b"other\0n=1\0", socket.MSG_DONTWAIT)
            except BlockingIOError:
                pair.softib("status")
        events.send(b"e\0n=3\0")
        wait_until(lambda: pair.json("trace", "--list"), "softibd answers")
        seen = trace.events()
    assert [(e["event"], e["node"], e["args"]) for e in seen if "lost" not in e] == [
        ("e", "n2", {"n": "?[2J?"}), ("e", "n2", {"n": "2"}), ("e", "n2", {"n": "3"})]
    wait_until(lambda: not any(p["module"] == "mine" for p in pair.json("trace", "--list")), "it is forgotten")


def ask_and_end(fabric):
    """A reader that comes and goes. Return: a descriptor to close."""
    sock, _, fds = ask(fabric, "trace", modules=["mine"])
    sock.close()
    os.close(fds[1])
    return fds[0]
