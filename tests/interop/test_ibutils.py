# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's ibutils: ibdiagnet walks the fabric by directed-route MADs of its own (libibis, on
libibumad) and judges what it finds. Its checks with a topology file and its check of credit loops die in
libibdm, and ibdiagpath reads tables one entry off, with whatever adapter."""
import re

import pytest

from interop.fabric import Fabric
from interop.test_nodes import users

STAGES = {"Bad GUIDs/LIDs Check", "Link State Active Check", "General Devices Info Report",
          "Performance Counters Report", "Specific Link Width Check", "Specific Link Speed Check",
          "Partitions Check", "IPoIB Subnets Check"}


@pytest.fixture(scope="module", params=[(user, sm) for user in users() for sm in ("softib-sm", "opensm")],
                ids=lambda p: f"{'nobody' if p[0] else 'self'}-{p[1]}")
def fabric(request):
    user, sm = request.param
    with Fabric("fattree:2,2", sm=sm, user=user) as it:
        yield it


def diagnose(fabric, width="4x", speed="10"):
    """Each stage's errors and warnings, and the report"""
    out = fabric.run("n1", "ibdiagnet", "-o", fabric.home / "ibdiagnet", "-lw", width, "-ls", speed)
    return {name: (int(errors), int(warnings)) for name, errors, warnings in
            re.findall(r"^    (\S.*?) +(\d+) +(\d+) *$", out, re.M)}, out


def test_a_healthy_fabric(fabric):
    stages, out = diagnose(fabric)
    nodes = fabric.json("topo")["nodes"]
    switches = sum(node["kind"] == "switch" for node in nodes)
    assert f"{len(nodes)} nodes ({switches} Switches & {len(nodes) - switches} CA-s) discovered" in out, out
    assert f"PKey:0x7fff Hosts:{len(nodes) - switches} full:{len(nodes) - switches} limited:0" in out, out
    # the broadcast group begins at 10 Gbit/s, as RFC 4391 has it: slower than the links
    assert stages == {name: (0, int(name == "IPoIB Subnets Check")) for name in STAGES}, out


def test_what_is_wrong_is_found(fabric):
    fabric.softib("fault", "add", "link", "n2:1", "errors", "counter=symbol-errors", "add=200")
    try:
        stages, out = diagnose(fabric, "1x", "2.5")
    finally:
        fabric.softib("fault", "clear", "all")
    links = sum(bool(port.get("peer")) for node in fabric.json("topo")["nodes"] for port in node["ports"]) // 2
    assert stages["Performance Counters Report"] == (0, 2), out  # both ends of the link
    assert re.search(r"n2/P1\s+Performance Monitor counter +: Value\s+symbol_error_counter +: 0x", out), out
    assert stages["Specific Link Width Check"] == stages["Specific Link Speed Check"] == (0, links), out
