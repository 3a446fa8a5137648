// Where one is, as an address; what identifies a person is beside it, in the history entry, and in it only that it is left out.

/**
 * @typedef {"relatorios"|"pessoas"|"painel"|"perfil"} View
 * @typedef {object} Place
 * @property {View} view
 * @property {Record<string, string>} filters  parameters of the API by name, as the caller gave them
 * @property {number} page
 * @property {number} rows
 * @property {string} sort   a field, "-" before it for descending; "" for the newest first
 * @property {string} open   the numero of the report that is open beside the list
 * @property {string[]} missing  filters that the address says there are, and whose values are not here
 * @property {string[]} refused  parameters of the address that are not known here, or whose values are not taken; PATH if it leads nowhere
 */

/** @type {Record<View, string[]>} */
export const SHOWN = {
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

/** What an address says of any view beside its filters. */
const OWN = ["sort", "page", "rows", "aberto"];

/** What the values of some parameters look like; of the others, what the server reads at all. @type {Record<string, RegExp>} */
const FORMS = {
  volume: /^(dias|meses)$/,
  sort: /^-?[a-z_]{1,40}$/,
  page: /^[1-9][0-9]{0,8}$/,
  rows: /^(?=[1-9])[0-9]{0,7}(00|25|50|75)$/,
  aberto: /^[0-9a-f-]{36}$/,
};
/** No control characters: copied with the list as a command, they would be obeyed by the terminal that it is pasted into. */
const FORM = /^\P{Cc}{1,200}$/u;

/** What is refused of an address that leads to no view. */
export const PATH = "/";

/** @param {View} view @param {Record<string, string>} [filters] @returns {Place} */
export function at(view, filters = {}) {
  return { view, filters, page: 1, rows: ROWS, sort: "", open: "", missing: [], refused: [] };
}

/** Where what was recognized is found. @param {{kind: string, value: string}} recognized */
export function placeOf({ kind, value }) {
  if (kind === "nome") return at("pessoas", { busca: value });
  if (kind === "numero") return { ...at("relatorios", { numero: value }), open: value };
  return at("relatorios", { numero_documento: value });
}

/** Write a place as the part of an address after "#". @param {Place} place */
export function write(place) {
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
export function beside(place) {
  return Object.fromEntries(PRIVATE[place.view].filter((name) => place.filters[name]).map((name) => [name, place.filters[name]]));
}

/**
 * Read a place; what an address may not hold is not read from it, and of what it may not say only the name is.
 * @param {string} hash
 * @param {unknown} state the history entry's own
 * @returns {Place}
 */
export function read(hash, state) {
  const [, path, query] = /** @type {string[]} */ (/^#?\/?([^?]*)\??([^]*)/.exec(hash));
  const named = path.toLowerCase().replace(/\/$/, "");
  const view = VIEWS.find((known) => known === named) ?? "relatorios";
  if (named && named !== view) return { ...at(view), refused: [PATH] };
  const pairs = new URLSearchParams(query);
  const place = at(view);
  const wrong = [...pairs.keys()].filter((name) => !takes(view, name, pairs.getAll(name)));
  const refused = [...wrong, ...pairs.getAll("recusado")].map((name) => (name === PATH || /^[a-z_]{1,40}$/i.test(name) ? name : "…"));
  place.refused = [...new Set(refused)];
  const value = (/** @type {string} */ name) => (wrong.includes(name) ? "" : pairs.get(name) ?? "");
  for (const name of SHOWN[view]) if (value(name)) place.filters[name] = value(name);
  const kept = /** @type {Record<string, unknown>} */ (typeof state === "object" && state ? state : {});
  for (const name of PRIVATE[view]) if (typeof kept[name] === "string" && kept[name]) place.filters[name] = String(kept[name]);
  const hidden = pairs.getAll("oculto");
  place.missing = PRIVATE[view].filter((name) => (hidden.includes(name) || pairs.has(name)) && !place.filters[name]);
  place.page = Number(value("page")) || 1;
  place.rows = Number(value("rows")) || ROWS;
  place.sort = value("sort");
  place.open = value("aberto");
  return place;
}

/** Whether a parameter may be in an address of a view at all. @param {View} view @param {string} name */
export function knows(view, name) {
  return [...OWN, ...SHOWN[view], ...PRIVATE[view], "oculto", "recusado"].includes(name);
}

/** The parameter of a view that was likely meant by a name that it does not know, as it shares most pairs of letters with it; "" for none.
 * @param {View} view @param {string} name */
export function meant(view, name) {
  const pairs = pairsOf(name.toLowerCase());
  const likeness = (/** @type {string} */ known) => {
    const others = pairsOf(known);
    return (2 * pairs.filter((pair) => others.includes(pair)).length) / (pairs.length + others.length);
  };
  const [nearest] = [...SHOWN[view], ...PRIVATE[view], ...OWN].sort((a, b) => likeness(b) - likeness(a));
  return likeness(nearest) < 0.5 ? "" : nearest;
}

/** @param {string} name */
function pairsOf(name) {
  const spaced = ` ${name} `;
  return Array.from({ length: spaced.length - 1 }, (_, at_) => spaced.slice(at_, at_ + 2));
}

/** Whether the values that an address gives of a parameter are understood: of what is private there should be none, and they are not read.
 * @param {View} view @param {string} name @param {string[]} values */
function takes(view, name, values) {
  if (name === "recusado" || PRIVATE[view].includes(name)) return true;
  if (name === "oculto") return values.every((value) => PRIVATE[view].includes(value));
  return knows(view, name) && values.length === 1 && (FORMS[name] ?? FORM).test(values[0]);
}

/** Give the place with other filters, back on the first page; an empty value takes a filter away.
 * @param {Place} place @param {Record<string, string>} change @returns {Place} */
export function narrow(place, change) {
  const filters = Object.fromEntries(Object.entries({ ...place.filters, ...change }).filter(([, value]) => value));
  return { ...place, filters, page: 1 };
}

/** The place without what was refused or is missing, on its first page; nothing but the list itself where it is not said what that was.
 * @param {Place} place @param {string[]} keys parameters @returns {Place} */
export function accepted(place, keys) {
  const whole = { ...at(place.view), open: place.open };
  if (!keys.length) return whole;
  const rest = (/** @type {string} */ name) => !keys.includes(name);
  const filters = Object.fromEntries(Object.entries(place.filters).filter(([name]) => rest(name)));
  return { ...whole, filters, rows: rest("rows") ? place.rows : ROWS, sort: rest("sort") ? place.sort : "", missing: place.missing.filter(rest) };
}

/** Whether any of these is a filter. @param {string[]} keys parameters */
export const narrows = (keys) => keys.some((key) => !OWN.includes(key));

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

/** A day of the caller's clock becomes the instant at which it begins, or with `end` the one at which it is over.
 * @param {string} text @param {boolean} end */
export function instant(text, end) {
  const day = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (!day) return text;
  const [year, month, date] = day.slice(1).map(Number);
  const begins = midnight(year, month, date);
  // What is on no calendar is the server's to refuse: taken for another day, it would be another question.
  if (begins.getMonth() !== month - 1 || begins.getDate() !== date) return text;
  const asked = (end ? midnight(year, month, date + 1) : begins).toISOString();
  // "Until 31/12/9999" is until the end of what can be written.
  return asked.startsWith("+") ? text : asked;
}

/** @param {number} year @param {number} month from 1 @param {number} date */
function midnight(year, month, date) {
  // Given to its constructor, a year below 100 would be one of the last century.
  const begins = new Date(2000, 0);
  begins.setFullYear(year, month - 1, date);
  return begins;
}
