#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hold the tree to docs/ARCHITECTURE.md.

 includes   a file includes only headers of the layers that its row of the
            table "Layers" names
 purity     objects of the pure layers reference no clock, socket, thread,
            allocator, stdio or random symbol
 globals    objects of the layers of a fabric, from the engine up to the upper-level protocols,
            have no writable variables, since two fabrics may live in one process
 size       no function over 80 lines, no file over 1,000
 opaque     the engine reads no field of a tp_qp and shifts no word of a record
 licence    one SPDX line on top of each source file
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

PURE = ["wire", "transport", "agents", "fault", "progress", "routing", "cm", "scsi", "sdp", "srp", "nbd", "rpcrdma", "pvrdma"]
# what a pure object may leave undefined, besides symbols of pure layers; __cpu_model:
# which instructions there are changes how fast it is, and nothing else; softib_guards: a
# table in the object itself (transport/guard.h)
PURE_LIBC = re.compile(r"^(mem(cpy|move|set|cmp|chr|mem)|str(n?len|n?cmp|n?cpy|chr|rchr)"
                       r"|__stack_chk_fail|__assert_fail|_GLOBAL_OFFSET_TABLE_|__mem\w+_chk"
                       r"|crc32_\w+|abort|__cpu_model|__st(art|op)_softib_guards|__(asan|ubsan|tsan|sanitizer)\w*)$")
FABRIC = ["engine", "fabric", "hca", "core", "access", "ulp"]
# Writable variables that these layers have nevertheless, and why two fabrics can share each.
GLOBALS = {
    # ib_sa_cancel_query() is called with a query that may be over and freed, so that its fabric is
    # unknown. The number alone finds it. Numbers are unique in the process.
    "sa_query.c": {"by_id", "last_id"},
    # Scratch memory of one call, in loops that share a thread.
    "eth_host.c": {"large"},
    "eth_rtnl.c": {"buffer"},
    "ipoib_host.c": {"large_buffer"},
    "ipoib_rtnl.c": {"buffer"},
    # Set once, before there is a fabric, or when the process ends: the same for all fabrics.
    "ipoib_conflict.c": {"report"},
    "net_tun.c": {"leaves_devices"},
    "sdp_channel.c": {"bypass_ops"},
}
WRITABLE = re.compile(r"^\.(data(?!\.rel\.ro)|bss|tdata|tbss|ldata|lbss)|^\*COM\*")
TRANSPORT_STATE = re.compile(r"\btp->(state|type|transport|mtu_shift|sq|resp|stats|attr)\b")
RECORD_SHIFT = re.compile(r"\bword\[\d\] *(<<|>>|& *0x)")
LAYER_INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z]+)/', re.M)
MIDLAYER = re.compile(r'^\s*#\s*include\s+[<"]rdma/(ib_verbs|ib_mad|ib_sa|ib_cm|ib_types'
                      r'|rdma_cm)\.h[>"]', re.M)


def rules(top):
    """{layer: set of layers it may include}, from the table in the docs."""
    text = (top / "docs/ARCHITECTURE.md").read_text()
    table = {}
    for row in re.findall(r"^\|\s*`(?:src/)?([a-z]+)/?`\s*\|[^|\n]*\|([^|\n]*)\|$", text, re.M):
        table[row[0]] = set(re.findall(r"`([a-z/]+)`", row[1])) | {row[0]}
    if len(table) < 10:
        sys.exit("lint: docs/ARCHITECTURE.md has no table of layers to read")
    return table


def sources(top):
    out = subprocess.run(["git", "-C", top, "ls-files", "-z", "*.c", "*.h"],
                         capture_output=True, text=True, check=True).stdout
    return [top / name for name in out.split("\0") if name and (top / name).exists()]


def layer_of(path, top):
    part = path.relative_to(top).parts
    if part[0] == "src":
        return part[1]
    return part[0] if part[0] in ("lib", "tools") else None


def check_includes(top, table):
    for path in sources(top):
        layer = layer_of(path, top)
        if layer not in table:
            continue
        text = path.read_text()
        for used in LAYER_INCLUDE.findall(text):
            if (top / "src" / used).is_dir() and used not in table[layer]:
                yield f"{path.relative_to(top)}: layer {layer} may not include {used}/"
        if MIDLAYER.search(text) and "include/rdma" not in table[layer]:
            yield f"{path.relative_to(top)}: layer {layer} may not include the midlayer"


def check_opaque(top):
    """A QP's transport state is transport's own, though transport/fast.h shows it to the
    compiler; the layout of a record's words is known to abi/cell.h."""
    for path in sources(top):
        layer = layer_of(path, top)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if layer in ("engine", "hca", "lib") and TRANSPORT_STATE.search(line):
                yield f"{path.relative_to(top)}:{number}: reads a tp_qp; ask transport/fast.h"
            if layer in ("engine", "lib") and RECORD_SHIFT.search(line):
                yield f"{path.relative_to(top)}:{number}: knows a record's bits; ask abi/cell.h"


def symbols(archive, *flags):
    out = subprocess.run(["nm", "-P", *flags, archive], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[0] for line in out.splitlines() if len(line.split()) >= 2}


def check_purity(build):
    archives = {}
    for layer in PURE:
        path = build / "src" / layer / f"lib{layer}.a"
        if not path.exists():
            yield f"lint: {path} is missing: run make first"
            return
        archives[layer] = path
    own = set().union(*(symbols(p, "--defined-only") for p in archives.values()))
    for layer, path in archives.items():
        for name in sorted(symbols(path, "-u") - own):
            if not PURE_LIBC.match(name):
                yield f"src/{layer}: pure layer references {name}"


def check_globals(build):
    for layer in FABRIC:
        paths = sorted((build / "src" / layer).glob("lib*.a"))
        if not paths:
            yield f"lint: {build}/src/{layer} has no library: run make first"
            continue
        out = subprocess.run(["nm", "-f", "sysv", *paths], capture_output=True, text=True,
                             check=True).stdout
        source = None
        for line in out.splitlines():
            if line.startswith(("Symbols from", "Undefined symbols from")):
                source = re.sub(r".*?([^/\[\]]+\.c)\.o\]?:$", r"\1", line)
            column = [c.strip() for c in line.split("|")]
            # a static variable of a function has a number behind its name
            name = column[0].partition(".")[0]
            if (len(column) == 7 and WRITABLE.match(column[6]) and column[3] != "SECTION"
                    and not re.match(r"__(\w*san|gcov|odr)", name)
                    and name not in GLOBALS.get(source, ())):
                yield (f"src/{layer}: {source} has the writable variable {name}; "
                       "it belongs to a fabric (rt_local()), or is const")


def check_sizes(top):
    for path in sources(top):
        lines = path.read_text().splitlines()
        name = path.relative_to(top)
        if len(lines) > 1000:
            yield f"{name}: {len(lines)} lines; split it (1,000 at most)"
        if not lines or "SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause" not in lines[0]:
            yield f"{name}: line 1 must be the SPDX line"
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start > 80:
                    yield f"{name}:{start}: a function of {number - start} lines (80 at most)"
                start = None


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--top", type=Path, required=True)
    args.add_argument("--build", type=Path, required=True)
    opt = args.parse_args()
    build = opt.build if opt.build.is_absolute() else opt.top / opt.build
    found = [*check_includes(opt.top, rules(opt.top)), *check_opaque(opt.top), *check_purity(build),
             *check_globals(build), *check_sizes(opt.top)]
    for line in found:
        print(line)
    print(f"lint: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
