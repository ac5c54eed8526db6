# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A rank of MPI, by whichever library is named: rings, collectives and one-sided operations,
whose data every rank checks. mpi_check.py libmpi.so.40|libmpich.so.12 [fences]

With "fences", no message of one-sided operations comes while a larger one of its sender is under way.
Rank 0 prints "checked: ROUNDS by SIZE ranks" when all are right; a wrong byte ends the job."""
import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
MPICH = "mpich" in sys.argv[1]
Handle = ctypes.c_int if MPICH else ctypes.c_void_p
WORDS = [1, 1000, 100_000]  # of 8 bytes, in a message: eager, and by rendezvous
LOCK_EXCLUSIVE, LOCK_SHARED = (234, 235) if MPICH else (1, 2)


def of(open_mpi, mpich):
    """A predefined handle: a pointer to an object of Open MPI, a number of MPICH."""
    if MPICH:
        return ctypes.c_int(mpich)
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, open_mpi)))


WORLD = of("ompi_mpi_comm_world", 0x44000000)
LONG = of("ompi_mpi_long", 0x4c000807)
SUM = of("ompi_mpi_op_sum", 0x58000003)
NO_INFO = of("ompi_mpi_info_null", 0x1c000000)
NO_STATUS = ctypes.c_void_p(1 if MPICH else None)
displacement = ctypes.c_long


def call(name, *args):
    status = getattr(lib, name)(*args)
    if status:
        sys.exit(f"{name}: {status}")


def number(name):
    value = ctypes.c_int()
    call(name, WORLD, ctypes.byref(value))
    return value.value


def longs(values):
    values = list(values)
    return (ctypes.c_long * len(values))(*values)


def check(what, got, expected):
    got, expected = list(got), list(expected)
    if got == expected:
        return
    at = next(i for i, (a, b) in enumerate(zip(got, expected)) if a != b)
    sys.stderr.write(f"rank {rank}: {what}: word {at} of {len(got)} is {got[at]}, not {expected[at]}\n")
    lib.MPI_Abort(WORLD, 1)


def pattern(of_rank, words):
    """what @of_rank sends"""
    return range(of_rank * 1_000_000, of_rank * 1_000_000 + words)


def ring(words):
    """Each sends to the next, and a sum goes around."""
    before, after = (rank - 1) % size, (rank + 1) % size
    mine, got = longs(pattern(rank, words)), longs([0] * words)
    call("MPI_Sendrecv", mine, words, LONG, after, 7, got, words, LONG, before, 7, WORLD, NO_STATUS)
    check("ring", got, pattern(before, words))
    token = longs([0])
    if rank:
        call("MPI_Recv", token, 1, LONG, before, 8, WORLD, NO_STATUS)
    token[0] += rank
    call("MPI_Send", token, 1, LONG, after, 8, WORLD)
    if not rank:
        call("MPI_Recv", token, 1, LONG, before, 8, WORLD, NO_STATUS)
        check("token", token, [sum(range(size))])


def collectives(words):
    data = longs(pattern(rank, words))
    got = longs([0] * words)
    call("MPI_Allreduce", data, got, words, LONG, SUM, WORLD)
    check("allreduce", got, [sum(range(size)) * 1_000_000 + size * i for i in range(words)])
    for root in 0, size - 1:
        some = longs(pattern(root, words) if rank == root else [0] * words)
        call("MPI_Bcast", some, words, LONG, root, WORLD)
        check("bcast", some, pattern(root, words))
    everyone = longs([0] * (words * size))
    call("MPI_Allgather", data, words, LONG, everyone, words, LONG, WORLD)
    check("allgather", everyone, [word for r in range(size) for word in pattern(r, words)])
    blocks = longs([1000 * rank + to for to in range(size) for _ in range(words)])
    call("MPI_Alltoall", blocks, words, LONG, everyone, words, LONG, WORLD)
    check("alltoall", everyone, [1000 * r + rank for r in range(size) for _ in range(words)])
    call("MPI_Barrier", WORLD)


def window_of(words):
    """A window that each rank has, and this rank's memory in it"""
    window, memory = Handle(), longs([0] * words)
    call("MPI_Win_create", memory, displacement(ctypes.sizeof(memory)), 8, NO_INFO, WORLD, ctypes.byref(window))
    return window, memory


def group_of(one):
    everyone, group = Handle(), Handle()
    call("MPI_Comm_group", WORLD, ctypes.byref(everyone))
    call("MPI_Group_incl", everyone, 1, (ctypes.c_int * 1)(one), ctypes.byref(group))
    return group


def post_and_start(words):
    """Put to the next and get from it, between start and complete, while the one before does the same here."""
    before, after = (rank - 1) % size, (rank + 1) % size
    window, memory = window_of(2 * words)
    memory[:words] = pattern(rank, words)
    mine, got = longs(pattern(rank, words)), longs([0] * words)
    call("MPI_Win_post", group_of(before), 0, window)
    call("MPI_Win_start", group_of(after), 0, window)
    call("MPI_Get", got, words, LONG, after, displacement(0), words, LONG, window)
    call("MPI_Put", mine, words, LONG, after, displacement(words), words, LONG, window)
    call("MPI_Win_complete", window)
    call("MPI_Win_wait", window)
    check("get between start and complete", got, pattern(after, words))
    check("put between post and wait", memory[words:], pattern(before, words))
    call("MPI_Win_free", ctypes.byref(window))


def shared_lock(words):
    """All lock all windows at once: each writes to its part of all, adds to it, and all take turns by
    compare-and-swap."""
    window, memory = window_of(words * size + 1)
    mine, ones, old = longs(pattern(rank, words)), longs([1] * words), longs([0] * words)
    part, turn = displacement(words * rank), displacement(words * size)
    call("MPI_Win_lock_all", 0, window)
    for to in range(size):
        call("MPI_Put", mine, words, LONG, to, part, words, LONG, window)
        call("MPI_Win_flush", to, window)
        call("MPI_Get_accumulate", ones, words, LONG, old, words, LONG, to, part, words, LONG, SUM, window)
        call("MPI_Win_flush", to, window)
        check("get and accumulate", old, pattern(rank, words))
    mine_is, next_is, found = longs([rank]), longs([rank + 1]), longs([-1])
    while found[0] != rank:
        call("MPI_Compare_and_swap", next_is, mine_is, found, LONG, 0, turn, window)
        call("MPI_Win_flush", 0, window)
    call("MPI_Win_unlock_all", window)
    call("MPI_Barrier", WORLD)
    call("MPI_Win_lock", LOCK_SHARED, rank, 0, window)
    check("shared lock", memory, [word + 1 for r in range(size) for word in pattern(r, words)] +
          [0 if rank else size])
    call("MPI_Win_unlock", rank, window)
    call("MPI_Win_free", ctypes.byref(window))


def one_sided(words):
    """Put to the next, get from the one before, add to all; then a counter under a lock."""
    window, memory = window_of(2 * words + 1)
    before, after = (rank - 1) % size, (rank + 1) % size
    mine, got = longs(pattern(rank, words)), longs([0] * words)
    call("MPI_Win_fence", 0, window)
    call("MPI_Put", mine, words, LONG, after, displacement(0), words, LONG, window)
    for to in range(size):
        call("MPI_Accumulate", mine, words, LONG, to, displacement(words), words, LONG, SUM, window)
    call("MPI_Win_fence", 0, window)
    check("put", memory[:words], pattern(before, words))
    check("accumulate", memory[words:2 * words],
          [sum(range(size)) * 1_000_000 + size * i for i in range(words)])
    call("MPI_Get", got, words, LONG, after, displacement(0), words, LONG, window)
    call("MPI_Win_fence", 0, window)
    check("get", got, mine)
    one, old = longs([1]), longs([0])
    for _ in range(10):
        call("MPI_Win_lock", LOCK_EXCLUSIVE, 0, 0, window)
        call("MPI_Fetch_and_op", one, old, LONG, 0, displacement(2 * words), SUM, window)
        call("MPI_Win_unlock", 0, window)
    call("MPI_Barrier", WORLD)
    if not rank:
        call("MPI_Win_lock", LOCK_EXCLUSIVE, 0, 0, window)
        check("counter", [memory[2 * words]], [10 * size])
        call("MPI_Win_unlock", 0, window)
    call("MPI_Win_free", ctypes.byref(window))


lib.MPI_Init(None, None)
rank, size = number("MPI_Comm_rank"), number("MPI_Comm_size")
for n in WORDS:
    ring(n)
    collectives(n if n * size <= 200_000 else 200_000 // size)
    one_sided(n)
    if "fences" not in sys.argv:
        post_and_start(n)
        shared_lock(min(n, 100_000 // size))
nodes = longs([0] * size)
here = longs([int(os.environ["SOFTIB_NODE"][1:])])
call("MPI_Allgather", here, 1, LONG, nodes, 1, LONG, WORLD)
if not rank:
    print(f"checked: {len(WORDS)} by {size} ranks on {len(set(nodes))} nodes", flush=True)
lib.MPI_Finalize()
