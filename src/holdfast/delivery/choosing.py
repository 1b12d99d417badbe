"""By which channels an owner's results go, and whether they can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.delivery.recipients import Recipients
from holdfast.delivery.setup import DeliverySetup
from holdfast.ports.store import Store

USUAL: Final = ("email", "inbox", "push")
"""What is used, as far as it reaches the owner, if nobody said anything else."""


async def channels_for(
    store: Store, setup: DeliverySetup, owner: str | None, asked: Sequence[str] | None
) -> tuple[str, ...]:
    """The channels that were asked for, `InvalidOption` if one of them cannot be; or, if none was,
    those that reach this owner.
    """
    known = Recipients(store, setup.channels, setup.settings.callback_hosts)
    recipient = None if owner is None else await known.get(owner)
    if asked is None:
        return tuple(name for name in USUAL if not any(setup.problems([name], recipient, owner)))
    setup.check(asked, recipient, owner)
    return tuple(asked)
