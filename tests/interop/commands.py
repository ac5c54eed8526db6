# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The softib command of a user whose fabrics are in a folder of the test's own
(the fixture `home`), and the processes that stand there."""
import os
import subprocess
from pathlib import Path

from interop.fabric import SOFTIB, TIMEOUT


def softib(home, *args, **kwargs):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home), NO_COLOR="1")
    env.pop("SOFTIB_DIR", None)
    return subprocess.run([SOFTIB, *map(str, args)], env=env, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False, **kwargs)


def processes(mark, name=""):
    """Pids of programs called *@name that have @mark in their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text(errors="replace").split("\0")
        except OSError:  # it ended meanwhile
            continue
        if words[0].endswith(name) and any(mark in word for word in words[1:]):
            found.append(int(path.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def softibd_of(home):
    return processes(str(home), "softibd")
