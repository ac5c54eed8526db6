# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Instructions per message, by callgrind: the same on a noisy machine.

One process is both sides (tests/bench/verbs/count.c), so that nothing runs
between the phases of a message: posting it, the server's poll that takes it,
the client's poll that completes it; or, where each waits for an answer, the poll
that takes one and the answer's post, and, of XRC, the polls that acknowledge it and take the
acknowledgement. Each phase of some tens of batches is
counted by itself; the least that several of them took is what it costs: in the others the
engine's thread came in between, or had taken the bias of the engine's lock, the more of them
the busier the machine is.
"""
import re
import statistics
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

MESSAGES = 16  # of a batch: as in count.c
LIMIT = 120    # seconds: a hang, not a measure

# test/phase -> (instructions per message at most, the figure to reach); None:
# no such. The first is what it takes plus a quarter, for bells that are rung now and
# then, and for a thread that lost the bias of the engine's lock for a batch; who makes
# a path shorter lowers it. Acknowledgements are taken in the server's poll or in the
# client's, as it happens: their sum, with the post, is "message". Half of a batch's
# requests are behind so many that they are streamed (src/abi/cell.h).
TABLE = {
    "count_send:8/post": (290, 250),
    "count_send:8/server_poll": (None, 250),
    "count_send:8/client_poll": (None, 250),
    "count_send:8/post_receive": (58, None),
    "count_send:8/message": (750, 750),  # 549 on an idle machine, up to 708 beside other programs
    "count_answer:8/receive": (670, 640),  # 637, also beside other programs: plus a twentieth
    "count_answer:8/answer": (340, None),
    "count_answer_xrc:64/receive": (820, None),
    "count_answer_xrc:64/answer": (600, None),
    "count_answer_xrc:64/acknowledge": (620, None),
    "count_answer_xrc:64/take_ack": (620, None),
    "count_answer_tagged:64/receive": (990, None),
    "count_answer_tagged:64/post_receive": (420, None),
    "count_write:8/post": (200, 250),
    "count_write:8/client_poll": (40, 250),
    "count_read:8/post": (280, None),
    "count_read:8/client_poll": (40, None),
}
IN_MESSAGE = ("post", "server_poll", "client_poll")
TESTS = list(dict.fromkeys(key.split("/")[0] for key in TABLE))


class Failure(Exception):
    """callgrind, or the program under it, failed."""


def callgrind(fabric, build, test, folder):
    """One run; callgrind's dumps are in @folder.

    Memory moves in ibv_reg_mr(): valgrind runs one thread at a time, and one that
    is held off while another moves its page would never let that one go on."""
    process = fabric.start("n1", "env", "SOFTIB_WINDOWS=early", "valgrind", "--tool=callgrind", "--collect-atstart=no",
                           f"--callgrind-out-file={folder}/{test.replace(':', '-')}",
                           build / "tests/bench/bench-verbs", "both", test)
    try:
        out, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure(f"{test} under callgrind hangs") from None
    if process.returncode:
        raise Failure(f"{test} under callgrind: exit {process.returncode}: {out[-500:]}")


def dumps(folder):
    """Yield (test/phase, instructions, file) of each dump, in order."""
    def number(path):
        return int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0
    for path in sorted(Path(folder).iterdir(), key=number):
        text = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (\S+)", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if name and total:
            yield name[1], int(total[1]), path


def count(fabric, build, tests=None):
    """{test/phase: instructions per message}, and {test/message: their sum}."""
    found = {}
    for test in tests or TESTS:
        phases = defaultdict(list)
        with tempfile.TemporaryDirectory(dir=fabric.home) as folder:
            callgrind(fabric, build, test, folder)
            for name, total, _ in dumps(folder):
                phases[name].append(total)
        found |= {name: usual(totals) / MESSAGES for name, totals in phases.items()}
        parts = [phases[f"{test}/{phase}"] for phase in IN_MESSAGE if f"{test}/{phase}" in phases]
        if parts:
            found[f"{test}/message"] = statistics.median(map(sum, zip(*parts))) / MESSAGES
    return found


def usual(totals):
    """The least of what a sixth of the batches or more took; when no so many took the same, the median."""
    shared = [total for total, batches in Counter(totals).items() if 6 * batches >= len(totals)]
    return min(shared, default=statistics.median_low(totals))


def profile(fabric, build, test, lines=12):
    """Yield (phase, text): where the instructions of a typical batch of @test are."""
    with tempfile.TemporaryDirectory(dir=fabric.home) as folder:
        callgrind(fabric, build, test, folder)
        phases = defaultdict(list)
        for name, total, path in dumps(folder):
            phases[name].append((total, path))
        for name, found in phases.items():
            typical = usual([total for total, _ in found])
            total, path = next(dump for dump in found if dump[0] == typical)
            yield name, top_functions(path, total, lines)


def top_functions(path, total, lines):
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", path],
                          capture_output=True, text=True, check=True)
    rows = re.findall(r"^\s*([\d,]+) \([^)]*\)\s+(\S+?):(\S+)", done.stdout, re.M)
    rows = [(int(n.replace(",", "")), file, function) for n, file, function in rows]
    text = [f"{total / MESSAGES:8.1f}          in all"]
    # the callers of what is counted come with all of it: leave them out
    for n, file, function in [row for row in rows if row[0] < total][:lines]:
        text.append(f"{n / MESSAGES:8.1f} {100 * n / total:5.1f} %  {function} ({Path(file).name})")
    return "\n".join(text)
