"""The sink whose rows are taken by a client: files of Arrow that are removed when they are acknowledged.

It is a file sink, so rows get there as in any other, and the inventory of the path counts them: a position is
a version and a number of rows of it. What is added here:

    marks      how far a client has acknowledged, and whether a query runs
    buffer     what the path holds that is not acknowledged
    stages     an epoch waits for room before it begins, and removes what is acknowledged
    early      rows of epochs that are not complete, for clients that take some of them twice
    results    the client: needs no Spark, and writes nothing but acknowledgements

May use ``file_sink``, whose tiers it builds upon; knows no other sink.
"""
