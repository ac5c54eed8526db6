# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib-sm's subnet administrator before OpenSM's own examiner, osmtest."""
import pytest

from interop.fabric import BUILD, Fabric


@pytest.fixture(scope="module")
def managed():
    """A fat tree whose manager has the IPoIB group, which osmtest looks for."""
    with Fabric("fattree:2,2", sm="none") as fabric:
        manager = fabric.start("n1", BUILD / "bin/softib-sm", "--ipoib", "--check")
        for line in manager.stdout:
            if line.strip() == "SUBNET UP":
                break
        yield fabric


@pytest.fixture(scope="module")
def inventory(managed, tmp_path_factory):
    """What osmtest learns of the subnet from SA; its other flows compare with it."""
    path = tmp_path_factory.mktemp("osmtest")
    examine(managed, path, "c")
    return path


def examine(fabric, path, flow):
    out = fabric.run("n2", "osmtest", "-f", flow, "-i", path / "inventory", "-l", path / flow)
    assert "PASS" in out and "FAIL" not in out, out


@pytest.mark.parametrize("flow", [
    pytest.param("v", id="records"),
    pytest.param("s", id="services"),
    pytest.param("m", id="multicast"),
    pytest.param("a", id="all"),
])
def test_flow(managed, inventory, flow):
    examine(managed, inventory, flow)
