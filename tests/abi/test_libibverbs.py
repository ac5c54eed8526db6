# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibverbs.so.1 against the distribution's: symbols, versions, names and
conversions, and that the distribution's programs load it where there is no
fabric."""
import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("SOFTIB_BUILD", "build"))
OURS = BUILD / "lib" / "libibverbs" / "libibverbs.so.1"
LIBDIR = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
THEIRS = LIBDIR / "libibverbs.so.1"


def exported(path):
    """(name, version, kind) of what the library defines by default; versions
    in parentheses are for programs of before 2008, and no one has them."""
    out = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True)
    found = set()
    for line in out.stdout.splitlines():
        field = line.split()
        if "*UND*" in line or len(field) < 6 or not field[-2].startswith("IBVERBS"):
            continue
        kind = "F" if " DF " in line else "O" if " DO " in line else "V"
        if field[-1] != field[-2]:
            found.add((field[-1], field[-2], "" if kind == "V" else kind))
    return found


def nodes(path):
    out = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True)
    defined = out.stdout.split("Version definitions:")[1].split("Version References")[0]
    return set(re.findall(r"IBVERBS\w*(?:\.\d+)?", defined))


def test_symbols_and_versions():
    ours, theirs = exported(OURS), exported(THEIRS)
    assert len([s for s in theirs if s[1] == "IBVERBS_PRIVATE_34"]) > 60
    assert {s[:2] for s in ours} == {s[:2] for s in theirs}


def test_version_nodes():
    assert nodes(OURS) == nodes(THEIRS)


def test_soname():
    out = subprocess.run(["objdump", "-p", OURS], check=True, capture_output=True, text=True)
    assert re.search(r"SONAME\s+libibverbs\.so\.1\n", out.stdout)


def test_it_stays_loaded():
    """A plug-in that is closed must not take the code of running threads away."""
    handle = ctypes.CDLL(str(OURS))._handle
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
    assert str(OURS.resolve()) in Path("/proc/self/maps").read_text()


# what softib's librdmacm calls (lib/libibverbs/expect.h), and their version
OWN = {"softib_expect_flow", "softib_tell_now", "SOFTIB_1"}


def test_the_engine_is_not_exported():
    out = subprocess.run(["nm", "-D", "--defined-only", OURS], check=True,
                         capture_output=True, text=True)
    names = {line.split()[-1].split("@")[0] for line in out.stdout.splitlines()}
    known = {s[0] for s in exported(THEIRS)} | nodes(THEIRS)
    assert names - known == OWN


@pytest.fixture(scope="module")
def libraries():
    return ctypes.CDLL(str(OURS)), ctypes.CDLL(str(THEIRS))


@pytest.mark.parametrize("function", ["ibv_rate_to_mult", "mult_to_ibv_rate", "ibv_rate_to_mbps",
                                      "mbps_to_ibv_rate"])
def test_rates(libraries, function):
    inputs = [*range(-2, 600), 2500, 5000, 10000, 14062, 25781, 103125, 206250, 425000, 850000]
    for value in inputs:
        ours, theirs = (getattr(l, function)(value) for l in libraries)
        assert ours == theirs, value


@pytest.mark.parametrize("function", ["ibv_node_type_str", "ibv_port_state_str",
                                      "ibv_event_type_str", "ibv_wc_status_str"])
def test_names(libraries, function):
    for value in range(0, 64):
        texts = []
        for library in libraries:
            f = getattr(library, function)
            f.restype = ctypes.c_char_p
            texts.append(f(value))
        assert texts[0] == texts[1], value


def without_fabric(*command, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SOFTIB_")}
    env.update(LD_LIBRARY_PATH=str(OURS.parent.resolve()), LD_BIND_NOW="1", **more)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False,
                          timeout=60)


PROGRAMS = [  # command, what it prints of itself
    (["ibv_devices"], "device"),
    (["ibv_devinfo"], "No IB devices found"),
    (["ibv_rc_pingpong"], "No IB devices found"),
    (["ibv_srq_pingpong"], "No IB devices found"),
    (["ib_send_bw", "-V"], "Version"),
    (["ib_write_lat", "-V"], "Version"),
    (["ib_read_bw", "-V"], "Version"),
    (["ib_atomic_lat", "-V"], "Version"),
    (["ucx_info", "-v"], "Version"),
    (["ucx_info", "-d"], "Component"),
    (["/usr/bin/python3", "-c", "import pyverbs.device as d, pyverbs.providers.mlx5.mlx5dv,"
      "pyverbs.providers.efa.efadv; print(d.get_device_list())"], "[]"),
]


@pytest.mark.parametrize("command,says", PROGRAMS, ids=lambda p: p[0] if isinstance(p, list) else "")
def test_program_loads(command, says):
    run = without_fabric(*command)
    assert says in run.stdout + run.stderr
    assert "lookup error" not in run.stderr and "version `" not in run.stderr


@pytest.mark.parametrize("provider", ["libmlx5.so.1", "libefa.so.1"])
def test_provider_binds_every_name(provider):
    run = without_fabric("/usr/bin/python3", "-c",
                         f"import ctypes, os; ctypes.CDLL('{provider}', os.RTLD_NOW);"
                         "print([l.split()[-1] for l in open('/proc/self/maps') if 'ibverbs' in l])")
    assert run.returncode == 0, run.stderr
    assert str(OURS.parent.resolve()) in run.stdout, "the distribution's library was loaded"


def test_a_dead_fabric_is_named(tmp_path):
    run = without_fabric("ibv_devices", SOFTIB_DIR=str(tmp_path))
    assert run.returncode == 0
    assert str(tmp_path) in run.stderr and "softibd" in run.stderr


def test_a_path_too_long_is_refused(tmp_path):
    run = without_fabric("ibv_devices", SOFTIB_DIR=str(tmp_path / ("x" * 200)))
    assert run.returncode == 0
    assert "too long" in run.stderr
