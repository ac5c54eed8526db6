# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""socket_cases.py SIDE ADDRESS PORT MEETING: what a socket program sees of a stream socket, one
case after the other, the two sides ("server" and "client") in step. It prints one line of JSON for
each case: its name, and the facts seen. test_sdp_like_tcp.py runs it by TCP and by SDP.

A fact must not depend on when packets arrive: a side waits for the event by poll() first."""
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios

SIDE, ADDRESS, PORT, MEETING = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
FIONREAD, SIOCOUTQ = termios.FIONREAD, termios.TIOCOUTQ
RDHUP = select.POLLRDHUP
EVENTS = select.POLLIN | select.POLLOUT | RDHUP | select.POLLPRI
NAMES = {select.POLLIN: "IN", select.POLLOUT: "OUT", RDHUP: "RDHUP", select.POLLPRI: "PRI",
         select.POLLHUP: "HUP", select.POLLERR: "ERR", select.POLLNVAL: "NVAL"}
WAIT_MS = 20000
NOBODY = ("127.0.0.1", 1)  # listens there, by whichever protocol
libc = ctypes.CDLL(None, use_errno=True)


# --- what both sides use ---

def outcome(call, *args):
    """Its result, or the name of its error."""
    try:
        result = call(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return result.decode() if isinstance(result, bytes) else result


def raw(name, *args):
    """A call of libc with whatever pointers."""
    result = getattr(libc, name)(*args)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result


def events(sock, mask=EVENTS, timeout=0):
    poll = select.poll()
    poll.register(sock, mask)
    found = poll.poll(timeout)
    return [name for bit, name in NAMES.items() if found and found[0][1] & bit]


def wait_for(sock, mask):
    """Until one of these is true; POLLHUP and POLLERR always count."""
    assert events(sock, mask, WAIT_MS), "nothing happens"


def number(sock, request):
    return struct.unpack("i", fcntl.ioctl(sock, request, bytes(4)))[0]


def get(sock, level, option):
    return outcome(sock.getsockopt, level, option)


def error_of(sock):
    return errno.errorcode.get(get(sock, socket.SOL_SOCKET, socket.SO_ERROR), 0)


def vectors(count):
    """So many buffers of a byte each."""
    buffer = ctypes.create_string_buffer(b"v", 1)
    return (ctypes.c_uint64 * (2 * count))(*[ctypes.addressof(buffer), 1] * count), buffer


class Step:
    """The sides meet: nothing that follows on one of them is before what the other has done."""

    def __init__(self):
        if SIDE == "server":
            with socket.socket(socket.AF_UNIX) as meeting:
                meeting.bind(MEETING)
                meeting.listen()
                say("listening", [])
                self.peer = meeting.accept()[0]
        else:
            self.peer = socket.socket(socket.AF_UNIX)
            self.peer.connect(MEETING)

    def __call__(self):
        self.peer.send(b"s")
        assert self.peer.recv(1) == b"s", "the other side has failed"


def say(name, facts):
    print(json.dumps([name, facts]), flush=True)


# --- cases of a connection: @s of this side; a function yields its facts, if it sees any ---

def aborted_server(s):
    step()
    wait_for(s, select.POLLIN)
    wait_for(s, RDHUP)
    yield "ERR" in events(s)
    with select.epoll() as poll:
        poll.register(s, select.EPOLLIN)
        yield bool(poll.poll(0)[0][1] & select.EPOLLERR)
    yield outcome(s.recv, 9), outcome(s.recv, 9), outcome(s.send, b"x"), error_of(s)


def aborted_client(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
    step()


def error_by_option_server(s):
    """SO_ERROR takes the error; recv() finds the end of the stream."""
    step()
    wait_for(s, select.POLLIN)
    yield error_of(s), error_of(s), outcome(s.recv, 9)


error_by_option_client = aborted_client


def abort_behind_data_server(s):
    step()
    wait_for(s, RDHUP)
    yield outcome(s.send, b"x")


def abort_behind_data_client(s):
    s.send(b"data")
    aborted_client(s)


def fill(s):
    """Until the other side would have to read."""
    s.setblocking(False)
    while isinstance(outcome(s.send, bytes(8192)), int):
        pass
    s.setblocking(True)


def reset_when_full_server(s):
    """A write that waits for the other side to read ends when that is gone."""
    step()
    fill(s)
    step()
    result = 0
    while isinstance(result, int):
        result = outcome(s.send, bytes(1000))
    yield result, outcome(s.send, b"x")
    step()


def reset_when_full_client(s):
    fill(s)
    step()
    step()
    aborted_client(s)


def closed_unread_server(s):
    wait_for(s, select.POLLIN)
    s.close()
    step()


def closed_unread_client(s):
    s.send(b"nobody reads this")
    step()
    wait_for(s, select.POLLIN)
    yield outcome(s.recv, 9), outcome(s.recv, 9)


def closed_server(s):
    s.close()
    step()


def closed_client(s):
    """The first write after the peer's close is lost; the next one fails."""
    step()
    wait_for(s, RDHUP)
    yield events(s), outcome(s.recv, 9), outcome(s.send, b"lost")
    wait_for(s, select.POLLHUP)
    signals = []
    signal.signal(signal.SIGPIPE, lambda *_: signals.append("SIGPIPE"))
    yield outcome(s.send, b"x"), signals
    yield outcome(s.send, b"x", socket.MSG_NOSIGNAL), len(signals), outcome(s.recv, 9)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def half_closed_server(s):
    wait_for(s, RDHUP)
    yield events(s), outcome(s.recv, 9), outcome(s.recv, 9), outcome(s.send, b"still")
    s.shutdown(socket.SHUT_WR)
    step()
    yield events(s)


def half_closed_client(s):
    s.send(b"end")
    s.shutdown(socket.SHUT_WR)
    yield outcome(s.send, b"x"), outcome(s.recv, 9), outcome(s.recv, 9)
    step()
    yield events(s), outcome(s.shutdown, socket.SHUT_WR)


def shut_for_reading_server(s):
    wait_for(s, select.POLLIN)
    yield outcome(s.recv, 9)
    step()


def shut_for_reading_client(s):
    s.shutdown(socket.SHUT_RD)
    yield events(s), outcome(s.recv, 9), outcome(s.send, b"goes on")
    step()


def shut_server(s):
    wait_for(s, RDHUP)
    yield events(s), outcome(s.recv, 9)
    step()


def shut_client(s):
    s.shutdown(socket.SHUT_RDWR)
    yield "IN" in events(s), outcome(s.recv, 9), outcome(s.send, b"x")
    step()


def counts_server(s):
    s.sendall(bytes(5000))
    step()
    while number(s, SIOCOUTQ):
        pass
    yield number(s, SIOCOUTQ)


def counts_client(s):
    step()
    yield len(s.recv(5000, socket.MSG_PEEK | socket.MSG_WAITALL)), number(s, FIONREAD)
    yield len(s.recv(1000)), number(s, FIONREAD), len(s.recv(9000)), number(s, FIONREAD)


def flags_server(s):
    s.send(b"abcdef")
    step()
    s.send(b"gh")
    step()


def flags_client(s):
    wait_for(s, select.POLLIN)
    yield outcome(s.recv, 3, socket.MSG_PEEK), outcome(s.recv, 4)
    step()
    yield outcome(s.recv, 4, socket.MSG_WAITALL), outcome(s.recv, 4, socket.MSG_DONTWAIT)
    step()


def time_outs_server(s):
    step()


def time_outs_client(s):
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        s.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 0, 20000))
    yield outcome(s.recv, 9)
    result = 0
    while isinstance(result, int):
        result = outcome(s.send, bytes(1 << 20))
    yield result, struct.unpack("ll", s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16))
    step()


def bad_pointers_server(s):
    s.send(b"abc")
    step()
    step()
    yield outcome(s.recv, 9)


def bad_pointers_client(s):
    step()
    wait_for(s, select.POLLIN)
    bad = ctypes.c_void_p(8)
    yield raw("recv", s.fileno(), bad, 3, 0), raw("send", s.fileno(), bad, 3, 0)
    yield raw("read", s.fileno(), bad, 3), raw("write", s.fileno(), bad, 3)
    yield raw("readv", s.fileno(), bad, 2), raw("writev", s.fileno(), bad, 2)
    yield raw("recvmsg", s.fileno(), bad, 0), raw("sendmsg", s.fileno(), bad, 0)
    yield raw("getsockname", s.fileno(), bad, bad), raw("getpeername", s.fileno(), bad, bad)
    yield raw("getsockopt", s.fileno(), 1, 4, bad, bad), raw("setsockopt", s.fileno(), 1, 9, bad, 4)
    yield outcome(s.recv, 9), outcome(s.send, b"whole")
    step()


def vectors_server(s):
    yield len(s.recv(2000, socket.MSG_WAITALL))
    step()


def vectors_client(s):
    for count in (1024, 1025, 0):
        many, _ = vectors(max(count, 1))
        yield count, raw("writev", s.fileno(), many, count)
    yield raw("writev", s.fileno(), (ctypes.c_uint64 * 2)(8, 1 << 63), 1)
    s.shutdown(socket.SHUT_WR)
    step()


def nothing_server(s):
    yield outcome(s.recv, 9), outcome(s.recv, 0)
    step()


def nothing_client(s):
    yield outcome(s.send, b""), raw("write", s.fileno(), None, 0), outcome(s.sendmsg, [])
    yield outcome(s.send, b"one")
    step()


def addresses_server(s):
    wait_for(s, select.POLLIN)
    yield s.recvfrom(2)[0].decode(), s.recvmsg(3, 100)[1:3]
    step()


def addresses_client(s):
    """A stream's peer is known: an address is ignored."""
    yield outcome(s.sendto, b"to", (ADDRESS, PORT)), outcome(s.sendto, b"any", ("10.9.9.9", 1))
    yield outcome(s.connect, (ADDRESS, PORT)), outcome(s.listen), outcome(s.accept)
    step()


def files_server(s):
    yield len(s.recv(300000, socket.MSG_WAITALL))
    reader, writer = os.pipe()
    moved = 0
    while n := os.splice(s.fileno(), writer, 1 << 16):
        moved += n
        while n:
            n -= len(os.read(reader, n))
    yield moved
    step()


def files_client(s):
    with open(MEETING + ".file", "w+b") as file:
        file.write(bytes(300000))
        file.seek(0)
        yield s.sendfile(file)
    reader, writer = os.pipe()
    for _ in range(2):
        os.write(writer, bytes(50000))
        left = 50000
        while left:
            left -= os.splice(reader, s.fileno(), left)
    s.shutdown(socket.SHUT_WR)
    step()


OPTIONS = [(socket.SOL_SOCKET, "SO_KEEPALIVE", 1), (socket.SOL_SOCKET, "SO_REUSEADDR", 1),
           (socket.SOL_SOCKET, "SO_OOBINLINE", 1), (socket.SOL_SOCKET, "SO_RCVLOWAT", 1),
           (socket.IPPROTO_TCP, "TCP_NODELAY", 1), (socket.IPPROTO_TCP, "TCP_CORK", 1),
           (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 77), (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 7),
           (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3), (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 4321),
           (socket.IPPROTO_TCP, "TCP_SYNCNT", 5), (socket.IPPROTO_TCP, "TCP_LINGER2", 9),
           (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 0), (socket.IPPROTO_TCP, "TCP_KEEPCNT", 1000),
           (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 40000), (socket.IPPROTO_TCP, "TCP_NOTSENT_LOWAT", 4096),
           (socket.IPPROTO_TCP, "TCP_CORK", 0), (socket.SOL_SOCKET, "SO_SNDBUF", 100000),
           (socket.SOL_SOCKET, "SO_RCVBUF", 70000), (socket.SOL_SOCKET, "SO_SNDBUF", 1), (socket.IPPROTO_IP, "IP_TOS", 16), (socket.IPPROTO_IP, "IP_TTL", 33)]
FIXED = ["SO_TYPE", "SO_PROTOCOL", "SO_DOMAIN", "SO_ERROR", "SO_ACCEPTCONN"]


def options_server(s):
    yield [get(s, socket.SOL_SOCKET, getattr(socket, name)) for name in FIXED]
    step()


def options_client(s):
    for level, name, value in OPTIONS:
        option = getattr(socket, name)
        yield name, outcome(s.setsockopt, level, option, value), get(s, level, option)
    yield outcome(s.setsockopt, socket.IPPROTO_TCP, 9999, 1), get(s, socket.IPPROTO_TCP, 9999)
    linger = struct.pack("ii", 1, 5)
    yield outcome(s.setsockopt, socket.SOL_SOCKET, socket.SO_LINGER, linger)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == linger
    yield s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    step()


def edges_server(s):
    step()
    s.send(b"a")
    step()
    s.send(b"b")
    step()
    s.shutdown(socket.SHUT_WR)
    step()


def edges_client(s):
    poll = select.epoll()
    poll.register(s, EVENTS | select.EPOLLET)

    def found(mask):
        """The events until those of @mask have come, once each."""
        seen = 0
        while not seen & mask:
            got = poll.poll(WAIT_MS / 1000)
            assert got, "nothing happens"
            seen |= got[0][1]
        return [name for bit, name in NAMES.items() if seen & mask & bit], poll.poll(0)

    yield found(select.POLLOUT)
    for mask in (select.POLLIN, select.POLLIN, RDHUP):
        step()
        yield found(mask)
    step()
    yield outcome(s.recv, 9), outcome(s.recv, 9)


# --- cases without a connection: by one side alone ---

def alone():
    return socket.socket(socket.AF_INET)


def addresses_of(one):
    return one.getsockname()[0] == ADDRESS, one.getsockname()[1] > 0


def unconnected():
    s = alone()
    yield events(s), outcome(s.getpeername), outcome(s.recv, 9), outcome(s.send, b"x")
    yield outcome(s.shutdown, socket.SHUT_WR), outcome(s.accept), s.getsockname()


def broken_pipes(s):
    """What comes of writes to a socket that has no peer."""
    signals = []
    before = signal.signal(signal.SIGPIPE, lambda *_: signals.append("SIGPIPE"))
    found = [outcome(s.send, b"x"), outcome(s.sendmsg, [b"x"]), outcome(s.send, b"x", socket.MSG_NOSIGNAL),
             raw("write", s.fileno(), b"x", 1), raw("writev", s.fileno(), vectors(1)[0], 1)]
    signal.signal(signal.SIGPIPE, before)
    return found, len(signals)


def bound():
    s, t = alone(), alone()
    s.bind((ADDRESS, 0))
    yield addresses_of(s), events(s), outcome(s.getpeername)
    yield outcome(s.bind, (ADDRESS, 0)), outcome(s.accept), outcome(t.bind, s.getsockname())
    yield outcome(s.recvmsg, 9), *broken_pipes(s), outcome(s.shutdown, socket.SHUT_WR)
    for one in (s, t):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.listen()
    yield outcome(t.bind, s.getsockname()), outcome(t.bind, ("10.99.0.1", 0)), events(s)
    yield get(s, socket.SOL_SOCKET, socket.SO_ACCEPTCONN), outcome(s.connect, (ADDRESS, PORT))


def listening():
    s = alone()
    s.bind((ADDRESS, 0))
    s.listen()
    s.setblocking(False)
    yield outcome(s.accept), outcome(s.getpeername), outcome(s.listen)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
    s.setblocking(True)
    yield raw("accept", s.fileno(), None, None)
    buffer = ctypes.create_string_buffer(9)
    yield outcome(s.recv, 9), raw("read", s.fileno(), buffer, 9), outcome(s.recv, 9, socket.MSG_PEEK)
    yield outcome(s.recvmsg, 9), *broken_pipes(s)
    client = socket.create_connection(s.getsockname())
    yield outcome(client.send, b"accepted"), s.accept()[0].recv(99).decode()


def bound_again():
    """The port is free again once its listener is closed."""
    s, t = alone(), alone()
    s.bind((ADDRESS, 0))
    s.listen()
    where = s.getsockname()
    s.close()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    yield outcome(t.bind, where), outcome(t.listen)


def refused():
    s = alone()
    yield outcome(s.connect, NOBODY), error_of(s), outcome(s.getpeername), outcome(s.send, b"x")
    t = alone()
    t.setblocking(False)
    yield outcome(t.connect, NOBODY) in ("EINPROGRESS", "ECONNREFUSED")
    wait_for(t, select.POLLOUT)
    yield error_of(t), error_of(t)


def refused_twice():
    """A socket that could not be connected can be connected to another peer."""
    s = alone()
    yield outcome(s.connect, NOBODY), outcome(s.connect, NOBODY)


def refused_later():
    """The same with a call that does not wait, whose error is read or not."""
    listener = alone()
    listener.bind((ADDRESS, 0))
    listener.listen()
    for asks in (True, False):
        s = alone()
        s.setblocking(False)
        outcome(s.connect, NOBODY)
        wait_for(s, select.POLLOUT)
        if asks:
            yield error_of(s)
        yield outcome(s.connect, NOBODY) in ("ECONNREFUSED", "ECONNABORTED")
        s.setblocking(True)
        yield outcome(s.connect, listener.getsockname()), outcome(s.send, b"late")
        yield listener.accept()[0].recv(99).decode()


def unreachable():
    for address in ("255.255.255.255", "224.0.0.1"):
        yield outcome(alone().connect, (address, PORT))
    s = alone()
    yield raw("connect", s.fileno(), ctypes.c_void_p(8), 16), raw("connect", s.fileno(), b"\2\0", 2)
    yield raw("bind", s.fileno(), ctypes.c_void_p(8), 16), raw("bind", s.fileno(), b"\2\0", 2)


ALONE = [unconnected, bound, listening, bound_again, refused, refused_twice, refused_later, unreachable]
CONNECTED = ["aborted", "error_by_option", "abort_behind_data", "reset_when_full", "closed_unread", "closed", "half_closed",
             "shut_for_reading", "shut", "counts", "flags", "time_outs", "bad_pointers", "vectors", "nothing",
             "addresses", "files", "options", "edges"]


def connection(listener):
    if listener:
        return listener.accept()[0]
    return socket.create_connection((ADDRESS, PORT))


def main():
    listener = None
    if SIDE == "server":
        listener = alone()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, PORT))
        listener.listen()
    signal.alarm(WAIT_MS // 1000)  # whatever happens, this ends
    global step
    step = Step()
    for name in CONNECTED:
        with connection(listener) as s:
            say(name, list(globals()[f"{name}_{SIDE}"](s) or ()))
            step()
    if SIDE == "server":
        for case in ALONE:
            say(case.__name__, list(case()))


main()
