# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""XRC domains that programs of a node share by a file: what arrives at one program's target
reaches the SRQ of another."""
import pytest

from interop.fabric import BUILD, Fabric
from interop.told import Told

PROGRAM = BUILD / "tests/programs/xrc_share"


class End(Told):
    """A program with one end of a connection."""

    def __init__(self, fabric, node):
        super().__init__(fabric, node, PROGRAM)


@pytest.fixture(scope="module")
def pair():
    with Fabric() as fabric:
        yield fabric


class Shared:
    """Two receivers on n1 with a domain, a target of the first, an initiator on n2."""

    def __init__(self, fabric, path):
        self.owner, self.other = End(fabric, "n1"), End(fabric, "n1")
        self.sender = End(fabric, "n2")
        for end in self.receivers():
            assert end.do("domain", path) == "joined"
        assert self.sender.do("domain", path) == "joined"
        self.srqs = [end.numbers("srq") for end in self.receivers()]
        self.target = self.owner.numbers("target")
        self.connect()

    def connect(self):
        initiator = self.sender.numbers("initiator")
        assert self.owner.do("connect", *initiator) == "connected"
        assert self.sender.do("connect", *self.target) == "connected"

    def receivers(self):
        return [self.owner, self.other]

    def numbers(self):
        return [srq[0] for srq in self.srqs]

    def send(self, count, ends=None):
        """@count messages to each of the ends, in turn."""
        ends = ends or self.receivers()
        numbers = [self.srqs[self.receivers().index(end)][0] for end in ends]
        for end in ends:
            end.tell("receive", count)
        assert self.sender.do("send", count, *numbers) == f"sent {count * len(numbers)}"
        return [end.hear() for end in ends]

    def end(self):
        """Whatever they are doing: a receiver may wait for what never comes."""
        for end in [self.sender] + self.receivers():
            end.die()


@pytest.fixture
def shared(pair, tmp_path):
    ends = Shared(pair, tmp_path / "domain")
    yield ends
    ends.end()


def test_messages_reach_the_program_whose_srq_they_name(shared):
    assert shared.send(2000) == ["received 2000"] * 2
    assert shared.send(1000, [shared.other]) == ["received 3000"]
    assert shared.send(1000, [shared.owner]) == ["received 3000"]
    assert shared.send(100) == ["received 3100"] * 2


def test_lost_packets_are_sent_again_to_the_right_program(pair, shared):
    """Duplicates, gaps and lost acknowledgements: each program has every message once."""
    rules = ["link n1:1 drop 2% seed=3", "link n2:1 drop 2% seed=4", "link n2:1 reorder 2% seed=5"]
    for rule in rules:
        pair.softib("fault", "add", *rule.split())
    assert shared.send(300) == ["received 300"] * 2
    for count in 1, 2:
        for srq in shared.srqs:
            assert shared.sender.numbers("add", 20, *srq) == [20 * count]
    pair.softib("fault", "clear", "all")
    assert shared.send(50) == ["received 350"] * 2


def test_a_domain_is_joined_while_its_target_receives(pair, tmp_path):
    """Lanes are in use when the second program joins."""
    owner, sender = End(pair, "n1"), End(pair, "n2")
    path = tmp_path / "domain"
    assert owner.do("domain", path) == sender.do("domain", path) == "joined"
    first, target = owner.numbers("srq"), owner.numbers("target")
    assert owner.do("connect", *sender.numbers("initiator")) == "connected"
    assert sender.do("connect", *target) == "connected"
    owner.tell("receive", 500)
    assert sender.do("send", 500, first[0]) == "sent 500"
    assert owner.hear() == "received 500"
    other = End(pair, "n1")
    assert other.do("domain", path, "excl") == "EINVAL"
    assert other.do("domain", path) == "joined"
    second = other.numbers("srq")
    owner.tell("receive", 500)
    other.tell("receive", 500)
    assert sender.do("send", 500, first[0], second[0]) == "sent 1000"
    assert owner.hear() == "received 1000"
    assert other.hear() == "received 500"
    for end in sender, other, owner:
        end.end()


def test_atomics_and_reads_use_the_memory_of_the_srqs_program(shared):
    for count in 1, 2:
        for srq in shared.srqs:
            assert shared.sender.numbers("add", 100, *srq) == [100 * count]
    # a key of the one is none of the other's
    srqn, (_, rkey, address) = shared.srqs[0][0], shared.srqs[1]
    assert shared.sender.do("add", 1, srqn, rkey, address) == "remote access error"


def test_programs_that_wait_for_each_others_targets(pair, tmp_path):
    """Each of two programs sends by a target of its own to itself and to the other, so that the
    state of each target goes to and fro while its holder has packets for the other's."""
    ends = [End(pair, "n1"), End(pair, "n1")]
    numbers = []
    for end in ends:
        assert end.do("domain", tmp_path / "domain") == "joined"
        numbers.append(end.numbers("srq")[0])
    for end in ends:
        target, initiator = end.numbers("target"), end.numbers("initiator")
        assert end.do("connect", *target) == "connected"
        assert end.do("swap") == "swapped"
        assert end.do("connect", *initiator) == "connected"
        assert end.do("swap") == "swapped"
    for number in range(1, 11):
        for end in ends:  # their SRQs have room for all of it
            end.tell("send", 8, *numbers)
        assert [end.hear() for end in ends] == ["sent 16"] * 2
        for end in ends:
            assert end.do("receive_any", 16) == f"received {16 * number}"
    for end in ends:
        end.end()


def test_the_death_of_a_receiver_leaves_the_others(shared):
    assert shared.send(300) == ["received 300"] * 2
    shared.other.die()
    assert shared.send(300, [shared.owner]) == ["received 600"]


def test_a_target_outlives_its_creator(shared):
    assert shared.other.do("open", shared.target[0]) == "opened"
    assert shared.send(300) == ["received 300"] * 2
    shared.owner.die()
    assert shared.send(300, [shared.other]) == ["received 600"]
    assert shared.other.do("state").split()[0] == "3"
    assert shared.other.do("destroy") == "0"
    assert shared.other.do("leave") == "0"
    assert shared.sender.do("send", 1, shared.srqs[1][0]) == "transport retry counter exceeded"


def test_a_target_ends_with_its_last_handle(shared):
    assert shared.other.do("open", shared.target[0] + 1) == "EINVAL"
    assert shared.other.do("open", shared.target[0]) == "opened"
    assert shared.owner.do("destroy") == "0"
    # its creator has closed it, and receives as before
    assert shared.send(300) == ["received 300"] * 2
    assert shared.other.do("destroy") == "0"
    assert shared.other.do("open", shared.target[0]) == "EINVAL"


def test_events_of_a_target_reach_all_who_opened_it(shared):
    assert shared.other.do("open", shared.target[0]) == "opened"
    assert shared.send(10) == ["received 10"] * 2
    assert shared.sender.do("send", 1, 0xabcdef) == "remote invalid request error"
    for end in shared.receivers():
        assert end.do("event") == "invalid request local work queue error"
        assert end.do("state").split()[0] == "6"
