// Places of the console as addresses. Filters that identify a person are kept in the history entry; the address only says that they exist.

/**
 * @typedef {"relatorios"|"pessoas"|"painel"|"perfil"} View
 * @typedef {object} Place
 * @property {View} view
 * @property {Record<string, string>} filters  parameters of the API by name, as the caller gave them
 * @property {number} page
 * @property {number} rows
 * @property {string} sort   a field, "-" before it for descending; "" for the newest first
 * @property {string} open   the numero of the report that is open beside the list
 * @property {string[]} missing  private filters that the address mentions, but whose values are not in the history entry
 * @property {string[]} refused  unknown parameters of the address, and those with invalid values; PATH if the address leads to no view
 */

/** @type {Record<View, string[]>} */
const SHOWN = {
  relatorios: ["status", "resultado", "tipo_pessoa", "pendente_validacao_manual", "nome", "numero", "atualizado_em_de", "atualizado_em_ate"],
  pessoas: ["atualizado_em_de", "atualizado_em_ate"],
  painel: ["volume"],
  perfil: [],
};

/** What identifies a person: never in an address, a title or a referrer. @type {Record<View, string[]>} */
const PRIVATE = {
  relatorios: ["numero_documento"],
  pessoas: ["busca", "cpf", "nome"],
  painel: [],
  perfil: [],
};

const VIEWS = /** @type {View[]} */ (Object.keys(SHOWN));
const ROWS = 25;

/** Parameters that the address of any view may have besides its filters. */
const COMMON = ["sort", "page", "rows", "aberto"];

/** The accepted values of some parameters. FORM applies to all others. @type {Record<string, RegExp>} */
const FORMS = {
  volume: /^(dias|meses)$/,
  sort: /^-?[a-z_]{1,40}$/,
  page: /^[1-9][0-9]{0,8}$/,
  rows: /^(?=[1-9])[0-9]{0,7}(00|25|50|75)$/,
  aberto: /^[0-9a-f-]{36}$/,
};
/** No control characters: in a command copied from the list, the terminal that it is pasted into would obey them. */
const FORM = /^\P{Cc}{1,200}$/u;

/** Stands in `refused` for an address that leads to no view. */
export const PATH = "/";

/** @param {View} view @param {Record<string, string>} [filters] @returns {Place} */
export function placeAt(view, filters = {}) {
  return { view, filters, page: 1, rows: ROWS, sort: "", open: "", missing: [], refused: [] };
}

/** The place that shows what the quick find recognized. @param {{kind: string, value: string}} recognized */
export function placeOf({ kind, value }) {
  if (kind === "nome") return placeAt("pessoas", { busca: value });
  if (kind === "numero") return { ...placeAt("relatorios", { numero: value }), open: value };
  return placeAt("relatorios", { numero_documento: value });
}

/** Write a place as the part of an address after "#". @param {Place} place */
export function hashOf(place) {
  const pairs = new URLSearchParams();
  for (const name of SHOWN[place.view]) if (place.filters[name]) pairs.set(name, place.filters[name]);
  for (const name of PRIVATE[place.view]) if (place.filters[name] || place.missing.includes(name)) pairs.append("oculto", name);
  if (place.sort) pairs.set("sort", place.sort);
  if (place.page > 1) pairs.set("page", String(place.page));
  if (place.rows !== ROWS) pairs.set("rows", String(place.rows));
  if (place.open) pairs.set("aberto", place.open);
  for (const name of place.refused) pairs.append("recusado", name);
  const query = pairs.toString();
  return `#/${place.view}${query && `?${query}`}`;
}

/** Give what the history entry holds beside the address. @param {Place} place */
export function privateFilters(place) {
  return Object.fromEntries(PRIVATE[place.view].filter((name) => place.filters[name]).map((name) => [name, place.filters[name]]));
}

/**
 * Read a place. Values of private filters in the address are ignored; of parameters that are not accepted, only the name is kept.
 * @param {string} hash
 * @param {unknown} state  what the history entry holds beside the address
 * @returns {Place}
 */
export function readHash(hash, state) {
  const [, path, query] = /** @type {string[]} */ (/^#?\/?([^?]*)\??([^]*)/.exec(hash));
  const requested = path.toLowerCase().replace(/\/$/, "");
  const view = VIEWS.find((known) => known === requested) ?? "relatorios";
  if (requested && requested !== view) return { ...placeAt(view), refused: [PATH] };
  const pairs = new URLSearchParams(query);
  const place = placeAt(view);
  const wrong = [...pairs.keys()].filter((name) => !accepts(view, name, pairs.getAll(name)));
  const refused = [...wrong, ...pairs.getAll("recusado")].map((name) => (name === PATH || /^[a-z_]{1,40}$/i.test(name) ? name : "…"));
  place.refused = [...new Set(refused)];
  const value = (/** @type {string} */ name) => (wrong.includes(name) ? "" : pairs.get(name) ?? "");
  for (const name of SHOWN[view]) if (value(name)) place.filters[name] = value(name);
  const stored = /** @type {Record<string, unknown>} */ (typeof state === "object" && state ? state : {});
  for (const name of PRIVATE[view]) if (typeof stored[name] === "string" && stored[name]) place.filters[name] = String(stored[name]);
  const hidden = pairs.getAll("oculto");
  place.missing = PRIVATE[view].filter((name) => (hidden.includes(name) || pairs.has(name)) && !place.filters[name]);
  place.page = Number(value("page")) || 1;
  place.rows = Number(value("rows")) || ROWS;
  place.sort = value("sort");
  place.open = value("aberto");
  return place;
}

/** Whether a parameter may be in an address of a view at all. @param {View} view @param {string} name */
export function isParameter(view, name) {
  return [...COMMON, ...SHOWN[view], ...PRIVATE[view], "oculto", "recusado"].includes(name);
}

/** The parameter that an unknown name was likely meant to be: the one that shares most pairs of letters with it; "" if none is similar.
 * @param {View} view @param {string} name */
export function nearestParameter(view, name) {
  const pairs = pairsOf(name.toLowerCase());
  const likeness = (/** @type {string} */ known) => {
    const others = pairsOf(known);
    return (2 * pairs.filter((pair) => others.includes(pair)).length) / (pairs.length + others.length);
  };
  const [nearest] = [...SHOWN[view], ...PRIVATE[view], ...COMMON].sort((a, b) => likeness(b) - likeness(a));
  return likeness(nearest) < 0.5 ? "" : nearest;
}

/** @param {string} name */
function pairsOf(name) {
  const spaced = ` ${name} `;
  return Array.from({ length: spaced.length - 1 }, (_, index) => spaced.slice(index, index + 2));
}

/** Whether an address's values for a parameter are accepted. A private parameter should not be there; its values are ignored, not refused.
 * @param {View} view @param {string} name @param {string[]} values */
function accepts(view, name, values) {
  if (name === "recusado" || PRIVATE[view].includes(name)) return true;
  if (name === "oculto") return values.every((value) => PRIVATE[view].includes(value));
  return isParameter(view, name) && values.length === 1 && (FORMS[name] ?? FORM).test(values[0]);
}

/** Give the place with changed filters, on the first page. An empty value removes a filter.
 * @param {Place} place @param {Record<string, string>} change @returns {Place} */
export function withFilters(place, change) {
  const filters = Object.fromEntries(Object.entries({ ...place.filters, ...change }).filter(([, value]) => value));
  return { ...place, filters, page: 1 };
}

/** The place without the parameters that were refused or are missing, on its first page. Without `keys`, the whole list.
 * @param {Place} place @param {string[]} keys parameters @returns {Place} */
export function without(place, keys) {
  const whole = { ...placeAt(place.view), open: place.open };
  if (!keys.length) return whole;
  const rest = (/** @type {string} */ name) => !keys.includes(name);
  const filters = Object.fromEntries(Object.entries(place.filters).filter(([name]) => rest(name)));
  return { ...whole, filters, rows: rest("rows") ? place.rows : ROWS, sort: rest("sort") ? place.sort : "", missing: place.missing.filter(rest) };
}

/** Whether any of these is a filter. @param {string[]} keys parameters */
export const hasFilter = (keys) => keys.some((key) => !COMMON.includes(key));

/** The parameters of the API for a list. @param {Place} place @returns {Record<string, string>} */
export function parameters(place) {
  const asked = filtersOf(place);
  if (place.sort) asked.sort = place.sort;
  if (place.rows !== ROWS) asked.rows = String(place.rows);
  if (place.page > 1) asked.page = String(place.page);
  return asked;
}

/** The filters alone, days turned into instants. @param {Place} place @returns {Record<string, string>} */
export function filtersOf(place) {
  /** @type {Record<string, string>} */
  const asked = {};
  for (const name of [...SHOWN[place.view], ...PRIVATE[place.view]]) {
    const value = place.filters[name];
    if (value) asked[name] = name.startsWith("atualizado_em_") ? instant(value, name.endsWith("_ate")) : value;
  }
  return asked;
}

/** The instant at which a day begins in the caller's time zone, or with `end` the one at which it ends. Other texts stay as they are.
 * @param {string} text @param {boolean} end */
export function instant(text, end) {
  const day = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (!day) return text;
  const [year, month, date] = day.slice(1).map(Number);
  const begins = midnight(year, month, date);
  // A day that does not exist is sent as it is, for the server to refuse: the Date has become another day.
  if (begins.getMonth() !== month - 1 || begins.getDate() !== date) return text;
  const asked = (end ? midnight(year, month, date + 1) : begins).toISOString();
  // The end of 31/12/9999 cannot be written with four digits for the year, so the day itself is sent.
  return asked.startsWith("+") ? text : asked;
}

/** @param {number} year @param {number} month from 1 @param {number} date */
function midnight(year, month, date) {
  // The constructor of Date takes a year below 100 for one of the 20th century.
  const begins = new Date(2000, 0);
  begins.setFullYear(year, month - 1, date);
  return begins;
}
