# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Live faults: programs that no one here wrote through loss, corruption,
reordering and outages. RC loses nothing; UC and UD lose what the fault log
says, no more; what takes a link away is repaired by the subnet manager."""
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from interop.fabric import BUILD, TIMEOUT, Failed, Fabric, _ports, wait_until
from interop.test_perftest import table_rows

HERE = Path(__file__).parent
TOP = HERE.parents[1]
NUMBERED = HERE / "numbered.py"
COUNT = 2000

LOSSES = ["drop 1% seed=1", "corrupt 0.1% seed=2", "corrupt 1% crc=vcrc seed=9", "reorder 3 2% seed=3",
          "duplicate 1% seed=4", "delay 20us jitter=20us seed=5"]


@pytest.fixture(autouse=True)
def no_rule_stays(request):
    yield
    for name in ("pair", "quiet", "tree"):
        if name in request.fixturenames:
            request.getfixturevalue(name).softib("fault", "clear", "all")


def add(fabric, rule, *options):
    out = fabric.softib("fault", "add", *rule.split(), *options)
    return int(out.split(":")[0])


def rule_of(fabric, rule_id):
    return next(r for r in fabric.json("fault", "list")["rules"] if r["id"] == rule_id)


def counter(fabric, node, name, port=1):
    rows = fabric.json("counters", f"{node}:{port}")["counters"]
    return rows[0][name]


# --- messages that bear their number ---------------------------------------

class Numbered:
    """A sender on n2, a receiver on n1."""

    def __init__(self, fabric, kind, count=COUNT, rnr_retry=7):
        self.fabric = fabric
        self.ends = [fabric.start(node, "/usr/bin/python3", NUMBERED, role, kind, str(count),
                                  str(rnr_retry), stdin=subprocess.PIPE)
                     for node, role in (("n1", "receive"), ("n2", "send"))]
        addresses = [self.line(end) for end in self.ends]
        for end, peer in zip(self.ends, reversed(addresses)):
            self.say(end, peer)
        assert self.line(self.ends[0]) == "ready"
        self.qpns = [int(a.split()[1]) for a in addresses]

    def line(self, end):
        text = end.stdout.readline().strip()
        if not text:
            raise Failed(end.communicate(timeout=30)[0])
        return text

    def say(self, end, text):
        end.stdin.write(text + "\n")
        end.stdin.flush()

    def run(self):
        """What came, and the statuses of what was sent."""
        receiver, sender = self.ends
        self.say(sender, "go")
        statuses = self.line(sender)
        try:
            statuses = json.loads(statuses)
        except json.JSONDecodeError:
            raise Failed(statuses + self.fabric.finish(sender)) from None
        self.say(receiver, "stop")
        came = self.line(receiver)
        for end in self.ends:
            end.communicate(timeout=60)
        if not came.startswith("["):
            raise Failed(came)
        return json.loads(came), {int(k): n for k, n in statuses.items()}


@pytest.mark.parametrize("rule", LOSSES)
def test_rc_loses_nothing(pair, rule):
    ids = [add(pair, f"link {link} {rule}") for link in ("n1:1", "n2:1")]
    came, statuses = Numbered(pair, "RC").run()
    assert statuses == {0: COUNT}
    assert came == list(range(COUNT))
    assert sum(rule_of(pair, i)["hits"] for i in ids), "the rule was never at work"


@pytest.mark.parametrize("kind", ["UC", "UD"])
@pytest.mark.parametrize("action", ["drop 1%", "corrupt 0.5%", "corrupt 1% crc=vcrc"])
def test_datagrams_lose_what_the_log_says(pair, kind, action):
    test = Numbered(pair, kind)
    rule = add(pair, f"link n2:1 {action} seed=11 dir=out op=send transport={kind.lower()}")
    came, statuses = test.run()
    assert statuses == {0: COUNT}, "the sender of a datagram does not learn of its loss"
    hits = pair.json("fault", "log", str(rule))
    lost = sorted(set(range(COUNT)) - set(came))
    assert len(came) == len(set(came)), "one came twice"
    if "vcrc" in action:  # bits that the ICRC does not cover spoil nothing
        assert len(lost) <= len(hits) and len(lost) >= len(hits) // 2
        return
    # the first PSN is the QP's own; the log's are as far from one another as
    # the numbers that are missing
    assert hits and len(hits) == len(lost)
    psns = [h["psn"] for h in hits]
    assert [(p - psns[0]) & 0xffffff for p in psns] == [n - lost[0] for n in lost]
    assert {h["bytes"] for h in hits} == {8 + 12 + 64 + (8 if kind == "UD" else 0)}


def test_same_seed_same_losses(pair):
    patterns = []
    for seed in ("77", "77", "78"):
        test = Numbered(pair, "UC", 1000)
        rule = add(pair, "link n2:1 drop 5% dir=out op=send", "--seed", seed)
        came, _ = test.run()
        patterns.append(came)
        pair.softib("fault", "clear", str(rule))
    assert patterns[0] == patterns[1] != patterns[2]
    assert len(patterns[0]) < 1000


def test_a_queue_pair_only(pair):
    """One of two connections loses; the rule is gone with its queue pair."""
    spared, hit = Numbered(pair, "UC", 500), Numbered(pair, "UC", 500)
    add(pair, f"qp n2:{hit.qpns[1]} drop nth=7 dir=out")
    add(pair, f"qp n1:{hit.qpns[0]} drop nth=100 dir=in")
    assert spared.run()[0] == list(range(500))
    came, _ = hit.run()
    assert sorted(set(range(500)) - set(came)) == [6, 100]
    wait_until(lambda: not pair.json("fault", "list")["rules"], "rules outlive their QP")


def test_delivered_corruption_is_seen_by_the_program(pair):
    """crc=fixed: what a switch with bad memory does to a datagram."""
    test = Numbered(pair, "UD", 100)
    add(pair, "link n2:1 corrupt nth=5 offset=60 mask=0x01 crc=fixed transport=ud qpn=2-0xfffffe")
    with pytest.raises(Failed, match="message 4 is not what was sent"):
        test.run()


def test_counters_tell_where(quiet):
    """Lost: it left and did not come. Spoiled: the next port has an error."""
    for action, errors in (("drop", 0), ("corrupt", 1)):
        test = Numbered(quiet, "UC", 300)
        before = [counter(quiet, "n2", "xmit_packets"), counter(quiet, "s1", "rcv_packets", 2),
                  counter(quiet, "s1", "rcv_errors", 2), counter(quiet, "s1", "symbol_errors", 2)]
        rule = add(quiet, f"link n2:1 {action} every=10 dir=out transport=uc")
        test.run()
        after = [counter(quiet, "n2", "xmit_packets"), counter(quiet, "s1", "rcv_packets", 2),
                 counter(quiet, "s1", "rcv_errors", 2), counter(quiet, "s1", "symbol_errors", 2)]
        sent, came, bad, symbols = (a - b for a, b in zip(after, before))
        assert sent - came == 30 and bad == symbols == 30 * errors
        quiet.softib("fault", "clear", str(rule))


# --- perftest and rdma-core's tests -----------------------------------------

RC_PROGRAMS = ["ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_read_bw", "ib_atomic_lat"]


@pytest.mark.parametrize("program", RC_PROGRAMS)
def test_perftest_rc_through_all_at_once(pair, program):
    """1 % loss, 0.1 % corruption and reordering on both links: it ends well."""
    ids = [add(pair, f"link {link} {rule}") for link in ("n1:1", "n2:1")
           for rule in ("drop 1% seed=21", "corrupt 0.1% seed=22", "reorder 3 1% seed=23")]
    size = [] if "atomic" in program else ["-s", "16384"]
    _, out = pair.pair(program, "-n", "50" if "_lat" in program else "100", "-u", "14", *size)
    assert table_rows(out), out
    assert sum(rule_of(pair, i)["hits"] for i in ids)


def test_perftest_uc_loses_what_the_log_says(quiet):
    """ib_write_bw needs no answer: what left less what was lost has come."""
    names = [("n2", "xmit_packets", 1), ("n1", "rcv_packets", 1)]
    rule = add(quiet, "link n2:1 drop 1% seed=31 dir=out transport=uc")
    before = [counter(quiet, *n[:2], port=n[2]) for n in names]
    quiet.pair("ib_write_bw", "-c", "UC", "-n", "500", "-s", "16384")
    sent, came = (counter(quiet, *n[:2], port=n[2]) - b for n, b in zip(names, before))
    assert rule_of(quiet, rule)["hits"] == sent - came > 0


def test_rdma_core_rc_through_loss(pair):
    """rdma-core's own tests, those that move data by RC, over a lossy adapter
    port (they talk to themselves: the packets turn round inside the port)."""
    ids = [add(pair, f"port n1:1 {rule} transport=rc")
           for rule in ("drop 1% seed=41", "reorder 2 1% seed=42", "corrupt 0.1% seed=43")]
    out = pair.run("n1", "/usr/bin/python3", TOP / "tests/conformance/run", "--build", BUILD,
                   "--log", pair.home / "conformance.log", "test_cq", "test_qpex", "test_relaxed",
                   "test_shared", timeout=300)
    assert " 0 regressions" in out, out
    assert rule_of(pair, ids[0])["matched"] > 100
    assert sum(rule_of(pair, i)["hits"] for i in ids), "nothing was lost"


# --- limits -------------------------------------------------------------------

def test_bandwidth_is_the_limit(pair):
    add(pair, "link n1:1 bandwidth 20MB/s")
    _, out = pair.pair("ib_write_bw", "-n", "100", "-s", "65536", "-Q", "1")
    average = float(table_rows(out)[-1][3]) * 1.048576  # perftest's MB are MiB
    assert 0.2 * 20 < average < 1.1 * 20, out


def test_latency_is_at_least_the_delay(pair):
    add(pair, "link n1:1 delay 2ms")
    _, out = pair.pair("ib_send_lat", "-n", "50", "-s", "8")
    assert float(table_rows(out)[-1][2]) >= 2000, out  # the least of all, in us, one way


def test_delays_keep_the_order(pair):
    """Jitter too: what is late on one link comes in order to the next."""
    add(pair, "link n2:1 delay 20us jitter=50us seed=51")
    second = add(pair, "link n1:1 delay 20us jitter=50us seed=52 dir=in transport=uc")
    came, _ = Numbered(pair, "UC", 500).run()
    assert came == list(range(500))
    psns = [h["psn"] for h in pair.json("fault", "log", str(second))]
    assert [(p - psns[0]) & 0xffffff for p in psns] == list(range(500))


def test_short_cuts_come_back(pair):
    """A rule takes effect on the next request of a running program, and with it
    gone the packets take their lane again."""
    before = counter(pair, "n2", "xmit_packets")
    rule = add(pair, "link n2:1 note dir=out transport=rc")
    pair.pair("ib_send_bw", "-n", "200", "-s", "64")
    noted = rule_of(pair, rule)["hits"]
    assert noted >= 200
    assert counter(pair, "n2", "xmit_packets") - before >= noted
    pair.softib("fault", "clear", "all")
    pair.pair("ib_send_bw", "-n", "200", "-s", "64")
    assert pair.json("fault", "list")["rules"] == []


# --- receiver not ready ---------------------------------------------------------

def test_rnr_storm_passes(pair):
    """perftest asks for endless RNR retries: 50 refusals only cost time."""
    rule = add(pair, "link n1:1 rnr timer=1 count=50 dir=in")
    _, out = pair.pair("ib_send_bw", "-n", "200", "-s", "64")
    assert table_rows(out)
    assert rule_of(pair, rule)["hits"] == 50


@pytest.mark.parametrize("retries", [1, 7])
def test_rnr_exceeded(pair, retries):
    """A finite rnr_retry ends in IBV_WC_RNR_RETRY_EXC_ERR (13) and the rest is
    flushed (5); 7 goes on until the rule is spent. The receives are there."""
    test = Numbered(pair, "RC", 20, retries)
    # requests that follow the refused one match as well: so many more than 7
    add(pair, f"link n1:1 rnr timer=1 after=10 first={100 if retries == 7 else 100000}")
    came, statuses = test.run()
    if retries == 7:
        assert came == list(range(20)) and statuses == {0: 20}
    else:
        assert came == list(range(10))
        assert statuses == {0: 10, 13: 1, 5: 9}


# --- management -------------------------------------------------------------------

def test_mads_are_lost_by_class(pair):
    """The answer of the subnet administrator is lost: saquery says so."""
    rule = add(pair, "class sa drop method=0x81-0xff count=1")
    ask = ["saquery", "-t", "300", "--src-to-dst", "1:3"]
    assert "timed out" in pair.run("n2", *ask, check=False)
    assert rule_of(pair, rule)["hits"] == 1
    assert "dlid" in pair.run("n2", *ask)


def test_port_errors_show_in_perfquery(pair):
    add(pair, "port n1:1 errors local-integrity-errors add=3 count=1 transport=ud")
    pair.run("n1", "saquery", "-t", "500", "PR", check=False)
    out = pair.run("n1", "perfquery")
    assert re.search(r"LocalLinkIntegrityErrors:\.*3\b", out), out


# --- outages --------------------------------------------------------------------------

def test_a_link_flaps(pair):
    downed = counter(pair, "s1", "link_downed", 2)
    rule = add(pair, "link n2:1 down for=50ms period=300ms count=3")
    wait_until(lambda: rule_of(pair, rule)["hits"] == 3, "it did not fall three times")
    pair.softib("wait", "--timeout", "60")
    assert counter(pair, "s1", "link_downed", 2) == downed + 3
    pair.pair("ib_send_lat", "-n", "50")


def test_a_link_that_a_rule_holds_cannot_be_plugged_in(pair):
    rule = add(pair, "link n2:1 down")
    done = subprocess.run([BUILD / "bin/softib", "link", "s1:2", "up"], env=pair.env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"softib fault clear {rule}" in done.stderr, done
    pair.softib("fault", "clear", str(rule))
    pair.softib("wait", "--timeout", "60")


def test_the_log_says_what_was_hit(pair):
    fail = add(pair, "node n1 fail any count=1")
    pair.run("n1", "ibv_rc_pingpong", check=False)
    down = add(pair, "link n2:1 down")
    pair.softib("fault", "clear", str(down))
    pair.softib("wait", "--timeout", "60")
    event = add(pair, "port n1:1 event port-err")
    hits = {h["rule"]: h for h in pair.json("fault", "log")}
    assert (hits[fail]["what"], hits[fail]["from"]) == ("context", "n1") and "to" not in hits[fail]
    assert (hits[down]["from"], hits[down]["to"]) == ("n2:1", "s1:2")
    assert (hits[event]["what"], hits[event]["from"]) == ("port-err", "n1:1")
    lines = pair.softib("fault", "log")
    assert re.search(r"fail +n1  context$", lines, re.M), lines
    assert re.search(r"down +n2:1 > s1:2$", lines, re.M), lines
    assert re.search(r"event +n1:1  port-err$", lines, re.M), lines


def test_the_list_says_what_holds_now(pair):
    assert "no rules" in pair.softib("fault", "list")
    drop, down = add(pair, "all drop class=dm"), add(pair, "link n2:1 down for=1ms")
    wait_until(lambda: not rule_of(pair, down)["on"], "it did not come back")
    held = add(pair, "link n1:1 down")
    assert rule_of(pair, held)["on"] and "on" not in rule_of(pair, drop)
    lines = pair.softib("fault", "list")
    assert re.search(r"1  off  link n2:1 down", lines) and re.search(r"1  on   link n1:1 down", lines), lines
    # a rule that is not there does not keep the others
    done = subprocess.run([BUILD / "bin/softib", "fault", "clear", "9999", str(held), str(down), str(drop)],
                          env=pair.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no rule 9999" in done.stderr, done
    assert pair.json("fault", "list")["rules"] == []
    pair.softib("wait", "--timeout", "60")


def test_a_switch_dies_and_comes_back(pair):
    rule = add(pair, "node s1 death")
    states = {p["state"] for n in pair.json("topo")["nodes"] if n["kind"] == "ca" for p in n["ports"]}
    assert states == {"Down"}
    assert next(n for n in pair.json("topo")["nodes"] if n["name"] == "s1")["lid"] == 0
    pair.softib("fault", "clear", str(rule))
    pair.softib("wait", "--timeout", "60")
    pair.pair("ib_send_lat", "-n", "50")


def test_traffic_goes_on_over_the_new_route(tree):
    """A link of a fat tree is cut under ib_write_bw: it goes on when the subnet
    manager has acted, and the times are printed. The example of docs/FAULTS.md."""
    port = next(_ports)
    argv = ["ib_write_bw", "-d", "softib0", "-p", port, "-s", "4096", "-D", "5", "-u", "14"]
    server = tree.serve("n1", *argv, port=port)
    client = tree.start("n3", *argv, "127.0.0.1")
    out = tree.softib("fault", "run", "--timeout", "30", str(TOP / "docs/examples/reroute.fault"))
    print(out)
    assert table_rows(tree.finish(client)), "the client did not end well"
    assert client.returncode == 0
    times = {w: float(re.search(f"from cut to {w}: ([0-9.]+) ms", out)[1]) for w in ("tables", "first")}
    assert 0 < times["tables"] < times["first"]
    tree.finish(server)


# --- scenarios and bad input --------------------------------------------------------------

def test_a_scenario(pair):
    path = pair.home / "scenario"
    path.write_text("# triggers of all kinds\n"
                    "when subnet up add loss: link n1:1 note transport=rc\n"
                    "after 20 packets on n1:1 add cut: link n2:1 down for=200ms\n"
                    "when cut hit say it fell\n"
                    "when port n2:1 down link n1:1 down\n"
                    "when port n1:1 down link n1:1 up\n"
                    "when subnet up clear loss\n"
                    "after 10ms say done\n")
    server = pair.start("n2", "true")  # anything: packets come from the SM
    process = subprocess.Popen([BUILD / "bin/softib", "fault", "run", "--timeout", "60", path],
                               env=pair.env, stdout=subprocess.PIPE, text=True)
    pair.running.append(process)
    while process.poll() is None:
        pair.run("n1", "smpquery", "nodeinfo", "-D", "0,1", check=False)
    out = process.stdout.read()
    assert process.returncode == 0, out
    assert "it fell" in out and "done" in out
    assert pair.json("fault", "list")["rules"] == []
    pair.finish(server)


def hear_signals():
    """Whatever those who started the tests ignore, as nohup does."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", ["HUP", "INT", "QUIT", "TERM"])
def test_a_signal_clears_the_rules(pair, number):
    path = pair.home / "endless"
    path.write_text("add loss: link n1:1 note\nsay added\nafter 1000s say never\n")
    run = subprocess.Popen([BUILD / "bin/softib", "fault", "run", path], env=pair.env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_signals)
    pair.running.append(run)
    while "added" not in (line := run.stdout.readline()):
        assert line, run.stderr.read()
    assert len(pair.json("fault", "list")["rules"]) == 1
    run.send_signal(getattr(signal, f"SIG{number}"))
    _, err = run.communicate(timeout=TIMEOUT)
    assert run.returncode == 1 and "by a signal" in err and "rules are cleared" in err, err
    assert pair.json("fault", "list")["rules"] == []


def test_a_reader_that_goes_clears_the_rules(pair):
    path = pair.home / "chatter"
    path.write_text("add loss: link n1:1 note\nsay added\nwhen port n2:1 down say one\n"
                    "after 1000s say never\n")
    run = subprocess.Popen([BUILD / "bin/softib", "fault", "run", path], env=pair.env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pair.running.append(run)
    while "added" not in (line := run.stdout.readline()):
        assert line, run.stderr.read()
    run.stdout.close()
    pair.softib("link", "n2:1", "down")
    assert run.wait(TIMEOUT) == 1
    pair.softib("link", "n2:1", "up")
    assert "cannot write the output: Broken pipe" in run.stderr.read()
    assert pair.json("fault", "list")["rules"] == []


BAD_RULES = [("link n9:1 drop", 'no node "n9"'), ("link n1:2 drop", "expected 1 to 1"),
             ("qp n1:0xabcdef drop", "no queue pair"), ("all explode", "expected drop, duplicate"),
             ("all drop rate=2", "a share such as 1%"), ("", "the rule is empty"),
             ("node n1 death", "expected a switch"), ("all delay", "a time such as"),
             ("x" * 600, "too long")]


@pytest.mark.parametrize("rule,message", BAD_RULES)
def test_bad_rules_say_what_would_do(pair, rule, message):
    done = subprocess.run([BUILD / "bin/softib", "fault", "add", *rule.split()], env=pair.env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert pair.json("fault", "list")["rules"] == []


def test_a_node_with_blanks_in_its_description(pair):
    description = next(n["desc"] for n in pair.json("topo")["nodes"] if n["name"] == "n2")
    assert " " in description
    for words in (["link", f"{description}:1", "drop", "count=1"],
                  [f'link "{description}:1" drop count=1']):
        assert ": link n2:1 drop count=1" in pair.softib("fault", "add", *words)


BAD_LINES = [("at 2x say", "expected a time"), ("when x hit say", 'no rule "x"'),
             ("add l link n1:1 drop", "NAME: RULE"), ("add l: link n1:1 drp", "no action"),
             ("after 10 things on n1:1 say", "after what?"), ("jump", "expected add, clear"),
             ("when port n1:1 sad say", "no state"), ("link n1:1 askew", "expected up or down"),
             ("link n1:7 down", "n1 has ports 1 to 1"), ("link n9:1 down", 'no node "n9"'),
             ("after 5 packets on s1:7 say", "s1 has ports 1 to 2"),
             ("when port n1:7 down say", "n1 has ports 1 to 1")]


@pytest.mark.parametrize("line,message", BAD_LINES)
def test_bad_scenarios_name_the_line(pair, line, message):
    path = pair.home / "bad"
    path.write_text(f"say first\n{line}\n")
    done = subprocess.run([BUILD / "bin/softib", "fault", "run", path], env=pair.env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{path}:2: " in done.stderr and message in done.stderr
    assert "first" not in done.stdout, "something was done although the file is bad"


@pytest.mark.parametrize("text, says", [
    (b"say first\nsay \x1b[31m\n", "2: a byte 0x1b; expected text"),
    (b"say a\0b\n", "1: a byte 0x00; expected text"),
    (b"say " + b"x" * 800, "1: a line of more than 698 bytes"),
    (b"", " no line in it does anything"),
], ids=["escape", "zero", "long", "empty"])
def test_a_scenario_is_text(pair, text, says):
    path = pair.home / "binary"
    path.write_bytes(text)
    done = subprocess.run([BUILD / "bin/softib", "fault", "run", path], env=pair.env,
                          capture_output=True, check=False)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.decode().startswith(f"softib: {path}:{says}")


def test_a_scenario_may_come_from_windows(pair):
    path = pair.home / "crlf"
    path.write_bytes(b"say hello\r\n\r\nlink n1:1 down\r\nlink n1:1 up\r\nsay bye")
    assert pair.softib("fault", "run", str(path)).endswith(" bye\n")
    pair.softib("wait")


def test_a_log_without_hits_says_so():
    with Fabric("pair", sm="none") as f:
        assert f.softib("fault", "log") == "no hits\n"
        assert f.softib("fault", "log", "7") == "no hits of that rule\n"
        assert f.json("fault", "log") == []


def test_a_scenario_needs_a_cable_to_pull(tmp_path):
    net = tmp_path / "net"
    net.write_text('Switch 2 "a"\n[1] "b"[1]\n\nHca 2 "b"\n[1] "a"[1]\n')
    (tmp_path / "bad").write_text("say first\nlink a:2 down\n")
    with Fabric(str(net), sm="none") as f:
        done = subprocess.run([BUILD / "bin/softib", "fault", "run", tmp_path / "bad"], env=f.env,
                              capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{tmp_path}/bad:2: no cable at a:2" in done.stderr, done.stderr
    assert not done.stdout


@pytest.mark.parametrize("words, status", [(["seed=0"], 1), (["--seed", "0"], 64),
                                           (["--seed", "x"], 64)])
def test_bad_seeds(pair, words, status):
    done = subprocess.run([BUILD / "bin/softib", "fault", "add", "all", "drop", *words],
                          env=pair.env, capture_output=True, text=True, check=False)
    assert done.returncode == status and "seed" in done.stderr
