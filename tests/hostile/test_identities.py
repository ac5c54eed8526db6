# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who is who: what softibd knows of a program, and what it leaves to the system. Some of these tests
show what softib does not prevent: docs/SECURITY.md tells of it, and would have to change with them."""
import contextlib
import errno
import os
import struct
import subprocess
from pathlib import Path

import pytest

from hostile.attack import PATIENCE, innocents_go_on
from hostile.test_mads import GET, MadProgram, RECORD
from hostile.test_softibd import contexts, greedy_processes, limit_of_files
from interop.fabric import BUILD, NOBODY, NOBODYS_ID, OUTSIDE, guid, wait_until
from interop.test_bad_input import Program, command, error_of, node_lid
from interop.test_kill import softibd_pid

OPEN_XRCD, EXCLUSIVE, CREATE = 37, os.O_EXCL, os.O_CREAT  # <rdma/ib_user_verbs.h>
SM_CLASS, SM_INFO = 1, 0x20

ENTER = """import socket, sys
for path in sys.argv[1:]:
    kind = socket.SOCK_STREAM if path.endswith("/nbd") else socket.SOCK_SEQPACKET
    with socket.socket(socket.AF_UNIX, kind) as sock:
        sock.settimeout(30)
        sock.connect(path)
        try:
            print(path.rsplit("/", 1)[1], sock.recv(4096).hex())
        except ConnectionResetError:
            print(path.rsplit("/", 1)[1])
"""


@contextlib.contextmanager
def opened_to_others(paths):
    """They are connected to by whoever likes to, meanwhile."""
    modes = [path.stat().st_mode & 0o777 for path in paths]
    try:
        for path in paths:
            path.chmod(0o777)
        yield
    finally:
        for path, mode in zip(paths, modes):
            path.chmod(mode)


@pytest.mark.other_user
def test_another_user_is_turned_away_by_each_socket(shared):
    """Even where all modes are changed. The NBD socket, which begins to speak, says nothing."""
    shared.softib("srp", "target", "add", "n3", "--unit", "ram:1M")
    shared.softib("srp", "login", "n4", "n3")
    sockets = [path for path in shared.dir.iterdir() if path.is_socket()]
    assert {path.name for path in sockets} == {"control", "nbd", "netlink", "rdma_cm", "sdp", "ucm", "umad", "uverbs"}
    with opened_to_others([shared.home, shared.home / "softib", shared.dir, *sockets]):
        done = subprocess.run([*NOBODY, "/usr/bin/python3", "-c", ENTER, *map(str, sockets)], env=OUTSIDE,
                              capture_output=True, text=True, timeout=2 * PATIENCE, check=True)
    answers = {words[0]: bytes.fromhex("".join(words[1:])) for words in map(str.split, done.stdout.splitlines())}
    assert answers.pop("nbd") == b""
    assert b"belongs to another user" in answers.pop("control")
    assert {name: error_of(answer) for name, answer in answers.items()} == dict.fromkeys(answers, -errno.EACCES)
    shared.softib("srp", "logout", "n4", "n3")
    shared.softib("srp", "target", "remove", "n3")
    innocents_go_on(shared)


FALSE_SOFTIBD = """import json, os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1] + "/control")
server.listen()
os.chmod(sys.argv[1] + "/control", 0o777)
print("listens", flush=True)
while True:
    sock = server.accept()[0]
    text = sock.recv(1 << 16)  # empty: who came only looks who we are
    op = json.loads(text)["op"] if text else ""
    if op == "namespaces":
        fds = [os.open("/proc/self/ns/" + name, os.O_RDONLY) for name in ("net", "uts", "mnt")]
        fds += [os.open("/", os.O_PATH), os.open("/proc/self/ns/user", os.O_RDONLY)]
        socket.send_fds(sock, [b'{"held":true}'], fds)
    elif op:
        sock.send(b'{"net":"node","nodes":[{"name":"n1","kind":"ca","host":"n1","desc":"n1","addresses":[]}]}')
    sock.close()
"""


@pytest.mark.other_user
@pytest.mark.parametrize("words", (["softib-rsh", "n1", "echo", "in"], ["softib", "exec", "n1", "--", "echo", "in"]))
def test_the_namespaces_of_another_user_are_not_entered(tmp_path_factory, words):
    """A user leads root into a fabric of his own, whose nodes have the root directory that he likes."""
    trap = tmp_path_factory.mktemp("trap", numbered=True)
    os.chown(trap, NOBODYS_ID, NOBODYS_ID)
    for path in (trap, *list(trap.parents)[:2]):
        path.chmod(0o755)
    with subprocess.Popen([*NOBODY, "/usr/bin/python3", "-c", FALSE_SOFTIBD, trap], env=OUTSIDE,
                          stdout=subprocess.PIPE, text=True) as softibd:
        try:
            assert softibd.stdout.readline() == "listens\n"
            done = subprocess.run([BUILD / "bin" / words[0], *words[1:]], env=dict(OUTSIDE, SOFTIB_DIR=str(trap)),
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
        finally:
            softibd.kill()
    assert done.returncode and done.stdout == "" and "belongs to another user" in done.stderr, done
    assert [path.name for path in trap.iterdir()] == ["control"]  # root has written nothing there


def test_a_directory_that_is_open_is_closed(tmp_path):
    """softibd is given a directory that others may enter."""
    rundir = tmp_path / "open"
    rundir.mkdir()
    rundir.chmod(0o755)
    with subprocess.Popen([BUILD / "bin/softibd", "--dir", rundir], stdout=subprocess.DEVNULL) as softibd:
        try:
            wait_until(lambda: (rundir / "control").exists(), "it serves")
            assert rundir.stat().st_mode & 0o777 == 0o700
        finally:
            softibd.terminate()


def test_a_program_takes_any_node(shared):
    """The name of a node is no credential: a program of n1 is one of n3 when it says so."""
    assert guid("n3", 1) in shared.run("n1", "env", "SOFTIB_NODE=n3", "ibstat")


def open_domain(program, device, inode, flags):
    """Return: the error, and the number of the domain."""
    program.sock.send(command(OPEN_XRCD, struct.pack("<QIIQQ", 0, 0, flags, device, inode)))
    answer = program.sock.recv(4096)
    return error_of(answer), struct.unpack_from("<I", answer.ljust(16, b"\0"), 12)[0]


def test_a_domain_is_named_by_numbers(shared):
    """Programs share an XRC domain by the numbers of a file that none of them opened, and that there
    is not. One of another node does not get there: it is of another adapter."""
    with Program(shared, "n1") as owner, Program(shared, "n1") as other, Program(shared, "n2") as elsewhere:
        error, number = open_domain(owner, 12345, 67890, CREATE | EXCLUSIVE)
        assert error == 0
        assert open_domain(other, 12345, 67890, 0) == (0, number)
        assert open_domain(other, 12345, 67891, 0)[0] != 0
        assert open_domain(elsewhere, 12345, 67890, 0)[0] != 0


def test_the_same_user_reads_softibds_memory(shared):
    """As a debugger does, where the kernel permits it."""
    pid = softibd_pid(shared)
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    permitted = not os.getuid() or not scope.exists() or scope.read_text(encoding="ascii").strip() == "0"
    start = int(Path(f"/proc/{pid}/maps").read_text(encoding="ascii").split("-")[0], 16) if permitted else 0
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(start)
            assert memory.read(4) == b"\x7fELF" and permitted
    except PermissionError:
        assert not permitted


def test_the_managers_key_is_no_secret(shared):
    """SMInfo has it, and whoever asks is answered."""
    lid = node_lid(shared, "n1")
    with MadProgram(shared, "n3", qpn=0) as program:
        header = struct.pack(">4BHHQHHI", 1, SM_CLASS, 1, GET, 0, 0, 1, SM_INFO, 0, 0)
        record = bytearray(program.record(header.ljust(256, b"\0"), lid, timeout_ms=PATIENCE * 1000))
        struct.pack_into("=II", record, 20, 0, 0)  # to QP0, which has no Q_Key
        program.sock.send(record)
        answer = program.sock.recv(1 << 16)
    assert RECORD.unpack_from(answer)[1] == 0
    node, key = struct.unpack_from(">QQ", answer, RECORD.size + 64)
    assert f"{node:016x}" == guid("n1", 1) and key != 0


def test_processes_of_all_nodes_take_all_descriptors(shared):
    """Quotas are those of nodes, and a program is of any node. Who is connected goes on."""
    with limit_of_files(softibd_pid(shared), 1200), Program(shared, "n4") as connected, contextlib.ExitStack() as stack:
        for node in "n1", "n2", "n3", "n4":
            def take(fabric, node=node):
                return contexts(fabric, node)
            got = stack.enter_context(greedy_processes(shared, 40, take))
        assert got[-1] == 0, "there is room for a program of n4"
        assert connected.alloc_pd() == 0
