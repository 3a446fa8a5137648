// Exact counts beside each choice: totals are cheap, so they are asked for, never estimated.
import { queue } from "./api.js";
import { patiently } from "./patience.js";
import { CHOICES } from "./format.js";

const WIDTH = 4;
/** How many matrices are named at a time. */
export const SOME_MATRICES = 40;

/** For how many seconds one of many questions waits for a server that has just answered others. */
const SOON_S = 3;

/**
 * The API for many questions at a time, which are of use only together: a rate limit slows them, and one that is refused is asked again
 * while others are answered.
 * @param {import("./api.js").Api} api @param {AbortSignal} signal
 */
export function steady(api, signal) {
  /** @param {import("./api.js").Refusal} refusal */
  const passes = ({ kind, retryAfter }) => kind === "limit" || (kind === "unavailable" && Math.max(retryAfter, api.silence()) < SOON_S);
  return {
    /** @param {string} path @param {Record<string, string>} parameters */
    ask: (path, parameters) => patiently(() => api.ask(path, parameters, { signal }), signal, passes),
    /** @param {string} path @param {Record<string, string>} filters */
    count: (path, filters) => patiently(() => api.count(path, filters, signal), signal, passes),
  };
}

/** @typedef {ReturnType<typeof steady>} Steady */

/**
 * Count every choice of every filter, the other filters being as they are.
 * @param {Steady} api @param {Record<string, string>} filters
 * @returns {Promise<Record<string, number>>} by `filter=choice`
 */
export async function countChoices(api, filters) {
  const enter = queue(WIDTH);
  const tasks = Object.entries(CHOICES).flatMap(([name, choices]) =>
    Object.keys(choices).map((choice) =>
      enter(async () => {
        const total = await api.count("/relatorios", { ...filters, [name]: choice });
        return /** @type {[string, number]} */ ([`${name}=${choice}`, total]);
      }),
    ),
  );
  return Object.fromEntries(await Promise.all(tasks));
}

/** @typedef {{matrices: {nome: string, total: number}[], rest: number}} Matrices those that are named, and how many reports others have */

/**
 * Name the first matrices, each with how many reports it has: a walk in the order of names that steps over each one's reports, and
 * goes on from those that were named before, unless reports came or went since.
 * @param {Steady} api @param {Record<string, string>} filters
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
    const { body } = await api.ask("/relatorios", { ...others, sort: "nome", page: String(page) });
    const now = Number(body.result.paginacao.total);
    if (now !== all && offset && matrices.length === before.matrices.length) return countMatrices(api, filters, most);
    all = now;
    const item = body.result.itens[offset % 25];
    if (!item) break;
    const total = await api.count("/relatorios", { ...others, nome: item.nome });
    if (!total) break;
    matrices.push({ nome: item.nome, total });
    offset += total;
  }
  return { matrices, rest: Math.max(0, all - offset) };
}

/**
 * The days or months that end with the one of `newest`, the oldest first.
 * @param {"dias"|"meses"} by @param {Date} newest
 * @returns {{from: Date, to: Date}[]} `to` is not part of it
 */
export function spans(by, newest) {
  const [year, month, day] = [newest.getFullYear(), newest.getMonth(), newest.getDate()];
  if (by === "meses") {
    return Array.from({ length: 12 }, (_, index) => ({ from: new Date(year, month - 11 + index, 1), to: new Date(year, month - 10 + index, 1) }));
  }
  return Array.from({ length: 30 }, (_, index) => ({ from: new Date(year, month, day - 29 + index), to: new Date(year, month, day - 28 + index) }));
}

/** How many reports each span has. @param {Steady} api @param {{from: Date, to: Date}[]} asked */
export function countSpans(api, asked) {
  const enter = queue(WIDTH);
  return Promise.all(
    asked.map(({ from, to }) =>
      enter(() => api.count("/relatorios", { atualizado_em_de: from.toISOString(), atualizado_em_ate: to.toISOString() })),
    ),
  );
}

/**
 * What a newer answer says that an older one did not.
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
