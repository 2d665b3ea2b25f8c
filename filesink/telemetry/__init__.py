"""Listeners that hand what a sink does on to others: Prometheus, OpenTelemetry, logs.

Each client only in its own module. May use the events of ``api`` and the ground. Nothing here is imported by
``import filesink``: a program imports by module, as in ``from filesink.telemetry.prometheus import …``.
"""
