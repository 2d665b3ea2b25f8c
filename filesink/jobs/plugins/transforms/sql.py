"""``Sql``: a query of Spark's over what the transform takes, and ``Python``: a function of the user's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from filesink.errors import JobError
from filesink.jobs.model.options import option
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Transform


class SqlOptions(PluginOptions):
    """The query."""

    query: str = option(doc="Spark SQL; tables are named as in plugin_input.", min_length=1)


class Sql(Transform):
    """A query. Its tables are those that it takes, by the names of plugin_input."""

    name = "Sql"
    options_type = SqlOptions
    options: SqlOptions

    def apply(self, frames: Frames, run: Run) -> Frames:
        """See ``Transform.apply``."""
        # Arguments of a query would need names of ours in it: a view for each table is what users write.
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        return {self.options.output: run.spark.sql(self.options.query)}


class PythonOptions(PluginOptions):
    """The function."""

    function: str = option(doc="MODULE:NAME of a function of one DataFrame, or of several by name.")
    arguments: dict[str, Any] = option({}, doc="Passed to it by name.")

    @field_validator("function")
    @classmethod
    def _has_module(cls, given: str) -> str:
        module, colon, name = given.partition(":")
        if not (colon and name.isidentifier() and all(one.isidentifier() for one in module.split("."))):
            raise PydanticCustomError("function", "is MODULE:NAME, such as shop.cleaning:without_tests")
        return given


class Python(Transform):
    """A function by its importable name: DataFrame in, DataFrame out."""

    name = "Python"
    options_type = PythonOptions
    options: PythonOptions

    def apply(self, frames: Frames, run: Run) -> Frames:
        """See ``Transform.apply``."""
        del run
        function = self._function()
        given = tuple(frames.values())
        found = function(*given, **self.options.arguments)
        if not hasattr(found, "createOrReplaceTempView"):
            raise JobError(
                f"the function {self.options.function} returned {type(found).__name__}, not a DataFrame",
                code="JOB_FUNCTION",
            )
        return {self.options.output: found}

    def _function(self) -> Any:
        module, _, name = self.options.function.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise JobError(
                f"the function {self.options.function} cannot be imported ({type(error).__name__}); is its "
                "module on PYTHONPATH?",
                code="JOB_FUNCTION",
            ) from error
