# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A private fabric for a test, and programs on its nodes.

    with Fabric("star:4") as f:
        f.run("n1", "ibv_devinfo")
        f.pair("ib_write_bw", "-n", "100")
"""
import atexit
import functools
import ipaddress
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("SOFTIB_BUILD", Path(__file__).parents[2] / "build")).resolve()
DATA = Path(__file__).resolve().parents[1] / "data"  # its README says what is there
SANITIZED = os.environ.get("SOFTIB_SANITIZED", "").split()  # by which: tests/sanitize.py
POLLED = bool(os.environ.get("SOFTIB_POLLED"))  # tests/run --polled
SOFTIB = BUILD / "bin/softib"
TIMEOUT = 120  # a hang, not a measure of speed
OUTPUT_MAX = 16 << 20  # characters of one program: more is a program that prints without end
SHOWN_MAX = 20000  # characters of it in a failure's message
# an ordinary user, whoever we are: root alone can be one
NOBODYS_ID = 65534
NOBODY = ["setpriv", f"--reuid={NOBODYS_ID}", f"--regid={NOBODYS_ID}", "--clear-groups"]
# for programs that load nothing of ours: a sanitizer in them would only judge them
OUTSIDE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
# an ordinary user's PATH lacks /usr/sbin, where the fabric tools are
os.environ["PATH"] = ":".join(dict.fromkeys(
    [*os.environ.get("PATH", "/usr/bin:/bin").split(":"), "/usr/sbin", "/sbin"]))
OUTSIDE["PATH"] = os.environ["PATH"]

PORTS = range(10000, 32000)  # below those that the kernel gives to clients
PORTS_EACH = 500  # of a process that runs tests


def port_block():
    """A range of TCP ports that no other run of the tests uses meanwhile.

    Its owner holds an abstract socket that is named after it: only one process
    of a network namespace can, whoever runs it.
    """
    for start in range(PORTS.start, PORTS.stop, PORTS_EACH):
        owned = socket.socket(socket.AF_UNIX)
        try:
            owned.bind(f"\0softib-test-ports-{start}")
        except OSError:
            owned.close()
            continue
        return owned, range(start, start + PORTS_EACH)
    raise Failed(f"all TCP ports from {PORTS.start} to {PORTS.stop} belong to other runs of tests")


def free_ports():
    """TCP ports of this process's block that nobody has."""
    _owned, ports = port_block()
    while True:
        for port in ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("", port))
                except OSError:
                    continue
            yield port


_ports = free_ports()


def listening(port, pid="self"):
    """Is somebody listening on this TCP port, in the network of process @pid? (Asking must not connect.)"""
    want = f":{port:04X}"
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:  # the process has ended
            return False
        for field in map(str.split, lines):
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


def shown(text):
    """As much of a program's output as a message about a failure may hold."""
    if len(text) <= SHOWN_MAX:
        return text
    half = SHOWN_MAX // 2
    return f"{text[:half]}\n... {len(text) - SHOWN_MAX} characters ...\n{text[-half:]}"


def kill(process):
    """Kill @process and all of its group; it has ended on return."""
    if process.poll() is None:
        try:
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.kill()
    process.wait()


def read_to_end(process, timeout, limit=OUTPUT_MAX):
    """What @process prints until it ends. One that hangs or that prints without
    end is killed.

    Return: text; why it was killed, None if it was not
    """
    chunks, size, deadline = [], 0, time.monotonic() + timeout
    why = None
    if process.stdin:
        process.stdin.close()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while not why:
            if not ready.select(max(0, deadline - time.monotonic())):
                why = "hangs"
                break
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                why = f"prints more than {limit} bytes"
    try:
        if not why:
            process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        why = "hangs"
    if why:
        kill(process)
    process.stdout.close()
    return b"".join(chunks).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"), why


@functools.cache
def public_copy():
    """softib and the tests' own programs where any user may read them: the tree
    may be in a home of mode 0700. Laid out as a build directory: bin, lib; and interop."""
    top = Path(tempfile.mkdtemp(prefix="softib-public-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    for folder, files in {
            "bin": [BUILD / "bin" / name for name in ("softib", "softib-rsh", "softib-rpcrdma", "softib-pvrdma",
                                                      "softibd", "softib-sm")],
            "lib": [BUILD / "lib" / name for name in ("libibverbs.so.1", "libibumad.so.3",
                                                  "librdmacm.so.1", "libmnl.so.0", "libnl-3.so.200", "libnodefiles.so", "libsdp.so")],
            "interop": Path(__file__).parent.glob("*.py")}.items():
        (top / folder).mkdir()
        for path in files:
            shutil.copy(path, top / folder)
    for path in [top, *top.rglob("*")]:
        path.chmod(0o755)
    return top


FABRIC_NAME = "t"


def guid(node, port=0, fabric=FABRIC_NAME, device=0):
    """What softib-topology(5) says of the GUID of @node ("n1", "s2"), or of its port, in
    a fabric called @fabric whose topology gives none: 16 hexadecimal digits."""
    name = 0xcbf29ce484222325
    for byte in fabric.encode():
        name = (name ^ byte) * 0x100000001b3 % 2**64
    kind = 3 + device if device else " nsr".index(node[0])
    return f"02{(name ^ name >> 28) % 2**28:07x}{kind:x}{int(node[1:]):04x}{port:02x}"


def by_fours(hexadecimal):
    """As ibv_devinfo and /sys print a GUID: "0212:3456:7100:0101"."""
    return ":".join(hexadecimal[i:i + 4] for i in range(0, len(hexadecimal), 4))


def link_local(node, port=1):
    """The GID and the IPv6 address of a port that follow from its GUID."""
    return str(ipaddress.IPv6Address(bytes.fromhex("fe80000000000000" + guid(node, port))))


class Fabric:
    """softib up ... softib down, with everything in a directory of its own."""

    up = []  # those that are, for who cleans up behind a test that failed

    def __init__(self, topology="pair", sm="softib-sm", up_args=(), user=(), name=FABRIC_NAME):
        """@user: NOBODY, or () for who we are"""
        self.program = public_copy() / "bin/softib" if user else SOFTIB
        if POLLED and "--polled" not in up_args:
            up_args = (*up_args, "--polled", "all")
        self.topology, self.sm, self.up_args, self.user, self.name = str(topology), sm, up_args, user, name
        self.home = Path(tempfile.mkdtemp(prefix="softib-test-"))
        if user:
            os.chown(self.home, NOBODYS_ID, NOBODYS_ID)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.home), NO_COLOR="1")
        self.running = []

    def __enter__(self):
        try:
            self.softib("up", self.name, "--topology", self.topology, "--sm", self.sm, *self.up_args)
        except BaseException:
            shutil.rmtree(self.home, ignore_errors=True)
            raise
        Fabric.up.append(self)
        return self

    def __exit__(self, *exc):
        Fabric.up.remove(self)
        self.end_programs()
        try:
            self.softib("down", self.name)
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    def end_programs(self, first=0):
        """Kill what still runs of the programs that were started, from the
        @first on."""
        for process in self.running[first:]:
            kill(process)

    # --- the softib command ---

    def softib(self, *args, check=True, timeout=TIMEOUT):
        done = subprocess.run([*self.user, self.program, *args], env=self.env, capture_output=True, text=True,
                              timeout=timeout, check=False)
        if check and done.returncode:
            raise Failed(f"softib {' '.join(args)}: exit {done.returncode}\n"
                         f"{shown(done.stdout + done.stderr)}")
        return done.stdout

    def json(self, *args):
        return json.loads(self.softib(*args, "--json"))

    @property
    def dir(self):
        return self.home / "softib" / self.name

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

    def script(self, path):
        """@path of this folder, as the fabric's user may read it."""
        return public_copy() / "interop" / Path(path).name if self.user else path

    def address(self, node):
        """Where a server on @node is found: by name if nodes have networks of their own (--net node)"""
        return node if "node" in self.up_args else "127.0.0.1"

    def command(self, node, argv, options=()):
        return [*self.user, str(self.program), "exec", "--fabric", self.name, *options, node, "--", *map(str, argv)]

    def start(self, node, *argv, options=(), **kwargs):
        """A group of processes of its own, which ends with this test at the latest. @options: of
        softib exec"""
        process = subprocess.Popen(self.command(node, argv, options), text=True, **{
            "env": self.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT, "process_group": 0, **kwargs})
        self.running.append(process)
        return process

    def run(self, node, *argv, check=True, timeout=TIMEOUT, status=0, limit=OUTPUT_MAX):
        """Run to the end; its output. Any other status than @status fails, and so
        does output of more than @limit bytes."""
        process = self.start(node, *argv)
        out = self.finish(process, timeout, argv, limit)
        if check and process.returncode != status:
            raise Failed(f"{' '.join(map(str, argv))} on {node}: exit {process.returncode}, "
                         f"not {status}\n{shown(out)}")
        return out

    def finish(self, process, timeout=TIMEOUT, argv=(), limit=OUTPUT_MAX):
        """Wait for its end; what it printed since it was read last."""
        out, why = read_to_end(process, timeout, limit)
        if why:
            raise Failed(f"{' '.join(map(str, argv or process.args))} {why}\n{shown(out)}")
        return out

    def serve(self, node, *argv, port, timeout=TIMEOUT):
        """Start a server and come back when it listens on @port."""
        process = self.start(node, *argv)
        end = time.monotonic() + timeout
        while not listening(port, process.pid):
            try:  # its end, or a moment: whichever comes first
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                if time.monotonic() < end:
                    continue
            kill(process)
            raise Failed(f"{' '.join(map(str, argv))} does not listen:\n"
                         f"{shown(read_to_end(process, TIMEOUT)[0])}")
        return process

    def pair(self, program, *args, server="n1", client="n2", server_args=None, timeout=TIMEOUT,
             device=True, client_of=None):
        """Server and client of perftest or a pingpong, both to a good end. They find each other at
        address(@server). @client_of: the fabric of @client, if it is another one"""
        client_of = client_of or self
        port = next(_ports)
        flags = ["-d", "softib0", "-p", port] if device else ["-p", port]
        serve = [program, *flags, *(args if server_args is None else server_args)]
        first = self.serve(server, *serve, port=port)
        out = client_of.run(client, program, *flags, *args, self.address(server), timeout=timeout, check=False)
        status = client_of.running[-1].returncode
        if status:  # a server that spins on its queue never learns of it
            kill(first)
        server_out = self.finish(first, timeout, serve)
        if status or first.returncode:
            raise Failed(f"{program} {' '.join(map(str, args))}: client exit {status}, "
                         f"server exit {first.returncode}\n--- client\n{shown(out)}\n"
                         f"--- server\n{shown(server_out)}")
        return server_out, out
