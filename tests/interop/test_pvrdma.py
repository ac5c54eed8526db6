# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib-pvrdma without a guest: what it says when it cannot start one, and what it does for a program in
QEMU's place. tests/guest boots guests."""
import pytest

from interop.fabric import Fabric
from interop.test_nodes import allowed, users

GID = "::ffff:10.1.9.1"
PLAN = ["::ffff:10.1.0.1", "fd73:6f66:7469:6201::1", "fe80::73:69ff:fe00:1"]
# QEMU's side of the channel: a request, its answer, and the GID table then
QEMU = f'''
import ipaddress, re, socket, struct, subprocess, sys
fd = re.search(r"id=softib-mads,fd=(\\d+)", " ".join(sys.argv))[1]
channel = socket.socket(fileno=int(fd))
gid = ipaddress.IPv6Address("{GID}").packed
for operation, num in ((0, 0), (0, 0), (1, 0), (1, 0), (2, 7), (2, 256), (9, 0)):
    channel.sendall(struct.pack("<2I16s3I", 0, operation, gid, 0, 0, num).ljust(360, b"\\0"))
    kind, _operation, _gid, error = struct.unpack_from("<2I16sI", channel.recv(360, socket.MSG_WAITALL))
    table = re.findall(r"(\\S+), RoCE v2", subprocess.run(["ibv_devinfo", "-v"], capture_output=True, text=True).stdout)
    print(kind, operation, error, *sorted(table), flush=True)
'''
pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")


@pytest.fixture(scope="module", name="roce", params=users(), ids=lambda user: "nobody" if user else "self")
def roce_pair(request):
    with Fabric("star:2", sm="none", up_args=("--link-layer", "ethernet", "--net", "node"),
                user=request.param) as fabric:
        yield fabric
        fabric.expect_no_leftovers()


def program(fabric):
    return fabric.program.with_name("softib-pvrdma")


def test_it_exits_as_qemu_does(roce):
    roce.run("n1", program(roce), "sh", "-c", "exit 3", status=3)
    roce.run("n1", program(roce), "sh", "-c", "kill $$", status=128 + 15)
    assert "/no/qemu: No such file" in roce.run("n1", program(roce), "/no/qemu", status=127)


def test_qemus_command_line(roce):
    words = roce.run("n1", program(roce), "-m", "1G", "-a", "52:54:00:12:34:56", "echo", "-S")
    assert words.startswith("-S -m 1G -object memory-backend-ram,id=softib-ram,share=on,size=1G "), words
    assert "mac=52:54:00:12:34:56" in words and "ibdev=softib0,ibport=1,netdev=eth0" in words, words


def test_gids_come_and_go(roce):
    """Of an address that is added twice, removed twice, and of MADs that are not to be sent"""
    lines = roce.run("n1", program(roce), "/usr/bin/python3", "-c", QEMU).splitlines()
    both, plan = " ".join(sorted([*PLAN, GID])), " ".join(sorted(PLAN))
    assert lines == [f"1 0 0 {both}", f"1 0 2 {both}", f"1 1 0 {plan}", f"1 1 4 {plan}", f"1 2 1 {plan}",
                     f"1 2 4 {plan}", f"1 9 1 {plan}"], lines


def test_a_port_has_one_guest(roce):
    first = roce.start("n1", program(roce), "sh", "-c", "echo ready; sleep 1000")
    assert first.stdout.readline() == "ready\n"
    text = roce.run("n1", program(roce), "true", status=1)
    assert "is the communication manager of a virtual machine" in text, text
    roce.run("n2", program(roce), "true")
    roce.end_programs()


def test_what_is_no_port_of_ethernet(pair):
    assert "pvrdma needs a port of Ethernet" in pair.run("n1", program(pair), "true", status=1)
    for words, message in (((), "say how to start QEMU"), (("-p", "0", "true"), "is no port"), (("-p", "257", "true"), "is no port"),
                           (("-a", "53:00", "true"), "is no MAC address"), (("-d", "mlx5_0", "true"), "there is no adapter")):
        text = pair.run("n1", program(pair), *words, check=False)
        assert message in text, text
