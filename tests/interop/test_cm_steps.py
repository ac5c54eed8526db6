# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program that dies at any step of a connection by the RDMA CM: its peer is told what chapter 12
says, nothing of it is left, and its service can be reached again."""
import subprocess
import threading
from pathlib import Path

import pytest

from interop.fabric import TIMEOUT, _ports, kill, wait_until
from interop.test_rdma_cm import SERVER_IP, cm_ids

CLIENTS = 30
SIDE = Path(__file__).with_name("cm_side.py")
REJECTED, ESTABLISHED, DISCONNECTED = (f"RDMA_CM_EVENT_{name}" for name in (
    "REJECTED", "ESTABLISHED", "DISCONNECTED"))
EITHER = f"{REJECTED} {DISCONNECTED}"  # the client's RTU may be under way when the server dies


def start(fabric, role, last, port):
    return fabric.start("n1" if role == "server" else "n2", "/usr/bin/python3", SIDE, role, SERVER_IP,
                        port, last, stdin=subprocess.PIPE)


def take(side, *words):
    """Read lines up to one of @words, for TIMEOUT at most. Return: those before it"""
    before = []
    watch = threading.Timer(TIMEOUT, side.kill)
    watch.start()
    try:
        while (line := side.stdout.readline().strip()) not in words:
            assert line, f"{before}: the end, or nothing more; not {words}"
            before.append(line)
    finally:
        watch.cancel()
    return before


def begin(fabric, server_step, client_step):
    """Both sides stand behind these steps. Return: server, client, port"""
    port = next(_ports)
    server = start(fabric, "server", server_step, port)
    take(server, "listen")
    client = start(fabric, "client", client_step, port)
    take(client, client_step.rstrip(","))
    if server_step.rstrip(",") != "listen":
        take(server, server_step.rstrip(","))
    return server, client, port


def expect_nothing_left(fabric, node, ids=0):
    wait_until(lambda: len(cm_ids(fabric, node)) == ids, lambda: f"{ids} ids: {cm_ids(fabric, node)}")


def expect_service(fabric, server, port):
    """Somebody else connects as if nothing had been."""
    client = start(fabric, "client", "established", port)
    take(client, "established")
    take(server, "established")
    kill(client)
    take(server, DISCONNECTED)


@pytest.mark.parametrize("step", ["address", "route", "queue_pair"])
def test_a_client_dies_before_it_asks(pair, step):
    """The server does not hear of it."""
    server, client, port = begin(pair, "listen,", step)
    kill(client)
    expect_nothing_left(pair, "n2")
    server.stdin.write("\n")
    server.stdin.flush()
    expect_service(pair, server, port)
    kill(server)
    expect_nothing_left(pair, "n1")


def test_a_client_dies_before_the_answer(pair):
    """Its request is withdrawn: who goes on to accept it gets an error."""
    server, client, _port = begin(pair, "request,", "connect")
    kill(client)
    expect_nothing_left(pair, "n2")
    server.stdin.write("\n")
    server.stdin.flush()
    out = pair.finish(server)
    assert server.returncode and "PyverbsRDMAError" in out, out
    expect_nothing_left(pair, "n1")


@pytest.mark.parametrize("step", ["accept", "established"])
def test_a_client_dies_when_it_is_connected(pair, step):
    server, client, _port = begin(pair, step, "established")
    kill(client)
    assert take(server, DISCONNECTED) in ([], [ESTABLISHED])
    expect_nothing_left(pair, "n2")
    kill(server)
    expect_nothing_left(pair, "n1")


@pytest.mark.parametrize("step,last,told", [
    ("listen", "connect", REJECTED), ("request", "connect", REJECTED),
    ("child_queue_pair", "connect", REJECTED), ("accept", "established", EITHER),
    ("established", "established", DISCONNECTED)])
def test_a_server_dies(pair, step, last, told):
    server, client, port = begin(pair, step, last)
    kill(server)
    take(client, *told.split())
    expect_nothing_left(pair, "n1")
    kill(client)
    expect_nothing_left(pair, "n2")
    server = start(pair, "server", "established", port)  # its port is free again
    take(server, "listen")
    expect_service(pair, server, port)
    kill(server)


def test_requests_without_end(pair):
    """Clients ask for a connection each and die, while the server takes none of their
    requests. The requests go with them."""
    port = next(_ports)
    server = start(pair, "server", "listen,", port)
    take(server, "listen")
    clients = [start(pair, "client", "connect", port) for _ in range(CLIENTS)]
    for client in clients:
        take(client, "connect")
    for client in clients:
        kill(client)
    expect_nothing_left(pair, "n2")
    kill(server)
    expect_nothing_left(pair, "n1")
