// CPF, CNPJ and UUID: recognizing, writing and masking them. Pure.

/** @param {number[]} digits @param {number[]} weights */
function check(digits, weights) {
  const rest = digits.reduce((sum, digit, index) => sum + digit * weights[index], 0) % 11;
  return rest < 2 ? 0 : 11 - rest;
}

const CPF_WEIGHTS = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2];
const CNPJ_WEIGHTS = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];

/** Whether the check digits of a CPF agree. @param {string} text eleven digits */
export function isCpf(text) {
  if (!/^\d{11}$/.test(text) || /^(\d)\1{10}$/.test(text)) return false;
  const digits = [...text].map(Number);
  return digits[9] === check(digits.slice(0, 9), CPF_WEIGHTS.slice(1)) && digits[10] === check(digits.slice(0, 10), CPF_WEIGHTS);
}

/** Whether the check digits of a CNPJ agree; letters count as their code less 48. @param {string} text */
export function isCnpj(text) {
  if (!/^[0-9A-Z]{12}\d{2}$/.test(text) || /^0+$/.test(text)) return false;
  const values = [...text].map((character) => character.charCodeAt(0) - 48);
  return values[12] === check(values.slice(0, 12), CNPJ_WEIGHTS.slice(1)) && values[13] === check(values.slice(0, 13), CNPJ_WEIGHTS);
}

/** Write a document with its punctuation. @param {string} text */
export function punctuate(text) {
  if (text.length === 11) return text.replace(/^(.{3})(.{3})(.{3})(.{2})$/, "$1.$2.$3-$4");
  return text.replace(/^(.{2})(.{3})(.{3})(.{4})(.{2})$/, "$1.$2.$3/$4-$5");
}

/** Write a CPF so that it says little; the document of a company is public and stays whole. @param {string} text */
export function mask(text) {
  return /^\d{11}$/.test(text) ? `***.${text.slice(3, 6)}.${text.slice(6, 9)}-**` : punctuate(text);
}

/** Whether a document is a person's. @param {string} text */
export function isPersonal(text) {
  return /^\d{11}$/.test(text);
}

/**
 * Understand what was pasted into the quick find.
 * @param {string} pasted
 * @returns {{kind: "cpf"|"cnpj"|"numero"|"nome"|"none", value: string, doubtful: boolean}} `doubtful`: wrong check digits
 */
export function recognize(pasted) {
  const text = pasted.trim();
  const hex = text.replace(/[{}\-\s]/g, "").toLowerCase();
  if (/^[0-9a-f]{32}$/.test(hex)) {
    return { kind: "numero", value: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"), doubtful: false };
  }
  const bare = text.replace(/[.\-/\s]/g, "").toUpperCase();
  if (/^\d{11}$/.test(bare)) return { kind: "cpf", value: bare, doubtful: !isCpf(bare) };
  if (/^[0-9A-Z]{12}\d{2}$/.test(bare) && /\d{2}/.test(bare.slice(0, 12))) return { kind: "cnpj", value: bare, doubtful: !isCnpj(bare) };
  return { kind: text ? "nome" : "none", value: text.slice(0, 200), doubtful: false };
}
