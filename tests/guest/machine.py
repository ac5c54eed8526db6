# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A virtual machine on a node of a fabric, whose adapter is the node's: softib-pvrdma and QEMU, with the
kernel and the RAM disk that image.py makes."""
import os
import re
import selectors
import socket
import time
from pathlib import Path

from interop.fabric import BUILD, Failed, kill, shown

IMAGE = Path(os.environ.get("SOFTIB_GUEST", BUILD / "guest"))
BOOT_SECONDS = 300  # without KVM, on a machine that is busy
MEMORY = "256M"
# Where the host is busy, Linux finds that an emulated timer does not tick as it should, and gives up.
KERNEL_ARGUMENTS = "console=ttyS0 quiet loglevel=1 no_timer_check panic=-1"


class Guest:
    """A guest of @node, which has booted. What it prints is read by its serial port."""

    def __init__(self, fabric, node, *options, memory=MEMORY):
        self.port, far = socket.socketpair()
        self.process = fabric.start(
            node, BUILD / "bin/softib-pvrdma", "-v", "-m", memory, *options, "qemu-system-x86_64",
            "-display", "none", "-nodefaults", "-no-reboot",
            "-kernel", IMAGE / "vmlinuz", "-initrd", IMAGE / "initrd", "-append", KERNEL_ARGUMENTS,
            "-chardev", f"socket,id=serial,fd={far.fileno()}", "-serial", "chardev:serial", pass_fds=[far.fileno()])
        far.close()
        self.text = ""
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
        self.run(f"( ( {command} ) >/tmp/started 2>&1; echo $? >/tmp/status ) & rm -f /tmp/status")

    def finish(self, status=0):
        self.run("while [ ! -e /tmp/status ]; do usleep 20000; done")
        text = self.run("cat /tmp/started")
        assert self.run("cat /tmp/status") == f"{status}\n", shown(text)
        return text

    def power_off(self, fabric):
        """Return: what softib-pvrdma and QEMU printed"""
        self.port.sendall(b"poweroff -f\n")
        text = fabric.finish(self.process)
        self.port.close()
        return text
