# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Adapters that report the limits and capabilities of others, and keep to them."""
import re

import pytest

from interop.commands import softib
from interop.fabric import BUILD

PYVERBS = """
from pyverbs import enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context, DM, AllocDmAttr
from pyverbs.mr import MR, MW
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

ctx = Context(name="softib0")
pd, cq = PD(ctx), CQ(ctx, 16)

def tried(name, make):
    try:
        return make()
    except PyverbsRDMAError as err:
        print(name, err.error_code)

def qp(kind, **cap):
    return QP(pd, QPInitAttr(qp_type=kind, scq=cq, rcq=cq, cap=QPCap(**cap)))
"""


def pyverbs(home, profile, script):
    return softib(home, "run", "--hca-profile", profile, "--sm", "none", "--", "/usr/bin/python3",
                  "-c", PYVERBS + script)


# of which as many are made as the device says
NUMBERS = {"max_qp": 260, "max_cq": 40, "max_mr": 40, "max_pd": 30, "max_mw": 20, "max_srq": 20,
           "max_ah": 70, "max_mcast_grp": 5, "max_mcast_qp_attach": 4,
           "max_total_mcast_qp_attach": 18, "max_res_rd_atom": 250,
           "max_sge_rd": 20}  # fewer than max_sge, which is reached first otherwise
SHIPPED = ["connectx3", "connectx5", "connectx7", "rxe", "efa-like", "max"]
OWN_INLINE = 1024


@pytest.mark.parametrize("profile, layer", [(name, "infiniband") for name in SHIPPED] +
                         [(name, "ethernet") for name in ["connectx5", "connectx7", "rxe", "max"]])
def test_each_limit_is_allowed_and_one_more_is_not(home, profile, layer):
    """Every limit of every shipped profile; numbers of objects are cut to what can be made here."""
    text = softib(home, "profile", "show", profile).stdout
    fields = dict(line.split(": ") for line in text.splitlines() if ": " in line)
    path = home / "cut.profile"
    fields |= {name: str(min(most, int(fields.get(name, most)))) for name, most in NUMBERS.items()}
    path.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    inline = min(OWN_INLINE, int(fields.get("max_inline_data", OWN_INLINE)))
    inline_ud = min(inline, int(fields.get("max_inline_data_ud", inline)))
    done = softib(home, "run", "--link-layer", layer, "--hca-profile", path, "--",
                  BUILD / "tests/programs/limits", inline, inline_ud)
    assert done.returncode == 0 and done.stdout.endswith(" tried, 0 not kept\n"), done
    assert int(done.stdout.split()[0]) > 50


# sizes are all the adapter's; of objects, softib has fewer than some adapters
NUMBERS_THAT_ARE_LESS = {"max_cq", "max_mr", "max_pd", "max_mw", "max_mcast_grp", "max_total_mcast_qp_attach",
                         "max_ah", "max_srq"}


@pytest.mark.parametrize("profile", SHIPPED)
def test_what_a_profile_does_not_reach(home, profile):
    said = softib(home, "run", "--hca-profile", profile, "--sm", "none", "--", "true").stderr
    less = set(re.findall(r"(max_\w+) \d+ \(of", said))
    assert less <= NUMBERS_THAT_ARE_LESS, said


def test_sizes_that_no_profile_names(home):
    """... are smaller than what a profile may ask for."""
    said = softib(home, "run", "--sm", "none", "--", "ibv_devinfo", "-v").stdout
    for field, value in ("max_qp_wr", 16384), ("max_srq_wr", 16384), ("max_qp_rd_atom", 16), (
            "max_qp_init_rd_atom", 16):
        assert re.search(rf"{field}:\s+{value}\n", said), said


def test_limits_are_kept_as_they_are_reported(home):
    path = home / "small.profile"
    path.write_text("max_qp: 20\nmax_qp_wr: 300\nmax_sge: 3\n"
                    "max_inline_data: 40\nmax_cqe: 600\nmax_dm_size: 128\nmax_mr_size: 0x200000\n")
    done = pyverbs(home, path, """
attr = ctx.query_device()
print(attr.max_qp, attr.max_qp_wr, attr.max_sge, attr.max_cqe)
kept = [qp(e.IBV_QPT_RC, max_send_wr=300, max_send_sge=3, max_inline_data=40)]
tried("wr", lambda: qp(e.IBV_QPT_RC, max_send_wr=301))
tried("sge", lambda: qp(e.IBV_QPT_RC, max_recv_sge=4))
tried("inline", lambda: qp(e.IBV_QPT_RC, max_inline_data=41))
tried("cqe", lambda: CQ(ctx, 601))
tried("dm", lambda: DM(ctx, AllocDmAttr(length=256)))
tried("mr", lambda: MR(pd, (2 << 20) + 1, e.IBV_ACCESS_LOCAL_WRITE))
while kept[-1]:
    kept.append(tried("qp", lambda: qp(e.IBV_QPT_UD)))
print(len(kept) == 21)  # and the None
""")
    assert done.stdout.splitlines() == ["20 300 3 600", "wr 22", "sge 22", "inline 22", "cqe 22",
                                        "dm 22", "mr 22", "qp 12", "True"], done


def test_what_an_adapter_lacks_is_not_there(home):
    done = pyverbs(home, "efa-like", """
tried("rc", lambda: qp(e.IBV_QPT_RC))
tried("srq", lambda: SRQ(pd, SrqInitAttr(SrqAttr(max_wr=1))))
tried("mw", lambda: MW(pd, e.IBV_MW_TYPE_1))
tried("atomic", lambda: MR(pd, 8, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_ATOMIC))
tried("ud", lambda: qp(e.IBV_QPT_UD, max_inline_data=32))
""")
    assert done.stdout.splitlines() == ["rc 95", "srq 95", "mw 95", "atomic 95"], done


@pytest.mark.parametrize("mode", ["SOFTIB_LANES=0", "SOFTIB_WINDOWS=0", "SOFTIB_LANES=1"])
def test_flush(home, mode):
    """FLUSH as programs have it that were built with newer verbs: by softibd, by lanes, behind a
    WRITE through a window."""
    flush = [BUILD / "tests/programs/flush"]
    assert softib(home, "run", "--", "env", mode, *flush).stdout == "flushed\n"


def test_an_adapter_without_flush(home):
    done = softib(home, "run", "--hca-profile", "connectx3", "--sm", "none", "--",
                  BUILD / "tests/programs/flush")
    assert done.stdout == "refused\n", done


def test_a_profile_is_recorded_shown_and_used(home):
    path = home / "recorded.profile"
    done = softib(home, "run", "--hca-profile", "connectx5", "--", "sh", "-c",
                  f"ibv_devinfo -v && softib profile record {path} && softib status")
    assert done.returncode == 0, done
    assert "max_cq 65536 (of 16777216)" in done.stderr
    words = done.stdout.split()
    for name, value in [("vendor_id", "0x02c9"), ("vendor_part_id", "4119"), ("max_qp", "262144"),
                        ("fw_ver", "16.27.1016"), ("max_qp_wr", "32768")]:
        assert words[words.index(f"{name}:") + 1] == value
    assert "CURR_QP_STATE_MOD" not in words and words[-1] and "connectx5" in words
    done = softib(home, "run", "--hca-profile", path, "--", "ibv_devinfo")
    assert "4119" in done.stdout and not done.stderr, done  # softib's own limits fit
    assert softib(home, "profile", "show", path).stdout == \
        path.read_text().split("\n", maxsplit=1)[1]
    path.write_text("max_qp: 100\nmax_qps: 100\n")
    for command in ["run", "up"]:
        done = softib(home, command, "--hca-profile", path, *(["--", "true"] * (command == "run")))
        assert done.returncode == 64 and f"{path}:2: there is no field 'max_qps'" in done.stderr


# What ibv_devinfo -v prints of three adapters, as their users have published it: a ConnectX-3,
# a Connect-IB, and one of QLogic's.
PUBLISHED = {
    "mlx4_2": """fw_ver 2.33.5100|vendor_id 0x02c9|vendor_part_id 4099|hw_ver 0x0|phys_port_cnt 2
max_mr_size 0xffffffffffffffff|page_size_cap 0xfffffe00|max_qp 131000|max_qp_wr 16351
device_cap_flags 0x057e9c66|max_sge 32|max_sge_rd 30|max_cq 65408|max_cqe 4194303|max_mr 524032
max_pd 32764|max_qp_rd_atom 16|max_ee_rd_atom 0|max_res_rd_atom 2096000|max_qp_init_rd_atom 128
atomic_cap ATOMIC_HCA (1)|max_mw 0|max_raw_ethy_qp 0|max_mcast_grp 8192|max_mcast_qp_attach 248
max_total_mcast_qp_attach 2031616|max_ah 2147483647|max_fmr 0|max_srq 65472|max_srq_wr 16383
max_srq_sge 31|max_pkeys 128|local_ca_ack_delay 15""",
    "ibp6s0": """fw_ver 10.16.1200|vendor_id 0x02c9|vendor_part_id 4113|hw_ver 0x0|phys_port_cnt 1
max_mr_size 0xffffffffffffffff|page_size_cap 0xfffffffffffff000|max_qp 262144|max_qp_wr 32768
device_cap_flags 0x00301c36|max_sge 30|max_sge_rd 30|max_cq 16777216|max_cqe 4194303
max_mr 16777216|max_pd 16777216|max_qp_rd_atom 16|max_ee_rd_atom 0|max_res_rd_atom 4194304
max_qp_init_rd_atom 16|atomic_cap ATOMIC_NONE (0)|max_mw 0|max_raw_ethy_qp 0|max_mcast_grp 2097152
max_mcast_qp_attach 48""",
    "qedr0": """fw_ver 8.37.7.0|vendor_id 0x1077|vendor_part_id 32880|hw_ver 0x0|phys_port_cnt 1
max_mr_size 0x10000000000|page_size_cap 0xfffff000|max_qp 8568|max_qp_wr 32767
device_cap_flags 0x00209080|max_sge 4|max_sge_rd 4|max_cq 17136|max_cqe 8388480|max_mr 131070
max_pd 65536|max_qp_rd_atom 32|max_ee_rd_atom 0|max_res_rd_atom 0|max_qp_init_rd_atom 32""",
}
# what a profile leaves as it is, and what it only narrows: their bits are those that both have
UNCHANGED = ["phys_port_cnt", "max_pkeys", "max_fmr", "max_ee_rd_atom", "max_raw_ethy_qp", "page_size_cap"]
# sizes that a profile may ask for, where an adapter without one has less
CEILINGS = {"max_qp_wr": "32768", "max_srq_wr": "32768", "max_qp_rd_atom": "128", "max_qp_init_rd_atom": "128"}
OF_ITSELF = ["fw_ver", "vendor_id", "vendor_part_id", "hw_ver"]


def devinfo_fields(text):
    """{name: value} of the lines with a name and a value. The names of the device come first:
    tag matching has a max_sge, too."""
    pairs = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    return {name.strip(): value.strip() for name, value in reversed(pairs) if value.strip()}


def lower(name, theirs, ours):
    """What is reported where the recorded adapter says @theirs and softib can do @ours."""
    if name in OF_ITSELF:
        return theirs
    if name == "atomic_cap":
        return min(theirs, ours, key=lambda word: int(word.split("(")[1][0]))
    if name == "device_cap_flags":
        return f"0x{int(theirs, 16) & int(ours, 16):08x}"
    if name == "local_ca_ack_delay":
        return max(theirs, ours, key=int)
    return min(theirs, ours, key=lambda number: int(number, 0))


@pytest.mark.parametrize("adapter", PUBLISHED)
def test_what_other_adapters_print_is_recorded_and_reported(home, adapter):
    """Each limit of the adapter comes back from the one that has its profile, or softib's own
    where that is lower, which a message says."""
    fields = dict(pair.split(" ", 1) for line in PUBLISHED[adapter].splitlines() for pair in line.split("|"))
    printed = f"hca_id:\t{adapter}\n" + "".join(f"\t{name}:\t\t\t{value}\n" for name, value in fields.items())
    path = home / "host.profile"
    done = softib(home, "profile", "record", "-F", "-", path, input=printed)
    assert done.returncode == 0, done
    own = devinfo_fields(softib(home, "run", "--sm", "none", "--", "ibv_devinfo", "-v").stdout) | CEILINGS
    done = softib(home, "run", "--hca-profile", path, "--sm", "none", "--", "ibv_devinfo", "-v")
    reported = devinfo_fields(done.stdout)
    checked = 0
    for name, theirs in fields.items():
        if name in UNCHANGED:
            continue
        expected = lower(name, theirs, own[name])
        assert reported[name] == expected, (name, theirs, own[name], reported[name])
        if name.startswith("max_") and expected != theirs:
            assert f"{name} {int(expected, 0)} (of {int(theirs, 0)})" in done.stderr, (name, done.stderr)
        checked += 1
    assert checked > 15
