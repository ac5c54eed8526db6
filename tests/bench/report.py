# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of `make bench` as text, as JSON and as a picture."""
import json
import shutil
import subprocess

NAME = 40


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def reach_text(result):
    if not result["reach"]:
        return ""
    kind, bound = result["reach"]
    sign = "<=" if result["less_is_better"] else ">="
    mark = {True: "met", False: "not met", None: "?"}[result["met"]]
    of = f"{bound}x" if kind == "limit" else f"{number(bound)} {result['unit']}"
    return f"{sign} {of} {mark}"


def failed_text(result):
    return f"  failed {result['failed_times']} times" if result["failed_times"] else ""


def header():
    return (f"{'':{NAME}}{'softib':>10}{'limit':>10}{'':>6}{'ratio':>7}{'best peer':>11}"
            f"{'ratio':>7}  {'':18}{'cores':9}{'n':>2}  {'to reach'}\n"
            f"{'(ns, us, bytes: less is better, else more)':{NAME}}")


def line(result):
    name = result["name"]
    for problem in ("failed", "missing"):
        if problem in result:
            return f"{name:{NAME}}{problem}: {' '.join(result[problem].split())[:150]}"
    peer = result["best_peer"]
    return (f"{name:{NAME}}{number(result['softib']):>10}{number(result['limit']):>10} "
            f"{result['unit']:>5}{ratio(result['ratio']):>7}"
            f"{number(result['peers'].get(peer)):>11}{ratio(result['ratio_peer']):>7}  "
            f"{peer or '':18}{result['group'] or '-':9}{result['count']:>2}  "
            f"{reach_text(result)}{failed_text(result)}").rstrip()


def write_json(path, results):
    path.write_text(json.dumps(results, indent=1) + "\n")


# --- the picture: each row's ratio to its limit, and its best peer's ---

def distance(result, figure):
    """How many times farther than the limit: 1 is the limit, more is worse."""
    if not figure or not result["limit"]:
        return None
    value = figure / result["limit"]
    return value if result["less_is_better"] else 1 / value


PLOT = """set terminal svg size 1100,{height} font 'sans,11' background 'white'
set output '{out}'
set title 'Distance from the limit (1 is the limit, to the right is slower)'
set logscale x
set grid xtics
set yrange [-1:{rows}] reverse
set key outside top center horizontal
set lmargin 42
set arrow from 1,-1 to 1,{rows} nohead lc rgb '#208020' lw 2
$data << EOD
{data}
EOD
plot $data using 2:0:ytic(1) with points pt 7 ps 0.9 lc rgb '#2040c0' title 'softib', \\
     $data using 3:0 with points pt 6 ps 0.9 lc rgb '#c04020' title 'best peer'
"""


def write_plot(path, results):
    """An SVG by gnuplot; False when it is not installed or nothing can be drawn."""
    rows = [(r["name"], distance(r, r["softib"]), distance(r, r["peers"].get(r["best_peer"])))
            for r in results if r["ratio"]]
    if not rows or not shutil.which("gnuplot"):
        return False
    data = "\n".join(f'"{name}" {ours:.4g} {f"{peer:.4g}" if peer else "NaN"}'
                     for name, ours, peer in rows)
    script = PLOT.format(height=140 + 18 * len(rows), out=path, rows=len(rows), data=data)
    done = subprocess.run(["gnuplot"], input=script, text=True, check=False)
    return done.returncode == 0
