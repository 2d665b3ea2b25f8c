"""One torture for every sink: a stream whose drivers, tasks, servers and clients are killed.

    python -m property_tests.torture --destination kafka --kills 300 --seed 1

A *history* is one stream into a fresh place, as a sequence of *lives*. A life is a driver that begins at
the checkpoint and runs the real epoch loop without Spark; each task is a process of its own, and tried again
if it dies, as Spark does. In most lives somebody is killed by SIGKILL: before, after or soon after a call
that leaves something behind, in the store or on the network. The last lives come to their ends. After each,
the place is read by means that bypass the product.

Rules:

* ``destination`` is the port: a subclass enrols a sink, and knows nothing about who is killed.
* Nobody is killed by luck alone: an undisturbed life tells which calls there are, and the chance of a history
  comes from its seed and number. What the system does meanwhile is its own affair.
* Every process is forked by ``nursery``, which has imported everything and has no threads.
* A task goes on when its driver has died, as on a cluster, until the next life has ended.
"""
