# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Virtual machines with the kernel and the RAM disk that image.py makes: a Guest has the adapter of a node of a
fabric (softib-pvrdma and QEMU), a RxeGuest is plain QEMU with a cable of Ethernet, on which Linux' rdma_rxe works."""
import ipaddress
import os
import re
import selectors
import socket
import subprocess
import time
from pathlib import Path

from interop.fabric import BUILD, TIMEOUT, Failed, kill, read_to_end, shown, wait_until

IMAGE = Path(os.environ.get("SOFTIB_GUEST", BUILD / "guest"))
BOOT_SECONDS = 300  # without KVM, on a machine that is busy
MEMORY = "256M"
# Where the host is busy, Linux finds that an emulated timer does not tick as it should, and gives up.
KERNEL_ARGUMENTS = "console=ttyS0 quiet loglevel=1 no_timer_check panic=-1"


class Machine:
    """A machine that has booted. What it prints is read by its serial port."""

    def __init__(self, start):
        """@start: starts the process, given QEMU's arguments and further ones of subprocess.Popen()"""
        self.port, far = socket.socketpair()
        self.process = start([
            "qemu-system-x86_64", "-display", "none", "-nodefaults", "-no-reboot",
            "-kernel", IMAGE / "vmlinuz", "-initrd", IMAGE / "initrd", "-append", KERNEL_ARGUMENTS,
            "-chardev", f"socket,id=serial,fd={far.fileno()}", "-serial", "chardev:serial"], pass_fds=[far.fileno()])
        far.close()
        self.text = ""

    def boot(self):
        self.answer("it boots", BOOT_SECONDS)

    def answer(self, what, timeout):
        """What it prints up to its next status. Return: status, text"""
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as ready:
            ready.register(self.port, selectors.EVENT_READ)
            while not (found := re.search(r"^exit (\d+)\r?\n", self.text, re.M)):
                if not ready.select(max(0, end - time.monotonic())):
                    raise Failed(f"the guest does not answer: {what}\n{shown(self.text)}")
                chunk = self.port.recv(1 << 16)
                if not chunk:
                    kill(self.process)
                    raise Failed(f"the guest has ended: {what}\n{shown(self.text)}\n{shown(self.process.stdout.read())}")
                self.text += chunk.decode(errors="replace").replace("\r", "")
        before, self.text = self.text[:found.start()], self.text[found.end():]
        return int(found[1]), before

    def run(self, command, status=0, timeout=120):
        """A line of the guest's shell, to its end. Return: what it printed"""
        self.port.sendall(command.encode() + b"\n")
        got, text = self.answer(command, timeout)
        if got != status:
            raise Failed(f"{command} in the guest: exit {got}, not {status}\n{shown(text)}")
        return text

    def start(self, command):
        """A line in the background; finish() waits for it, and returns what it printed."""
        self.run(f"rm -f /tmp/status; ( ( ( {command} ) >/tmp/started 2>&1; echo $? >/tmp/status ) & )")

    def finish(self, status=0):
        self.run("while [ ! -e /tmp/status ]; do usleep 20000; done")
        text = self.run("cat /tmp/started")
        assert self.run("cat /tmp/status") == f"{status}\n", shown(text)
        return text

    def serve(self, command, tcp_port):
        """start(), and wait until it listens or has ended."""
        self.start(command)
        self.run(f"until netstat -ltn | grep -q ':{tcp_port} ' || [ -e /tmp/status ]; do usleep 20000; done")

    def serve_cm(self, command):
        """The same for a server of the RDMA CM."""
        self.start(command)
        self.run("until rdma resource show cm_id | grep -q LISTEN || [ -e /tmp/status ]; do usleep 20000; done")

    def power_off(self):
        """Return: what the machine's programs on the host printed"""
        self.port.sendall(b"poweroff -f\n")
        text, why = read_to_end(self.process, TIMEOUT)
        self.port.close()
        if why:
            raise Failed(f"a guest that is switched off {why}\n{shown(text)}")
        return text


    def end(self):
        """Switch it off, whatever it is doing."""
        kill(self.process)
        self.port.close()


class Guest(Machine):
    """A guest of @node, which has booted."""

    def __init__(self, fabric, node, *options, memory=MEMORY):
        def start(qemu, **kwargs):
            return fabric.start(node, BUILD / "bin/softib-pvrdma", "-v", "-m", memory, *options, *qemu, **kwargs)

        super().__init__(start)
        self.boot()


def is_listening(path):
    """At the Unix socket @path. (Asking must not connect.)"""
    flags = [line.split()[3] for line in Path("/proc/net/unix").read_text().splitlines() if line.endswith(f" {path}")]
    return "00010000" in flags  # __SO_ACCEPTCON


class RxeGuest(Machine):
    """A guest whose eth0 has a cable to the Unix socket @path: @server: it listens there. Its adapter is rxe0.
    boot() waits for it, so that two may boot at a time."""

    def __init__(self, path, mac, server, memory=MEMORY, mtu=1500):
        def start(qemu, **kwargs):
            return subprocess.Popen(
                [*map(str, qemu), "-m", memory,
                 "-netdev", f"stream,id=cable,addr.type=unix,addr.path={path},server={'on' if server else 'off'}",
                 "-device", f"virtio-net-pci,netdev=cable,mac={mac},host_mtu={mtu},romfile="],
                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                process_group=0, **kwargs)

        if not server:  # QEMU tries once
            wait_until(lambda: is_listening(path), f"somebody listens at {path}")
        super().__init__(start)

    def boot(self):
        super().boot()
        self.run("rdma link add rxe0 type rxe netdev eth0")

    def gid_index(self, address):
        """Where the @address is in the table of GIDs, as RoCE version 2."""
        gid = ipaddress.ip_address(address)
        text = (ipaddress.IPv6Address(f"::ffff:{gid}") if gid.version == 4 else gid).exploded
        return int(self.run(f"cd /sys/class/infiniband/rxe0/ports/1; for i in $(grep -lx {text} gids/*); do "
                            "grep -q v2 gid_attrs/types/${i#gids/} && echo ${i#gids/}; done").split()[0])
