# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""UCX, and Open MPI over it, between two nodes by verbs. UCX looks for device
files before it asks libibverbs: softib exec --devices."""
import contextlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from interop.fabric import BUILD, SOFTIB, TIMEOUT, Fabric, _ports, kill, wait_until
from interop.test_rdma_cm import SERVER_IP, cm_ids, serve

pytestmark = pytest.mark.skipif(not shutil.which("ucx_perftest"), reason="no ucx_perftest")
COUNT = 2000


def perftest(fabric, test, transports, *args, program=("env",)):
    """Client's output of ucx_perftest between n1 and n2.

    @program: env, with variables for both
    """
    port = next(_ports)
    program = [SOFTIB, "exec", "--devices", "n1", "--", *program, f"UCX_TLS={transports}",
               "UCX_LOG_LEVEL=info", "ucx_perftest", "-p", port]
    server = fabric.serve("n1", *program, port=port)
    program[3] = "n2"
    out = fabric.run("n2", *program, "127.0.0.1", "-t", test, "-n", COUNT, "-w", 10, *args)
    fabric.finish(server)
    return out


@pytest.fixture(scope="module", name="pair")
def a_pair():
    with Fabric("pair") as fabric:
        yield fabric


def test_ucx_info(pair):
    """UCX finds the adapter, and both of its transports on verbs."""
    out = pair.run("n1", SOFTIB, "exec", "--devices", "n1", "--", "ucx_info", "-d")
    for transport in "rc_verbs", "ud_verbs":
        assert re.search(rf"Transport: {transport}\n#\s+Device: softib0:1\n", out), out


@pytest.mark.parametrize("test, size", [
    ("tag_lat", 8), ("tag_lat", 65536), ("ucp_put_lat", 8), ("ucp_get", 4096),
    ("ucp_fadd", 8), ("tag_bw", 1 << 20), ("stream_bw", 4096)])
def test_rc(pair, test, size):
    out = perftest(pair, test, "rc,self", "-s", size)
    assert "rc_verbs/softib0:1" in out
    assert re.search(rf"Final: +{COUNT} ", out), out


MATRIX = ["tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_am_lat", "ucp_am_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
          "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "stream_lat", "stream_bw"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transport", ["rc", "ud"])
def test_every_operation(pair, transport, threads):
    """Every kind of UCP's operations, one after the other; of datagrams those that UCX has on
    them come by software."""
    for test in MATRIX:
        out = perftest(pair, test, f"{transport},self", "-s", 8, "-T", threads)
        assert f"{transport}_verbs/softib0:1" in out, out
        finals = re.findall(r"Final: +(\d+) ", out)
        assert [int(final) for final in finals] == [COUNT], (test, out)


# UCX's transports themselves: what each has, by each way to hand over the data
LOWER = {
    "rc_verbs": ["am_lat", "am_lat -D bcopy", "am_lat -D zcopy", "put_lat", "put_lat -D bcopy", "put_lat -D zcopy",
                 "get -D bcopy", "get -D zcopy -s 4096", "add_lat", "fadd", "cswap", "am_bw", "am_bw -D zcopy -s 4096",
                 "put_bw", "put_bw -D zcopy -s 65536", "add_mr"],
    "ud_verbs": ["am_lat", "am_lat -D bcopy", "am_lat -D zcopy", "am_bw", "am_bw -D zcopy -s 2048"],
}
# what UCX says that they lack
REFUSED = {
    "rc_verbs": {"get": "does not support operation get short", "swap": "does not support required 64-bit atomic",
                 "am_lat -T 2": "UCT tests do not support multi-thread mode"},
    "ud_verbs": {"put_lat": "does not support operation put short", "fadd": "does not support required 64-bit atomic"},
}


@pytest.mark.parametrize("transport", LOWER)
def test_every_operation_of_a_transport(pair, transport):
    for test in LOWER[transport]:
        name, *args = test.split()
        out = perftest(pair, name, transport, "-x", transport, "-d", "softib0:1", *args)
        assert re.findall(r"Final: +(\d+) ", out) == [str(COUNT)], (test, out)


@pytest.mark.parametrize("transport, test", [(transport, test) for transport, tests in REFUSED.items() for test in tests])
def test_what_ucx_refuses(pair, transport, test):
    port = next(_ports)
    program = [SOFTIB, "exec", "--devices", "n1", "--", "ucx_perftest", "-p", port]
    server = pair.serve("n1", *program, port=port)
    program[3] = "n2"
    name, *args = test.split()
    out = pair.run("n2", *program, "127.0.0.1", "-x", transport, "-d", "softib0:1", "-t", name, *args, check=False)
    kill(server)
    assert REFUSED[transport][test] in out, out


def library_threads_slept():
    """How often the library's own threads of UCX's programs gave their core away."""
    total = 0
    for comm in Path("/proc").glob("[0-9]*/task/*/comm"):
        with contextlib.suppress(OSError):  # they end
            status = comm.with_name("status").read_text()
            program = (comm.parents[2] / "comm").read_text().strip()
            if comm.read_text().strip() == "softib" and program == "ucx_perftest":
                total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])
    return total


def test_who_polls_is_left_to_itself(pair):
    """UCX keeps a queue armed, for new peers, and polls those that it uses."""
    def received():
        return pair.json("counters", "n2:1")["counters"][0]["rcv_packets"]

    port = next(_ports)
    program = [SOFTIB, "exec", "--devices", "n1", "--", "env", "UCX_TLS=rc,self", "ucx_perftest",
               "-p", port]
    server = pair.serve("n1", *program, port=port)
    program[3] = "n2"
    client = pair.start("n2", *program, "127.0.0.1", "-t", "tag_lat", "-s", 8, "-n", 10 ** 9)
    came, slept = received(), 0

    def few_sleeps():
        """... since the last look; the first one only counts"""
        nonlocal came, slept
        packets = received() - came
        assert client.poll() is None and server.poll() is None
        if packets < 10000:
            return False
        before, came, slept = slept, came + packets, library_threads_slept()
        return before and 0 <= 10 * (slept - before) < packets
    wait_until(few_sleeps, "who polls has its messages without a thread's help")
    for program in (client, server):
        program.terminate()
        pair.finish(program)


def test_ud(pair):
    out = perftest(pair, "tag_lat", "ud,self", "-s", 8)
    assert "ud_verbs/softib0:1" in out
    assert re.search(rf"Final: +{COUNT} ", out), out


def io_demo(node, *options):
    """UCX's demonstration of a storage service: a server, or a client of the address that
    ends @options. Its client checks the data (-q)."""
    return [SOFTIB, "exec", "--devices", node, "--", "env", "UCX_TLS=rc,self", "UCX_LOG_LEVEL=info",
            "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "io_demo", "-p", 1337, "-q", "-d", "8:300000",
            "-o", "read,write", *options]


def test_connections_by_rdma_cm(pair):
    """Two clients of one server, with a connection each; then the server dies."""
    server = serve(pair, *io_demo("n1"))
    clients = [pair.start(node, *io_demo(node, "-i", 200, SERVER_IP)) for node in ("n1", "n2")]
    for client in clients:
        out = pair.finish(client)
        assert "Client exit with status 'OK'" in out, out
        assert "tag(rc_verbs/softib0:1)" in out, out
    client = pair.start("n2", *io_demo("n2", "-c", 1, "-i", 10 ** 9, SERVER_IP))
    wait_until(lambda: len(cm_ids(pair, "n1")) == 2, "the client is connected")
    kill(server)
    out = pair.finish(client)
    assert "Connection reset by remote peer" in out or "Endpoint timeout" in out, out
    wait_until(lambda: not cm_ids(pair, "n1") and not cm_ids(pair, "n2"), "no cm_id is left")


EXAMPLES = Path("/usr/share/doc/libucx-dev/examples")


@pytest.mark.parametrize("kind", ["tag", "stream", "am"])
def test_example_of_clients_and_servers(pair, tmp_path, kind):
    """UCX's own example, as Debian ships its source: 20 messages of three buffers, by the RDMA CM."""
    program, text = tmp_path / "ucp_client_server", "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 4000
    subprocess.run(["gcc", "-o", program, EXAMPLES / "ucp_client_server.c", "-lucp", "-lucs"], check=True)
    command = ["env", "UCX_TLS=rc,self", "UCX_LOG_LEVEL=info", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm",
               program, "-c", kind, "-i", 20, "-v", 3, "-s", 100000, "-p", 1338]
    with (tmp_path / "said").open("wb") as said:  # more than a pipe holds
        server = pair.start("n1", SOFTIB, "exec", "--devices", "n1", "--", *command, "-l", SERVER_IP, stdout=said)
    wait_until(lambda: cm_ids(pair, "n1") or server.poll() is not None, "the server listens by the RDMA CM")
    out = pair.run("n2", SOFTIB, "exec", "--devices", "n2", "--", *command, "-a", SERVER_IP)
    assert "(rc_verbs/softib0:1)" in out, out
    kill(server)
    assert text[:99999] in (tmp_path / "said").read_text()


needs_open_mpi = pytest.mark.skipif(
    not shutil.which("mpirun") or not (BUILD / "tests/bench/bench-mpi").exists(),
    reason="no Open MPI")


def bench_mpi(fabric, *tests, **env):
    """Output of bench-mpi, a rank on each of the two nodes."""
    ranks = [["-np", "1", SOFTIB, "exec", "--fabric", "t", "--devices", node, "--",
              BUILD / "tests/bench/bench-mpi", *tests] for node in ("n1", "n2")]
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                           "--mca", "pml", "ucx", "--mca", "osc", "^ucx",
                           *ranks[0], ":", *ranks[1]],
                          env=dict(fabric.env, UCX_TLS="rc,ud,self", UCX_LOG_LEVEL="info", **env),
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tag(rc_verbs/softib0:1)" in done.stdout
    return done.stdout


@needs_open_mpi
def test_open_mpi(pair):
    out = bench_mpi(pair, "lat:8", "stream:65536")
    assert re.search(r"^lat:8 [\d.]+ ns$", out, re.M), out
    assert re.search(r"^stream:65536 [\d.]+ GB/s$", out, re.M), out


@needs_open_mpi
@pytest.mark.parametrize("windows", ["0", "1"])
def test_open_mpi_both_ways(pair, windows):
    """Long messages go by RDMA READ. Each is done when its sender hears so, and then gives
    its memory back to the system."""
    out = bench_mpi(pair, "both:65536", "both:262144", "both:1048576", SOFTIB_WINDOWS=windows)
    assert len(re.findall(r"^both:\d+ [\d.]+ GB/s$", out, re.M)) == 3, out


def test_device_files_are_the_program_s_own(pair):
    out = pair.run("n1", SOFTIB, "exec", "--devices", "n1", "--", "sh", "-c",
                   "ls -l /dev/infiniband; echo x > /dev/null; ls /dev/shm /dev/pts > /dev/null")
    assert re.search(r"^crw-rw-rw-.* uverbs0$", out, re.M), out
