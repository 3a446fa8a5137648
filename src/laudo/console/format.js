// Writes numbers, instants and the API's words as people in Brazil do. Pure, except for the current time as a default.

const INTEGER = new Intl.NumberFormat("pt-BR");
const SHARE = new Intl.NumberFormat("pt-BR", { style: "percent", maximumFractionDigits: 1 });
const DAY = new Intl.DateTimeFormat("pt-BR", { day: "2-digit", month: "2-digit", year: "numeric" });
const TIME = new Intl.DateTimeFormat("pt-BR", { hour: "2-digit", minute: "2-digit" });
const EXACT = new Intl.DateTimeFormat("pt-BR", { dateStyle: "long", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat("pt-BR", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT_DAY = new Intl.DateTimeFormat("pt-BR", { day: "2-digit", month: "2-digit" });
const MONTH = new Intl.DateTimeFormat("pt-BR", { month: "short", year: "numeric" });
const ZONE = new Intl.DateTimeFormat("pt-BR", { timeZoneName: "longGeneric" });
const RELATIVE = new Intl.RelativeTimeFormat("pt-BR", { numeric: "always" });
const LIST = new Intl.ListFormat("pt-BR");
const RELATIVE_DAY = new Intl.RelativeTimeFormat("pt-BR", { numeric: "auto" });

export const STATUS = {
  PROCESSANDO: "Processando",
  "EM ANALISE": "Em análise",
  CONCLUIDO: "Concluído",
  "PRE-PROCESSANDO": "Pré-processando",
  PENDENTE: "Pendente",
};
export const RESULTADO = { VALID: "Válido", INVALID: "Inválido" };
const TIPO_PESSOA = { PESSOA: "Pessoa", EMPRESA: "Empresa" };
const PENDENTE = { true: "Pendente", false: "Não pendente" };

/** @type {Record<string, string>} */
export const FIELDS = {
  numero: "Número",
  status: "Situação",
  tipo_pessoa: "Tipo",
  nome: "Matriz",
  atualizado_em: "Atualizado em",
  resultado: "Resultado",
  mensagem: "Mensagem",
  pendente_validacao_manual: "Validação manual",
  numero_documento: "Documento",
  cpf: "CPF",
  busca: "Busca",
  atualizado_em_de: "De",
  atualizado_em_ate: "Até",
};

/** @param {number} value */
export const integer = (value) => INTEGER.format(value);
/** @param {number} part @param {number} whole */
export const share = (part, whole) => SHARE.format(part / whole);
/** @param {string} iso */
export const day = (iso) => DAY.format(new Date(iso));
/** @param {string} iso */
export const time = (iso) => TIME.format(new Date(iso));
/** @param {string} iso */
export const exact = (iso) => EXACT.format(new Date(iso));
/** @param {Date} date */
export const clock = (date) => CLOCK.format(date);
/** A time of day, with the date if that is not today's. @param {Date} date @param {Date} [now] */
export const moment = (date, now = new Date()) => clock(date) + (inputDay(date) === inputDay(now) ? "" : ` de ${day(date.toISOString())}`);
/** An instant in the analyst's time zone, as spreadsheets in Portuguese read it. @param {string} iso */
export const stamp = (iso) => `${day(iso)} ${clock(new Date(iso))}`;
/** A day, with its year if that is not the current one. @param {Date} date @param {Date} [now] */
export const shortDay = (date, now = new Date()) => (date.getFullYear() === now.getFullYear() ? SHORT_DAY : DAY).format(date);
/** @param {Date} date */
export const month = (date) => MONTH.format(date).replace(/\.? de /, " ");

/** Join words to an enumeration. @param {string[]} words */
export const joinWords = (words) => LIST.format(words);

/** A count with its noun, in singular or plural. @param {number} count @param {string} one @param {string} many */
export const plural = (count, one, many) => `${integer(count)} ${count === 1 ? one : many}`;

const DAY_SECONDS = 86_400;

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", DAY_SECONDS],
  ["hour", 3_600],
  ["minute", 60],
];

/** How long ago, roughly. @param {string} iso @param {number} [now] milliseconds */
export function ago(iso, now = Date.now()) {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const days = Math.round((midnight(new Date(iso)) - midnight(new Date(now))) / DAY_SECONDS / 1000);
  if (days && Math.abs(days) < 31 && Math.abs(seconds) > DAY_SECONDS / 4) return RELATIVE_DAY.format(days, "day");
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit ? RELATIVE.format(Math.trunc(seconds / unit[1]), unit[0]) : "agora";
}

/** @param {Date} date */
function midnight(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/** A day in the caller's time zone, as date inputs hold it. @param {Date} date */
export function inputDay(date) {
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
}

/** The time zone that instants are shown in, as it follows "fuso": "de Brasília", or "GMT-03:00" if it has no name. */
export function zone() {
  const name = ZONE.formatToParts().find(({ type }) => type === "timeZoneName")?.value ?? "";
  return name.replace(/^Horário (Padrão )?/, "");
}

/** The choices of each filter that has few, with their labels. @type {Record<string, Record<string, string>>} */
export const CHOICES = { status: STATUS, resultado: RESULTADO, tipo_pessoa: TIPO_PESSOA, pendente_validacao_manual: PENDENTE };

/** The label for an item's kind of person, which items spell differently from filters. @param {string} tipo */
export const kindOf = (tipo) => CHOICES.tipo_pessoa[tipo.toUpperCase()] ?? tipo;

/** The label for a filter's value; `mask` writes documents. @param {string} name @param {string} value @param {(text: string) => string} mask */
export function valueWords(name, value, mask) {
  if (CHOICES[name]) return Object.hasOwn(CHOICES[name], value) ? CHOICES[name][value] : value;
  if (name === "numero_documento" || name === "cpf") return mask(value);
  if (name.startsWith("atualizado_em_") && /^\d{4}-\d\d-\d\d$/.test(value)) return value.split("-").reverse().join("/");
  return value;
}
