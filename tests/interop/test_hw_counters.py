# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""hw_counters: what queue pairs count (retries, NAKs, time-outs), as sysfs, iproute2's rdma
and `softib counters` show it, beside the hits of the fault that causes it."""
import re

import pytest

from interop.fabric import Failed
from interop.test_faults import COUNT, Numbered, add, no_rule_stays, rule_of  # noqa: F401

PORT = "/sys/class/infiniband/softib0/ports/1/hw_counters"


def counted(fabric, node):
    """By name, as `softib counters` says."""
    return fabric.json("counters", f"{node}:1")["counters"][0]


class Growth:
    """Of the counters of the requester (n2) and the responder (n1)."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.before = {node: counted(fabric, node) for node in ("n1", "n2")}

    def of(self, node, *names):
        now = counted(self.fabric, node)
        return [now[name] - self.before[node][name] for name in names]


def test_a_loss(pair):
    """Of requests: the responder sees a gap, NAKs it once, and the requester sends again."""
    growth = Growth(pair)
    rule = add(pair, "link n2:1 drop 1% seed=1 dir=out op=send transport=rc")
    came, statuses = Numbered(pair, "RC").run()
    assert statuses == {0: COUNT} and len(came) == COUNT
    naks, timeouts, retries, failed = growth.of("n2", "rcvd_seq_err", "local_ack_timeout_err",
                                                "completer_retry_err", "retry_exceeded_err")
    assert naks > 0 and retries == naks + timeouts <= rule_of(pair, rule)["hits"]
    assert growth.of("n1", "out_of_seq_request")[0] >= naks  # each packet behind the gap is one
    assert not failed and growth.of("n1", "completer_retry_err") == [0]


def test_acknowledgements_that_are_lost(pair):
    """The requester sends again what has arrived."""
    growth = Growth(pair)
    add(pair, "link n1:1 drop 30% seed=2 dir=out op=ack transport=rc")
    came, statuses = Numbered(pair, "RC").run()
    assert statuses == {0: COUNT} and len(came) == COUNT
    assert growth.of("n2", "local_ack_timeout_err")[0] > 0
    assert growth.of("n1", "duplicate_request")[0] > 0
    assert growth.of("n1", "out_of_seq_request") == [0]


def test_a_receiver_that_is_not_ready(pair):
    growth = Growth(pair)
    rule = add(pair, "link n2:1 rnr 2% seed=3 op=send transport=rc")
    came, statuses = Numbered(pair, "RC").run()
    assert statuses == {0: COUNT} and len(came) == COUNT
    hits = rule_of(pair, rule)["hits"]
    assert 0 < growth.of("n1", "send_rnr_err")[0] <= hits
    assert growth.of("n2", "rcvd_rnr_err") == growth.of("n1", "send_rnr_err")
    assert growth.of("n2", "retry_rnr_exceeded_err") == [0]


def test_retries_that_are_exhausted(pair):
    growth = Growth(pair)
    add(pair, "link n2:1 drop 100% dir=out op=write transport=rc")
    with pytest.raises(Failed):
        pair.pair("ib_write_bw", "-n", "100", "-u", "8")
    assert growth.of("n2", "retry_exceeded_err") == [1]
    assert growth.of("n2", "local_ack_timeout_err")[0] > growth.of("n2", "completer_retry_err")[0] > 0
    pair.softib("fault", "clear", "all")
    growth = Growth(pair)
    add(pair, "link n2:1 rnr 100% op=send transport=rc")
    _, statuses = Numbered(pair, "RC", count=10, rnr_retry=2).run()
    assert 0 not in statuses
    assert growth.of("n2", "retry_rnr_exceeded_err", "rcvd_rnr_err") == [1, 3]


def test_perftest_reports_them(pair):
    """Its option reads them before and after its run, and prints the difference. Its descriptors stay open, so
    what it reads may be a moment old (test_sysfs.py)."""
    growth = Growth(pair)
    add(pair, "link n2:1 drop 1% seed=5 dir=out op=write transport=rc")
    names = ["rcvd_seq_err", "local_ack_timeout_err", "completer_retry_err"]
    _, out = pair.pair("ib_write_bw", "-n", "2000", "-s", "4096", "-u", "8",
                       "--report-counters=" + ",".join(f"hw_counters/{name}" for name in names))
    said = dict(re.findall(r"hw_counters/(\w+)=(\d+)", out))
    assert int(said["completer_retry_err"]) > 0, out
    assert all(int(said[name]) <= grown for name, grown in zip(names, growth.of("n2", *names))), out


def test_each_way_to_read_them_says_the_same(quiet):
    """What programs have counted stays when they have ended; each of the names is one of the kernel's drivers."""
    add(quiet, "link n2:1 drop 1% seed=4 dir=out op=send transport=rc")
    Numbered(quiet, "RC").run()
    known = counted(quiet, "n2")
    files = dict(re.findall(r"^(\w+):(\d+)$", quiet.run("n2", "sh", "-c", f"cd {PORT} && grep . *"), re.M))
    assert int(files["rcvd_seq_err"]) > 0
    shown = quiet.run("n2", "rdma", "statistic", "show", "link", "softib0/1").split()
    shown = dict(zip(shown[2::2], shown[3::2]))
    assert shown.keys() == files.keys() and len(files) == 13
    for name in files.keys() - {"sent_pkts", "rcvd_pkts"}:
        assert int(files[name]) == int(shown[name]) == known[name], name


def test_a_switch_has_none(pair):
    """It has no queue pairs."""
    rows = pair.json("counters")["counters"]
    switches = [row for row in rows if "rcvd_seq_err" not in row]
    assert {row["node"] for row in rows} - {row["node"] for row in switches} == {"n1", "n2"}
