"""Histories that find a defect when it is put back; ``test_found`` asks for the same defects directly."""

from __future__ import annotations

from property_tests.exhaustive import Case
from property_tests.simulation.world.faults import Fault, Mode

#: Seed to what it finds.
SEEDS: dict[int, str] = {
    32: "a record that another driver left was published by before its name was durable",
    36: "a start that crashed left its probe for ever",
    90: "a file that could not be looked at was reported as lost",
    40019381: "a record that came late was decided after the data source's abort had removed its files",
    300000372: "a txn_id that another process had decided was reported as done before its files were visible",
    310003214: "files that compaction had replaced were reported as lost by a driver that published late",
    700012748: "a power cut gave back what had been swept from the ledger of a finished txn_id",
    6000012271: "a completion that a replay had found went in a power cut, and with it who would sweep",
    5000013558: "the late twin of a merge met inputs that were gone, and raised what is no error of ours",
    70070002122: "a failed attempt at a merge removed, late, what another had made under the same name",
    75010017790: "what was held and lost was not given up if a late completion came between two looks",
    436: "a claim that another driver left was published by before its name was durable: written again",
    1114: "a slot was decided although the one before it, which came meanwhile, was not complete",
    1232: "a driver that came late won a slot that had been folded away",
    300000000272: "a mark copied to the next slot is adopted, and its removal is another damage",
    300000002276: "offline compaction took files of a sink that came after its look at the ledgers",
    8835: "an append decided, died and lost its txn_id, and the simulator had nobody who would recover it",
    26012875: "a write that lost its txn_id was complete first on a new path, which then got no inventory",
    24003090: "a grace that began late was taken for a removal that had failed",
    26010731: "a power cut gave back what was given up: published without a version, since that was noted",
    26015730: "the same, of a merged file",
    26018440: "the same, in another bucket",
    81000012: "a power cut took a completion, and its graces began anew",
    310000040108: "a record was appended above one whose name a power cut took",
    199: "a commit that asked for a retry counted as done",
    318: "what merges left behind was not swept",
    450: "a folded slot was not void",
    257: "an upload was completed over what stood there, or took what was as long for its own",
    277: "an upload that was gone counted as completed",
    136: "a sweep took what another append was about to put",
    198: "an epoch was complete and its record was gone: its slot was free",
    487: "retention dropped files that a driver still looked for",
    521: "recover() removed what had another name",
    1678: "what retention had copied was not durable when it was decided",
    42: "a query whose records were folded away was not known any more: its first batch came again",
    220: "a batch write that was decided while a sweep looked was taken for one that is done",
    3985: "what an epoch published while an overwrite looked was replaced before it was complete",
    4089: "compaction ended between two looks of a reader, who was given a row twice",
    3723: "what a killed recover() had taken back came back in a power cut",
    6200: "an append that was half done was folded away",
    600000000251: "an erasure dropped files whose epoch a driver was still to carry through",
    310000031353: "two sleepers met in a slot that was folded away: the observer took it for damage",
}

#: The same, of canonical histories.
CASES: dict[Case, str] = {
    Case(
        "open parts", 75, Fault(Mode.ERROR, 5), sticky=True
    ): "an error while a file was looked at counted as absent",
    Case(
        "open parts", 47, Fault(Mode.LATE, 5, delay=60, refuses=True)
    ): "what a driver that died had left beside a layout stayed",
    Case(
        "open parts", 313, Fault(Mode.ERROR, 5), sticky=True
    ): "a standing record was not made durable after a create that failed",
    Case("open parts", 150, Fault(Mode.PARTIAL)): "a short copy was taken for a whole one",
    Case(
        "closed parts, interleaved", 12, Fault(Mode.ERROR, 5), sticky=True
    ): "a loss that was accepted was not counted",
    Case(
        "data source", 208, Fault(Mode.CRASH_BEFORE)
    ): "an abort after a failed commit removed what was decided",
    Case("objects", 23, Fault(Mode.ERROR, 503)): "an upload that could not be completed was aborted",
    Case("objects", 40, Fault(Mode.ERROR, 503)): "an error of a completion counted as done",
    Case("objects", 40, Fault(Mode.LATE, 503)): "a key was looked at once only",
    Case(
        "objects", 37, Fault(Mode.LATE, 503, delay=60, refuses=True)
    ): "a put without an answer counted as not done",
    Case(
        "objects, another server", 54, Fault(Mode.ERROR, 503), sticky=True
    ): "a task did not look whether its batch was decided",
    Case(
        "overwrites", 59, Fault(Mode.ERROR, 5), sticky=True
    ): "what an unknown decision may name was removed",
    Case(
        "merges in tasks", 144, Fault(Mode.ERROR, 5), second=145, then=Mode.LATE
    ): "all attempts at a merge had one name: a server that was slow removed what the second had made",
    Case("overwrites", 109, Fault(Mode.CRASH_AFTER)): "a completion was believed that power took",
    Case(
        "crowd", 275, Fault(Mode.CRASH_BEFORE), second=353, then=Mode.POWER_WEAK
    ): "a txn_id that another process had claimed was believed before the name of the claim was durable",
    Case(
        "crowd", 193, Fault(Mode.CRASH_AFTER), second=240, then=Mode.POWER_WEAK, seed=10
    ): "an append was decided above one whose record's name a power cut took",
}

#: The same, of histories of an inventory by itself.
INVENTORY_SEEDS: dict[int, str] = {
    51: "removals were forgotten while their files were in older segments",
    64: "a fold removed segments of another one that was at work",
    144: "epochs were forgotten from the middle of the history",
    271: "a mark that was removed was taken for a free number",
    496: "the same, at another number",
    936: "the first mark was removed, and with it went what says that there is an inventory",
    6600: "an entry that came too late stood where a reader had listed one that was folded away",
    900035: "a fold slept before it looked: its mark was old from the start, and others went too early",
}
