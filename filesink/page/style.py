"""The style of the page. No URL is in it."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --soft: #5b6570; --line: #dfe3e8;
  --field: #f5f6f8; --bar: #3565b0; --pale: #9db9e3; --warn: #b25e00; --bad: #b3261e; --good: #1d7a46 }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e6e9ec; --soft: #9aa5b1;
  --line: #2c3238; --field: #1d2226;
  --bar: #7aa5ea; --pale: #3d5c8f; --warn: #f0a04b; --bad: #ff8a80; --good: #6cc895 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.25rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1rem; margin: 2rem 0 .5rem }
p { margin: .3rem 0; color: var(--soft); overflow-wrap: anywhere }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: .6rem; margin: 1rem 0 }
.tile { background: var(--field); border-radius: 6px; padding: .55rem .75rem }
.tile b { display: block; font-size: 1.25rem; font-weight: 600 }
.tile span, .axis, .note { color: var(--soft); font-size: .8rem }
.bad { color: var(--bad) } .warn { color: var(--warn) } .good { color: var(--good) }
.columns { display: flex; align-items: flex-end; height: 8rem; border-bottom: 1px solid var(--line) }
.columns > span { flex: 1 1 0; min-width: 0; height: 100%; display: flex; align-items: flex-end;
  position: relative; padding-right: 1px }
.columns i { display: block; width: 100%; background: var(--bar); min-height: 0 }
.columns i.pale { background: var(--pale); position: absolute; left: 0; bottom: 0; width: calc(100% - 1px) }
.columns i.over { position: relative }
.axis { display: flex; justify-content: space-between; gap: .5rem; margin-top: .2rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .8rem; white-space: nowrap }
th, td { padding: .22rem .6rem .22rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td { overflow-wrap: anywhere; min-width: 5rem } td.wide { min-width: 9rem }
.n { text-align: right; white-space: nowrap; min-width: 0 }
td.bar { width: 40%; min-width: 5rem; vertical-align: middle; padding-right: .8rem }
td.bar i { display: block; height: .7rem; background: var(--bar); border-radius: 2px }
td.bar i.small { background: var(--warn) }
tr.target td { border-bottom: 2px solid var(--good) }
code { font: .85rem ui-monospace, monospace; overflow-wrap: anywhere }
.finding { border-left: 3px solid var(--line); padding-left: .75rem; margin: .8rem 0 }
.finding.damage { border-color: var(--bad) } .finding.warning { border-color: var(--warn) }
.finding ul { margin: .3rem 0; padding-left: 1.1rem; font-size: .85rem; overflow-wrap: anywhere }
@media (max-width: 34rem) { body { padding: .75rem } td.bar { width: 22%; min-width: 3rem }
  td.wide { min-width: 6rem } .columns { height: 6rem } .tiles { grid-template-columns: 1fr 1fr } }
@media print { :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --field: #f3f3f3; --bar: #333;
  --pale: #aaa; --warn: #777 } body { max-width: none; padding: 0; font-size: 11px }
  h2 { break-after: avoid } tr, .finding, .tile, .columns { break-inside: avoid }
  .scroll { overflow: visible }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""
