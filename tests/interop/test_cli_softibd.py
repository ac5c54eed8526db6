# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A softibd that dies, complains or does not answer: what commands, and
programs that open a device, tell of it."""
import contextlib
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from interop.commands import softib, softibd_of
from interop.fabric import SOFTIB, TIMEOUT, Fabric, wait_until

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"


# --- one that dies, and its log ---

def test_dead_softibd_ends_its_fabric(home):
    """And says what became of it: to whoever asks, until the next one ended well."""
    assert softib(home, "up", "lab").returncode == 0
    folder, pid = home / "softib/lab", softibd_of(home)[0]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [p.name for p in folder.iterdir()] == ["softibd.log"], "its folder stays")
    line = (folder / "softibd.log").read_text()
    assert re.fullmatch(rf"{STAMP} softib: softibd \(pid {pid}\) died by signal 9 \(Killed\)\n", line)
    for args in (["status"], ["status", "--fabric", "lab"], ["list"], ["down", "lab"]):
        done = softib(home, *args)
        assert done.returncode == (args != ["list"])
        assert f"left the log {folder}/softibd.log; its last line is\n  {line}" in done.stderr, args
    assert softib(home, "up", "lab").returncode == 0
    assert (folder / "softibd.log").read_text() == "" and softib(home, "list").stderr == ""
    assert (folder / "softibd.log.old").read_text() == line
    assert softib(home, "down", "lab").returncode == 0
    assert list((home / "softib").iterdir()) == []


def test_dead_softibd_ends_a_run(home):
    done = softib(home, "run", "--", "sh", "-c", "kill -9 $(cat $SOFTIB_DIR/pid); read x",
                  stdin=subprocess.PIPE)
    assert re.search(STAMP + r" softib: softibd \(pid \d+\) died by signal 9", done.stderr)
    assert list((home / "softib").iterdir()) == []


def break_rules(folder):
    """A program that is thrown out. The line that softibd's log must have."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as program:
        program.settimeout(TIMEOUT)
        program.connect(str(folder / "uverbs"))
        program.send(b"x" * 100000)
        with contextlib.suppress(ConnectionResetError):
            assert program.recv(100) == b""
    return rf"{STAMP} softibd: program {os.getpid()} \([^)]+\): disconnected: a command of 100000 bytes\n"


def test_the_log_names_the_program(home):
    assert softib(home, "up").returncode == 0
    folder = home / "softib/default"
    line = break_rules(folder)
    log = (folder / "softibd.log").read_text()
    assert re.fullmatch(line, log)
    down = softib(home, "down")
    assert down.returncode == 0 and f"left the log {folder}/softibd.log; its last line is\n  {log}" in down.stderr
    assert [p.name for p in folder.iterdir()] == ["softibd.log"]


def test_the_log_is_bounded(home):
    assert softib(home, "up").returncode == 0
    folder = home / "softib/default"
    with open(folder / "softibd.log", "a", encoding="ascii") as log:
        log.write("x" * (256 << 10))
    line = break_rules(folder)
    assert re.fullmatch(line, (folder / "softibd.log").read_text())
    assert (folder / "softibd.log.old").stat().st_size == 256 << 10
    softib(home, "down")


# --- a softibd that does not answer ---

@pytest.fixture
def stopped(home):
    """A fabric whose softibd is stopped; its pid."""
    assert softib(home, "up", "--sm", "none").returncode == 0
    pid = softibd_of(home)[0]
    os.kill(pid, signal.SIGSTOP)
    yield pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    softib(home, "down")


@pytest.mark.parametrize("args", [["status"], ["list"], ["topo"], ["exec", "n1", "--", "true"],
                                  ["wait", "--timeout", "1"], ["capture", "-w", "/dev/null"],
                                  ["fault", "add", "all", "note"]], ids=lambda args: args[0])
def test_commands_give_a_stopped_softibd_up(home, stopped, args):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), SOFTIB_TIMEOUT_S="1")
    done = subprocess.run([SOFTIB, *args], env=env, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.splitlines() == [
        f"softib: softibd (process {stopped}) does not answer; waiting",
        f"softib: softibd (process {stopped}) has not answered for 1 s (SOFTIB_TIMEOUT_S). If it was "
        f"stopped, 'kill -CONT {stopped}' lets it go on; else 'softib down' ends it"]


@pytest.mark.parametrize("args, status", [(["status"], 0), (["wait", "--timeout", "1"], 1)],
                         ids=["status", "wait"])
def test_commands_wait_for_a_stopped_softibd(home, stopped, args, status):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), SOFTIB_TIMEOUT_S="0")
    run = subprocess.Popen([SOFTIB, *args], env=env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    assert f"softibd (process {stopped}) does not answer" in run.stderr.readline()
    os.kill(stopped, signal.SIGCONT)
    out, err = run.communicate(timeout=TIMEOUT)
    assert run.returncode == status
    assert "2 adapters" in out if not status else "not Active but Init" in err


def test_a_full_queue_of_connections_is_given_up(home, stopped):
    crowd = []
    with contextlib.suppress(BlockingIOError):
        while True:
            crowd.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            crowd[-1].connect(str(home / "softib/default/control"))
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), SOFTIB_TIMEOUT_S="1")
    done = subprocess.run([SOFTIB, "status", "--fabric", "default"], env=env, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"softib: softibd in {home}/softib/default accepts no connection: "
                           "'softib down' ends it\n")
    for client in crowd:
        client.close()


def test_down_ends_a_stopped_softibd(home, stopped):
    done = softib(home, "down")
    assert done.returncode == 0 and not softibd_of(home)
    assert f"softibd (pid {stopped}) died by signal 9" in done.stderr


def test_down_waits_for_a_slow_end(home):
    """As of a fabric of many nodes with networks on a busy machine."""
    assert softib(home, "up", "--sm", "none").returncode == 0
    status = Path(f"/proc/{softibd_of(home)[0]}/status").read_text()
    owner = int(re.search(r"^PPid:\s+(\d+)", status, re.M)[1])
    os.kill(owner, signal.SIGSTOP)
    try:
        down = subprocess.Popen([SOFTIB, "down"], env=dict(os.environ, XDG_RUNTIME_DIR=str(home)), text=True,
                                stderr=subprocess.PIPE)
        assert down.stderr.readline() == f"softib: process {owner} is still ending: the kernel removes the networks of the nodes\n"
    finally:
        os.kill(owner, signal.SIGCONT)
    assert down.communicate(timeout=TIMEOUT)[1] == "" and down.returncode == 0
    assert not softibd_of(home)


@pytest.mark.parametrize("program, library", [("ibv_devinfo", "libibverbs"), ("smpquery", "libibumad")])
def test_programs_tell_of_a_stopped_softibd(program, library):
    """They go on when it does."""
    args = ["-D", "nodeinfo", "0"] if program == "smpquery" else []
    with Fabric("pair", sm="none") as f:
        pid = f.json("status")["pid"]
        process = f.start("n1", "sh", "-c", 'echo up; read x; exec "$@"', "sh", program, *args,
                          stdin=subprocess.PIPE)
        assert process.stdout.readline() == "up\n"
        os.kill(pid, signal.SIGSTOP)
        try:
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == \
                f"{library}: softibd (process {pid}) does not answer; waiting\n"
        finally:
            os.kill(pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0 and ("softib0" in out or "NodeType" in out), out


@pytest.mark.parametrize("program, library", [("ibv_devinfo", "libibverbs"), ("smpquery", "libibumad")])
def test_programs_give_a_stopped_softibd_up(program, library):
    args = ["-D", "nodeinfo", "0"] if program == "smpquery" else []
    with Fabric("pair", sm="none") as f:
        pid = f.json("status")["pid"]
        process = f.start("n1", "sh", "-c", 'echo up; read x; SOFTIB_TIMEOUT_S=1 exec "$@"', "sh",
                          program, *args, stdin=subprocess.PIPE)
        assert process.stdout.readline() == "up\n"
        os.kill(pid, signal.SIGSTOP)
        try:
            out, _ = process.communicate("\n", timeout=TIMEOUT)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert process.returncode != 0
        assert f"{library}: softibd (process {pid}) has not answered for 1 s" in out
