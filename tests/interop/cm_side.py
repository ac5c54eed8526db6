# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_cm_steps.py: one end of a connection by the RDMA CM, step by step.

    cm_side.py client|server ADDRESS PORT LAST

It takes the steps of its side up to LAST, and prints the name of each when it is done; then it
prints the names of the events that come, until it is killed. If the name LAST ends in a comma, it
waits for a line behind that step and takes the rest of them.
"""
import sys

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.qp import QPCap, QPInitAttr


class End:
    def __init__(self, role, address, port):
        passive = role == "server"
        self.param = ConnParam(resources=0, depth=0)
        self.info = AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP,
                             flags=ce.RAI_PASSIVE) if passive else \
            AddrInfo(dst=address, dst_service=port, port_space=ce.RDMA_PS_TCP)
        self.channel = CMEventChannel()
        self.id = CMID(creator=self.channel)
        self.child = None

    def expect(self, kind):
        event = CMEvent(self.channel)
        assert event.event_type == kind, event.event_str()
        return event

    def make_qp(self, cmid):
        cmid.create_qp(QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_recv_wr=1)))

    # --- the steps of a client ---

    def address(self):
        self.id.resolve_addr(self.info)
        self.expect(ce.RDMA_CM_EVENT_ADDR_RESOLVED).ack_cm_event()

    def route(self):
        self.id.resolve_route()
        self.expect(ce.RDMA_CM_EVENT_ROUTE_RESOLVED).ack_cm_event()

    def queue_pair(self):
        self.make_qp(self.id)

    def connect(self):
        self.id.connect(self.param)

    def established(self):
        self.expect(ce.RDMA_CM_EVENT_ESTABLISHED).ack_cm_event()

    # --- those of a server ---

    def listen(self):
        self.id.bind_addr(self.info)
        self.id.listen()

    def request(self):
        event = self.expect(ce.RDMA_CM_EVENT_CONNECT_REQUEST)
        self.child = CMID(creator=event, listen_id=self.id)
        event.ack_cm_event()  # an id with an event that is not acknowledged is never destroyed

    def child_queue_pair(self):
        self.make_qp(self.child)

    def accept(self):
        self.child.accept(self.param)


STEPS = {
    "client": [End.address, End.route, End.queue_pair, End.connect, End.established],
    "server": [End.listen, End.request, End.child_queue_pair, End.accept, End.established],
}


def main():
    role, address, port, last = sys.argv[1:]
    end = End(role, address, port)
    for step in STEPS[role]:
        step(end)
        print(step.__name__, flush=True)
        if step.__name__ == last:
            break
        if step.__name__ + "," == last:
            sys.stdin.readline()
    while True:
        event = CMEvent(end.channel)
        print(event.event_str(), flush=True)
        event.ack_cm_event()


main()
