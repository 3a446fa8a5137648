"""Mirrors a service of this contract into an account of the local store: first all of it, then only what changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec

from laudo.client import BadRequestError, Batch, Laudo, ParameterError, Place
from laudo.client import Relatorio as Listed
from laudo.client.items import Item
from laudo.core import disclosure
from laudo.core.values import PESSOA, UUID, fold
from laudo.mirror.names import Names
from laudo.server.ingest import fields
from laudo.server.ingest.changes import Counts
from laudo.server.ingest.fields import Draft, FaultError, Relatorio
from laudo.server.ingest.versions import StoreVersion
from laudo.server.ingest.writer import Ingest

I = TypeVar("I", bound=Item)  # noqa: E741 - an item

MARGIN: Final = timedelta(minutes=5)
"""How far before the newest known report a later run starts, because clocks differ and writes may come late."""

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""What some services write for an unknown instant: no report is older, and no instant can be."""

_MAX_REMEMBERED: Final = 10_000
"""How many rejected or unnamed reports are remembered, to count each once: the next walk has only the newest again."""

UNNAMED: Final = "Nome não informado"
"""Stands for the name of a person who is in a report but whom the service has never listed among its persons."""


@disclosure.only("id_conta", "whole", "since", "began", "newest", "list", "place")
class State(msgspec.Struct, kw_only=True):
    """How far a mirror is: all reports older than `since` are here, except late writes; the rest is of an open walk.

    A walk is open until it has ended. `since` is never later than the beginning of the walk that gave it, whatever
    dates the reports have. Everything written is in the store that was made at `made_at`, which then noted `version` of
    the account. `token` is the hash of the token that asks, since another one may see another account.
    """

    base_url: str
    id_conta: int
    token: str
    whole: bool = False
    """The user asked for the open walk; asking again continues it."""
    since: datetime | None = None
    began: datetime | None = None
    newest: datetime | None = None
    list: str = "pessoas"
    place: Place | None = None
    made_at: int = 0
    version: int = 0

    def restarted(self, *, whole: bool) -> "State":
        """Give the state with which the same mirror starts."""
        return State(base_url=self.base_url, id_conta=self.id_conta, token=self.token, whole=whole)

    def matches(self, current: StoreVersion) -> bool:
        """Tell whether the store still has all that was written: it was neither replaced nor restored from a backup."""
        return self.made_at == current.made_at and self.version <= current.version


@dataclass(slots=True)
class Summary:
    """What became of the reports that came, how many names were kept, and how many reports the service has."""

    counts: Counts = field(default_factory=Counts)
    names: int = 0
    rejected: int = 0
    unnamed: int = 0
    total: int = 0

    @property
    def stored(self) -> int:
        """How many of the reports the store has."""
        return sum(self.counts)

    def __str__(self) -> str:
        return f"{self.counts}, {self.rejected} rejected"


OnProgress = Callable[[str, int, int], None]
"""Called with the list's name, how many of its items have come, and the total."""


class Mirror:
    """The mirror of one service in one account. A run does not ask again for what an earlier one has written."""

    def __init__(
        self,
        client: Laudo,
        ingest: Ingest,
        state: State,
        *,
        names: Names,
        save: Callable[[State], None],
        notify: Callable[[str], None],
    ) -> None:
        """`save` keeps the state for the next run; `notify` is called with what the user should know, in one line."""
        self._client = client
        self._ingest = ingest
        self._state = state
        self._names = names
        self._save = save
        self._notify = notify
        self._rejected: set[str] = set()
        self._unnamed: set[str] = set()
        self.summary = Summary()
        self.resumes = state.place is not None or state.list == "relatorios"
        """Whether an earlier run was interrupted, and this one goes on from there."""

    def run(self, on_progress: OnProgress) -> None:
        """Bring the account up to date; raises LaudoError or StoreError, and can then be run again.

        The first run walks everything, and then what has changed during that walk.
        """
        if self._state.since is None:
            self._copy_all(on_progress)
        counted = self.summary.counts
        try:
            if self._state.since is not None:
                self._copy_changes(self._state.since, on_progress)
            self._ingest.erase_old_names()
        finally:
            if sum(counted):  # Then the newest reports came twice, the second time mostly unchanged.
                self.summary.counts = self.summary.counts._replace(unchanged=counted.unchanged, stale=counted.stale)
            self._names.delete()

    def _copy_all(self, on_progress: OnProgress) -> None:
        state = self._state
        state.began = state.began or datetime.now(UTC)
        if state.list == "pessoas":
            for people in _tracked("pessoas", self._resume(self._client.pessoas_in_batches), on_progress):
                self._names.add(people.itens)
                self._save_place("pessoas", people.place)
                self.summary.names += len(people.itens)
            self._save_place("relatorios", None)
        for batch in _tracked("relatorios", self._resume(self._client.relatorios_in_batches), on_progress):
            self._write(batch)
            state.newest = max(filter(None, (state.newest, *_instants(batch))), default=None)
            self._save_place("relatorios", batch.place)
        state.since = state.newest and min(state.newest, state.began)
        state.began = state.newest = None
        state.whole = False
        self._save_place("pessoas", None)

    def _resume(self, walk: Callable[..., Iterator[Batch[I]]]) -> Iterator[Batch[I]]:
        """Walk from the saved place, or from the start if the service refuses that: its key or limit has changed."""
        place, started = self._state.place, False
        try:
            for batch in walk(start=place):
                started = True
                yield batch
        except BadRequestError:
            if place is None or started:
                raise
            self._notify(f"the service no longer knows the place in {self._state.list}: they are read from the start")
            yield from walk()

    def _copy_changes(self, known: datetime, on_progress: OnProgress) -> None:
        """Walk both lists, the newest items first, until they are already known."""
        began = datetime.now(UTC)
        newest = min(known, began)
        since = max(newest, _EARLIEST + MARGIN) - MARGIN
        renamed: dict[str, str] = {}
        for people in _tracked("pessoas", self._client.pessoas_in_batches(), on_progress):
            self._names.add(people.itens)
            renamed |= self._renamed({item.cpf: item.nome for item in people.itens if item.atualizado_em >= since})
            if any(item.atualizado_em < since for item in people.itens):
                break
        for batch in _tracked("relatorios", self._client.relatorios_in_batches(), on_progress):
            self._write(batch, since)
            newest = max((newest, *_instants(batch)))
            if any(item.atualizado_em < since for item in batch.itens):
                break
        for cpf in self._renamed(renamed):
            self._write_anew(cpf)
        self._state.since = min(newest, began)
        self._save_state()

    def _renamed(self, listed: Mapping[str, str]) -> dict[str, str]:
        """Give those of the listed names, by CPF, that are other than the store's."""
        known = self._ingest.nomes(list(listed))
        return {cpf: nome for cpf, nome in listed.items() if nome and known.get(cpf, nome) != nome}

    def _write_anew(self, cpf: str) -> None:
        """Write a person's newest reports with the new name: it came with a report that this token does not see."""
        listed = self._client.relatorios(numero_documento=cpf)
        itens = tuple(item for item in listed.itens if item.numero_documento == cpf)
        self._write(Batch(itens, self.summary.total, None))

    def _save_place(self, name: str, place: Place | None) -> None:
        self._state.list, self._state.place = name, place
        self._save_state()

    def _save_state(self) -> None:
        self._state.made_at, self._state.version = self._ingest.note_pull()
        self._save(self._state)

    def _write(self, batch: Batch[Listed], since: datetime | None = None) -> None:
        """Write the reports that are not older than `since`."""
        self.summary.total = batch.total
        recent = [item for item in batch.itens if since is None or item.atualizado_em >= since]
        # A report may be here with a name that was requested before this report changed it: so it is written again.
        counts = self._ingest.write(list(self._accepted(recent)), equal_wins=True)
        self.summary.counts = self.summary.counts.plus(counts)

    def _accepted(self, itens: Sequence[Listed]) -> Iterator[Relatorio]:
        names = self._names.find({item.numero_documento for item in itens if _is_person(item)})
        for item in itens:
            cpf, name = item.numero_documento, ""
            if _is_person(item):
                name = names[cpf] = names.get(cpf) or self._ask_name(cpf)
                self.summary.unnamed += name == UNNAMED and _is_first(self._unnamed, item.numero)
            draft = msgspec.convert({**item.to_wire(), "nome_pessoa": name}, Draft)
            try:
                yield fields.accept(draft, verify=False)
            except FaultError as fault:
                self._reject(item.numero, fault)

    def _reject(self, numero: str, fault: FaultError) -> None:
        """Count and name a rejected report once in a run; its numero is shown only if valid: it could hold anything."""
        if not _is_first(self._rejected, numero):
            return
        self.summary.rejected += 1
        prefix = ""
        with suppress(ValueError):
            prefix = f"{UUID.parse(numero)}: "
        self._notify(f"rejected: {prefix}{fault}")

    def _ask_name(self, cpf: str) -> str:
        """Ask for one person who was not in the list when it was walked; if that fails, the name known before stays.

        A service that does not know the filter answers with other persons.
        """
        with suppress(ParameterError):  # It is not in the form of a CPF.
            self._names.add(self._client.pessoas(cpf=cpf).itens)
        return self._names.find({cpf}).get(cpf) or self._ingest.nomes([cpf]).get(cpf) or UNNAMED


def _tracked(name: str, batches: Iterator[Batch[I]], on_progress: OnProgress) -> Iterator[Batch[I]]:
    seen = 0
    for batch in batches:
        yield batch
        seen += len(batch.itens)
        on_progress(name, seen, batch.total)


def _is_first(known: set[str], numero: str) -> bool:
    """Tell whether a report is not yet among those that are `known`, and remember it."""
    if numero in known:
        return False
    if len(known) < _MAX_REMEMBERED:
        known.add(numero)
    return True


def _is_person(item: Listed) -> bool:
    """Tell whether a report is about a person, in whatever case the service writes that."""
    return fold(item.tipo_pessoa) == fold(PESSOA)


def _instants(batch: Batch[Listed]) -> list[datetime]:
    return [item.atualizado_em for item in batch.itens]
