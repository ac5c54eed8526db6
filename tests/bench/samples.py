# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Samples and what they say: measured by turns, each between two probes.

The host moves this machine's processors, and what a cache line costs between
two of them changes by five times from minute to minute. The probe, a cache-line
ping-pong, tells where they are; only samples of one group compare.
"""
import statistics
from collections import defaultdict

from bench.sources import Bare, Failure, Missing

# one way, ns, up to: hardware threads of one core, cores of one cache, others
GROUPS = ((40, "siblings"), (110, "near"), (float("inf"), "far"))
MIXED = "mixed"  # moved meanwhile: compares with nothing


def group_of(ns):
    return next(name for limit, name in GROUPS if ns < limit)


class Samples:
    """What was measured: source -> [(figure, group)], and what failed."""

    def __init__(self, bench):
        self.bench = bench
        self.seen = defaultdict(list)
        self.failed = {}

    def probe(self):
        source = Bare("probe")
        return group_of(Bare.measure(self.bench, [source])[source])

    def take(self, sources):
        """One sample of sources that are measured together."""
        before = self.probe()
        try:
            found = type(sources[0]).measure(self.bench, sources)
        except Failure as why:
            for source in sources:
                self.failed[source] = why
            return
        group = before if self.probe() == before else MIXED
        for source, figure in found.items():
            self.seen[source].append((figure, group))

    def round(self, sources):
        """One sample of each that has not failed."""
        runs = defaultdict(list)
        for source in dict.fromkeys(sources):
            once = getattr(source, "once", False) and self.seen[source]
            if source not in self.failed and not once:
                runs[type(source), source.run].append(source)
        for together in runs.values():
            yield together[0]
            self.take(together)

    def in_group(self, source, group):
        return [figure for figure, g in self.seen[source] if group in (None, g)]

    def best_group(self, row):
        """The group with the most samples of both softib and its limit; None: no such."""
        def depth(group):
            return min(len(self.in_group(s, group)) for s in (row.softib, *row.limit))
        group = max((g for _, g in GROUPS), key=depth)
        return group if depth(group) else None


def judge(row, samples):
    """A row of bench.json."""
    group = samples.best_group(row)

    def median(source):
        found = samples.in_group(source, group)
        return statistics.median(found) if found else None
    best = min if row.less_is_better else max
    ours = median(row.softib)
    limits = [m for m in map(median, row.limit) if m]
    limit = best(limits) if limits else None
    peers = {name: median(source) for name, source in row.peers.items()}
    peers = {name: figure for name, figure in peers.items() if figure}
    best_peer = best(peers, key=peers.get) if peers else None
    result = {"name": row.name, "family": row.family, "unit": row.unit, "softib": ours,
              "limit": limit, "peers": peers, "best_peer": best_peer, "group": group,
              "ratio": ours / limit if ours and limit and group else None,
              "ratio_peer": ours / peers[best_peer] if ours and best_peer and group else None,
              "less_is_better": row.less_is_better, "reach": list(row.reach) or None,
              "samples": {label(s): samples.seen[s] for s in row.sources}}
    result["met"] = met(row, result)
    why = samples.failed.get(row.softib)
    if why:
        result["missing" if isinstance(why, Missing) else "failed"] = str(why)
    result["peers_failed"] = {name: str(samples.failed[s]) for name, s in row.peers.items()
                              if s in samples.failed}
    return result


def label(source):
    return f"{type(source).__name__} {source.key} {source.run}"


def met(row, result):
    """Is the figure to reach reached? None: there is none, or nothing to compare."""
    if not row.reach:
        return None
    kind, bound = row.reach
    figure = result["ratio"] if kind == "limit" else result["softib"]
    if figure is None:
        return None
    return figure <= bound if row.less_is_better else figure >= bound
