// The dialogs: shortcuts, the list as code to paste, and export.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { filtersOf, parameters } from "../address.js";
import { cli, curl, sdk } from "../copyas.js";
import { isForSpreadsheet, save, walk } from "../exporting.js";
import { inputDay, integer, plural, time, zone } from "../format.js";
import { SHORTCUTS, switchKeys } from "../keyboard.js";
import { learnLimits } from "../limits.js";
import { announceRefusal } from "../lists.js";
import { Copy, Dialog } from "../parts.js";
import { SERVICE } from "../service.js";
import { api } from "../session.js";
import { announce, remember, store, useStore } from "../store.js";

/** @typedef {import("../address.js").Place} Place */

const ROWS = 1000;
const CANCELLED = "Exportação cancelada; nenhum arquivo foi salvo.";
const SEPARATOR = "laudo.separator";
const SEPARATORS = { ";": "ponto e vírgula (Excel em português)", ",": "vírgula" };
const close = () => store.set({ dialog: null });

/** @param {{place: Place}} props */
export function Dialogs({ place }) {
  const dialog = useStore((state) => state.dialog);
  if (dialog === "atalhos") return html`<${Shortcuts} />`;
  if (dialog === "copiar") return html`<${CopyAs} place=${place} />`;
  if (dialog === "exportar") return html`<${Export} place=${place} />`;
  return null;
}

function Shortcuts() {
  const keys = useStore((state) => state.keys);
  return html`<${Dialog} title="Atalhos de teclado" close=${close}>
    <dl class="shortcuts">
      ${SHORTCUTS.map(([names, words]) => html`<dt key=${`${names}-keys`}>${names.split(" ").map((name) => html`<kbd key=${name}>${name}</kbd>`)}</dt><dd key=${names}>${words}</dd>`)}
    </dl>
    <label class="check"><input type="checkbox" checked=${keys} onChange=${() => switchKeys(!keys)} /> Ativar os atalhos de uma só tecla</label>
    <p class="hint">Datas e horas no fuso ${zone()}.</p>
  <//>`;
}

/** @param {{place: Place}} props */
function CopyAs({ place }) {
  const path = `/${place.view}`;
  const asked = parameters(place);
  const forms = [
    ["curl", curl(SERVICE, path, asked)],
    ["Python", sdk(SERVICE, path, filtersAndSort(place))],
    ["Linha de comando", cli(SERVICE, path, asked)],
  ];
  return html`<${Dialog} title="Copiar esta lista como…" close=${close} class="wide">
    ${forms.map(
      ([name, text]) => html`<section class="code" key=${name}>
        <header><h3>${name}</h3><${Copy} text=${text} label=${`Copiar como ${name}`} class="">Copiar<//></header>
        <pre tabindex="0" role="region" aria-label=${name}><code>${text}</code></pre>
      </section>`,
    )}
    <p class="hint">O curl e a linha de comando trazem só esta página; o Python percorre a lista inteira. O token não é copiado: ele é lido da variável <code>LAUDO_TOKEN</code>. Documentos e nomes de pessoas usados nos filtros são copiados por inteiro.</p>
  <//>`;
}

/** @param {Place} place */
function filtersAndSort(place) {
  return place.sort ? { ...filtersOf(place), sort: place.sort } : filtersOf(place);
}

/** @param {{place: Place}} props */
function Export({ place }) {
  const { revealed } = store.get();
  const [masked, setMasked] = useState(!revealed);
  const [separator, setSeparator] = useState(() => (localStorage.getItem(SEPARATOR) === "," ? "," : ";"));
  const [state, setState] = useState(/** @type {{at: "ready"|"running"|"done"|"failed", done: number, total: number, why: string}} */ ({ at: "ready", done: 0, total: 0, why: "" }));
  const stop = useRef(/** @type {AbortController|null} */ (null));
  useEffect(() => () => stop.current?.abort(), []);
  const start = async () => {
    const controller = new AbortController();
    stop.current = controller;
    setState({ at: "running", done: 0, total: 0, why: "" });
    try {
      await learnLimits(controller.signal);
      const { parts, count } = await walk(api(), `/${place.view}`, filtersAndSort(place), {
        rows: Math.min(ROWS, Math.floor(store.get().maxRows / 25) * 25),
        masked,
        separator,
        signal: controller.signal,
        progress: (done, total) => setState({ at: "running", done, total, why: "" }),
      });
      save(parts, fileName(place.view, new Date()));
      setState({ at: "done", done: count, total: count, why: "" });
      announce(`Exportação concluída: ${plural(count, "linha", "linhas")}.`);
    } catch (error) {
      if (controller.signal.aborted) {
        announce(CANCELLED);
        setState({ at: "ready", done: 0, total: 0, why: CANCELLED });
      } else setState((/** @type {typeof state} */ old) => ({ ...old, at: "failed", why: announceRefusal(error).message }));
    }
  };
  const chooseSeparator = (/** @type {string} */ by) => {
    remember(SEPARATOR, by);
    setSeparator(by);
  };
  const cancel = () => stop.current?.abort();
  return html`<${Dialog} title="Exportar para CSV" close=${close} interrupt=${state.at === "running" ? cancel : undefined}>
    <p>O arquivo traz todas as linhas que correspondem aos filtros, na ordem da lista, em UTF-8; datas e horas ficam ${isForSpreadsheet(separator) ? `no fuso ${zone()}` : "em UTC, como na API"}.</p>
    <label class="check"><input type="checkbox" name="masked" checked=${masked} disabled=${state.at === "running"} onChange=${() => setMasked(!masked)} /> Mascarar CPFs</label>
    <label class="check">Separador <select name="separator" value=${separator} disabled=${state.at === "running"} onChange=${(/** @type {any} */ event) => chooseSeparator(event.target.value)}>
      ${Object.entries(SEPARATORS).map(([by, words]) => html`<option key=${by} value=${by}>${words}</option>`)}
    </select></label>
    ${!masked && html`<p class="notice">O arquivo terá CPFs completos, que são dados pessoais: guarde-o em local seguro.</p>`}
    <${Progress} state=${state} />
    <footer>
      ${state.at === "running"
        ? html`<button type="button" onClick=${cancel}>Cancelar</button>`
        : html`<button type="button" class="primary" onClick=${start}>${state.at === "ready" ? "Exportar" : "Exportar novamente"}</button>`}
    </footer>
  <//>`;
}

/** The name of a file: the list and the time, but no filters, since they may identify a person.
 * @param {string} view @param {Date} now */
function fileName(view, now) {
  return `${view}-${inputDay(now)}-${time(now.toISOString()).replace(":", "")}.csv`;
}

/** @param {{state: {at: string, done: number, total: number, why: string}}} props */
function Progress({ state }) {
  // The failure has already been announced.
  if (state.at === "failed") return html`<p class="wrong">${state.why}</p>`;
  if (state.why) return html`<p class="hint">${state.why}</p>`;
  if (state.at === "done") return html`<p class="good" data-exported>${plural(state.done, "linha exportada", "linhas exportadas")}.</p>`;
  if (state.at !== "running") return null;
  return html`<p class="progress">
    <progress aria-label="Exportação" max=${Math.max(1, state.total)} value=${state.done}></progress>
    <span>${state.total ? `${integer(state.done)} de ${integer(state.total)}` : "Iniciando…"}</span>
  </p>`;
}
