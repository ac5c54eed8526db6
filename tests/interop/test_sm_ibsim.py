# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib-sm on a fabric that no one here wrote: ibsim's.

ibsim simulates switches and adapters; its preload puts the distribution's
libibumad on it, for softib-sm and for the tools that check the result. ibsim
cuts MADs after 256 bytes, so tables of SA are tested elsewhere.
"""
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from interop.fabric import DATA, SANITIZED

BUILD = Path(os.environ.get("SOFTIB_BUILD", Path(__file__).parents[2] / "build")).resolve()
PRELOAD = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
SM = BUILD / "bin/softib-sm"
TIMEOUT = 60  # a hang, not a measure of speed

pytestmark = [
    pytest.mark.skipif(not shutil.which("ibsim") or not PRELOAD.exists(),
                       reason="ibsim-utils and libumad2sim0 are not installed"),
    pytest.mark.skipif(not SM.exists(), reason="softib-sm is not built"),
]

FAT_TREE = "\n".join(
    [f'Switch 8 "leaf{l}"\n'
     + "\n".join(f'[{h + 1}] "host{l}{h}"[1]' for h in range(4)) + "\n"
     + "\n".join(f'[{s + 5}] "spine{s}"[{l + 1}]' for s in range(4)) + "\n"
     for l in range(4)]
    + [f'Switch 8 "spine{s}"\n'
       + "\n".join(f'[{l + 1}] "leaf{l}"[{s + 5}]' for l in range(4)) + "\n"
       for s in range(4)]
    + [f'Hca 1 "host{l}{h}"\n[1] "leaf{l}"[{h + 1}]\n' for l in range(4) for h in range(4)])


class Sim:
    """ibsim on a net file, and programs attached to its nodes."""

    counter = 0

    def __init__(self, netfile, directory):
        Sim.counter += 1
        self.netfile, self.directory = netfile, directory
        preload = [os.environ.get("LD_PRELOAD"), str(PRELOAD)]
        self.env = dict(os.environ, LD_PRELOAD=":".join(filter(None, preload)),
                        IBSIM_SOCKNAME=f"softib-{os.getpid()}-{Sim.counter}")
        if SANITIZED:  # umad2sim copies beyond the ends of its own buffers
            self.env["ASAN_OPTIONS"] += ":replace_intrin=0"
        self.env.pop("LD_LIBRARY_PATH", None)
        self.children = []

    def __enter__(self):
        env = dict(self.env)
        del env["LD_PRELOAD"]
        self.ibsim = subprocess.Popen(
            ["ibsim", "-s", "-N", "2048", "-S", "256", "-P", "16384", str(self.netfile)],
            env=env, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.children.append(self.ibsim)
        for line in self.ibsim.stdout:  # it answers when its prompt is there
            if "Network simulator ready" in line or "MaxMcastCap" in line:
                break
        return self

    def __exit__(self, *exc):
        for child in reversed(self.children):
            child.kill()
            child.communicate()

    def console(self, command):
        self.ibsim.stdin.write(command + "\n")
        self.ibsim.stdin.flush()

    def run(self, node, *command, check=True):
        env = dict(self.env, **({"SIM_HOST": node} if node else {}))
        done = subprocess.run([str(c) for c in command], env=env, cwd=self.directory, text=True,
                              capture_output=True, timeout=TIMEOUT)
        if check:
            assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def manage(self, node, *options):
        """softib-sm that stays; returns when the subnet is up."""
        env = dict(self.env, **({"SIM_HOST": node} if node else {}))
        sm = subprocess.Popen([str(SM), "--lid-cache", "none", "--check", *options],
                              env=env, cwd=self.directory, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        self.children.append(sm)
        self.expect(sm, "SUBNET UP")
        return sm

    @staticmethod
    def expect(process, line):
        for got in process.stdout:
            if got.strip() == line:
                return
        pytest.fail(f"it ended without {line!r}")


@pytest.fixture
def two_switches(tmp_path):
    with Sim(DATA / "topologies/two-switches-two-paths.ibsim", tmp_path) as sim:
        yield sim


@pytest.fixture
def fat_tree(tmp_path):
    netfile = tmp_path / "net"
    netfile.write_text(FAT_TREE)
    with Sim(netfile, tmp_path) as sim:
        yield sim


def lids(sim, node):
    """{LID: description} of all end ports, from the switches' tables."""
    return dict((int(lid, 16), name) for lid, name in
                re.findall(r"^0x([0-9a-f]+) \d+ : .*'(.*)'", sim.run(node, "dump_lfts"), re.M))


def test_two_switches_come_up(two_switches):
    sim = two_switches
    assert "SUBNET UP" in sim.run("Hca1", SM, "--once", "--lid-cache", "none", "--check")
    links = sim.run("Hca2", "iblinkinfo", "-l")
    assert links.count("Active/  LinkUp") == 12  # six cables, seen from both ends
    assert "Initialize" not in links


def test_answers_and_routes(two_switches):
    sim = two_switches
    sim.manage("Hca1", "--ipoib")
    assert "SMINFO_MASTER" in sim.run("Hca2", "sminfo")
    assert "ff12:401b:ffff::ffff:ffff" in sim.run("Hca2", "saquery", "-g")
    ends = [lid for lid, name in lids(sim, "Hca1").items() if name.startswith("Hca")]
    assert len(ends) == 4
    for src in ends:
        for dst in ends:
            if src == dst:
                continue
            trace = sim.run("Hca2", "ibtracert", src, dst)
            assert f"lid {dst}-{dst}" in trace.splitlines()[-1]
            path = sim.run("Hca2", "saquery", "--src-to-dst", f"{src}:{dst}")
            assert re.search(rf"dlid\.+{dst}$", path, re.M)


@pytest.mark.parametrize("engine", ["minhop", "updn"])
def test_fat_tree_spreads_over_spines(fat_tree, engine):
    sim = fat_tree
    sim.manage("host00", "--routing", engine)
    spines = set()
    names = {name: lid for lid, name in lids(sim, "host00").items()}
    for h in range(4):
        trace = sim.run("host00", "ibtracert", names["host00"], names[f"host3{h}"])
        spines |= set(re.findall(r'"(spine\d)"', trace))
    assert len(spines) == 4


def test_lids_are_kept(fat_tree, tmp_path):
    cache = tmp_path / "lids"
    for _ in range(2):
        fat_tree.run("host00", SM, "--once", "--lid-cache", cache)
        first = cache.read_text()
    assert len(first.splitlines()) == 1 + 24
    # what the cache says goes before what the port says
    guid, old = re.search(r"^(0x\w+) (\d+) 0$", first, re.M).groups()
    cache.write_text(first.replace(f"{guid} {old} 0", f"{guid} 777 0"))
    fat_tree.run("host00", SM, "--once", "--lid-cache", cache)
    assert 777 in lids(fat_tree, "host00")


def test_lmc(fat_tree):
    fat_tree.manage("host00", "--lmc", "2")
    own = fat_tree.run("host00", "smpquery", "-D", "portinfo", "0")
    assert re.search(r"^LMC:\.+2$", own, re.M | re.I)
    assert int(re.search(r"^Lid:\.+(\d+)$", own, re.M)[1]) % 4 == 0


def test_a_dead_link_is_routed_around(fat_tree):
    sim = fat_tree
    sm = sim.manage("host00", "--sweep", "1")
    names = {name: lid for lid, name in lids(sim, "host00").items()}
    before = sim.run("host00", "ibtracert", names["host00"], names["host30"])
    spine = re.search(r'"(spine(\d))"', before)
    sim.console(f'Unlink "leaf3"[{int(spine[2]) + 5}]')
    sim.expect(sm, "SUBNET UP")  # the light sweep saw it
    after = sim.run("host00", "ibtracert", names["host00"], names["host30"])
    assert spine[1] not in after
    assert "host30" in after.splitlines()[-1]


def test_forty_switches_and_582_adapters(tmp_path):
    with Sim(DATA / "topologies/ndr-40-switches-582-cas.ibnetdiscover", tmp_path) as sim:
        assert "SUBNET UP" in sim.run(None, SM, "--once", "--lid-cache", "none", "--check")
        assert "Initialize" not in sim.run(None, "iblinkinfo", "-l")
        assert len(re.findall("^(?:Ca|Switch)", sim.run(None, "ibnetdiscover"), re.M)) == 622


def test_errors_say_what_to_do(tmp_path):
    env = dict(os.environ, SOFTIB_DIR=str(tmp_path))
    for absent, name in ((["--port", "nosuch0"], "of nosuch0"),
                         (["--port", "nosuch0:9"], "nosuch0:9"), (["--port", ":9"], ":9"),
                         (["--guid", "0x17"], "0x0000000000000017")):
        done = subprocess.run([SM, *absent], env=env, capture_output=True, text=True,
                              timeout=TIMEOUT)
        assert done.returncode == 1
        assert f"no InfiniBand port {name} found" in done.stderr and "`ibstat`" in done.stderr
    for bad in (["--routing", "astrology"], ["--lmc", "9"], ["--port", "a:b"], ["stray"]):
        done = subprocess.run([SM, *bad], env=env, capture_output=True, text=True,
                              timeout=TIMEOUT)
        assert done.returncode == 64 and bad[-1].split(":")[-1] in done.stderr
