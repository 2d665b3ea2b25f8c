"""Questions to a sink at peace, one or two at the end of a history; ``epilogue`` chooses.

Acts on a ``Stage``, and may use ``others``.
"""
