"""What will happen with a message: for each reader, whether it has it, is started with it, or why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from windlass.core import policy
from windlass.core.address import HUMAN
from windlass.core.nouns.message import Delivery, Message, Receipt
from windlass.core.nouns.project import Absence
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.projects.absences import first_of
from windlass.engine.slots import NONE_FREE
from windlass.engine.waking.deliver import Deliver, Mail, mail_of

_SETTLED = {Receipt.DELIVERED: "has it", Receipt.READ: "has read it", Receipt.ACKED: "has acknowledged it"}
_NO_SLOT = f"waits: {NONE_FREE}"


class Outlook:
    """Looks ahead, as the deliver tick would."""

    def __init__(self, ports: Ports, deliver: Deliver) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.deliver = deliver

    async def of(self, message: str) -> list[tuple[Delivery, str]]:
        """How far a message got with each reader, and one sentence about what comes next."""
        absent = await self.deliver.absences.all()
        found = await self.store.read(partial(self._of, message, absent, frozenset()))
        if any(sentence == _NO_SLOT for _, sentence in found):  # only then is it worth a look at the processes
            found = await self.store.read(partial(self._of, message, absent, await self.deliver.slots.gone()))
        return found

    def _of(
        self, message: str, absent: Mapping[str, Absence], gone: frozenset[str], store: Reading
    ) -> list[tuple[Delivery, str]]:
        return [(receipt, self._outlook(store, receipt, absent, gone)) for receipt in store.receipts(message)]

    def _outlook(self, store: Reading, delivery: Delivery, absent: Mapping[str, Absence], gone: frozenset[str]) -> str:
        if delivery.receipt is Receipt.FAILED:
            return f"did not get it: {delivery.reason}"
        if delivery.receipt in _SETTLED:
            return _SETTLED[delivery.receipt]
        if delivery.reader == str(HUMAN):
            return "finds it in `windlass inbox`"
        mail = mail_of(store, delivery.reader, store.undelivered(reader=delivery.reader))
        if mail is None:
            return "waits: nobody has that name any more"
        if not delivery.wakes:
            return "is not woken; it is told when it next works"
        return self._next(store, delivery, mail, first_of(mail.agent, absent), gone)

    def _next(self, store: Reading, delivery: Delivery, mail: Mail, away: str, gone: frozenset[str]) -> str:
        """What comes next for a reader whom a message is to wake."""
        said = store.find(Message, delivery.message)
        match self.deliver.decide(mail, self.clock.now()):
            case policy.Wait(reason=policy.BUSY) if said and not said.spawns:
                return "waits: busy; it is told when it next works"  # for which nobody starts it
            case policy.Wait(reason):
                return f"waits: {reason}"
            case policy.Wake() if away:
                return f"waits: {away}"
            case policy.Wake() if not self.deliver.slots.fits(store, mail.agent, gone):
                return _NO_SLOT
            case policy.Wake(session):
                return "goes on with it now" if session else "is started with it now"
