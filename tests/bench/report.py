# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of `make bench` as text, as JSON and as a picture."""
import html
import json
import math
import os
import platform
import re
from pathlib import Path

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


def host_model(cpuinfo=Path("/proc/cpuinfo")):
    """The processor, as it names itself; with family and model, for in a virtual machine
    the name may be short."""
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.*)$",
                             cpuinfo.read_text(), re.MULTILINE))
    numbers = [f"{name} {fields[key]}" for name, key in (("family", "cpu family"),
                                                         ("model", "model")) if key in fields]
    name = fields.get("model name", platform.machine())
    return f"{name} ({', '.join(numbers)})" if numbers else name


def write_json(path, results):
    host = {"cpu": host_model(), "cpus": os.cpu_count(), "kernel": platform.release()}
    path.write_text(json.dumps({"host": host, "rows": results}, indent=1) + "\n")


# --- the picture: each row's ratio to its limit, and its best peer's ---

def distance(result, figure):
    """How many times farther than the limit: 1 is the limit, more is worse."""
    if not figure or not result["limit"]:
        return None
    value = figure / result["limit"]
    return value if result["less_is_better"] else 1 / value


ROW, HEAD, LABELS, PLOT, FIGURES = 18, 34, 420, 520, 330  # pixels
DECADES = (-1, 2)  # of the axis: ten times better than the limit to a hundred times worse
GROUPS = (("ns", "Latency"), ("us", "Time"), ("M/s", "Rate"), ("GB/s", "Bandwidth"))


def groups(results):
    """(title, rows) by what is measured; units without a title of their own come last."""
    units = [unit for unit, _ in GROUPS]
    units += sorted({r["unit"] for r in results} - set(units))
    for unit in units:
        rows = [r for r in results if r["unit"] == unit and r["ratio"]]
        if rows:
            yield f"{dict(GROUPS).get(unit, 'Other')} ({unit})", rows


def axis(value):
    low, high = DECADES
    return LABELS + PLOT * (min(max(math.log10(value), low), high) - low) / (high - low)


def text(x, y, words, **attributes):
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{html.escape(words)}</text>'


def draw_row(result, y):
    peer = result["best_peer"]
    ours, theirs = distance(result, result["softib"]), distance(result, result["peers"].get(peer))
    line = f"{number(result['softib'])} / {number(result['limit'])} {result['unit']}"
    if theirs:
        line += f", {peer} {number(result['peers'][peer])}"
    yield text(LABELS - 10, y + 4, result["name"], text_anchor="end")
    yield text(LABELS + PLOT + 12, y + 4, line)
    if theirs:
        yield f'<circle cx="{axis(theirs):.1f}" cy="{y}" r="4" fill="none" stroke="#c04020"/>'
    if ours:
        yield f'<circle cx="{axis(ours):.1f}" cy="{y}" r="4" fill="#2040c0"/>'


def draw_axis(top, bottom):
    for decade in range(DECADES[0], DECADES[1] + 1):
        x, colour = axis(10 ** decade), "#208020" if decade == 0 else "#dddddd"
        yield f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top}" y2="{bottom}" stroke="{colour}"/>'
        yield text(x, top - 4, f"{10.0 ** decade:g}", text_anchor="middle", fill="#777777")


def write_plot(path, results):
    """An SVG; False when nothing can be drawn."""
    parts, y = [], 56
    for title, rows in groups(results):
        y += HEAD
        parts.append(text(10, y - 4, title, font_weight="bold", font_size="13"))
        parts += draw_axis(y + 2, y + 6 + ROW * len(rows))
        for result in rows:
            y += ROW
            parts += draw_row(result, y - 4)
    if not parts:
        return False
    width, height = LABELS + PLOT + FIGURES, y + 20
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="11">'
            f'<rect width="{width}" height="{height}" fill="white"/>')
    told = (text(10, 22, "Distance from the limit of the machine: 1 is the limit, to the right is "
                         "slower", font_size="15"),
            text(10, 42, "full: softib, empty: best peer; figures: softib / limit, best peer"))
    path.write_text("\n".join([head, *told, *parts, "</svg>"]) + "\n", encoding="utf-8")
    return True
