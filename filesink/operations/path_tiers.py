"""A sink of which only its path is known, and who is told of its partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from filesink.buckets.assigner import BucketAssigner
from filesink.errors import ConfigError
from filesink.file_sink.table_destination import assigner_of, find_table
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.metastore.api import Metastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import CommitPolicy, SuccessFilePolicy
from filesink.naming import OutputFileConfig
from filesink.parts.file_format import RowFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.storage.address import StoreAddress
from formats.encoders import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcing:
    """Who is told of partitions.

    Attributes:
        metastore: that of ``table``; ``None`` for nobody.
        table: ``"database.table"``.
        success_file: its name in each directory; ``""`` for none.
    """

    metastore: Metastore | None = None
    table: str = ""
    success_file: str = ""

    def __post_init__(self) -> None:
        if (self.metastore is None) != (not self.table):
            raise ConfigError(
                "a metastore and the name of a table go together: give both, or neither", code="CONFLICT"
            )


def path_tiers(address: StoreAddress, announcing: Announcing, *, uid: str | None = None) -> FileTiers:
    """The sink, without a format of its own: it moves, joins and removes files, whatever is in them."""
    plan = Plan(
        format=RowFormat(Encoder.simple_string_encoder()),
        assigner=BucketAssigner.base_path_bucket_assigner(),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )
    policies: list[CommitPolicy] = []
    if announcing.metastore is not None:
        table = find_table(announcing.table, announcing.metastore)
        plan = replace(plan, assigner=assigner_of(table))
        policies.append(MetastorePolicy(announcing.table, announcing.metastore))
    if announcing.success_file:
        policies.append(SuccessFilePolicy(announcing.success_file))
    commit = PartitionCommit(policies=policies) if policies else None
    publishing = None if commit is None else Publishing(commit=commit, base_path=address.base_path)
    return FileTiers(address=address, plan=plan, uid=uid, publishing=publishing)
