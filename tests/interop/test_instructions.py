# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The hot paths stay as short as tests/bench/counts.py says: instructions per
message, counted by callgrind, do not depend on who else uses the machine."""
import pytest

from bench import counts
from interop.fabric import BUILD

TRIES = 5

# Memory of a window moves by userfaultfd(2), which valgrind 3.19 does not know;
# root has /dev/userfaultfd besides.
WINDOWS = pytest.mark.only_root("valgrind does not know userfaultfd(2)")


@pytest.mark.no_sanitizer("callgrind and a sanitizer do not go together")
@pytest.mark.parametrize("test", [
    pytest.param(test, marks=[WINDOWS] if test.startswith(("count_write", "count_read")) else [])
    for test in counts.TESTS])
def test_instructions(pair, test):
    """The least of some runs counts: a timer that fires in between, on a machine
    whose other programs leave valgrind little time, adds what is not of this path."""
    wanted = {name: most for name, (most, _) in counts.TABLE.items()
              if most and name.startswith(f"{test}/")}
    least = {}
    for _ in range(TRIES):
        found = counts.count(pair, BUILD, [test])
        assert set(wanted) <= set(found)
        least = {name: min(found[name], least.get(name, found[name])) for name in wanted}
        too_long = {name: least[name] for name, most in wanted.items() if least[name] > most}
        if not too_long:
            break
    assert not too_long, f"more than {wanted}"
