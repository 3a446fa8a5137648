// CPF, CNPJ and UUID: recognizing, writing and masking them. Pure.

/** @param {number[]} digits @param {number[]} weights */
function checkDigit(digits, weights) {
  const rest = digits.reduce((sum, digit, index) => sum + digit * weights[index], 0) % 11;
  return rest < 2 ? 0 : 11 - rest;
}

const CPF_WEIGHTS = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2];
const CNPJ_WEIGHTS = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];

/** Whether the check digits of a CPF agree. @param {string} text eleven digits */
export function isCpf(text) {
  if (!/^\d{11}$/.test(text) || /^(\d)\1{10}$/.test(text)) return false;
  const digits = [...text].map(Number);
  return digits[9] === checkDigit(digits.slice(0, 9), CPF_WEIGHTS.slice(1)) && digits[10] === checkDigit(digits.slice(0, 10), CPF_WEIGHTS);
}

/** Whether the check digits of a CNPJ agree; the value of a letter is its ASCII code minus 48. @param {string} text */
export function isCnpj(text) {
  if (!/^[0-9A-Z]{12}\d{2}$/.test(text) || /^0+$/.test(text)) return false;
  const values = [...text].map((character) => character.charCodeAt(0) - 48);
  return values[12] === checkDigit(values.slice(0, 12), CNPJ_WEIGHTS.slice(1)) && values[13] === checkDigit(values.slice(0, 13), CNPJ_WEIGHTS);
}

/** Restore the leading zeros that a spreadsheet dropped when it took a document for a number; "" if no zeros make its check digits agree.
 * @param {string} text */
export function withZeros(text) {
  const digits = text.replace(/[.\-/\s]/g, "");
  if (!/^\d{6,13}$/.test(digits) || isCpf(digits)) return "";
  return [digits.padStart(11, "0"), digits.padStart(14, "0")].find((padded) => isCpf(padded) || isCnpj(padded)) ?? "";
}

/** Write a document with its punctuation. @param {string} text */
export function punctuate(text) {
  if (text.length === 11) return text.replace(/^(.{3})(.{3})(.{3})(.{2})$/, "$1.$2.$3-$4");
  return text.replace(/^(.{2})(.{3})(.{3})(.{4})(.{2})$/, "$1.$2.$3/$4-$5");
}

/** Write a CPF with only its middle digits. A company's document is public and stays whole. @param {string} text */
export function mask(text) {
  return isPersonal(text) ? `***.${text.slice(3, 6)}.${text.slice(6, 9)}-**` : punctuate(text);
}

/** Whether a document is a person's. @param {string} text */
export function isPersonal(text) {
  return /^\d{11}$/.test(text);
}

/** Why a document is doubted, in words; "" when its check digits agree. @param {string} text */
export function doubt(text) {
  return !text || isCpf(text) || isCnpj(text) ? "" : "Os dígitos verificadores não conferem.";
}

/** Why a kind of input cannot be searched for, in words. @type {Record<string, string>} */
export const WRONG = {
  none: "Digite letras ou números para buscar.",
  several: "Há mais de um número: procure um de cada vez.",
  short: "Tem dígitos demais para um CPF e de menos para um CNPJ: confira o número.",
  masked: "Este CPF está mascarado: mostre-o por inteiro antes de copiá-lo.",
  part: "Isto parece o começo do número de um relatório: cole o número completo.",
};

/** Clean a text that was pasted from a document or a message: drop invisible characters and a label before a number, turn line breaks and
 * tabs into blanks, and any dash into a hyphen; "" if no letter or digit is left. @param {string} pasted */
export function clean(pasted) {
  const text = pasted.replace(/\p{Cf}/gu, "").replace(/[\p{Cc}\s]+/gu, " ").replace(/[\p{Pd}\u2212]/gu, "-").trim();
  // The n takes all dots that follow it: if either part could take them, the number of ways to try would grow exponentially.
  const bare = text.replace(/^(?:CPF|CNPJ)(?:[\s:.-]|n[.º°o]+(?![.º°o]))*(?=\d|$)/i, "");
  return /[\p{L}\p{N}]/u.test(bare) ? bare.slice(0, 200) : "";
}

/** A CPF as `mask` writes it. */
const MASKED = /\*{3}\.\d{3}\.\d{3}-\*{2}/;

/** What separates the numbers in a text: characters that no number contains. */
const SEPARATORS = /[^0-9a-z./-]+/i;

/**
 * Recognize what was pasted into the quick find: a number, even with other text around it, or a name.
 * @param {string} pasted
 * @returns {{kind: "cpf"|"cnpj"|"numero"|"nome"|"several"|"short"|"masked"|"part"|"none", value: string}}
 */
export function recognize(pasted) {
  const text = clean(pasted);
  // The number may follow a label, or the word "relatório", as in the title of a report.
  const single = recognizeNumber(text.replace(/^(?:[\p{L}\s./º°]+:|relatório )/iu, ""));
  const numbers = text.split(SEPARATORS).flatMap((part) => recognizeNumber(part) ?? []).filter(({ value }) => value);
  // Without letters, or after a label, all digits may be one number that has blanks in it. Otherwise look for the parts that are whole
  // numbers by themselves.
  if (single && (!numbers.length || (single.value && !/\p{L}/u.test(text)))) return single;
  if (numbers.length > 1) return { kind: "several", value: "" };
  if (!numbers.length && MASKED.test(text)) return { kind: "masked", value: "" };
  return numbers[0] ?? { kind: text ? "nome" : "none", value: text };
}

/** The number that a text is; null for any other text. @param {string} text @returns {ReturnType<typeof recognize>|null} */
function recognizeNumber(text) {
  const hex = text.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();
  if (/^[0-9a-f]{32}$/.test(hex)) return { kind: "numero", value: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5") };
  // Lists show the first eight hexadecimal digits of a numero. With both letters and digits, they cannot be a name.
  if (/^(?=.*\d)(?=.*[a-f])[0-9a-f]{8}$/.test(hex)) return { kind: "part", value: "" };
  // Programs that read a column of documents as floating-point numbers write ".0" after each.
  const bare = text.replace(/^(\d{9,14})\.0$/, "$1").replace(/[.:\-/\s]/g, "").toUpperCase();
  // Fewer than eleven digits may be the beginning of a CPF.
  if (/^\d{11,13}$/.test(bare) && withZeros(bare)) return { kind: "cnpj", value: withZeros(bare) };
  if (/^\d{11}$/.test(bare)) return { kind: "cpf", value: bare };
  if (/^\d{12,13}$/.test(bare)) return { kind: "short", value: "" };
  // Fourteen digits can only be a CNPJ. With letters it may be a name, unless the check digits agree.
  if (/^\d{14}$/.test(bare) || isCnpj(bare)) return { kind: "cnpj", value: bare };
  // Longer than any document: several cells or lines of a list.
  return /^\d{15,}$/.test(bare.replace(/[,;|]/g, "")) ? { kind: "several", value: "" } : null;
}
