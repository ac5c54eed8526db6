# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Random reads of 4 KiB from a disk in memory, 32 at a time: fio on an SRP session's NBD export, and
libiscsi's iscsi-perf from tgt over TCP on the loopback interface.

iscsi-perf speaks iSCSI itself, so that nothing stands between it and tgt; fio has NBD between it and
the initiator.
"""
import json
import re
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.sources import CLIENT_CPU, LIMIT, SERVER_CPU, Failure, pinned

DISK_BYTES = 64 << 20
DEPTH, SECONDS, BLOCKS = 32, 2, 8  # of 512 bytes
TARGET = "iqn.2026-01.example:bench"
SRP, ISCSI = "SRP", "iSCSI"


def output(argv, env=None):
    try:
        done = subprocess.run([*map(str, argv)], env=env, capture_output=True, text=True, check=False,
                              timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(map(str, argv))} hangs") from None
    if done.returncode:
        raise Failure(f"{' '.join(map(str, argv))}: {done.stdout[-200:]}{done.stderr[-200:]}")
    return done.stdout


def srp(bench):
    fabric = bench.fabric
    fabric.softib("srp", "target", "add", "n1", "--unit", f"ram:{DISK_BYTES}")
    try:
        login = fabric.json("srp", "login", "n2", "n1")
        uri = f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}"
        out = output(pinned(CLIENT_CPU, "fio", "--name=disk", "--ioengine=nbd", f"--uri={uri}",
                            "--rw=randread", f"--bs={BLOCKS * 512}", f"--iodepth={DEPTH}",
                            f"--size={DISK_BYTES}", "--time_based", f"--runtime={SECONDS}",
                            "--output-format=json"))
        fabric.softib("srp", "logout", "n2", "n1")
    finally:
        fabric.softib("srp", "target", "remove", "n1")
    return json.loads(out[out.index("{"):])["jobs"][0]["read"]["iops"]


@contextmanager
def tgt(folder):
    """The URL of a disk of tgtd's."""
    from interop.fabric import _ports, wait_until
    portal = f"127.0.0.1:{next(_ports)}"
    env = {"PATH": "/usr/sbin:/usr/bin", "TGT_IPC_SOCKET": f"{folder}/tgtd"}

    def admin(*argv):
        output(["tgtadm", "-C", 1, "--lld", "iscsi", *argv], env)
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    daemon = subprocess.Popen(pinned(SERVER_CPU, "tgtd", "-f", "-C", 1, "--iscsi", f"portal={portal}"),
                              env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (folder / "tgtd.1").exists() or daemon.poll() is not None, "tgtd runs", LIMIT)
        admin("--op", "new", "--mode", "target", "--tid", 1, "-T", TARGET)
        admin("--op", "new", "--mode", "logicalunit", "--tid", 1, "--lun", 1, "-b", disk)
        admin("--op", "bind", "--mode", "target", "--tid", 1, "-I", "ALL")
        yield f"iscsi://{portal}/{TARGET}/1"
    finally:
        daemon.kill()
        daemon.wait()


def iscsi(bench):
    with tempfile.TemporaryDirectory(prefix="softib-bench-", dir="/dev/shm") as folder, \
            tgt(Path(folder)) as url:
        out = output(pinned(CLIENT_CPU, "iscsi-perf", "-r", "-m", DEPTH, "-b", BLOCKS, "-t", SECONDS, url))
    found = re.findall(r"iops average (\d+)", out)
    if not found:
        raise Failure(f"iscsi-perf: {out[-200:]}")
    return float(found[-1])


WAYS = {SRP: srp, ISCSI: iscsi}


@dataclass(frozen=True)
class Disk:
    """Reads per second, in thousands; `way`: of WAYS."""
    way: str
    key = "randread_4k"

    @property
    def run(self):
        return f"disk {self.way}"

    @staticmethod
    def measure(bench, sources):
        return {s: WAYS[s.way](bench) / 1e3 for s in sources}
