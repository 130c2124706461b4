"""The base of all contracts, and the string types they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

AgentId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$")]
"""Name of an agent: ASCII, safe in paths, headers and logs."""

Namespace = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)*$", max_length=200)
]
"""A namespace such as `prod/commerce`."""

SemanticVersion = Annotated[
    str,
    StringConstraints(
        pattern=r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})"
        r"(-(0|[1-9][0-9]{0,8}|[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]{0,8}|[A-Za-z-][0-9A-Za-z-]*))*)?"
        r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$",
        max_length=100,
    ),
]
"""A version as in semver.org 2.0.0."""

VersionRange = Annotated[
    str,
    StringConstraints(
        pattern=r"^(>=|<=|>|<|=|\^|~)?(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,2}"
        r"(( |, ?)(>=|<=|>|<|=|\^|~)?(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,2}){0,5}$"
    ),
]
"""A version range in npm's notation: `>=2`, `^1.2`, `~1.2.3`, `>=1.0 <2.0`."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,128}$")]
"""An id made by a caller: 1 to 128 visible ASCII characters, so that it can stand in a header."""

IntentName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")]
"""Name of an intent; names like identifiers (`order_refund_status`) are advised, others are linted."""

Label = Annotated[str, StringConstraints(min_length=1, max_length=128)]
"""Value of a label (environment, tenant, domain, …)."""

Permission = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]
"""A permission such as `user:erase`."""


class Contract(BaseModel):
    """Unknown fields are refused, nothing is coerced, instances do not change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
