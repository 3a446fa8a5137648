// The filters of the list of reports, with the number of reports for each choice.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { filtersOf, instant, withFilters } from "../address.js";
import { mask } from "../documents.js";
import { CHOICES, FIELDS, inputDay, integer, plural, valueWords } from "../format.js";
import { announceRefusal, useCountdown, useOnce, useRepeats } from "../lists.js";
import { Icon, SidePanel, Trouble } from "../parts.js";
import { go } from "../router.js";
import { api } from "../session.js";
import { countChoices, countMatrices, MATRICES_PER_STEP, retryingApi } from "../totals.js";
import { Exact } from "./exact.js";

/** @typedef {import("../address.js").Place} Place */

/** The window width below which the filters are not beside the list. */
export const NARROW = 900;

/** @param {{place: Place, list: import("../lists.js").ListState, close: () => void}} props */
export function Filters({ place, list, close }) {
  const filters = filtersOf(place);
  const counted = useCounts(list, filters);
  const choose = (/** @type {string} */ name, /** @type {string} */ value) => go({ ...withFilters(place, { [name]: value }), open: "" });
  return html`<${SidePanel} below=${NARROW} close=${close} class="filters" aria-label="Filtros">
    <header class="only-narrow"><h2>Filtros</h2><button type="button" class="quiet" data-home aria-label="Fechar os filtros" onClick=${close}><${Icon} name="close" /></button></header>
    ${Object.keys(CHOICES).map((name) => html`<${Choices} key=${name} name=${name} chosen=${place.filters[name] ?? ""} ...${counted} choose=${choose} />`)}
    <${Period} place=${place} />
    <${Matriz} place=${place} list=${list} filters=${filters} />
    <${Exact} name="numero_documento" place=${place} />
    <${Exact} name="numero" place=${place} />
    <button type="button" class="only-narrow primary" onClick=${close}>Ver a lista</button>
  <//>`;
}

/** Exact counts by `filter=choice`. They are requested after the list itself, and again when that is reloaded or its total changes. Counts
 * for other filters are `old`, and stay until the new ones arrive.
 * @param {import("../lists.js").ListState} list @param {Record<string, string>} filters */
function useCounts(list, filters) {
  const question = JSON.stringify(filters);
  const requestKey = list.loading || list.refusal ? null : JSON.stringify([question, list.repeats, list.result.paginacao.total]);
  const [known, setKnown] = useState({ requestKey: "", question: "", counts: /** @type {Record<string, number>} */ ({}) });
  const [refusal, setRefusal] = useState(/** @type {import("../api.js").Refusal|null} */ (null));
  const [repeats, repeat] = useRepeats();
  useCountdown(refusal, repeat);
  useEffect(() => {
    if (requestKey === null || requestKey === known.requestKey) return undefined;
    const stop = new AbortController();
    setRefusal(null);
    countChoices(retryingApi(api(), stop.signal), filters)
      .then((counts) => setKnown({ requestKey, question, counts }))
      .catch((error) => {
        if (stop.signal.aborted) return;
        stop.abort();
        setKnown({ requestKey: "", question, counts: {} });
        if (error.kind === "auth") announceRefusal(error);
        else setRefusal(error);
      });
    return () => stop.abort();
  }, [requestKey, repeats]);
  const old = known.question !== question;
  return { counts: old && list.refusal ? {} : known.counts, old };
}

/** @param {{name: string, chosen: string, counts: Record<string, number>, old: boolean, choose: (name: string, value: string) => void}} props */
function Choices({ name, chosen, counts, old, choose }) {
  return html`<fieldset class="choices">
    <legend>${FIELDS[name]}</legend>
    ${Object.entries(CHOICES[name]).map(([value, words]) => {
      const total = counts[`${name}=${value}`];
      const on = chosen === value;
      return html`<button key=${value} type="button" aria-pressed=${on} data-filter=${`${name}=${value}`} data-empty=${total === 0} onClick=${() => choose(name, on ? "" : value)}>
        <span class="words" data-value=${value}>${words}</span><span class="number" aria-busy=${old && total !== undefined}>${total === undefined ? "" : integer(total)}</span>
      </button>`;
    })}
  </fieldset>`;
}

/** The presets, with how many days before today each begins. */
const PRESETS = /** @type {const} */ ([
  ["Hoje", 0],
  ["7 dias", 6],
  ["30 dias", 29],
  ["12 meses", 364],
]);

const FIRST_DAY = "1900-01-01";
const LAST_DAY = "9999-12-31";
const PAUSE_MS = 700;

/** @param {{place: Place}} props */
function Period({ place }) {
  const { atualizado_em_de: from = "", atualizado_em_ate: to = "" } = place.filters;
  const set = (/** @type {Record<string, string>} */ change, replace = false) => go({ ...withFilters(place, change), open: "" }, { replace });
  const daysAgo = (/** @type {number} */ days) => {
    const now = new Date();
    return inputDay(new Date(now.getFullYear(), now.getMonth(), now.getDate() - days));
  };
  return html`<fieldset class="period">
    <legend>Data de atualização</legend>
    <div class="presets">
      ${PRESETS.map(([words, days]) => {
        const on = from === daysAgo(days) && !to;
        return html`<button key=${words} type="button" aria-pressed=${on} onClick=${() => set({ atualizado_em_de: on ? "" : daysAgo(days), atualizado_em_ate: "" })}>${words}</button>`;
      })}
    </div>
    <${Day} words="De" name="atualizado_em_de" min=${FIRST_DAY} max=${to || LAST_DAY} value=${from} set=${set} />
    <${Day} words="Até" name="atualizado_em_ate" min=${from || FIRST_DAY} max=${LAST_DAY} value=${to} set=${set} />
  </fieldset>`;
}

/** A date field. A complete day is applied when typing pauses or ends. Days before 1900 are not: a year that is being typed passes through
 * 0002, 0020 and 0202. A year of two digits is of this century. Corrections while the field has the focus replace the same history entry.
 * An invalid day is reported when the field is left. A filter from the address that no date field can hold stays until a day is typed.
 * @param {{words: string, name: string, min: string, max: string, value: string, set: (change: Record<string, string>, replace: boolean) => void}} props */
function Day({ words, name, min, max, value, set }) {
  const fieldValue = instant(value, false) === value ? "" : value;
  const [text, setText] = useState(fieldValue);
  const [wrong, setWrong] = useState(false);
  const input = useRef(/** @type {HTMLInputElement|null} */ (null));
  const typed = useRef(false);
  const hasApplied = useRef(false);
  useEffect(() => {
    setText(fieldValue);
    setWrong(false);
    typed.current = false;
  }, [value]);
  const isInvalid = () => input.current?.validity.badInput ?? false;
  const isTooEarly = (/** @type {string} */ day) => typed.current && day !== "" && day < FIRST_DAY;
  const apply = (day = input.current?.value ?? text) => {
    if (!typed.current || day === value || isInvalid() || isTooEarly(day)) return;
    set({ [name]: day }, hasApplied.current);
    hasApplied.current = true;
  };
  // The timer must call the `apply` of the latest render: the other day may have changed meanwhile.
  const latest = useRef(apply);
  latest.current = apply;
  useEffect(() => {
    const timer = setTimeout(() => latest.current(), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const type = (/** @type {any} */ event) => {
    typed.current = true;
    setText(event.target.value);
    setWrong(false);
  };
  const end = () => {
    const day = (input.current?.value ?? text).replace(/^00(?=\d\d-)/, "20");
    setText(day);
    apply(day);
    setWrong(isInvalid() || isTooEarly(day));
  };
  const blur = () => {
    end();
    hasApplied.current = false;
  };
  return html`<label>${words} <input type="date" ref=${input} name=${name} min=${min} max=${max} value=${text} aria-invalid=${wrong ? "true" : undefined} onInput=${type} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && end()} onBlur=${blur} /></label>
    ${wrong && html`<p class="wrong" role="alert">Esta data não existe ou está incompleta: ${value ? `o filtro continua com ${valueWords(name, value, mask)}` : "o filtro não foi aplicado"}.</p>`}`;
}

/** The matrices of the account. They are loaded when this section is opened, and again when the list of reports is reloaded. The previous
 * ones stay until the new ones arrive.
 * @param {{place: Place, list: import("../lists.js").ListState, filters: Record<string, string>}} props */
function Matriz({ place, list, filters }) {
  const [open, setOpen] = useState(Boolean(place.filters.nome));
  const others = JSON.stringify({ ...filters, nome: undefined });
  const counted = JSON.stringify([others, list.repeats]);
  const [steps, setSteps] = useState(1);
  const known = useRef(/** @type {{others: string, counted: string, found: import("../totals.js").Matrices}|undefined} */ (undefined));
  const { value, ...asked } = useOnce(open ? JSON.stringify([counted, steps]) : null, async (signal) => {
    const before = known.current?.counted === counted ? known.current.found : undefined;
    return { others, counted, found: await countMatrices(retryingApi(api(), signal), filters, steps * MATRICES_PER_STEP, before) };
  });
  if (value) known.current = value;
  const found = known.current?.others === others ? known.current.found : undefined;
  const choose = (/** @type {string} */ nome) => go({ ...withFilters(place, { nome }), open: "" });
  const toggle = (/** @type {any} */ event) => {
    setOpen(event.target.open);
    if (event.target.open) return;
    setSteps(1);
    known.current = undefined;
  };
  // The button for more disappears once all are shown, so the summary receives the focus.
  const home = steps > 1 ? "" : undefined;
  return html`<details class="matriz" open=${open} onToggle=${toggle}>
    <summary data-home=${home}>Matriz</summary>
    ${asked.refusal && html`<${Trouble} ...${asked} />`}
    <div class="choices" role="group" aria-label="Matriz">
      ${open && !found && !asked.refusal && html`<p class="hint">Carregando as matrizes…</p>`}
      ${found?.matrices.map((/** @type {{nome: string, total: number}} */ { nome, total }) => {
        const on = place.filters.nome === nome;
        return html`<button key=${nome} type="button" aria-pressed=${on} title=${nome} onClick=${() => choose(on ? "" : nome)}><span class="words">${nome}</span><span class="number">${integer(total)}</span></button>`;
      })}
      ${found?.matrices.length === 0 && html`<p class="hint">Nenhuma matriz com estes filtros.</p>`}
      ${found && found.rest > 0 && html`<p class="hint">Mostrando as ${integer(found.matrices.length)} primeiras; ${plural(found.rest, "relatório é de outra matriz", "relatórios são de outras matrizes")}. <button type="button" class="text" aria-disabled=${asked.loading} onClick=${() => asked.loading || setSteps(steps + 1)}>Mostrar mais</button></p>`}
    </div>
  </details>`;
}
