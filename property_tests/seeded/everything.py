"""All seeded defects."""

from __future__ import annotations

from property_tests.seeded.batch_writes import BATCH_WRITES
from property_tests.seeded.compaction import COMPACTION
from property_tests.seeded.epochs import EPOCHS
from property_tests.seeded.files import FILES
from property_tests.seeded.inventory import INVENTORY
from property_tests.seeded.ledger import LEDGER
from property_tests.seeded.metastore import METASTORE
from property_tests.seeded.mutant import Mutant
from property_tests.seeded.neighbours import NEIGHBOURS
from property_tests.seeded.noting import NOTING
from property_tests.seeded.objects import OBJECTS
from property_tests.seeded.operations import OPERATIONS
from property_tests.seeded.overwrites import OVERWRITES
from property_tests.seeded.recovery import RECOVERY
from property_tests.seeded.storage import STORAGE

MUTANTS: tuple[Mutant, ...] = (
    *STORAGE,
    *OBJECTS,
    *LEDGER,
    *EPOCHS,
    *FILES,
    *COMPACTION,
    *METASTORE,
    *NEIGHBOURS,
    *OVERWRITES,
    *BATCH_WRITES,
    *RECOVERY,
    *INVENTORY,
    *NOTING,
    *OPERATIONS,
)
