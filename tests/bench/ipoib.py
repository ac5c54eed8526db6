# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IP over InfiniBand: iperf3 and ping between two nodes with an ib0, or with an eth0, and over a
relay by hand (relay.c), which moves the same packets from one TUN device to another.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.sources import LIMIT, Failure

MTU = {"datagram": 2044, "connected": 65520, "ethernet": 4200}
MODES = ("datagram", "connected")  # of IPoIB
PORT = "5333"


@contextmanager
def fabric_of(bench, mode):
    """Commands that run what follows them on n1 and on n2, and the address of n2."""
    from interop.fabric import Fabric
    kind = ("--ipoib-mode", mode) if mode in MODES else ("--link-layer", mode)
    with Fabric("pair", sm="softib-sm" if mode in MODES else "none", up_args=("--net", "node", *kind)) as fabric:
        yield *(fabric.command(node, ()) for node in ("n1", "n2")), "10.1.0.2", fabric.env


@contextmanager
def relay(bench, mode):
    user = ["--user", "--preserve-credentials"] if os.getuid() else []
    with subprocess.Popen([bench.program("bench-relay"), str(MTU[mode])], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pids = process.stdout.readline().split()
        if len(pids) != 2:
            raise Failure("bench-relay makes no namespaces")
        yield *(["nsenter", *user, "--net", "--target", pid] for pid in pids), "10.200.0.2", None


NO_SEGMENTATION = """if True:
    import array, fcntl, socket, struct
    for command in (0x1f, 0x24):  # ETHTOOL_STSO, ETHTOOL_SGSO
        value = array.array("I", [command, 0])
        fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP16x", b"veth0", value.buffer_info()[0]))"""


def hold(stack, *argv):
    """A process in a network namespace of its own, for the time of @stack. Return: its id"""
    process = stack.enter_context(subprocess.Popen([*argv, "--net", "sh", "-c", "echo; exec cat"], text=True,
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    if process.stdout.readline() != "\n":
        raise Failure("unshare makes no namespaces")
    return str(process.pid)


@contextmanager
def veth(bench, mode):
    """The kernel's own link between namespaces, which here carries no segments larger than its MTU."""
    user = ["--user", "--preserve-credentials"] if os.getuid() else []
    with ExitStack() as stack:
        first = hold(stack, "unshare", *(["--user", "--map-root-user"] if os.getuid() else []))
        pids = first, hold(stack, *(["nsenter", *user, "--target", first] if user else []), "unshare")
        ways = [["nsenter", *user, "--net", "--target", pid] for pid in pids]
        output([*ways[0], "ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", pids[1]], None)
        for number, way in enumerate(ways, 1):
            output([*way, "ip", "address", "add", f"10.200.0.{number}/16", "dev", "veth0"], None)
            output([*way, "ip", "link", "set", "veth0", "mtu", str(MTU[mode]), "up"], None)
            output([*way, "python3", "-c", NO_SEGMENTATION], None)
        yield *ways, "10.200.0.2", None


def output(argv, env):
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Failure(f"{argv[-1]} hangs") from None
    if done.returncode:
        raise Failure(f"{' '.join(map(str, argv))}: {done.stdout[-200:]}{done.stderr[-200:]}")
    return done.stdout


def iperf(client, to, env, *args):
    out = output([*client, "iperf3", "--json", "-c", to, "-p", PORT, "-t", "1", *args], env)
    return json.loads(out)["end"]


def tcp(client, to, env):
    return iperf(client, to, env)["sum_received"]["bits_per_second"] / 8e9


def udp(client, to, env):
    end = iperf(client, to, env, "-u", "-l", "64", "-b", "0")["sum"]
    return (end["packets"] - end["lost_packets"]) / end["seconds"] / 1e6


def ping(client, to, env):
    out = output([*client, "ping", "-q", "-c", "200", "-i", "0.002", to], env)
    return float(re.search(r"= [\d.]+/([\d.]+)/", out)[1]) * 1000


KINDS = {"tcp": tcp, "udp": udp, "ping": ping}


ROUNDS = 5


def serve(stack, server, env):
    """Start an iperf3 for the time of @stack."""
    process = subprocess.Popen([*server, "iperf3", "-s", "-p", PORT, "--forceflush"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    if not any("listening" in line for line in process.stdout):
        raise Failure("iperf3's server does not listen")


@dataclass(frozen=True)
class Ip:
    """A figure of KINDS; `way`: fabric_of, relay or veth."""
    key: str
    mode: str
    way: object
    once = True

    @property
    def run(self):
        return f"ip {self.mode}"

    @staticmethod
    def measure(bench, sources):
        found, clients = {source: [] for source in sources}, {}
        with ExitStack() as stack:
            for way in dict.fromkeys(source.way for source in sources):
                client, server, to, env = stack.enter_context(way(bench, sources[0].mode))
                serve(stack, server, env)
                clients[way] = client, to, env
                ping(*clients[way])  # until addresses and paths are known
            for key in dict.fromkeys(source.key for source in sources):
                for source in ROUNDS * [source for source in sources if source.key == key]:
                    found[source].append(KINDS[key](*clients[source.way]))
        return {source: statistics.median(figures) for source, figures in found.items()}


NODES, TOPOLOGY = 254, "star:254"
SETTLE_S, WATCH_S = 15, 5  # each host asks for routers three times in 12 s


def of_process(pid, name, key):
    text = Path(f"/proc/{pid}/{name}").read_text()
    return int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1])


@dataclass(frozen=True)
class Idle:
    """What softibd needs for nodes whose ib0 nobody uses. memory: of one of them; wakes: of all in
    a second, while softib-sm is stopped."""
    key: str
    once = True
    run = "idle ib0"

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import Fabric
        found, pss = {}, {}
        for net in ("host", "node"):
            with Fabric(TOPOLOGY, sm="none", up_args=("--net", net)) as fabric:
                pid = int((fabric.dir / "pid").read_text())
                manager = fabric.start("n1", "softib-sm", "--ipoib", stdout=subprocess.DEVNULL)
                fabric.softib("wait", "--fabric", "t")
                if net == "node":
                    time.sleep(SETTLE_S)
                os.killpg(manager.pid, signal.SIGSTOP)
                pss[net] = of_process(pid, "smaps_rollup", "Pss") * 1024
                before = of_process(pid, "status", "voluntary_ctxt_switches")
                time.sleep(WATCH_S if net == "node" else 0)
                wakes = of_process(pid, "status", "voluntary_ctxt_switches") - before
        for source in sources:
            found[source] = {"memory": (pss["node"] - pss["host"]) / NODES, "wakes": wakes / WATCH_S}[source.key]
        return found
