# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where figures come from: softib by perftest and by plain verbs programs, the
limits by tests/bench/bare, the peers by UCX, Open MPI, libfabric and TCP.

A source names one figure. Those with the same `run` are measured by one start
of one program: measure(bench, sources) of their class returns {source: figure}.
Figures are ns (latencies), us (calls), GB/s, M/s or bytes.
"""
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

LIMIT = 20  # seconds for one program: a hang, not a measure
SERVER_CPU, CLIENT_CPU = "0", "1"
# ways: both sides on one core, as they are and without spinning before they sleep
ONE_CORE, NO_SPIN = "one core", "one core, no spin"
FEWER = {"daemon": 10, "capture": 10}  # messages, by ways that are slow


class Failure(Exception):
    """A program did not give its figure."""


class Missing(Failure):
    """A peer's program is not installed."""


def figures(*outputs):
    """{name: value} of our own programs' "name value unit" lines; of several
    that ran at once, rates add up and anything else is the mean."""
    found = defaultdict(list)
    units = {}
    for line in "\n".join(outputs).splitlines():
        words = line.split()
        if len(words) >= 3 and re.fullmatch(r"-?[\d.]+", words[1]):
            found[words[0]].append(float(words[1]))
            units[words[0]] = words[2]
    return {name: sum(values) / (1 if units[name].endswith("/s") else len(values))
            for name, values in found.items()}


def pick(sources, found, output):
    """What was asked for, out of what was found: a failure in place of a figure
    that is not there."""
    lost = Failure(f"no figure: {output.strip()[-300:]}")
    return {s: found.get(s.key, lost) for s in sources}


def run_here(argv, env=None):
    try:
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                              timeout=LIMIT, env=dict(os.environ, **(env or {})))
    except FileNotFoundError:
        raise Missing(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(map(str, argv))} hangs") from None
    if done.returncode:
        raise Failure(f"{argv[0]}: exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done.stdout


def pinned(cpu, *argv):
    return ["taskset", "-c", cpu, *map(str, argv)]


def cpus_of(way):
    """Where the server and the client are."""
    return (SERVER_CPU, SERVER_CPU if way in (ONE_CORE, NO_SPIN) else CLIENT_CPU)


def finish(running, what):
    """Wait for programs that measure together, and for no more than LIMIT; what
    each printed. When one fails, the others have nobody to wait for."""
    end, watch = time.monotonic() + LIMIT, select.poll()
    left = {os.pidfd_open(process.pid): process for process in running}
    for pidfd in left:
        watch.register(pidfd, select.POLLIN)
    first = None  # that did not end well
    try:
        while left and not first:
            ended = watch.poll(max(0, end - time.monotonic()) * 1000)
            if not ended:
                raise Failure(f"{what} hangs")
            for pidfd, _ in ended:
                watch.unregister(pidfd)
                os.close(pidfd)
                process = left.pop(pidfd)
                first = first or (process if process.wait() else None)
    finally:
        for pidfd, process in left.items():
            process.kill()
            os.close(pidfd)
        outputs = {process: process.communicate()[0] for process in running}
    if first:
        raise Failure(f"{what}: exit {first.returncode}: {outputs[first].strip()[-300:]}")
    return list(outputs.values())


@dataclass(frozen=True)
class Bare:
    """A limit: a test of tests/bench/bare."""
    key: str
    way: str = ""

    @property
    def run(self):
        return f"bare {self.way}"

    @staticmethod
    def measure(bench, sources):
        out = run_here([bench.program("bench-bare"), "-c", ",".join(cpus_of(sources[0].way)),
                        *(s.key for s in sources)])
        return pick(sources, figures(out), out)


@dataclass(frozen=True)
class Verbs:
    """softib by a plain verbs program; `way` is what the environment and the
    fabric make of it (see Bench.way); `pairs` run at once and their rates add up."""
    key: str
    way: str = ""
    pairs: int = 1

    @property
    def test(self):
        return self.key.split("/")[0]

    @property
    def run(self):
        return f"verbs {self.way} {self.pairs} {self.test if self.heavy else ''}"

    @property
    def heavy(self):
        """Tests that leave a process of another shape behind."""
        return self.test.startswith(("many", "create", "footprint", "threads", "read:1073741824"))

    @staticmethod
    def measure(bench, sources):
        way, pairs = sources[0].way, sources[0].pairs
        tests = list(dict.fromkeys(s.test for s in sources))
        with bench.way(way) as env:
            one_core_each = pairs == 1 and not sources[0].test.startswith("threads")
            cpus = cpus_of(way) if one_core_each else ("0-1", "0-1")
            outputs = run_pairs(bench, env, cpus, pairs, FEWER.get(way, 1), tests)
        return pick(sources, figures(*outputs), "".join(outputs))


def run_pairs(bench, env, cpus, pairs, fewer, tests):
    """Start `pairs` servers and clients at once, a socket between the two of each."""
    fabric, program = bench.fabric, bench.program("bench-verbs")
    running = []
    for _ in range(pairs):
        ends = socket.socketpair()
        for node, side, cpu, end in zip(("n1", "n2"), ("server", "client"), cpus, ends):
            running.append(fabric.start(node, "env", *env, *pinned(
                cpu, program, "-d", bench.daemon_pid, "-f", fewer, side, end.fileno(), *tests),
                pass_fds=[end.fileno()]))
            end.close()
    return finish(running, f"verbs {' '.join(tests)}")


@dataclass(frozen=True)
class Perftest:
    """softib by Debian's perftest, one figure a run: lat, bw or rate."""
    key: str
    column: str
    way: str = ""

    @property
    def run(self):
        return f"{self.key} {self.way}"

    @staticmethod
    def measure(bench, sources):
        source = sources[0]
        program, *args = source.key.split()
        with bench.way(source.way) as env:
            out = perftest_pair(bench.fabric, env, program, args)
        rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
        if not rows or len(rows[-1]) < 5:
            raise Failure(f"{source.key}: {out.strip()[-300:]}")
        return {s: perftest_figure(rows[-1], s.column) for s in sources}


def perftest_figure(row, column):
    """lat: size iterations min max typical ...; bw: size iterations peak MiB/s M/s."""
    return {"lat": float(row[4]) * 1e3, "bw": float(row[3]) * 1.048576e-3,
            "rate": float(row[4])}[column]


def perftest_pair(fabric, env, program, args, client_of=None):
    """What the client prints. @client_of: its fabric, if that is another one"""
    from interop.fabric import Failed, _ports
    port = next(_ports)
    command = [program, "-d", "softib0", "-F", "-p", str(port), *args]
    try:
        server = fabric.serve("n1", "env", *env, *pinned(SERVER_CPU, *command), port=port,
                              timeout=LIMIT)
    except Failed as why:
        raise Failure(str(why)) from None
    client = (client_of or fabric).start("n2", "env", *env, *pinned(CLIENT_CPU, *command, "127.0.0.1"))
    return finish([client, server], " ".join(command))[0]


@dataclass(frozen=True)
class Ucx:
    """UCX over shared memory: a test of ucx_perftest, its size, the transports."""
    test: str
    size: int
    column: str
    tls: str = "posix,self"

    @property
    def key(self):
        return f"{self.test}-{self.size}"

    @property
    def run(self):
        return f"ucx {self.tls}"

    @property
    def line(self):
        uct = "" if self.test.startswith(("tag", "ucp", "stream")) else "-d memory -x posix "
        count = {"lat": 20000, "rate": 500000}.get(
            self.column, min(20000, max(8, 2 ** 30 // self.size)))
        return f"{self.key} -t {self.test} {uct}-s {self.size} -n {count} -w {count // 10}\n"

    def figure(self, row):
        # iterations, us (typical, average, overall), MiB/s (average, overall), messages/s ...
        return {"lat": row[1] * 1e3, "bw": row[5] * 1.048576e-3, "rate": row[7] / 1e6}[self.column]

    @staticmethod
    def both_ends(_, port, server, client, env):
        return two_here(port, server, client, env)

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import _ports
        if not shutil.which("ucx_perftest"):
            raise Missing("ucx_perftest is not installed")
        env = dict(os.environ, UCX_TLS=sources[0].tls, UCX_LOG_LEVEL="error")
        batch = Path(tempfile.mktemp(prefix="ucx-", dir=bench.fabric.home))
        batch.write_text("".join(dict.fromkeys(s.line for s in sources)))
        common = ["ucx_perftest", "-p", next(_ports), "-b", batch]
        out = sources[0].both_ends(bench, common[2], pinned(SERVER_CPU, *common),
                                   pinned(CLIENT_CPU, *common, "127.0.0.1", "-f", "-v"), env)
        rows = {line.split(",")[0]: [float(x) for x in line.split(",")[1:]]
                for line in out.splitlines()[1:] if line.count(",") >= 8}
        found = {s.key: s.figure(rows[s.key])
                 for s in sources if s.key in rows}
        return pick(sources, found, out)


def on_node(node):
    """For programs that look for device files."""
    from interop.fabric import SOFTIB
    return [SOFTIB, "exec", "--fabric", "t", "--devices", node, "--"]


@dataclass(frozen=True)
class UcxOverSoftib(Ucx):
    """UCX between two nodes, by verbs."""
    tls: str = "rc,self"

    @staticmethod
    def both_ends(bench, port, server, client, env):
        env |= {name: bench.fabric.env[name] for name in ("XDG_RUNTIME_DIR",)}
        return two_here(port, on_node("n1") + server, on_node("n2") + client, env)


def two_here(port, server, client, env):
    """A server that listens on @port, and its client; what the client prints."""
    from interop.fabric import Failed, listening, wait_until
    with subprocess.Popen([str(a) for a in server], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as first:
        try:
            wait_until(lambda: listening(port) or first.poll() is not None,
                       f"{' '.join(map(str, server))} listens", LIMIT)
            return run_here(client, env)
        except Failed as why:
            raise Failure(str(why)) from None
        finally:
            first.kill()


@dataclass(frozen=True)
class Mpi:
    """Open MPI over shared memory, with cross-memory attach (its default) or without."""
    key: str
    cma: bool = True
    processes: int = 2

    @property
    def run(self):
        return f"mpi {self.cma} {self.processes}"

    @staticmethod
    def measure(bench, sources):
        program = bench.program("bench-mpi")
        if not program.exists() or not shutil.which("mpirun"):
            raise Missing("Open MPI is not installed")
        n = sources[0].processes
        place = ["--bind-to", "core"] if n == 2 else \
            ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        out = run_here(["mpirun", "--allow-run-as-root", "-np", n, *place, "--mca", "pml", "ob1",
                        "--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism",
                        "cma" if sources[0].cma else "none", program,
                        *dict.fromkeys(s.key for s in sources)])
        return pick(sources, figures(out), out)


@dataclass(frozen=True)
class MpiOverSoftib(Mpi):
    """Open MPI between two nodes, by UCX and verbs."""

    @property
    def run(self):
        return "mpi over softib"

    @staticmethod
    def measure(bench, sources):
        program = bench.program("bench-mpi")
        if not program.exists() or not shutil.which("mpirun"):
            raise Missing("Open MPI is not installed")
        tests = dict.fromkeys(s.key for s in sources)
        ranks = [["-np", 1, *on_node(node), *pinned(cpu, program, *tests)]
                 for node, cpu in (("n1", SERVER_CPU), ("n2", CLIENT_CPU))]
        out = run_here(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                        "-x", "UCX_TLS=rc,self", "--mca", "pml", "ucx", "--mca", "osc", "^ucx",
                        *ranks[0], ":", *ranks[1]], bench.fabric.env)
        return pick(sources, figures(out), out)


@dataclass(frozen=True)
class Libfabric:
    """libfabric's shared memory, back and forth."""
    size: int

    @property
    def run(self):
        return f"fi {self.size}"

    key = "fi_pingpong"

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import _ports
        if not shutil.which("fi_pingpong"):
            raise Missing("fi_pingpong is not installed")
        port = next(_ports)
        common = ["fi_pingpong", "-p", "shm", "-e", "rdm", "-I", "5000", "-S", sources[0].size]
        out = two_here(port, pinned(SERVER_CPU, *common, "-B", port),
                       pinned(CLIENT_CPU, *common, "-P", port, "127.0.0.1"), None)
        row = out.split("\n")[1].split() if out.count("\n") > 1 else []
        if len(row) < 8:
            raise Failure(f"fi_pingpong: {out}")
        return {s: float(row[6]) * 1e3 for s in sources}


@dataclass(frozen=True)
class Instructions:
    """softib by callgrind: instructions per message, the same each time."""
    key: str
    once = True

    @property
    def run(self):
        return f"callgrind {self.key.split('/')[0]}"

    @staticmethod
    def measure(bench, sources):
        from bench import counts
        try:
            found = counts.count(bench.fabric, bench.build, [sources[0].key.split("/")[0]])
        except counts.Failure as why:
            raise Failure(str(why)) from None
        return pick(sources, found, "")
