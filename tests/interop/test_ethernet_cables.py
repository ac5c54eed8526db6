# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Cables of Ethernet that leave a fabric, with QEMU's framing: to another fabric, and to programs that say what they may not.
tests/guest/test_rxe.py plugs virtual machines in."""
import json
import socket
import struct

import pytest

from interop.fabric import Fabric, _ports, wait_until
from interop.test_nodes import allowed, on

UP = ("--link-layer", "ethernet", "--net", "node")
# nodes of both fabrics are in one network
FAR = {"n1": "10.1.0.9", "n2": "10.1.0.10"}
FAR_IPV6 = "fd73:6f66:7469:6201::9"
pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")


@pytest.fixture(scope="module", name="near")
def near_fabric():
    with Fabric("star:2,spare=3", sm="none", up_args=UP) as fabric:
        yield fabric


@pytest.fixture(scope="module", name="far")
def far_fabric(near):
    with Fabric("star:2,spare=1", sm="none", name="far", up_args=(*UP, "--ip", "10.1.0.9/16", "--ip", f"{FAR_IPV6}/64")) as fabric:
        plug(near, 3, "--listen", near.home / "cable")
        plug(fabric, 3, "--connect", near.home / "cable")
        wait_until(lambda: cable(near, 3)["state"] == cable(fabric, 3)["state"] == "Active", "the link is up")
        yield fabric


def plug(fabric, port, *args, check=True):
    return fabric.softib("cable", "--fabric", fabric.name, f"s1:{port}", *map(str, args), check=check)


def cable(fabric, port):
    found, = [c for c in fabric.json("cable", "--fabric", fabric.name) if c["port"] == port]
    return found


# --- two fabrics ---

def test_addresses_do_not_collide(near, far):
    macs = {json.loads(on(fabric, node, "ip", "-json", "link", "show", "eth0"))[0]["address"]
            for fabric in (near, far) for node in ("n1", "n2")}
    assert macs == {"02:73:69:00:00:01", "02:73:69:00:00:02", "02:73:69:08:00:01", "02:73:69:08:00:02"}


def test_ping(near, far):
    for address in (*FAR.values(), FAR_IPV6):
        assert " 0% packet loss" in on(near, "n1", "ping", "-c", "2", "-i", "0.2", "-W", "5", "-s", "4000", address)
    assert " 0% packet loss" in on(far, "n2", "ping", "-c", "2", "-i", "0.2", "-W", "5", "10.1.0.2")
    assert "lladdr 02:73:69:08:00:01" in on(near, "n1", "ip", "neigh", "show", FAR["n1"])


def test_rping(near, far):
    """Nobody has heard of n2 of the other fabric before."""
    server = far.start("n2", "rping", "-s", "-a", FAR["n2"], "-C", "3", "-V")
    wait_until(lambda: "LISTEN" in far.run("n2", "rdma", "resource", "show", "cm_id") or server.poll() is not None, "it listens")
    near.run("n2", "rping", "-c", "-a", FAR["n2"], "-C", "3", "-V")
    far.finish(server)
    assert server.returncode == 0


@pytest.mark.parametrize("program", ["ibv_rc_pingpong -c -n 100", "ibv_uc_pingpong -c -n 100", "ibv_ud_pingpong -c -n 100 -s 2048"])
def test_pingpong(near, far, program):
    port = next(_ports)
    command = [*program.split(), "-p", port, "-g", 1]
    server = far.serve("n1", *command, port=port)
    texts = [near.run("n1", *command, FAR["n1"]), far.finish(server)]
    for text in texts:
        assert "100 iters in" in text and "invalid" not in text, text


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_lat"])
def test_perftest(near, far, program):
    port = next(_ports)
    command = [program, "-F", "-n", 200, "-p", port, "-d", "softib0", "-x", 1]
    server = far.serve("n1", *command, port=port)
    text = near.run("n2", *command, FAR["n1"])
    far.finish(server)
    assert server.returncode == 0 and " 200 " in text, text


def test_what_was_counted(near, far):
    for fabric in (near, far):
        found = cable(fabric, 3)
        assert found["ethernet"] and not found["malformed"] and not found["spoofed"]
        assert found["packets_sent"] > 500 and found["packets_received"] > 500


def test_a_cable_is_pulled_and_plugged(near, far):
    near.softib("link", "--fabric", near.name, "s1:3", "down")
    assert " 100% packet loss" in near.run("n1", "ping", "-c", "1", "-W", "1", FAR["n1"], check=False)
    near.softib("link", "--fabric", near.name, "s1:3", "up")
    wait_until(lambda: cable(near, 3)["state"] == "Active", "the link is up")
    assert " 0% packet loss" in on(near, "n1", "ping", "-c", "1", "-W", "5", FAR["n1"])


# --- programs ---

@pytest.fixture(name="port")
def a_cable(near):
    """A cable that listens at near.home/program, at port 4."""
    plug(near, 4, "--listen", near.home / "program")
    yield 4
    plug(near, 4, "--remove")


def connect(near):
    program = socket.socket(socket.AF_UNIX)
    program.settimeout(60)
    program.connect(str(near.home / "program"))
    return program


def framed(frame):
    return struct.pack(">I", len(frame)) + frame


def frame_of(source, kind=0x88b5, payload=bytes(46)):
    return b"\xff" * 6 + bytes.fromhex(source.replace(":", "")) + struct.pack(">H", kind) + payload


def receive(program):
    """The next frame."""
    length, = struct.unpack(">I", program.recv(4, socket.MSG_WAITALL))
    return program.recv(length, socket.MSG_WAITALL)


def test_arp(near, port):
    """A program that is a host: n1 answers to it, in frames of 60 bytes at least."""
    mac, ipv4 = bytes.fromhex("525400000042"), socket.inet_aton("10.1.9.42")
    request = frame_of("52:54:00:00:00:42", 0x0806, struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + mac + ipv4 + bytes(6) +
                       socket.inet_aton("10.1.0.1"))
    with connect(near) as program:
        wait_until(lambda: cable(near, port)["state"] == "Active", "the link is up")
        program.sendall(framed(request)[:10])
        program.sendall(framed(request)[10:] + framed(frame_of("52:54:00:00:00:42")))
        while (frame := receive(program))[:6] != mac:
            assert len(frame) >= 60
    assert frame[6:12] == bytes.fromhex("027369000001") and frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2"
    assert frame[28:32] == socket.inet_aton("10.1.0.1") and len(frame) == 60
    wait_until(lambda: not cable(near, port)["connected"], "the program is gone")
    assert cable(near, port)["state"] == "Down"


def test_bad_frames_are_counted(near, port):
    with connect(near) as program:
        wait_until(lambda: cable(near, port)["state"] == "Active", "the link is up")
        program.sendall(framed(b"short") + framed(b"") + framed(frame_of("02:00:00:00:00:01", payload=bytes(60000))) +
                        framed(frame_of("02:73:69:00:00:02")) + framed(frame_of("ff:ff:ff:ff:ff:ff")))
        wait_until(lambda: (cable(near, port)["malformed"], cable(near, port)["spoofed"]) == (4, 1), lambda: f"counted: {cable(near, port)}")
        assert cable(near, port)["connected"]


def test_what_is_no_framing_ends_the_connection(near, port):
    with connect(near) as program:
        wait_until(lambda: cable(near, port)["connected"], "it is connected")
        program.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_until(lambda: not cable(near, port)["connected"], "the connection has ended")
        assert "does not send frames" in cable(near, port)["reason"]


def test_one_program_at_a_time(near, port):
    with connect(near), connect(near) as second:
        while second.recv(1 << 16):
            pass
        found = cable(near, port)
        assert found["connected"] and "a second program" in found["reason"]


def test_no_keys_and_no_strangers(near):
    for args, text in ((["--listen", "0.0.0.0:7471"], "listens only"), (["--listen", near.home / "x", "--key", near.home / "key"], "no key")):
        with pytest.raises(AssertionError, match=text):
            plug(near, 5, *args)
    plug(near, 5, "--listen", f"127.0.0.1:{next(_ports)}")
    plug(near, 5, "--remove")
