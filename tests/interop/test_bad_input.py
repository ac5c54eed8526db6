# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a fabric must bear: limits, strangers, nonsense on its sockets and in its
memory. Whoever does wrong gets an error; the others do not notice."""
import contextlib
import json
import mmap
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from interop.commands import softib
from interop.fabric import BUILD, NOBODY, Fabric, _ports, public_copy, wait_until
from interop.test_kill import open_files, softibd_pid
from interop.test_lanes import SET_PKEYS

OPEN_LIST, OPEN_UVERBS, OPEN_UMAD, OPEN_PORT, OPEN_RDMA_CM = range(5)
SESSION_H = (Path(__file__).parents[2] / "src/abi/session.h").read_text(encoding="ascii")
ABI_MAGIC, ABI_VERSION = (int(re.search(rf"^#define {name} (\w+?)u?\b", SESSION_H, re.M)[1], 0)
                          for name in ("ABI_MAGIC", "ABI_VERSION"))
FDS = re.findall(r"^\tABI_FD_(\w+),", SESSION_H, re.M)  # enum abi_context_fd, in order
GET_CONTEXT, QUERY_DEVICE, ALLOC_PD = 0, 1, 3  # <rdma/ib_user_verbs.h>
RESOLVE, NO_LANE, LANE_OUT_GONE, LANE_REFUSED = 0x5f00, 0xffffffff, 3, 4  # src/abi/lane.h
DEVICE_FATAL = 8
EIO = 5
LANE_EVENT = struct.Struct("<II28x")  # struct abi_lane_event: its kind and lane
RING_DATA, RING_HEAD = 192, 64  # offsets in struct abi_ring
SEED = 20


def goes_on(fabric):
    fabric.pair("ibv_rc_pingpong", "-n", "100")


@pytest.fixture(scope="module", autouse=True)
def both_were_opened(pair):
    """softibd keeps the page of an adapter's ports from its first program on:
    what is counted before a test and after it is counted behind that."""
    goes_on(pair)


def node_env(fabric, node="n1"):
    """What `softib exec` sets, for programs that are run under limits."""
    lib = BUILD / "lib"
    return dict(fabric.env, SOFTIB_DIR=str(fabric.dir), SOFTIB_NODE=node,
                LD_LIBRARY_PATH=str(lib))


def crashed(status):
    """By a signal, seen as wait(2) or as a shell tells it."""
    return status < 0 or 128 < status < 160


def attempt(fabric, *argv, timeout=60, **kwargs):
    """Run to any end but a hang or a signal. Return: status, output."""
    done = subprocess.run([*map(str, argv)], env=node_env(fabric), text=True, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          **kwargs)
    assert not crashed(done.returncode), f"{argv}: {done.returncode}\n{done.stdout}"
    return done.returncode, done.stdout


# --- directories ---

def test_the_directory_is_closed_to_others(pair):
    assert pair.dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.other_user
def test_another_user_gets_in_nowhere(pair):
    """Kept out by the directory's mode; where that is opened, by softibd."""
    nobody = [*NOBODY, "env", f"LD_LIBRARY_PATH={public_copy() / 'lib'}"]
    status, out = attempt(pair, *nobody, "ibv_devinfo")
    assert status and "softib0" not in out, out
    ways = [pair.home, pair.home / "softib", pair.dir]
    modes = [way.stat().st_mode & 0o777 for way in ways]
    sockets = [pair.dir / name for name in ("uverbs", "umad", "control")]
    try:
        for path in ways:
            path.chmod(0o755)
        for path in sockets:
            path.chmod(0o666)
        for program in (["ibv_devinfo"], ["ibstat"], [public_copy() / "bin/softib", "status"]):
            status, out = attempt(pair, *nobody, *program)
            assert status and "softib0" not in out and "adapters" not in out, out
    finally:
        for path in sockets:
            path.chmod(0o600)
        for path, mode in zip(ways, modes):
            path.chmod(mode)
    goes_on(pair)


def test_second_daemon_on_the_directory(pair):
    done = subprocess.run([BUILD / "bin/softibd", "--dir", pair.dir], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"another softibd serves {pair.dir}" in done.stderr
    assert f"'SOFTIB_DIR={pair.dir} softib down'" in done.stderr
    goes_on(pair)


@pytest.mark.parametrize("text, says", [
    ("Switch 4\n", ":1: "),
    ('Switch 4 "s"\n[5] "h"[1]\n', ":2: "),
    ('Switch 4 "s"\n[1] "h"[1]\n', ":2: "),
    ('Switch 4 "s"\n[1] "h"[1]\n[1] "h"[2]\nCa 2 "h"\n', ":3: "),
    ('Switch 4 "s"\n\nSwitch 4 "s"\n', ":3: "),
    ('Ca 1 "h"\n[1] "h"[2\n', ":2: "),
    ('Switch 99999 "s"\n', ":1: "),
    ("\0\1\2\n", ":1: "),
    ("", ""),
])
def test_topology_errors(text, says):
    with tempfile.TemporaryDirectory(prefix="softib-test-") as home:
        path = Path(home, "net")
        path.write_text(text, encoding="ascii")
        done = subprocess.run([BUILD / "bin/softibd", "--dir", f"{home}/run", "-t", path],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"softibd: {path}{says}"), done.stderr
        assert len(done.stderr.strip()) > len(f"softibd: {path}{says}") + 10, done.stderr


# --- what programs do to their library ---

@pytest.mark.parametrize("case", ["signals", "threads", *(
    f"fork {phase}{init}" for phase in ("before", "registered", "traffic", "closed", "events") for init in ("", " init"))])
def test_hardship(pair, case):
    """tests/programs/hardship.c: signals, threads, fork() in each phase."""
    assert pair.run("n1", BUILD / "tests/programs/hardship", *case.split()) == "fine\n"


@pytest.mark.parametrize("layer, calls", [("infiniband", 70), ("ethernet", 88)])
def test_objects_of_another_context(home, layer, calls):
    """Each verb with each of its objects replaced by another context's, or by none."""
    done = softib(home, "run", "--link-layer", layer, "--", BUILD / "tests/programs/foreign")
    assert done.stdout == f"{calls} calls, 0 answered wrongly\n", done


@pytest.mark.parametrize("layer", ["infiniband", "ethernet"])
def test_each_combination_of_attributes(home, layer):
    """ibv_modify_qp() of each type of QP from each state to each, beside the specification's table."""
    done = softib(home, "run", "--link-layer", layer, "--", BUILD / "tests/programs/modify_masks")
    assert done.returncode == 0 and done.stdout.endswith("allowed, 0 answered wrongly\n"), done
    tried, allowed = map(int, re.findall(r"\d+", done.stdout)[:2])
    assert tried > 29700 and allowed > 5000, done


def test_allocators_of_a_parent_domain(pair):
    """Queues in memory that the program gives, refuses, or leaves to the heap."""
    assert pair.run("n1", BUILD / "tests/programs/allocators") == "fine\n"


# --- limits ---

def idle_client(fabric):
    """One that softibd has accepted; who closed before is closed there by then."""
    sock, _ = control_client(fabric)
    return sock


def control_client(fabric):
    """Return: the connection, and what softibd said to an empty request."""
    sock = connect(fabric, "control")
    with contextlib.suppress(BrokenPipeError):  # it is refused, and the answer says why
        sock.send(b"{}")
    answer = sock.recv(1 << 16)
    assert answer
    return sock, answer


def use_up_descriptors(fabric, clients):
    """softibd may have closed some since they were counted."""
    for _ in range(64):
        sock, answer = control_client(fabric)
        clients.enter_context(sock)
        if b"no descriptor" in answer:
            return
    raise AssertionError(answer)


@contextlib.contextmanager
def descriptors_of_softibd(fabric, spare):
    """softibd may open @spare files more. Its limit is above all that are open;
    idle clients take what is free below."""
    pid = softibd_pid(fabric)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as clients:
        clients.enter_context(idle_client(fabric))
        taken = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]
        limit = max(max(taken) + 1, len(taken) + spare)
        for _ in range(limit - len(taken) - spare):
            clients.enter_context(idle_client(fabric))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        try:
            if not spare:
                use_up_descriptors(fabric, clients)
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("spare", [0, 1, 4, 8])
def test_softibd_without_descriptors(pair, spare):
    files = open_files(softibd_pid(pair))
    with descriptors_of_softibd(pair, spare):
        status, out = attempt(pair, "ibv_devinfo", "-d", "softib0")
        assert status, out
        assert spare or "Too many open files" in out, out
        status, out = attempt(pair, BUILD / "bin/softib", "status")
        assert (status, "no descriptor" in out) == ((0, False) if spare else (1, True)), out
        status, out = attempt(pair, "ibstat")
        assert status == 0 or "softib0" not in out, out
    goes_on(pair)
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "softibd closes its files")


def test_programs_that_run_go_on_without_descriptors(pair):
    port = next(_ports)
    flags = ["-d", "softib0", "-p", port, "-D", "2"]
    server = pair.serve("n1", "ib_write_bw", *flags, port=port)
    client = pair.start("n2", "ib_write_bw", *flags, "127.0.0.1")
    wait_until(lambda: len([r for r in pair.user_resources() if r["type"] == "qp"]) == 2
               or client.poll() is not None, "both have a QP")
    # on a busy machine they would end first, and softibd would have their descriptors again
    client.send_signal(signal.SIGSTOP)
    with descriptors_of_softibd(pair, 0):
        status, out = attempt(pair, "ibv_devinfo", "-d", "softib0")
        client.send_signal(signal.SIGCONT)
        assert status and "Too many open files" in out, out
        for process in (client, server):
            out = pair.finish(process, 60)
            assert process.returncode == 0, out


def test_program_without_descriptors(pair):
    """Any limit: it opens the device, or says why not. It never crashes."""
    good = [limit for limit in range(4, 32)
            if attempt(pair, "prlimit", f"--nofile={limit}", "ibv_devinfo", "-d", "softib0",
                       )[0] == 0]
    assert good and good == list(range(good[0], 32)), "more is better"
    # too few for every lane: the packets go by softibd
    for limit in range(good[0] + 1, good[0] + 7):
        port = next(_ports)
        flags = ["ibv_rc_pingpong", "-d", "softib0", "-n", "100", "-p", port]
        limited = ["prlimit", f"--nofile={limit}"]
        server = pair.start("n1", *limited, *flags)
        wait_until(lambda: server.poll() is not None or
                   pair.home and _listens(port), "it listens or ends")
        if server.poll() is None:
            out = pair.run("n2", *flags, "127.0.0.1", check=False, timeout=60)
            assert pair.running[-1].returncode == 0, (limit, out)
        out = pair.finish(server, 60)
        assert not crashed(server.returncode), (limit, out)
    goes_on(pair)


def _listens(port):
    from interop.fabric import listening
    return listening(port)


@pytest.mark.no_sanitizer("AddressSanitizer reserves terabytes of address space")
def test_program_without_memory(pair):
    statuses = set()
    for mib in (12, 16, 20, 24, 32, 48, 64, 96, 128, 256):
        status, out = attempt(pair, "prlimit", f"--as={mib << 20}", "ibv_devinfo", "-d", "softib0")
        statuses.add(status)
        port = next(_ports)
        server = pair.start("n1", "prlimit", f"--as={mib << 20}", "ibv_rc_pingpong", "-d",
                            "softib0", "-s", "16777216", "-n", "2", "-p", port)
        wait_until(lambda: server.poll() is not None or _listens(port), "it listens or ends")
        if server.poll() is None:
            pair.run("n2", "ibv_rc_pingpong", "-d", "softib0", "-s", "16777216", "-n", "2", "-p",
                     port, "127.0.0.1", timeout=60)
        out = pair.finish(server, 60)
        assert not crashed(server.returncode), (mib, out)
    assert 0 in statuses and len(statuses) > 1, "both ends were seen"
    goes_on(pair)


# --- malformed messages ---

def abi_open(kind, device=b"softib0", node=b"n1", magic=ABI_MAGIC, version=ABI_VERSION, port=1):
    return struct.pack("<IIII64s64s", magic, version, kind, port, node, device)


def command(number, body=b"", words=None):
    return struct.pack("<IHH", number, words if words is not None else (8 + len(body)) // 4,
                       0) + body


def connect(fabric, name):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(30)
    sock.connect(str(fabric.dir / name))
    return sock


def say(fabric, name, messages, fds=()):
    """Say all that on one connection. Return: the answers (None: closed)."""
    answers = []
    with connect(fabric, name) as sock:
        for message in messages:
            try:
                try:
                    socket.send_fds(sock, [message], fds)
                except PermissionError:  # this socket wants none (Linux 6.16)
                    sock.send(message)
                answers.append(sock.recv(1 << 17) or None)
            except (BrokenPipeError, ConnectionResetError):
                answers.append(None)
    return answers


def error_of(answer):
    return struct.unpack_from("<i", answer)[0] if answer else None


OPENINGS = {
    "one byte": b"x",
    "noise": bytes(range(256)) * 16,
    "long": b"x" * 100000,
    "cut": abi_open(OPEN_UVERBS)[:-1],
    "magic": abi_open(OPEN_UVERBS, magic=1),
    "version": abi_open(OPEN_UVERBS, version=99),
    "kind": abi_open(77),
    "no device": abi_open(OPEN_UVERBS, device=b"mlx5_0"),
    "no node": abi_open(OPEN_UVERBS, node=b"nowhere"),
    "device not ended": abi_open(OPEN_UVERBS, device=b"s" * 64),
    "node not ended": abi_open(OPEN_UVERBS, node=b"n" * 64),
    "no port": abi_open(OPEN_UMAD, port=9),
    "port 0": abi_open(OPEN_PORT, port=0),
}


@pytest.mark.parametrize("name", ["uverbs", "umad"])
def test_malformed_openings(pair, name):
    files = open_files(softibd_pid(pair))
    for what, message in OPENINGS.items():
        answer = say(pair, name, [message], [0, 1, 2])[0]
        assert answer is None or error_of(answer) < 0, what
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")
    goes_on(pair)


def test_counts_of_changes_cannot_be_written(pair):
    """The page by which the RDMA CM's library knows whether an answer still holds
    (src/abi/ahead.h) is one for all programs."""
    with connect(pair, "rdma_cm") as sock:
        sock.send(abi_open(OPEN_RDMA_CM))
        answer, fds, _, _ = socket.recv_fds(sock, 4096, 4)
    try:
        assert error_of(answer) == 0 and len(fds) == 2
        page = fds[1]
        with mmap.mmap(page, 4096, prot=mmap.PROT_READ) as shared:
            before = bytes(shared)
            for write in (lambda: mmap.mmap(page, 4096), lambda: os.pwrite(page, b"x", 0),
                          lambda: os.ftruncate(page, 0)):
                with pytest.raises(OSError):
                    write()
            assert bytes(shared) == before
    finally:
        for fd in fds:
            os.close(fd)


def test_malformed_commands(pair):
    files = open_files(softibd_pid(pair))
    context = command(GET_CONTEXT, bytes(8))
    opening = abi_open(OPEN_UVERBS)
    assert error_of(say(pair, "uverbs", [opening, command(ALLOC_PD, bytes(8))])[1]) < 0
    assert error_of(say(pair, "uverbs", [opening, context])[1]) == 0
    assert error_of(say(pair, "uverbs", [opening, context, context])[2]) < 0
    for bad in (command(ALLOC_PD, bytes(8), words=3), command(ALLOC_PD), command(9999),
                command(ALLOC_PD | 1 << 31), b"x", bytes(6)):
        answers = say(pair, "uverbs", [opening, context, bad, command(ALLOC_PD, bytes(8))])
        assert error_of(answers[2]) < 0 and error_of(answers[3]) == 0, bad
    rng = random.Random(SEED)
    for _ in range(20):
        bodies = [command(rng.randrange(64), rng.randbytes(4 * rng.randrange(64)))
                  for _ in range(50)]
        say(pair, "uverbs", [opening, context, *bodies])
    wait_until(lambda: not pair.user_resources(), "no object stays")
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")
    goes_on(pair)


def test_malformed_mads(pair):
    """Records are not answered: only what comes back by its agent would be."""
    files = open_files(softibd_pid(pair))
    rng = random.Random(SEED)
    with connect(pair, "umad") as sock:
        sock.send(abi_open(OPEN_UMAD))
        answer, fds, _, _ = socket.recv_fds(sock, 4096, 4)
        assert error_of(answer) == 0 and len(fds) == 1
        ioctls = socket.socket(fileno=fds[0])
        ioctls.settimeout(30)
        for size in (0, 1, 7, 8, 36, 60):  # no ioctl; then noise as its argument
            if size:
                ioctls.send(rng.randbytes(size))
                ioctls.recv(4096)
        for _ in range(200):
            record = struct.pack("<I", rng.randrange(4)) + rng.randbytes(rng.randrange(400))
            socket.send_fds(sock, [record], [0, 1][:rng.randrange(3)])
        ioctls.close()
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")
    goes_on(pair)


def test_malformed_requests(pair):
    files = open_files(softibd_pid(pair))
    rng = random.Random(SEED)
    bad = [b"{", b"[]", b"null", b'{"op": 1}', b'{"op": "nothing"}', b"\xff" * 100,
           b'{"op":"link","node":[],"port":{}}', b'{"a":' * 20, b"x" * 100000,
           *(rng.randbytes(100) for _ in range(50))]
    for answer in say(pair, "control", bad, [0, 1]):
        assert json.loads(answer)["error"]
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")
    goes_on(pair)


# --- a program that writes where it should not ---

class Program:
    """The least that a program does: a device's context and its ring."""

    def __init__(self, fabric, node="n1"):
        self.sock = connect(fabric, "uverbs")
        self.sock.send(abi_open(OPEN_UVERBS, node=node.encode()))
        assert error_of(self.sock.recv(4096)) == 0
        self.sock.send(command(GET_CONTEXT, bytes(8)))
        answer, self.fds, _, _ = socket.recv_fds(self.sock, 4096, 16)
        assert error_of(answer) == 0 and len(self.fds) == len(FDS)
        _, self.ring_bytes, self.out, _ = struct.unpack_from("<IIQQ", answer, 8)
        self.link = mmap.mmap(self.fd("LINK"), 0)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.link.close()
        for fd in self.fds:
            os.close(fd)
        self.sock.close()

    def fd(self, name):
        return self.fds[FDS.index(name)]

    def ring(self, tail):
        # one store: struct.pack_into() writes zeros first, and softibd may read them
        self.link[self.out:self.out + 8] = struct.pack("@Q", tail)
        os.write(self.fd("DOORBELL"), struct.pack("=Q", 1))

    def write(self, data, at=0):
        at += self.out + RING_DATA
        self.link[at:at + len(data)] = data

    def alloc_pd(self):
        self.sock.send(command(ALLOC_PD, bytes(8)))
        return error_of(self.sock.recv(4096))

    def resolve(self, dlid, qpn, pkey=0xffff):
        """Ask for a lane. Return: its id, and its descriptors when it is new."""
        self.sock.send(command(RESOLVE, struct.pack("<IIHHB3x", 1, qpn, dlid, pkey, 0)))
        answer, fds, _, _ = socket.recv_fds(self.sock, 4096, 2)
        assert error_of(answer) == 0
        self.fds += fds  # closed with the others
        return struct.unpack_from("<I", answer, 8)[0], fds

    def lane_event(self, seconds):
        """What softibd says next of a lane: (kind, lane)."""
        assert select.select([self.fd("LANES")], [], [], seconds)[0], "nothing is said"
        return LANE_EVENT.unpack(os.read(self.fd("LANES"), 64))

    def events(self, seconds):
        while select.select([self.fd("ASYNC_READ")], [], [], seconds)[0]:
            yield struct.unpack("<QII", os.read(self.fd("ASYNC_READ"), 64))[1]

    def head(self):
        return struct.unpack_from("@Q", self.link, self.out + RING_HEAD)[0]


SCRIBBLES = {
    "a tail beyond the ring": (b"", 1 << 40),
    "a tail that is no multiple of 8": (b"", 3),
    "a record beyond the tail": (struct.pack("<I", 4096), 64),
    "a record beyond all": (struct.pack("<I", 0xfffffff0), 1 << 20),
    "wraps for ever": (b"\xff" * 4096, 4096),
    "a negative tail": (b"", (1 << 64) - 8),
}


@pytest.mark.parametrize("what", SCRIBBLES)
def test_scribbled_ring_is_cut_off(pair, what):
    data, tail = SCRIBBLES[what]
    files = open_files(softibd_pid(pair))
    with Program(pair) as program:
        assert program.alloc_pd() == 0
        program.write(data)
        program.ring(tail)
        assert DEVICE_FATAL in program.events(30), "it is told"
        assert program.alloc_pd() == -EIO
        goes_on(pair)
    wait_until(lambda: not pair.user_resources(), "its PD goes")
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")


def test_descriptors_that_nobody_asked_for(pair):
    """They come along with a message, and softibd keeps none."""
    files = open_files(softibd_pid(pair))
    with Program(pair) as program:
        held = open_files(softibd_pid(pair))
        with socket.socket(fileno=os.dup(program.fd("WINDOWS"))) as windows:
            for _ in range(50):
                socket.send_fds(windows, [bytes(8)], [0, 0])
            socket.send_fds(windows, [b""], [0, 0])
        wait_until(lambda: open_files(softibd_pid(pair)) <= held, "no descriptor stays")
    wait_until(lambda: open_files(softibd_pid(pair)) <= files, "no descriptor stays")


def test_noise_in_records(pair):
    """Well-kept rings of nonsense: it is read, dropped, and harms nobody."""
    rng = random.Random(SEED)
    with Program(pair) as program:
        tail = 0
        for _ in range(2000):
            packet = rng.randbytes(rng.choice([0, 1, 7, 8, 20, 28, 60, 300, 5000]))
            record = struct.pack("<I", len(packet)) + packet
            record += bytes(-len(record) % 8)
            pos = tail % program.ring_bytes
            if pos + len(record) > program.ring_bytes:
                program.write(b"\xff" * 4, pos)
                tail += program.ring_bytes - pos
                pos = 0
            program.write(record, pos)
            tail += len(record)
            program.ring(tail)
            if tail - program.head() > program.ring_bytes // 2:
                at = tail
                wait_until(lambda: program.head() == at, "softibd reads the ring")
        wait_until(lambda: program.head() == tail, "softibd reads the ring")
        assert program.alloc_pd() == 0
        goes_on(pair)


def packet(slid, dlid, qpn, pkey=0xffff, source=None, vl=0):
    """A packet of UC, or of UD when it names its source QPN."""
    headers = struct.pack(">BBBBII", 0x64 if source is not None else 0x24, 0, pkey >> 8,
                          pkey & 0xff, qpn, 0)
    if source is not None:
        headers += struct.pack(">II", 0x11111111, source)
    words = 2 + len(headers) // 4 + 1
    return struct.pack(">BBHHH", vl << 4, 2, dlid, words, slid) + headers


def test_what_may_not_leave(pair):
    nodes = {n["name"]: n["ports"][0]["lid"] for n in pair.json("topo")["nodes"]}
    me, peer = nodes["n1"], nodes["n2"]

    def sent():
        return pair.json("counters", "n1:1")["counters"][0]["xmit_packets"]

    forged = {
        "another's LID": packet(peer, peer, 0x20),
        "no LID": packet(0, peer, 0x20),
        "QP0": packet(me, peer, 0),
        "VL15": packet(me, peer, 0x20, vl=15),
        "foreign P_Key": packet(me, peer, 0x20, pkey=0x8123),
        "P_Key 0": packet(me, peer, 0x20, pkey=0),
        "from QP1": packet(me, peer, 1, source=1),
        "from nobody's QP": packet(me, peer, 1, source=0x7777),
    }
    with Program(pair) as program:
        tail = 0

        def send(bytes_):
            nonlocal tail
            program.write(struct.pack("<I", len(bytes_)) + bytes_, tail)
            tail += (len(bytes_) + 4 + 7) & ~7
            program.ring(tail)
            wait_until(lambda: program.head() == tail, "softibd reads the ring")

        for what, bytes_ in forged.items():
            # softib-sm may send in between: a packet that leaves, leaves each time
            before = sent()
            for _ in range(100):
                send(bytes_)
            assert sent() - before < 50, what
        before = sent()
        for _ in range(100):
            send(packet(me, peer, 0x777777))
        assert sent() - before >= 100, "and what may leave, leaves"
        assert program.alloc_pd() == 0
    goes_on(pair)


def lanes_of(process):
    """How many lanes it has mapped."""
    maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    return maps.count("softib-lane")


def node_lid(fabric, name):
    return next(n["ports"][0]["lid"] for n in fabric.json("topo")["nodes"] if n["name"] == name)


class Listener:
    """A program on n2 with a QP, which its peer never connects."""

    def __init__(self, fabric):
        port = next(_ports)
        self.process = fabric.serve("n2", "ibv_rc_pingpong", "-p", port, port=port)
        self.qpn = next(int(r["qpn"], 0) for r in fabric.user_resources() if r["type"] == "qp")
        self.lid = node_lid(fabric, "n2")

    def end(self):
        self.process.kill()
        self.process.wait()


def test_a_lane_ends_with_its_partition():
    """Its sender's port has the P_Key no more: whatever the sender would write,
    the receiver has unmapped it."""
    with Fabric("pair") as fabric:
        listener = Listener(fabric)
        with Program(fabric) as program:
            lane, fds = program.resolve(listener.lid, listener.qpn)
            assert lane != NO_LANE and len(fds) == 2
            same, none = program.resolve(listener.lid, listener.qpn)
            assert same == lane and not none
            wait_until(lambda: lanes_of(listener.process) == 1, "its receiver takes it")
            fabric.run("n1", sys.executable, "-c", SET_PKEYS, str(node_lid(fabric, "n1")), "0x7fff")
            assert program.lane_event(30) == (LANE_OUT_GONE, lane)
            wait_until(lambda: lanes_of(listener.process) == 0, "its receiver lets it go")
            assert program.resolve(listener.lid, listener.qpn) == (NO_LANE, [])
            other, fds = program.resolve(listener.lid, listener.qpn, pkey=0x7fff)
            assert other not in (lane, NO_LANE) and len(fds) == 2, "one of its own P_Key"
        listener.end()


def test_a_doorbell_cannot_be_filled(pair):
    """Its sender and its receiver have the same open file. Were it an eventfd, one
    could fill it and make it blocking, and the other would wait when it rings."""
    listener = Listener(pair)
    with Program(pair) as program:
        _, (_, doorbell) = program.resolve(listener.lid, listener.qpn)
        os.set_blocking(doorbell, True)
        with pytest.raises(OSError, match="Invalid argument"):
            os.write(doorbell, struct.pack("=Q", (1 << 64) - 2))
    listener.end()


@contextlib.contextmanager
def no_descriptor_left(process):
    before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    taken = {int(fd.name) for fd in Path(f"/proc/{process.pid}/fd").iterdir()}
    lowest = next(fd for fd in range(len(taken) + 1) if fd not in taken)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)


def test_a_refused_lane_is_offered_again(pair):
    """What its receiver lacked, it may have later; and so may its sender."""
    listener = Listener(pair)

    def offered(program):
        return program.resolve(listener.lid, listener.qpn)[0] != NO_LANE

    with Program(pair) as program:
        with no_descriptor_left(listener.process):
            lane, _ = program.resolve(listener.lid, listener.qpn)
            assert program.lane_event(30) == (LANE_OUT_GONE, lane)
            assert not offered(program), "not at once"
        wait_until(lambda: offered(program), "never offered again")
        wait_until(lambda: lanes_of(listener.process) == 1, "its receiver takes it")
        lane, fds = program.resolve(listener.lid, listener.qpn)
        assert not fds, "it has it"
        os.write(program.fd("LANES"), LANE_EVENT.pack(LANE_REFUSED, lane))
        wait_until(lambda: lanes_of(listener.process) == 0, "its receiver lets it go")
        wait_until(lambda: offered(program), "never offered to its sender again")
    listener.end()
    goes_on(pair)


# --- verbs of a program that knows what is not its own ---

def test_foreign_keys(pair):
    script = Path(__file__).parent / "foreign_keys.py"
    assert "all refused" in pair.run("n1", "/usr/bin/python3", script)
    goes_on(pair)


# --- softibd's death ---

@pytest.mark.parametrize("program", [["ib_write_bw", "-D", "20"],
                                     ["ibv_rc_pingpong", "-e", "-n", "100000000"]],
                         ids=["polling", "asleep"])
def test_softibd_is_killed(program):
    with Fabric("pair") as fabric:
        port = next(_ports)
        command_line = [program[0], "-d", "softib0", "-p", port, *program[1:]]
        server = fabric.serve("n1", *command_line, port=port)
        client = fabric.start("n2", *command_line, "127.0.0.1")
        watch = fabric.start("n1", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "softib0")
        assert "async event FD" in watch.stdout.readline()
        wait_until(lambda: len([r for r in fabric.user_resources() if r["type"] == "qp"]) == 2
                   or client.poll() is not None, "both have a QP")
        began = time.monotonic()
        os.kill(softibd_pid(fabric), signal.SIGKILL)
        assert "IBV_EVENT_DEVICE_FATAL" in watch.stdout.readline()
        for process in (client, server):
            out = fabric.finish(process, 60)
            assert process.returncode > 0, out
        assert time.monotonic() - began < 15, "they did not wait for their 20 s"
        status, out = attempt(fabric, "ibv_devinfo")
        assert status and "No IB devices found" in out, out
        fabric.wait_for_cleaning()
        fabric.softib("up", "t")  # and the directory is free for the next
        goes_on(fabric)
