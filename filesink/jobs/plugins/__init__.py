"""What jobs are made of: sources, transforms and sinks, each a class with typed options.

``api`` is their contract, ``registry`` knows them by name, those of other packages as well. Uses ``text``,
``model`` and the public face of filesink; a plugin gets its Spark session when it runs, and imports none.
"""
