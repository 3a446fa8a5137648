// What surrounds every view: the bar with the quick find, the dialogs, and the live region for screen readers.
import { html } from "./vendor/preact.js";
import { hashOf, placeAt, placeOf } from "./address.js";
import { recognize, WRONG } from "./documents.js";
import { Clear, Icon, LiveRegion, Logo, useTyped } from "./parts.js";
import { go, link, TITLES } from "./router.js";
import { reveal, signOut } from "./session.js";
import { store, useStore } from "./store.js";
import { switchTheme, THEMES } from "./theme.js";
import { Dialogs } from "./views/dialogs.js";

/** @typedef {import("./address.js").Place} Place */

const TABS = /** @type {[import("./address.js").View, string][]} */ (Object.entries(TITLES));

/** @param {{place: Place, children: any}} props */
export function Frame({ place, children }) {
  return html`<a class="skip" href="#conteudo" onClick=${skip}>Ir para o conteúdo</a>
    <header class="bar">
      <a class="brand" href="#/relatorios" onClick=${link(placeAt("relatorios"))} aria-label="laudo, início"><${Logo} /><span>laudo</span></a>
      <nav class="tabs" aria-label="Seções">
        ${TABS.map(
          ([view, words], index) =>
            html`<a key=${view} href=${hashOf(placeAt(view))} data-view=${index + 1} onClick=${link(placeAt(view))} aria-current=${place.view === view ? "page" : undefined}>${words}</a>`,
        )}
        <a href="docs">API</a>
      </nav>
      <${Find} />
      <${Tools} />
    </header>
    <main id="conteudo" tabindex="-1">${children}</main>
    <${LiveRegion} />
    <${Dialogs} place=${place} />`;
}

function Tools() {
  const theme = useStore((state) => state.theme);
  const revealed = useStore((state) => state.revealed);
  return html`<div class="tools">
    <button type="button" class="quiet" aria-pressed=${revealed} title=${revealed ? "Mascarar CPFs" : "Mostrar CPFs nesta sessão"} aria-label="Mostrar CPFs nesta sessão" onClick=${() => reveal(!revealed)}>
      <${Icon} name=${revealed ? "hidden" : "eye"} />
    </button>
    <button type="button" class="quiet" title=${`Tema: ${THEMES[theme]}`} aria-label=${`Tema: ${THEMES[theme]}. Mudar`} onClick=${switchTheme}><${Icon} name=${theme} /></button>
    <button type="button" class="quiet wide" title="Atalhos de teclado (?)" aria-label="Atalhos de teclado" onClick=${() => store.set({ dialog: "atalhos" })}><${Icon} name="keys" /></button>
    <button type="button" class="quiet" title="Sair" aria-label="Sair" onClick=${() => signOut()}><${Icon} name="leave" /></button>
  </div>`;
}

/** The quick find: it recognizes what was pasted and filters by it. */
function Find() {
  const { text, wrong, type, setWrong } = useTyped();
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    const recognized = recognize(text);
    if (WRONG[recognized.kind]) return setWrong(WRONG[recognized.kind]);
    type("");
    go(placeOf(recognized));
  };
  return html`<form class="find" role="search" aria-label="Busca rápida" onSubmit=${find}>
    <${Icon} name="search" />
    <input
      data-find
      type="search"
      name="q"
      autocomplete="off"
      spellcheck=${false}
      autocorrect=${false}
      maxlength="200"
      aria-label="Busca rápida: CPF, CNPJ, número do relatório ou nome"
      placeholder="CPF, CNPJ, número ou nome"
      aria-invalid=${wrong ? "true" : undefined}
      value=${text}
      onInput=${(/** @type {any} */ event) => type(event.target.value)}
      onKeyDown=${(/** @type {any} */ event) => event.key === "/" && !text && event.preventDefault()}
      onBlur=${() => setWrong("")}
    />
    ${text ? html`<${Clear} label="Limpar a busca rápida" clear=${() => type("")} />` : html`<kbd aria-hidden="true">/</kbd>`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </form>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("conteudo")?.focus();
}
