# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A packet's CRCs, written a second time: what softib puts on the wire is
compared with them."""
import struct
import zlib


def icrc(packet):
    """7.8.1: by zlib, over what no switch changes. @packet: with both CRCs."""
    body = bytearray(packet[:-6])
    if body[1] & 3 == 3:
        body[0:8] = b"\xff" * 8
        body[8] |= 0x0f
        body[9:12] = b"\xff" * 3
        body[15] = 0xff
        body[52] = 0xff
    else:
        body[0] |= 0xf0
        body[12] = 0xff
    return struct.pack("<I", zlib.crc32(body))


def crc16_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0xd008 if n & 1 else 0)
        table.append(n)
    return table


CRC16 = crc16_table()


def vcrc(data):
    """7.8.2, a byte at a time. @data: all that stands before it."""
    crc = 0xffff
    for byte in data:
        crc = crc >> 8 ^ CRC16[(crc ^ byte) & 0xff]
    return struct.pack("<H", crc ^ 0xffff)
