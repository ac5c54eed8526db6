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
TRIES = 2  # failures of a source after which it is not tried again
GROUPS = ((40, "siblings"), (110, "near"), (float("inf"), "far"))
MIXED = "mixed"  # moved meanwhile: compares with nothing


def group_of(ns):
    return next(name for limit, name in GROUPS if ns < limit)


class Samples:
    """What was measured: source -> [(figure, group)], and what failed: source -> [why]."""

    def __init__(self, bench):
        self.bench = bench
        self.seen = defaultdict(list)
        self.failures = defaultdict(list)
        self.stands = None  # what the last probe said, while nothing ran since

    def probe(self):
        source = Bare("probe")
        try:
            figure = Bare.measure(self.bench, [source])[source]
        except Failure:
            return MIXED
        return MIXED if isinstance(figure, Failure) else group_of(figure)

    def take(self, sources):
        """One sample of sources that are measured together."""
        before = self.stands or self.probe()
        self.stands = None
        try:
            found = type(sources[0]).measure(self.bench, sources)
        except Failure as why:
            found = dict.fromkeys(sources, why)
        except (AssertionError, OSError) as why:  # the fabric's own, when softibd has died
            found = dict.fromkeys(sources, Failure(f"{type(why).__name__}: {why}"))
        self.stands = self.probe()
        group = before if self.stands == before else MIXED
        for source, figure in found.items():
            if isinstance(figure, Failure):
                self.failures[source].append(figure)
            else:
                self.seen[source].append((figure, group))

    def given_up(self, source):
        why = self.failures[source]
        return len(why) >= TRIES or any(isinstance(w, Missing) for w in why)

    def round(self, sources):
        """One sample of each but of those given up; yields what is being measured."""
        runs = defaultdict(list)
        for source in dict.fromkeys(sources):
            once = getattr(source, "once", False) and self.seen[source]
            if not once and not self.given_up(source):
                runs[type(source), source.run].append(source)
        for together in runs.values():
            yield together[0]
            self.take(together)

    def enough(self, row, runs):
        """Has the row @runs samples that compare, or will it never?"""
        if getattr(row.softib, "once", False) or self.given_up(row.softib):
            return True
        group = self.best_group(row)
        return group is not None and all(
            len(self.in_group(s, group)) >= runs or self.given_up(s)
            for s in (row.softib, *row.limit))

    def in_group(self, source, group):
        return [figure for figure, g in self.seen[source] if group in (None, g)]

    def best_group(self, row):
        """The group with the most samples of both softib and its limit; None: no such."""
        sources = [row.softib, *(s for s in row.limit if self.seen[s])]

        def depth(group):
            return min(len(self.in_group(s, group)) for s in sources)
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
              "count": len(samples.in_group(row.softib, group)),
              "ratio": ours / limit if ours and limit and group else None,
              "ratio_peer": ours / peers[best_peer] if ours and best_peer and group else None,
              "less_is_better": row.less_is_better, "reach": list(row.reach) or None,
              "samples": {label(s): samples.seen[s] for s in row.sources}}
    result["met"] = met(row, result)
    why = samples.failures[row.softib]
    result["failed_times"] = len(why)
    if why and ours is None:
        result["missing" if isinstance(why[-1], Missing) else "failed"] = str(why[-1])
    result["failures"] = {label(s): [str(w) for w in samples.failures[s]]
                          for s in row.sources if samples.failures[s]}
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
