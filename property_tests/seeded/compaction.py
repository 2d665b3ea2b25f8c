"""Defects of compaction: what is merged, what goes on waiting, what is left behind."""

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_MERGING = "filesink/parts/stages/merging.py"
_PLANNER = "compaction/planner.py"

COMPACTION = (
    Mutant(
        "parts with different headers are joined",
        "compaction/concat.py",
        ", part[-1].carry_over",
        "",
    ),
    Mutant(
        "a merged file's inputs also go on waiting",
        _MERGING,
        "        left = [held for part in waiting for held in part]\n",
        "        left = [held for part in (*waiting, *sum(map(list, groups), [])) for held in part]\n",
    ),
    Mutant(
        "files that wait are forgotten",
        _MERGING,
        "        if left:\n            states[OF_STAGES] = left\n",
        "",
    ),
    Mutant(
        "a file that is large enough is dropped",
        _PLANNER,
        "            full.append([part])\n",
        "",
    ),
    Mutant(
        "files of all buckets are merged",
        _PLANNER,
        "        buckets.setdefault(part[0].bucket, []).append(part)\n",
        '        buckets.setdefault("", []).append(part)\n',
    ),
    Mutant(
        "files beyond the bound are dropped",
        _PLANNER,
        "        done.groups += _fill(parts, trigger, key)[1]\n",
        "",
    ),
    Mutant(
        "every file keeps its header when it is joined",
        "compaction/concat.py",
        "            header = first.header_size if number else 0\n",
        "            header = 0\n",
    ),
    Mutant(
        "the end of input leaves small files waiting",
        "compaction/trigger.py",
        "        if moment.is_last or waiting[0][0].bucket in moment.pressing:\n            return True\n",
        "",
    ),
    Mutant(
        "turned off, compaction forgets what waits",
        "filesink/parts/stages/closed_parts.py",
        "    return [*parts_of(prepared.states.get(OF_STAGES, ())), *parts_of(closed)]\n",
        "    return parts_of(closed)\n",
    ),
    Mutant(
        "what merges leave behind is not swept",
        "filesink/ports.py",
        "        self.used = True\n",
        "",
    ),
    Mutant(
        "offline, what was merged already is merged again",
        "compaction/offline/finished.py",
        " and file.path not in paths and complete.has(name_of(file.path), name)\n    ]\n"
        "    live = live_of(store, small, clock)",
        " and complete.has(name_of(file.path), name)\n    ]\n    live = None",
    ),
    Mutant(
        "offline, only the last merged file stands for its inputs",
        "compaction/offline/swap.py",
        "        earlier += [replace(file, by=by[file.by]) for file in earlier if file.by in by]\n",
        "        earlier = [replace(file, by=by.get(file.by, file.by)) for file in earlier]\n",
    ),
    Mutant(
        "offline, what waits for readers is forgotten",
        "filesink/ledger/transactions.py",
        "            copy = replace(record, sink_id=COMPACTION)\n",
        "            return\n",
    ),
    Mutant(
        "readers are told once of what is superseded: before they list",
        "compaction/offline/superseded.py",
        "for file in (*earlier, *superseded(store)) if file.by in there",
        "for file in earlier if file.by in there",
    ),
    Mutant(
        "inputs that go at once are not named as superseded",
        "compaction/offline/swap.py",
        "for file in gone}.values(), *earlier, *merged]",
        "for file in gone}.values(), *self._plan.waiting, *(merged if self._grace_ms else ())]",
    ),
)
