# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The hot paths stay as short as tests/bench/counts.py says: instructions per
message, counted by callgrind, do not depend on who else uses the machine."""
import pytest

from bench import counts
from interop.fabric import BUILD

# Memory of a window moves by userfaultfd(2), which valgrind 3.19 does not know;
# root has /dev/userfaultfd besides.
WINDOWS = pytest.mark.only_root("valgrind does not know userfaultfd(2)")


@pytest.mark.no_sanitizer("callgrind and a sanitizer do not go together")
@pytest.mark.parametrize("test", [
    pytest.param(test, marks=[WINDOWS] if test.startswith(("count_write", "count_read")) else [])
    for test in counts.TESTS])
def test_instructions(pair, test):
    found = counts.count(pair, BUILD, [test])
    wanted = {name: most for name, (most, _) in counts.TABLE.items()
              if most and name.startswith(f"{test}/")}
    assert set(wanted) <= set(found)
    too_long = {name: found[name] for name, most in wanted.items() if found[name] > most}
    assert not too_long, f"more than {wanted}"
