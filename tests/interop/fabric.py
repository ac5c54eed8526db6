# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A private fabric for a test, and programs on its nodes.

    with Fabric("star:4") as f:
        f.run("n1", "ibv_devinfo")
        f.pair("ib_write_bw", "-n", "100")
"""
import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("SOFTIB_BUILD", Path(__file__).parents[2] / "build")).resolve()
DATA = Path(__file__).resolve().parents[1] / "data"  # its README says what is there
SANITIZED = os.environ.get("SOFTIB_SANITIZED", "").split()  # by which: tests/sanitize.py
SOFTIB = BUILD / "bin/softib"
TIMEOUT = 120  # a hang, not a measure of speed
# an ordinary user, whoever we are: root alone can be one
NOBODYS_ID = 65534
NOBODY = ["setpriv", f"--reuid={NOBODYS_ID}", f"--regid={NOBODYS_ID}", "--clear-groups"]
# for programs that load nothing of ours: a sanitizer in them would only judge them
OUTSIDE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}



def free_ports():
    """TCP ports that nobody has, below those that the kernel gives to clients."""
    for port in itertools.cycle(itertools.chain(*(range(start, stop) for start, stop in (
            (10000 + os.getpid() * 64 % 22000, 32000), (10000, 32000))))):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
        yield port


_ports = free_ports()


def listening(port):
    """Is somebody listening on this TCP port? (Asking must not connect.)"""
    want = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            field = line.split()
            if field[1].endswith(want) and field[3] == "0A":
                return True
    return False


class Failed(AssertionError):
    """A program ended otherwise than it should."""


def wait_until(condition, what, timeout=TIMEOUT):
    """Look again and again at another process's state, which sends no event.

    @what: is told when it never comes to hold; text, or a function that makes it
    """
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"never: {what() if callable(what) else what}")
        time.sleep(0.01)


class Fabric:
    """softib up ... softib down, with everything in a directory of its own."""

    def __init__(self, topology="pair", sm="softib-sm", up_args=(), user=()):
        """@user: NOBODY, or () for who we are"""
        self.topology, self.sm, self.up_args, self.user = str(topology), sm, up_args, user
        self.home = Path(tempfile.mkdtemp(prefix="softib-test-"))
        if user:
            os.chown(self.home, NOBODYS_ID, NOBODYS_ID)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.home), NO_COLOR="1")
        self.running = []

    def __enter__(self):
        self.softib("up", "t", "--topology", self.topology, "--sm", self.sm, *self.up_args)
        return self

    def __exit__(self, *exc):
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()
        try:
            self.softib("down", "t")
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    # --- the softib command ---

    def softib(self, *args, check=True, timeout=TIMEOUT):
        done = subprocess.run([*self.user, SOFTIB, *args], env=self.env, capture_output=True, text=True,
                              timeout=timeout, check=False)
        if check and done.returncode:
            raise Failed(f"softib {' '.join(args)}: exit {done.returncode}\n"
                         f"{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *args):
        return json.loads(self.softib(*args, "--json"))

    @property
    def dir(self):
        return self.home / "softib/t"

    def wait_for_cleaning(self):
        """softibd was killed: nothing but its log is to stay."""
        wait_until(lambda: [path.name for path in self.dir.iterdir()] == ["softibd.log"],
                   "what watches softibd cleans up")

    def expect_no_leftovers(self):
        """Every program is gone: softibd must hold nothing of theirs once it
        has read that their sockets are closed."""
        wait_until(lambda: not self.user_resources(),
                   lambda: f"softibd still holds {self.user_resources()}")

    def user_resources(self):
        rows = self.json("resource", "show")
        rows = rows.get("resources", rows) if isinstance(rows, dict) else rows
        return [r for r in rows if r.get("pid") and "softib-sm" not in r.get("comm", "")]

    def wait_for_traffic(self, node, packets):
        """Until port 1 of @node has received so many more."""
        def received():
            return self.json("counters", f"{node}:1")["counters"][0]["rcv_packets"]

        first = received()
        wait_until(lambda: received() - first >= packets, f"{packets} packets reach {node}")

    # --- programs on nodes ---

    def command(self, node, argv):
        return [*self.user, str(SOFTIB), "exec", "--fabric", "t", node, "--", *map(str, argv)]

    def start(self, node, *argv, **kwargs):
        process = subprocess.Popen(self.command(node, argv), env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
        self.running.append(process)
        return process

    def run(self, node, *argv, check=True, timeout=TIMEOUT, status=0):
        """Run to the end; its output. Any other status than @status fails."""
        process = self.start(node, *argv)
        out = self.finish(process, timeout, argv)
        if check and process.returncode != status:
            raise Failed(f"{' '.join(map(str, argv))} on {node}: exit {process.returncode}, "
                         f"not {status}\n{out}")
        return out

    def finish(self, process, timeout=TIMEOUT, argv=()):
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            raise Failed(f"{' '.join(map(str, argv))} hangs\n{out}") from None
        return out

    def serve(self, node, *argv, port, timeout=TIMEOUT):
        """Start a server and come back when it listens on @port."""
        process = self.start(node, *argv)
        end = time.monotonic() + timeout
        while not listening(port):
            try:  # its end, or a moment: whichever comes first
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                if time.monotonic() < end:
                    continue
            process.kill()
            raise Failed(f"{' '.join(map(str, argv))} does not listen:\n{process.stdout.read()}")
        return process

    def pair(self, program, *args, server="n1", client="n2", server_args=None, timeout=TIMEOUT,
             device=True):
        """Server and client of perftest or a pingpong, both to a good end."""
        port = next(_ports)
        flags = ["-d", "softib0", "-p", port] if device else ["-p", port]
        serve = [program, *flags, *(args if server_args is None else server_args)]
        first = self.serve(server, *serve, port=port)
        out = self.run(client, program, *flags, *args, "127.0.0.1", timeout=timeout, check=False)
        status = self.running[-1].returncode
        if status:  # a server that spins on its queue never learns of it
            first.kill()
        server_out = self.finish(first, timeout, serve)
        if status or first.returncode:
            raise Failed(f"{program} {' '.join(map(str, args))}: client exit {status}, "
                         f"server exit {first.returncode}\n--- client\n{out}\n--- server\n"
                         f"{server_out}")
        return server_out, out
