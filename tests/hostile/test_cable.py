# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on a cable that leaves the fabric (docs/CABLES.md), by whoever can connect to its address, and by who holds
the other end. The protocol is that of src/cable/session.h."""
import contextlib
import hashlib
import hmac
import os
import select
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from hostile.attack import PATIENCE, Sender, innocents_go_on
from hostile.test_mads import processor_seconds, resident_mib
from hostile.test_softibd import no_descriptor_left
from interop.fabric import NOBODY, NOBODYS_ID, OUTSIDE, SANITIZED, Fabric, _ports, kill, wait_until
from interop.test_kill import softibd_pid

END, BEHIND = "s1:5", ("--ip", "10.1.0.11/16", "--ip", "fd73:6f66:7469:6201::11/64")
MAGIC = b"softib cable 1\n\0"
HELLO, PROOF, LINK, CREDIT, PACKET = range(1, 6)
WINDOW, STRANGERS_MAX = 2 << 20, 8  # src/cable/session.h, src/daemon/cable.c
SECRET = b"0123456789abcdef0123456789abcdef"


def message(kind, body=b""):
    return struct.pack(">IB", 1 + len(body), kind) + body


def hello(nonce=bytes(32), has_key=False, name=b"evil/s1:1", magic=MAGIC):
    return message(HELLO, magic + nonce + struct.pack(">BQQ", has_key, 1, 0x0200000000000001) + name)


def link(plugged=1, phys=2, width=2, speed=0xffff):
    """@phys: Polling; @width: 4x"""
    return message(LINK, struct.pack(">BBBH", plugged, phys, width, speed))


class Peer:
    """The other end of a cable, as far as the test likes to be that."""

    def __init__(self, address):
        if isinstance(address, Path):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(str(address))
        else:
            self.sock = socket.create_connection(address)
        self.sock.settimeout(PATIENCE)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def send(self, *messages):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall(b"".join(messages))

    def read(self):
        """The next message: type, body. (None, b""): the connection is over."""
        while len(self.rest) < 4 or len(self.rest) < 4 + struct.unpack_from(">I", self.rest)[0]:
            try:
                more = self.sock.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                return None, b""
            self.rest += more
        size = struct.unpack_from(">I", self.rest)[0]
        body, self.rest = self.rest[4:4 + size], self.rest[4 + size:]
        return body[0], body[1:]

    def find(self, kind):
        """The body of the next message of @kind."""
        while True:
            found, body = self.read()
            assert found, f"the connection ends before a message {kind}"
            if found == kind:
                return body

    def is_closed(self):
        while self.read()[0]:
            pass

    def prove(self, key=hashlib.sha256(SECRET).digest()):
        """Say HELLO. Return: the proof of who connects, which is to be sent"""
        self.nonce = os.urandom(32)
        self.send(hello(self.nonce, True))
        self.far_nonce = self.find(HELLO)[16:48]
        return message(PROOF, hmac.digest(key, bytes([0]) + self.far_nonce + self.nonce, "sha256"))

    def open(self):
        """Of a cable without a key: a session, with the far side's LINK and CREDIT."""
        self.send(hello())
        self.find(HELLO)
        return self.find(LINK), self.find(CREDIT)


def state(fabric):
    return next(cable for cable in fabric.json("cable") if f"{cable['node']}:{cable['port']}" == END)


def refused(fabric, peer, why):
    """The connection is closed, and softib cable says why."""
    peer.is_closed()
    wait_until(lambda: not state(fabric)["connected"] and why in state(fabric)["reason"],
               lambda: f"{why}: {state(fabric)}")
    innocents_go_on(fabric)


@contextlib.contextmanager
def listening(fabric, address, *options):
    fabric.softib("cable", END, "--listen", str(address), *map(str, options))
    try:
        yield
    finally:
        fabric.softib("cable", END, "--remove")


@pytest.fixture
def unix(shared, home):
    """Without a key: who connects holds the other end. The address."""
    with listening(shared, home / "cable"):
        yield home / "cable"


@pytest.fixture
def key(home):
    path = home / "key"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def tcp(shared, key):
    """With a key."""
    address = "127.0.0.1", next(_ports)
    with listening(shared, "{}:{}".format(*address), "--key", key):
        yield address


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="softib-test-") as path:
        yield Path(path)


NO_SOFTIBD = "the other side is no softibd, or one of another version"
OUT_OF_PLACE = "the other side sent a message that does not belong there"
BROKEN_PACKET = "the other side sent a packet that is none"

NOISE = {
    "zeros": bytes(4096), "ones": b"\xff" * 4096, "http": b"GET / HTTP/1.1\r\nHost: cable\r\n\r\n",
    "a length of 0": struct.pack(">I", 0) + hello(), "a length of 4 GiB": struct.pack(">I", 0xffffffff) + hello(),
    "another magic": hello(magic=b"softib cable 2\n\0"), "no name": message(HELLO, MAGIC + bytes(48)),
    "a name without end": hello(name=b"n" * 64), "no HELLO": message(LINK, bytes(5)), "no type": message(0),
    "a type that is none": message(6), "nothing but a type": message(HELLO),
}


@pytest.mark.parametrize("what", NOISE)
def test_noise_at_a_cable(shared, tcp, what):
    with Peer(tcp) as peer:
        peer.send(NOISE[what])
        refused(shared, peer, NO_SOFTIBD)


# --- who has no key ---

def test_strangers_who_say_nothing(shared, tcp, key):
    """The oldest of them makes room, for the owner of the key as well."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(Peer(tcp)) for _ in range(STRANGERS_MAX)]
        assert all(peer.read()[0] == HELLO for peer in silent)
        ninth = stack.enter_context(Peer(tcp))
        assert ninth.read()[0] == HELLO
        silent[0].is_closed()
        innocents_go_on(shared)
        with Fabric("star:1,spare=1", sm="none", name="u", up_args=BEHIND) as owner:
            owner.softib("cable", "s1:2", "--connect", "{}:{}".format(*tcp), "--key", str(key))
            wait_until(lambda: state(shared)["connected"], "who has the key is served")
            assert select.select([peer.sock for peer in [*silent[2:], ninth]], [], [], 0)[0] == []
            assert state(shared)["peer"] == "u/s1:2"


@pytest.mark.parametrize("what", [LINK, CREDIT, PACKET, HELLO])
def test_messages_before_the_proof(shared, tcp, what):
    with Peer(tcp) as peer:
        peer.prove()
        peer.send({LINK: link(), CREDIT: message(CREDIT, struct.pack(">Q", WINDOW)), HELLO: hello(has_key=True),
                   PACKET: message(PACKET, b"\0" + get_node_info())}[what])
        refused(shared, peer, OUT_OF_PLACE)
    assert state(shared)["packets_received"] == 0 and state(shared)["state"] == "Down"


@pytest.mark.parametrize("what", ["no key", "another key", "zeros", "short", "long"])
def test_proofs_that_are_none(shared, tcp, what):
    with Peer(tcp) as peer:
        if what == "no key":
            peer.send(hello())
            return refused(shared, peer, "the other side has no key")
        proof = peer.prove(bytes(32)) if what == "another key" else peer.prove()
        peer.send({"another key": proof, "zeros": message(PROOF, bytes(32)), "short": message(PROOF, proof[5:-1]),
                   "long": message(PROOF, proof[5:] + b"\0")}[what])
        refused(shared, peer, "the other side has another key")
    return None


def test_a_proof_holds_once(shared, tcp):
    """Neither what the owner of the key once said is good again, nor what softibd itself says."""
    with Peer(tcp) as owner:
        proof = owner.prove()
        owner.send(proof)
        owner.find(LINK)
        said = hello(owner.nonce, True) + proof
    with Peer(tcp) as thief:
        thief.send(said)
        refused(shared, thief, "the other side has another key")
    with Peer(tcp) as mirror:
        mirror.send(hello(mirror.find(HELLO)[16:48], True))
        mirror.send(message(PROOF, mirror.find(PROOF)))
        refused(shared, mirror, "the other side has another key")


def test_mistakes_without_end(shared, tcp):
    """Strangers fill no log, and do not change what is said of a cable that is connected."""
    log = shared.dir / "softibd.log"
    before = len(log.read_text().splitlines())
    for number in range(40):
        with Peer(tcp) as peer:
            peer.send(hello() if number % 2 else bytes(16))
            peer.is_closed()
    innocents_go_on(shared)
    assert len(log.read_text().splitlines()) - before < 20
    with Peer(tcp) as owner, Peer(tcp) as stranger:
        owner.send(owner.prove())
        owner.find(LINK)
        stranger.send(bytes(16))
        stranger.is_closed()
        assert state(shared)["connected"] and state(shared)["reason"] == ""


ENTER = """import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(30)
sock.connect(sys.argv[1])
try:
    print(sock.recv(4096))
except ConnectionResetError:
    print(b"")
"""

LIE = """import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
server.listen()
print("listens", flush=True)
sock = server.accept()[0]
try:
    print(sock.recv(4096), flush=True)
except ConnectionResetError:
    print(b"", flush=True)
"""


@pytest.mark.other_user
def test_another_user_connects_to_a_cable(shared, unix):
    """Whatever the modes are."""
    unix.parent.chmod(0o777)
    unix.chmod(0o777)
    done = subprocess.run([*NOBODY, "/usr/bin/python3", "-c", ENTER, unix], env=OUTSIDE, capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    assert done.stdout == "b''\n"
    assert "another user tried to connect" in state(shared)["reason"]


@pytest.mark.other_user
def test_another_user_listens_where_a_cable_connects_to(shared, home):
    home.chmod(0o777)
    with subprocess.Popen([*NOBODY, "/usr/bin/python3", "-c", LIE, home / "cable"], env=OUTSIDE, stdout=subprocess.PIPE,
                          text=True) as liar:
        try:
            assert liar.stdout.readline() == "listens\n"
            assert (home / "cable").stat().st_uid == NOBODYS_ID
            shared.softib("cable", END, "--connect", str(home / "cable"))
            wait_until(lambda: "another user listens there" in state(shared)["reason"], "it is seen")
            assert liar.stdout.readline() == "b''\n"
        finally:
            kill(liar)
            shared.softib("cable", END, "--remove")


def test_a_cable_without_a_descriptor_for_who_connects(shared, tcp):
    """softibd sleeps until there is one."""
    with no_descriptor_left(softibd_pid(shared)), Peer(tcp) as peer:
        before = processor_seconds(shared)
        assert not select.select([peer.sock], [], [], 1)[0], "softibd had a descriptor"
        assert processor_seconds(shared) - before < 0.3  # a turn for each look would take all of it
    with Peer(tcp) as peer:
        assert peer.read()[0] == HELLO


# --- who holds the other end ---

def credit(number):
    return message(CREDIT, struct.pack(">Q", number))


BROKEN = {
    "a LINK of 6 bytes": (message(LINK, bytes(6)), "a LINK that is none"),
    "a LINK of 4 bytes": (message(LINK, bytes(4)), "a LINK that is none"),
    "a cable that is in twice": (link(plugged=2), "a LINK that is none"),
    "a CREDIT that goes back": (credit(WINDOW) + credit(WINDOW - 1), "a CREDIT that is none"),
    "a CREDIT beyond the window": (credit(WINDOW + 1), "a CREDIT that is none"),
    "a CREDIT without end": (credit((1 << 64) - 1), "a CREDIT that is none"),
    "a CREDIT of 4 bytes": (message(CREDIT, bytes(4)), "a CREDIT that is none"),
    "a second HELLO": (hello(), OUT_OF_PLACE),
    "a PROOF": (message(PROOF, bytes(32)), OUT_OF_PLACE),
    "a message that is too long": (struct.pack(">IB", 1 << 20, PACKET), NO_SOFTIBD),
    "a packet of nothing": (message(PACKET), BROKEN_PACKET),
    "a packet of its hops": (message(PACKET, b"\0"), BROKEN_PACKET),
    "a packet that ends early": (message(PACKET, b"\0" + bytes(12)), BROKEN_PACKET),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_messages_by_a_cable(shared, unix, what):
    messages, why = BROKEN[what]
    with Peer(unix) as peer:
        peer.open()
        peer.send(messages)
        refused(shared, peer, why)


def test_packets_with_lengths_that_are_wrong(shared, unix):
    packet = get_node_info()
    for wrong in packet[:-4], packet + bytes(4), packet[:4] + b"\0\1" + packet[6:], packet[:20]:
        with Peer(unix) as peer:
            peer.open()
            peer.send(message(PACKET, b"\0" + wrong))
            refused(shared, peer, BROKEN_PACKET)


def test_a_hello_byte_by_byte(shared, unix):
    with Peer(unix) as peer:
        said = hello()
        for byte in said[:-1]:
            peer.send(bytes([byte]))
        innocents_go_on(shared)
        assert not state(shared)["connected"]
        peer.send(said[-1:], link())
        peer.find(CREDIT)
        assert state(shared)["connected"]


def test_a_name_for_the_terminal(shared, unix):
    with Peer(unix) as peer:
        peer.send(hello(name=b"\x1b[2J\n\xff\xfe\"\\"))
        peer.find(CREDIT)
        assert state(shared)["peer"] == "?[2J???\"\\"
        assert "\x1b" not in shared.softib("cable")


def test_links_of_nonsense(shared, unix):
    """Values that no port has: the link does not come up, or with what both ends have."""
    with Peer(unix) as peer:
        peer.open()
        for phys in range(256):
            peer.send(link(phys=phys, width=phys, speed=phys << 8 | 255 - phys))
        for width, speed in (0, 0), (255, 0xffff), (0, 0xffff), (255, 0):
            peer.send(link(width=width, speed=speed))
        innocents_go_on(shared)
        assert state(shared)["connected"]


def test_a_link_that_goes_up_and_down_without_end(shared, unix):
    """100,000 times; who manages the subnet hears of it, too."""
    with Peer(unix) as peer:
        peer.open()
        with going_on(lambda: peer.send(b"".join(link(i % 2) for i in range(1000)))) as sends:
            wait_until(lambda: sends() > 20, "they are sent")
            innocents_go_on(shared)
            shared.run("n3", "saquery", "-N")
            wait_until(lambda: sends() > 100, "they are sent")
        assert state(shared)["connected"]
    wait_until(lambda: state(shared)["state"] == "Down", "the cable's end takes the link down")
    innocents_go_on(shared)


@contextlib.contextmanager
def going_on(act):
    """Do it again and again meanwhile. Yields a function that tells how often it was done."""
    over, done = threading.Event(), [0]

    def run():
        while not over.is_set():
            act()
            done[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: done[0]
    finally:
        over.set()
        thread.join()


def get_node_info(tid=1):
    """Of the switch behind the cable, by a directed route of one hop."""
    mad = struct.pack(">BBBBHBBQHHIQHH28x64s", 1, 0x81, 1, 1, 0, 1, 1, tid, 0x11, 0, 0, 0, 0xffff, 0xffff, b"")
    mad += b"\0\1" + bytes(62) + bytes(64)
    words = (8 + 12 + 8 + len(mad)) // 4 + 1
    return (struct.pack(">BBHHH", 0xf0, 2, 0xffff, words, 0xffff) +
            struct.pack(">BBHIIII", 0x64, 0, 0xffff, 0, 0, 0, 0) + mad)


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
def test_questions_without_end(shared, unix, reads):
    """SMPs need no credits. Their answers, which the peer reads or leaves, take no memory without end."""
    with Peer(unix) as peer:
        far = struct.unpack(">BBBH", peer.open()[0])
        peer.send(link(width=far[2], speed=far[3]))
        wait_until(lambda: state(shared)["state"] == "Init", "the link trains")
        peer.send(message(PACKET, b"\0" + get_node_info()))
        while peer.find(PACKET)[1 + 28 + 3:1 + 28 + 4] != b"\x81":
            pass  # what the subnet manager asks
        before = resident_mib(shared)
        flood = b"".join(message(PACKET, b"\0" + get_node_info(tid)) for tid in range(1000))
        peer.sock.settimeout(None)
        with going_on(lambda: peer.send(flood)) as sends:
            with going_on(lambda: peer.sock.recv(1 << 16)) if reads else contextlib.nullcontext():
                wait_until(lambda: sends() > 20, "they are sent")
                innocents_go_on(shared)
                wait_until(lambda: sends() > 200, "they are sent")
                assert state(shared)["connected"]
                assert SANITIZED or resident_mib(shared) - before < 32  # AddressSanitizer keeps what is freed
                peer.sock.shutdown(socket.SHUT_RDWR)  # both threads end
    wait_until(lambda: state(shared)["state"] == "Down", "the end of the connection takes the link down")
    innocents_go_on(shared)


def test_packets_by_a_link_that_is_down(shared, unix):
    """They do not arrive at the port."""
    def arrived():
        return shared.json("counters", END)["counters"][0]["rcv_packets"]

    before = arrived()
    with Peer(unix) as peer:
        peer.open()
        peer.send(message(PACKET, b"\0" + get_node_info()) * 20)
        wait_until(lambda: state(shared)["packets_received"] == 20, "softibd has read them")
        assert arrived() == before


class Between:
    """Somebody who passes on what two softibds say until he has a mind to speak himself."""

    def __init__(self, home, listener):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(home / "between"))
        self.server.listen()
        self.server.settimeout(PATIENCE)
        self.sock, self.to = self.server, Peer(listener)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        self.sock = self.server.accept()[0]
        ways = {self.sock: self.to.sock, self.to.sock: self.sock}
        while not self.over.is_set():
            for one in select.select(list(ways), [], [], 0.05)[0]:
                ways[one].sendall(one.recv(1 << 16))

    def take_over(self):
        self.over.set()
        self.thread.join()


@pytest.fixture
def far(shared, unix, home):
    """A fabric at the other end, and somebody between."""
    with Fabric("star:1,spare=1", sm="none", name="u", up_args=BEHIND) as fabric:
        between = Between(home, unix)
        try:
            fabric.softib("cable", "s1:2", "--connect", str(home / "between"))
            wait_until(lambda: state(shared)["state"] == "Active", "the cable is up")
            fabric.softib("wait", "--timeout", "60")
            yield fabric, between
        finally:
            between.take_over()
            between.sock.close()
            between.to.sock.close()


def test_a_peer_that_does_not_read(shared, far):
    """What a program sends to the other side waits at the program, and what softibd keeps of it is bounded."""
    fabric, between = far
    port = next(_ports)
    args = ["ib_write_bw", "-d", "softib0", "-p", port, "-c", "UC", "-n", "5000000"]
    server = fabric.serve("n1", *args, port=port)
    client = shared.start("n1", *args, "127.0.0.1")
    wait_until(lambda: state(shared)["bytes_sent"] > WINDOW, "they send")
    before = resident_mib(shared)
    between.take_over()
    sent = -1

    def stuck():
        nonlocal sent
        sent, last = state(shared)["bytes_sent"], sent
        return sent == last and state(shared)["waits"] > 0

    wait_until(stuck, "nothing can be sent")
    innocents_go_on(shared)
    assert resident_mib(shared) - before < 32 and client.poll() is None
    kill(client)
    kill(server)


def test_more_data_than_credits(shared, far):
    """For a program that does not read, so that none of it leaves softibd: it keeps as much as it has said, and ends
    the connection."""
    _, between = far
    between.take_over()
    with Sender(shared, "n1") as victim:
        before = resident_mib(shared)
        data = message(PACKET, b"\0" + victim.datagram(victim.lid, victim.qpn, 0x11111111, bytes(2048)))
        with going_on(lambda: between.to.send(data * 100)) as sends:
            wait_until(lambda: not state(shared)["connected"], lambda: f"it ends: {state(shared)}")
        assert sends() * 100 * len(data) > WINDOW
        assert resident_mib(shared) - before < 32
        refused(shared, between.to, "the other side sent more than it had credits for")
