# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Join or leave a multicast group, as a program on a node: what IPoIB does,
and no tool of infiniband-diags.

    softib exec n1 -- python3 sa_join.py join|leave SM_LID PORT_GUID

Prints the group's MLID.
"""
import ctypes
import struct
import sys

SET, DELETE, MCMEMBER_RECORD, SUBN_ADM = 0x02, 0x15, 0x38, 0x03
GSI_QKEY = 0x80010000
MGID = bytes.fromhex("ff12401bffff00000000000000000099")
# MGID, PortGID, Q_Key, TClass, P_Key, SL, FlowLabel, JoinState: what creates a group (15.2.5.17)
COMPONENTS = sum(1 << n for n in (0, 1, 2, 6, 7, 12, 13, 16))


def request(method, guid):
    header = struct.pack(">BBBBHHQHHI", 1, SUBN_ADM, 2, method, 0, 0, 0x5a, MCMEMBER_RECORD, 0, 0)
    sa = struct.pack(">12xQHHQ", 0, 0, 0, COMPONENTS)
    gid = bytes.fromhex("fe80000000000000") + struct.pack(">Q", guid)
    record = MGID + gid + struct.pack(">IHBBHBBIB3x", 0x0b1b, 0, 0, 0, 0xffff, 0, 0, 0, 1)
    return (header + sa + record).ljust(256, b"\0")


def main(what, sm_lid, guid):
    umad = ctypes.CDLL("libibumad.so.3")
    umad.umad_get_mad.restype = ctypes.c_void_p
    fd = umad.umad_open_port(None, 0)
    agent = umad.umad_register(fd, SUBN_ADM, 2, 0, None)
    assert fd >= 0 and agent >= 0, (fd, agent)
    buf = ctypes.create_string_buffer(umad.umad_size() + 256)
    umad.umad_set_addr(buf, sm_lid, 1, 0, GSI_QKEY)
    mad = umad.umad_get_mad(buf)
    ctypes.memmove(mad, request(DELETE if what == "leave" else SET, guid), 256)
    assert umad.umad_send(fd, agent, buf, 256, 5000, 1) == 0
    length = ctypes.c_int(256)
    assert umad.umad_recv(fd, buf, ctypes.byref(length), 20000) == agent
    answer = ctypes.string_at(mad, 256)
    status, = struct.unpack_from(">H", answer, 4)
    assert umad.umad_status(buf) == 0 and status == 0, f"status 0x{status:04x}"
    mlid, = struct.unpack_from(">H", answer, 56 + 36)
    print(f"0x{mlid:04x}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3], 16))
