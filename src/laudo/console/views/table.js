// The table of reports, with headers that sort and rows for the arrow keys.
import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { hashOf } from "../address.js";
import { FIELDS, kindOf } from "../format.js";
import { Documento, Instant, Resultado, Status } from "../parts.js";
import { go, link } from "../router.js";

/** @typedef {import("../address.js").Place} Place */

const NEWEST = "-atualizado_em";

/** The column and direction that a list is sorted by, also if it has the default order. @param {Place} place */
function sorting(place) {
  const sort = place.sort || NEWEST;
  return { field: sort.replace(/^-/, ""), descending: sort.startsWith("-") };
}

/** Sort by a column: first ascending (instants: newest first), the next time in the other direction. @param {Place} place @param {string} field */
function sortBy(place, field) {
  const { field: by, descending } = sorting(place);
  const sort = `${(by === field ? !descending : field === "atualizado_em") ? "-" : ""}${field}`;
  go({ ...place, sort: sort === NEWEST ? "" : sort, page: 1 });
}

/** A header that sorts. @param {{place: Place, field: string, words?: string}} props */
export function Header({ place, field, words = FIELDS[field] }) {
  const { field: by, descending } = sorting(place);
  const order = by !== field ? "none" : descending ? "descending" : "ascending";
  return html`<th scope="col" role="columnheader" class=${`c-${field}`} aria-sort=${order}>
    <button type="button" onClick=${() => sortBy(place, field)}>${words}<span class="arrow" aria-hidden="true"></span></button>
  </th>`;
}

/** The same choice as a select, for screens without room for headers. @param {{place: Place, fields: string[], words?: Record<string, string>}} props */
export function SortSelect({ place, fields, words = {} }) {
  const { field, descending } = sorting(place);
  return html`<div class="sorter">
    <label>Ordenar por <select value=${field} onChange=${(/** @type {any} */ event) => sortBy(place, event.target.value)}>
      ${fields.map((name) => html`<option key=${name} value=${name}>${words[name] ?? FIELDS[name]}</option>`)}
    </select></label>
    <button type="button" class="quiet" onClick=${() => sortBy(place, field)}>${descending ? "decrescente" : "crescente"}</button>
  </div>`;
}

const COLUMNS = ["numero", "numero_documento", "tipo_pessoa", "status", "resultado", "nome", "mensagem", "pendente_validacao_manual", "atualizado_em"];

/** @param {{place: Place, itens: any[], loading: boolean}} props */
export function RelatorioTable({ place, itens, loading }) {
  useRowInView(place.open);
  return html`<${SortSelect} place=${place} fields=${COLUMNS} />
    <div class="table ${loading ? "loading" : ""}">
      <table role="table" aria-labelledby="titulo">
        <thead role="rowgroup"><tr role="row">${COLUMNS.map((field) => html`<${Header} key=${field} place=${place} field=${field} words=${field === "pendente_validacao_manual" ? "Manual" : undefined} />`)}</tr></thead>
        <tbody role="rowgroup">${itens.map((item) => html`<${Row} key=${item.numero} place=${place} item=${item} />`)}</tbody>
      </table>
    </div>`;
}

/** Scroll to the row of a report that opens or closes: the width of the list changes, and the rows move. So does a table that comes with an
 * open report, as after a reload. @param {string} open */
function useRowInView(open) {
  const shown = useRef("");
  useLayoutEffect(() => {
    if (shown.current !== open) document.querySelector("tr.open, tr:focus-within")?.scrollIntoView({ block: "nearest" });
    shown.current = open;
  }, [open]);
}

/** @param {{place: Place, item: any}} props */
function Row({ place, item }) {
  const opened = { ...place, open: item.numero };
  const click = (/** @type {any} */ event) => {
    if (!event.target.closest("a, button") && !getSelection()?.toString()) go(opened);
  };
  return html`<tr role="row" class=${place.open === item.numero ? "open" : ""} onClick=${click}>
    <td role="cell" class="c-numero"><a data-row href=${hashOf(opened)} onClick=${link(opened)} title=${item.numero} aria-label=${`Abrir o relatório ${item.numero.slice(0, 8)}`}>${item.numero.slice(0, 8)}</a></td>
    <td role="cell" class="c-numero_documento"><${Documento} value=${item.numero_documento} /></td>
    <td role="cell" class="c-tipo_pessoa">${kindOf(item.tipo_pessoa)}</td>
    <td role="cell" class="c-status"><${Status} value=${item.status} /></td>
    <td role="cell" class="c-resultado"><${Resultado} value=${item.resultado} /></td>
    <td role="cell" class="c-nome" title=${item.nome}>${item.nome}</td>
    <td role="cell" class="c-mensagem" title=${item.mensagem}>${item.mensagem}</td>
    <td role="cell" class="c-pendente_validacao_manual">${item.pendente_validacao_manual ? html`<span class="manual" title="Pendente de validação manual">Pendente</span>` : html`<span class="sr">Não pendente</span>`}</td>
    <td role="cell" class="c-atualizado_em"><${Instant} iso=${item.atualizado_em} /></td>
  </tr>`;
}
