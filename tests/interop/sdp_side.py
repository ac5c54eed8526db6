# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One side of the tests of SDP: sdp_side.py WHAT ADDRESS PORT, a socket program that knows
nothing of SDP. It says what it sees, one line for each fact."""
import asyncio
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
import threading

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


# what a client sends, a message each, and how often: full ones, larger ones, short ones
ROUNDS = ((8192, 24), (32768, 16), (8, 300))


def serve_rounds():
    sock, _ = listener().accept()
    for size, count in ROUNDS:
        for _ in range(count):
            receive(sock, size)
            sock.sendall(b"x")
    assert not receive(sock)


def call_rounds():
    sock = socket.create_connection((ADDRESS, PORT))
    answers = 0
    for size, count in ROUNDS:
        for _ in range(count):
            sock.sendall(bytes(size))
            answers += len(receive(sock, 1))
    say("answered", answers)


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


BUFFERS = [(socket.SOL_SOCKET, socket.SO_SNDBUF), (socket.SOL_SOCKET, socket.SO_RCVBUF),
           (socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
           (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT)]


def serve_options():
    """A listener's options are those of what it accepts."""
    server = listener()
    for option, value in zip(BUFFERS[:3], (50000, 60000, 1)):
        server.setsockopt(*option, value)
    sock, _ = server.accept()
    say(*(sock.getsockopt(*option) for option in BUFFERS[:3]))
    sock.recv(1)


def call_kept_options():
    """What is set before connect() is there afterwards, and in a child."""
    sock = socket.socket(FAMILY)
    for option, value in zip(BUFFERS, (90000, 40000, 1, 500, 20, 4)):
        sock.setsockopt(*option, value)
    before = [sock.getsockopt(*option) for option in BUFFERS]
    sock.connect((ADDRESS, PORT))
    say(before == [sock.getsockopt(*option) for option in BUFFERS], *before)
    sock.sendall(b"x")


def call_keepalive():
    """Nobody sends anything. The peer is to be missed in three seconds."""
    sock = socket.create_connection((ADDRESS, PORT))
    sock.sendall(b"x")
    for option, value in zip(BUFFERS[2:], (1, 1, 1, 2)):
        sock.setsockopt(*option, value)
    say("waits")
    try:
        say("ended", sock.recv(1))
    except OSError as error:
        say("ended", errno.errorcode[error.errno])


def serve_echo():
    """Send back what comes, until its end."""
    sock, _ = listener().accept()
    while part := sock.recv(1 << 20):
        sock.sendall(part)
    sock.close()


def call_echo():
    """A round for each line of the standard input: so many bytes there and back."""
    sock = socket.create_connection((ADDRESS, PORT))
    rng = random.Random(PORT)
    say("connected")
    for line in sys.stdin:
        data = rng.randbytes(int(line))
        sock.sendall(data)
        say("same", receive(sock, len(data)) == data)
    sock.shutdown(socket.SHUT_WR)
    say("rest", receive(sock))


def serve_close():
    sock, _ = listener().accept()
    sock.close()


def call_among_threads():
    """One thread is in connect(), and another one waits for the descriptor: it finds a socket that is being
    connected, and then the end of the stream."""
    sock = socket.socket(FAMILY)
    thread = threading.Thread(target=sock.connect, args=((ADDRESS, PORT),))
    thread.start()
    waits = False
    while thread.is_alive() and not waits:
        waits = not select.select([sock], [], [], 0)[0] and not is_sdp(sock)  # it has no name yet
    say("waits", waits)
    thread.join()
    say("then", select.select([sock], [], [], 20)[0] == [sock], sock.recv(1))


def call_tcp_among_threads():
    """The peer has TCP alone: the descriptor, its copy, and its registration are what they were before."""
    sock, poll = socket.socket(FAMILY), select.epoll()
    copy = sock.dup()
    poll.register(copy.fileno(), select.EPOLLIN)
    thread = threading.Thread(target=sock.connect, args=((ADDRESS, PORT),))
    thread.start()
    thread.join()
    names(copy)
    copy.sendall(b"all of it")
    sock.shutdown(socket.SHUT_WR)
    assert poll.poll(20)[0][0] == copy.fileno()
    say("echoed", receive(copy) == b"all of itbye")


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
    while select.select([sock], [], [], 20)[0] and not at_mark(sock):
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


# --- much data, by the memory that both ends share, once softibd grants a lease on it ---

FLOW_BYTES = 96 << 20


def flow(count=FLOW_BYTES, piece=1 << 20):
    """Pieces of bytes of which no two are the same, the same ones in each process."""
    block, at = bytearray(random.Random(PORT).randbytes(piece)), 0
    while at < count:
        for i in range(0, piece, 4096):
            struct.pack_into("=Q", block, i, at + i)
        yield block
        at += piece


def flow_digest(count=FLOW_BYTES):
    digest = hashlib.sha256()
    for piece in flow(count):
        digest.update(piece)
    return digest.hexdigest()


def receive_digest(sock, sizes=(1 << 16,), **how):
    """What is read until the end, in pieces of these sizes."""
    digest, count, i = hashlib.sha256(), 0, 0
    while part := sock.recv(sizes[i % len(sizes)], *how.values()):
        digest.update(part)
        count += len(part)
        i += 1
    return count, digest.hexdigest()


def serve_flow():
    """Reads as programs do that wait in recv()."""
    sock, _ = listener().accept()
    say(*receive_digest(sock))


def serve_flow_broken():
    """The connection may end by an error."""
    try:
        serve_flow()
    except OSError as error:
        say("ended", error.errno)


def serve_flow_of_sizes():
    sock, _ = listener().accept()
    say(*receive_digest(sock, (1 << 16, 1, 100, 4096, 300000, 20000)))


def serve_flow_waitall():
    sock, _ = listener().accept()
    say(*receive_digest(sock, (200001, 3), flags=socket.MSG_WAITALL))


def serve_flow_peek():
    """Each piece is looked at first."""
    sock, _ = listener().accept()
    digest, count = hashlib.sha256(), 0
    while seen := sock.recv(1 << 16, socket.MSG_PEEK):
        part = sock.recv(len(seen))
        assert seen.startswith(part)
        digest.update(part)
        count += len(part)
    say(count, digest.hexdigest())


def receive_waiting(sock, wait):
    """Read what there is, when @wait() says that there is something."""
    sock.setblocking(False)
    digest, count = hashlib.sha256(), 0
    while wait():
        try:
            part = sock.recv(1 << 17)
        except BlockingIOError:
            continue
        if not part:
            break
        digest.update(part)
        count += len(part)
    say(count, digest.hexdigest())


def serve_flow_select():
    sock, _ = listener().accept()
    receive_waiting(sock, lambda: select.select([sock], [], [], 20)[0])


def serve_flow_timeout():
    """Python waits in poll() then."""
    sock, _ = listener().accept()
    sock.settimeout(20)
    say(*receive_digest(sock))


def serve_flow_epoll():
    """As an event loop: it never waits in recv()."""
    sock, _ = listener().accept()
    poll = select.epoll()
    poll.register(sock, select.EPOLLIN)
    receive_waiting(sock, lambda: poll.poll(20))


def receive_edges(sock, poll, rearm=lambda: None):
    """As a program that epoll tells of new bytes alone: it takes a short read for the last one, unless
    it has heard of the end."""
    sock.setblocking(False)
    digest, count = hashlib.sha256(), 0
    buffers = bytearray(70000), bytearray(30000)
    while events := poll.poll(20):
        got = sum(map(len, buffers))
        while got == sum(map(len, buffers)) or got and events[0][1] & select.EPOLLRDHUP:
            try:
                got = os.readv(sock.fileno(), buffers)
            except BlockingIOError:
                break
            digest.update(b"".join(buffers)[:got])
            count += got
        if not got:
            say(count, digest.hexdigest())
            return
        rearm()
    say("nothing comes", count)


def serve_flow_epoll_edge():
    sock, _ = listener().accept()
    poll = select.epoll()
    poll.register(sock, select.EPOLLIN | select.EPOLLET | select.EPOLLRDHUP)
    receive_edges(sock, poll)


def serve_flow_epoll_oneshot():
    sock, _ = listener().accept()
    poll = select.epoll()
    poll.register(sock, select.EPOLLIN | select.EPOLLONESHOT)
    receive_edges(sock, poll, lambda: poll.modify(sock, select.EPOLLIN | select.EPOLLONESHOT))


def serve_flow_epoll_nested():
    sock, _ = listener().accept()
    inner, outer = select.epoll(), select.epoll()
    outer.register(inner, select.EPOLLIN)
    inner.register(sock, select.EPOLLIN)
    receive_waiting(sock, lambda: outer.poll(20) and inner.poll(0))


def serve_flow_epoll_polled():
    """poll() waits for the instance."""
    sock, _ = listener().accept()
    poll, outer = select.epoll(), select.poll()
    poll.register(sock, select.EPOLLIN)
    outer.register(poll, select.POLLIN)
    receive_waiting(sock, lambda: outer.poll(20000) and poll.poll(0))


def serve_flow_epoll_fork():
    """A child waits for a connection that its parent registers afterwards."""
    sock, _ = listener().accept()
    poll = select.epoll()
    ready = os.pipe()
    pid = os.fork()
    if pid:
        poll.register(sock, select.EPOLLIN)
        os.write(ready[1], b"r")
        os.waitpid(pid, 0)
        os._exit(0)
    os.read(ready[0], 1)
    receive_waiting(sock, lambda: poll.poll(20))
    sys.stdout.flush()


def serve_flow_epoll_dup():
    """It waits by a copy of the descriptor with which it has registered the connection."""
    sock, _ = listener().accept()
    poll = select.epoll()
    poll.register(sock, select.EPOLLIN | select.EPOLLET | select.EPOLLRDHUP)
    receive_edges(sock, select.epoll.fromfd(os.dup(poll.fileno())))


def serve_flow_epoll_exec():
    """A program that knows nothing of libsdp inherits both the connection and the instance."""
    sock, _ = listener().accept()
    poll = select.epoll()
    poll.register(sock, select.EPOLLIN)
    digest, count = hashlib.sha256(), 0
    with open(os.environ["FLOW_FILE"], "wb") as file:
        while count < FLOW_BYTES // 3:
            poll.poll(20)
            part = sock.recv(60001)
            file.write(part)
            count += len(part)
    del os.environ["LD_PRELOAD"]
    keep(sock)
    keep(poll)
    script = ("import hashlib, os, select, sys\nfd, poll = int(sys.argv[1]), select.epoll.fromfd(int(sys.argv[2]))\n"
              "file = open(os.environ['FLOW_FILE'], 'r+b')\nfile.seek(0, 2)\n"
              "while poll.poll(20) and (part := os.read(fd, 70000)):\n    file.write(part)\n"
              "file.flush()\nfile.seek(0)\ndata = file.read()\nprint(len(data), hashlib.sha256(data).hexdigest())\n")
    os.execv(sys.executable, [sys.executable, "-c", script, str(sock.fileno()), str(poll.fileno())])


def serve_flow_asyncio():
    """asyncio's streams."""
    sock, _ = listener().accept()
    sock.setblocking(False)

    async def receive_all():
        reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 18)
        digest, count = hashlib.sha256(), 0
        while part := await reader.read(1 << 17):
            digest.update(part)
            count += len(part)
        writer.close()
        say(count, digest.hexdigest())

    asyncio.run(receive_all())


def serve_flow_fork():
    """Two processes take turns; either reads what the other one leaves."""
    sock, _ = listener().accept()
    turn = [os.pipe(), os.pipe()]
    out = os.pipe()
    own = int(os.fork() == 0)
    os.set_blocking(out[1], True)
    if not own:
        os.write(turn[0][1], b"t")
    while os.read(turn[own][0], 1) == b"t":
        part = sock.recv(50000, socket.MSG_WAITALL)
        if part:
            with open(f"{os.environ['FLOW_FILE']}", "ab") as file:
                file.write(part)
        os.write(turn[not own][1], b"t" if part else b"e")
        if not part:
            break
    if own:
        os._exit(0)
    os.wait()
    with open(os.environ["FLOW_FILE"], "rb") as file:
        digest, count = hashlib.sha256(), 0
        while part := file.read(1 << 20):
            digest.update(part)
            count += len(part)
    say(count, digest.hexdigest())


def serve_flow_exec():
    """After a third of it, a program that knows nothing of libsdp reads the rest."""
    sock, _ = listener().accept()
    with open(os.environ["FLOW_FILE"], "wb") as file:
        count = 0
        while count < FLOW_BYTES // 3:
            part = sock.recv(60001)
            file.write(part)
            count += len(part)
    del os.environ["LD_PRELOAD"]
    keep(sock)
    os.execv("/bin/sh", ["sh", "-c", f"cat <&{sock.fileno()} >>$FLOW_FILE; wc -c <$FLOW_FILE | tr '\\n' ' '; "
                         "sha256sum <$FLOW_FILE | cut -d' ' -f1"])


def serve_flow_dup():
    """Reads by two descriptors of one socket, of which one has taken another's number."""
    sock, _ = listener().accept()
    copy = os.open("/dev/null", os.O_RDONLY)
    os.dup2(sock.fileno(), copy)
    copy = socket.socket(fileno=copy)
    digest, count, i = hashlib.sha256(), 0, 0
    while part := (copy if i % 500 == 499 else sock).recv(1 << 16):
        digest.update(part)
        count += len(part)
        i += 1
    say(count, digest.hexdigest())


def serve_ping_pong():
    """Echoes; it waits in recv(), then in poll()."""
    sock, _ = listener().accept()
    i = 0
    while part := sock.recv(1 << 12):
        sock.sendall(part)
        i += 1
        if i == 2000:
            sock.settimeout(20)


def call_ping_pong():
    """Some are sent by a program that knows nothing of libsdp."""
    sock, same = called(), True
    keep(sock)
    for i in range(4000):
        ping = struct.pack("=Q", i) * 8
        if i % 1000 == 999:
            script = "import os, sys; os.write(int(sys.argv[1]), bytes.fromhex(sys.argv[2]))"
            without = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            assert os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", script, str(sock.fileno()), ping.hex()],
                              without) == 0
        else:
            sock.sendall(ping)
        same &= sock.recv(64, socket.MSG_WAITALL) == ping
    sock.close()
    say("same", same)


def send_flow(sock, size=1 << 16):
    for piece in flow():
        for at in range(0, len(piece), size):
            sock.sendall(memoryview(piece)[at:at + size])


def called():
    return socket.create_connection((ADDRESS, PORT))


def call_flow():
    sock = called()
    send_flow(sock)
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_of_sizes():
    sock, i = called(), 0
    for piece in flow():
        view = memoryview(piece)
        while view:
            n = (100000, 1, 20000, 30, 16384, 300000)[i % 6]
            i += 1
            sock.sendall(view[:n])
            view = view[n:]
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_nonblocking():
    sock = called()
    sock.setblocking(False)
    for piece in flow():
        view = memoryview(piece)
        while view:
            assert select.select([], [sock], [], 20)[1]
            try:
                view = view[sock.send(view[:1 << 16]):]
            except BlockingIOError:
                pass
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_epoll_edge():
    """As a program that epoll tells of new room alone: after a short write, it waits for that."""
    sock, poll = called(), select.epoll()
    sock.setblocking(False)
    poll.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    for piece in flow():
        view = memoryview(piece)
        while view:
            try:
                n = sock.send(view[:300000])
            except BlockingIOError:
                n = 0
            if n < len(view[:300000]):
                assert poll.poll(20), "no room"
            view = view[n:]
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_asyncio():
    """asyncio's streams."""
    async def send_all():
        _, writer = await asyncio.open_connection(ADDRESS, PORT)
        for piece in flow():
            writer.write(bytes(piece))
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    asyncio.run(send_all())
    say(FLOW_BYTES, flow_digest())


def call_flow_sendmsg():
    """By several buffers at once, and by sendfile()."""
    sock = called()
    for i, piece in enumerate(flow()):
        if i % 16 == 15:
            with open(os.environ["FLOW_FILE"] + ".out", "w+b") as file:
                file.write(piece)
                file.seek(0)
                sock.sendfile(file)
            continue
        view = memoryview(piece)
        while view:
            view = view[sock.sendmsg([view[:1000], view[1000:70000], view[70000:70001]]):]
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_fork():
    """Two processes write in turn; the order of their bytes is that of their turns."""
    sock = called()
    turn = [os.pipe(), os.pipe()]
    own = int(os.fork() == 0)
    if not own:
        os.write(turn[0][1], b"t")
    for piece in flow():
        for i, at in enumerate(range(0, len(piece), 1 << 15)):
            if i % 2 != own:
                continue
            os.read(turn[own][0], 1)
            sock.sendall(memoryview(piece)[at:at + (1 << 15)])
            os.write(turn[not own][1], b"t")
    if own:
        os._exit(0)
    os.wait()
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_exec():
    """Each eighth MiB is sent by a program that knows nothing of libsdp."""
    sock = called()
    keep(sock)
    without = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    for i, piece in enumerate(flow()):
        if i % 8 == 7:
            child = os.pipe()
            pid = os.fork()
            if not pid:
                os.dup2(child[0], 0)
                os.close(child[1])
                os.execve("/bin/sh", ["sh", "-c", f"exec cat >&{sock.fileno()}"], without)
            with open(child[1], "wb") as pipe:
                pipe.write(piece)
            os.close(child[0])
            assert os.waitpid(pid, 0)[1] == 0
            continue
        for at in range(0, len(piece), 1 << 16):
            sock.sendall(memoryview(piece)[at:at + (1 << 16)])
    sock.close()
    say(FLOW_BYTES, flow_digest())


def call_flow_forever():
    sock = called()
    try:
        while True:
            send_flow(sock)
    except (BrokenPipeError, ConnectionResetError) as error:
        say("ended", error.strerror)


def call_flow_as_told():
    """So many MiB as each line says; then the digest of all."""
    sock, digest, count = called(), hashlib.sha256(), 0
    for line in sys.stdin:
        for piece in flow(int(line) << 20):
            for at in range(0, len(piece), 1 << 16):
                sock.sendall(memoryview(piece)[at:at + (1 << 16)])
            digest.update(piece)
            count += len(piece)
        say(count >> 20)
    sock.close()
    say(count, digest.hexdigest())


def mapped_memory():
    """The shared memory that libsdp has mapped."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        line = next(line for line in maps if "softib-sdp" in line)
    start, end = (int(x, 16) for x in line.split()[0].split("-"))
    return (ctypes.c_uint8 * (end - start)).from_address(start)


def call_flow_rubbish():
    """It scribbles on the control words in the middle, again and again: a lying peer."""
    sock = called()
    sock.settimeout(2)
    rng = random.Random(PORT)
    try:
        for i, piece in enumerate(flow()):
            memory = mapped_memory()
            for at in range(0, len(piece), 1 << 16):
                sock.sendall(memoryview(piece)[at:at + (1 << 16)])
                if i > 2:
                    word = rng.randrange(96)
                    value = rng.choice((0, 1, 2, 3, 0x7fffffff, 0xffffffff, rng.getrandbits(32)))
                    memory[word * 4:word * 4 + 4] = struct.pack("=I", value)
    except OSError as error:
        say("ended", type(error).__name__)
    say("done")


globals()[WHAT]()
