"""Invents what happens while somebody looks: reports that arrive and change, as in a running service."""

import random
from bisect import insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

import msgspec

from laudo.demo import names
from laudo.demo.invent import relatorios
from laudo.server.ingest.fields import Relatorio

Change = tuple[int, Relatorio]
"""The number of a report, from 0, and its state from its `atualizado_em` on."""


def changes(seed: int, start_ms: int) -> Iterator[Change]:
    """What happens from an instant on, in order and without end: a report arrives every two seconds.

    Each is concluded within 40 seconds; some wait for an analyst or a document first.
    """
    rng = random.Random(seed)
    upcoming: list[tuple[int, Change]] = []
    for number, relatorio in enumerate(relatorios(_ENDLESS, seed=seed, persons=_ENDLESS)):
        created_ms = start_ms + number * _INTERVAL_MS
        while upcoming and upcoming[0][0] < created_ms:
            yield upcoming.pop(0)[1]
        for state in _states(rng, relatorio, created_ms):
            insort(upcoming, (state.atualizado_em, (number, state)), key=itemgetter(0))


def _states(rng: random.Random, relatorio: Relatorio, created_ms: int) -> Iterator[Relatorio]:
    """The states of a report that is created at an instant."""
    at_ms = created_ms
    for status in rng.choices(*_COURSES)[0]:
        _, resultado, pendente, mensagem = rng.choices(*_OUTCOMES[status])[0]
        yield msgspec.structs.replace(
            relatorio,
            status=status,
            atualizado_em=at_ms,
            resultado=resultado,
            mensagem=mensagem,
            pendente_validacao_manual=pendente,
        )
        at_ms += rng.randrange(*_STAY_MS)


_ENDLESS: Final = 10**12
_INTERVAL_MS: Final = 2000
_STAY_MS: Final = (2000, 10_000)
"""How long a report stays in one state."""
_COURSES: Final = (
    (
        ("PRE-PROCESSANDO", "PROCESSANDO", "CONCLUIDO"),
        ("PRE-PROCESSANDO", "PROCESSANDO", "EM ANALISE", "CONCLUIDO"),
        ("PRE-PROCESSANDO", "PROCESSANDO", "PENDENTE", "PROCESSANDO", "CONCLUIDO"),
    ),
    (6, 3, 1),
)
"""The statuses that a report goes through, and how common each such course is."""
_OUTCOMES: Final = {
    status: (
        [outcome[:4] for outcome in names.OUTCOMES if outcome[0] == status],
        [outcome[4] for outcome in names.OUTCOMES if outcome[0] == status],
    )
    for status in {outcome[0] for outcome in names.OUTCOMES}
}
"""The outcomes that have a status, and how common each of them is."""
