# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""MPI over the adapters: rings, collectives and one-sided operations, whose data every rank
checks (mpi_check.py), by each library and transport, by whoever runs them, and where a container
allows little."""
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from interop.fabric import NOBODY, NOBODYS_ID, OUTSIDE, SOFTIB, TIMEOUT, public_copy

CHECK = Path(__file__).parent / "mpi_check.py"


def by_libfabric(provider):
    """Open MPI's options."""
    return ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", provider,
            "--mca", "osc", "pt2pt", "--mca", "btl", "self"]


OFI = by_libfabric("verbs;ofi_rxd")
JOBS = {
    "open-mpi-ucx": lambda softib, ranks: ["env", "UCX_LOG_LEVEL=info", softib, "mpirun", "-n", ranks],
    "open-mpi-libfabric": lambda softib, ranks: [softib, "mpirun", "-n", ranks, *OFI],
    # mpirun and its daemons speak by IPv6 alone
    "open-mpi-ipv6": lambda softib, ranks: ["env", "UCX_LOG_LEVEL=info", softib, "mpirun", "-n", ranks,
                                            "--mca", "oob_tcp_disable_ipv4_family", "1"],
    "open-mpi-rxm": lambda softib, ranks: [softib, "mpirun", "-n", ranks, *by_libfabric("verbs;ofi_rxm")],
    "mpich": lambda softib, ranks: ["env", "UCX_TLS=rc,ud,self", "mpiexec.hydra", "-n", ranks, softib, "exec",
                                    "--devices", "--ranks=all", "--"],
}
LIBRARY = {"mpich": ["libmpich.so.12"], "open-mpi-libfabric": ["libmpi.so.40", "fences"],
           "open-mpi-rxm": ["libmpi.so.40", "fences"]}


@pytest.fixture(name="place", params=[(), pytest.param(tuple(NOBODY), marks=pytest.mark.other_user)],
                ids=["us", "ordinary-user"])
def user_and_directory(request):
    """Who runs softib, where softib is, a directory of the user with a short name, since Open MPI
    makes sockets there, and the program of the ranks."""
    program, check = SOFTIB, CHECK
    home = Path(tempfile.mkdtemp(prefix="softib-mpi-"))
    if request.param:
        program = public_copy() / "bin/softib"
        check = program.parents[1] / "interop" / CHECK.name
        os.chown(home, NOBODYS_ID, NOBODYS_ID)
    yield list(request.param), program, home, check
    shutil.rmtree(home)


def run_in(place, nodes, *argv, outer=(), args=()):
    """What @argv does in a fabric of its own. @outer: a program in front of softib; @args: options
    of softib run"""
    user, program, home, _ = place
    env = dict(OUTSIDE, XDG_RUNTIME_DIR=str(home), HOME=str(home), TMPDIR=str(home), NO_COLOR="1")
    return subprocess.run([*user, *outer, program, "run", "--nodes", str(nodes), *args, "--", *map(str, argv)],
                          env=env, cwd=home, capture_output=True, text=True, timeout=TIMEOUT, check=False)


@pytest.mark.parametrize("job, ranks, nodes", [
    ("open-mpi-ucx", 2, 2), ("open-mpi-ucx", 8, 4), ("mpich", 2, 2), ("mpich", 8, 4),
    ("open-mpi-libfabric", 2, 2)])  # its reliable datagrams lose data of 8 ranks: docs/LIMITS.md
def test_data_is_checked(place, job, ranks, nodes):
    _, program, _, check = place
    command = [*JOBS[job](program, ranks), "/usr/bin/python3", check, *LIBRARY.get(job, ["libmpi.so.40"])]
    done = run_in(place, nodes, *command)
    assert done.returncode == 0 and f"checked: 3 by {ranks} ranks on {nodes} nodes\n" in done.stdout, done
    if job == "open-mpi-ucx":  # one-sided operations do not take the machine's shared memory
        assert "rma(rc_verbs/softib0:1)" in done.stdout, done


@pytest.mark.parametrize("job, ranks, nodes", [
    ("open-mpi-ucx", 8, 4), ("open-mpi-ipv6", 4, 4), ("open-mpi-rxm", 2, 2), ("open-mpi-rxm", 8, 4)])
def test_data_is_checked_in_networks_of_nodes(place, job, ranks, nodes):
    """mpirun's hosts are the nodes, where libfabric finds the address of the adapter on its ib0."""
    _, program, _, check = place
    command = [*JOBS[job](program, ranks), "/usr/bin/python3", check, *LIBRARY.get(job, ["libmpi.so.40"])]
    done = run_in(place, nodes, *command, args=("--net", "node"))
    assert done.returncode == 0 and f"checked: 3 by {ranks} ranks on {nodes} nodes\n" in done.stdout, done


def test_ranks_in_networks_of_nodes(place):
    """Consecutive ranks share one of the nodes that were asked for, wherever mpirun is started."""
    _, program, home, _ = place
    done = run_in(place, 3, program, "mpirun", "-n", 4, "--nodes", "n2,n3", "/usr/bin/python3", "-c",
                  "import os; open('rank' + os.environ['OMPI_COMM_WORLD_RANK'], 'w')"
                  ".write(os.environ['SOFTIB_NODE'] + ' ' + os.uname()[1])", args=("--net", "node"))
    assert done.returncode == 0, done
    assert [(home / f"rank{rank}").read_text() for rank in range(4)] == ["n2 n2", "n2 n2", "n3 n3", "n3 n3"]


@pytest.mark.parametrize("net", ["host", "node"])
def test_ranks_of_a_hostfile(place, net):
    """A rank has the environment of its own node, which the remote shell made, and the variables
    that the user set."""
    (place[2] / "hosts").write_text("n1\nn2\n")
    done = run_in(place, 2, "env", "SET_BY_USER=yes", "mpiexec.hydra", "-f", place[2] / "hosts", "-n", 2,
                  "/usr/bin/python3", "-c", "from os import environ as e; "
                  "print(e['PMI_RANK'], e['SOFTIB_NODE'], e['SET_BY_USER'])", args=("--net", net))
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["0 n1 yes", "1 n2 yes"], done


# --- a container that allows little ---

# No device files but the harmless ones, no further namespaces, no capability to trace processes,
# and none that a program file could give.
CONTAINER = ["unshare", "-Urm", "sh", "-ec", """
mkdir "$HOME/dev"
mount -t tmpfs -o mode=755 none "$HOME/dev"
for file in null zero urandom random full; do
    : >"$HOME/dev/$file"
    mount --bind "/dev/$file" "$HOME/dev/$file"
done
mkdir "$HOME/dev/shm"
mount -t tmpfs none "$HOME/dev/shm"
mount --rbind "$HOME/dev" /dev
for kind in user mnt net uts; do echo 0 >"/proc/sys/user/max_${kind}_namespaces"; done
exec setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace --no-new-privs "$@"
""", "sh"]
PAIR = "softib pair --quiet --"
IN_A_CONTAINER = {
    "rc write": f"{PAIR} ib_write_bw -n 200 -F",
    "rc read": f"{PAIR} ib_read_lat -n 200 -F",
    "rc atomic": f"{PAIR} ib_atomic_lat -n 200 -F",
    "ud send": f"{PAIR} ib_send_lat -c UD -n 200 -F",
    "uc write": f"{PAIR} ib_write_lat -c UC -n 200 -F",
    "libfabric rdm": f"{PAIR} fi_pingpong -B 20714 -p 'verbs;ofi_rxd' -e rdm -c -I 50 -S 4096 -- "
                     "fi_pingpong -P 20714 -p 'verbs;ofi_rxd' -e rdm -c -I 50 -S 4096 {}",
    "libfabric dgram": f"{PAIR} fi_pingpong -B 20716 -p verbs -e dgram -c -I 50 -S 1024 -- "
                       "fi_pingpong -P 20716 -p verbs -e dgram -c -I 50 -S 1024 {}",
    "rdma cm": "softib exec n1 -- rping -s -a 10.1.0.1 -V -C 5 & "
               "until softib exec n2 -- rping -c -a 10.1.0.1 -v -V -C 5; do :; done",
    "pyverbs": "softib exec n1 -- /usr/bin/python3 -c 'import pyverbs.device as d; "
               "print(d.get_device_list()[0].name)'",
    "management": "softib exec n1 -- ibnetdiscover && softib exec n1 -- sminfo",
    # whose device files a preloaded library finds
    "ucx": "softib exec -D n1 -- ucx_info -d | grep -A 2 'Transport: rc_verbs' && "
           "UCX_TLS=rc,self softib pair -D --quiet -- ucx_perftest -p 20718 -t tag_lat -n 1000 && "
           "UCX_TLS=ud,self softib pair -D --quiet -- ucx_perftest -p 20719 -t tag_bw -s 4096 -n 1000",
    "open mpi by ucx": "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=info "
                       "softib mpirun -n 2 /usr/bin/python3 CHECK libmpi.so.40",
    "mpich by ucx": "UCX_LOG_LEVEL=info UCX_TLS=rc,ud,self mpiexec.hydra -n 2 softib exec -D --ranks=all -- "
                    "/usr/bin/python3 CHECK libmpich.so.12",
    "open mpi": "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 softib exec n1 -- mpirun "
                "--host n1,n2 -n 2 " + shlex.join(OFI) + " /usr/bin/python3 CHECK libmpi.so.40 fences",
}


@pytest.mark.parametrize("what", IN_A_CONTAINER)
def test_container(place, what):
    """Nothing of this needs a namespace, or the memory of other processes."""
    done = run_in(place, 4, "sh", "-ec", "! test -e /dev/infiniband; ! unshare -U true 2>/dev/null\n" +
                  IN_A_CONTAINER[what].replace("CHECK", str(place[3])), outer=CONTAINER)
    assert done.returncode == 0 and done.stdout, done
    if what == "open mpi":
        assert "checked: 3 by 2 ranks on 2 nodes" in done.stdout
    elif "by ucx" in what:
        assert "by 2 ranks on 2 nodes" in done.stdout and "rc_verbs/softib0:1" in done.stdout + done.stderr, done
