# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Files whose server can fall silent: a FUSE server in Python, in mount and user namespaces of its own.
Whoever asks such a file anything, by fstat(2) or close(2) too, then waits as long as the server lives."""
import ctypes
import mmap
import os
import signal
import socket
import stat
import struct

LOOKUP, GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT, SETLK = (
    1, 3, 4, 14, 15, 16, 18, 20, 25, 26, 32)  # <linux/fuse.h>
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36  # have no answer
FLOCK_LOCKS, DIRECT_IO = 1 << 10, 1
CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_PRIVATE = 0x20000, 0x10000000, 0x4000, 1 << 18
ENOENT, ENOSYS = 2, 38
SIZES = {b"disk": 1 << 20, b"kept": 0}
EACH = 20  # descriptors of each
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *args):
    if function(*args):
        raise OSError(ctypes.get_errno(), function.__name__)


def attributes(node):
    """struct fuse_attr"""
    size = 0 if node == 1 else list(SIZES.values())[node - 2]
    mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o600
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, os.geteuid(), os.getegid(), 0, 4096, 0)


def answer_to(opcode, node, body):
    """Return: the error, and what follows it. No attribute may be kept by the kernel."""
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2HI28x", 7, 31, 1 << 16, FLOCK_LOCKS, 16, 12, 1 << 16, 1, 16, 0, 0)
    if opcode == LOOKUP:
        name = body.rstrip(b"\0")
        if name not in SIZES:
            return ENOENT, b""
        child = 2 + list(SIZES).index(name)
        return 0, struct.pack("<4Q2I", child, 0, 0, 0, 0, 0) + attributes(child)
    if opcode in (GETATTR, SETATTR):
        return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if opcode == OPEN:
        return 0, struct.pack("<Q2I", 0, DIRECT_IO, 0)
    if opcode == READ:
        offset, size = struct.unpack_from("<QI", body, 8)
        return 0, bytes(max(0, min(size, list(SIZES.values())[node - 2] - offset)))
    if opcode == WRITE:
        return 0, struct.pack("<2I", struct.unpack_from("<I", body, 16)[0], 0)
    return (0 if opcode in (RELEASE, FSYNC, FLUSH, SETLK) else ENOSYS), b""


def serve(fuse, silent):
    """@silent: shared memory. 0: everything is answered; 1: nothing is, from the next request on, of which 2 says
    that there was one"""
    while True:
        request = os.read(fuse, 1 << 18)
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if silent[0]:
            silent[0] = 2
            continue
        error, answer = answer_to(opcode, node, request[40:])
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)


def mount_and_serve(sock, where, silent):
    uid, gid = os.geteuid(), os.getegid()
    call(libc.unshare, CLONE_NEWNS | (CLONE_NEWUSER if uid else 0))
    if uid:
        for name, text in ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1"):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    call(libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    call(libc.mount, b"silent", os.fsencode(where), b"fuse", 0,
         f"fd={fuse},rootmode=40000,user_id={uid},group_id={gid}".encode())
    if not os.fork():
        serve(fuse, silent)
    os.close(fuse)  # the server alone has it: its end ends all that waits
    files = {name: [] for name in SIZES}
    for name, some in files.items():
        some += [os.open(os.path.join(os.fsencode(where), name), os.O_RDWR) for _ in range(EACH)]
    sock.send(b"")
    while True:
        request, fds, _, _ = socket.recv_fds(sock, 4096, 1)
        if not fds:
            break
        names, message = request.split(b"\0", 1)
        with socket.socket(fileno=fds[0]) as to:
            socket.send_fds(to, [message], [files[name].pop() for name in names.split()])
        sock.send(b"")


class SilentFiles:
    """A file system that has the files "disk" (1 MiB) and "kept" (empty), and answers until be_silent(). All
    its descriptors are in a process of its own: whoever has one waits when it closes it."""

    def __init__(self, where):
        self.silent = mmap.mmap(-1, 1)
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid:
            theirs.close()
            assert not (error := self.sock.recv(200)), error
            return
        try:
            os.setpgid(0, 0)
            self.sock.close()
            mount_and_serve(theirs, where, self.silent)
        except OSError as error:
            theirs.send(str(error).encode())
        finally:
            os._exit(0)

    def send(self, to, message, names):
        """Send @message to the socket @to, with a descriptor of each of these files."""
        socket.send_fds(self.sock, [names.encode() + b"\0" + message], [to.fileno()])
        self.sock.recv(1)

    def be_silent(self):
        self.silent[0] = 1

    def is_asked(self):
        """Does somebody wait for an answer, since be_silent()?"""
        return self.silent[0] == 2

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
