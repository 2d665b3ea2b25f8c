"""What must hold after every call, known by other means than the product's own code.

Each module asks its own questions of a shared ``View``; ``observer`` binds them. May use ``world`` and
``workload``.
"""
