"""One history after the other, of the product itself on a simulated machine.

From below: ``world`` (a machine and its faults), ``workload``, ``observer`` (what must hold), ``spark``,
``scenario`` and ``stage`` (where a history plays), ``others`` and ``endings`` (what happens there), and
``history``. A room uses those before it, and the stage never knows its scenes.
"""
