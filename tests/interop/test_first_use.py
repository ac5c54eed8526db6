# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a person meets first: programs where there is no fabric, whose fabric is
meant, what is told about UCX, a shell's prompt."""
import os
import pty
import select
import signal
import subprocess

import pytest

from interop.commands import softib, softibd_of
from interop.fabric import BUILD, OUTSIDE, SOFTIB, TIMEOUT

HINT = "no fabric here (SOFTIB_DIR is not set): 'softib exec NODE -- COMMAND'"


@pytest.mark.parametrize("program, library, says", [
    ("ibv_devinfo", "libibverbs", "No IB devices found"), ("ibv_devices", "libibverbs", ""),
    ("ibstat", "libibumad", ""), ("ibstat -l", "libibumad", "")])
def test_no_device_and_a_hint(pair, program, library, says):
    """A fabric is up, and the program is on none of its nodes."""
    env = {key: value for key, value in pair.env.items() if not key.startswith("SOFTIB_")}
    done = subprocess.run(program.split(), env={**env, "LD_LIBRARY_PATH": str(BUILD / "lib")},
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.stderr.startswith(f"{library}: {HINT}") and done.stderr.count(HINT) == 1
    assert says in done.stderr and "softib0" not in done.stdout + done.stderr
    assert "not implemented" not in done.stderr


def running_softib(home, script):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    env.pop("SOFTIB_DIR", None)
    return subprocess.Popen([SOFTIB, "run", "--", "sh", "-c", script], env=env, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_another_s_run_is_never_meant(home):
    """A private fabric is its command's alone, also where it is the only one."""
    private = running_softib(home, "softib exec n2 -- printenv SOFTIB_DIR; read x; "
                                   "softib exec n2 -- printenv SOFTIB_DIR")
    where = private.stdout.readline().strip()
    assert where.startswith(f"{home}/softib/run-")
    alone = softib(home, "exec", "n1", "--", "true")
    assert alone.returncode == 1 and "no fabric is up" in alone.stderr
    assert softib(home, "up", "lab").returncode == 0
    done = softib(home, "exec", "n1", "--", "printenv", "SOFTIB_DIR")
    assert (done.returncode, done.stdout) == (0, f"{home}/softib/lab\n"), done.stderr
    named = softib(home, "exec", "--fabric", os.path.basename(where), "n1", "--", "true")
    assert named.returncode == 0
    out, _ = private.communicate("\n", timeout=TIMEOUT)
    assert out.strip() == where  # and inside it no other is
    assert softib(home, "down").returncode == 0
    assert not softibd_of(home)


def test_killed_keeper_leaves_nothing(home):
    """kill -9 of the softib inside that keeps the fabric."""
    run = running_softib(home, "echo $PPID; exec sleep 1000")
    os.kill(int(run.stdout.readline()), signal.SIGKILL)
    _, said = run.communicate(timeout=TIMEOUT)
    assert run.returncode == 128 + 9 and "died by signal 9" in said
    assert list((home / "softib").iterdir()) == []
    assert not softibd_of(home)


# --- device files and UCX ---

def execute(fabric, *args, **env):
    return subprocess.run([*fabric.user, SOFTIB, "exec", "--fabric", "t", *args],
                          env={**fabric.env, **env}, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)


# what programs do to look for an adapter's files, each by another function of libc
LOOKS = """
test -c /dev/infiniband/uverbs0
test -r /dev/infiniband/uverbs0
test -w /dev/infiniband/issm0
test "$(ls /dev/infiniband)" = "issm0
ucm0
uverbs0"
ls -l /dev/infiniband/ >/dev/null
cat </dev/infiniband/uverbs0
grep -q ACTIVE /sys/class/infiniband/softib0/ports/1/state
test "$(cd /sys/class/infiniband && echo *)" = softib0
test "$(echo /sys/class/infiniband_mad/*0)" = "/sys/class/infiniband_mad/issm0 /sys/class/infiniband_mad/umad0"
/usr/bin/python3 -c 'import os; s = os.stat("/dev/infiniband/uverbs0"); assert s.st_rdev == os.makedev(1, 3)
assert os.access("/dev/infiniband/uverbs0", os.W_OK) and os.listdir("/sys/class/infiniband") == ["softib0"]
assert [e.name for e in os.scandir("/sys/class/infiniband_verbs")] and not os.path.exists("/dev/infinibandit")'
ibstatus | grep -q ACTIVE
echo found
"""


def test_files_without_a_mount_namespace(pair):
    """Where the kernel allows none, a preloaded library finds the files of the node: its own, in a
    program that it starts on another one as well."""
    forbid = ["unshare", "-Ur", "sh", "-c",
              'echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$@"', "sh"]
    looks = ["sh", "-ec", LOOKS]
    for flags, argv in (["--devices"], looks), (["-DN"], looks), (["--devices"], [
            SOFTIB, "exec", "--fabric", "t", "--devices", "n2", "--", *looks]):
        done = subprocess.run([*forbid, SOFTIB, "exec", "--fabric", "t", *flags, "n1", "--", *argv],
                              env={**pair.env, "UCX_TLS": "rc"}, capture_output=True,
                              text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 0 and done.stdout == "found\n" and not done.stderr, done
    done = subprocess.run([*forbid, SOFTIB, "exec", "--fabric", "t", "n1", "--", "printenv", "LD_PRELOAD"],
                          env=pair.env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert "libnodefiles" not in done.stdout, done


def test_devices_without_a_namespace(home):
    look = ["sh", "-c", "test -c /dev/infiniband/uverbs0"]
    wait = ["sh", "-c", "test -c /dev/infiniband/uverbs0 && echo ready && exec tail -f /dev/null"]
    for command in (["pair", "-DN", "--quiet", "--end-server", "--ready", "ready", "--", *wait, "--", *look],
                    ["run", "-DN", "--", *look]):
        done = softib(home, *command)
        assert done.returncode == 0, done


def test_ucx_is_explained_once(pair):
    inner = f"{SOFTIB} exec --fabric t --devices n2 -- echo ok"
    done = execute(pair, "--devices", "n1", "--", "sh", "-c", inner)
    assert done.stdout == "ok\n"
    assert done.stderr.count("UCX_TLS=rc,ud,self makes it use the fabric") == 1
    for args, env in ((["--devices", "n1", "--", "true"], {"UCX_TLS": "rc"}),
                      (["--devices", "n1", "--", "env", "UCX_TLS=rc", "true"], {}),
                      (["n1", "--", "true"], {})):
        assert execute(pair, *args, **env).stderr == ""


def test_run_with_devices(home):
    done = softib(home, "run", "--devices", "--", "sh", "-c", "test -c /dev/infiniband/uverbs0")
    assert done.returncode == 0 and "UCX_TLS" in done.stderr


# --- a shell ---

def test_the_prompt_names_the_node(pair):
    """Of a shell, and of one on another node within it."""
    master, slave = pty.openpty()
    env = {**pair.env, **OUTSIDE, "XDG_RUNTIME_DIR": str(pair.home), "TERM": "dumb"}
    shell = subprocess.Popen([SOFTIB, "exec", "--fabric", "t", "n1", "--", "bash", "--norc", "-i"],
                             env=env, stdin=slave, stdout=slave, stderr=slave,
                             start_new_session=True)
    os.close(slave)
    seen = ""

    def shows(text):
        nonlocal seen
        while text not in seen:
            assert select.select([master], [], [], TIMEOUT)[0], f"{text!r} is not in {seen!r}"
            seen += os.read(master, 4096).decode()
        seen = seen[seen.index(text) + len(text):]

    shows("(n1) ")
    os.write(master, b"softib exec n2 -- bash --norc -i\n")
    shows("(n2) ")
    os.write(master, b"exec softib exec n2 -- dash -i\n")
    shows("(n2) $ ")
    os.write(master, b"exit\n")
    shows("(n1) ")
    os.write(master, b"exit\n")
    assert shell.wait(TIMEOUT) == 0
    os.close(master)


def test_up_says_how_to_go_on(home):
    """... to a person, not to a script."""
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    master, slave = pty.openpty()
    subprocess.run([SOFTIB, "up", "lab"], env=env, stdout=slave, check=True, timeout=TIMEOUT)
    os.close(slave)
    assert "softib exec --fabric lab n1 -- COMMAND" in os.read(master, 4096).decode()
    os.close(master)
    again = softib(home, "up", "other")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    for name in ("lab", "other"):
        assert softib(home, "down", name).returncode == 0
