# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Windows: requests done in the peer's memory, against what packets do."""
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interop.fabric import NOBODY, Fabric, wait_until
from interop.test_lanes import both_ends_agree, counted

SIDE = Path(__file__).with_name("window_side.py")
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, ON_DEMAND = 1, 2, 4, 8, 64
OK, REM_ACCESS_ERR, RETRY_EXC_ERR = 0, 10, 12
WARM = 64  # requests after which the window is surely asked for


def operations(fabric):
    return fabric.json("status")["window_operations"]


class Side:
    """window_side.py on a node."""

    def __init__(self, fabric, node, windows="1", under=()):
        env = dict(fabric.env, SOFTIB_WINDOWS=windows)
        argv = fabric.command(node, [*under, sys.executable, fabric.script(SIDE)])
        self.process = subprocess.Popen(argv, env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        fabric.running.append(self.process)
        self.info = json.loads(self.process.stdout.readline())

    def __call__(self, do, **words):
        self.tell(do, **words)
        return self.hear()

    def tell(self, do, **words):
        self.process.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, f"it ended: {self.process.wait(10)}"
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def signal(self, number):
        os.kill(self.info["pid"], number)


ALONE = pytest.mark.no_sanitizer("its own thread is in every program", kind="thread")


@pytest.fixture(scope="module")
def nobody():
    """The user to run as, for what programs get without privileges."""
    return () if os.getuid() else NOBODY


def is_ordinary(fabric):
    """Is the user of the fabric an ordinary one? Then all pages of a region move to shared memory
    when it is registered."""
    return bool(fabric.user or os.getuid())


@pytest.fixture(scope="module", params=["self", pytest.param(
    "nobody", marks=[ALONE, pytest.mark.other_user])])
def fabric(request):
    """Memory moves when it is asked for, or when it is registered."""
    user = request.getfixturevalue("nobody") if request.param == "nobody" else ()
    with Fabric("star:3", user=user) as made:
        yield made


@pytest.fixture(scope="module")
def nobodys(nobody):
    with Fabric("pair", user=nobody) as made:
        yield made


class Pair:
    def __init__(self, fabric, access=None, nodes=("n1", "n2"), initiators=1, windows=("1", "1"),
                 before=()):
        """@before: what the target does before it registers its memory"""
        self.fabric = fabric
        self.target = Side(fabric, nodes[0])
        for do in before:
            self.target(do)
        self.initiators = [Side(fabric, nodes[1], windows[i]) for i in range(initiators)]
        self.it = self.initiators[0]
        words = {} if access is None else {"access": access}
        self.at = self.target("register", **words)
        for mine, i in enumerate(self.initiators):
            i("connect", lid=self.at["lid"], qpn=self.at["qpn"][mine])
            self.target("connect", lid=i.info["lid"], qpn=i.info["qpn"][0], mine=mine)

    def to(self, offset=0):
        return {"addr": self.at["addr"] + offset, "rkey": self.at["rkey"]}

    def warm(self, do="write", **words):
        """Until requests go by a window."""
        def grows():
            before = operations(self.fabric)
            assert set(self.it(do, times=WARM, **self.to(), **words)) == {OK}
            return operations(self.fabric) - before == WARM
        wait_until(grows, "requests never go by the window")

    def goes_by_packets(self):
        """Long after a window would have been asked for."""
        before = operations(self.fabric)
        for do in ("write", "read", "add"):
            assert set(self.it(do, times=WARM, **self.to())) == {OK}
        return operations(self.fabric) == before

    def writes_on_and_on(self):
        """Until somebody ends it, and by the window."""
        before = operations(self.fabric)
        self.it.tell("write", times=1_000_000, length=65536, **self.to())
        wait_until(lambda: operations(self.fabric) > before + 100, "no WRITE goes by the window")

    def end(self):
        for side in (*self.initiators, self.target):
            side.end()


@pytest.fixture
def pair(fabric):
    made = Pair(fabric)
    made.warm()
    yield made
    made.end()


def test_data_is_right_at_every_place(pair):
    pattern = os.urandom(300_000)
    pair.it("poke", data=pattern.hex(), own=True)
    before = operations(pair.fabric)
    for offset, length in ((0, 1), (1, 7), (3, 8), (4093, 9), (8, 4096), (77, 65_537), (1, 300_000)):
        assert pair.it("write", length=length, **pair.to(offset)) == [OK]
        assert pair.target("peek", at=offset, length=length) == pattern[:length].hex()
        assert pair.it("read", length=length, offset=500_000, **pair.to(offset)) == [OK]
        assert pair.it("peek", at=500_000, length=length, own=True) == pattern[:length].hex()
    assert operations(pair.fabric) > before


def test_atomics(pair):
    pair.target("poke", data="05" + "00" * 7, at=64)
    assert pair.it("add", value=3, **pair.to(64)) == [OK]
    assert pair.it("peek", own=True) == "05" + "00" * 7
    assert pair.target("peek", at=64) == "08" + "00" * 7


def test_stopped_target(pair):
    """A program that is stopped takes no part, and sees it all when it goes on."""
    pair.target("poke", data="77" * 8, at=4096)
    pair.it("poke", data="5a" * 8, own=True)
    pair.target.signal(signal.SIGSTOP)
    start = time.monotonic()
    assert pair.it("write", times=1000, **pair.to()) == [OK] * 1000
    assert pair.it("read", offset=64, **pair.to(4096)) == [OK]
    assert time.monotonic() - start < 10
    pair.target.signal(signal.SIGCONT)
    assert pair.it("peek", at=64, own=True) == "77" * 8
    assert pair.target("peek") == "5a" * 8


def test_target_killed(fabric):
    pair = Pair(fabric)
    pair.warm()
    pair.target.signal(signal.SIGKILL)
    pair.target.process.wait()
    assert pair.it("write", times=100_000, **pair.to())[-1] == RETRY_EXC_ERR
    pair.it.end()


def test_initiator_killed(fabric):
    """In the middle of its requests; the target keeps its memory and goes on."""
    pair = Pair(fabric)
    pair.warm(length=65536)
    pair.writes_on_and_on()
    pair.it.signal(signal.SIGKILL)
    pair.it.process.wait()
    pair.target("poke", data="ee" * 8)
    assert pair.target("deregister") < 10
    assert pair.target("peek") == "ee" * 8
    assert not pair.target("maps")
    pair.target.end()


def test_initiator_stopped(fabric):
    """It may be inside a window: the target does not wait for it."""
    pair = Pair(fabric)
    pair.warm(length=65536)
    pair.writes_on_and_on()
    pair.it.signal(signal.SIGSTOP)
    assert pair.target("deregister") < 10
    before = pair.target("peek", length=65536)
    pair.target("poke", data="11" * 8)
    pair.it.signal(signal.SIGCONT)
    assert pair.it.hear()[-1] == REM_ACCESS_ERR
    assert pair.target("peek", length=65536) == "11" * 8 + before[16:]
    pair.end()


def test_deregistration(pair):
    pair.it("poke", data="42" * 8, own=True)
    assert pair.it("write", **pair.to(4096)) == [OK]
    assert pair.target("maps"), "the memory did not move"
    pair.target("deregister")
    assert pair.target("peek", at=4096) == "42" * 8
    assert not pair.target("maps"), "a peer may still reach it"
    assert pair.it("write", **pair.to(4096)) == [REM_ACCESS_ERR]


# --- memory windows of verbs ---

TYPE_1, TYPE_2 = 1, 2
RIGHTS = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
MW_BIND = 16
KINDS = pytest.mark.parametrize("kind", [TYPE_1, TYPE_2], ids=["type_1", "type_2"])


def bound(fabric, kind, **part):
    """A pair whose requests use the key of a memory window, on a region without rights for peers."""
    pair = Pair(fabric, access=LOCAL_WRITE | MW_BIND)
    pair.at["rkey"] = pair.target("bind", kind=kind, **part)
    return pair


@KINDS
def test_memory_window(fabric, kind):
    """Requests by its key go by the window of the data path, too."""
    pair = bound(fabric, kind)
    pair.warm()
    pair.it("poke", data="5a" * 300, own=True)
    before = operations(fabric)
    assert pair.it("write", length=300, **pair.to(4090)) == [OK]
    assert pair.target("peek", at=4090, length=300) == "5a" * 300
    assert pair.it("read", length=300, offset=8192, **pair.to(4090)) == [OK]
    assert pair.it("peek", at=8192, length=300, own=True) == "5a" * 300
    assert pair.it("add", value=1, **pair.to(8000)) == [OK]
    assert operations(fabric) == before + 3
    assert pair.it("write", length=16, **pair.to((1 << 20) - 8)) == [REM_ACCESS_ERR]
    pair.end()


@KINDS
def test_part_of_a_region(fabric, kind):
    """A peer is shown no more than the memory window covers; nothing, where all of the region was
    moved when it was registered."""
    pair = bound(fabric, kind, at=65536, length=65536)
    before = operations(fabric)
    if is_ordinary(fabric):
        assert set(pair.it("write", times=4 * WARM, **pair.to(65536))) == {OK}
        assert operations(fabric) == before
    else:
        wait_until(lambda: set(pair.it("write", times=WARM, **pair.to(65536))) == {OK} and
                   operations(fabric) > before, "no WRITE goes by the window")
    assert pair.it("write", **pair.to(65536 - 4)) == [REM_ACCESS_ERR]
    pair.end()


@pytest.mark.parametrize("end", ["invalidate", "free_window"])
def test_memory_window_that_ends_stops_its_peer(fabric, end):
    """When the target is told, nothing of the peer is at work, and no mapping of its is left."""
    pair = bound(fabric, TYPE_2)
    pair.warm(length=65536)
    pair.writes_on_and_on()
    assert pair.target("maps")
    assert not pair.target(end), "a peer may still reach it"
    pair.target("poke", data="11" * 65536)
    assert pair.it.hear()[-1] == REM_ACCESS_ERR
    assert pair.target("peek", length=65536) == "11" * 65536
    pair.end()


def test_memory_window_that_is_bound_again(fabric):
    pair = bound(fabric, TYPE_1)
    pair.warm()
    old = pair.to()
    pair.at["rkey"] = pair.target("bind_again", kind=TYPE_1)
    assert set(pair.it("write", times=WARM, **pair.to())) == {OK}
    if not is_ordinary(fabric):
        pair.warm()
    assert pair.it("write", **old) == [REM_ACCESS_ERR]
    pair.end()


# --- ends ---

def test_reset_of_the_targets_qp(pair):
    pair.target("reset")
    assert pair.it("write", **pair.to()) == [RETRY_EXC_ERR]


def test_read_only(fabric):
    pair = Pair(fabric, access=LOCAL_WRITE | REMOTE_READ)
    pair.warm("read")
    assert pair.it("maps") == ["r--s"]
    assert pair.it("write", **pair.to()) == [REM_ACCESS_ERR]
    pair.end()


@pytest.mark.parametrize("offset", [-1, (1 << 20) - 7, 1 << 20], ids=["before", "across", "behind"])
def test_bounds(pair, offset):
    assert pair.it("write", **pair.to(offset)) == [REM_ACCESS_ERR]


def test_link_down(pair):
    pair.fabric.softib("link", "n1:1", "down")
    try:
        assert pair.it("write", **pair.to()) == [RETRY_EXC_ERR]
    finally:
        pair.fabric.softib("link", "n1:1", "up")
        pair.fabric.softib("wait")


def test_change_elsewhere(pair):
    """A new route epoch: by packets at first, then by the window again."""
    pair.fabric.softib("link", "n3:1", "down")
    pair.fabric.softib("link", "n3:1", "up")
    assert set(pair.it("write", times=WARM, **pair.to())) == {OK}
    pair.warm()


@pytest.mark.parametrize("fork", ["fork", "fork_without_descriptors"])
def test_fork(pair, fork):
    """The child has what was there, and nobody sees what it writes."""
    pair.it("poke", data="ab" * 16, own=True)
    assert pair.it("write", length=16, **pair.to(8192)) == [OK]
    assert pair.target(fork, at=8192) == {"before": "ab" * 16, "child": "ab" * 16,
                                          "after": "ab" * 8}
    assert pair.it("write", **pair.to(8192)) == [OK]


def test_lane_and_window_add_to_one_word(fabric):
    pair = Pair(fabric, initiators=2, windows=("1", "0"))
    pair.warm("add", value=0)
    times = 3000
    for side in pair.initiators:
        side.tell("add", times=times, value=1, **pair.to(128))
    for side in pair.initiators:
        assert side.hear() == [OK] * times
    assert pair.target("peek", at=128) == (2 * times).to_bytes(8, "little").hex()
    pair.end()


def test_given_up_memory_is_zero_after_deregistration(pair):
    pair.it("poke", data="42" * 4096, own=True)
    assert pair.it("write", length=4096, **pair.to(2048)) == [OK]
    pair.target("deregister")
    pair.target("give_up", at=4096, length=4096)
    assert pair.target("peek", at=4096) == "00" * 8
    assert pair.target("peek", at=4088) == "42" * 8


def test_second_region_on_the_same_memory(fabric):
    """It has the window, too; and may keep it when the first, unused, is gone."""
    pair = Pair(fabric)
    pair.at["rkey"] = pair.target("register_again")
    pair.target("deregister")
    pair.warm()
    pair.end()


@pytest.mark.parametrize("thing", ["use_file", pytest.param("lock", marks=pytest.mark.no_sanitizer(
    "its mlock() does nothing"))])
def test_memory_that_stays_where_it_is(fabric, thing):
    pair = Pair(fabric, before=[thing])
    assert not pair.target("maps")
    assert pair.goes_by_packets()
    assert pair.target("peek", at=0) != "00" * 8
    pair.end()


def test_memory_that_is_paged_on_demand(fabric):
    """What is there is what the program has mapped there now: no window shows that."""
    pair = Pair(fabric, access=LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | ON_DEMAND)
    assert pair.goes_by_packets()
    assert not pair.target("maps")
    pair.target("map_anew")
    pair.it("poke", data="ab" * 8, own=True)
    assert pair.it("write", **pair.to(4088)) == [OK]
    assert pair.target("peek", at=4088) == "ab" * 8
    pair.target("unmap_page", at=4096)
    assert pair.it("write", **pair.to(4088)) == [OK]
    assert pair.it("write", **pair.to(4092)) == [REM_ACCESS_ERR]
    pair.end()


def test_who_was_refused_leaves_nothing(fabric):
    """A server may refuse any number of clients, one after the other."""
    pair = Pair(fabric, before=["use_file"])
    assert pair.goes_by_packets()
    assert pair.target("pages") == 2
    pair.it.end()
    wait_until(lambda: pair.target("pages") == 1, "the page of the client that left is unmapped")
    pair.target.end()


@ALONE
def test_a_thread_keeps_nobodys_memory_where_it_is(nobodys):
    """Its system calls could not be held off: see docs/WINDOWS.md."""
    pair = Pair(nobodys, before=["start_thread"])
    assert not pair.target("maps")
    assert pair.goes_by_packets()
    pair.end()


@ALONE
def test_a_thread_that_comes_later_keeps_nothing(nobodys):
    pair = Pair(nobodys)
    pair.target("start_thread")
    pair.warm()
    pair.it("poke", data="42" * 8, own=True)
    assert pair.it("write", **pair.to(4096)) == [OK]
    pair.target("deregister")
    assert pair.target("peek", at=4096) == "42" * 8
    assert pair.it("write", **pair.to(4096)) == [REM_ACCESS_ERR]
    assert pair.target("maps") == ["rw-p"], "a peer may still reach it"
    pair.target("give_up", at=4096, length=4096)
    assert pair.target("peek", at=4096) == "00" * 8


@ALONE
def test_many_regions_leave_descriptors(nobodys):
    """Each window costs one: a quarter of those that the program may have."""
    side = Side(nobodys, "n1", under=["prlimit", "--nofile=100:100"])
    side("register_pages", number=150)
    assert len(side("maps")) == 25
    side("deregister_pages")
    assert not side("maps")
    side("register_pages", number=10)
    assert len(side("maps")) == 10
    side.end()


def test_turned_off(fabric):
    pair = Pair(fabric, windows=("0",))
    before = operations(fabric)
    assert set(pair.it("write", times=200, **pair.to())) == {OK}
    assert operations(fabric) == before
    pair.end()


@pytest.mark.parametrize("program", ["ib_write_lat", "ib_read_lat", "ib_atomic_lat",
                                     "ib_write_bw", "ib_read_bw", "ib_atomic_bw"])
def test_perftest_uses_windows(fabric, program):
    before = operations(fabric)
    fabric.pair(program, "-n", "100000" if program.endswith("bw") else "200000")
    assert operations(fabric) - before > 1000


@pytest.fixture(scope="module")
def quiet():
    """No manager runs: nobody else's packets are counted."""
    with Fabric("pair", sm="none") as made:
        made.run("n1", "softib-sm", "--once")
        yield made


@pytest.mark.parametrize("windows", "01")
def test_a_read_counts_as_its_packets_do(quiet, monkeypatch, windows):
    monkeypatch.setitem(quiet.env, "SOFTIB_WINDOWS", windows)
    before, n = operations(quiet), 50000  # a window comes meanwhile
    _, ports = counted(quiet, "ib_read_bw", "-n", n, "-s", 8192)
    both_ends_agree(ports)
    assert (operations(quiet) > before) == (windows == "1")
    # a request with its RETH; two responses of 4096 bytes, each with an AETH
    want = {"xmit_packets": n, "rcv_packets": 2 * n,
            "xmit_bytes": n * (24 + 16), "rcv_bytes": n * (8192 + 2 * (24 + 4))}
    # a stall of the machine may have packets sent again: by packets any, before a window
    # comes those of the 16 READs that are under way
    most = {what: want[what] * (1 + 16 / n) if windows == "1" else math.inf for what in want}
    assert all(want[what] <= ports["n2", 1][what] <= most[what] for what in want), ports


def test_a_write_counts_one_acknowledgement(quiet):
    before = operations(quiet)
    _, ports = counted(quiet, "ib_write_lat", "-n", 5000, "-s", 8192)
    both_ends_agree(ports)
    done = operations(quiet) - before
    # each side writes 5000 messages of two packets; by packets, one
    # acknowledgement may stand for several messages
    acknowledgements = sum(ports[node, 1]["xmit_packets"] for node in ("n1", "n2")) - 2 * 10000
    assert done > 0
    assert acknowledgements >= done
