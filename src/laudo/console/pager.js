// The pages of a list: their numbers, a jump to any of them, and the number of rows on each.
import { html } from "./vendor/preact.js";
import { hashOf } from "./address.js";
import { integer, plural } from "./format.js";
import { Icon, useTyped } from "./parts.js";
import { go, link } from "./router.js";
import { useStore } from "./store.js";

/** @typedef {import("./address.js").Place} Place */

/** The page numbers to offer: the first, the last, and those around the current one; 0 stands for a gap. @param {number} page @param {number} last @returns {number[]} */
export function numbers(page, last) {
  const near = [1, page - 1, page, page + 1, last].filter((number) => number >= 1 && number <= last);
  const sorted = [...new Set(near)].sort((a, b) => a - b);
  return sorted.flatMap((number, index) => {
    const gap = number - (sorted[index - 1] ?? 0);
    if (gap === 2) return [number - 1, number];
    return gap > 2 ? [0, number] : [number];
  });
}

/** @param {Place} place @param {number} total */
const lastPage = (place, total) => Math.max(1, Math.ceil(total / place.rows));

/** @param {{place: Place, total: number}} props */
export function Pager({ place, total }) {
  const maxRows = useStore((state) => state.maxRows);
  const last = lastPage(place, total);
  const to = (/** @type {number} */ page) => ({ ...place, page, open: "" });
  // Without keys the link to the next page would become the one to the previous page, move, and lose the focus.
  const step = (/** @type {number} */ page, /** @type {string} */ label, /** @type {"left"|"right"} */ icon) =>
    page < 1 || page > last
      ? html`<span key=${icon} class="step off" aria-hidden="true"><${Icon} name=${icon} /></span>`
      : html`<a key=${icon} class="step" href=${hashOf(to(page))} onClick=${link(to(page))} aria-label=${label} rel=${icon === "left" ? "prev" : "next"}><${Icon} name=${icon} /></a>`;
  return html`<p class="on-paper">Página ${integer(place.page)} de ${integer(last)}</p><nav class="pager" aria-label="Páginas">
    <div class="numbers">
      ${step(place.page - 1, "Página anterior", "left")}
      ${numbers(place.page, last).map((number, index) =>
        number
          ? html`<a key=${number} href=${hashOf(to(number))} onClick=${link(to(number))} aria-label=${`Página ${integer(number)}`} aria-current=${number === place.page ? "page" : undefined} data-home=${number === place.page || undefined}>${integer(number)}</a>`
          : html`<span key=${`gap${index}`} class="gap" aria-hidden="true">…</span>`,
      )}
      ${step(place.page + 1, "Próxima página", "right")}
    </div>
    ${last > 1 && html`<${Jump} place=${place} last=${last} />`}
    <label class="rows">
      Linhas por página
      <select value=${String(place.rows)} onChange=${(/** @type {any} */ event) => go({ ...place, rows: Number(event.target.value), page: 1 })}>
        ${[...new Set([25, 50, 100, 200, place.rows])]
          .filter((rows) => rows <= maxRows || rows === place.rows)
          .sort((a, b) => a - b)
          .map((rows) => html`<option key=${rows} value=${String(rows)}>${rows}</option>`)}
      </select>
    </label>
  </nav>`;
}

/** @param {{place: Place, last: number}} props */
function Jump({ place, last }) {
  const { text, wrong, type, setWrong } = useTyped();
  const jump = (/** @type {Event} */ event) => {
    event.preventDefault();
    const page = /^\s*\d{1,3}(\.?\d{3})*\s*$/.test(text) ? Math.min(Number(text.replaceAll(".", "")), last) : 0;
    if (!page) return setWrong(`Digite um número de 1 a ${integer(last)}.`);
    go({ ...place, page, open: "" });
    type("");
  };
  return html`<form class="jump" onSubmit=${jump}>
    <label>Ir para <input inputmode="numeric" autocomplete="off" aria-label=${`Ir para a página, de 1 a ${integer(last)}`} aria-invalid=${wrong ? "true" : undefined} value=${text} onInput=${(/** @type {any} */ event) => type(event.target.value)} /></label>
    <button type="submit" class="quiet">Ir</button>
    ${wrong && html`<span class="wrong" role="alert">${wrong}</span>`}
  </form>`;
}

/** @param {Place} place @param {number} last */
const beyondWords = (place, last) => `página ${integer(place.page)} está além do fim da lista, que tem ${plural(last, "página", "páginas")}`;

/** The text after the total: the number of the page, or that the list has no such page; "" for an empty list. @param {Place} place @param {number} total */
export function pageWords(place, total) {
  const last = lastPage(place, total);
  if (!total) return "";
  return place.page > last ? `, a ${beyondWords(place, last)}` : `, página ${integer(place.page)}`;
}

/** Shown instead of a page beyond the end of the list. @param {{place: Place, total: number}} props */
export function BeyondEnd({ place, total }) {
  const last = lastPage(place, total);
  return html`<div class="empty">
    <p class="big">A ${beyondWords(place, last)}.</p>
    <div class="actions">
      <button type="button" onClick=${() => go({ ...place, page: last })}>Ir para a última</button>
      ${last > 1 && html`<button type="button" onClick=${() => go({ ...place, page: 1 })}>Ir para a primeira</button>`}
    </div>
  </div>`;
}
