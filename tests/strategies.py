"""Generated stores and queries. Values are few, so that there are many ties, overlaps and near misses."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st

from factories import NOON, cnpj, cpf, numero, relatorio
from laudo.server.ingest.records import Relatorio

# U+FF5E sorts before U+1D4B3 by code point, but after it by UTF-16 unit. One é is one code point, the other is two.
MATRIZES: Final = (
    "consultaPessoaDefault",
    "Consulta",
    "consulta",
    "ção",
    "cao",
    "～",
    "𝒳",
    'a"b\\c',
    "é",
    "e\u0301",
    "🙂 x",
)
NOMES: Final = (
    "Maria da Silva",
    "MARIA DA SILVA",
    "María dã Sílva",
    "Mari\u0301a  da-Silva",
    "Mário Silva",
    "Silva, Maria",
    "Marina Da Silveira",
    "Ｍａｒｉａ",
    "𝐌aria 𝒳",
    "Straße",
    "STRASSE",
    "İpek Iñes",
    "D'Ávila",
    "Davila",
    "João 2º",
    "🙂",
    "🙂 Zoë",
    "Ωmega ΟΔΥΣΣΕΥΣ",
    "㌖" * 200,
)
MENSAGENS: Final = ("", "Válido.", "válido.", "Valido", "～", "𝒳", '"\\/<&>', "Pendente de validação", "🙂")
INSTANTES: Final = (0, NOON - 1, NOON, NOON + 1, NOON + 999, 4_102_444_800_000, 253_402_300_799_999)
STATUS: Final = ("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE")
RESULTADOS: Final = (None, "VALID", "INVALID")
CPFS: Final = tuple(cpf(number) for number in (123456789, 123456780, 129999999, 700000001, 700000002, 1, 999999998))
CNPJS: Final = (cnpj(1), cnpj(999999999999), "12ABC34501DE35")
NUMEROS: Final = tuple(numero(number) for number in (*range(24), *range(0xABCDEF00, 0xABCDEF10)))
MOST_REPORTS: Final = 60
SEEDS: Final = st.integers(0, (1 << 64) - 1)


_THIRDS: Final = range(NOON, NOON + 7 * 86_400_000, 86_400_000 // 3)


def many(count: int, *, seed: int = 1, instants: Sequence[int] = _THIRDS) -> list[Relatorio]:
    """Make reports of people and companies with few distinct values; about one, two or ten of them share a CPF."""
    seeded = random.Random(seed)
    return [any_relatorio(seeded, number, instants=instants) for number in range(count)]


def any_relatorio(seeded: random.Random, number: int, *, instants: Sequence[int] = INSTANTES) -> Relatorio:
    """Make a random report whose numero comes from `number`."""
    is_pessoa = seeded.random() < 0.8
    people = (cpf(number), cpf(number // 2), cpf(number // 10), CPFS[number % len(CPFS)])
    return relatorio(
        number,
        status=seeded.choice(STATUS),
        tipo_pessoa="Pessoa" if is_pessoa else "Empresa",
        nome=seeded.choice(MATRIZES),
        atualizado_em=seeded.choice(instants),
        resultado=seeded.choice(RESULTADOS),
        mensagem=seeded.choice(MENSAGENS),
        pendente_validacao_manual=seeded.random() < 0.5,
        numero_documento=seeded.choice(people if is_pessoa else CNPJS),
        nome_pessoa=seeded.choice(NOMES if is_pessoa else ("", "Acme Ltda.")),
    )


@dataclass(frozen=True, slots=True)
class History:
    """What is written to a store: the number of accounts of each organization, and batches, each for one account."""

    organizations: tuple[int, ...]
    batches: tuple[tuple[int, tuple[Relatorio, ...]], ...]

    def outcome(self) -> list[tuple[int, Relatorio]]:
        """Give the `(account, report)` pairs that must be stored at the end: the newest version of each numero."""
        newest: dict[tuple[int, str], Relatorio] = {}
        for account, batch in self.batches:
            for report in batch:
                known = newest.setdefault((account, report.numero), report)
                if known.atualizado_em < report.atualizado_em:
                    newest[account, report.numero] = report
        return [(account, relatorio) for (account, _), relatorio in newest.items()]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Give up to 60 reports in one to four accounts, written in any order, some of them several times.

    Only the shape and a seed are drawn: drawing each field would take longer than writing and querying the reports.
    """
    organizations = draw(st.sampled_from([(1,), (2,), (1, 1), (2, 1), (3, 1), (2, 2)]))
    keys = list(product(range(sum(organizations)), NUMEROS))
    size, together = draw(st.integers(0, min(MOST_REPORTS, len(keys)))), draw(st.sampled_from([1, 7, 20, 1000]))
    seeded = random.Random(draw(SEEDS))
    records = [(account, version) for account, numero in seeded.sample(keys, size) for version in _any(seeded, numero)]
    records += seeded.choices(records, k=seeded.randrange(6)) if records else []
    seeded.shuffle(records)
    return History(organizations, _batches(records, together))


def _batches(records: Sequence[tuple[int, Relatorio]], size: int) -> tuple[tuple[int, tuple[Relatorio, ...]], ...]:
    """Split the records into slices, and each slice by account."""
    cuts = [*range(0, len(records), size), len(records)]
    parts = [records[start:end] for start, end in pairwise(cuts)]
    return tuple(
        (account, tuple(relatorio for owner, relatorio in part if owner == account))
        for part in parts
        for account in sorted({account for account, _ in part})
    )


def _any(seeded: random.Random, numero: str) -> list[Relatorio]:
    """Make the versions of one report. Their instants differ, because the order of writing must not matter."""
    return [_version(seeded, numero, instant) for instant in seeded.sample(INSTANTES, seeded.randint(1, 3))]


def _version(seeded: random.Random, numero: str, instant: int) -> Relatorio:
    is_pessoa = seeded.random() < 0.75
    return Relatorio(
        numero=numero,
        status=seeded.choice(STATUS),
        tipo_pessoa="Pessoa" if is_pessoa else "Empresa",
        nome=seeded.choice(MATRIZES),
        atualizado_em=instant,
        resultado=seeded.choice(RESULTADOS),
        mensagem=seeded.choice(MENSAGENS),
        pendente_validacao_manual=seeded.random() < 0.5,
        numero_documento=seeded.choice(CPFS if is_pessoa else CNPJS),
        nome_pessoa=seeded.choice(NOMES if is_pessoa else ("", "Acme Ltda.")),
    )


# Queries, with values as clients spell them.

Values = dict[str, tuple[str, ...]]

DATES: Final[Values] = {
    "atualizado_em_de": (
        *("1970-01-01", "2026-01-31", "2026-02-01", "2026-01-31T12:00:00Z", "2026-01-31T09:00:00.001-03:00"),
        *("2099-12-31T23:59:59.999Z", "9999-12-31", "0001-01-01", "2026-01-31T12:00:00.000000001Z"),
    ),
    "atualizado_em_ate": (
        *("1969-12-31", "1970-01-01", "2026-01-30", "2026-01-31", "2026-01-31T12:00:00.000Z", "9999-12-31"),
        *("2026-01-31T17:30:00.001+05:30", "9999-12-31T23:59:59.999Z", "2026-01-31T12:00:00.0000001Z"),
    ),
}
RELATORIO_VALUES: Final[Values] = {
    "numero_documento": (*CPFS, *CNPJS, "12abc34501de35", "00000000000"),
    "tipo_pessoa": ("PESSOA", "Pessoa", "empresa", "EMPRESA", "Pessôa"),
    "nome": (*MATRIZES, "outra"),
    "numero": (*NUMEROS[:6], NUMEROS[-1].upper(), numero(5000)),
    "resultado": ("VALID", "valid", "INVALID"),
    "status": (*STATUS, "em análise", "Concluído", "pre-processando"),
    "pendente_validacao_manual": ("true", "false", "TRUE"),
    **DATES,
}
PESSOA_VALUES: Final[Values] = {
    "cpf": (*CPFS, "00000000000"),
    "nome": (
        *("mar", "silva", "mar sil", "SILVA mar", "da d", "maria maria", "strass", "ß", "ipek", "d avila", "d'a"),
        *("s si silva da mar", "m d s", "maria da silva", "a b c d e"),
        *("joao 2", "zoe", "𝒳", "x", "ωmega", "οδυσσευσ", "ilva", "aria", "mar%", "a_"),
    ),
    "busca": (
        "",
        "1",
        "12",
        "123456789",
        CPFS[0],
        "7",
        "㌖" * 83,
        "70000000",
        "00",
        "mar",
        "Sílva",
        "1 2",
        "²",
        "z",
        "2",
    ),
    **DATES,
}
RELATORIO_SORTS: Final = tuple(
    sign + field
    for field in (
        *("numero", "status", "tipo_pessoa", "nome", "atualizado_em", "resultado", "mensagem"),
        *("pendente_validacao_manual", "numero_documento"),
    )
    for sign in ("", "-")
)
PESSOA_SORTS: Final = tuple(sign + field for field in ("cpf", "nome", "atualizado_em") for sign in ("", "-"))
PAGES: Final = ("1", "1", "1", "2", "3", "999999999")
ROWS: Final = ("25", "25", "50", "75", "100", "1000")
REFUSED: Final = (
    *(("page", text) for text in ("0", "01", "1.0", "１", "", "-1", "1000000000")),
    *(("rows", text) for text in ("26", "1025", "0", "-25", "25 ", "")),
    *(("sort", text) for text in ("", "--numero", "nenhum", "Nome", "-")),
    *(("numero_documento", text) for text in ("529.982.247-25", "", "5299822472", "12ABC34501DE3A")),
    *(("nome", ""), ("nome", "🙂"), ("busca", "🙂"), ("busca", " "), ("cpf", "529.982.247-25"), ("cpf", "")),
    *(("status", "CONCLUIDOS"), ("tipo_pessoa", "PF"), ("resultado", "null"), ("numero", "123")),
    *(("pendente_validacao_manual", "1"), ("limit", ""), ("nome", "a\x00"), ("busca", "x" * 201), ("busca", "㌖" * 84)),
    *(("atualizado_em_de", text) for text in ("", "2026-02-30", "31/01/2026", "2026-01-31T12:00:00", "hoje")),
    *(("atualizado_em_ate", text) for text in ("", "2026-13-01", "0000-01-01", "2026", "0001-01-01T00:00:00+14:00")),
    *(("cursor", "x"), ("cursor", ""), ("Page", "1")),
)


def any_query(seeded: random.Random, values: Values, sorts: tuple[str, ...], *, refused: float = 0.03) -> str:
    """Make one query string; a share `refused` of them has one more pair, which is invalid or may repeat a name."""
    filters = seeded.sample(sorted(values), seeded.choice((0, 0, 1, 1, 1, 2, 3)))
    pairs = [(name, seeded.choice(values[name])) for name in filters]
    others = (("sort", sorts), ("page", PAGES), ("rows", ROWS), ("limit", ("25", "x")))
    pairs += [(name, seeded.choice(choices)) for name, choices in others if seeded.random() < 0.5]
    if seeded.random() < refused:
        pairs.append(seeded.choice([*REFUSED, *pairs]))
    encode = seeded.choice(ENCODINGS)
    return "&".join(f"{name}={encode(value)}" for name, value in seeded.sample(pairs, len(pairs)))


def _raw(text: str) -> str:
    """Encode only the characters that have a meaning in a query string."""
    return "".join(quote(c, safe="") if c in "&%+#;= \x00" else c for c in text)


ENCODINGS: Final[tuple[Callable[[str], str], ...]] = (quote, quote_plus, _raw)
