# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Linux' own RoCE, rdma_rxe in a guest, with a cable of QEMU's framing (-netdev stream)."""
import pytest

from guest.machine import RxeGuest
from interop.fabric import _ports

MACS = ["52:54:00:00:01:01", "52:54:00:00:01:02"]
ADDRESSES = ["10.1.9.1", "10.1.9.2"]


def address(guest, ipv4):
    guest.run(f"ip addr add {ipv4}/16 dev eth0")


@pytest.fixture(name="two")
def two_guests(tmp_path):
    guests = [RxeGuest(tmp_path / "cable", MACS[0], server=True)]
    try:
        guests.append(RxeGuest(tmp_path / "cable", MACS[1], server=False))
        for guest, ipv4 in zip(guests, ADDRESSES):
            guest.boot()
            address(guest, ipv4)
        yield guests
    finally:
        for guest in guests:
            guest.power_off()


def test_two_guests_without_softib(two):
    """What the other tests rest on: machines, programs and rdma_rxe work among themselves."""
    one, other = two
    port = next(_ports)
    assert " 0% packet loss" in one.run(f"ping -c 3 {ADDRESSES[1]}")
    one.serve_cm(f"rping -s -a {ADDRESSES[0]} -C 5")
    other.run(f"rping -c -a {ADDRESSES[0]} -C 5 -V")
    one.finish()
    one.serve(f"ibv_rc_pingpong -p {port} -g {one.gid_index(ADDRESSES[0])} -c -n 50", port)
    for text in (other.run(f"ibv_rc_pingpong -p {port} -g {other.gid_index(ADDRESSES[1])} -c -n 50 {ADDRESSES[0]}"), one.finish()):
        assert "50 iters in" in text and "invalid" not in text, text
