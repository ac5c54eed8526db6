# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The programs that people type, under `softib exec --sdp`: OpenSSH, rsync, netcat and socat. All
of their TCP is SDP: the nodes share the machine's network, in which nobody has the addresses of n1."""
import contextlib
import os
import pwd
import shlex
import subprocess
from pathlib import Path

import pytest

from interop.fabric import kill, wait_until
from interop.test_capture import Capture
from interop.test_sdp import IPV4, IPV6, SDP, Server, messages_of, sdp_resources

pytestmark = pytest.mark.no_sanitizer("these programs do not start under a sanitizer's runtime")

OTHER_IPV4 = "10.1.0.2"  # of n2
SSHD_FOLDER = Path("/run/sshd")  # to which root's sshd confines the process that reads from a stranger


@pytest.fixture(autouse=True)
def clean(pair):
    yield
    pair.end_programs()


def next_port():
    Server.port += 1
    return Server.port


def shell(fabric, node, line, options=SDP, **kwargs):
    """(exit status, output) of a line of sh, of which all programs are on @node."""
    process = fabric.start(node, "sh", "-c", line, options=options, **kwargs)
    out = fabric.finish(process)
    return process.returncode, out


# --- OpenSSH ---

class Sshd:
    """A server of whoever runs the tests, with keys made for it, on n1."""

    def __init__(self, fabric, home, address="0.0.0.0", options=SDP):
        self.fabric, self.home, self.port = fabric, home, next_port()
        for key in "host", "user":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
        (home / "sshd_config").write_text(
            f"ListenAddress {address}:{self.port}\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\n"
            "PidFile none\nStrictModes no\nUsePAM no\nSubsystem sftp internal-sftp\n")
        # sshd starts itself again for each connection, so it asks for its absolute path
        self.process = fabric.start("n1", "/usr/sbin/sshd", "-D", "-e", "-f", home / "sshd_config", options=options)
        while "listening" not in (line := self.process.stdout.readline()):
            assert line, self.process.wait()
        self.options = " ".join(["-F", "none", "-i", str(home / "user"), "-o", "BatchMode=yes", "-o",
                                 "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o",
                                 "LogLevel=ERROR", "-o", f"Port={self.port}", "-o", f"User={pwd.getpwuid(os.getuid()).pw_name}"])

    def ssh(self, command, address=IPV4, **kwargs):
        return shell(self.fabric, "n2", f"ssh {self.options} {address} {command}", **kwargs)


@pytest.fixture
def sshd_folder():
    """Debian's service makes it, which need not run here."""
    made = os.getuid() == 0 and not SSHD_FOLDER.exists()
    if made:
        SSHD_FOLDER.mkdir(mode=0o755)
    yield
    if made:
        with contextlib.suppress(OSError):  # somebody else's sshd has it now
            SSHD_FOLDER.rmdir()


@pytest.fixture
def sshd(pair, home, sshd_folder):
    return Sshd(pair, home)


def test_ssh(pair, home, sshd):
    """Both ends see the nodes' addresses; the exit status, the bytes of both directions and a
    terminal's answer arrive. tshark finds nothing malformed."""
    capture = Capture(pair, "n2:1")
    status, out = sshd.ssh("""'echo $SSH_CONNECTION; exit 7'""")
    wait_until(lambda: not any(row["type"] == "qp" for row in sdp_resources(pair)), "the connection is over")
    mids, malformed = messages_of(capture.end())
    seen, _, own, port = out.split()
    assert (status, seen, own, port) == (7, OTHER_IPV4, IPV4, str(sshd.port))
    assert not malformed and {"0x02", "0xff"} <= set(mids), set(mids)  # DisConn, Data
    (home / "in").write_bytes(os.urandom(3 << 20))
    assert sshd.ssh(f"cat <{home}/in >{home}/out") == (0, "")
    assert (home / "in").read_bytes() == (home / "out").read_bytes()
    if os.getuid() == 0:  # others may not own a terminal, where /dev/pts is mounted without gid=
        assert sshd.ssh("-tt tty")[1].startswith("/dev/pts/")


def test_scp_and_rsync(pair, home, sshd):
    """scp there and back; rsync by ssh, twice, of which the second finds little to do."""
    (home / "in").write_bytes(os.urandom(8 << 20))
    assert shell(pair, "n2", f"scp {sshd.options} {home}/in {IPV4}:{home}/there &&"
                 f"scp {sshd.options} {IPV4}:{home}/there {home}/back") == (0, "")
    assert (home / "in").read_bytes() == (home / "there").read_bytes() == (home / "back").read_bytes()
    (home / "tree/sub").mkdir(parents=True)
    for i in range(20):
        (home / "tree/sub" / str(i)).write_bytes(os.urandom(i * 20000))
    rsync = f"rsync -a --stats -e {shlex.quote(f'ssh {sshd.options}')} {home}/tree {IPV4}:{home}/copy"
    for transferred in 20, 0:
        status, out = shell(pair, "n2", rsync)
        assert status == 0 and f"regular files transferred: {transferred}\n" in out, out
    for path in (home / "tree/sub").iterdir():
        assert (home / "copy/tree/sub" / path.name).read_bytes() == path.read_bytes()


def test_ssh_carries_connections(pair, home, sshd):
    """Port forwarding: ssh listens on n2 and sshd connects on n1, both by SDP."""
    (home / "in").write_bytes(os.urandom(1 << 20))
    server = Netcat(pair, f"-N -l 0.0.0.0 {{port}} <{home}/in")
    port = next_port()
    carrier = pair.start("n2", "sh", "-c", f"exec ssh {sshd.options} -v -L {OTHER_IPV4}:{port}:{IPV4}:{server.port} "
                         f"{IPV4} cat", options=SDP, stdin=subprocess.PIPE)
    while "Entering interactive session" not in (line := carrier.stdout.readline()):
        assert line
    assert shell(pair, "n1", f"nc -d {OTHER_IPV4} {port} >{home}/out") == (0, "")
    assert (home / "in").read_bytes() == (home / "out").read_bytes()
    kill(carrier)


@pytest.mark.parametrize("server, client", [((), SDP), (SDP, ())], ids=["server", "client"])
def test_ssh_of_which_one_side_has_tcp_alone(pair, home, sshd_folder, server, client):
    """At the machine's loopback address, by which SDP does not reach another node."""
    status, out = Sshd(pair, home, "127.0.0.1", server).ssh("'echo $SSH_CONNECTION'", "127.0.0.1", options=client)
    assert status == 0 and out.startswith("127.0.0.1 "), out


# --- netcat ---

class Netcat:
    """nc on n1, once it listens. @arguments: with {port}, and sh's redirections"""

    def __init__(self, fabric, arguments, options=SDP):
        self.fabric, self.port = fabric, next_port()
        self.process = fabric.start("n1", "sh", "-c", f"exec nc -v {arguments.format(port=self.port)}", options=options)
        assert "Listening" in self.process.stdout.readline()

    def end(self):
        out = self.fabric.finish(self.process)
        assert self.process.returncode == 0, out
        return out


@pytest.mark.parametrize("bound, called", [("0.0.0.0", IPV4), ("::", IPV6)], ids=["IPv4", "IPv6"])
def test_netcat(pair, home, bound, called):
    """A file to the server, and one from it; -N ends the connection at the end of the file, and the other
    end (-d) sends nothing: netcat leaves when its peer has ended, whatever is left of its own file. The
    server names its client."""
    (home / "in").write_bytes(os.urandom(2 << 20))
    sends, takes = f"-N <{home}/in", f"-d >{home}/out"
    for serves, calls in (takes, sends), (sends, takes):
        server = Netcat(pair, f"-n -l {bound} {{port}} {serves}")
        assert shell(pair, "n2", f"nc {called} {server.port} {calls}") == (0, "")
        assert called[:-1] in server.end()
        assert (home / "in").read_bytes() == (home / "out").read_bytes()
        (home / "out").unlink()


def test_netcat_copies_both_ways(pair, home):
    """Each end sends a file and ends its half of the connection. A listening netcat leaves when its peer has ended,
    so its own file is the short one. Nothing is lost, as by TCP."""
    (home / "long").write_bytes(os.urandom(8 << 20))
    (home / "short").write_bytes(os.urandom(1 << 20))
    for _ in range(4):
        server = Netcat(pair, f"-N -n -l 0.0.0.0 {{port}} <{home}/short >{home}/out1")
        assert shell(pair, "n2", f"nc -N {IPV4} {server.port} <{home}/long >{home}/out2") == (0, "")
        server.end()
        assert (home / "out1").read_bytes() == (home / "long").read_bytes()
        assert (home / "out2").read_bytes() == (home / "short").read_bytes()


def test_netcat_looks_who_listens(pair):
    """-z, with a time-out (connect() does not wait) and without; the server (-k) takes a client after
    the other."""
    server = Netcat(pair, "-k -n -l 0.0.0.0 {port}")
    for wait in "", "-w 60":
        status, out = shell(pair, "n2", f"nc -z -n -v {wait} {IPV4} {server.port}")
        assert status == 0 and "succeeded!" in out, out
        assert server.process.stdout.readline().startswith(f"Connection received on {OTHER_IPV4} ")
    status, out = shell(pair, "n2", f"nc -z -n -v 127.0.0.1 {next_port()}")
    assert status == 1 and "refused" in out, out
    kill(server.process)


# --- socat ---

@pytest.mark.parametrize("family, address", [(4, IPV4), (6, f"[{IPV6}]")])
def test_socat(pair, home, family, address):
    """A server with a process for each client, and a relay in front of it on the client's node; half-closed."""
    (home / "in").write_bytes(os.urandom(2 << 20))
    first, second = next_port(), next_port()
    server = pair.start("n1", "socat", "-dd", f"TCP{family}-LISTEN:{first},fork,reuseaddr", "EXEC:cat", options=SDP)
    relay = pair.start("n2", "socat", "-dd", f"TCP{family}-LISTEN:{second},fork,reuseaddr",
                       f"TCP{family}:{address}:{first}", options=SDP)
    for process in server, relay:
        while "listening" not in (line := process.stdout.readline()):
            assert line
    own = OTHER_IPV4 if family == 4 else f"[{IPV6.replace('::1', '::2')}]"
    clients = [pair.start("n2", "sh", "-c", f"socat -t 60 - TCP{family}:{own}:{second},nodelay,keepalive "
                          f"<{home}/in >{home}/out{n}", options=SDP) for n in range(3)]
    for n, process in enumerate(clients):
        assert (pair.finish(process), process.returncode) == ("", 0)
        assert (home / f"out{n}").read_bytes() == (home / "in").read_bytes()
    kill(relay)
    kill(server)
