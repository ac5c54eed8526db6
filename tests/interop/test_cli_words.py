# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Words on the command line, and what is printed: help, usage errors and
their status, output that cannot be written."""
import os
import subprocess
from pathlib import Path

import pytest

from interop.commands import softib, softibd_of
from interop.fabric import BUILD, OUTSIDE, SOFTIB, TIMEOUT

COMMANDS = ["run", "up", "down", "list", "exec", "pair", "mpirun", "status", "topo", "path",
            "wait", "link", "counters", "resource", "profile"]


# --- help and errors ---

@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples(home, command):
    done = softib(home, command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout and f"softib {command}" in done.stdout


@pytest.mark.parametrize("verb", ["add", "list", "clear", "log", "run"])
def test_help_of_faults_shows_examples(home, verb):
    done = softib(home, "fault", verb, "--help")
    assert done.returncode == 0 and "Example" in done.stdout


@pytest.mark.parametrize("program", ["softib", "softibd", "softib-sm"])
def test_version(program):
    done = subprocess.run([BUILD / "bin" / program, "--version"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"{program} "), done.stderr


def test_without_a_command_it_lists_them(home):
    done = softib(home)
    assert done.returncode == 64
    assert all(f"  {command} " in done.stderr for command in COMMANDS)


@pytest.mark.parametrize("asked, answer", [
    (["help"], ["--help"]), (["-h"], ["--help"]), (["help", "--help"], ["--help"]),
    (["help", "help"], ["--help"]),
    (["help", "up"], ["up", "--help"]), (["up", "-h"], ["up", "--help"]),
    (["help", "run", "bash"], ["run", "--help"]), (["help", "resource", "show"], ["resource", "--help"]),
    (["help", "fault"], ["fault", "--help"]), (["fault", "-h"], ["fault", "--help"]),
    (["help", "fault", "add"], ["fault", "add", "--help"]),
    (["fault", "add", "-h"], ["fault", "add", "--help"]),
], ids=lambda words: " ".join(words))
def test_help_by_other_words(home, asked, answer):
    done, wanted = softib(home, *asked), softib(home, *answer)
    assert done.returncode == 0 and done.stdout == wanted.stdout and not done.stderr


WRONG_WORDS = [  # what can be told from the command line: 64
    (["frob"], "no command 'frob'"),
    (["--frob"], "unrecognized option"),
    (["help", "frob"], "no command 'frob'"),
    (["help", "fault", "frob"], "no 'softib fault frob'"),
    (["run"], "which command?"),
    (["run", "--nodes", "0", "--", "true"], "--nodes takes 1 to 254"),
    (["run", "--adapters", "14", "--", "true"], "--adapters takes 1 to 13"),
    (["run", "--ports", "0", "--", "true"], "--ports takes 1 to 254"),
    (["run", "--ports", "2", "--topology", "./pair", "--", "true"], "for shapes such as star:4"),
    (["run", "--sm", "x", "--", "true"], "softib-sm, opensm or none"),
    (["run", "--timeout", "x", "--", "true"], "--timeout takes 0 to 86400 seconds"),
    (["wait", "--timeout", "99999999"], "--timeout takes 0 to 86400 seconds"),
    (["up", "../x"], "no name for a fabric"),
    (["up", "n" * 80], "no name for a fabric"),
    (["up", ""], "no name for a fabric"),
    (["up", "a", "b"], "one name only"),
    (["down", "../x"], "no name for a fabric"),
    (["status", "--fabric", "../x"], "no name for a fabric"),
    (["status", "n1", "n2"], "expected one node at most"),
    (["exec", "n1"], "expected a node and a command"),
    (["link", "n1"], "no NODE:PORT"),
    (["link", "n1:1"], "up or down"),
    (["link", "n1:1", "sideways"], "expected up or down"),
    (["resource"], "softib resource show"),
    (["topo", "--format", "png"], "text, dot, svg"),
    (["topo", "--topology", "pair", "--json"], "leave out --topology"),
    (["topo", "--topology", "pair", "--format", "json"], "leave out --topology"),
    (["fault"], "Usage: softib fault VERB"),
    (["fault", "frob"], "no 'softib fault frob'"),
    (["fault", "add", "link", "n1:1", "drop", "-1%"], "is negative"),
    (["fault", "add", "--seed", "x", "all", "drop"], "--seed takes a number"),
    (["fault", "list", "x"], "takes no 'x'"),
    (["fault", "clear"], "expected the numbers of rules"),
    (["fault", "clear", "1", "x"], "no rule 'x'"),
    (["fault", "log", "x"], "at most one rule's number"),
    (["fault", "log", "1x"], "at most one rule's number"),
    (["fault", "run"], "which FILE?"),
]


def refused(home, args, status, says):
    """Nothing is printed but why, and nothing was begun."""
    done = softib(home, *args)
    assert done.returncode == status and not done.stdout
    assert says in done.stderr
    assert not softibd_of(home)


@pytest.mark.parametrize("args, says", WRONG_WORDS)
def test_wrong_words(home, args, says):
    refused(home, args, 64, says)


@pytest.mark.parametrize("args, says", [
    (["run", "--topology", "star:0", "--", "true"], "expected star:HOSTS"),
    (["run", "--topology", "/none", "--", "true"], "No such file"),
    (["run", "--topology", "", "--", "true"], '"": No such file'),
    (["run", "--topology", "/dev/null", "--", "true"], "/dev/null: not a regular file"),
    (["run", "--topology", "/", "--", "true"], "/: not a regular file"),
    (["run", "--topology", SOFTIB, "--", "true"], f"{SOFTIB}:1: a zero byte; expected text"),
    (["topo", "--topology", "star:99999999"], "not from 1 to"),
    (["down", "nothing"], "no fabric 'nothing' is up"),
    (["status"], "no fabric is up"),
    (["status", "--fabric", "nothing"], "no fabric is up"),
    (["fault", "clear", "1"], "no fabric is up"),
    (["fault", "add"], "no fabric is up"),
])
def test_what_cannot_be_done(home, args, says):
    refused(home, args, 1, says)


@pytest.mark.parametrize("program, args, says", [
    ("softibd", [], "--dir DIR is missing"),
    ("softibd", ["-d"], "requires an argument"),
    ("softibd", ["-d", ""], "--dir DIR is missing"),
    ("softibd", ["x"], "no argument is expected, such as 'x'"),
    ("softibd", ["-d", "/none", "-r", "x"], "--ready-fd takes the number of an open descriptor"),
    ("softibd", ["-d", "/none", "-r", ""], "--ready-fd takes the number of an open descriptor"),
    ("softibd", ["-d", "/none", "-r", "999"], "--ready-fd takes the number of an open descriptor"),
    ("softib-sm", ["x"], 'unexpected "x"'),
    ("softib-sm", ["--frob"], "unrecognized option"),
    ("softib-sm", ["--priority", "99"], "is not a number from 0 to 15"),
])
def test_wrong_words_to_the_other_programs(program, args, says):
    done = subprocess.run([BUILD / "bin" / program, *args], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 64 and says in done.stderr


# --- where the output goes ---

@pytest.mark.parametrize("args", [["--help"], ["--version"], ["list"], ["status"], ["topo"],
                                  ["topo", "--format", "svg"], ["status", "--json"], ["counters"],
                                  ["resource", "show"], ["fault", "list"], ["link", "n1:1", "up"],
                                  ["up", "--help"]], ids=" ".join)
def test_output_that_is_lost_is_no_success(pair, args):
    """A full disk, and a stdout that is closed."""
    for shell in ('exec "$@" >/dev/full', 'exec "$@" >&-'):
        done = subprocess.run(["sh", "-c", shell, "sh", SOFTIB, *args], capture_output=True,
                              env=dict(pair.env, SOFTIB_DIR=str(pair.dir)), text=True,
                              timeout=TIMEOUT, check=False)
        assert done.returncode == 1, (shell, done)
        assert done.stderr.count("softib: ") == 1, (shell, done)


@pytest.mark.parametrize("shell", ['exec "$@" >/dev/full', 'exec "$@" >&-'])
def test_softib_sm_too(shell):
    done = subprocess.run([SOFTIB, "run", "--sm", "none", "--", "sh", "-c", shell, "sh",
                           BUILD / "bin/softib-sm", "--once"], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr, done


@pytest.mark.parametrize("args", [["topo", "-o"], ["topo", "--topology", "/none", "-o"],
                                  ["capture", "n9", "-w"], ["capture", "--filter", "(", "-w"]],
                         ids=" ".join)
def test_a_command_that_fails_leaves_its_output_file(pair, args):
    kept = pair.home / "kept"
    kept.write_text("years")
    done = subprocess.run([SOFTIB, *args, kept], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False, env=dict(pair.env, SOFTIB_DIR=str(
                              pair.home if args[0] == "topo" else pair.dir)))
    assert done.returncode == 1 and kept.read_text() == "years", done


def test_a_closed_stdout_is_no_matter_to_who_prints_nothing(home):
    for args in (["up"], ["wait"], ["run", "--", "true"], ["down"]):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", SOFTIB, *args], check=False,
                              env=dict(os.environ, XDG_RUNTIME_DIR=str(home)), timeout=TIMEOUT,
                              capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, (args, done)


# --- the simulator ---

@pytest.mark.parametrize("args, says", [
    (["--seeds", "abc"], "--seeds takes a number from 1 on, not 'abc'"),
    (["--seeds", "0"], "--seeds takes a number from 1 on, not '0'"),
    (["--seeds", "-1"], "--seeds takes a number from 1 on, not '-1'"),
    (["--seed", "abc"], "--seed takes a number from 0 on, not 'abc'"),
    (["--seed", "99999999999999999999"], "--seed takes a number"),
    (["--first", "1x"], "--first takes a number from 0 on, not '1x'"),
    (["--seed", "1", "--ops", "x"], "--ops takes a number from 1 on, not 'x'"),
    (["--seed", "1", "--faults", "x"], "--faults takes numbers such as 0,3, or none, not 'x'"),
    (["--seeds", "1", "--faults", "0,"], "--faults takes numbers such as 0,3, or none, not '0,'"),
    (["--seed", "1", "--faults", "99"], "there is no fault 99"),
    (["--seed", "1", "--kind", "calm", "--faults", "0"], "no fault 0: the plan has 0"),
    (["--seeds", "1", "--faults", "99"], "there is no fault 99"),
    (["--kind", "x"], "expected one of calm, packets, links, manager, death, memory, chaos"),
    (["--break", "x"], "expected one of psn, order, "),
    (["17"], "takes no argument '17'"),
])
def test_the_simulator_takes_no_rubbish(args, says):
    done = subprocess.run([BUILD / "tests/sim/softib-sim", *args], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 64 and says in done.stderr, done.stderr
    assert not done.stdout


def test_the_simulator_runs_without_faults():
    for faults in ("none", ""):
        done = subprocess.run([BUILD / "tests/sim/softib-sim", "--seed", "1", "--ops", "1",
                               "--faults", faults], capture_output=True, text=True,
                              timeout=TIMEOUT, check=False)
        assert done.returncode == 0 and "seed 1 digest" in done.stdout, done.stderr


def test_make_replay_asks_for_a_seed():
    done = subprocess.run(["make", "-n", "-C", Path(__file__).parents[2], f"BUILD={BUILD}", "replay"],
                          env=OUTSIDE, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode and "make replay SEED=17" in done.stderr
