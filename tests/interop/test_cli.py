# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The softib command: fabrics come and go without a trace, listings have
JSON, and the control socket takes any bytes."""
import array
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from interop.commands import processes, softib, softibd_of
from interop.fabric import BUILD, SOFTIB, TIMEOUT, Fabric, by_fours, guid, wait_until


# --- run ---

def test_run_has_the_status_of_its_command(home):
    for script, status in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)]:
        assert softib(home, "run", "--", "sh", "-c", script).returncode == status
    assert softib(home, "run", "--", "/nonexistent").returncode == 127
    assert softib(home, "run", "--", "/dev/null").returncode == 126
    assert list((home / "softib").iterdir()) == []


def test_the_shortest_ack_timeout_is_set_and_shown(home):
    for args, us in [((), 4000), (("--min-ack-timeout", "0"), 0),
                     (("--min-ack-timeout", "2500"), 2500)]:
        done = softib(home, "run", *args, "--", "sh", "-c", "softib status; softib status --json")
        assert f"ACK {us} us or longer" in done.stdout, done
        assert json.loads(done.stdout[done.stdout.index("{"):])["min_ack_timeout_us"] == us
    done = softib(home, "run", "--min-ack-timeout", "4ms", "--", "true")
    assert done.returncode and "0 to 1000000 microseconds" in done.stderr


def test_run_gives_a_node_and_reaches_the_others(home):
    done = softib(home, "run", "--nodes", "3", "--", "sh", "-c",
                  "echo $SOFTIB_NODE; softib exec n3 -- sh -c 'echo $SOFTIB_NODE'; "
                  "softib exec n2 -- ibv_devices; softib status --json")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["n1", "n3"]
    assert guid("n2", fabric="run") in done.stdout
    status = json.loads(done.stdout[done.stdout.index("{"):])
    assert status["adapters"] == 3 and status["ports"]["active"] == 6
    assert status["sm"]["node"] == "n1"


def test_run_ends_what_its_command_left(home):
    mark = f"{os.getpid()}.25"  # a duration that no one else sleeps
    done = softib(home, "run", "--", "sh", "-c",
                  f"sleep {mark} & setsid sleep {mark} & softib exec n2 -- sleep {mark} & exit 3")
    assert done.returncode == 3
    assert not processes(mark)
    assert not softibd_of(home)


def test_signal_reaches_the_command(home):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    run = subprocess.Popen([SOFTIB, "run", "--", "sh", "-c",
                            "trap 'echo got it; exit 9' TERM; echo ready; while :; do wait; "
                            "read x; done"], env=env, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGTERM)
    run.stdin.write("\n")  # end the read: dash runs the trap behind it
    run.stdin.flush()
    out, _ = run.communicate(timeout=TIMEOUT)
    assert (run.returncode, out) == (9, "got it\n")
    assert not softibd_of(home)


@pytest.mark.parametrize("manager", ["softib-sm", "opensm"])
def test_options_of_the_manager(home, manager):
    done = softib(home, "run", "--sm", f"{manager} '--lmc' 2", "--", "ibstat", "softib0", "1")
    assert done.returncode == 0 and "LMC: 2" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("manager, said", [
    ("none --lmc 1", "--sm none takes no options"), ("minism", "not 'minism'"),
    ("softib-sm; true", "quoted as for a shell, not 'softib-sm; true'"), ("", "not ''"),
])
def test_managers_that_are_none(home, manager, said):
    done = softib(home, "run", "--sm", manager, "--", "true")
    assert done.returncode == 64 and said in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize("path", ["/usr/bin:/bin", None], ids=["short", "unset"])
def test_fabric_tools_are_found_without_roots_path(home, path):
    """An ordinary user's PATH of Debian has no /usr/sbin; opensm is there, too."""
    env = {"XDG_RUNTIME_DIR": str(home), **({"PATH": path} if path else {})}
    done = subprocess.run([SOFTIB, "run", "--sm", "opensm", "--", "/bin/sh", "-c",
                           "ibnetdiscover && softib exec n2 -- sminfo && echo $PATH"], env=env,
                          text=True, capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert "Switch" in done.stdout and "SMINFO_MASTER" in done.stdout
    dirs = done.stdout.splitlines()[-1].split(":")
    assert dirs[0] == str(SOFTIB.parent)
    assert dirs[1:] == ["/usr/bin", "/bin"][::1 if path else -1] + [
        "/usr/local/sbin", "/usr/sbin", "/sbin"]


def test_killed_softib_leaves_nothing(home):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    mark = f"{os.getpid()}.5"
    run = subprocess.Popen([SOFTIB, "run", "--", "sh", "-c", f"echo up; sleep {mark}; sleep {mark}"],
                           env=env, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "up\n"
    assert len(softibd_of(home)) == 1
    run.kill()
    run.wait()
    wait_until(lambda: not list((home / "softib").iterdir()), "its folder stays")
    assert not softibd_of(home)
    wait_until(lambda: not processes(mark), "the command's own children outlive it")


def test_killed_run_is_swept_by_the_next_run(home):
    """SIGKILL for every process of softib's own: softibd ends all the same."""
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    run = subprocess.Popen([SOFTIB, "run", "--", "sh", "-c", "echo $PPID; exec sleep 1000"], env=env,
                           stdout=subprocess.PIPE, text=True)
    keeper = int(run.stdout.readline())
    run.send_signal(signal.SIGSTOP)  # it would clean up after its keeper
    os.kill(keeper, signal.SIGKILL)
    run.kill()
    run.wait()
    wait_until(lambda: not softibd_of(home), "softibd outlives softib")
    assert softib(home, "run", "--", "true").returncode == 0
    assert list((home / "softib").iterdir()) == []


def test_run_without_manager_stays_init(home):
    done = softib(home, "run", "--sm", "none", "--", "sh", "-c",
                  "softib status --json; softib wait --timeout 1")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ports"] == {"active": 0, "armed": 0, "init": 4, "down": 0,
                                                "unplugged": 0}
    assert "is not Active but Init" in done.stderr


# --- up, down, list ---

def test_up_list_down(home):
    assert softib(home, "up", "a", "--topology", "star:4").returncode == 0
    assert softib(home, "up").returncode == 0
    rows = {r["name"]: r for r in json.loads(softib(home, "list", "--json").stdout)}
    assert sorted(rows) == ["a", "default"]
    assert rows["a"]["adapters"] == 4 and rows["a"]["topology"] == "star:4"
    assert len(softibd_of(home)) == 2
    again = softib(home, "up", "a")
    assert again.returncode == 1 and "is up in" in again.stderr
    assert "'softib down a' ends it" in again.stderr
    which = softib(home, "status")
    assert which.returncode == 1 and "--fabric takes one of: a default" in which.stderr
    assert softib(home, "down", "a").returncode == 0
    assert softib(home, "status", "--json").returncode == 0  # the only one now
    assert softib(home, "down").returncode == 0
    assert not softibd_of(home)
    assert list((home / "softib").iterdir()) == []
    assert json.loads(softib(home, "list", "--json").stdout) == []


def test_down_takes_the_fabric_that_others_take(home):
    """Without a name that of SOFTIB_DIR, else the only one that is up."""
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), SOFTIB_DIR=str(home / "softib/b"))
    for name in ("a", "b"):
        assert softib(home, "up", name).returncode == 0
    several = softib(home, "down")
    assert several.returncode == 1 and "no fabric 'default' is up" in several.stderr
    subprocess.run([SOFTIB, "down"], env=env, check=True, timeout=TIMEOUT)
    assert [r["name"] for r in json.loads(softib(home, "list", "--json").stdout)] == ["a"]
    assert softib(home, "down").returncode == 0
    assert not softibd_of(home)


def test_down_leaves_folders_alone_that_are_no_fabric(home):
    """SOFTIB_DIR may name anything: what stands there is not swept."""
    (home / "thesis").write_text("years")
    done = subprocess.run([SOFTIB, "down"], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT, env=dict(os.environ, XDG_RUNTIME_DIR=str(home / "run"),
                                                    SOFTIB_DIR=str(home)))
    assert done.returncode == 1 and f"no softibd serves {home}" in done.stderr
    assert (home / "thesis").read_text() == "years"


def test_down_is_not_for_a_run(home):
    done = softib(home, "run", "--", SOFTIB, "down")
    assert done.returncode == 1 and "ends with its command" in done.stderr


def test_up_says_why_it_fails(home):
    (home / "net").write_text('Switch 4 "a"\n[9] "b"[1]\n')
    done = softib(home, "up", "--topology", home / "net")
    assert done.returncode == 1
    assert f"{home}/net:2: not a port" in done.stderr
    assert not list((home / "softib").iterdir())


def test_up_takes_a_shape_for_a_shape(home):
    """A file of that name is meant by a path: softib-topology(5)."""
    (home / "pair").write_text("no topology\n")
    (home / "star:3").mkdir()
    for name, shape in (("a", "pair"), ("b", "star:3")):
        done = softib(home, "up", name, "--topology", shape, cwd=home)
        assert done.returncode == 0, done.stderr
    assert [row["topology"] for row in json.loads(softib(home, "list", "--json").stdout)] == \
        ["pair", "star:3"]
    meant = softib(home, "up", "c", "--topology", "./pair", cwd=home)
    assert meant.returncode == 1 and f"{home}/pair:1: " in meant.stderr
    for name in "ab":
        assert softib(home, "down", name).returncode == 0


IN_A_CHROOT = """
mkdir $0; cd $0
for dir in bin lib lib64 usr etc proc sys dev tmp $1; do
	mkdir -p ./$dir; mount --rbind /$dir ./$dir
done
shift; exec chroot . "$@"
"""


def test_chroot_whose_root_is_no_mount_point(home):
    """The node's own /sys and /dev are there all the same."""
    done = subprocess.run(["unshare", "-m", *["--map-root-user"] * (os.getuid() != 0), "sh", "-ec",
                           IN_A_CHROOT, home / "root", str(BUILD)[1:], "env",
                           f"XDG_RUNTIME_DIR={home}", SOFTIB, "run", "--", "sh", "-c",
                           f"{SOFTIB} exec --devices n2 -- "
                           "cat /sys/class/infiniband/softib0/node_guid /dev/infiniband/uverbs0"],
                          text=True, capture_output=True, timeout=TIMEOUT, check=False)
    assert (done.returncode, done.stdout) == (0, by_fours(guid("n2", fabric="run")) + "\n"), done.stderr


def test_folder_of_another_user(home):
    (home / "softib").mkdir(mode=0o700)
    before = ["--"]
    if os.getuid() == 0:
        os.chown(home / "softib", 12345, 12345)
    else:  # root's, seen from a user namespace that does not know root
        before = ["unshare", "-m", "--map-current-user", "--keep-caps", "sh", "-c",
                  'mount --bind /etc "$0" && exec "$@"', home / "softib"]
    for args in (["up"], ["run", "--", "true"], ["list"]):
        done = subprocess.run([*before[before[0] == "--":], SOFTIB, *args], text=True,
                              env=dict(os.environ, XDG_RUNTIME_DIR=str(home)), timeout=TIMEOUT,
                              capture_output=True, check=False)
        assert "belongs to another user" in done.stderr and "XDG_RUNTIME_DIR" in done.stderr
    assert not softibd_of(home)


def test_no_folder_to_be_in(home):
    for args in (["up"], ["run", "--", "true"]):
        done = softib(home / "none", *args)
        assert done.returncode == 1 and "XDG_RUNTIME_DIR is to name a directory" in done.stderr


def test_folder_open_to_others(home):
    (home / "softib").mkdir()
    os.chmod(home / "softib", 0o755)
    done = softib(home, "up")
    assert done.returncode == 1 and "chmod 700" in done.stderr


def test_long_path(home):
    deep = home / ("d" * 90)
    deep.mkdir()
    for args in (["up"], ["run", "--", "true"]):
        done = softib(deep, *args)
        assert done.returncode == 1 and "too long for a socket's path" in done.stderr


# --- on a fabric ---

def test_topo_formats(pair):
    nodes = {n["name"]: n for n in pair.json("topo", "--fabric", "t")["nodes"]}
    assert sorted(nodes) == ["n1", "n2", "s1"]
    port = nodes["n1"]["ports"][0]
    assert (port["state"], port["peer"], port["width"], port["speed"]) == \
        ("Active", "s1", "4x", "EDR")
    assert port["lid"] and port["sm_lid"] == port["lid"]
    text = pair.softib("topo", "--fabric", "t")
    assert "2 adapters, 1 switch, 2 cables" in text and text.count("Active") == 2
    assert "\033" not in text
    svg = pair.softib("topo", "--fabric", "t", "--format", "svg")
    assert "<svg" in svg and svg.count("#2e7d32") >= 2  # both links green


def test_link_down_and_up():
    with Fabric("pair") as f:
        out = f.json("link", "n2:1", "down", "--fabric", "t")
        assert (out["peer"], out["peer_port"], out["state"]) == ("s1", 2, "down")
        status = f.json("status")
        assert status["ports"]["unplugged"] == 2 and status["ports"]["active"] == 2
        row = f.json("counters", "s1:2")["counters"][0]
        assert row["link_downed"] == 1
        f.softib("link", "s1:2", "up")
        f.softib("wait")
        assert f.json("status")["ports"]["active"] == 4


@pytest.mark.parametrize("args, says", [
    (["exec", "n9", "--", "true"], 'no node "n9"'),
    (["exec", "s1", "--", "true"], "adapters' nodes such as n1"),
    (["link", "s1:9", "down"], "s1 has ports 1 to 2"),
    (["counters", "n1:2"], "n1 has ports 1 to 1"),
    (["counters", "n1:0"], "n1 has ports 1 to 1"),
    (["counters", "s1:0"], "s1 has ports 1 to 2"),
    (["counters", "s1:-2"], "port"),
    (["capture", "n1:0", "-w", "/dev/null"], "n1 has ports 1 to 1"),
    (["capture", "s1:0", "-w", "/dev/null"], "s1 has ports 1 to 2"),
    (["capture", "s1:3", "-w", "/dev/null"], "s1 has ports 1 to 2"),
    (["resource", "show", "x"], 'no node "x"'),
])
def test_unknown_nodes_and_ports(pair, args, says):
    done = subprocess.run([SOFTIB, *args], env=dict(pair.env, SOFTIB_DIR=str(pair.dir)),
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and says in done.stderr


def test_resource_show(pair):
    rows = pair.json("resource", "show", "n1")
    assert {r["node"] for r in rows} == {"n1"}
    assert {"0x000000", "0x000001"} <= {r.get("qpn") for r in rows}


def test_exec_by_description_and_guid(pair):
    for name in ("n2", "n2 softib0", "0x" + guid("n2"), "H-" + guid("n2")):
        assert pair.run(name, "printenv", "SOFTIB_NODE") == "n2\n"


def test_a_node_has_its_own_sysfs(pair):
    """ibstatus is a script that reads /sys/class/infiniband, nothing else."""
    nodes = pair.json("topo", "--fabric", "t")["nodes"]
    port = next(n for n in nodes if n["name"] == "n2")["ports"][0]
    status = pair.run("n2", "ibstatus")
    assert "Infiniband device 'softib0' port 1 status:" in status
    assert "fe80:0000:0000:0000:" + by_fours(guid("n2", port=1)) in status
    assert f"base lid:\t 0x{port['lid']:x}\n" in status and "4: ACTIVE" in status
    assert "100 Gb/sec (4X EDR)" in status
    assert "n2 softib0" in pair.run("n2", "cat", "/sys/class/infiniband/softib0/node_desc")
    # all else is what it was, for the program and for the machine
    assert pair.run("n2", "ls", "/sys/class/net/lo") == \
        subprocess.run(["ls", "/sys/class/net/lo"], capture_output=True, text=True,
                       check=True).stdout
    assert not Path("/sys/class/infiniband/softib0").exists()
    assert pair.run("n2", "id", "-u").strip() == str(os.getuid())


def test_no_namespace(pair):
    done = subprocess.run([SOFTIB, "exec", "--no-namespace", "n1", "--", "readlink",
                           "/proc/self/ns/mnt"], capture_output=True, text=True, check=True,
                          env=dict(pair.env, SOFTIB_DIR=str(pair.dir)), timeout=TIMEOUT)
    assert done.stdout.strip() == os.readlink("/proc/self/ns/mnt")


# --- the control socket ---

class Control:
    def __init__(self, fabric):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(str(fabric.dir / "control"))

    def ask(self, data):
        self.socket.send(data if isinstance(data, bytes) else json.dumps(data).encode())
        return self.answer()

    def answer(self):
        text, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4))
        answer = json.loads(text)
        for _, _, data in control:
            with os.fdopen(array.array("i", data)[0], "rb") as whole:
                body = whole.read() if whole.seek(0) == 0 else b""
                assert len(body) == answer["bytes"]
                answer = json.loads(body)
        return answer


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"1", b"null", b'"op"', b'{"op":}', b'{"op":1}', b"{}", b'{"op":"x"}',
    b'{"op":"ping"} x', b'{"op":"ping"}{}', b"\0", b"\xff\xfe", b"[" * 1000, b"x" * 65536,
    b'{"op":"' + b"x" * 60000 + b'"}', b'{"op":"ping\xff"}',
    b'{"op":"link"}', b'{"op":"link","node":1}', b'{"op":"link","node":"n1"}',
    b'{"op":"link","node":"n1","port":0}', b'{"op":"link","node":"n1","port":-1}',
    b'{"op":"link","node":"n1","port":"1"}', b'{"op":"link","node":"n1","port":1e99}',
    b'{"op":"link","node":"n1","port":1}', b'{"op":"link","node":"n1","port":1,"state":"x"}',
    b'{"op":"topo","format":"x"}', b'{"op":"topo","node":"x"}', b'{"op":"counters","port":1}',
    b'{"op":"counters","node":[]}', b'{"op":"wait"}', b'{"op":"wait","until":"x"}',
    b'{"op":"capture","node":"x"}', b'{"op":"capture","port":1}', b'{"op":"capture","snap":-1}',
    b'{"op":"capture","filter":"x"}', b'{"op":"capture","ring_bytes":"1"}',
    b'{"op":"wait","until":"active","timeout_ms":-1}', b'{"op":"resources","node":""}',
], ids=lambda data: data[:40].decode("latin1").encode("unicode_escape").decode() or "empty")
def test_malformed_request(pair, data):
    control = Control(pair)
    if not data:  # an empty message is the end of the connection
        control.socket.send(data)
        assert control.socket.recv(100) == b""
    else:
        answer = control.ask(data)
        assert list(answer) == ["error"] and answer["error"]
        assert control.ask({"op": "ping"})["protocol"] == 1  # and the client lives on
    assert Control(pair).ask({"op": "status"})["ports"]["active"] == 4


def test_slow_clients_block_nobody():
    with Fabric("fattree:2,6") as f:  # a large topology: answers travel as memfds
        slow = [Control(f) for _ in range(10)]
        for client in slow:
            try:
                client.socket.settimeout(0)
                for _ in range(1000):
                    client.socket.send(b'{"op":"topo"}')
            except BlockingIOError:
                pass
        assert len(Control(f).ask({"op": "topo"})["nodes"]) == 72 + 12 + 6
        pid = f.json("status")["pid"]
        assert len(os.listdir(f"/proc/{pid}/fd")) < 200 + 90 * 2


def test_many_clients_are_bounded(pair):
    """Who comes is served: of the 80 clients of one process those that were silent for
    longest make room, and `softib status` is not shut out."""
    crowd = []
    for _ in range(80):
        crowd.append(Control(pair))
        crowd[-1].ask({"op": "ping"})
        assert pair.json("status")["adapters"] == 2
    gone = set()
    for i, client in enumerate(crowd):
        try:
            client.ask({"op": "ping"})
        except (OSError, ValueError):
            gone.add(i)
    # each `softib status` is a client, too, until softibd has seen its end
    assert set(range(80 - 64 + 1)) <= gone <= set(range(40))
    for client in crowd:
        client.socket.close()


def test_wait_says_how_it_goes():
    with Fabric("pair", sm="none") as f:
        waiting = subprocess.Popen([SOFTIB, "wait", "--timeout", str(TIMEOUT), "--json"], env=f.env,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = waiting.stderr.readline()
        assert said == "softib: 0 of 4 ports Active; they know no subnet manager\n"
        manager = f.start("n1", str(SOFTIB.parent / "softib-sm"), "--port", ":1")
        out, _ = waiting.communicate(timeout=TIMEOUT)
        assert waiting.returncode == 0 and json.loads(out)["ports"]["active"] == 4
        manager.terminate()
        manager.wait()


def test_wait_is_answered_by_the_event():
    with Fabric("pair", sm="none") as f:
        waiting, gone = Control(f), Control(f)
        for client in (waiting, gone):
            client.socket.send(b'{"op":"wait","until":"active"}')
        gone.socket.close()
        timeout = Control(f).ask({"op": "wait", "until": "active", "timeout_ms": 1})
        assert "time-out" in timeout["error"] and timeout["ports"]["init"] == 4
        manager = f.start("n1", str(SOFTIB.parent / "softib-sm"))
        assert waiting.answer()["ports"]["active"] == 4
        manager.terminate()
        manager.wait()
