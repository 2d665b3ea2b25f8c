"""Jobs: SeaTunnel's job files on Spark.

``text`` reads files, ``model`` types their options, ``plans`` makes pipelines of them, ``plugins`` are what
they are made of, ``life`` runs them. Stands on top of the library: uses its public face, and only the command
line uses this room. Needs the extra ``jobs``.
"""

from filesink.jobs.descriptions import OptionDescription, PluginDescription, plugins
from filesink.jobs.dry_run import CheckedTable
from filesink.jobs.jobs import Jobs
from filesink.jobs.life.events import JobInfo, PipelineInfo
from filesink.jobs.life.running import Back, RunOptions
from filesink.jobs.life.savepoints import Saved, Savepoint
from filesink.jobs.life.states import State
from filesink.jobs.life.watching import Figures
from filesink.jobs.looking import dry_run, plan
from filesink.jobs.plans.values import Edge, Pipeline, Plan, Vertex, differences

__all__ = [
    "Back",
    "CheckedTable",
    "Edge",
    "Figures",
    "JobInfo",
    "Jobs",
    "OptionDescription",
    "Pipeline",
    "PipelineInfo",
    "Plan",
    "PluginDescription",
    "RunOptions",
    "Saved",
    "Savepoint",
    "State",
    "Vertex",
    "differences",
    "dry_run",
    "plan",
    "plugins",
]
