# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibumad.so.3 against the distribution's: symbols, versions, names, and
what a program sees of it where there is no fabric."""
import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("SOFTIB_BUILD", "build"))
OURS = BUILD / "lib" / "libibumad" / "libibumad.so.3"
THEIRS = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "libibumad.so.3"


def exported(path):
    """The set of (name, version) that the library defines."""
    out = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True)
    lines = (line.split() for line in out.stdout.splitlines() if "*UND*" not in line)
    return {(f[-1], f[-2]) for f in lines if len(f) > 5 and f[-2].startswith("IBUMAD")}


def soname(path):
    out = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True)
    return re.search(r"SONAME\s+(\S+)", out.stdout).group(1)


def test_symbols_and_versions():
    ours, theirs = exported(OURS), exported(THEIRS)
    assert len(theirs) == 42  # 39 functions and 3 version nodes
    assert ours == theirs


def test_soname():
    assert soname(OURS) == soname(THEIRS) == "libibumad.so.3"


def test_nothing_else_is_exported():
    out = subprocess.run(["nm", "-D", "--defined-only", OURS], check=True,
                         capture_output=True, text=True)
    names = {line.split()[-1] for line in out.stdout.splitlines()}
    assert all(re.match(r"umad_|IBUMAD_", n) for n in names), names


@pytest.fixture(scope="module")
def libraries():
    return ctypes.CDLL(str(OURS)), ctypes.CDLL(str(THEIRS))


def both(libraries, function, *args):
    results = []
    for library in libraries:
        f = getattr(library, function)
        f.restype = ctypes.c_char_p
        results.append(f(*args))
    return results


def be16(value):
    return ctypes.c_uint16(value >> 8 | (value & 0xff) << 8)


@pytest.mark.parametrize("function", ["umad_common_mad_status_str", "umad_sa_mad_status_str"])
def test_status_names(libraries, function):
    for status in range(0x10000):
        ours, theirs = both(libraries, function, be16(status))
        assert ours == theirs, hex(status)


def test_class_names(libraries):
    for mgmt_class in range(256):
        ours, theirs = both(libraries, "umad_class_str", ctypes.c_uint8(mgmt_class))
        assert ours == theirs, hex(mgmt_class)


def test_method_names(libraries):
    for mgmt_class in (0x01, 0x81, 0x03, 0x04, 0x07, 0x32):
        for method in range(256):
            ours, theirs = both(libraries, "umad_method_str", ctypes.c_uint8(mgmt_class),
                                ctypes.c_uint8(method))
            assert ours == theirs, (hex(mgmt_class), hex(method))


def test_attribute_names(libraries):
    for mgmt_class in (0x01, 0x81, 0x03, 0x04, 0x07, 0x32):
        for attribute in range(0x200):
            ours, theirs = both(libraries, "umad_attribute_str", ctypes.c_uint8(mgmt_class),
                                be16(attribute))
            assert ours == theirs, (hex(mgmt_class), hex(attribute))


def test_setters_leave_the_same_bytes(libraries):
    images = []
    for library in libraries:
        umad = ctypes.create_string_buffer(64)
        grh = ctypes.create_string_buffer(bytes(range(44)), 44)
        library.umad_set_addr(umad, 0x1234, 1, 3, ctypes.c_int(0x80010000 - 2**32))
        library.umad_set_grh(umad, grh)
        images.append(umad.raw)
    assert images[0] == images[1]


def test_header_carries_the_pkey_index(libraries):
    # the original does so only where the kernel's ib_umad is loaded
    umad = ctypes.create_string_buffer(64)
    assert libraries[0].umad_size() == 64
    libraries[0].umad_set_pkey(umad, 7)
    assert libraries[0].umad_get_pkey(umad) == 7
    assert umad.raw[56:58] == b"\7\0"


def without_fabric(*command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTIB_")}
    env["LD_LIBRARY_PATH"] = str(OURS.parent.resolve())
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


NO_FABRIC = "libibumad: no fabric here (SOFTIB_DIR is not set)"


def test_no_fabric_is_no_device():
    run = without_fabric("ibstat", "-l")
    assert run.stdout == ""
    assert run.stderr.startswith(NO_FABRIC) and run.stderr.count("\n") == 1


def test_no_fabric_names_and_open():
    code = ("import ctypes; l = ctypes.CDLL('libibumad.so.3');"
            "b = ctypes.create_string_buffer(640);"
            "print(l.umad_init(), l.umad_get_cas_names(b, 32), l.umad_open_port(None, 0) < 0)")
    run = without_fabric("/usr/bin/python3", "-c", code)
    assert run.stdout.split() == ["0", "0", "True"]
    assert run.stderr.startswith(NO_FABRIC) and run.stderr.count("\n") == 1  # once
