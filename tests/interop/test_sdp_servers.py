# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Servers that people run, and the load generators made for them, under `softib exec --sdp`:
all of their TCP is SDP: the nodes share the
machine's network, in which nobody has the addresses of n1."""
import os
import subprocess
from pathlib import Path

import pytest

from interop.fabric import NOBODY, Fabric, wait_until
from interop.test_sdp import IPV4, NGINX, SDP, Server

pytestmark = pytest.mark.no_sanitizer("these servers do not start under a sanitizer's runtime")


SUMS = """select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
    (select sum(bbalance) from pgbench_branches) = (select sum(tbalance) from pgbench_tellers)"""


def client(fabric, *argv, **kwargs):
    """(exit status, output) of a program on n2."""
    process = fabric.start("n2", *argv, options=SDP, **kwargs)
    out = fabric.finish(process)
    return process.returncode, out


def answers(fabric, *argv, **kwargs):
    return client(fabric, *argv, **kwargs)[0] == 0


def test_redis(pair, home):
    """50 clients by epoll, and a pipeline of 16 requests: each kind of command, none refused; a
    value of 16 MiB comes back; a replica copies all of it."""
    ports = [Server.port + n for n in (1, 2)]
    Server.port += 2
    for port in ports:
        (home / str(port)).mkdir()
        pair.start("n1", "redis-server", "--bind", "0.0.0.0", "--port", port, "--dir", home / str(port), "--save", "",
                   "--protected-mode", "no", "--daemonize", "no", options=SDP)
    cli = ["redis-cli", "-h", IPV4, "-p"]
    for port in ports:
        wait_until(lambda port=port: answers(pair, *cli, port, "ping"), "redis listens")
    status, out = client(pair, "redis-benchmark", "-h", IPV4, "-p", ports[0], "-n", "5000", "-P", "16", "-q",
                         "-t", "ping,set,get,incr,lpush,lrange_100,mset")
    assert status == 0 and out.count("requests per second") == 9 and "rror" not in out, out
    (home / "value").write_bytes(os.urandom(16 << 20))
    status, out = client(pair, "sh", "-c", f"{' '.join(map(str, [*cli, ports[0]]))} -x set large <{home}/value")
    assert (status, out) == (0, "OK\n")
    assert client(pair, *cli, ports[1], "replicaof", IPV4, ports[0]) == (0, "OK\n")
    wait_until(lambda: client(pair, *cli, ports[1], "strlen", "large")[1] == f"{16 << 20}\n", "the replica has it")
    status, out = client(pair, "sh", "-c",
                         f"{' '.join(map(str, [*cli, ports[1]]))} get large | head -c {16 << 20} | cmp - {home}/value")
    assert (status, out) == (0, "")


def test_wrk(pair, home):
    """Two threads keep 32 connections to two workers of nginx busy."""
    (home / "page").write_bytes(os.urandom(20000))
    Server.port += 1
    (home / "nginx.conf").write_text(NGINX.format(home=home, address=IPV4, port=Server.port,
                                                  user="user root;" if os.getuid() == 0 else ""))
    server = pair.start("n1", "nginx", "-p", home, "-e", "stderr", "-c", home / "nginx.conf", options=SDP)
    url = f"http://{IPV4}:{Server.port}/page"
    wait_until(lambda: answers(pair, "curl", "-sSf", "-o", "/dev/null", url), "nginx listens")
    status, out = client(pair, "wrk", "-t", "2", "-c", "32", "-d", "1s", url)
    assert status == 0 and "Socket errors" not in out and "Non-2xx" not in out, out
    assert float(out.split("Requests/sec:")[1].split()[0]) > 0
    server.terminate()
    pair.finish(server)


def test_postgresql():
    """It refuses to run as root. Its processes take over the sockets that the postmaster accepts;
    pgbench has four clients in one thread. No transaction fails, and the sums agree."""
    with Fabric("pair", user=NOBODY if os.getuid() == 0 else ()) as fabric:
        programs = Path(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
        data = fabric.home / "data"
        fabric.run("n1", programs / "initdb", "-D", data, "-A", "trust", "-U", "softib", "--no-sync")
        (data / "pg_hba.conf").write_text("host all all 0.0.0.0/0 trust\n")
        Server.port += 1
        server = fabric.start("n1", programs / "postgres", "-D", data, "-p", Server.port, "-c", "fsync=off", "-c",
                              "listen_addresses=0.0.0.0", "-c", "unix_socket_directories=", options=SDP)
        where = ["-h", IPV4, "-p", Server.port, "-U", "softib", "postgres"]
        wait_until(lambda: answers(fabric, programs / "psql", "-c", "select 1", *where), "postgres listens")
        assert answers(fabric, programs / "pgbench", "-i", "-q", *where)
        status, out = client(fabric, programs / "pgbench", "-c", "4", "-t", "100", *where)
        assert status == 0 and "number of transactions actually processed: 400/400" in out and \
            "number of failed transactions: 0 " in out, out
        status, out = client(fabric, programs / "psql", "-At", "-c", SUMS, *where)
        assert (status, out) == (0, "t|t\n")
        server.terminate()
        fabric.finish(server)
