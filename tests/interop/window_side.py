# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_windows.py: one side of RC connections, told by
lines of JSON on its standard input what to do. Between them it does nothing
at all: a target here is a program that never calls the library."""
import contextlib
import ctypes
import json
import mmap
import os
import resource
import sys
import threading
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
       e.IBV_ACCESS_REMOTE_ATOMIC)
BYTES = 1 << 20
QPS = 2


class Side:
    def __init__(self):
        self.ctx = Context(name="softib0")
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 64)
        self.memory = mmap.mmap(-1, BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        # what it sends from, and receives into
        self.own = MR(self.pd, BYTES, e.IBV_ACCESS_LOCAL_WRITE)
        self.mr = None
        cap = QPCap(max_send_wr=32, max_recv_wr=4, max_send_sge=2, max_recv_sge=1)
        self.qps = [QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                           cap=cap, sq_sig_all=1)) for _ in range(QPS)]

    def register(self, access=ALL):
        self.mr = MR(self.pd, BYTES, access, address=self.addr)
        return self.info()

    def register_again(self, access=ALL):
        """The same memory, under a key of its own."""
        self.second = MR(self.pd, BYTES, access, address=self.addr)
        return self.second.rkey

    def register_pages(self, number):
        """Each page a region of its own."""
        pages = self.pages = mmap.mmap(-1, number * mmap.PAGESIZE,
                                       flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self.many = [MR(self.pd, mmap.PAGESIZE, ALL, address=at + i * mmap.PAGESIZE)
                     for i in range(number)]

    def deregister_pages(self):
        for region in self.many:
            region.close()

    def bind(self, kind=e.IBV_MW_TYPE_2, at=0, length=BYTES, access=ALL, mine=0):
        """A new memory window, bound to a part of the region. Return: its key"""
        self.window = MW(self.pd, kind)
        return self.bind_again(kind, at, length, access, mine)

    def bind_again(self, kind=e.IBV_MW_TYPE_2, at=0, length=BYTES, access=ALL, mine=0):
        info = MWBindInfo(self.mr, self.addr + at, length, access & ~e.IBV_ACCESS_LOCAL_WRITE)
        if kind == e.IBV_MW_TYPE_1:
            self.qps[mine].bind_mw(self.window, MWBind(info, e.IBV_SEND_SIGNALED))
            self.key = self.window.rkey
        else:
            wr = SendWR(opcode=e.IBV_WR_BIND_MW)
            wr.set_bind_wr(self.window, info)  # by the next key, as ibv_inc_rkey(3) has it
            self.key = self.window.rkey & ~0xff | (self.window.rkey + 1) & 0xff
            self.qps[mine].post_send(wr)
        if self.poll():
            raise SystemExit("the window was not bound")
        return self.key

    def invalidate(self, mine=0):
        """The window, which is of type 2. Return: what of the memory is seen then."""
        wr = SendWR(opcode=e.IBV_WR_LOCAL_INV)
        wr.imm_data = self.key
        self.qps[mine].post_send(wr)
        if self.poll():
            raise SystemExit("the window was not invalidated")
        return self.maps()

    def free_window(self):
        self.window.close()
        return self.maps()

    def start_thread(self):
        """One that does nothing."""
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    def use_file(self):
        """Memory that is shared: a file's."""
        self.memory = mmap.mmap(-1, BYTES)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def lock(self):
        if ctypes.CDLL(None).mlock(ctypes.c_void_p(self.addr), BYTES):
            raise SystemExit("mlock: more than RLIMIT_MEMLOCK allows?")

    def give_up(self, at, length):
        """MADV_DONTNEED"""
        self.memory.madvise(mmap.MADV_DONTNEED, at, length)

    def map_anew(self):
        """Other pages at the same place."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
        if libc.mmap(ctypes.c_void_p(self.addr), ctypes.c_size_t(BYTES), 3, flags, -1,
                     ctypes.c_long(0)) != self.addr:
            raise SystemExit(f"mmap: {os.strerror(ctypes.get_errno())}")

    def unmap_page(self, at):
        if ctypes.CDLL(None).munmap(ctypes.c_void_p(self.addr + at), mmap.PAGESIZE):
            raise SystemExit("munmap failed")

    def deregister(self):
        start = time.monotonic()
        self.mr.close()
        return time.monotonic() - start

    def info(self):
        return {"lid": self.ctx.query_port(1).lid, "qpn": [qp.qp_num for qp in self.qps],
                "addr": self.addr, "rkey": self.mr.rkey if self.mr else 0, "pid": os.getpid()}

    def connect(self, lid, qpn, mine=0, timeout=12):
        """@timeout: for an ACK, in the specification's exponent encoding; 0: none"""
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ALL
        attr.dest_qp_num = qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=lid, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = timeout, 2, 2
        attr.max_rd_atomic = attr.max_dest_rd_atomic = attr.min_rnr_timer = 1
        self.qps[mine].to_rts(attr)

    def reset(self, mine=0):
        self.qps[mine].modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)

    def poll(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            n, wcs = self.cq.poll(1)
            if n:
                return wcs[0].status
        raise SystemExit("no completion")

    def request(self, opcode, addr, rkey, length=8, offset=0, mine=0, times=1, value=1):
        """The status of each request; stops at the first that is not 0."""
        statuses = []
        for _ in range(times):
            wr = SendWR(opcode=opcode, num_sge=1,
                        sg=[SGE(self.own.buf + offset, length, self.own.lkey)])
            if opcode in (e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WR_ATOMIC_CMP_AND_SWP):
                wr.set_wr_atomic(rkey, addr, value, 0)
            else:
                wr.set_wr_rdma(rkey, addr)
            self.qps[mine].post_send(wr)
            statuses.append(self.poll())
            if statuses[-1]:
                break
        return statuses

    def write(self, **args):
        return self.request(e.IBV_WR_RDMA_WRITE, **args)

    def read(self, **args):
        return self.request(e.IBV_WR_RDMA_READ, **args)

    def add(self, **args):
        return self.request(e.IBV_WR_ATOMIC_FETCH_AND_ADD, **args)

    def poke(self, data, at=0, own=False):
        addr = (self.own.buf if own else self.addr) + at
        ctypes.memmove(addr, bytes.fromhex(data), len(data) // 2)

    def peek(self, at=0, length=8, own=False):
        return ctypes.string_at((self.own.buf if own else self.addr) + at, length).hex()

    def use_descriptors_up(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        with contextlib.suppress(OSError):
            while True:
                os.dup(0)

    def fork(self, at=0, pipe=None):
        """What a child sees, what the parent sees of what the child wrote."""
        before = self.peek(at, 16)
        get, put = pipe or os.pipe()
        child = os.fork()
        if not child:
            seen = self.peek(at, 16)
            self.poke("cc" * 8, at)
            os.write(put, seen.encode())
            os._exit(0)
        self.poke("dd" * 8, at + 8)  # the child must not see it
        os.waitpid(child, 0)
        return {"before": before, "child": os.read(get, 64).decode(), "after": self.peek(at)}

    def fork_without_descriptors(self, at=0):
        pipe = os.pipe()
        self.use_descriptors_up()
        return self.fork(at, pipe)

    def maps(self):
        with open("/proc/self/maps", encoding="ascii") as lines:
            return [line.split()[1] for line in lines if "softib-window " in line]

    def pages(self):
        """Window pages, its own and those of programs that wanted its memory."""
        with open("/proc/self/maps", encoding="ascii") as lines:
            return sum("softib-windows " in line for line in lines)


side = Side()
print(json.dumps(side.info()), flush=True)
for line in sys.stdin:
    words = json.loads(line)
    print(json.dumps(getattr(side, words.pop("do"))(**words)), flush=True)
