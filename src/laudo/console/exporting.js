// A list as CSV: walks it by cursor, tells how far it is, can be stopped. Pure but for the client given.
import { Refusal } from "./api.js";
import { mask } from "./documents.js";

const ATTEMPTS = 6;
const MOST_WAIT_S = 30;

/** One cell: quoted when needed; what a spreadsheet would run as a formula is made a text. @param {unknown} value */
export function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param {unknown[]} values */
export function line(values) {
  return `${values.map(cell).join(",")}\r\n`;
}

/** @param {Record<string, unknown>} item @param {boolean} masked */
export function row(item, masked) {
  return Object.entries(item).map(([name, value]) =>
    masked && (name === "numero_documento" || name === "cpf") ? mask(String(value)) : value,
  );
}

/**
 * Walk a list to its end.
 * @param {import("./api.js").Api} api
 * @param {string} path
 * @param {Record<string, string>} parameters filters and order, without page and rows
 * @param {{rows: number, masked: boolean, signal: AbortSignal, progress: (done: number, total: number) => void}} how
 * @returns {Promise<{parts: Blob[], count: number}>}
 */
export async function walk(api, path, parameters, { rows, masked, signal, progress }) {
  /** @type {Blob[]} */
  const parts = [new Blob(["\ufeff"])];
  let count = 0;
  /** @type {Record<string, string>} */
  let asked = { ...parameters, rows: String(rows) };
  for (;;) {
    const answer = await patiently(() => api.ask(path, asked, { signal, remember: false }), signal);
    const { itens, paginacao } = answer.body.result;
    if (!count && itens.length) parts.push(new Blob([line(Object.keys(itens[0]))]));
    parts.push(new Blob(itens.map((/** @type {Record<string, unknown>} */ item) => line(row(item, masked)))));
    count += itens.length;
    progress(count, Math.max(count, Number(paginacao.total)));
    if (!answer.next) return { parts, count };
    asked = Object.fromEntries(new URL(answer.next, location.origin).searchParams);
  }
}

/** Try again what a busy server refused. @template T @param {() => Promise<T>} ask @param {AbortSignal} signal @returns {Promise<T>} */
async function patiently(ask, signal) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      const passing = error instanceof Refusal && ["limit", "unavailable", "offline"].includes(error.kind);
      if (!passing || attempt === ATTEMPTS) throw error;
      await pause(Math.min(error.retryAfter || 2 ** attempt / 2, MOST_WAIT_S), signal);
    }
  }
}

/** @param {number} seconds @param {AbortSignal} signal */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
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
