"""Arrow's compute functions and arrays, typed once, and loosely.

The stubs of pyarrow describe fewer argument types than its functions take (a string where a scalar
is meant, arrays next to scalars), and one generic class per element type. The aliases say what a
column holds; what they do not check, the comparison with Spark does.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

pc: Any = pyarrow.compute
#: A column of any type.
Column: TypeAlias = Any
#: A column of strings with 32-bit offsets.
Text: TypeAlias = Any
#: A column of truth values.
Mask: TypeAlias = Any
#: A named type, at the top of a schema or inside a nested type.
Field: TypeAlias = Any
