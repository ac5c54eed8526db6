# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Seeds made of valid traffic: what managers, clients and peers really say.

A fuzzer seldom guesses a MAD whose class, attribute and modifier fit each
other, or a message of several packets. of(TARGET) yields the name and the bytes
of each seed, in the form that the target of that name describes in its file.
Each seed tells a short story in order (ask, write, ask again), so that mutations
begin at a state that matters.
"""
from struct import pack

GET, SET, TRAP_REPRESS = 1, 2, 7
CA, SWITCH = 0, 0x80  # bit 7 of an agent's second byte
SM_LID, SM_DIRECT, PERF, ANY = range(4)


def joined(*fields):
    """Big-endian fields, each (format letter, value...)."""
    return b"".join(pack(">" + f[0], *f[1:]) for f in fields)


# --- agents: two bytes of choice, and a MAD from its method on ---

def agent_record(node, cls, method, attr, mod=0, data=b"", *, port=1, head=b"", how=0, slid=1):
    mad = joined(("B", method), ("HH", 0, 0), ("Q", 0x1234), ("HHI", attr, 0, mod))
    mad += head.ljust(40, b"\0") + data
    return bytes([how | cls << 5 | port, node | slid]) + mad.ljust(252, b"\0")[:252]


def port_info(lid, state=0, mkey=0, protect=0, lease_s=0):
    """Set(PortInfo) as a manager writes it."""
    return joined(("QQ", mkey, 0xfe80 << 48), ("HHIHH", lid, 1, 0, 0, lease_s),
                  ("4B", 0, 0xff, 0xff, 2), ("BB", state, 0x02), ("BB", protect << 6, 0xff),
                  ("BB", 0x40, 0x40), ("7B", 4, 16, 16, 4, 0x12, 0x40, 0),
                  ("3H", 0, 0, 0), ("BBBB", 8, 18, 16, 0x88)).ljust(64, b"\0")


SWITCH_INFO = joined(("HHHH", 0xc000, 0, 1024, 3), ("BBBB", 255, 255, 255, 18 << 3 | 4),
                     ("HHB", 0, 0, 0)).ljust(64, b"\0")
SMP_SETS = (  # attribute, modifier, data
    (0x10, 0, b"a new name".ljust(64, b"\0")),
    (0x12, 0, SWITCH_INFO),
    (0x14, 0, joined(("8Q", 0, 0x101, 0x102, 0, 0, 0, 0, 0))),
    (0x16, 0, joined(("32H", 0xffff, 0x8123, 0x0456, *[0] * 29))),
    (0x16, 1 | 1 << 16, joined(("32H", *[0x8001] * 32))),
    (0x17, 0, bytes([0x01, 0x23, 0x01, 0x23, 0x01, 0x23, 0x01, 0x23]).ljust(64, b"\0")),
    (0x17, 1 << 8 | 2, bytes([0x01, 0x23] * 4).ljust(64, b"\0")),
    *((0x18, part << 16 | 1, bytes(v % 4 * (i % 2 == 0) + v * (i % 2)
                                   for v in range(32) for i in range(2))) for part in range(1, 5)),
    (0x19, 0, bytes([255, 1, 2, 3] * 16)),
    (0x19, 767, bytes([1] * 64)),
    (0x1b, 0, joined(("32H", *[0x000e] * 32))),
    (0x1b, 1 << 28 | 1, joined(("32H", *[0x0001] * 32))),
    (0x33, 1, b""), (0x20, 0, b""), (0x11, 0, b""),
    (0xff90, 1, bytes([0, 0, 0, 1]).ljust(64, b"\0")),
)
PMA_ATTRS = (0x01, 0x10, 0x11, 0x12, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,
             0x1f, *range(0x30, 0x38))
LINK = 8  # this record's port gets a link (or loses it, with an even second byte)


def agents_ask_write_ask(node, cls, attr, mod, data):
    return (agent_record(node, cls, GET, attr, mod, how=LINK) +
            agent_record(node, cls, SET, attr, mod, data) +
            agent_record(node, cls, GET, attr, mod, port=0))


def agents_bring_up(node):
    """A manager takes the port from Down to Active, locks it, and loses it."""
    def put(cls, data, **more):
        return agent_record(node, cls, SET, 0x15, 1, data, **more)
    mkey = 0x1122334455667788
    return (put(SM_DIRECT, port_info(7), how=LINK) + put(SM_DIRECT, port_info(7, 3)) +
            put(SM_LID, port_info(7, 4)) + put(SM_LID, port_info(7, 0, mkey, 3, 1)) +
            agent_record(node, SM_LID, GET, 0x15, 1) +  # the key is missing
            put(SM_LID, port_info(9), how=0x10, slid=20) +  # two seconds: the lease ends
            agent_record(node, SM_LID, GET, 0x15, 1, head=pack(">Q", mkey)) +
            agent_record(node, SM_LID, TRAP_REPRESS, 2, 0, head=pack(">Q", mkey)) +
            put(SM_LID, port_info(7, 1), head=pack(">Q", mkey)) +
            agent_record(node, SM_LID, GET, 0x02, how=0x14, slid=0x7e))


def agents_other_classes(node):
    """Classes that nobody serves are refused; a version of another day, too."""
    mads = [joined(("4B", 1, cls, 1, GET), ("HHQHHI", 0, 0, 1, 1, 0, 0))
            for cls in (0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x21, 0x30)]
    return b"".join(bytes([ANY << 5 | 1, node]) + m.ljust(252, b"\0") for m in mads)


def agents():
    for node, kind in ((CA, "adapter"), (SWITCH, "switch")):
        yield f"{kind}_bring_up", agents_bring_up(node)
        yield f"{kind}_classes", agents_other_classes(node)
        for number, (attr, mod, data) in enumerate(SMP_SETS):
            yield f"{kind}_smp_{attr:x}_{number}", agents_ask_write_ask(
                node, SM_DIRECT if number % 2 else SM_LID, attr, mod, data)
        for attr in PMA_ATTRS:
            for port in (1, 255):
                # PortSelect, CounterSelect, and what the counters shall be
                data = bytes([0x04, port, 0xff, 0xff]) + bytes([0, 1] * 94)
                yield f"{kind}_pma_{attr:x}_{port}", agents_ask_write_ask(
                    node, PERF, attr, 0, data)
        control = joined(("BBBB", 0, 1, 1, 0), ("HHQ", 0, 0, 0), ("HII", 0, 0, 1),
                         ("HH", 7, 1), ("15H", *range(1, 16)))
        yield f"{kind}_samples", b"".join(
            agent_record(node, PERF, m, a, 0, control, how=0x10)
            for m, a in ((SET, 0x10), (GET, 0x10), (GET, 0x11), (GET, 0x1e), (GET, 0x11)))


# --- sm: a byte of options, then records: what, length, bytes ---

QUERY, TRAP, SM_INFO, WAIT, CABLE = 2, 3, 4, 6, 7
IN_PEACE, UPDN, IPOIB = 4, 8, 16
TABLE, DELETE, MULTI = 0x12, 0x15, 0x14
MGID = bytes.fromhex("ff12a01bfe80000000000000000000")  # and a byte


def sm_record(what, data=b"", lid=1):
    return bytes([what | lid - 1 << 6, len(data) & 255, len(data) >> 8]) + data


def query(method, attr, mask=0, data=b"", lid=1):
    rmpp = joined(("4B", 1, 0, 0, 0), ("II", 0, 0))
    return sm_record(QUERY, bytes([method, attr, 0, 0]) + rmpp +
                     joined(("QHHQ", 0, 0, 0, mask)) + data, lid)


def lab_gid(node):
    return joined(("QQ", 0xfe80 << 48, 0x100 * node + 1))


def path(dst, src, method=TABLE, extra=0, tail=b""):
    data = bytes(8) + lab_gid(dst) + lab_gid(src) + joined(("HH", 0, 0)) + tail
    return query(method, 0x35, 0xc | extra, data)


def member(node, number, method=SET, join=1, create=True):
    mask = 0x3 | 1 << 16 | (1 << 2 | 1 << 7 | 1 << 6 | 3 << 12 if create else 0)
    data = (MGID + bytes([number]) + lab_gid(node) +
            joined(("IHBBHBB", 0x1234, 0, 0x84, 0, 0xffff, 0x83, 0x92), ("IBB", 0, 0x20 | join, 0)))
    return query(method, 0x38, mask, data, lid=node)


def service(method, number):
    data = joined(("QQQHHI", number, 0xfe80 << 48, 0x101, 0xffff, 0, 60)) + bytes(16) + b"a service"
    return query(method, 0x31, 0x57, data)


def inform(subscribe):
    return query(SET, 0x03, 0, bytes(16) + joined(("HHHBBH", 0xffff, 0, 0, 1, subscribe, 0xffff),
                                                  ("HI", 0xffff, 0), ("BBBB", 0, 19, 0, 0)))


def notice(number, details):
    return sm_record(TRAP, bytes(40) + joined(("BBH", 0x81, 0, 2), ("HHH", number, 1, 0)) + details)


SA_TABLES = (0x01, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18, 0x20, 0x30, 0x31, 0x33, 0x35, 0x36,
             0x38, 0xf3, 0x77)


def sm():
    up = IN_PEACE | IPOIB
    for attr in SA_TABLES:
        asked = query(GET, attr) + query(TABLE, attr)
        for bit in range(0, 20):
            asked += query(TABLE, attr, 1 << bit, joined(("HHH", 1, 1, 1)))
        yield f"sa_{attr:x}", bytes([up]) + asked + query(TABLE, attr, 3, joined(("HH", 5, 1)))
    members = b"".join(member(n, 1) for n in (1, 2, 3, 4)) + member(2, 2, join=4)
    gone = (query(TABLE, 0x38) + query(TABLE, 0x17) + member(2, 1, DELETE) +
            member(3, 1, create=False) + member(1, 9, create=False))
    paths = b"".join(path(d, s, extra=e, tail=t) for d, s, e, t in (
        (3, 1, 0, b""), (1, 1, 1 << 12, bytes(6)), (6, 2, 0, b""),
        (4, 2, 0x3f << 16, joined(("IBB", 0, 0, 0x81), ("HH", 0xffff, 0), ("BBB", 0x84, 0x83, 0x92))),
        (9, 1, 0, b"")))
    several = query(MULTI, 0x3a, 0x3 << 22 | 1 << 6, joined(("I", 0), ("BB", 2, 0), ("HH", 0, 0)) +
                    joined(("BBB", 0, 0, 0), ("BB", 0, 0)) + bytes([2, 2] + [0] * 8) +
                    b"".join(lab_gid(n) for n in (1, 2, 3, 4)))
    for name, options in (("minhop", up), ("updn", up | UPDN), ("lmc_qos", up | UPDN | 3)):
        yield f"groups_{name}", bytes([options]) + members + sm_record(WAIT, bytes(50)) + gone
        yield f"paths_{name}", bytes([options]) + paths + several
        yield f"cables_{name}", (bytes([options]) + members + sm_record(CABLE | 8, bytes(2)) +
                                 paths + sm_record(CABLE, bytes(2)) + gone)
    yield "services", (bytes([up]) + service(SET, 1) + service(SET, 2) + service(TABLE, 1) +
                       service(DELETE, 1) + query(TABLE, 0x31) + sm_record(WAIT, bytes(900)))
    yield "informs", (bytes([up]) + inform(1) + query(TABLE, 0xf3) + notice(
        128, joined(("HH", 5, 0))) + notice(256, joined(("HHI", 0, 1, 0))) + notice(
            64, bytes(6) + lab_gid(2)) + inform(0))
    for number in (0, 1, 2, 4):  # other managers, of each state
        yield f"managers_{number}", bytes([up]) + b"".join(
            sm_record(SM_INFO | how, bytes(40) + joined(("QQIBB", guid, 0, 9, number << 4 | number,
                                                         0)), lid=2)
            for how in (0, 8) for guid in (0x201, 1, 2 ** 64 - 1))


# --- transport: a byte of choice, then acts ---

RC, UC, UD = range(3)
QPN, QPN_PEER, KEY, IOVA, MTU = 0x11, 0x22, 0x100, 0x10000, 256
KEY_READ, KEY_LOCAL, KEY_REMOTE = KEY + 2, KEY + 3, KEY + 4
RECEIVE = b"\x20"


def later(exponent):
    return bytes([0x40 | exponent])


def post(opcode, long=False):
    return bytes([opcode | long << 3])


def packet(opcode, psn, headers=b"", payload=b"", ack=True):
    pad = -len(payload) % 4
    body = joined(("BBH", opcode, 0x40 | pad << 4, 0xffff), ("II", QPN, ack << 31 | psn & 0xffffff))
    body += headers + payload + bytes(pad)
    words = (len(body) - 12) // 4
    return bytes([0x60 | min(words, 31)]) + (bytes([words - 31]) if words >= 31 else b"") + body


def reth(length, key=KEY, va=IOVA):
    return joined(("QII", va, key, length))


def aeth(syndrome, msn):
    return joined(("I", syndrome << 24 | msn))


def message(first, psn, headers, payload, base=0):
    """FIRST, MIDDLE, LAST from opcode @first on."""
    cut = [payload[i:i + MTU] for i in range(0, len(payload), MTU)]
    return b"".join(packet(base + first + (i > 0) + (i == len(cut) - 1), psn + i,
                           headers if i == 0 else b"", part) for i, part in enumerate(cut))


def transport_requests():
    """Each request of RC, as the responder of one QP sees it in a row."""
    text = bytes(range(256)) * 3
    atomic = joined(("QIQQ", IOVA + 64, KEY, 1, 0))
    return (RECEIVE * 8 + message(0, 0, b"", text[:700]) + packet(4, 3, b"", b"short") +
            packet(5, 4, pack(">I", 7), b"imm") + packet(0x17, 5, pack(">I", KEY + 1), b"inv") +
            message(6, 6, reth(700), text[:700]) + packet(0xa, 9, reth(5), b"write") +
            packet(0xb, 10, reth(3) + pack(">I", 9), b"imm") + packet(0xc, 11, reth(700)) +
            packet(0x13, 14, atomic) + packet(0x14, 15, atomic) + packet(0xa, 16, reth(0)))


def transport():
    for rights in range(8):
        yield f"rc_rights_{rights}", bytes([RC + 3 * rights]) + transport_requests()
    again = transport_requests()[8:]
    yield "rc_again", bytes([RC]) + transport_requests() + again[:2000]
    for key in (KEY_READ, KEY_LOCAL, KEY_REMOTE, 0x999):
        atomic = joined(("QIQQ", IOVA + 64, key, 1, 0))
        for name, one in (("write", packet(0xa, 0, reth(4, key), b"data")),
                          ("write_long", message(6, 0, reth(600, key), bytes(600))),
                          ("read", packet(0xc, 0, reth(600, key))),
                          ("atomic", packet(0x14, 0, atomic)),
                          ("unaligned", packet(0x14, 0, joined(("QIQQ", IOVA + 68, key, 1, 0)))),
                          ("beyond", packet(0xa, 0, reth(4, key, IOVA + 16382), b"data"))):
            yield f"rc_{name}_{key:x}", bytes([RC]) + one
        for rights in (0, 8, 11):  # with all of them, without FLUSH, and without READ and WRITE, too
            for feth in (0x1, 0x2, 0x11, 0x9, 0x100):
                yield f"rc_flush_{key:x}_{rights}_{feth:x}", bytes([RC + 3 * rights]) + packet(
                    0x1c, 0, pack(">I", feth) + reth(600, key)) + packet(
                        0x1c, 0, pack(">I", feth) + reth(600, key))
            for va, data in ((0, 8), (4, 8), (16380, 8), (8, 12), (8, 4)):
                yield f"rc_atomic_write_{key:x}_{rights}_{va}_{data}", bytes([RC + 3 * rights]) + packet(
                    0x1d, 0, reth(data, key, IOVA + va), bytes(data))
    ways = {"ack": packet(0x11, 3, aeth(0x1f, 1)), "rnr": packet(0x11, 0, aeth(0x21, 0)) + later(24),
            "sequence": packet(0x11, 0, aeth(0x60, 0)), "access": packet(0x11, 0, aeth(0x62, 0)),
            "credit": packet(0x11, 0, aeth(0x01, 0)) + packet(0x11, 3, aeth(0x02, 1)),
            "late": later(27) * 3, "stale": packet(0x11, 0xfffff0, aeth(0x1f, 1)),
            "beyond": packet(0x11, 100, aeth(0x1f, 1)), "rnr_again": packet(
                0x11, 0, aeth(0x21, 0)) * 4 + later(24) * 4}
    for name, answer in ways.items():
        yield f"rc_post_{name}", bytes([RC]) + post(0, True) + post(3) + post(0) + answer
    read = post(5, True) + b"".join(packet(0xd + i * 2 - (i > 1) * 1 if i < 2 else 0xf, i, aeth(
        0x1f, 1) if i != 1 else b"", bytes(256)) for i in range(3)) + packet(
            0xf, 3, aeth(0x1f, 1), bytes(232))
    yield "rc_read_wrong", bytes([RC]) + read
    good = (packet(0xd, 0, aeth(0x1f, 1), bytes(256)) + packet(0xe, 1, b"", bytes(256)) +
            packet(0xe, 2, b"", bytes(256)) + packet(0xf, 3, aeth(0x1f, 1), bytes(232)))
    yield "rc_read", bytes([RC]) + post(5, True) + post(0) + good + packet(0x11, 4, aeth(0x1f, 2))
    yield "rc_read_lost", bytes([RC]) + post(5, True) + good[300:] + later(24) + good
    yield "rc_atomics", (bytes([RC]) + post(6) + post(7) + packet(
        0x12, 0, aeth(0x1f, 1) + bytes(8)) + packet(0x12, 1, aeth(0x1f, 2) + bytes(8)))
    yield "rc_local", bytes([RC]) + bytes([0x11, 0x19, 0x10, 0x18]) + post(2) + packet(
        0x11, 0, aeth(0x1f, 1))
    text = bytes(range(256)) * 3
    yield "uc", (bytes([UC]) + RECEIVE * 4 + message(0, 0, b"", text, 0x20) +
                 message(6, 3, reth(768), text, 0x20) + packet(0x2b, 6, reth(3) + bytes(4), b"imm") +
                 packet(0x24, 9, b"", b"gap") + post(0, True) + post(3, True) + post(4))
    for name, qkey in (("right", 0x11111111), ("wrong", 5)):
        yield f"ud_{name}", (bytes([UD]) + RECEIVE * 2 + packet(
            0x64, 0, joined(("II", qkey, QPN_PEER)), b"a datagram") + packet(
                0x65, 1, joined(("III", qkey, QPN_PEER, 1)), bytes(256)) + post(0) + post(1))


# --- engine: acts, each a byte of choice, its length in words, the words ---

EE_CONTEXT, XRC_TARGET, RD_QPN, SRQN, FIRST_PSN = 0x61, 0x62, 0x70, 0x700, 100
ENGINE_KEYS = {"nobodys": 0x303, "own": 0x202}
ENGINE_QKEYS = 0x1234, 0x5eed5eed
TAKE, RELEASE, FAILED, FORGET, SHARED = 0, 1, 4, 5, 6  # src/abi/target.h


def engine_act(what, data=b""):
    data = data.ljust(-(-len(data) // 4) * 4, b"\0")
    return bytes([what, len(data) // 4]) + data


def engine_packet(opcode, qpn, psn, headers=b"", payload=b""):
    return engine_act(0, joined(("BBH", opcode, 0x40, 0xffff), ("II", qpn, 1 << 31 | psn)) +
                      headers + payload)


def rd_packet(opcode, receiver, psn, headers=b"", payload=b"", qkey=ENGINE_QKEYS[0]):
    extended = joined(("I", EE_CONTEXT), ("II", qkey, 0x41))
    return engine_packet(0x40 | opcode, RD_QPN + receiver, psn, extended + headers, payload)


def xrc_packet(opcode, receiver, psn, headers=b"", payload=b""):
    return engine_packet(0xa0 | opcode, XRC_TARGET, psn, joined(("I", SRQN + receiver)) + headers,
                         payload)


def engine_receives(receiver, times=2):
    return engine_act(2 | receiver << 3) * times


def about_target(kind, qpn=XRC_TARGET, psn=FIRST_PSN, how=0, flags=0):
    return engine_act(1 | kind << 3 | how, joined(("II", qpn, flags << 24 | psn)))


def engine():
    text, at = b"eight by" * 2, FIRST_PSN
    for receiver in range(3):
        for qkey in ENGINE_QKEYS:
            yield f"rd_send_{receiver}_{qkey:x}", engine_receives(receiver) + rd_packet(
                4, receiver, at, b"", text, qkey) + rd_packet(0x15, receiver, at + 1, b"", b"", qkey)
    for name, packet_of, first in (("rd", rd_packet, 0), ("xrc", xrc_packet, 0)):
        for key in ENGINE_KEYS.values():
            fetch = joined(("QIQQ", IOVA, key, 1, 0))
            yield f"{name}_keys_{key:x}", packet_of(0xa, first, at, reth(16, key), text) + engine_act(3)
            yield f"{name}_reads_{key:x}", packet_of(0xc, first, at, reth(16, key))
            yield f"{name}_adds_{key:x}", packet_of(0x14, first, at, fetch)
    for name, packet_of, first in (("rd", rd_packet, 0), ("xrc", xrc_packet, 3)):
        begun = packet_of(0, 0, at)
        yield f"{name}_long", engine_receives(first) + b"\x08" + begun[1:] + packet_of(
            2, 0, at + 1, b"", text) + packet_of(0x15, 0, at + 5) + packet_of(4, 0, at + 5, b"", text)
    yield "rd_posts", b"".join(engine_act(4 | how << 3) for how in range(8)) + engine_packet(
        0x51, 0x70, at, joined(("I", EE_CONTEXT)) + aeth(0x1f, 1)) + engine_act(3 | 31 << 3) * 3
    for receiver in range(2):
        yield f"xrc_send_{receiver}", engine_receives(3 + receiver) + xrc_packet(
            4, receiver, at, b"", text) + xrc_packet(4, receiver, at + 1, b"", text)
    for number in (XRC_TARGET, EE_CONTEXT, RD_QPN, 0x99):
        yield f"target_{number:x}", engine_receives(3) + b"".join(
            about_target(kind, number, how=how) + xrc_packet(4, 0, at, b"", text)
            for kind, how in ((SHARED, 0), (TAKE, 0x80), (TAKE, 0xc0), (RELEASE, 0), (FAILED, 0),
                              (FORGET, 0), (TAKE, 0x40)))
        yield f"target_alone_{number:x}", b"".join(
            about_target(kind, number) for kind in (SHARED, RELEASE, FAILED, FORGET))
    yield "target_moves", engine_receives(3, 4) + about_target(SHARED) + xrc_packet(
        4, 0, at, b"", text) + about_target(RELEASE) + about_target(
            TAKE, psn=at + 7, how=0xc0) + xrc_packet(4, 0, at + 7, b"", text) + about_target(
                TAKE, psn=at + 3, flags=4)


# --- scsi: commands, each flags, LUN, room for data in 64 bytes, data-out in 64 bytes, the CDB ---

(PR_REGISTER, PR_RESERVE, PR_RELEASE, PR_CLEAR, PR_PREEMPT, PR_ABORT, PR_IGNORE,
 PR_MOVE) = range(8)
HOST_A, HOST_B = 0x10, 0x20


def scsi_command(host, cdb, out=b"", room=0):
    blocks = -(-len(out) // 64)
    return bytes([host, 0, room, blocks]) + cdb.ljust(16, b"\0") + out.ljust(64 * blocks, b"\0")


def pr_out(host, action, key, new=0, kind=1, more=b"", flags=0, port=0, out_bytes=None):
    """PERSISTENT RESERVE OUT; @more: behind the 24 bytes of its parameter list, behind 20 of a move's"""
    if action == PR_MOVE:
        out = joined(("QQ", key, new), ("BBH", 0, flags, port)) + more
    else:
        out = joined(("QQ", key, new), ("IBBH", 0, flags, 0, 0)) + more
    return scsi_command(host, joined(("BBB2xIB", 0x5f, action, kind, len(out) if out_bytes is None else
                                      out_bytes, 0)), out)


def pr_in(host, action):
    return scsi_command(host, joined(("BB5xHB", 0x5e, action, 512, 0)), room=8)


def port_id(host):
    return bytes([host]).ljust(24, b"\0")


def scsi():
    both = pr_out(HOST_A, PR_IGNORE, 0, 1) + pr_out(HOST_B, PR_REGISTER, 0, 2)
    ask = b"".join(pr_in(HOST_B, action) for action in range(4))
    write = scsi_command(HOST_B, joined(("BBIBHB", 0x2a, 0, 0, 0, 0, 0)))
    for kind in (1, 3, 5, 6, 7, 8):
        held = both + pr_out(HOST_A, PR_RESERVE, 1, kind=kind)
        yield f"held_{kind}", held + ask + write
        yield f"released_{kind}", held + pr_out(HOST_A, PR_RELEASE, 1, kind=kind) + ask
        yield f"preempted_{kind}", held + pr_out(HOST_B, PR_PREEMPT, 2, 1, kind=kind) + ask
        yield f"aborted_{kind}", held + pr_out(HOST_B, PR_ABORT, 2, 1, kind=kind) + ask
        yield f"cleared_{kind}", held + pr_out(HOST_B, PR_CLEAR, 2) + ask
        for name, to, flags in (("registered", HOST_B, 0), ("new", 0x30, 2), ("itself", HOST_A, 2)):
            moved = joined(("I", 24)) + port_id(to)
            yield f"moved_{name}_{kind}", held + pr_out(
                HOST_A, PR_MOVE, 1, 9, kind, moved, flags, 1) + ask + write
        yield f"moved_short_{kind}", (held + pr_out(HOST_A, PR_MOVE, 1, 9, kind, joined(("I", 24)), 2, 1))[:-40]
    several = joined(("I", 48)) + port_id(0x30) + port_id(0x40)
    yield "spec_i_pt", pr_out(HOST_A, PR_REGISTER, 0, 1, more=several, flags=8) + ask


# --- uverbs: messages, each whole: a kind of 0x80, its length in words, the words ---

RC_QP, UD_QP, LOCAL_WRITE = 2, 4, 1
FIRST_OWN_COMMAND, OWN_COMMANDS = 0x5f00, 16  # what libibverbs asks softibd alone
CREATED_QP, CREATED_WORDS = 0x5f0f, 41  # the answer to CREATE_QP with a grant
PD, CQ, SRQ, MR, QP = range(5)  # the handles of uverbs_objects()


def uverbs_command(number, fields, answer_words=0):
    """A command as libibverbs writes it: the header, where the answer goes, the fields."""
    body = pack("<Q", 1) + fields  # the address is not 0: an answer is wanted
    words = (8 + len(body)) // 4
    return bytes([0x80, words]) + pack("<IHH", number, words, answer_words) + body


def uverbs_objects(qp_type):
    """A protection domain, a CQ, an SRQ, an MR and a QP; a context's handles begin with 0."""
    return (uverbs_command(3, b"", 1) +
            uverbs_command(18, pack("<QIIiI", 7, 16, 0, -1, 0), 2) +
            uverbs_command(32, pack("<QIIII", 7, PD, 16, 1, 0), 4) +
            uverbs_command(9, pack("<QQQII", 0x10000, 4096, 0x10000, PD, LOCAL_WRITE), 3) +
            uverbs_command(24, uverbs_qp(qp_type), 8))


def uverbs_qp(qp_type):
    return pack("<Q9I4B", 7, PD, CQ, CQ, SRQ, 8, 8, 1, 1, 0, 1, qp_type, 0, 0)


def uverbs_granted(*told):
    """A QP with whose answer another one is granted, and messages about that one."""
    return uverbs_objects(RC_QP) + uverbs_command(24, uverbs_qp(RC_QP), CREATED_WORDS) + b"".join(told)


def uverbs_end(number, handle):
    """A command that has a handle alone and no answer."""
    return bytes([0x80, 3]) + pack("<IHHI", number, 3, 0, handle)


def uverbs_modify(qp, mask, state):
    """MODIFY_QP: two paths, the numbers, the bytes; no address for the answer comes first."""
    fields = (bytes(64) + pack("<7I", qp, mask, 0x11111111, 0, 0, 0x22, 0) + pack("<2H", 0, 0) +
              bytes([state, 0, 3, 0, 0, 1, 1, 12, 1, 14, 7, 7, 0, 0, 0, 0]))
    words = (8 + len(fields)) // 4
    return bytes([0x80, words]) + pack("<IHH", 26, words, 0) + fields


def uverbs():
    yield "ask", (uverbs_command(1, b"", 44) + uverbs_command(2, pack("<B7x", 1), 10) +
                  uverbs_command(17, b"", 1))
    created = uverbs_command(CREATED_QP, uverbs_qp(RC_QP) + pack("<II", QP + 2, 0))
    init = uverbs_modify(QP + 2, 0x39, 1)[2:]
    init = pack("<I", FIRST_OWN_COMMAND + 14) + init[4:]
    both = created[2:] + init
    yield "granted", uverbs_granted(created)
    yield "granted_init", uverbs_granted(bytes([0x80, len(both) // 4]) + both)
    yield "granted_twice", uverbs_granted(created, created, uverbs_command(24, uverbs_qp(RC_QP), CREATED_WORDS))
    for name, kind, mask in (("rc", RC_QP, 0x39), ("ud", UD_QP, 0x71)):
        made = uverbs_objects(kind)
        yield name, made
        yield f"{name}_init", made + uverbs_modify(QP, mask, 1)
        yield f"{name}_end", (made + uverbs_modify(QP, mask, 1) +
                              b"".join(uverbs_command(number, pack("<II", handle, 0), words)
                                       for number, handle, words in ((27, QP, 1), (35, SRQ, 1),
                                                                     (20, CQ, 2))) +
                              uverbs_end(13, MR) + uverbs_end(4, PD))
        yield f"{name}_own", made + b"".join(
            bytes([0x80, 18]) + pack("<IHH", number, 18, words) + pack("<16I", *[handle] * 16)
            for number in range(FIRST_OWN_COMMAND, FIRST_OWN_COMMAND + OWN_COMMANDS)
            for handle in (PD, QP) for words in (0, 16))


# --- ucma: messages, each headed by whose it is and its length in words ---

UCMA_SERVER, UCMA_CLIENT, UCMA_NEWS, UCMA_GONE = 0, 1, 2, 6
TCP_SPACE, UDP_SPACE, IB_SPACE = 0x106, 0x111, 0x13f
UCMA_PORT = 7471
UCMA_LISTENS, UCMA_ASKS, UCMA_IS_ASKED = 1, 3, 5  # ids: with each of its own, a program is granted one more
(CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT,
 REJECT, DISCONNECT, INIT_QP_ATTR, GET_EVENT, GET_OPTION, SET_OPTION, NOTIFY, JOIN_IP, LEAVE, MIGRATE,
 QUERY, BIND, RESOLVE_ADDR, JOIN) = range(23)


def ucma_command(who, number, fields, answer=512):
    """A command as librdmacm writes it: the header, and its struct."""
    body = fields.ljust(-(-len(fields) // 4) * 4, b"\0")
    return bytes([who, (8 + len(body)) // 4]) + pack("<IHH", number, len(body), answer) + body


def ipv4(last, port=UCMA_PORT):
    return pack("<H", 2) + pack(">HBBBB", port, *([10, 0, 0, last] if last else [0] * 4)) + bytes(8)


def ipv6(last, port=UCMA_PORT):
    return (pack("<H", 10) + pack(">HI", port, 0) +
            bytes([0xfd, *[0] * 14, last]) + bytes(4))


def gid_address(last, space=TCP_SPACE, port=UCMA_PORT):
    return (pack("<H", 27) + pack(">HI", 0xffff, 0) + bytes([0xfe, 0x80, *[0] * 13, last]) +
            pack(">QQ", space << 16 | port, (1 << 64) - 1) + bytes(8))


def ucma_id(who, space, qp_type=2):
    return ucma_command(who, CREATE_ID, pack("<QQHB5x", 7, 1, space, qp_type))


def ucma_bind(who, number, address):
    return ucma_command(who, BIND, pack("<IHH", number, len(address), 0) + address.ljust(128, b"\0"))


def ucma_resolve(who, number, address):
    return ucma_command(who, RESOLVE_ADDR, pack("<IIHHI", number, 2000, 0, len(address), 0) +
                        bytes(128) + address.ljust(128, b"\0"))


def ucma_event(who):
    return ucma_command(who, GET_EVENT, pack("<Q", 1))


def ucma_told(who, number, fields, asked):
    """A command that is not answered, before one that is, in a message."""
    told, asked = ucma_command(who, 1 << 31 | number, fields, 0)[2:], asked[2:]
    return bytes([who, (len(told) + len(asked)) // 4]) + told + asked


def ucma_conn(data=b"hello", valid=1):
    """struct rdma_ucm_conn_param"""
    return pack("<II", 0x22, 0) + data.ljust(256, b"\0") + pack("<8B", len(data), 0, 1, 1, 0, 7, 7, valid)


def ucma_by(who, number, *commands):
    """Commands that name an id, and need nothing else of interest."""
    return b"".join(ucma_command(who, command, pack("<QII", 1, number, option))
                    for command, option in commands)


def ucma_connection(space, server, client, qp_type=2):
    """The programs have an id each, and the request is one."""
    said = ucma_id(UCMA_SERVER, space, qp_type) + ucma_id(UCMA_CLIENT, space, qp_type)
    said += ucma_bind(UCMA_SERVER, UCMA_LISTENS, server) + ucma_command(UCMA_SERVER, LISTEN, pack("<II", UCMA_LISTENS, 4))
    said += ucma_resolve(UCMA_CLIENT, UCMA_ASKS, client) + ucma_event(UCMA_CLIENT)
    said += ucma_by(UCMA_CLIENT, UCMA_ASKS, (QUERY, 0), (QUERY, 2))
    said += ucma_command(UCMA_CLIENT, RESOLVE_ROUTE, pack("<II", UCMA_ASKS, 2000)) + ucma_event(UCMA_CLIENT)
    said += ucma_by(UCMA_CLIENT, UCMA_ASKS, (QUERY, 1), (QUERY_ROUTE, 0))
    said += ucma_by(UCMA_CLIENT, UCMA_ASKS, (INIT_QP_ATTR, 1))
    said += ucma_command(UCMA_CLIENT, CONNECT, ucma_conn() + pack("<II", UCMA_ASKS, 0)) + ucma_event(UCMA_SERVER)
    return said


def ucma_accepted(said):
    said += ucma_command(UCMA_SERVER, ACCEPT, pack("<Q", 9) + ucma_conn(b"yes") + pack("<II", UCMA_IS_ASKED, 0))
    said += ucma_event(UCMA_CLIENT)
    said += ucma_command(UCMA_CLIENT, ACCEPT, pack("<Q", 9) + ucma_conn(valid=0) + pack("<II", UCMA_ASKS, 0))
    return said + ucma_event(UCMA_SERVER) + ucma_event(UCMA_CLIENT)


def ucma():
    any_ip, server_ip = ipv4(0), ipv4(2)
    for name, space, server, client, qp_type in (
            ("ipv4", TCP_SPACE, any_ip, server_ip, 2), ("ipv6", TCP_SPACE, ipv6(2), ipv6(2), 2),
            ("gid", TCP_SPACE, gid_address(11), gid_address(11), 2),
            ("datagram", UDP_SPACE, any_ip, server_ip, 4),
            ("ib", IB_SPACE, gid_address(11, IB_SPACE), gid_address(11, IB_SPACE), 2)):
        asked = ucma_connection(space, server, client, qp_type)
        made = ucma_accepted(asked)
        yield f"{name}_asked", asked
        yield f"{name}_taken", asked + ucma_told(UCMA_CLIENT, 0x5f00, pack("<II", 1, 0), ucma_event(UCMA_CLIENT))
        yield f"{name}_made", made
        yield f"{name}_refused", asked + ucma_command(
            UCMA_SERVER, REJECT, pack("<IBB2x", UCMA_IS_ASKED, 5, 28) + b"no".ljust(256, b"\0")) + ucma_event(UCMA_CLIENT)
        yield f"{name}_ended", made + ucma_command(UCMA_CLIENT, DISCONNECT, pack("<I", UCMA_ASKS)) + ucma_event(
            UCMA_SERVER) + ucma_by(UCMA_SERVER, UCMA_IS_ASKED, (DESTROY_ID, 0)) + ucma_by(UCMA_CLIENT, UCMA_ASKS, (DESTROY_ID, 0))
        yield f"{name}_gone", made + bytes([UCMA_GONE | UCMA_CLIENT, 0, UCMA_NEWS, 0]) + ucma_event(UCMA_SERVER)
    for family in (2, 10, 27):  # in structs that have room for an IPv6 address
        address = pack("<H", family) + pack(">H", UCMA_PORT) + bytes(24)
        yield f"old_{family}", (
            ucma_id(UCMA_SERVER, TCP_SPACE) + ucma_id(UCMA_SERVER, UDP_SPACE, 4) +
            ucma_command(UCMA_SERVER, BIND_IP, pack("<Q", 1) + address + pack("<I", 1)) +
            ucma_command(UCMA_SERVER, RESOLVE_IP, address + address + pack("<II", 3, 2000)) +
            ucma_command(UCMA_SERVER, JOIN_IP, pack("<QQ", 1, 5) + address + pack("<I", 3)))
    group = ipv4(0)[:4] + bytes([239, 1, 2, 3]) + bytes(8)
    yield "group", ucma_id(UCMA_SERVER, UDP_SPACE, 4) + ucma_bind(UCMA_SERVER, 1, server_ip) + ucma_command(
        UCMA_SERVER, JOIN, pack("<QQIHH", 1, 5, 1, 16, 0) + group.ljust(128, b"\0")) + ucma_event(
        UCMA_SERVER) + ucma_command(UCMA_SERVER, LEAVE, pack("<QII", 1, 2, 0))
    yield "options", ucma_id(UCMA_SERVER, TCP_SPACE) + b"".join(
        ucma_command(UCMA_SERVER, SET_OPTION, pack("<QIIIII", 0, 1, 0, name, 4, 1)) for name in range(4))
    both_ways = pack("<II", 0x2b, 0) + bytes(64)
    yield "path", ucma_id(UCMA_CLIENT, TCP_SPACE) + ucma_resolve(UCMA_CLIENT, 1, server_ip) + ucma_event(
        UCMA_CLIENT) + ucma_command(UCMA_CLIENT, SET_OPTION, pack("<QIIII", 0, 1, 1, 1, 2 * len(both_ways)) + bytes(
            len(both_ways)) + both_ways) + ucma_event(UCMA_CLIENT)


# --- ucm: messages as ucma's ---

(UCM_CREATE, UCM_DESTROY, UCM_ATTR, UCM_LISTEN, UCM_NOTIFY, UCM_REQ, UCM_REP, UCM_RTU, UCM_DREQ, UCM_DREP, UCM_REJ, UCM_MRA,
 UCM_LAP, UCM_APR, UCM_SIDR_REQ, UCM_SIDR_REP, UCM_EVENT, UCM_QP_ATTR) = range(18)
UCM_SERVICE = 0x1000000000001234
UCM_LISTENS, UCM_ASKS, UCM_IS_ASKED = 1, 2, 3  # ids


def ucm_command(who, number, fields, behind=b""):
    """A command as libibcm sends it: the header, its struct, and what that points to."""
    return bytes([who, (8 + len(fields) + len(behind)) // 4]) + pack("<IHH", number, len(fields), 512) + fields + behind


def ucm_path(source, destination):
    """struct ib_user_path_rec between nodes of tests/unit/core/mad_net.h"""
    gids = [bytes([0xfe, 0x80, *[0] * 13, 10 + node]) for node in (destination, source)]
    return b"".join(gids) + pack(">HH", 10 + destination, 10 + source) + bytes(8) + pack("<II", 1, 5) + pack(
        ">H", 0xffff) + bytes([0, 0, 1, 2, 2, 2, 3, 2, 10, 0])


def ucm_event(who, last=255):
    return bytes([UCMA_NEWS | who, 0]) + ucm_command(who, UCM_EVENT, pack("<QQQBB6x", 1, 1, 1, last, last))


def ucm_data(who, number, at):
    return ucm_command(who, number, pack("<QIB3x", 1, at, 4), b"data")


def ucm_asked(alternate=0):
    """The programs have an id each, and the request is one."""
    said = ucm_command(UCMA_SERVER, UCM_CREATE, pack("<QQ", 7, 1)) + ucm_command(UCMA_CLIENT, UCM_CREATE, pack("<QQ", 8, 1))
    said += ucm_command(UCMA_SERVER, UCM_LISTEN, pack(">QQ", UCM_SERVICE, 0) + pack("<II", UCM_LISTENS, 0))
    said += ucm_command(UCMA_CLIENT, UCM_REQ, pack("<IIII", UCM_ASKS, 0x22, 2, 0x1000) + pack(">Q", UCM_SERVICE) + pack(
        "<QQQ11B5x", 1, 1, alternate, 4, 0, 4, 4, 20, 1, 20, 7, 7, 15, 0), b"data" + ucm_path(2, 1) * (1 + alternate))
    return said + ucm_event(UCMA_SERVER)


def ucm_qp_attr(who, number):
    return b"".join(ucm_command(who, UCM_QP_ATTR, pack("<QII", 1, number, state)) for state in (1, 2, 3))


def ucm_made(alternate=0):
    said = ucm_asked(alternate) + ucm_qp_attr(UCMA_SERVER, UCM_IS_ASKED)
    said += ucm_command(UCMA_SERVER, UCM_REP, pack("<QQIII8B4x", 9, 1, UCM_IS_ASKED, 0x33, 0x2000, 4, 4, 4, 15, 0, 1, 7, 0),
                        b"data") + ucm_event(UCMA_CLIENT)
    return said + ucm_qp_attr(UCMA_CLIENT, UCM_ASKS) + ucm_data(UCMA_CLIENT, UCM_RTU, UCM_ASKS) + ucm_event(UCMA_SERVER)


def ucm_status(who, number, at, status):
    return ucm_command(who, number, pack("<IIQQBB6x", at, status, 1, 1, 4, 4), b"datainfo")


def ucm():
    asked, made = ucm_asked(), ucm_made(1)
    yield "asked", asked + ucm_command(UCMA_SERVER, UCM_ATTR, pack("<QII", 1, UCM_IS_ASKED, 0))
    yield "made", made
    yield "ended", made + ucm_data(UCMA_CLIENT, UCM_DREQ, UCM_ASKS) + ucm_event(UCMA_SERVER) + ucm_data(
        UCMA_SERVER, UCM_DREP, UCM_IS_ASKED) + ucm_event(UCMA_CLIENT) + ucm_command(UCMA_CLIENT, UCM_DESTROY, pack("<QII", 1, UCM_ASKS, 0))
    yield "refused", asked + ucm_status(UCMA_SERVER, UCM_REJ, UCM_IS_ASKED, 28) + ucm_event(UCMA_CLIENT)
    yield "delayed", asked + ucm_command(UCMA_SERVER, UCM_MRA, pack("<QIBB2x", 1, UCM_IS_ASKED, 4, 18), b"data") + ucm_event(
        UCMA_CLIENT) + ucm_status(UCMA_CLIENT, UCM_REJ, UCM_ASKS, 4) + ucm_event(UCMA_SERVER)
    yield "path", made + ucm_command(UCMA_CLIENT, UCM_LAP, pack("<QQIB3x", 1, 1, UCM_ASKS, 4), b"data" + ucm_path(
        2, 1)) + ucm_event(UCMA_SERVER) + ucm_status(UCMA_SERVER, UCM_APR, UCM_IS_ASKED, 0) + ucm_event(UCMA_CLIENT)
    yield "notified", made + b"".join(
        ucm_command(UCMA_SERVER, UCM_NOTIFY, pack("<II", UCM_IS_ASKED, event)) for event in (4, 14))
    yield "resolved", (
        ucm_command(UCMA_SERVER, UCM_CREATE, pack("<QQ", 7, 1)) + ucm_command(UCMA_CLIENT, UCM_CREATE, pack("<QQ", 8, 1)) +
        ucm_command(UCMA_SERVER, UCM_LISTEN, pack(">QQ", UCM_SERVICE, (1 << 64) - 256) + pack("<II", UCM_LISTENS, 0)) +
        ucm_command(UCMA_CLIENT, UCM_SIDR_REQ, pack("<II", UCM_ASKS, 1000) + pack(">Q", UCM_SERVICE) + pack(
            "<QQHBB4x", 1, 1, 0, 4, 3), b"data" + ucm_path(2, 1)) + ucm_event(UCMA_SERVER) +
        ucm_command(UCMA_SERVER, UCM_SIDR_REP, pack("<IIIIQQBB6x", UCM_IS_ASKED, 0x44, 0x55, 0, 1, 1, 4, 4), b"datainfo") +
        ucm_event(UCMA_CLIENT))
    yield "small", asked + ucm_event(UCMA_SERVER, 0)
    yield "gone", made + bytes([UCMA_GONE | UCMA_CLIENT, 0]) + ucm_event(UCMA_SERVER)
    yield "left", made + bytes([UCMA_GONE | UCMA_SERVER, 0]) + ucm_event(UCMA_CLIENT)


# --- sdp_ring: a byte, so many interruptions (after how many loads, what), then actions ---

NO_WAIT = 8  # of a write; a read has two bits for how
SOFTIBD_TURN, LEASE_ENDS = b"\x07", b"\x05"


def ring_write(size, how=0):
    return bytes([how]) + pack(">H", size >> 1)


def ring_read(size, how=0):
    return bytes([2 | how << 3]) + pack(">H", size >> 1)


def ring_ticks(count):
    return bytes([4 | (count - 1) << 3])


def ring_word(word, value):
    return bytes([6 | (word & 31) << 3, word >> 5]) + pack(">I", value)


def sdp_ring():
    """Much is written and read until there is a lease, which then ends in all of its ways."""
    wait = ring_read(40000)  # it sleeps: nothing is there
    begin = ring_write(20000) + SOFTIBD_TURN + ring_read(40000) + wait + ring_write(30000) + SOFTIBD_TURN * 2 + wait
    flow = begin + (SOFTIBD_TURN + ring_write(60000) + ring_read(30000, 1)) * 4
    full = flow + ring_write(130000, NO_WAIT) * 8
    stories = {"flow": flow, "full": full, "full_waits": full + ring_write(100000),
               "ends": flow + LEASE_ENDS + ring_write(100) + SOFTIBD_TURN,
               "unseen_writer": flow + ring_write(2000, 0xf0) + ring_write(40000),
               "unseen_reader": flow + ring_read(10000, 28) + ring_ticks(12),
               "nobody_reads": flow + ring_write(60000) + ring_ticks(20), "unused": flow + ring_ticks(32) * 3,
               "peek": flow + ring_read(20000, 2) + ring_read(20000, 3),
               "again": (flow + LEASE_ENDS + SOFTIBD_TURN) * 3}
    for name, story in stories.items():
        yield name, b"\0" + story
        for loads in (0, 1, 3, 7):
            for what in (1, 0x82, 0x83, 0x84, 5):
                yield f"{name}_{loads}_{what:x}", bytes([60]) + bytes([loads, what]) * 60 + story
    for word in (0, 1, 16, 17, 18, 19, 20, 21, 32, 33, 34, 35, 36, 37, 38, 39):
        for value in (0, 1, 3, 0xffffffff):
            yield f"lie_{word}_{value:x}", (b"\0" + flow + ring_write(60000) + ring_word(word, value) + ring_ticks(1) +
                                           ring_write(50000, NO_WAIT) + ring_read(50000, 1) + SOFTIBD_TURN)


# --- sdp_machine: actions; a message of the peer has the numbers that are due ---

SDP_SEND, SDP_SENT, SDP_SUSPEND, SDP_NOT_RESUMED = b"\x06\x00", b"\x04", b"\x0b\x01", b"\x0b\x00"
SDP_LEND_100, SDP_DELIVER = b"\x0a\x64", b"\x08\x00"


def sdp_message(mid, length=16):
    return bytes([12, 0, length, mid]) + bytes(length - 1)


def sdp_machine():
    """Both ends ask to suspend the communication; what follows is made, or not. The peer writes into a sink."""
    susp, ack = sdp_message(0x0d, 24), sdp_message(0x0e)
    src_avail = bytes([12, 0, 33, 0xfe]) + bytes(15) + pack(">IIQ", 9, 0, 0) + b"x"
    written = bytes([12, 0, 20, 0x05]) + bytes(15) + pack(">I", 100)
    stories = {"sink": (SDP_LEND_100 + SDP_SEND + SDP_SENT + written + SDP_DELIVER * 3) * 2, "too_late": susp + SDP_SEND + src_avail + SDP_SENT, "asks": SDP_SUSPEND + SDP_SEND + ack, "is_asked": susp + SDP_SEND + SDP_SENT,
               "both_ask": SDP_SUSPEND + SDP_SEND + susp + SDP_SEND + SDP_SENT}
    for name, story in stories.items():
        for mode in range(2):  # the pipelined mode, if the number of bytes is odd
            yield f"{name}_{mode}", story + SDP_NOT_RESUMED + b"\x05" * ((len(story) + mode) % 2)


# --- net_merge: packets, each behind a word: bit 15 its checksum is right, bit 14 it stays, its length ---

def ip_header(v6, protocol, length):
    if v6:
        return pack(">IHBB", 0x60000000, length, protocol, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
    return pack(">BBHHHBBHII", 0x45, 0, 20 + length, 0, 0x4000, 64, protocol, 0, 0x0a010001, 0x0a010002)


def ip_segments(v6, sizes, flags=0x10, options=b"", udp=False, port=4000):
    """TCP segments of a flow, or datagrams of UDP, of @sizes bytes of data. The last has the flag PSH."""
    seq = 0xffffff00
    for number, size in enumerate(sizes):
        last = 8 * (number + 1 == len(sizes))
        l4 = (pack(">HHHH", port, 5000, 8 + size, 1) if udp else
              pack(">HHIIBBHHH", port, 5000, seq, 7, (20 + len(options)) << 2, flags | last, 100, 0, 0) + options)
        packet = ip_header(v6, 17 if udp else 6, len(l4) + size) + l4 + bytes((number + i) % 251 for i in range(size))
        for how in (0x8000, 0xc000):
            yield how, packet
        seq = (seq + size) & 0xffffffff


def net_merge():
    """Flows that are merged, with and without copies, and what ends them."""
    def joined_as(stays, *packets):
        return b"".join(pack(">H", how | len(packet)) + packet for how, packet in packets if stays in (how, None))

    flows = {"tcp": {"sizes": [100] * 6}, "short": {"sizes": [100, 100, 40]}, "long_last": {"sizes": [100, 140]},
             "options": {"sizes": [64] * 3, "options": bytes([1, 1, 8, 10]) + bytes(8)}, "many": {"sizes": [1] * 130},
             "udp": {"sizes": [200] * 3, "udp": True}, "udp_many": {"sizes": [9] * 70, "udp": True},
             "fin": {"sizes": [100] * 2, "flags": 0x11}, "large": {"sizes": [1900] * 4}}
    for v6 in (False, True):
        for name, how in flows.items():
            for stays in (0x8000, 0xc000):
                yield f"{name}_{v6:d}_{stays:x}", joined_as(stays, *ip_segments(v6, **how))
    two = [list(ip_segments(False, [50] * 4, port=port)) for port in (4000, 4001)]
    yield "two", joined_as(0xc000, *(one for pair in zip(*two) for one in pair))
    yield "mixed", joined_as(None, *list(ip_segments(False, [50] * 8))[::3])


# --- pvrdma: MADs of the CM, each behind a byte: bit 0 it arrives, the others its sender's number ---

CM_REQ, CM_REJ, CM_REP, CM_RTU, CM_SIDR_REQ, CM_SIDR_REP = 0x10, 0x12, 0x13, 0x14, 0x17, 0x18


def cm_mad(attr, local=0, remote=0, data=b""):
    """@local, @remote: communication ids. @data: from the third field on."""
    return (pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 1, attr, 0, 0) + pack(">II", local, remote) + data).ljust(256, b"\0")


def pvrdma():
    """Connections that the guest requests and accepts, and who is asked for a queue pair."""
    came, leaves = 2 * 9 + 1, 2 * 9
    address = bytes(2) + bytes([0, 0x40]) + bytes(18 + 12) + bytes([10, 1, 0, 2])
    stories = {
        "requests": [(leaves, cm_mad(CM_REQ, 5)), (came, cm_mad(CM_REP, 6, 5)), (leaves, cm_mad(CM_RTU, 5, 6))],
        "accepts": [(came, cm_mad(CM_REQ, 7)), (leaves, cm_mad(CM_REP, 8, 7)), (came, cm_mad(CM_RTU, 7, 8))],
        "rejects": [(came, cm_mad(CM_REQ, 7)), (leaves, cm_mad(CM_REJ, 0, 7)), (leaves, cm_mad(CM_REJ, 9, 9))],
        "asked": [(came, cm_mad(CM_SIDR_REQ, 3)), (leaves, cm_mad(CM_SIDR_REP, 3))],
        "asks": [(leaves, cm_mad(CM_SIDR_REQ, 4, 0, bytes(8) + address)), (came, cm_mad(CM_SIDR_REP, 4))]}
    for name, mads in stories.items():
        yield name, b"".join(bytes([how]) + mad for how, mad in mads)
    yield "all", b"".join(bytes([how]) + mad for mads in stories.values() for how, mad in mads)


# --- cable: messages of the other side, behind a byte that says how: fuzz_cable.c ---

LISTENS, HAS_KEY, IS_OPEN, CONSUMES = 1, 2, 4, 8


def cable():
    """Every message before and after a session is open, with its right length and with wrong ones."""
    def hello(has_key, magic=b"softib cable 1\n\0", name=b"lab2/s1:5", guid=9):
        body = magic + bytes(32) + pack(">BQQ", has_key, 1, guid) + name
        return pack(">IB", 1 + len(body), 1) + body

    def packet(vl, length, hops=0):
        body = pack(">BBBHHH", hops, vl << 4, 2, 5, (28 + length) // 4 + 1, 9) + pack(
            ">BBHIIII", 0x64, 0, 0xffff, 7, 0, 0, 8) + bytes(length)
        return pack(">IB", 1 + len(body), 5) + body

    def short(kind, fmt, *values):
        return pack(">IB" + fmt, 1 + len(pack(">" + fmt, *values)), kind, *values)

    link, credit = short(3, "BBBH", 1, 2, 2, 0xffff), short(4, "Q", 2 << 20)
    proof = short(2, "32s", b"")
    says = {"link": link, "unplugged": link + short(3, "BBBH", 0, 2, 2, 1), "link_long": short(3, "BBBHB", 1, 2, 2, 1, 0),
            "link_twice": short(3, "BBBH", 2, 2, 2, 1), "credit": credit + short(4, "Q", 2 << 20),
            "credit_back": credit + short(4, "Q", 5), "credit_beyond": short(4, "Q", (2 << 20) + 1),
            "credit_short": short(4, "I", 0), "smp": packet(15, 256), "data": credit + packet(0, 256, 7) * 3,
            "data_beyond": packet(0, 256) * 9, "data_exact": packet(0, 2000 - 28), "packet_none": short(5, ""),
            "packet_short": short(5, "10s", b""), "none": b"", "nothing": pack(">IB", 0, 1), "long": pack(">IB", 1 << 20, 5),
            "no_type": short(0, ""), "type": short(6, ""), "hello": hello(0), "proof": proof}
    for name, messages in says.items():
        for how in (IS_OPEN, IS_OPEN | LISTENS | HAS_KEY | CONSUMES):
            yield f"open_{name}_{how:x}", bytes([how | 0x60]) + messages
        yield f"first_{name}", bytes([LISTENS]) + messages
        yield f"behind_{name}", bytes([LISTENS]) + hello(0) + messages
        yield f"key_{name}", bytes([HAS_KEY]) + hello(1) + messages
    for how in (0, LISTENS, HAS_KEY):
        for name, text in {"other_magic": hello(0, b"softib cable 2\n\0"), "no_name": hello(0, name=b""),
                           "long_name": hello(0, name=bytes(64)), "name": hello(0, name=b"\x1b\xff" + b"n" * 61),
                           "same_guid": hello(0, guid=2), "key": hello(1), "cut": hello(0)[:-20]}.items():
            yield f"hello_{name}_{how}", bytes([how]) + text


# --- cable_frames: records of a kind, a length and bytes (fuzz_frames.c) ---

CABLE, RDMA, PULL = 1, 1 << 1, 3 << 1
FROM = 1 << 3  # host 1 of three
N1, N2, ALL = 1 << 5, 2 << 5, 3 << 5


def cable_frames():
    """Hosts that show their addresses in each way, and RDMA between them and the nodes."""
    def record(kind, data):
        return bytes([kind, len(data)]) + data

    def frame(kind, ether_type, data, vlan=None):
        tag = b"" if vlan is None else pack(">HH", 0x8100, vlan)
        return record(kind, bytes(12) + tag + pack(">H", ether_type) + data)

    def mapped(*address):
        return bytes(10) + b"\xff\xff" + bytes(address)

    def rdma(kind, source, destination, bth=bytes.fromhex("6400ffff00000005000000008001000000000007") + bytes(12), vlan=0):
        return record(kind | RDMA, bytes([vlan != 0, vlan]) + source + destination + bth)

    def arp(address, mac=bytes.fromhex("525400000001")):
        return bytes.fromhex("0001080006040001") + mac + bytes(address) + bytes(6) + bytes([10, 1, 0, 1])

    host, node = mapped(10, 1, 9, 1), mapped(10, 1, 0, 1)
    hello = frame(FROM | ALL, 0x0806, arp([10, 1, 9, 1]))
    udp = bytes.fromhex("4500001c000000004011000a0a0109010a01000100010002000800" + "00" * 9)
    solicit = bytes.fromhex("6000000000203aff") + bytes.fromhex("fd00" + "00" * 13 + "09") + bytes.fromhex(
        "ff02" + "00" * 9 + "01ff000001") + bytes.fromhex("87000000" + "00" * 28)
    says = {"arp": hello, "arp_of_another": frame(FROM, 0x0806, arp([10, 1, 9, 1], bytes(6))), "udp": frame(FROM | N1, 0x0800, udp),
            "solicit": frame(FROM | ALL, 0x86dd, solicit), "vlan": frame(FROM | ALL, 0x0806, arp([10, 1, 9, 1]), 5),
            "own_mac": record(0, bytes.fromhex("ffffffffffff027369000001") + pack(">H", 0x0806) + arp([10, 1, 0, 1])),
            "no_mac": frame(0, 0x0806, arp([10, 1, 9, 1])), "short": record(FROM, bytes(13)), "nothing": record(0, b""),
            "rdma": rdma(FROM | N1, host, node), "rdma_n2": rdma(FROM | N2, host, mapped(10, 1, 0, 2)),
            "rdma_all": rdma(FROM | ALL, host, bytes.fromhex("ff0e" + "00" * 8 + "ffffef010203")),
            "rdma_spoofed": rdma(FROM | N1, mapped(10, 1, 0, 2), node), "rdma_vlan": rdma(FROM | N1, host, node, vlan=5),
            "rdma_ipv6": rdma(FROM | N1, bytes.fromhex("fd00" + "00" * 13 + "09"), bytes.fromhex("fd73" + "00" * 13 + "01")),
            "rdma_qp0": rdma(FROM | N1, host, node, bytes.fromhex("6400ffff0000000000000000") + bytes(24)),
            "rdma_none": rdma(FROM | N1, host, node, bytes(3)), "pull": record(PULL, b"")}
    for name, data in says.items():
        yield name, data
        yield f"{name}_again", hello + data * 2
        yield f"{name}_other_cable", hello + bytes([data[0] ^ CABLE]) + data[1:] + data
    yield "all", b"".join(says.values())
    yield "many_hosts", b"".join(record(0, bytes(6) + bytes([0x52, 0x54, 1, 0, i // 256, i % 256]) + pack(">H", 0x88b5)) for i in range(300))
    yield "many_addresses", b"".join(frame(FROM | ALL, 0x0806, arp([10, 1, 8, i])) for i in range(20))


MADE = {"agents": agents, "cable": cable, "cable_frames": cable_frames, "engine": engine, "net_merge": net_merge, "pvrdma": pvrdma, "scsi": scsi, "sdp_machine": sdp_machine, "sdp_ring": sdp_ring, "sm": sm,
        "transport": transport, "ucm": ucm, "ucma": ucma, "uverbs": uverbs}


def of(target):
    """Return: pairs (name, bytes); none where nothing is made."""
    return list(MADE[target]()) if target in MADE else []
