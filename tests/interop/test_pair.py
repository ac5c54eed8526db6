# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib pair: a server and its client on two nodes; softib mpirun and softib
exec --ranks: MPI programs on a fabric's nodes."""
import os
import re
import signal
import subprocess
import sys

import pytest

from interop.commands import processes, softib, softibd_of
from interop.fabric import BUILD, OUTSIDE, SOFTIB, TIMEOUT, _ports, wait_until

# a server that says who it is and serves one client, or for ever
SERVER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("server on", os.environ["SOFTIB_NODE"], flush=True)
while True:
    client, _ = listener.accept()
    client.sendall(client.recv(100).upper())
    if sys.argv[2:] != ["for-ever"]:
        sys.exit(int(sys.argv[2]) if sys.argv[2:] else 0)
"""
CLIENT = """
import os, socket, sys
address, port = sys.argv[1].split(":")
with socket.create_connection((address, int(port))) as server:
    server.sendall(b"ping")
    print(server.recv(100).decode(), os.environ["SOFTIB_NODE"], flush=True)
sys.exit(int(sys.argv[2]) if sys.argv[2:] else 0)
"""


def pair_of(fabric, *args, **kwargs):
    return subprocess.run([SOFTIB, "pair", "--fabric", "t", *map(str, args)], env=fabric.env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False, **kwargs)


def python(code, *args):
    return [sys.executable, "-c", code, *map(str, args)]


def test_perftest(pair):
    """The client's output alone on stdout; the server's lines bear its node's name."""
    done = pair_of(pair, "--", "ib_write_bw", "-n", 100, "-p", next(_ports), "-d", "softib0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ 65536 +100 ", done.stdout, re.M), done.stdout
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("n1| ") for line in lines), done.stderr
    assert any(re.match(r"n1\|  65536 +100 ", line) for line in lines)


def test_nodes_are_named_and_traffic_crosses(tree):
    def received(node):
        return tree.json("counters", f"{node}:1")["counters"][0]["rcv_packets"]

    before = received("n4")
    done = pair_of(tree, "-q", "n4", "n1", "--", "ib_send_bw", "-n", 500, "-s", 4096, "-p",
                   next(_ports), "-d", "softib0")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert received("n4") - before >= 500


@pytest.mark.parametrize("client, server, status", [
    (0, 0, 0), (7, 0, 7), (0, 5, 5), (3, 4, 4), (4, 3, 4)])
def test_the_worse_status(pair, client, server, status):
    """Words of each one's own, and a place for the address."""
    port = next(_ports)
    done = pair_of(pair, "--", *python(SERVER, port, server), "--",
                   *python(CLIENT, f"{{}}:{port}", client))
    assert done.stdout == "PING n2\n"
    assert done.stderr == "n1| server on n1\n"
    # a client that fails ends its server, which may not have come to its own end
    assert done.returncode in {client or status, status}


def test_a_failed_client_ends_the_server(pair):
    port = next(_ports)
    done = pair_of(pair, "--", *python(SERVER, port, "for-ever"), "--",
                   *python(CLIENT, f"{{}}:{port}", 7))
    assert (done.returncode, done.stdout) == (7, "PING n2\n")
    assert not processes(str(port))


def test_a_failed_server_ends_the_client(pair):
    done = pair_of(pair, "--ready", "up", "--", "sh", "-c", "echo up; exit 6", "--", "sleep",
                   f"{os.getpid()}.5")
    assert done.returncode == 6
    assert not processes(f"{os.getpid()}.5")


def test_a_server_that_serves_for_ever(pair):
    port = next(_ports)
    done = pair_of(pair, "--end-server", "--", *python(SERVER, port, "for-ever"), "--",
                   *python(CLIENT, f"{{}}:{port}"))
    assert (done.returncode, done.stdout) == (0, "PING n2\n")


# as SERVER and CLIENT, and says what its descriptor is: the kernel's word, not libsdp's
SDP_SERVER = """
import socket, sys
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
client, peer = listener.accept()
client.sendall(peer[0].encode())
client.recv(1)
"""
SDP_CLIENT = """
import os, socket, sys
address, port = sys.argv[1].split(":")
server = socket.create_connection((address, int(port)))
inode = str(os.fstat(server.fileno()).st_ino)
unix = any(inode in line.split() and "@softib-sdp:" in line for line in open("/proc/net/unix"))
print(address, server.recv(100).decode(), "sdp" if unix else "tcp")
"""


@pytest.mark.parametrize("net", ["host", "node"])
def test_programs_joined_by_sdp(pair, net):
    """The server's SDP socket is the one that is waited for, and the client gets its address of IP over
    InfiniBand."""
    port = next(_ports)
    done = pair_of(pair, "--sdp", "--net", net, "--timeout", "20", "--", *python(SDP_SERVER, port), "--",
                   *python(SDP_CLIENT, f"{{}}:{port}"))
    assert done.stdout == "10.1.0.1 10.1.0.2 sdp\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_ready_by_what_it_prints(pair):
    """Its lines come as they are printed, though no newline follows the text."""
    done = pair_of(pair, "--ready", "ready: 7", "--end-server", "--",
                   *python("print('not yet'); print('ready: 7', end='', flush=True);"
                           "import time; time.sleep(1000)"), "--", "echo", "client", "{}")
    assert (done.returncode, done.stdout) == (0, "client 127.0.0.1\n")
    assert done.stderr == "n1| not yet\nn1| ready: 7\n"


def test_no_wait(pair):
    done = pair_of(pair, "--no-wait", "--end-server", "--", "sleep", "1000", "--", "echo", "ok")
    assert (done.returncode, done.stdout) == (0, "ok 127.0.0.1\n")


def test_a_server_that_ends_before_it_listens(pair):
    done = pair_of(pair, "--", "sh", "-c", "echo nothing to serve; exit 4")
    assert done.returncode == 4
    assert done.stderr == "n1| nothing to serve\n" \
        "softib: sh on n1 ended before it was ready: no client was started\n"
    assert pair_of(pair, "--", "/nonexistent").returncode == 127


def test_a_server_that_never_listens(pair):
    done = pair_of(pair, "--timeout", 1, "--", "sleep", 1000)
    assert done.returncode == 1 and "is not ready after 1 s (--timeout)" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_both(pair, number):
    mark = f"{os.getpid()}.{int(number)}"
    running = subprocess.Popen([SOFTIB, "pair", "--fabric", "t", "--ready", "up", "--", "sh", "-c",
                                f"echo up; exec sleep {mark}", "--", "sh", "-c",
                                f"echo both; exec sleep {mark}"], env=pair.env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout.readline() == "both\n"
    running.send_signal(number)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 128 + number
    assert not processes(mark)


def test_what_the_server_left_is_ended(pair):
    mark = f"{os.getpid()}.75"
    done = pair_of(pair, "--ready", "up", "--", "sh", "-c", f"setsid sleep {mark} & echo up")
    assert done.returncode == 0, done.stderr
    assert not processes(mark)


def test_without_a_fabric_it_has_one_of_its_own(home):
    done = softib(home, "pair", "--", "ibv_rc_pingpong", "-p", next(_ports))
    assert done.returncode == 0, done.stderr
    assert "1000 iters" in done.stdout and "a private one of two nodes" in done.stderr
    assert not softibd_of(home)


@pytest.mark.parametrize("args, says", [
    (["pair"], "which program?"), (["pair", "--"], "which program?"),
    (["pair", "n1", "--", "true"], "one node is not enough"),
    (["pair", "--timeout", "x", "--", "true"], "--timeout takes 0 to 86400 seconds"),
    (["exec", "--ranks=n1", "--"], "expected a node and a command"),
])
def test_wrong_words(home, args, says):
    done = softib(home, *args)
    assert done.returncode == 64 and says in done.stderr


def test_unknown_nodes(pair):
    for command in (["pair", "n1", "n9", "--", "true"], ["mpirun", "--nodes", "n1,n9", "true"]):
        done = subprocess.run([SOFTIB, *command], env=dict(pair.env, SOFTIB_DIR=str(pair.dir)),
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 1 and 'no node "n9"' in done.stderr


def test_ucx(pair):
    done = pair_of(pair, "--devices", "--", "env", "UCX_TLS=rc,self", "UCX_LOG_LEVEL=info",
                   "ucx_perftest", "-p", next(_ports), "-t", "tag_lat", "-n", 1000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rc_verbs/softib0:1" in done.stdout + done.stderr


# --- MPI ---

RANK = "echo $OMPI_COMM_WORLD_RANK$PMI_RANK on $SOFTIB_NODE"


def mpirun(fabric, *args):
    return subprocess.run([SOFTIB, "mpirun", "--fabric", "t", *map(str, args)],
                          env={**fabric.env, **OUTSIDE, "XDG_RUNTIME_DIR": str(fabric.home)},
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_ranks_are_on_nodes(tree):
    done = mpirun(tree, "-n", 5, "--nodes", "n1,n3", "sh", "-c", RANK)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 on n1", "1 on n1", "2 on n1", "3 on n3",
                                                "4 on n3"]
    done = mpirun(tree, "-np", 4, "--tag-output", "sh", "-c", RANK)
    assert sorted(line.split(":")[1] for line in done.stdout.splitlines()) == \
        [f"{i} on n{i + 1}" for i in range(4)]


def sent_by_switch(fabric):
    return sum(row["xmit_bytes"] for row in fabric.json("counters", "s1")["counters"])


def test_mpi_goes_through_the_fabric(pair):
    before = sent_by_switch(pair)
    done = mpirun(pair, "-n", 2, BUILD / "tests/bench/bench-mpi", "lat:8", "stream:65536")
    assert done.returncode == 0, done.stdout + done.stderr
    rate = re.search(r"^stream:65536 ([\d.]+) GB/s$", done.stdout, re.M)
    assert rate, done.stdout
    assert sent_by_switch(pair) - before > 65536 * 100  # a sample of the stream, several times


def test_mpirun_s_own_options_win(pair):
    """What is on the command line stands above what the wrapper sets."""
    before = sent_by_switch(pair)
    done = mpirun(pair, "-n", 2, "--mca", "pml", "ob1", "--mca", "btl", "openib,self",
                  "--mca", "btl_openib_allow_ib", 1, "-x", "UCX_TLS=nothing",
                  BUILD / "tests/bench/bench-mpi", "lat:8")
    assert done.returncode == 0 and re.search(r"^lat:8 ", done.stdout, re.M), done.stderr
    assert sent_by_switch(pair) - before > 100000  # by btl openib: UCX could not


def test_mpirun_s_status(pair):
    assert mpirun(pair, "-n", 1, "sh", "-c", "exit 9").returncode == 9


@pytest.mark.parametrize("rank, size", [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                        ("PMI_RANK", "PMI_SIZE"),
                                        ("SLURM_PROCID", "SLURM_NTASKS")])
def test_exec_by_rank(tree, rank, size):
    """Consecutive ranks share a node; nodes differ by one rank at most."""
    def node(r, n, nodes="all"):
        return subprocess.run([SOFTIB, "exec", "--fabric", "t", f"--ranks={nodes}", "--",
                               "printenv", "SOFTIB_NODE"], text=True, capture_output=True,
                              env=dict(tree.env, **{rank: str(r), size: str(n)}),
                              timeout=TIMEOUT, check=True).stdout.strip()

    assert [node(r, 10) for r in range(10)] == ["n1", "n1", "n2", "n2", "n3", "n4", "n5", "n6",
                                                "n7", "n8"]
    assert [node(r, 2) for r in range(2)] == ["n1", "n2"]
    assert [node(r, 3, "n4,n2") for r in range(3)] == ["n4", "n4", "n2"]


def test_exec_without_a_rank(pair):
    done = subprocess.run([SOFTIB, "exec", "--fabric", "t", "--ranks=all", "--", "true"],
                          env=pair.env, capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == 1 and "has no MPI rank" in done.stderr


def test_signal_of_the_terminal(pair):
    """Ctrl-C goes to the whole group of the terminal: both end, and nothing stays."""
    mark = f"{os.getpid()}.125"
    running = subprocess.Popen([SOFTIB, "pair", "--fabric", "t", "--ready", "up", "--", "sh", "-c",
                                f"echo up; exec sleep {mark}", "--", "sh", "-c",
                                f"echo both; exec sleep {mark}"], env=pair.env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    assert running.stdout.readline() == "both\n"
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 128 + signal.SIGINT
    wait_until(lambda: not processes(mark), "both end")
