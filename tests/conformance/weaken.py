#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Let modules of a newer release of pyverbs load on softib's libraries: weaken.py FILE.so...

The tests of another release (run --tests) need its pyverbs, which refers to functions that the
libraries of Debian 12, and so softib's, do not have. In each file, in place:

 - undefined symbols and the versions that they need become weak: an absent function is NULL, and
   a case that calls it crashes, while all others run;
 - symbols are bound when they are first called, not when the module is loaded;
 - private symbols get the version that libibverbs 44 has of them;
 - the path to the libraries that the module was built with is removed.
"""
import struct
import sys

PRIVATE, PRIVATE_HERE = b"IBVERBS_PRIVATE_", b"IBVERBS_PRIVATE_34\0"
SHT_DYNAMIC, SHT_DYNSYM, SHT_VERNEED = 6, 11, 0x6FFFFFFE
STB_GLOBAL, STB_WEAK, VER_FLG_WEAK = 1, 2, 2
DT_RPATH, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 15, 24, 29, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW = 8, 1
DT_IGNORED = 0x6FFFFDF8  # DT_CHECKSUM, which ld.so does not read


def elf_hash(name):
    """That of the System V ABI, by which ld.so finds a version."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def sections(elf):
    """(type, offset, size, link, info) of each"""
    at, = struct.unpack_from("<Q", elf, 0x28)
    bytes_each, number, _ = struct.unpack_from("<HHH", elf, 0x3A)
    for i in range(number):
        _, kind, _, _, offset, size, link, info = struct.unpack_from("<IIQQQQII", elf, at + i * bytes_each)
        yield kind, offset, size, link, info


def weaken_symbols(elf, offset, size):
    for at in range(offset, offset + size, 24):
        section, = struct.unpack_from("<H", elf, at + 6)
        if section == 0 and elf[at + 4] >> 4 == STB_GLOBAL:
            elf[at + 4] = STB_WEAK << 4 | elf[at + 4] & 15


def weaken_versions(elf, offset, number, strings):
    for _ in range(number):
        _, count, _, needed, after = struct.unpack_from("<HHIII", elf, offset)
        at = offset + needed
        for _ in range(count):
            _, flags, _, name, next_needed = struct.unpack_from("<IHHII", elf, at)
            struct.pack_into("<H", elf, at + 4, flags | VER_FLG_WEAK)
            name += strings
            if elf[name:name + len(PRIVATE)] == PRIVATE:
                elf[name:name + len(PRIVATE_HERE)] = PRIVATE_HERE
                struct.pack_into("<I", elf, at, elf_hash(PRIVATE_HERE[:-1]))
            at += next_needed
        offset += after


def bind_late(elf, offset, size):
    for at in range(offset, offset + size, 16):
        tag, value = struct.unpack_from("<QQ", elf, at)
        if tag in (DT_BIND_NOW, DT_RPATH, DT_RUNPATH):
            tag = DT_IGNORED
        elif tag == DT_FLAGS:
            value &= ~DF_BIND_NOW
        elif tag == DT_FLAGS_1:
            value &= ~DF_1_NOW
        struct.pack_into("<QQ", elf, at, tag, value)


def weaken(path):
    with open(path, "rb") as file:
        elf = bytearray(file.read())
    table = list(sections(elf))
    for kind, offset, size, link, info in table:
        if kind == SHT_DYNSYM:
            weaken_symbols(elf, offset, size)
        elif kind == SHT_VERNEED:
            weaken_versions(elf, offset, info, table[link][1])
        elif kind == SHT_DYNAMIC:
            bind_late(elf, offset, size)
    with open(path, "wb") as file:
        file.write(elf)


for each in sys.argv[1:]:
    weaken(each)
