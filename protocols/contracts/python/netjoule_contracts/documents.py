# SPDX-License-Identifier: Apache-2.0
"""Documents as typed objects: what all types of netjoule_contracts.types have in common.

A document that is only read, or made whole, is easier with types; one that may be broken stays a mapping, and
`document_defects` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from netjoule_contracts import validate
from netjoule_contracts.lift.results import newest_result
from netjoule_contracts.lift.workload import newest_campaign, newest_workload


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An object in a document; it has no fields but those of its contract."""


class Document(Part, frozen=True):
    """A whole document; `contract` is the name of its schema."""

    contract: ClassVar[str]


Kind = TypeVar("Kind", bound=Document)

_NEWEST = {"result": newest_result, "campaign": newest_campaign, "workload": newest_workload}


def typed(kind: type[Kind], document: Mapping[str, Any]) -> Kind:
    """The document as an object, held to its contract; one of an older version in the newest shape.

    Raises:
        ContractError: naming every offending field.
    """
    newest = _NEWEST.get(kind.contract)
    document = document if newest is None else newest(document)
    validate(kind.contract, document)
    return msgspec.convert(document, kind)
