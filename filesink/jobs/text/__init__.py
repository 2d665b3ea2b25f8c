"""From the bytes of a job file to a tree in which every value knows its file and line.

Knows HOCON, YAML and SQL, variables and includes; knows no option and no plugin. ``read`` is the door. Uses
``errors`` and nothing else of filesink; no module but ``environment`` looks at the environment.
"""
