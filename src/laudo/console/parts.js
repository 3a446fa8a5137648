// Small pieces that several views draw.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { hasFilter, without } from "./address.js";
import { isPersonal, mask, punctuate } from "./documents.js";
import { ago, day, exact, RESULTADO, STATUS, time } from "./format.js";
import { go } from "./router.js";
import { announce, useStore } from "./store.js";

const PATHS = {
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  hidden: "M2 2l12 12M6.6 3.7A6 6 0 0 1 8 3.5C12 3.5 14.5 8 14.5 8a12 12 0 0 1-1.9 2.4M10 11.9a6 6 0 0 1-2 .6C4 12.5 1.5 8 1.5 8a12 12 0 0 1 2.7-3.2",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  done: "M3 8.5l3.2 3.2L13 4.800",
  failed: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.4v.2",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.7 3.7",
  filter: "M2 4h12M4.5 8h7M6.5 12h3",
  down: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  left: "M10 3.5L5.5 8l4.5 4.5",
  right: "M6 3.5L10.5 8L6 12.5",
  light: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.400 3.400l1.100 1.100M11.5 11.5l1.100 1.100M3.400 12.600l1.100-1.100M11.5 4.5l1.100-1.100",
  dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z",
  auto: "M8 2a6 6 0 1 0 0 12ZM8 2a6 6 0 0 1 0 12",
  keys: "M1.5 4h13v8h-13zM4 6.5h.5M6.5 6.5H7M9 6.5h.5M11.5 6.5h.5M5 9.5h6",
  leave: "M6.5 2.5h-4v11h4M7 8h7M11 5l3 3-3 3",
};

/** @param {{name: keyof typeof PATHS}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}

/** The logo. */
export function Logo() {
  return html`<svg class="mark" viewBox="0 0 20 20" aria-hidden="true"><path class="sheet" d="M4 1.5h8.5L17 6v12.5H4z" /><path class="check" d="M7 11l2.5 2.5L14 8.5" /></svg>`;
}

/** @param {{value: string}} props */
export function Status({ value }) {
  const words = /** @type {Record<string, string>} */ (STATUS)[value] ?? value;
  return html`<span class="status" data-value=${value}>${words}</span>`;
}

/** @param {{value: string|null}} props */
export function Resultado({ value }) {
  if (!value) return html`<span class="none" title="Sem decisão"><span aria-hidden="true">–</span><span class="sr">sem decisão</span></span>`;
  return html`<span class="resultado" data-value=${value}>${/** @type {Record<string, string>} */ (RESULTADO)[value] ?? value}</span>`;
}

/** A document. A CPF is masked until its own button, or the setting for the whole session, reveals it. @param {{value: string}} props */
export function Documento({ value }) {
  const allRevealed = useStore((state) => state.revealed);
  const [shown, setShown] = useState(false);
  useEffect(() => setShown(false), [value, allRevealed]);
  if (!isPersonal(value)) return html`<span class="documento">${punctuate(value)}</span>`;
  const open = allRevealed || shown;
  return html`<span class="documento"
    >${open ? punctuate(value) : mask(value)}
    ${!allRevealed &&
    html`<button type="button" class="reveal" aria-pressed=${shown} aria-label="Mostrar CPF" onClick=${() => setShown(!shown)}><${Icon} name=${shown ? "hidden" : "eye"} /></button>`}</span
  >`;
}

/** The text of a field, and what is wrong with it. Typing clears the error. */
export function useTyped() {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  const type = (/** @type {string} */ typed) => {
    setText(typed);
    setWrong("");
  };
  return { text, wrong, type, setWrong };
}

/** A button that clears the search field of its form. @param {{label: string, clear: () => void}} props */
export function Clear({ label, clear }) {
  const press = (/** @type {any} */ event) => {
    clear();
    event.currentTarget.form.querySelector("input").focus();
  };
  return html`<button type="button" class="quiet" title=${label} aria-label=${label} onClick=${press}><${Icon} name="close" /></button>`;
}

/** @param {{iso: string}} props */
export function Instant({ iso }) {
  return html`<time datetime=${iso} title=${`${exact(iso)} (${ago(iso)})`}>${day(iso)} <span class="hour">${time(iso)}</span></time>`;
}

const COPIED = "Copiado.";
const NOT_COPIED = "O navegador não permitiu copiar.";

/** A button that copies a text, and shows for a moment whether that worked. @param {{text: string, label: string, class?: string, children?: any}} props */
export function Copy({ text, label, class: name = "quiet", children }) {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    if (!outcome) return undefined;
    const timer = setTimeout(() => setOutcome(""), 1600);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => {
    const words = (await copyText(text)) ? COPIED : NOT_COPIED;
    setOutcome(words);
    announce(words);
  };
  const icon = outcome === COPIED ? "done" : outcome ? "failed" : "copy";
  return html`<button type="button" class=${name} aria-label=${children ? undefined : label} title=${outcome || label} data-icon=${icon} onClick=${copy}>
    <${Icon} name=${icon} />${children}
  </button>`;
}

/** Put a text on the clipboard; gives whether that worked. Without TLS there is no `navigator.clipboard`, but the copy command works.
 * @param {string} text @returns {Promise<boolean>} */
async function copyText(text) {
  const onCopy = (/** @type {ClipboardEvent} */ event) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    document.addEventListener("copy", onCopy);
    const copied = document.execCommand("copy");
    document.removeEventListener("copy", onCopy);
    return copied;
  }
}

/** Shows why there is no answer, and what to do: leave out the parameters that the server does not accept, or else try again.
 * `announceRefusal` announces the message.
 * @param {{refusal: import("./api.js").Refusal, wait: number, retry: () => void, place?: import("./address.js").Place, stale?: boolean, other?: boolean}} props */
export function Trouble({ refusal, wait, retry, place, stale = false, other = false }) {
  /** @type {Record<string, string>} */
  const titles = {
    invalid: "O servidor não aceitou esta consulta",
    limit: "Muitas consultas em pouco tempo",
    unavailable: "O serviço está indisponível no momento",
    offline: navigator.onLine ? "Não foi possível conectar ao servidor" : "Você está sem conexão",
    server: "Algo deu errado no servidor",
  };
  return html`<div class="trouble" data-kind=${refusal.kind}>
    <strong>${titles[refusal.kind] ?? titles.server}</strong>
    <p>
      ${refusal.message} ${stale && `Abaixo, os últimos dados recebidos${other ? ", de outra página ou ordem" : ""}.`}
      ${refusal.requestId && refusal.kind === "server" && html` <span class="muted">Requisição <code>${refusal.requestId}</code>.</span>`}
    </p>
    ${refusal.kind !== "invalid" && html`<button type="button" onClick=${retry}>Tentar novamente${wait > 0 && html`<span aria-hidden="true"> (em ${wait} s)</span>`}</button>`}
    ${refusal.kind === "invalid" && place && html`<${ContinueWithout} place=${place} keys=${refusal.keys} />`}
  </div>`;
}

/** A button that leads to the place without the parameters that were refused or are missing. @param {{place: import("./address.js").Place, keys: string[], words?: string}} props */
export function ContinueWithout({ place, keys, words }) {
  const rest = without(place, keys);
  const left = Object.keys(rest.filters).length + rest.missing.length;
  const others = !left ? "Ver a lista inteira" : hasFilter(keys) ? "Ver só com os outros filtros" : "Ver com os mesmos filtros";
  return html`<button type="button" onClick=${() => go(rest)}>${words ?? others}</button>`;
}

/** The live region for screen readers. A modal dialog has its own, because they ignore what is outside; it says only what is new since it
 * opened. */
export function LiveRegion() {
  const messages = useStore((state) => state.messages);
  const [before] = useState(messages);
  const fresh = messages.filter((one) => !before.includes(one));
  return html`<div class="sr" role="status" aria-live="polite" aria-atomic="false">${fresh.map(({ id, text }) => html`<p key=${id}>${text}</p>`)}</div>`;
}

/** Make an element a modal dialog while it exists. The browser keeps the focus inside, returns it at the end, and closes it on Escape.
 * @param {boolean} modal @param {() => void} close */
function useModal(modal, close) {
  const place = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useLayoutEffect(() => {
    const dialog = place.current;
    if (!modal || !dialog) return undefined;
    dialog.showModal();
    return () => dialog.close();
  }, [modal]);
  return { ref: place, onClose: () => place.current && close() };
}

/** A dialog. Escape, its button or a click outside closes it. While `interrupt` is given, Escape and the button call it instead of `close`,
 * and a click outside does nothing.
 * @param {{title: string, close: () => void, children: any, class?: string, interrupt?: () => void}} props */
export function Dialog({ title, close, children, class: name = "", interrupt }) {
  const modal = useModal(true, close);
  const pressed = useRef(false);
  const press = (/** @type {Event} */ event) => {
    pressed.current = event.target === modal.ref.current;
  };
  const clickOutside = (/** @type {Event} */ event) => event.target === modal.ref.current && pressed.current && !interrupt && close();
  const cancel = (/** @type {Event} */ event) => {
    if (!interrupt) return;
    event.preventDefault();
    interrupt();
  };
  return html`<dialog ...${modal} class=${name} aria-labelledby="dialog-title" onCancel=${cancel} onPointerDown=${press} onClick=${clickOutside}>
    <div class="dialog">
      <header>
        <h2 id="dialog-title">${title}</h2>
        <button type="button" class="quiet" data-home aria-label="Fechar" onClick=${interrupt ?? close}><${Icon} name="close" /></button>
      </header>
      ${children}
      <${LiveRegion} />
    </div>
  </dialog>`;
}

/** A part beside the list. If the window is narrower than `below`, it is a modal dialog above the page.
 * @param {{below: number, close: () => void, class: string, children: any, [name: string]: any}} props */
export function SidePanel({ below, close, children, ...attributes }) {
  const isModal = useMedia(`(width < ${below}px)`);
  const modal = useModal(isModal, close);
  if (!isModal) return html`<aside ...${attributes}>${children}</aside>`;
  return html`<dialog ...${modal} ...${attributes}>${children}<${LiveRegion} /></dialog>`;
}

/** Whether a media query matches; follows changes. @param {string} query */
export function useMedia(query) {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const check = () => setMatches(media.matches);
    media.addEventListener("change", check);
    return () => media.removeEventListener("change", check);
  }, [query]);
  return matches;
}

/** Scroll to the top when the list or its page changes, before the browser restores the position on "back". @param {import("./address.js").Place} place */
export function useScrollToTop({ page, sort, filters }) {
  const list = JSON.stringify([page, sort, filters]);
  const shown = useRef(list);
  useLayoutEffect(() => {
    if (shown.current !== list) scrollTo(0, 0);
    shown.current = list;
  }, [list]);
}

/** Shown for an account without reports. */
export function NoReports() {
  return html`<div class="empty"><p class="big">Ainda não há relatórios nesta conta.</p><p>Eles aparecem aqui assim que forem importados.</p></div>`;
}

/** Placeholder rows while a list is loading. @param {{count?: number}} props */
export function Skeleton({ count = 12 }) {
  return html`<div class="skeleton" aria-hidden="true">${Array.from({ length: count }, (_, index) => html`<div key=${index}></div>`)}</div>`;
}
