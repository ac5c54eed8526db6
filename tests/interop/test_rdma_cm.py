# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Connections by IP address: the distribution's librdmacm on softib's device file, and the
programs that come with it."""
import os
import platform
import signal

import re

import pytest

from interop.fabric import BUILD, SANITIZED, Fabric, kill, link_local, wait_until
from interop.test_capture import Capture, tshark

SERVER_IP = "10.1.0.1"
SERVER_IPV6 = "fd73:6f66:7469:6201::1"


def cm_ids(fabric, node):
    rows = fabric.json("resource", "show")
    rows = rows.get("resources", rows) if isinstance(rows, dict) else rows
    return [row for row in rows if row["type"] == "cm_id" and row["node"] == node]


def serve(fabric, *argv):
    """Start a server on n1 and come back when it listens."""
    server = fabric.start("n1", *argv)
    wait_until(lambda: cm_ids(fabric, "n1") or server.poll() is not None,
               f"{argv[0]} listens by the RDMA CM")
    return server


def play(fabric, server_argv, client_argv, statuses=(0,)):
    server = serve(fabric, *server_argv)
    out = fabric.run("n2", *client_argv)
    server_out = fabric.finish(server)
    assert server.returncode in statuses, server_out
    wait_until(lambda: not cm_ids(fabric, "n1") and not cm_ids(fabric, "n2"),
               "no cm_id is left")
    return server_out, out


def test_rping(pair):
    """RDMA READ and WRITE over a connection; the data is checked by both (-V)."""
    server, client = play(pair, ["rping", "-s", "-a", SERVER_IP, "-v", "-V", "-C", 5],
                          ["rping", "-c", "-a", SERVER_IP, "-v", "-V", "-C", 5],
                          statuses=(0, 255))  # 255: it heard of the end while it waited for more
    assert client.count("ping data: rdma-ping-") == 5, client
    assert server.count("server ping data: rdma-ping-") == 5, server


def test_owners(pair):
    """The ids of a listener and of both ends of a connection belong to the programs."""
    server = serve(pair, "rping", "-s", "-a", SERVER_IP)
    client = pair.start("n2", "rping", "-c", "-a", SERVER_IP, "-C", 100000000)
    wait_until(lambda: len(cm_ids(pair, "n1")) == 2, "they are connected")
    for node, program in ("n1", server), ("n2", client):
        assert {(row["comm"], row["pid"]) for row in cm_ids(pair, node)} == {("rping", program.pid)}
    client.kill()
    pair.finish(client)
    pair.finish(server)


def test_queries_are_listed():
    """While the subnet administrator does not answer, the query for the path is there, and so is the id
    that waits for it, which iproute2 lists; both end with the program."""
    def queries():
        return [row for row in fabric.json("resource", "show", "n2") if row["type"] == "sa_query"]

    def ids():
        return fabric.run("n2", "rdma", "resource", "show", "cm_id")

    with Fabric("pair") as fabric:
        fabric.softib("fault", "add", "class", "sa", "drop")
        client = fabric.start("n2", "rping", "-c", "-a", SERVER_IP)
        wait_until(queries, "the query is listed")
        assert queries()[0]["details"] == "port 1, method 0x01, attribute 0x0035"
        assert f"pid {client.pid} comm rping" in ids()
        kill(client)
        wait_until(lambda: not queries() and "rping" not in ids(), "both end with it")


def test_ipv6(pair):
    """A listener on an IPv6 address, and one on all of them, which takes IPv4 as well."""
    client = play(pair, ["rping", "-s", "-a", SERVER_IPV6, "-V", "-C", 2],
                  ["rping", "-c", "-a", SERVER_IPV6, "-v", "-V", "-C", 2], statuses=(0, 255))[1]
    assert client.count("ping data: rdma-ping-") == 2, client
    for address in (SERVER_IPV6, SERVER_IP, link_local("n1")):
        play(pair, ["rdma_server", "-s", "::"], ["rdma_client", "-s", address])


@pytest.mark.parametrize("name", ["ucmatose", "udaddy"])
def test_messages(pair, name):
    """Several connections at once, and datagram services."""
    for out in play(pair, [name, "-c", 8], [name, "-c", 8, "-s", SERVER_IP]):
        assert "return status 0" in out, out


def test_type_of_service(pair):
    """It is the QoS class that the query for the path names: component 14 of its mask."""
    asked = []
    for option in [], ["-t", "40"]:
        capture = Capture(pair, "n2:1")
        play(pair, ["ucmatose"], ["ucmatose", "-s", SERVER_IP, *option])
        masks = tshark("-r", capture.end(), "-T", "fields", "-e", "infiniband.sa.componentmask")
        asked.append([mask for mask in masks.split() if int(mask, 16) & 1 << 14])
    assert not asked[0] and asked[1], asked


@pytest.mark.parametrize("program", [
    ["ucmatose"], ["ucmatose", "-P", "ib"], ["udaddy"], ["rstream", "-S", "64"], ["riostream", "-S", "64"]],
    ids=" ".join)
def test_addresses_of_infiniband(pair, program):
    """AF_IB: a GID and a service id, and no IP address."""
    program = [*program, "-f", "gid"]
    for out in play(pair, [*program, "-b", link_local("n1")], [*program, "-s", link_local("n1")]):
        assert "return status 0" in out or " 64 " in out, out


def test_one_port_of_two():
    """Two servers of a node have one service, each at the GID of one port: that of the second
    port is reached although the other listened first."""
    with Fabric("pair", up_args=("--ports", "2")) as fabric:
        program = ["ucmatose", "-f", "gid"]
        first = serve(fabric, *program, "-b", link_local("n1", 1))
        second = fabric.start("n1", *program, "-b", link_local("n1", 2))

        def second_is_served():
            client = fabric.start("n2", *program, "-s", link_local("n1", 2))
            fabric.finish(client)
            return client.returncode == 0  # else the server does not listen yet

        wait_until(second_is_served, "the server of the second port listens")
        assert "return status 0" in fabric.finish(second)
        assert first.poll() is None
        fabric.run("n2", *program, "-s", link_local("n1", 1))
        assert "return status 0" in fabric.finish(first)


def open_descriptors(fabric):
    pid = int((fabric.dir / "pid").read_text())
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_ten_thousand_connections(pair):
    """1,000 at once, ten times: set up, closed, and nothing of them is left."""
    many = (BUILD / "tests/bench/bench-connect", "rdma")
    server = pair.start("n1", *many, "server", SERVER_IP, 7474, 1000, 1)
    assert server.stdout.readline() == "listening\n"
    for rounds in 1, 2 if SANITIZED else 9:
        assert "rdma_1000 " in pair.run("n2", *many, "client", SERVER_IP, 7474, 1000, rounds)
        wait_until(lambda: len(cm_ids(pair, "n1")) == 1, "the listener is the server's last id")
        if rounds == 1:
            before = open_descriptors(pair)
    wait_until(lambda: open_descriptors(pair) <= before,
               lambda: f"softibd had {before} descriptors, now {open_descriptors(pair)}")
    kill(server)
    wait_until(lambda: not pair.user_resources(),
               lambda: f"softibd still holds {pair.user_resources()}")


def test_synchronous_endpoints(pair):
    """rdma_get_request() moves the new id to a channel of its own."""
    play(pair, ["rdma_server"], ["rdma_client", "-s", SERVER_IP])


@pytest.mark.parametrize("transport", ["r", "x"])
def test_any_transport(pair, transport):
    """RC and XRC. The client sends 16 bytes inline by a QP that it has asked for no room for
    them: adapters have it."""
    for out in play(pair, ["rdma_xserver", "-c", transport],
                    ["rdma_xclient", "-c", transport, "-s", SERVER_IP]):
        assert "end 0" in out, out


def test_steps_of_connections(pair):
    """20 connections, each step for all of them before the next one."""
    server = serve(pair, "cmtime", "-c", 20)
    out = pair.run("n2", "cmtime", "-c", 20, "-s", SERVER_IP)
    kill(server)
    steps = re.findall(r"^(\w.*\w) *: +\d+\.\d+ ", out, re.M)
    assert steps == ["create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy"], out


def try_perftest(pair, *argv):
    server = serve(pair, *argv)
    options = pair.env.get("ASAN_OPTIONS", "") + ":handle_segv=0"
    client = pair.start("n2", *argv, SERVER_IP, env={**pair.env, "ASAN_OPTIONS": options})
    out = pair.finish(client)
    if client.returncode:
        kill(server)
    server_out = pair.finish(server)
    wait_until(lambda: not cm_ids(pair, "n1") and not cm_ids(pair, "n2"), "no cm_id is left")
    assert client.returncode or server.returncode == 0, server_out
    return client.returncode, out


# the second is what a UD service that is not there answers: "SIDR unsupported"
TOO_EARLY = ("RDMA_CM_EVENT_REJECTED; error: 8.", "RDMA_CM_EVENT_UNREACHABLE; error: 1.")


def perftest_in_time(fabric, *args):
    """perftest makes one connection for its handshake and then the one that it
    measures. Nothing tells its client when the server listens for the second. A
    client that comes too early is refused, tries again with an id that it has
    freed, and crashes: such a run says nothing about softib. Return: as try_perftest()."""
    for _ in range(100):
        status, out = try_perftest(fabric, *args)
        if not any(early in out for early in TOO_EARLY):
            break
    return status, out


@pytest.mark.parametrize("args", ["ib_write_bw -R", "ib_write_bw -R -b", "ib_send_bw -R -b -q 2", "ib_read_bw -R -b",
                                  "ib_atomic_lat -R", "ib_send_bw -R -c UD", "ib_write_bw -R --tos=32",
                                  "ib_write_bw -R --retry_count=3", "ib_write_bw -R --ipv6",
                                  "ib_write_bw -z"])
def test_perftest(pair, args):
    status, out = perftest_in_time(pair, *args.split(), "-F", "-n", 100)
    assert status == 0 and re.search(r"^ (65536|4096|8) +[12]00 ", out, re.M), out


def hear_a_group(receivers, sender):
    """A program on n1 of each of the fabrics listens to a group; one on n2 of another sends to it until
    all have heard it: it does not know when they have joined. Return: what they printed"""
    mckey = ["mckey", "-m", "239.1.1.1", "-C", 10]
    processes = [fabric.start("n1", *mckey) for fabric in receivers]

    def all_heard():
        sender.run("n2", *mckey, "-s")
        return all(process.poll() is not None for process in processes)

    wait_until(all_heard, "all receivers have heard ten messages")
    return [fabric.finish(process) for fabric, process in zip(receivers, processes)]


def test_multicast(pair):
    """Two programs of a node listen to one group."""
    for out in hear_a_group([pair, pair], pair):
        assert "joined dgid: ff12:4001:ffff::f01:101" in out, out
        assert "return status 0" in out, out


LOADS_LATER = """
import ctypes
import os
rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
rdmacm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = rdmacm.rdma_create_event_channel()
assert channel, os.strerror(ctypes.get_errno())
rdmacm.rdma_destroy_event_channel(ctypes.c_void_p(channel))
with open(os.devnull, "w") as other:
    assert other.write("not ours")
"""


def test_loaded_later(pair):
    """A plug-in brings librdmacm into a program that is not linked with it, as those of
    UCX and libfabric do: libc comes before it in the order of symbols."""
    pair.run("n1", "python3", "-c", LOADS_LATER)


UNREAD_EVENTS = """
import ctypes
import fcntl
import select
import socket
import struct
import sys
import termios
import time

lib = ctypes.CDLL("librdmacm.so.1", use_errno=True)
to = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", 7000, socket.inet_aton(sys.argv[1]))
PS_TCP, ADDR_RESOLVED = 0x0106, 0


class Channel(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int)]


class Event(ctypes.Structure):
    _fields_ = [("id", ctypes.c_void_p), ("listen_id", ctypes.c_void_p), ("event", ctypes.c_int)]


lib.rdma_create_event_channel.restype = ctypes.POINTER(Channel)


def unread(channel):
    waiting = fcntl.ioctl(channel.contents.fd, termios.FIONREAD, b"    ")
    return struct.unpack("i", waiting)[0]


def resolved(channel):
    before, cm_id = unread(channel), ctypes.c_void_p()
    assert not lib.rdma_create_id(channel, ctypes.byref(cm_id), None, PS_TCP)
    assert not lib.rdma_resolve_addr(cm_id, None, to, 1000)
    while unread(channel) == before:
        time.sleep(0.001)
    return cm_id


def is_readable(channel):
    return bool(select.select([channel.contents.fd], [], [], 0)[0])


def expect(channel, *ids):
    # these and no others have events
    for cm_id in ids:
        event = ctypes.POINTER(Event)()
        assert is_readable(channel)
        assert not lib.rdma_get_cm_event(channel, ctypes.byref(event))
        assert event.contents.id == cm_id.value and event.contents.event == ADDR_RESOLVED
        assert not lib.rdma_ack_cm_event(event)
    assert not is_readable(channel)


a, b = lib.rdma_create_event_channel(), lib.rdma_create_event_channel()
ids = [resolved(a) for _ in range(3)]
assert not lib.rdma_destroy_id(ids[1])
expect(a, ids[0], ids[2])
more = [resolved(a) for _ in range(2)]
assert not lib.rdma_destroy_id(more[0])
expect(a, more[1], *[resolved(a)])
ids = [resolved(a) for _ in range(2)]
assert not lib.rdma_migrate_id(ids[1], b)
expect(a, ids[0])
expect(b, ids[1])
fresh = resolved(a)
expect(a, fresh)
assert not lib.rdma_migrate_id(fresh, b)
expect(b)
ids = [resolved(b) for _ in range(50)]
for cm_id in ids[::2]:
    assert not lib.rdma_destroy_id(cm_id)
expect(b, *ids[1::2])
"""


def test_events_that_nobody_has_read(pair):
    """They go with their id, when it is destroyed, or to the channel that it moves to. Those that were
    read stay read."""
    pair.run("n2", "python3", "-c", UNREAD_EVENTS, SERVER_IP)


def test_nobody_listens(pair):
    server = serve(pair, "rping", "-s", "-a", SERVER_IP, "-p", 7001)
    out = pair.run("n2", "rping", "-c", "-a", SERVER_IP, "-p", 7002, check=False)
    assert "CONNECT" in out or "REJECTED" in out or "error" in out.lower(), out
    assert pair.running[-1].returncode != 0
    kill(server)
    wait_until(lambda: not cm_ids(pair, "n1"), "the listener goes with its process")


def port_guid(fabric, name):
    return next(node for node in fabric.json("topo")["nodes"] if node["name"] == name)["ports"][0]["guid"]


def test_redirected():
    """rping asks n1, whose REJ names the port of n3; the CM of n3 is at a QP of a module and
    redirects there what arrives at QP1. rping hears of the connection alone."""
    with Fabric("star:3") as fabric:
        module = str(BUILD / "tests/modules/redirect.so")
        fabric.softib("modprobe", "n1", module, f"dguid={port_guid(fabric, 'n3')}")
        fabric.softib("modprobe", "n3", module)
        server = fabric.start("n3", "rping", "-s", "-a", "0.0.0.0", "-v", "-V", "-C", 5)
        wait_until(lambda: cm_ids(fabric, "n3") or server.poll() is not None, "rping listens")
        client = fabric.run("n2", "rping", "-c", "-a", SERVER_IP, "-v", "-V", "-C", 5)
        assert client.count("ping data: rdma-ping-") == 5, client
        assert fabric.finish(server).count("server ping data: rdma-ping-") == 5
        for node in ("n1", "n3"):
            fabric.softib("rmmod", node, "redirect")
        log = (fabric.dir / "softibd.log").read_text()
        assert log.count("n1 redirect: redirected ") == 1, log
        assert "n3 redirect: class message 1 at QP " in log, log


def test_unknown_addresses(pair):
    out = pair.run("n2", "rping", "-c", "-a", "192.0.2.7", check=False)
    assert "ADDR_ERROR" in out or "error" in out.lower(), out
    out = pair.run("n2", "rping", "-s", "-a", SERVER_IP, check=False)
    assert "rdma_bind_addr" in out, out


def test_a_killed_server_is_a_disconnection(pair):
    server = serve(pair, "rping", "-s", "-a", SERVER_IP, "-v")
    client = pair.start("n2", "rping", "-c", "-a", SERVER_IP, "-v")
    pair.wait_for_traffic("n1", 50)
    server.send_signal(signal.SIGKILL)
    kill(server)
    assert "DISCONNECT" in pair.finish(client)
    wait_until(lambda: not cm_ids(pair, "n1") and not cm_ids(pair, "n2"), "no cm_id is left")


REGISTERED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
ctypes.CDLL("libibverbs.so.1")
for command in (1 << 1, 1 << 3):  # GLOBAL_EXPEDITED, PRIVATE_EXPEDITED of membarrier(2)
    assert libc.syscall(324, command, 0) == 0, ctypes.get_errno()
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of membarrier(2)")
def test_registered_while_there_is_one_thread(pair):
    """membarrier(2) is set up when the library is loaded. Later, with threads, that takes
    20 ms, of the first connection."""
    pair.run("n1", "python3", "-c", REGISTERED)
