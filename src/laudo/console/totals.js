// Exact counts for filters and charts. Totals are cheap, so they are requested, never estimated.
import { queue } from "./api.js";
import { withRetries } from "./retries.js";
import { CHOICES } from "./format.js";

const WIDTH = 4;
/** How many matrices are listed at a time. */
export const MATRICES_PER_STEP = 40;

/** A request is retried if the server is unavailable for fewer seconds than this, by its Retry-After and since its last answer. */
const SOON_S = 3;

/**
 * The list of reports, for many requests that are useful only together. If the rate limit or a short outage refuses one, it is retried.
 * @param {import("./api.js").Api} api @param {AbortSignal} signal
 */
export function retryingApi(api, signal) {
  /** @param {import("./api.js").Refusal} refusal */
  const shouldRetry = ({ kind, retryAfter }) => kind === "limit" || (kind === "unavailable" && Math.max(retryAfter, api.secondsSinceAnswer()) < SOON_S);
  /** @param {Record<string, string>} parameters */
  const ask = async (parameters) => (await withRetries(() => api.ask("/relatorios", parameters, { signal }), signal, shouldRetry)).body.result;
  /** @param {Record<string, string>} filters */
  const count = async (filters) => Number((await ask(filters)).paginacao.total);
  return { ask, count };
}

/** @typedef {ReturnType<typeof retryingApi>} RetryingApi */

/**
 * Count every choice of every filter, with the other filters unchanged.
 * @param {RetryingApi} api @param {Record<string, string>} filters
 * @returns {Promise<Record<string, number>>} by `filter=choice`
 */
export async function countChoices(api, filters) {
  const enter = queue(WIDTH);
  const tasks = Object.entries(CHOICES).flatMap(([name, choices]) =>
    Object.keys(choices).map((choice) =>
      enter(async () => {
        const total = await api.count({ ...filters, [name]: choice });
        return /** @type {[string, number]} */ ([`${name}=${choice}`, total]);
      }),
    ),
  );
  return Object.fromEntries(await Promise.all(tasks));
}

/** @typedef {{matrices: {nome: string, total: number}[], rest: number}} Matrices the first matrices, and the number of reports of all others; below zero if reports were removed during the count */

/**
 * List the first matrices with their numbers of reports. Walks the reports in the order of `nome`, skipping all reports of each matrix.
 * Continues after the matrices in `before`, unless the total has changed since.
 * @param {RetryingApi} api @param {Record<string, string>} filters
 * @param {number} most @param {Matrices} [before]
 * @returns {Promise<Matrices>}
 */
export async function countMatrices(api, filters, most, before = { matrices: [], rest: 0 }) {
  const others = { ...filters };
  delete others.nome;
  const matrices = [...before.matrices];
  let offset = matrices.reduce((sum, { total }) => sum + total, 0);
  let all = offset + before.rest;
  while (matrices.length < most) {
    const page = Math.floor(offset / 25) + 1;
    const { itens, paginacao } = await api.ask({ ...others, sort: "nome", page: String(page) });
    const now = Number(paginacao.total);
    if (now !== all && offset && matrices.length === before.matrices.length) return countMatrices(api, filters, most);
    all = now;
    const item = itens[offset % 25];
    if (!item) break;
    const total = await api.count({ ...others, nome: item.nome });
    if (!total) break;
    matrices.push({ nome: item.nome, total });
    offset += total;
  }
  return { matrices, rest: all - offset };
}

/**
 * The last 30 days or 12 months up to that of `newest`, the oldest first.
 * @param {"dias"|"meses"} by @param {Date} newest
 * @returns {{from: Date, to: Date}[]} `to` is exclusive
 */
export function spans(by, newest) {
  const [year, month, day] = [newest.getFullYear(), newest.getMonth(), newest.getDate()];
  if (by === "meses") {
    return Array.from({ length: 12 }, (_, index) => ({ from: new Date(year, month - 11 + index, 1), to: new Date(year, month - 10 + index, 1) }));
  }
  return Array.from({ length: 30 }, (_, index) => ({ from: new Date(year, month, day - 29 + index), to: new Date(year, month, day - 28 + index) }));
}

/** The number of reports in each span. @param {RetryingApi} api @param {{from: Date, to: Date}[]} asked */
export function countSpans(api, asked) {
  const enter = queue(WIDTH);
  return Promise.all(
    asked.map(({ from, to }) =>
      enter(() => api.count({ atualizado_em_de: from.toISOString(), atualizado_em_ate: to.toISOString() })),
    ),
  );
}

/**
 * How a newer answer differs from an older one.
 * @param {any} older @param {any} newer results of the same list @param {string} key the field that names an item
 */
export function difference(older, newer, key) {
  const before = new Map(older.itens.map((/** @type {any} */ item) => [item[key], JSON.stringify(item)]));
  const fresh = newer.itens.filter((/** @type {any} */ item) => before.get(item[key]) !== JSON.stringify(item));
  return {
    total: Number(newer.paginacao.total) - Number(older.paginacao.total),
    fresh: fresh.length,
    changed: fresh.filter((/** @type {any} */ item) => before.has(item[key])).length,
  };
}
