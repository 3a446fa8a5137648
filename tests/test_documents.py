import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stdnum.br import cnpj, cpf

from laudo.core import documents

DIGITS = string.digits
ALPHANUMERIC = string.digits + string.ascii_uppercase
BASES_OF_CPF = st.text(DIGITS, min_size=9, max_size=9)
BASES_OF_CNPJ = st.text(DIGITS, min_size=12, max_size=12) | st.text(ALPHANUMERIC, min_size=12, max_size=12)
PAIRS = st.text(DIGITS, min_size=2, max_size=2)


@given(BASES_OF_CPF)
@example("182182182")  # Its weighted sums have the largest remainders.
def test_cpf_check_digits_equal_those_of_stdnum(base: str) -> None:
    text = base + documents.cpf_digits(base)
    assert documents.cpf_digits(base) == cpf._calc_check_digits(base)
    assert documents.is_cpf(text) is (len(set(text)) > 1)


@given(BASES_OF_CPF, PAIRS)
def test_cpf_validation_agrees_with_stdnum(base: str, digits: str) -> None:
    text = base + digits
    assert documents.is_cpf(text) is (cpf.is_valid(text) and len(set(text)) > 1)


@given(BASES_OF_CNPJ)
def test_cnpj_check_digits_equal_those_of_stdnum(base: str) -> None:
    text = base + documents.cnpj_digits(base)
    assert documents.cnpj_digits(base) == cnpj.calc_check_digits(base)
    assert documents.is_cnpj(text) is (text != "0" * 14)


@given(BASES_OF_CNPJ, PAIRS)
def test_cnpj_validation_agrees_with_stdnum(base: str, digits: str) -> None:
    text = base + digits
    assert documents.is_cnpj(text) is cnpj.is_valid(text)


@given(st.text(max_size=16) | st.text("0123456789.-/ ٣Aaßı", min_size=9, max_size=14))
def test_validation_of_arbitrary_text_never_raises(text: str) -> None:
    cpf_like = len(text) == 11 and text.isascii() and text.isdigit()
    assert documents.is_cpf(text) is (cpf_like and cpf.is_valid(text) and len(set(text)) > 1)
    assert documents.is_cnpj(text) is (
        len(text) == 14 and text.isascii() and cnpj.compact(text) == text and cnpj.is_valid(text)
    )


@pytest.mark.parametrize("digit", DIGITS)
def test_a_repeated_digit_is_no_cpf(digit: str) -> None:
    assert not documents.is_cpf(digit * 11)


@pytest.mark.parametrize("text", ["11222333000181", "12ABC34501DE35"])
def test_published_example_cnpjs_are_valid(text: str) -> None:
    assert documents.is_cnpj(text)


@pytest.mark.parametrize(
    "text", ["0" * 14, "12abc34501de35", "12.ABC.345/01DE-35", "12ABC34501DE3A", "11222333000181\n"]
)
def test_zeros_lowercase_letters_and_masks_are_no_cnpj(text: str) -> None:
    assert not documents.is_cnpj(text)


@pytest.mark.parametrize("text", ["52998224725", "12345678909"])
def test_published_example_cpfs_are_valid(text: str) -> None:
    assert documents.is_cpf(text)


@pytest.mark.parametrize("text", ["", "5299822472", "529982247250", "529.982.247-25", "5299822472٥", "52998224725\n"])
def test_other_lengths_masks_and_non_ascii_digits_are_no_cpf(text: str) -> None:
    assert not documents.is_cpf(text)


@pytest.mark.parametrize("base", ["", "12345678", "1234567890", "12345678A", "12345678٣"])
def test_the_base_of_a_cpf_must_be_nine_digits(base: str) -> None:
    with pytest.raises(ValueError, match="nine digits"):
        documents.cpf_digits(base)


@pytest.mark.parametrize("base", ["", "12345678901", "1234567890123", "12abc34501de", "12345678901٣"])
def test_the_base_of_a_cnpj_must_be_twelve_digits_or_capital_letters(base: str) -> None:
    with pytest.raises(ValueError, match="twelve digits or capital letters"):
        documents.cnpj_digits(base)
