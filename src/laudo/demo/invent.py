"""Invents reports: the same seed gives the same data, as fast as it can be written and in constant memory.

A person or company is computed from its number and not stored. Primes map numbers one to one to documents and, well
mixed, to names. So ten million reports need no more memory than ten.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeVar

from laudo.core import disclosure
from laudo.core.documents import cnpj_digits, cpf_digits
from laudo.core.values import DAY, parse_instant
from laudo.demo import names
from laudo.server.ingest.fields import Relatorio, Resultado, TipoPessoa

T = TypeVar("T")

NOW_MS: Final = 1_790_812_800_000  # 2026-10-01T00:00:00Z: fixed, or the same seed would not give the same data

SPAN_MS: Final = 1095 * DAY
"""The time from the first report to the last."""
EARLIEST_MS: Final = parse_instant("0001-01-01T00:00:00Z") + SPAN_MS
"""The earliest time for the last report: no report may be older than the calendar."""
_HOUR_MS: Final = 3_600_000
_WEEK_MS: Final = 7 * DAY
_FIRST_MONDAY_MS: Final = 4 * DAY  # 1970-01-01 was a Thursday
_BLOCK: Final = 1024  # reports for which random bytes are drawn at once
_CPF_PRIME: Final = 999_999_937  # the largest prime below 10**9
_CNPJ_PRIME: Final = 99_999_989  # the largest below 10**8
_NAME_PRIME: Final = 1_073_741_789  # the largest below 2**30
_REPDIGIT: Final = 111_111_111  # CPFs of one repeated digit are refused everywhere
_SETTLED: Final = 0.8  # the share of reports that are old enough to be mostly concluded


@disclosure.only("tipo_pessoa")
class Subject(NamedTuple):
    tipo_pessoa: TipoPessoa
    numero_documento: str
    nome_pessoa: str


class Outcome(NamedTuple):
    nome: str
    status: str
    resultado: Resultado | None
    pendente_validacao_manual: bool
    mensagem: str


def relatorios(
    count: int,
    *,
    seed: int = 1,
    persons: int | None = None,
    until_ms: int = NOW_MS,
) -> Iterator[Relatorio]:
    """Reports in ascending `atualizado_em`, the last shortly before `until_ms`; a fifth are about companies.

    `persons` is how many distinct CPFs occur: at most 0.8 × count (more is taken for that), by default 0.3 × count. A
    few return often, most of them once or twice.
    """
    rng = random.Random(seed)
    subject = _subjects(rng)
    outcomes = {tipo: _outcomes(tipo) for tipo in ("Pessoa", "Empresa")}
    instants = _instants(rng, count, until_ms - SPAN_MS, until_ms)
    numbers = _numbers(rng, count, persons)
    uuids = _uuids(rng)
    settled = int(count * _SETTLED)
    getrandbits = rng.getrandbits
    for index, (atualizado_em, number, numero) in enumerate(zip(instants, numbers, uuids, strict=False)):
        tipo_pessoa, numero_documento, nome_pessoa = subject(number)
        nome, status, resultado, pendente, mensagem = outcomes[tipo_pessoa][index >= settled][getrandbits(13)]
        yield Relatorio(
            numero=numero,
            status=status,
            tipo_pessoa=tipo_pessoa,
            nome=nome,
            atualizado_em=atualizado_em,
            resultado=resultado,
            mensagem=mensagem,
            pendente_validacao_manual=pendente,
            numero_documento=numero_documento,
            nome_pessoa=nome_pessoa,
        )


def _uuids(rng: random.Random) -> Iterator[str]:
    """UUIDs of version 4, without end."""
    variants = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
    while True:
        digits = rng.randbytes(16 * _BLOCK).hex()
        for start in range(0, 32 * _BLOCK, 32):
            d = digits[start : start + 32]
            yield f"{d[:8]}-{d[8:12]}-4{d[13:16]}-{variants[d[16]]}{d[17:20]}-{d[20:]}"


def _numbers(rng: random.Random, count: int, persons: int | None) -> Iterator[int]:
    """The number of the subject that each report is about: a new one whenever it is due, otherwise one seen before."""
    subjects = max(1, count * 3 // 8 if persons is None else min(count, persons * 5 // 4))
    uniform = rng.random
    seen = 0
    for index in range(count):
        if index * subjects >= seen * count:
            yield seen
            seen += 1
        else:
            yield int(seen * uniform() ** 1.5)


def _instants(rng: random.Random, count: int, start_ms: int, end_ms: int) -> Iterator[int]:
    """Ascending instants from start to end, dense in office hours and thin at night and at weekends."""
    bounds = _week()
    steps = len(bounds) - 1

    def work(ms: int) -> float:
        week, rest = divmod(ms - _FIRST_MONDAY_MS, _WEEK_MS)
        step = min(bisect_right(bounds, rest) - 1, steps - 1)
        return week * steps + step + (rest - bounds[step]) / (bounds[step + 1] - bounds[step])

    first, last = work(start_ms), work(end_ms)
    pace = (last - first) / max(1, count)
    weeks = [(low, high - low) for low, high in pairwise(bounds)]
    uniform = rng.random
    for index in range(count):
        done = first + (index + uniform()) * pace
        step = int(done)
        low, width = weeks[step % steps]
        yield _FIRST_MONDAY_MS + step // steps * _WEEK_MS + low + int((done - step) * width)


def _week() -> list[int]:
    """The week cut into parts with equal amounts of work, in ms from Monday 0 h: 1,025 bounds."""
    hours = [day * hour for day in names.DAYS for hour in names.HOURS]
    done = [0, *accumulate(hours)]
    bounds = []
    for step in range(1025):
        work = step * done[-1] / 1024
        hour = min(bisect_right(done, work) - 1, len(hours) - 1)
        bounds.append(round((hour + (work - done[hour]) / hours[hour]) * _HOUR_MS))
    return bounds


def _subjects(rng: random.Random) -> Callable[[int], Subject]:
    """Number -> person or, for every fifth, company; documents are distinct up to 10**8 numbers."""
    person, company = _persons(rng), _companies(rng)

    @lru_cache(maxsize=65_536)
    def subject(number: int) -> Subject:
        group, place = divmod(number, 5)
        return company(group) if place == 3 else person(number)  # noqa: PLR2004

    return subject


def _persons(rng: random.Random) -> Callable[[int], Subject]:
    first = _table(_words(names.FIRST), 1024)
    surnames = [(f" {word}", weight) for word, weight in _words(names.SURNAMES)]
    last = _table(surnames, 1024)
    middle = _table([("", sum(weight for _, weight in surnames) * 2 // 3), *surnames], 1024)
    stride, offset = rng.randrange(10**8, _CPF_PRIME), rng.randrange(_CPF_PRIME)
    mix = rng.randrange(10**8, _NAME_PRIME)

    def person(number: int) -> Subject:
        base = (number * stride + offset) % _CPF_PRIME
        if base % _REPDIGIT == 0:
            base = _CPF_PRIME + base // _REPDIGIT
        nine = f"{base:09d}"
        mixed = (number + 1) * mix % _NAME_PRIME
        nome = first[mixed >> 20] + middle[mixed >> 10 & 1023] + last[mixed & 1023]
        return Subject("Pessoa", nine + cpf_digits(nine), nome)

    return person


def _companies(rng: random.Random) -> Callable[[int], Subject]:
    trades, brands = _table(_words(names.TRADES), 1024), _table(_words(names.BRANDS), 1024)
    forms = _table(_words(names.FORMS), 1024)
    stride, offset = rng.randrange(10**7, _CNPJ_PRIME), rng.randrange(_CNPJ_PRIME)
    mix = rng.randrange(10**8, _NAME_PRIME)
    letters = ["".join(chr(65 + place * 17 // 26**power % 26) for power in range(3)) for place in range(1000)]

    def company(number: int) -> Subject:
        root = f"{(number * stride + offset) % _CNPJ_PRIME:08d}"
        if number % 4 == 0:
            root = root[:2] + letters[int(root[2:5])] + root[5:]
        twelve = root + "0001"
        mixed = (number + 1) * mix % _NAME_PRIME
        nome = f"{trades[mixed >> 20]} {brands[mixed >> 10 & 1023]} {forms[mixed & 1023]}"
        return Subject("Empresa", twelve + cnpj_digits(twelve), nome)

    return company


def _outcomes(tipo_pessoa: TipoPessoa) -> tuple[list[Outcome], list[Outcome]]:
    """8,192 outcomes of older reports and as many of the newest, each as often as it is common."""
    matrices = list(_words(names.MATRICES_PESSOA if tipo_pessoa == "Pessoa" else names.MATRICES_EMPRESA))
    older: list[tuple[Outcome, int]] = []
    newest: list[tuple[Outcome, int]] = []
    for nome, share in matrices:
        for status, resultado, pendente, mensagem, weight_older, weight_newest in names.OUTCOMES:
            outcome = Outcome(nome, status, resultado, pendente, mensagem)
            older.append((outcome, share * weight_older))
            newest.append((outcome, share * weight_newest))
    return _table(older, 8192), _table(newest, 8192)


def _words(text: str) -> Iterator[tuple[str, int]]:
    """The entries of a list of names: words, a blank and a weight, separated by bars and line ends."""
    for entry in text.strip().replace("\n", "|").split("|"):
        word, _, weight = entry.rpartition(" ")
        yield word, int(weight)


def _table(weighted: Iterable[tuple[T, int]], size: int) -> list[T]:
    """`size` entries shared out by weight, so that one random index is one weighted choice."""
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    table: list[T] = []
    reached = 0
    for value, weight in pairs:
        reached += weight
        table.extend([value] * (reached * size // total - len(table)))
    return table
