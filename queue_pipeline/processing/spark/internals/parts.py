"""The private parts of PySpark by name, and what is lost without each.

A missing part is reported once per process, by a warning and in the metadata of runs; the work goes on without it.
"""

from __future__ import annotations

import functools
import logging
import operator
import pkgutil
import threading
from dataclasses import dataclass
from typing import Any

import pyspark

KNOWN_VERSIONS = ("4.3",)
"""The releases of PySpark whose private parts are known; the tests check those of the installed one."""
_missing: dict[str, str] = {}
_reporting = threading.Lock()
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrivatePart:
    """A private part: `module:attribute`, or an attribute of an object, and what is lost without it."""

    where: str
    lost: str

    def find(self, owner: Any = None) -> Any:
        """The part, of an object if one is given; None, and a report, if this PySpark lacks it."""
        check_version(pyspark.__version__)
        try:
            return pkgutil.resolve_name(self.where) if owner is None else operator.attrgetter(self.where)(owner)
        except (ImportError, AttributeError):
            _report(self.where, self.lost)
            return None


_UDF = "a function made by @udf or @pandas_udf before there is a Spark session fails; create it in the transform"
_CACHE = "what a transform caches stays in Spark's memory after its batch"
_ARROW = "results whose struct is null where its fields are NOT NULL are refused, and a batch takes one more request"
CLONE = PrivatePart(
    "_jsparkSession.cloneSession", "attempts do not have the settings that the run's session got while it ran"
)
CONNECT_SESSION = PrivatePart("pyspark.sql.connect.session:SparkSession", "an isolated batch gets no Spark of its own")
ENDPOINT = PrivatePart("client._builder.endpoint", "a server that died is noticed after ten minutes")
RETRIES = PrivatePart(
    "pyspark.sql.connect.client.retries:DefaultPolicy", "a server that died is noticed after ten minutes"
)
LOCAL_FILE = PrivatePart(
    "pyspark.sql.connect.local_server:Discovery", "`queue-pipeline spark stop` cannot stop the server"
)
LOCAL_SERVER = PrivatePart("pyspark.sql.connect.local_server:LocalConnectServer", LOCAL_FILE.lost)
GATEWAY = PrivatePart("pyspark:SparkContext._gateway", "the exit code of a driver that died is not known")
ACTIVE = PrivatePart("_active_session", "SparkSession.active() fails in a transform")
CONNECT_ARROW = PrivatePart("_to_table", _ARROW)
CLASSIC_ARROW = PrivatePart("_collect_as_arrow", _ARROW)
CONNECT_PLAN = PrivatePart(
    "_explain_string", "results of every batch are shuffled, also where the plan needs no shuffle"
)
CLASSIC_PLAN = PrivatePart("_jdf.queryExecution", CONNECT_PLAN.lost)
CONNECT_FRAME = PrivatePart("pyspark.sql.connect.dataframe:DataFrame", _CACHE)
CONNECT_CATALOG = PrivatePart("pyspark.sql.connect.catalog:Catalog", _CACHE)
CLASSIC_FRAME = PrivatePart("pyspark.sql.classic.dataframe:DataFrame", _CACHE)
CLASSIC_CATALOG = PrivatePart("pyspark.sql.catalog:Catalog", _CACHE)
LAMBDAS = PrivatePart(
    "pyspark.sql.connect.expressions:UnresolvedNamedLambdaVariable.fresh_var_name",
    "Spark compiles transforms that use F.transform and the like anew for every batch",
)
UDF = PrivatePart("pyspark.sql.udf:UserDefinedFunction", _UDF)
CONNECT_UDF = PrivatePart("pyspark.sql.connect.udf:UserDefinedFunction", _UDF)
TASKS = PrivatePart("pyspark.worker:main", "Spark's workers keep the code that they loaded first until they end")
PARTS = [part for part in list(globals().values()) if isinstance(part, PrivatePart)]


def missing_parts() -> dict[str, str]:
    """The parts that were looked for in this process and not found, and what is lost without each."""
    return dict(_missing)


@functools.cache
def check_version(version: str) -> None:
    """Report a PySpark of a release that is not known, once."""
    if ".".join(version.split(".")[:2]) not in KNOWN_VERSIONS:
        known = ", ".join(KNOWN_VERSIONS)
        _report(f"a known release ({known})", f"private parts of {version} may work in another way; install {known}")


def _report(name: str, lost: str) -> None:
    with _reporting:
        if name in _missing:
            return
        _missing[name] = lost
    logger.warning("PySpark %s has no %s: %s", pyspark.__version__, name, lost)
