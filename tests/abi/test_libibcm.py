# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibcm.so.1 against rdma-core 16's, which no distribution has any more: symbols, version, soname, and what a program
sees of it where there is no fabric."""
import os
import re
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("SOFTIB_BUILD", "build"))
OURS = BUILD / "lib" / "libibcm" / "libibcm.so.1"
HEADER = Path(__file__).parents[2] / "include/infiniband/cm.h"
THEIRS = {f"ib_cm_{name}" for name in (
    "open_device close_device get_event ack_event create_id destroy_id attr_id listen send_req send_rep send_rtu "
    "send_dreq send_drep notify send_rej send_mra send_lap send_apr send_sidr_req send_sidr_rep init_qp_attr").split()}


def dump(flag):
    return subprocess.run(["objdump", flag, OURS], check=True, capture_output=True, text=True).stdout


def test_symbols_and_version():
    lines = (line.split() for line in dump("-T").splitlines() if "*UND*" not in line)
    assert {(f[-1], f[-2]) for f in lines if len(f) > 5} == {
        (name, "IBCM_1.0") for name in [*THEIRS, "IBCM_1.0"]}


def test_soname():
    assert re.search(r"SONAME\s+(\S+)", dump("-p")).group(1) == "libibcm.so.1"


def test_header_declares_each():
    assert set(re.findall(r"\b(ib_cm_\w+)\(struct", HEADER.read_text())) == THEIRS


def test_header_compiles_alone(tmp_path):
    """In C and in C++, whatever is included before."""
    for compiler, suffix in (("cc", "c"), ("c++", "cc")):
        source = tmp_path / f"alone.{suffix}"
        source.write_text("#include <infiniband/cm.h>\nint size = sizeof(struct ib_cm_event);\n")
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-I", HEADER.parents[1], "-c", source, "-o",
                        tmp_path / "alone.o"], check=True)


def test_without_a_fabric():
    code = ("import ctypes, os; l = ctypes.CDLL('libibcm.so.1', use_errno=True); "
            "l.ib_cm_open_device.restype = ctypes.c_void_p; "
            "device = ctypes.create_string_buffer(1000); context = (ctypes.c_void_p * 100)(ctypes.addressof(device)); "
            "print(l.ib_cm_open_device(context), os.strerror(ctypes.get_errno()))")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTIB_")}
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True,
                          env={**env, "LD_LIBRARY_PATH": str(BUILD.resolve() / "lib")})
    assert done.stdout == "None No such device\n", done
    assert done.stderr.startswith("libibcm: no fabric here (SOFTIB_DIR is not set)"), done
