# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The order of commands at a unit of an SRP target, on a disk that is as slow as the test wants."""
import os

from interop.fabric import BUILD, Fabric, guid

MODULES = BUILD / "tests/modules"


def test_commands_of_a_slow_disk():
    fabric = Fabric("pair")
    gate = fabric.home / "gate"
    preload = [os.environ.get("LD_PRELOAD"), str(MODULES / "disk_gate.so")]
    fabric.env.update(LD_PRELOAD=":".join(filter(None, preload)), DISK_GATE=str(gate))
    with fabric:
        disk = fabric.home / "disk.img"
        with disk.open("wb") as file:
            file.truncate(1 << 20)
        fabric.softib("srp", "target", "add", "n1", "--unit", disk)
        fabric.softib("modprobe", "n2", str(MODULES / "srp_order.so"), f"guid={guid('n1')}",
                      f"port_guid={guid('n1', 1)}", f"gate={gate}")
        fabric.softib("rmmod", "n2", "srp_order")
        said = [line for line in (fabric.dir / "softibd.log").read_text().splitlines()
                if "srp_order: " in line and "module srp_order" not in line]
        assert len(said) == 1 and said[0].endswith("srp_order: done, 0 failures"), said
