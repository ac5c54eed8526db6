# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One side of the tests of SDP: sdp_side.py WHAT ADDRESS PORT, a socket program that knows
nothing of SDP. It says what it sees, one line for each fact."""
import ctypes
import errno
import fcntl
import hashlib
import os
import random
import select
import signal
import socket
import struct
import sys

WHAT, ADDRESS, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
FAMILY = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
BIG = bytes(range(251)) * 12000  # 3 MB
libc = ctypes.CDLL(None, use_errno=True)


def say(*facts):
    print(*facts, flush=True)


def is_sdp(sock):
    """The kernel's own word for what the descriptor is: libsdp is not asked."""
    inode = str(os.fstat(sock.fileno()).st_ino)
    with open("/proc/net/unix", encoding="ascii") as sockets:
        return any(inode in line.split() and ("@softib-sdp:c" in line or "@softib-sdp:p" in line)
                   for line in sockets)


def listener(poll=None):
    sock = socket.socket(FAMILY)
    if poll:
        poll.register(sock.fileno(), select.EPOLLIN)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((ADDRESS, PORT))
    sock.listen(5)
    say("listening")
    return sock


def receive(sock, count=None):
    data = b""
    while count is None or len(data) < count:
        part = sock.recv(1 << 20)
        if not part:
            break
        data += part
    return data


def names(sock):
    say("sdp" if is_sdp(sock) else "tcp", *sock.getsockname()[:2], *sock.getpeername()[:2])


def serve_stream():
    """Echo what is sent until its end; then say goodbye."""
    sock, peer = listener().accept()
    assert peer == sock.getpeername()
    names(sock)
    data = receive(sock)
    sock.sendall(data + b"bye")
    sock.close()


def call_stream():
    sock = socket.create_connection((ADDRESS, PORT))
    names(sock)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == FAMILY
    sock.sendall(BIG)
    sock.shutdown(socket.SHUT_WR)
    say("echoed", receive(sock) == BIG + b"bye")


def serve_events():
    """One thread, epoll that knows the listener before bind(), descriptors that do not block,
    and children."""
    poll = select.epoll()
    server = listener(poll)
    server.setblocking(False)
    try:
        server.accept()
        say("did not block")
    except BlockingIOError:
        pass
    assert poll.poll(20) == [(server.fileno(), select.EPOLLIN)]
    sock, _ = server.accept()
    sock.setblocking(False)
    poll.register(sock.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
    assert poll.poll(20)[0][0] == sock.fileno()
    assert sock.recv(3, socket.MSG_PEEK) == b"one"
    assert sock.recv(100) == b"one"
    child = os.fork()
    if not child:  # who inherits it, has it
        copy = socket.socket(fileno=os.dup(sock.fileno()))
        copy.send(b"two from " + str(copy.getpeername()[1]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    sock.setblocking(True)
    assert sock.recv(100) == b"three"
    os.execv("/bin/sh", ["sh", "-c", f"printf four >&{keep(sock)}"])


def keep(sock):
    os.set_inheritable(sock.fileno(), True)
    return sock.fileno()


def call_events():
    sock = socket.socket(FAMILY)
    sock.setblocking(False)
    copy, poll = sock.dup(), select.epoll()
    poll.register(sock, select.EPOLLOUT)
    poll.register(copy, select.EPOLLOUT)
    sock.connect_ex((ADDRESS, PORT))
    assert select.select([], [sock], [], 20)[1]
    assert dict(poll.poll(20)) == {sock.fileno(): select.EPOLLOUT, copy.fileno(): select.EPOLLOUT}
    assert is_sdp(copy) and copy.getpeername() == sock.getpeername()
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    copy.send(b"one")
    copy.close()
    assert select.select([sock], [], [], 20)[0]
    assert sock.recv(100) == b"two from " + str(sock.getsockname()[1]).encode()
    sock.send(b"three")
    sock.setblocking(True)
    sock.settimeout(20)
    say(receive(sock).decode())


def begin_to_connect():
    """connect() does not wait. Return: the socket, and what waits for it"""
    sock, poll = socket.socket(FAMILY), select.poll()
    sock.setblocking(False)
    assert sock.connect_ex((ADDRESS, PORT)) == errno.EINPROGRESS
    poll.register(sock, select.POLLIN | select.POLLOUT)
    return sock, poll


def call_pending():
    """Until the test says so, the server is not reached."""
    sock, poll = begin_to_connect()
    assert poll.poll(0) == [] and sock.connect_ex((ADDRESS, PORT)) == errno.EALREADY
    try:
        sock.getpeername()
        say("has a peer")
    except OSError as e:
        assert e.errno == errno.ENOTCONN
    own = sock.getsockname()
    say("begun")
    assert poll.poll(20000) == [(sock.fileno(), select.POLLOUT)]
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert sock.connect_ex((ADDRESS, PORT)) == errno.EISCONN
    assert sock.getsockname() == own and sock.getpeername()[:2] == (ADDRESS, PORT)
    sock.setblocking(True)
    sock.sendall(BIG)
    sock.shutdown(socket.SHUT_WR)
    say("echoed", receive(sock) == BIG + b"bye")


def call_pending_tcp():
    """The server has no SDP: its bytes come all the same."""
    sock, poll = begin_to_connect()
    assert poll.poll(20000) == [(sock.fileno(), select.POLLOUT)]
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    sock.setblocking(True)
    sock.sendall(BIG)
    sock.shutdown(socket.SHUT_WR)
    say("echoed", receive(sock) == BIG + b"bye")


def call_pending_refused():
    sock, poll = begin_to_connect()
    assert poll.poll(20000)[0][1] & select.POLLERR
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    say(os.strerror(error), sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def call_options():
    """What a bound socket says of options that TCP's keeps."""
    sock = socket.socket(socket.AF_INET6)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("::", 0))
    say(sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))


def call_stalled():
    """The peer does not read: a sender is held back, and loses nothing."""
    sock = socket.create_connection((ADDRESS, PORT))
    sock.setblocking(False)
    sent = 0
    while select.select([], [sock], [], 0.2)[1]:
        sent += sock.send(BIG)
    say("held back", sent < 3 << 20)
    sock.setblocking(True)
    sock.send(b"x")
    sock.shutdown(socket.SHUT_WR)
    say("read", int(receive(sock)) == sent + 1)


def serve_stalled():
    sock, _ = listener().accept()
    select.select([sys.stdin], [], [])  # until the test says so
    sock.sendall(str(len(receive(sock))).encode())


def serve_digest():
    sock, _ = listener().accept()
    select.select([sys.stdin], [], [])  # until the test says so
    sock.sendall(hashlib.sha256(receive(sock)).digest())


def call_digest():
    """Much, and the server does not read at first: all that is in between is full."""
    sock = socket.create_connection((ADDRESS, PORT))
    sock.setblocking(False)
    data = random.Random(PORT).randbytes(8 << 20)
    sent = 0
    while select.select([], [sock], [], 1)[1]:
        sent += sock.send(data[sent:])
    say("held back", sent < len(data))
    sock.setblocking(True)
    sock.sendall(data[sent:])
    sock.shutdown(socket.SHUT_WR)
    say("same", receive(sock) == hashlib.sha256(data).digest())


def serve_death():
    sock, _ = listener().accept()
    sock.recv(1)
    say("connected")
    while True:
        select.select([], [], [])


def call_death():
    sock = socket.create_connection((ADDRESS, PORT))
    sock.send(b"x")
    try:
        say("ended", receive(sock))
    except ConnectionResetError:
        say("ended", b"")


def at_mark(sock):
    return struct.unpack("i", fcntl.ioctl(sock, 0x8905, bytes(4)))[0]  # SIOCATMARK


def serve_urgent():
    """The stream up to out-of-band data, that, and the rest; then out-of-band data back. The
    process gets SIGURG."""
    signals = []
    signal.signal(signal.SIGURG, lambda *_: signals.append("SIGURG"))
    sock, _ = listener().accept()
    fcntl.fcntl(sock, fcntl.F_SETOWN, os.getpid())
    before = b""
    while select.select([sock], [], []) and not at_mark(sock):
        part = sock.recv(1 << 16)
        assert part, "the stream ends before out-of-band data"
        before += part
    say(select.select([], [], [sock])[2] == [sock], signals[:1], sock.recv(1, socket.MSG_OOB))
    sock.send(b"?", socket.MSG_OOB)
    say(before == BIG, receive(sock))


def call_urgent():
    sock = socket.socket(FAMILY)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    sock.connect((ADDRESS, PORT))
    sock.sendall(BIG)
    sock.send(b"!", socket.MSG_OOB)
    sock.sendall(b"after")
    say(select.select([], [], [sock])[2] == [sock], at_mark(sock), sock.recv(9))
    sock.shutdown(socket.SHUT_WR)
    receive(sock)


def call_by(family):
    fd = libc.socket(family, socket.SOCK_STREAM, 0)
    addr = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(PORT), socket.inet_aton(ADDRESS))
    ret = libc.connect(fd, addr, len(addr))
    say(family, ret, os.strerror(ctypes.get_errno()))


def call_by_sdp():
    """Family 27 means SDP alone."""
    call_by(27)


def call_refused():
    """An error is that of TCP."""
    call_by(FAMILY)
    call_by_sdp()


globals()[WHAT]()
