# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The fuzz targets: their names, their builds, and the inputs that each begins with."""
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import seeds

TOP = Path(__file__).resolve().parents[2]
VECTORS = TOP / "tests/vectors"
KEPT = TOP / "tests/fuzz/corpus"
SANITIZERS = "address,undefined"
FLAGS = [f"-fsanitize=fuzzer-no-link,{SANITIZERS}", "-fno-sanitize-recover=undefined",
         "-Werror=incompatible-function-pointer-types", "-g1"]
MAX_BYTES = 8192


def targets():
    """The names in the table of meson.build."""
    table = (TOP / "tests/fuzz/meson.build").read_text()
    return re.findall(r"^  '(\w+)' : \[", table, re.MULTILINE)


def configure(build, *, tree=TOP, more=()):
    """Set @build up for the sources in @tree, with the flags @more, unless it is already."""
    if not (build / "build.ninja").exists():
        setup = ["meson", "setup", build, tree, "-Dbuildtype=debugoptimized", "-Db_lundef=false",
                 "-Dtests=enabled", f"-Dc_args={' '.join([*FLAGS, *more])}",
                 f"-Dc_link_args={' '.join([f'-fsanitize={SANITIZERS}', *more])}"]
        subprocess.run(setup, cwd=TOP, env=dict(os.environ, CC="clang"), check=True,
                       stdout=subprocess.DEVNULL)


def build(where, names):
    """Build the targets @names in @where; the program ends if that fails."""
    built = subprocess.run(["ninja", "-C", where, *(f"tests/fuzz/fuzz_{n}" for n in names)],
                           text=True, stdout=subprocess.PIPE, check=False)
    if built.returncode:
        sys.exit("\n".join(line for line in built.stdout.splitlines() if not line.startswith("[")))


def unpack(name, corpus):
    """Put what target @name begins with into the directory @corpus. Return: @corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    vectors = VECTORS / name
    for path in sorted(vectors.glob("*")) if vectors.is_dir() else []:
        if path.suffix == ".hex":
            text = re.sub(r"#.*", "", path.read_text())
            (corpus / path.stem).write_bytes(bytes.fromhex(text))
        elif path.suffix != ".txt":
            (corpus / path.name).write_bytes(path.read_bytes())
    for seed_name, data in seeds.of(name):
        (corpus / seed_name).write_bytes(data)
    if (KEPT / f"{name}.zip").exists():
        with zipfile.ZipFile(KEPT / f"{name}.zip") as kept:
            kept.extractall(corpus)
    return corpus
