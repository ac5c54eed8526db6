# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on softibd's time: it is one thread, and whatever makes it wait stops
everybody. Each attack stands while the innocents are looked at."""
import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from hostile.attack import (PATIENCE, Sender, answer_to, ask, connect, fork_holder, innocents_go_on,
                            softibd_answers, told)
from interop.fabric import BUILD, Fabric, _ports, wait_until
from interop.test_bad_input import (ALLOC_PD, GET_CONTEXT, OPEN_PORT, OPEN_UMAD, OPEN_UVERBS,
                                    Program, abi_open, command, error_of)
from interop.test_kill import softibd_pid
from interop.test_sdp import Raw

OPEN_RDMA_CM, OPEN_UCM, SDP_PORT = 4, 7, 7473
RING, ASLEEP = 4096, 72  # src/abi/reader.h, src/abi/ring.h


@contextlib.contextmanager
def stopped(pid):
    """A process that does nothing meanwhile: who races with it wins."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii"),
                   "it stops")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# --- a capture's doorbell ---

def fill(fd):
    """Make the next write into @fd wait, as far as its owner's end lets us. Who has the reading end of a pipe
    may open the writing end, too."""
    with contextlib.suppress(OSError):
        os.write(fd, struct.pack("=Q", (1 << 64) - 2))
    os.set_blocking(fd, True)
    own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(own, bytes(4096))
    os.close(own)


def test_a_captures_doorbell_cannot_be_filled(shared):
    """A reader that says it sleeps, and made the descriptor that softibd rings
    full and blocking."""
    sock, answer, fds = ask(shared, "capture")
    with sock:
        assert "error" not in answer, answer
        memory, doorbell = fds
        fill(doorbell)
        os.pwrite(memory, struct.pack("=I", 1), RING + ASLEEP)
        shared.run("n1", "smpquery", "nodeinfo", "-D", "0,1")
        wait_until(lambda: not any(os.pread(memory, 4, RING + ASLEEP)), "softibd rings")
        innocents_go_on(shared)
    for fd in fds:
        os.close(fd)


# --- descriptors ---

@contextlib.contextmanager
def limit_of_files(pid, limit):
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def no_memory_left(pid):
    """What @pid has is all that it can have."""
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
    resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize(), before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, before)


@contextlib.contextmanager
def no_descriptor_left(pid):
    """The lowest number that is free is beyond the limit. What @pid closes just now is waited for."""
    def lowest_free():
        taken = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        return next(fd for fd in range(len(taken) + 1) if fd not in taken)

    with contextlib.ExitStack() as stack:
        limit = None
        while limit != (limit := lowest_free()):
            stack.close()
            stack.enter_context(limit_of_files(pid, limit))
        yield


def outcome_of(fabric, program):
    """Return: whether softibd served @program on n1; it has had an answer in time"""
    process = fabric.start("n1", *program)
    fabric.finish(process, PATIENCE)
    return process.returncode == 0


def test_softibd_without_memory(shared):
    """softibd gets no more memory: who comes is refused, who is there is served, and afterwards all is
    as before."""
    pid = softibd_pid(shared)
    with Program(shared, "n1") as program, contextlib.ExitStack() as more:
        with no_memory_left(pid):
            for _ in range(50):
                sock = more.enter_context(connect(shared, "uverbs"))
                answer, fds = answer_to(sock, abi_open(OPEN_UVERBS, node=b"n1"))
                if error_of(answer) == 0:
                    sock.send(command(GET_CONTEXT, bytes(8)))
                    answer, fds = socket.recv_fds(sock, 4096, 16)[:2]
                for fd in fds:
                    os.close(fd)
                if error_of(answer):
                    break
            assert error_of(answer) == -errno.ENOMEM
            assert not outcome_of(shared, ["ibv_rc_pingpong"])
            program.sock.send(command(ALLOC_PD, bytes(8)))
            assert error_of(program.sock.recv(4096)) == 0
            softibd_answers(shared)
        innocents_go_on(shared)
    assert softibd_pid(shared) == pid


@pytest.mark.only_root("it mounts a file system")
def test_no_room_in_the_folder_of_the_fabric():
    """The file system is full: programs start and communicate. When there is room again, a node whose
    files could not be written gets them with its next program."""
    fabric = Fabric("star:4")
    state = "cat", "/sys/class/infiniband/softib0/ports/1/state"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M,mode=0700", "full", fabric.home], check=True)
    try:
        with fabric:
            full = fabric.home / "full"
            with full.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            innocents_go_on(fabric)
            assert not outcome_of(fabric, state)
            full.unlink()
            assert outcome_of(fabric, state)
            innocents_go_on(fabric)
    finally:
        subprocess.run(["umount", "-l", fabric.home], check=False)
        fabric.home.rmdir()


def idle_session(fabric, name, node="n1"):
    """Return: a connection that has what it asked for; None: there is no more."""
    sock = connect(fabric, name)
    kind = OPEN_UVERBS if name == "uverbs" else OPEN_UMAD
    answer, fds = answer_to(sock, abi_open(kind, node=node.encode()))
    if name == "uverbs" and error_of(answer) == 0:
        sock.send(command(GET_CONTEXT, bytes(8)))
        answer, fds, _, _ = socket.recv_fds(sock, 4096, 16)
    for fd in fds:
        os.close(fd)
    if error_of(answer) == 0:
        return sock
    assert error_of(answer) == -errno.EMFILE
    sock.close()
    return None


def test_a_process_does_not_take_all_descriptors(shared):
    """Contexts and open ports that do nothing, as many as softibd lets a process have:
    there is room for others."""
    with limit_of_files(softibd_pid(shared), 1200), contextlib.ExitStack() as idle:
        for name, most in ("uverbs", 1200 // 4 // 15), ("umad", 1200 // 4 // 5):
            held = list(iter(lambda: idle_session(shared, name), None))
            assert len(held) == most
            for sock in held:
                idle.enter_context(sock)
        innocents_go_on(shared)
        shared.run("n1", "ibstat")


def contexts(fabric, node="n1"):
    return list(iter(lambda: idle_session(fabric, "uverbs", node), None))


@contextlib.contextmanager
def greedy_processes(fabric, num, take=contexts):
    """Processes that each take as many as they get, one after the other. Yields how many each got."""
    hold = os.pipe()
    children, got = [], []
    try:
        for _ in range(num):
            child, said = fork_holder(lambda: take(fabric), hold)
            children.append(child)
            got.append(told(said))
        yield got
    finally:
        for fd in hold:
            os.close(fd)
        for child in children:
            os.waitpid(child, 0)


def test_processes_do_not_take_all_descriptors(shared):
    """Each takes its share; the last quarter is for programs that have none."""
    with limit_of_files(softibd_pid(shared), 1200), greedy_processes(shared, 8) as got:
        assert 0 not in got, "there was room for one"
        innocents_go_on(shared)
        shared.run("n1", "ibstat")


def test_processes_of_a_node_do_not_take_all_descriptors(shared):
    """There are so many of them that even the least that each may have would be all. What is left
    then is for programs of other nodes."""
    with limit_of_files(softibd_pid(shared), 1200), greedy_processes(shared, 40) as got:
        assert 0 in got
        innocents_go_on(shared)
        shared.run("n4", "ibstat")


def silent(fabric):
    """As many connections as one gets, on which nothing is said."""
    held = []
    for name in "uverbs", "umad", "ucm", "rdma_cm", "netlink", "sdp":
        for _ in range(100):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].connect(str(fabric.dir / name))  # waits for room: no time-out
    return held


def test_connections_on_which_nothing_is_said(shared):
    """They are of no node yet. When descriptors are scarce, the oldest are closed."""
    with limit_of_files(softibd_pid(shared), 1200), greedy_processes(shared, 60, silent):
        innocents_go_on(shared)
        shared.run("n1", "ibstat")


# --- the control socket ---

def test_clients_that_say_nothing(shared):
    """More of them than softibd serves, and they stay: whoever comes is served."""
    with contextlib.ExitStack() as crowd:
        for _ in range(4):
            for _ in range(50):
                crowd.enter_context(connect(shared, "control"))
            softibd_answers(shared)
        innocents_go_on(shared)
        assert "adapters" in shared.softib("status")


def test_resources_by_the_ten_thousand(shared):
    """softibd tells a page at a time, whatever comes and goes in between."""
    with Sender(shared) as owner:
        for _ in range(10000):
            owner.create(ALLOC_PD, bytes(8))
        sock, answer, _ = ask(shared, "resources", node="n1")
        assert answer["more"] and len(answer["resources"]) <= 256
        rows = shared.json("resource", "show", "n1")
        mine = {r["handle"] for r in rows if r["type"] == "pd" and r["pid"] == os.getpid()}
        assert len(mine) == 10001
        innocents_go_on(shared)
    shared.expect_no_leftovers()
    with sock:
        sock.send(b'{"op":"resources","more":true}')
        assert "more" not in json.loads(sock.recv(1 << 16))
        sock.send(b'{"op":"resources","more":true}')
        assert "without" in json.loads(sock.recv(1 << 16))["error"]


# --- the runtime directory ---

def test_a_link_where_the_runtime_directory_will_be(tmp_path):
    """Who may write to the parent leads softibd to a directory that is open to others:
    it is neither closed nor used."""
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.mkdir(mode=0o755)
    link.symlink_to(victim)
    done = subprocess.run([BUILD / "bin/softibd", "--dir", link], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 1 and f"{link} is not a directory" in done.stderr, done.stderr
    assert victim.stat().st_mode & 0o777 == 0o755 and not list(victim.iterdir())


# --- names ---

NAMED = """import ctypes, os
ctypes.CDLL(None).prctl(15, b"\\x1b[31mred", 0, 0, 0)  # PR_SET_NAME
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device(ctypes.c_void_p(verbs.ibv_get_device_list(None)[0]))
print("open", flush=True)
os.read(0, 1)
"""


def test_a_name_does_not_reach_the_terminal_as_it_is(shared):
    program = shared.start("n1", "python3", "-c", NAMED, stdin=subprocess.PIPE)
    assert program.stdout.readline() == "open\n"
    shown = shared.softib("resource", "show", "n1")
    program.stdin.close()
    shared.finish(program)
    assert "?[31mred" in shown and "\x1b" not in shown, shown


# --- issm files ---

def port_info(fabric, node):
    """Ask for a port, as umad_get_port() does: softibd makes its issm file."""
    sock = connect(fabric, "umad")
    sock.send(abi_open(OPEN_PORT, node=node.encode()))
    return sock


def issm_of(fabric, node):
    return fabric.dir / "issm" / f"{node}.softib0.1"


def test_a_fifo_where_an_issm_file_will_be(shared):
    """Nobody has asked for the port of n2 yet, so softibd makes its file now."""
    os.mkfifo(issm_of(shared, "n2"))
    asking = port_info(shared, "n2")
    innocents_go_on(shared)
    assert struct.unpack_from("=i", asking.recv(1 << 16)) == (0,)
    asking.close()


def test_a_lease_on_an_issm_file(shared):
    """Who opens a file that another has a lease on waits up to 45 s for it."""
    with port_info(shared, "n3") as asking:
        asking.recv(1 << 16)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with stopped(softibd_pid(shared)):  # which keeps the file open from the first look on
        fd = os.open(issm_of(shared, "n3"), os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        innocents_go_on(shared)
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)


# --- descriptors whose close waits ---

@contextlib.contextmanager
def slow_to_close():
    """A descriptor whose last close waits: a TCP socket that lingers for what its peer
    does not read."""
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()) as sock:
        with server.accept()[0]:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    sock.send(bytes(1 << 16))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 2 * PATIENCE))
            yield sock
            if sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))


def hand_over(fabric, sock, messages, slow):
    """Send @messages and, from then on softibd's alone, @slow with the last; unless
    that is refused, as Linux 6.16 can."""
    with stopped(softibd_pid(fabric)), contextlib.suppress(PermissionError):
        for message in messages[:-1]:
            sock.send(message)
        socket.send_fds(sock, [messages[-1]], [slow.fileno()])
        os.close(slow.detach())


@contextlib.contextmanager
def opened_umad(fabric):
    with connect(fabric, "umad") as sock:
        sock.send(abi_open(OPEN_UMAD))
        _, fds, _, _ = socket.recv_fds(sock, 4096, 4)
        with socket.socket(fileno=fds[0]) as ioctls:
            yield sock, ioctls


@contextlib.contextmanager
def opened_cm(fabric, name, kind):
    """A program's sockets of the RDMA CM or of the CM."""
    with connect(fabric, name) as sock:
        sock.send(abi_open(kind, node=b"n1"))
        _, fds, _, _ = socket.recv_fds(sock, 4096, 4)
        for fd in fds[1:]:
            os.close(fd)
        with socket.socket(fileno=fds[0]) as commands:
            yield sock, commands


@contextlib.contextmanager
def stream_of_sdp(fabric):
    """A program's end of the stream of a connection from n2 to n1."""
    listener, client = Raw(fabric, node=b"n1"), Raw(fabric, node=b"n2")
    program, softibd = socket.socketpair()
    with listener.sock, client.sock, program, softibd:
        assert listener.ask(Raw.BIND, Raw.address(port=SDP_PORT)) == 0
        assert listener.ask(Raw.LISTEN, number=1) == 0
        assert client.ask(Raw.CONNECT, Raw.address(port=SDP_PORT), (softibd.fileno(),)) == 0
        softibd.close()
        yield program


@contextlib.contextmanager
def victim(fabric, name):
    """A connection to softibd on which it reads, or which it closes."""
    with contextlib.ExitStack() as stack:
        if name in ("uverbs", "umad", "ucm", "rdma_cm", "control"):
            yield stack.enter_context(connect(fabric, name))
        elif name in ("MAD", "ioctl"):
            yield stack.enter_context(opened_umad(fabric))[name == "ioctl"]
        elif name in ("news", "commands"):
            yield stack.enter_context(opened_cm(fabric, "rdma_cm", OPEN_RDMA_CM))[name == "commands"]
        elif name in ("CM news", "CM commands"):
            yield stack.enter_context(opened_cm(fabric, "ucm", OPEN_UCM))[name == "CM commands"]
        elif name == "sdp":
            yield stack.enter_context(Raw(fabric).sock)
        elif name == "stream":
            yield stack.enter_context(stream_of_sdp(fabric))
        else:
            program = stack.enter_context(Program(fabric))
            yield stack.enter_context(socket.socket(fileno=os.dup(program.fd(name))))


@pytest.mark.parametrize("name", ["uverbs", "umad", "ucm", "rdma_cm", "control", "MAD", "ioctl", "news", "commands", "CM news", "CM commands",
                                  "sdp", "stream", "LANES", "WINDOWS", "ASYNC_READ", "ASYNC_WRITE"])
def test_a_descriptor_whose_close_waits(shared, name):
    """softibd reads the message, or closes the socket in which it still is: a message
    of no bytes is taken for the end."""
    for messages in ([bytes(32)], [b"", bytes(32)]):
        with slow_to_close() as slow:
            with victim(shared, name) as sock:
                hand_over(shared, sock, messages, slow)
                softibd_answers(shared)
            innocents_go_on(shared)


def test_a_slow_descriptor_in_a_connection_that_is_turned_away(shared):
    """What came with a message that softibd did not even read."""
    with limit_of_files(softibd_pid(shared), 1200), contextlib.ExitStack() as idle:
        for sock in iter(lambda: idle_session(shared, "umad"), None):
            idle.enter_context(sock)
        with slow_to_close() as slow:
            with stopped(softibd_pid(shared)), connect(shared, "umad") as sock, \
                    contextlib.suppress(PermissionError):
                socket.send_fds(sock, [bytes(32)], [slow.fileno()])
                os.close(slow.detach())
            innocents_go_on(shared)


def test_a_slow_descriptor_in_a_stream_that_goes_nowhere(shared):
    """softibd closes a program's stream with what it has not read of it: nobody listens."""
    with slow_to_close() as slow:
        program, softibd = socket.socketpair()
        with program, softibd, Raw(shared, node=b"n2").sock as session:
            socket.send_fds(program, [bytes(32)], [slow.fileno()])
            message = struct.pack("=IIi28s", Raw.CONNECT, 0, 0, Raw.address(port=1))
            with stopped(softibd_pid(shared)), contextlib.suppress(PermissionError):
                socket.send_fds(session, [message], [softibd.fileno()])
                softibd.close()
                program.close()
                os.close(slow.detach())
            softibd_answers(shared)
        innocents_go_on(shared)


def test_a_close_that_waits_while_there_are_no_descriptors(shared):
    """The kernel would close a descriptor for which softibd has no number at once, and softibd would wait."""
    pid, raw = softibd_pid(shared), Raw(shared)
    with connect(shared, "control") as control:
        control.send(b'{"op":"status"}')
        control.recv(1 << 16)
        with raw.sock, no_descriptor_left(pid), slow_to_close() as slow:
            with stopped(pid):
                socket.send_fds(raw.sock, [bytes(40)], [slow.fileno()])
                os.close(slow.detach())
            control.send(b'{"op":"status"}')
            control.recv(1 << 16)  # or it waits for longer than PATIENCE
    innocents_go_on(shared)


def nested(slow):
    """A descriptor whose close waits whoever calls it: the socket in which @slow, which lingers, still is."""
    inner, outer = socket.socketpair()
    socket.send_fds(inner, [b"slow"], [slow.fileno()])
    os.close(slow.detach())
    inner.close()
    return outer


def send_slow_ones(fabric, keep):
    """The last copies of ten descriptors whose close waits. softibd is stopped until they are the last,
    or we would be who waits; and once, since a signal ends the waiting."""
    raw = keep.enter_context(Raw(fabric).sock)
    slow = [nested(keep.enter_context(slow_to_close())) for _ in range(10)]
    with stopped(softibd_pid(fabric)), contextlib.suppress(PermissionError):
        for outer in slow:
            socket.send_fds(raw, [bytes(40)], [outer.fileno()])
            outer.close()


def send_fds_until_turned_away(fabric):
    """Those of ten slow sockets, then others, by as many connections as it takes. Return: what has to be
    kept, as often as it took connections."""
    keep, most = contextlib.ExitStack(), 250
    send_slow_ones(fabric, keep)
    for used in range(1, most):
        raw = Raw(fabric)
        try:
            for _ in range(50):
                fd = os.dup(0)
                socket.send_fds(raw.sock, [bytes(40)], [fd])
                os.close(fd)
                raw.answer()
        except PermissionError:  # nobody new may send descriptors
            return [keep] * used
        except (OSError, struct.error):  # it has been disconnected
            raw.sock.close()
    return [keep] * most


def may_send_a_descriptor(fabric):
    """A new program. It is refused in the kernel while too many wait to be closed."""
    raw = Raw(fabric)
    with raw.sock, open(os.devnull, "rb") as sent:
        try:
            socket.send_fds(raw.sock, [bytes(40)], [sent.fileno()])
        except PermissionError:
            return False
    return True


def test_closes_without_end(shared):
    """A process sends descriptors whose closes wait, more than there are threads to close them, and others
    behind them: it is turned away before softibd has none left, and what others send is closed."""
    with limit_of_files(softibd_pid(shared), 1200), \
            greedy_processes(shared, 1, send_fds_until_turned_away) as used:
        assert used[0] < 250
        innocents_go_on(shared)
        reading, writing = os.pipe()
        raw = Raw(shared)
        with raw.sock:
            with contextlib.suppress(PermissionError):
                socket.send_fds(raw.sock, [bytes(40)], [writing])
            os.close(writing)
            assert select.select([reading], [], [], PATIENCE)[0], "it is closed"
        os.close(reading)
    wait_until(lambda: len(os.listdir(f"/proc/{softibd_pid(shared)}/fd")) < 150, "all are closed")
    wait_until(lambda: may_send_a_descriptor(shared), "who comes later may send descriptors")


def test_connections_that_nobody_waits_for(shared):
    """A program begins SDP connections to a node that nothing reaches, and forgets them: softibd
    goes on with a bounded number of them."""
    def descriptors():
        return len(os.listdir(f"/proc/{softibd_pid(shared)}/fd"))

    waiting, before = [], descriptors()
    shared.softib("fault", "add", "link", "n2:1", "drop", "100%")
    try:
        for _ in range(700):
            raw, (stream, softibd) = Raw(shared), socket.socketpair()
            stream.close()
            message = struct.pack("=IIi28s", raw.CONNECT, raw.PENDING, 0, raw.address("10.1.0.2", 1))
            socket.send_fds(raw.sock, [message], [softibd.fileno()])
            softibd.close()
            waiting.append(raw.sock)
        innocents_go_on(shared)
        answered = sum(bool(select.select([sock], [], [], 0)[0]) for sock in waiting)
        assert 0 < answered <= 512
    finally:
        shared.softib("fault", "clear", "all")
        for sock in waiting:
            sock.close()
    wait_until(lambda: descriptors() <= before, lambda: f"{before} descriptors, now {descriptors()}")


# --- the control socket ---

def test_a_program_without_the_control_socket(shared, tmp_path):
    """It communicates, and can neither capture, nor inject faults, nor end the fabric: for one
    that has nothing but these sockets, as in a container, there are no such commands."""
    for name in "uverbs", "umad", "ucm", "rdma_cm", "netlink", "sdp":
        (tmp_path / name).symlink_to(shared.dir / name)
    port = next(_ports)
    closed = dict(shared.env, SOFTIB_DIR=str(tmp_path), LD_LIBRARY_PATH=str(BUILD / "lib"))
    server = shared.serve("n3", "ibv_rc_pingpong", "-d", "softib0", "-p", port, "-n", 100, port=port)
    subprocess.run(["ibv_rc_pingpong", "-d", "softib0", "-p", str(port), "-n", "100", "127.0.0.1"],
                   env=dict(closed, SOFTIB_NODE="n4"), check=True, timeout=PATIENCE,
                   stdout=subprocess.DEVNULL)
    shared.finish(server)
    for words in ["status"], ["capture", "-c", "1"], ["down"]:
        done = subprocess.run([BUILD / "bin/softib", *words], env=closed, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        assert done.returncode and "softib list" in done.stderr, done
    innocents_go_on(shared)
