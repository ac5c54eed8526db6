# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by network interfaces: devices that a program gives softibd, and shares with it."""
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import threading

import pytest

from hostile.attack import connect, innocents_go_on, softibd_answers
from interop.fabric import wait_until

NEW_NET = 0x40000000  # <sched.h>: CLONE_NEWNET
TUNSETIFF, TUN, NO_PI, VNET_HDR = 0x400454ca, 1, 0x1000, 0x4000  # <linux/if_tun.h>
NAME, ADDRESS, NEIGHBOUR = "attack0", "10.99.0.1/24", "10.99.0.2"


class Host(threading.Thread):
    """A thread in a network of its own, with a TUN device."""

    def __init__(self):
        super().__init__()
        self.calls, self.tun, self.rtnl, self.go_on = [], None, None, threading.Event()
        self.is_ready, self.ends = threading.Event(), False
        self.start()
        self.is_ready.wait()

    def run(self):
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_NET) == 0:
            self.tun = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH22x", NAME.encode(), TUN | NO_PI | VNET_HDR))
            self.rtnl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self.index = socket.if_nametoindex(NAME)
        self.is_ready.set()
        self.go_on.wait()
        for words in self.calls:
            subprocess.run(words, check=False, stdout=subprocess.DEVNULL)

    def ends_with(self, *calls):
        """Run these there, at last."""
        self.calls = calls
        self.go_on.set()
        self.join()


@pytest.mark.only_root(why="a device is made")
def test_a_device_that_waits(shared):
    """A program makes the device of an interface blocking that softibd reads: its packets are read, and
    nothing is waited for."""
    host = Host()
    assert host.tun is not None, "there is no network"
    with connect(shared, "control") as control:
        request = {"op": "ipoib_open", "node": "n1", "port": 1, "ifindex": host.index}
        socket.send_fds(control, [json.dumps(request).encode()], [host.tun, host.rtnl.fileno()])
        answer = json.loads(control.recv(1 << 16))
        assert "error" not in answer, answer
    os.set_blocking(host.tun, True)
    host.ends_with(["ip", "link", "set", NAME, "up"], ["ip", "address", "add", ADDRESS, "dev", NAME],
                   ["ping", "-c", "1", "-W", "1", NEIGHBOUR])
    try:
        softibd_answers(shared)
        innocents_go_on(shared)
    finally:
        os.close(host.tun)
        host.rtnl.close()
        with connect(shared, "control") as control:
            control.send(json.dumps({"op": "ipoib_close", "node": "n1", "port": 1}).encode())
            assert "error" not in json.loads(control.recv(1 << 16))
    wait_until(lambda: shared.json("status")["protocols"]["ipoib_interfaces"] == 0, "the interface ends")
