# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by SDP: sockets that a program shares with softibd, and changes behind its back."""
import contextlib
import fcntl
import os
import re
import resource
import socket
import threading
from pathlib import Path

from hostile.attack import fork_holder, innocents_go_on, softibd_answers, told
from hostile.test_softibd import limit_of_files
from interop.fabric import _ports
from interop.test_kill import softibd_pid
from interop.test_sdp import Raw

SHARE_OF_A_NODE, CONNECTION = 256 << 20, 256 << 10  # src/access/guest.h, src/ulp/sdp/socket.h


def test_a_listener_that_waits(shared):
    """A program gives softibd the TCP socket that listens beside its SDP socket, and makes it blocking
    afterwards: whoever accepts one connection too many waits for it."""
    raw = Raw(shared)
    with raw.sock, socket.create_server(("127.0.0.1", 0)) as listener:
        assert raw.ask(Raw.BIND, Raw.address(port=next(_ports)), (listener.fileno(),)) == 0
        assert raw.ask(Raw.LISTEN, number=5) == 0
        listener.setblocking(True)
        for _ in range(3):
            with socket.create_connection(listener.getsockname()):
                _, fds, _, _ = socket.recv_fds(raw.sock, 1000, 1)
                os.close(fds[0])
        innocents_go_on(shared)


def blocking_again(fd, stop):
    """What softibd sets, the program clears."""
    while not stop.is_set():
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)


@contextlib.contextmanager
def nobody_answers():
    """The address of a TCP socket whose queue is full: who connects to it waits."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as queue:
        for _ in range(2):
            sock = queue.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(server.getsockname())
        yield server.getsockname()


def test_a_connection_that_waits(shared):
    """A program gives softibd the TCP socket to try where nobody listens by SDP, and goes on to make it
    blocking, until it has found the moment before softibd connects it."""
    with nobody_answers() as (ip, port), contextlib.ExitStack() as stack:
        for _ in range(30):
            raw, tcp, stop = Raw(shared), stack.enter_context(socket.socket()), threading.Event()
            program, softibd = map(stack.enter_context, socket.socketpair())
            thread = threading.Thread(target=blocking_again, args=(tcp.fileno(), stop))
            thread.start()
            stack.callback(raw.sock.close)
            assert raw.ask(Raw.CONNECT, Raw.address(ip, port), (softibd.fileno(), tcp.fileno()), 0,
                           Raw.PENDING) == 0
            softibd_answers(shared)
            stop.set()
            thread.join()
        innocents_go_on(shared)


@contextlib.contextmanager
def files_of_this_process(limit):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def resident_bytes(pid):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) << 10


def test_memory_of_many_connections(shared):
    """A program connects as often as it may, writes to each connection what nobody reads, and so makes
    softibd lend memory for it: of the share of its node and of the listener's."""
    before, most = resident_bytes(softibd_pid(shared)), 2 * SHARE_OF_A_NODE // CONNECTION
    with files_of_this_process(10000), contextlib.ExitStack() as stack:
        listener, port = Raw(shared, node=b"n1"), next(_ports)
        stack.enter_context(listener.sock)
        assert listener.ask(Raw.BIND, Raw.address(port=port)) == 0
        assert listener.ask(Raw.LISTEN, number=5) == 0
        for made in range(most):
            client, (program, softibd) = Raw(shared, node=b"n2"), socket.socketpair()
            with client.sock, softibd:
                error = client.ask(Raw.CONNECT, Raw.address(port=port), (softibd.fileno(),))
            stack.enter_context(program).setblocking(False)
            if error:
                break
            with contextlib.suppress(BlockingIOError):
                while True:
                    program.send(bytes(1 << 18))
        assert error and made > 100
        innocents_go_on(shared)
        assert resident_bytes(softibd_pid(shared)) - before < 5 * SHARE_OF_A_NODE // 2
    shared.expect_no_leftovers()


def connect_in_a_process_of_its_own(fabric, port):
    """Return: the program's end of the stream, softibd's answer."""
    program, softibd = socket.socketpair()
    hold = os.pipe()

    def take():
        client = Raw(fabric, node=b"n2")
        error = client.error or client.ask(Raw.CONNECT, Raw.address(port=port), (softibd.fileno(),))
        return bytes(-error)

    pid, said = fork_holder(take, hold)
    try:
        return program, told(said)
    finally:
        softibd.close()
        for fd in hold:
            os.close(fd)
        os.waitpid(pid, 0)


def test_connections_by_the_thousand(shared):
    """Programs of a node connect until they may not. What softibd keeps of a connection stays when the
    socket by which it was made is gone, and so does what it is charged for."""
    with limit_of_files(softibd_pid(shared), 1200), contextlib.ExitStack() as stack:
        listener, port = Raw(shared, node=b"n1"), next(_ports)
        stack.enter_context(listener.sock)
        assert listener.ask(Raw.BIND, Raw.address(port=port)) == 0
        assert listener.ask(Raw.LISTEN, number=5) == 0
        for _ in range(1000):
            program, error = connect_in_a_process_of_its_own(shared, port)
            stack.enter_context(program)
            if error:
                break
        assert error
        innocents_go_on(shared)
