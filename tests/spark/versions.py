"""What Spark has had since some version, so that tests of it are skipped on an older one."""

from __future__ import annotations

import pyspark
import pytest

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

#: Readers in Python are asked for the end of a batch with its beginning and limit, and for that of a run.
needs_limits = pytest.mark.skipif(VERSION < (4, 2), reason="Spark 4.1 tells a Python reader no limits")
#: Of a batch in which all of them are empty or null; a Python worker that looks into them crashes.
arrays_of_maps = pytest.mark.skipif(VERSION < (4, 2), reason="Spark 4.1 passes on damaged arrays of maps")
orc_instants = pytest.mark.skipif(VERSION < (4, 2), reason="Spark 4.1 reads no instants of ORC")
