"""The only place that knows the check digits of Brazilian documents: CPF of people, CNPJ of companies."""

import re
from collections.abc import Sequence
from itertools import product
from operator import mul
from typing import Final


def is_cpf(text: str) -> bool:
    """Tell whether a text is 11 ASCII digits with the right check digits, and not one digit repeated."""
    if len(text) != _CPF_LENGTH or text in _ONE_DIGIT_REPEATED:
        return False
    try:
        return _CHECK_DIGITS[_cpf_remainders(text)] == text[9:]
    except KeyError:
        return False


def is_cnpj(text: str) -> bool:
    """Tell whether a text is a CNPJ: 12 digits or capital letters, the right check digits, and not all zeros."""
    return _CNPJ(text) is not None and cnpj_digits(text[:12]) == text[12:] and text != _ALL_ZEROS


def cpf_digits(base9: str) -> str:
    """Give the two check digits of the first nine digits of a CPF; ValueError when they are not nine digits."""
    if len(base9) != _CPF_LENGTH - 2 or not (base9.isascii() and base9.isdigit()):
        raise ValueError("the base of a CPF is nine digits")
    return _CHECK_DIGITS[_cpf_remainders(base9)]


def cnpj_digits(base12: str) -> str:
    """Give the two check digits of the first twelve characters of a CNPJ.

    Since July 2026 they may be capital letters; a character counts as its ASCII code less 48. ValueError when they
    are not twelve digits or capital letters.
    """
    if not _CNPJ_BASE(base12):
        raise ValueError("the base of a CNPJ is twelve digits or capital letters")
    sums = sum(map(mul, _CNPJ_WEIGHTS, base12.encode())) - _CNPJ_EXCESS
    first = -(sums % _PACKED) % 11 % 10
    return f"{first}{-(sums // _PACKED + 2 * first) % 11 % 10}"


def _cpf_remainders(digits: str) -> int:
    return _HEAD[digits[:3]] + _MIDDLE[digits[3:6]] + _TAIL[digits[6:9]]


def _three_digits(first: Sequence[int], second: Sequence[int]) -> dict[str, int]:
    """Give, for each three digits, their two weighted sums modulo 11, packed as `first + 64 * second`."""
    return {
        "".join(map(str, digits)): sum(map(mul, digits, first)) % 11 + 64 * (sum(map(mul, digits, second)) % 11)
        for digits in product(range(10), repeat=3)
    }


def _check_digits(remainders: int) -> str:
    second, first = divmod(remainders, 64)
    digit = -first % 11 % 10
    return f"{digit}{-(second + 2 * digit) % 11 % 10}"


_CPF_LENGTH: Final = 11
_ONE_DIGIT_REPEATED: Final = frozenset(digit * _CPF_LENGTH for digit in "0123456789")
# Tables, because an import verifies tens of thousands of CPFs a second: three lookups instead of eighteen products,
# and a text that is not of digits is found by the lookup itself.
_HEAD: Final = _three_digits((10, 9, 8), (11, 10, 9))
_MIDDLE: Final = _three_digits((7, 6, 5), (8, 7, 6))
_TAIL: Final = _three_digits((4, 3, 2), (5, 4, 3))
_CHECK_DIGITS: Final = tuple(_check_digits(remainders) for remainders in range(64 * 31))

_CNPJ: Final = re.compile(r"[0-9A-Z]{12}[0-9]{2}").fullmatch
_CNPJ_BASE: Final = re.compile(r"[0-9A-Z]{12}").fullmatch
_ALL_ZEROS: Final = "0" * 14
_PACKED: Final = 1 << 16
_CNPJ_WEIGHTS: Final = tuple(
    first + _PACKED * second
    for first, second in zip((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3), strict=True)
)
_CNPJ_EXCESS: Final = ord("0") * sum(_CNPJ_WEIGHTS)
