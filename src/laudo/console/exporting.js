// Exports a list as CSV: walks it by cursor, reports its progress, and can be stopped.
import { Refusal } from "./api.js";
import { isPersonal, mask, punctuate } from "./documents.js";
import { stamp } from "./format.js";
import { withRetries } from "./retries.js";

/** One cell, quoted when needed. A "'" turns what a spreadsheet would run as a formula into text, also after any separator inside the cell:
 * which one begins a new cell depends on the spreadsheet's settings. @param {unknown} value */
export function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = text.replace(/(^|[,;\t\r\n])(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])/g, "$1'");
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param {unknown[]} values @param {string} [separator] */
export function line(values, separator = ",") {
  return `${values.map(cell).join(separator)}\r\n`;
}

/** The fields of each list's items, in order: an empty list still needs its header. @type {Record<string, string[]>} */
const FIELDS = {
  "/relatorios": ["numero", "status", "tipo_pessoa", "nome", "atualizado_em", "resultado", "mensagem", "pendente_validacao_manual", "numero_documento"],
  "/pessoas": ["cpf", "nome", "atualizado_em"],
};

const LINK_MISSING = "A resposta veio sem o cabeçalho Link, que indica a próxima página: um proxy pode tê-lo removido. Avise quem opera o serviço.";

/** @typedef {Record<string, (text: string) => string>} Writers how to write some fields, by name; the others are written as they are */

/** @param {Record<string, unknown>} item @param {string[]} fields @param {Writers} writers */
export function row(item, fields, writers) {
  return fields.map((name) => writers[name]?.(String(item[name])) ?? item[name]);
}

/** Whether the separator is the one that spreadsheets in Portuguese expect. They read bare digits as a number, without its leading zeros,
 * and the API's instants as text. @param {string} separator */
export const isForSpreadsheet = (separator) => separator === ";";

/** @param {{masked: boolean, separator: string}} how @returns {Writers} */
function writersFor({ masked, separator }) {
  const spreadsheet = isForSpreadsheet(separator);
  const unchanged = (/** @type {string} */ text) => text;
  const whole = spreadsheet ? punctuate : unchanged;
  const document_ = (/** @type {string} */ text) => (masked && isPersonal(text) ? mask : whole)(text);
  return { numero_documento: document_, cpf: document_, atualizado_em: spreadsheet ? stamp : unchanged };
}

/**
 * Walk a list to its end.
 * @param {import("./api.js").Api} api
 * @param {string} path
 * @param {Record<string, string>} parameters filters and order, without page and rows
 * @param {{rows: number, masked: boolean, separator: string, signal: AbortSignal, progress: (done: number, total: number) => void}} how
 * @returns {Promise<{parts: Blob[], count: number}>}
 */
export async function walk(api, path, parameters, { rows, masked, separator, signal, progress }) {
  /** @type {Blob[]} */
  const parts = [new Blob(["\ufeff", line(FIELDS[path], separator)])];
  const writers = writersFor({ masked, separator });
  let count = 0;
  /** @type {Record<string, string>} */
  let query = { ...parameters, rows: String(rows) };
  for (;;) {
    const answer = await withRetries(() => api.ask(path, query, { signal, remember: false }), signal);
    const { itens, paginacao } = answer.body.result;
    parts.push(new Blob(itens.map((/** @type {Record<string, unknown>} */ item) => line(row(item, FIELDS[path], writers), separator))));
    count += itens.length;
    progress(count, Math.max(count, Number(paginacao.total)));
    if (!answer.next && !query.cursor && count < Number(paginacao.total)) throw new Refusal("server", LINK_MISSING);
    if (!answer.next) return { parts, count };
    query = Object.fromEntries(new URL(answer.next, location.href).searchParams);
  }
}

/** Hand a file to the browser. @param {Blob[]} parts @param {string} name */
export function save(parts, name) {
  const address = URL.createObjectURL(new Blob(parts, { type: "text/csv;charset=utf-8" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
