# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A server of a vendor class, and a client of it, by libibumad.

    umad_side.py serve		prints "ready", then the P_Key index of each request, which it answers
    umad_side.py ask LID INDEX	sends a request by this P_Key index; prints its outcome
"""
import ctypes
import errno
import os
import struct
import sys

VENDOR, GET, GET_RESP = 0x0a, 0x01, 0x81
GSI_QKEY = 0x80010000
MAD_BYTES = 256
METHOD_AT = 3

umad = ctypes.CDLL("libibumad.so.3", use_errno=True)
umad.umad_get_mad.restype = ctypes.c_void_p
umad.umad_get_mad_addr.restype = ctypes.c_void_p
buf = ctypes.create_string_buffer(umad.umad_size() + MAD_BYTES)
fd = umad.umad_open_port(None, 0)


def receive(agent):
    """Return: 0; or the error with which the request came back."""
    length = ctypes.c_int(MAD_BYTES)
    assert umad.umad_recv(fd, buf, ctypes.byref(length), -1) == agent
    return umad.umad_status(buf)


def serve():
    agent = umad.umad_register(fd, VENDOR, 1, 0, struct.pack("=4I", 1 << GET, 0, 0, 0))
    assert agent >= 0
    print("ready", flush=True)
    while receive(agent) == 0:
        print(umad.umad_get_pkey(buf), flush=True)
        # the address of the request is that of the answer, whose Q_Key a program has to set
        ctypes.memmove(umad.umad_get_mad_addr(buf) + 4, struct.pack(">I", GSI_QKEY), 4)
        ctypes.memset(umad.umad_get_mad(buf) + METHOD_AT, GET_RESP, 1)
        assert umad.umad_send(fd, agent, buf, MAD_BYTES, 0, 0) == 0


def ask(lid, index):
    agent = umad.umad_register(fd, VENDOR, 1, 0, None)
    umad.umad_set_addr(buf, lid, 1, 0, GSI_QKEY)
    umad.umad_set_pkey(buf, index)
    request = struct.pack(">BBBBHHQHHI", 1, VENDOR, 1, GET, 0, 0, 0x5a, 0, 0, 0)
    ctypes.memmove(umad.umad_get_mad(buf), request.ljust(MAD_BYTES, b"\0"), MAD_BYTES)
    if umad.umad_send(fd, agent, buf, MAD_BYTES, 200, 0) < 0:
        print("refused", errno.errorcode[ctypes.get_errno()])
        return
    status = receive(agent)
    print(errno.errorcode[status] if status else f"answered by {umad.umad_get_pkey(buf)}")


if __name__ == "__main__":
    assert fd >= 0, os.strerror(ctypes.get_errno())
    serve() if sys.argv[1] == "serve" else ask(int(sys.argv[2], 0), int(sys.argv[3]))
