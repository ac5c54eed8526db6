# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_rpma.py: one end of a connection of librpma, which keeps persistent memory of
another host as its consumer writes it.

    rpma_side.py server|client ADDRESS PORT

The server offers 1 MiB, and tells where in the connection's private data. The client writes to it, flushes,
writes eight bytes at once (an atomic write), reads all of it back and compares; then it sends the sum of it, and
the server compares that with what its memory has."""
import ctypes
import mmap
import os
import select
import sys
import zlib

LENGTH = 1 << 20
MESSAGE = 8
READ_SRC, READ_DST, WRITE_SRC, WRITE_DST, FLUSH_VISIBILITY, SEND, RECV = (1 << bit for bit in (0, 1, 2, 3, 4, 6, 7))
ALWAYS, VISIBILITY = 3, 1  # RPMA_F_COMPLETION_ALWAYS, RPMA_FLUSH_TYPE_VISIBILITY
LOCAL, REMOTE = 0, 1  # enum rpma_util_ibv_context_type
ESTABLISHED, CLOSED = 0, 1
Pointer = ctypes.c_void_p
library = ctypes.CDLL("librpma.so.0")


class PrivateData(ctypes.Structure):
    _fields_ = [("ptr", Pointer), ("len", ctypes.c_uint8)]


def call(name, *args):
    ret = getattr(library, "rpma_" + name)(*args)
    assert ret == 0, (name, ctypes.c_char_p(library.rpma_err_2str(ret)).value)


library.rpma_err_2str.restype = Pointer


def made(name, *args):
    """What a function that makes an object stores behind its last argument"""
    out = Pointer()
    call(name, *args, ctypes.byref(out))
    return out


def size(n):
    return ctypes.c_size_t(n)


def wait_for(connection, kind):
    event = ctypes.c_int()
    call("conn_next_event", connection, ctypes.byref(event))
    assert event.value == kind, event.value


def completed(connection, context):
    """Sleep until the operation has completed."""
    wc = (ctypes.c_uint64 * 8)()  # struct ibv_wc
    cq = made("conn_get_cq", connection)
    call("cq_wait", cq)
    call("cq_get_wc", cq, 1, wc, None)
    assert (wc[0], wc[1] & 0xffffffff) == (context, 0), list(wc)


class End:
    def __init__(self, address, kind):
        self.peer = made("peer_new", made("utils_get_ibv_context", address, kind))
        self.memory = mmap.mmap(-1, LENGTH)
        self.message = mmap.mmap(-1, mmap.PAGESIZE)

    def register(self, memory, usage):
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return made("mr_reg", self.peer, Pointer(start), size(len(memory)), usage)


def serve(address, port):
    end = End(address, LOCAL)
    memory = end.register(end.memory, READ_SRC | WRITE_DST | FLUSH_VISIBILITY)
    message = end.register(end.message, RECV)
    listener = made("ep_listen", end.peer, address, port)
    print("listening", flush=True)
    fd = ctypes.c_int()
    call("ep_get_fd", listener, ctypes.byref(fd))
    select.select([fd.value], [], [])
    request = made("ep_next_conn_req", listener, None)
    call("conn_req_recv", request, message, size(0), size(MESSAGE), Pointer(7))
    length = ctypes.c_size_t()
    call("mr_get_descriptor_size", memory, ctypes.byref(length))
    where = ctypes.create_string_buffer(length.value)
    call("mr_get_descriptor", memory, where)
    data = PrivateData(ctypes.addressof(where), length.value)
    connection = made("conn_req_connect", ctypes.byref(request), ctypes.byref(data))
    wait_for(connection, ESTABLISHED)
    completed(connection, 7)
    assert int.from_bytes(end.message[:MESSAGE], "little") == zlib.crc32(end.memory)
    wait_for(connection, CLOSED)
    call("conn_delete", ctypes.byref(connection))


def remote_memory(connection):
    data = PrivateData()
    call("conn_get_private_data", connection, ctypes.byref(data))
    remote = made("mr_remote_from_descriptor", Pointer(data.ptr), size(data.len))
    length = ctypes.c_size_t()
    call("mr_remote_get_size", remote, ctypes.byref(length))
    assert length.value == LENGTH
    return remote


def ask(address, port):
    end = End(address, REMOTE)
    source = end.register(end.memory, WRITE_SRC | READ_DST)
    message = end.register(end.message, SEND)
    connection = made("conn_req_connect", ctypes.byref(made("conn_req_new", end.peer, address, port, None)), None)
    wait_for(connection, ESTABLISHED)
    remote = remote_memory(connection)
    wanted = bytearray(os.urandom(LENGTH))
    end.memory[:] = bytes(wanted)
    wanted[64:72] = b"at once!"
    at_all = size(0), remote, size(0), size(LENGTH)
    call("write", connection, remote, size(0), source, size(0), size(LENGTH), ALWAYS, Pointer(1))
    completed(connection, 1)
    call("flush", connection, remote, size(0), size(LENGTH), VISIBILITY, ALWAYS, Pointer(2))
    completed(connection, 2)
    call("atomic_write", connection, remote, size(64), b"at once!", ALWAYS, Pointer(3))
    completed(connection, 3)
    end.memory[:] = bytes(LENGTH)
    call("read", connection, source, *at_all, ALWAYS, Pointer(4))
    completed(connection, 4)
    assert end.memory[:] == bytes(wanted)
    end.message[:MESSAGE] = zlib.crc32(wanted).to_bytes(MESSAGE, "little")
    call("send", connection, message, size(0), size(MESSAGE), ALWAYS, Pointer(5))
    completed(connection, 5)
    call("conn_disconnect", connection)
    wait_for(connection, CLOSED)
    call("conn_delete", ctypes.byref(connection))
    print("equal")


if __name__ == "__main__":
    {"server": serve, "client": ask}[sys.argv[1]](sys.argv[2].encode(), sys.argv[3].encode())
