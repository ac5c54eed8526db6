# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Cases of test_perftest.py between nodes with networks of their own: perftest's handshake goes by TCP
over ib0 or eth0, to a node by its name. Within a node it takes no other way than test_perftest.py's."""
import pytest

from interop.fabric import Fabric
from interop.test_nodes import allowed, users
from interop.test_perftest import (  # pylint: disable=unused-import
    test_atomic, test_inline_and_gid, test_shared_receive_queue, test_transport)

FABRICS = [(link, user) for link in ("infiniband", "ethernet") for user in users()]


@pytest.fixture(scope="module", params=FABRICS, ids=lambda fabric: f"{fabric[0]}-{'nobody' if fabric[1] else 'self'}")
def pair(request):
    link, user = request.param
    if not allowed(user):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("pair", sm="none" if link == "ethernet" else "softib-sm",
                up_args=("--link-layer", link, "--net", "node"), user=user) as fabric:
        yield fabric
        fabric.expect_no_leftovers()
