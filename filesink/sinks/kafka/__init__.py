"""Topics of Kafka as a destination, exactly once.

    tasks      stage rows in files, and never talk to Kafka
    driver     checks ─▶ *decide* ─▶ transactions: rows of whole files, and the marker that says which

Only the process that began a transaction of Kafka can end it. So nothing is sent before the decision, and no
transaction is open while anybody waits for it.

Only ``cluster`` and the modules that take what it makes import confluent_kafka; ``sink``, ``settings``,
``writer`` and what they need do not, so that ``filesink`` is imported without it.
"""
