# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a test run under sanitizers needs around it.

A build with -Db_sanitize=... runs every test as any build does. Programs that
no one here built (perftest, opensm, python) load its drop-in libraries: the
sanitizer's runtime is preloaded into them. Each process writes what it finds
to a file in a directory of its own, and any report there at the end fails
the run, whatever the exit status that hid it. Of the leaks only those count
that are ours: of a program built here all whose memory its own code asked
for, of others what our libraries took for themselves.
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

UNSEEN = Path(__file__).with_name("tsan.supp")  # order that the kernel keeps
RUNTIME = {"address": "libasan.so", "thread": "libtsan.so"}
# leak reports are judged here and must not change an exit status; all else ends the program
COMMON = "log_exe_name=1:print_stacktrace=1:abort_on_error=1:allocator_may_return_null=1"
FRAME = re.compile(r"^    #\d+ 0x[0-9a-f]+ (?:in )?(.*)$", re.MULTILINE)
FUNCTION = re.compile(r"(\S+)")
OURS = re.compile(r" \.\./(?:src|lib|tools|bin|tests)/\S+:\d+")  # as the compiler names them
LEAK = re.compile(r"^Direct leak of .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
# no report: what it will not look at, and a thread that ended under its eyes
REMARK = re.compile(r"^==.*(?:WARNING: ASan doesn't fully support makecontext|"
                    r"Unable to get registers from thread).*\n", re.MULTILINE)
# signal handlers of programs that were not built here are theirs
RACE = re.compile(r"^WARNING: ThreadSanitizer: .*?\n=+\n", re.MULTILINE | re.DOTALL)
# what a program asked for and never gave back is its own leak
GIVEN = re.compile(r"ibv_(?:get_device_list|open_device|(?:alloc|create|reg|open)_\w+)|"
                   r"umad_(?:get_ca|get_port|open_port|alloc|get_ca_device_list)")
# our libraries do not call asprintf(); behind it the frames of a report are by chance, because
# libc keeps no frame pointers
FOREIGN = {"__vasprintf_internal"}


def kinds(build):
    """The sanitizers of a build directory, as Meson knows them: a set."""
    options = build / "meson-info/intro-buildoptions.json"
    for option in json.loads(options.read_text()) if options.exists() else []:
        if option["name"] == "b_sanitize":
            return set(option["value"].split(",")) - {"none"}
    return set()


class Sanitizers:
    """The sanitizers of one build, for one run of the tests."""

    def __init__(self, build):
        self.build, self.kinds = build, kinds(build)
        self.logs = build / "sanitizer-logs"
        shutil.rmtree(self.logs, ignore_errors=True)
        if self.kinds:
            self.logs.mkdir(mode=0o777)
            self.logs.chmod(0o1777)  # tests run programs as other users, too

    def env(self):
        """Variables for programs that were built here."""
        if not self.kinds:
            return {}
        return {
            "ASAN_OPTIONS": f"{COMMON}:log_path={self.logs}/asan:exitcode=0:"
                            "verify_asan_link_order=0:detect_stack_use_after_return=1:"
                            "strict_string_checks=1:check_initialization_order=1",
            "UBSAN_OPTIONS": f"{COMMON}:log_path={self.logs}/ubsan:halt_on_error=1",
            "TSAN_OPTIONS": f"log_exe_name=1:log_path={self.logs}/tsan:exitcode=0:"
                            f"second_deadlock_stack=1:suppressions={UNSEEN}",
        }

    def preload(self):
        """More variables, for programs that load what was built here."""
        if not self.kinds:
            return {}
        names = [name for kind, name in RUNTIME.items() if kind in self.kinds]
        paths = [subprocess.run(["cc", f"-print-file-name={name}"], check=True, text=True,
                                capture_output=True).stdout.strip() for name in names]
        preload = [*map(os.path.realpath, paths), os.environ.get("LD_PRELOAD")]
        # opensm may free what it sends before the call returns: the answer was there
        # first; signal handlers that allocate are perftest's; who ends with its device
        # open leaves its threads; a child that opens a device of its own begins threads
        env = self.env()
        return {"LD_PRELOAD": ":".join(filter(None, preload)),
                "SOFTIB_SANITIZED": " ".join(sorted(self.kinds)),
                "ASAN_OPTIONS": env["ASAN_OPTIONS"] + ":intercept_send=0",
                "TSAN_OPTIONS": env["TSAN_OPTIONS"] + ":intercept_send=0:report_signal_unsafe=0:"
                                                       "report_thread_leaks=0:die_after_fork=0"}

    def findings(self):
        """Yield (file, text) of each report that is about code built here."""
        for path in sorted(self.logs.iterdir()) if self.kinds else []:
            text = REMARK.sub("", path.read_text(errors="replace"))
            if "LeakSanitizer: detected memory leaks" in text:
                text = "\n\n".join(self.own_leaks(path, text))
            if path.name.startswith("tsan") and not self.is_built(path):
                text = "".join(r for r in RACE.findall(text) if "signal" not in r.splitlines()[0])
            if text.strip():
                yield path, text

    def is_built(self, path):
        """Was the program that wrote this file built here?"""
        program = path.name.split(".")[1]
        return (self.build / "bin" / program).exists() or program.startswith("test_")

    def own_leaks(self, path, text):
        """The leaks that are a mistake of what was built here."""
        built = self.is_built(path)
        for leak in LEAK.findall(text):
            frames = FRAME.findall(leak)
            ours = [FUNCTION.match(frame)[1] for frame in frames if OURS.search(frame)]
            foreign = any(frame.split(" ")[0] in FOREIGN for frame in frames)
            if ours and (built or not (foreign or GIVEN.fullmatch(ours[-1]))):
                yield leak


def tell(findings):
    """Print reports; how many there were."""
    count = 0
    for path, text in findings:
        count += 1
        print(f"sanitizer: {path}\n{text[:6000]}")
    return count
