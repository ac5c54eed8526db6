# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A rank of MPI, by whichever library is named: it says on which node it is, and what the sum of
all ranks and ones is. mpi_side.py libmpi.so.40|libmpich.so.12"""
import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)


def of(open_mpi, mpich):
    """A predefined handle: a pointer to an object of Open MPI, a number of MPICH."""
    if "mpich" in sys.argv[1]:
        return ctypes.c_int(mpich)
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, open_mpi)))


world = of("ompi_mpi_comm_world", 0x44000000)
rank, size, total = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int * 2)()
lib.MPI_Init(None, None)
lib.MPI_Comm_rank(world, ctypes.byref(rank))
lib.MPI_Comm_size(world, ctypes.byref(size))
mine = (ctypes.c_int * 2)(rank.value, 1)
lib.MPI_Allreduce(mine, total, 2, of("ompi_mpi_int", 0x4c000405), of("ompi_mpi_op_sum", 0x58000003), world)
sys.stdout.write(f"hello from {rank.value} of {size.value} on {os.uname().nodename}: {list(total)}\n")
sys.stdout.flush()
lib.MPI_Finalize()
