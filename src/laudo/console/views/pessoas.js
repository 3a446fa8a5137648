// The people that the organization has consulted: searched while typing, each with a link to their reports.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { filtersOf, hashOf, parameters, placeAt, placeOf, withFilters } from "../address.js";
import { Chips } from "../chips.js";
import { clean, mask, punctuate, recognize, withZeros, WRONG } from "../documents.js";
import { plural } from "../format.js";
import { useList } from "../lists.js";
import { BeyondEnd, Pager, pageWords } from "../pager.js";
import { Clear, Documento, Icon, Instant, Skeleton, Trouble, useScrollToTop } from "../parts.js";
import { go, link } from "../router.js";
import { announce, store, useStore } from "../store.js";
import { Checked, News } from "./freshness.js";
import { Header, SortSelect } from "./table.js";

/** @typedef {import("../address.js").Place} Place */

const PAUSE_MS = 250;
const COLUMNS = ["nome", "cpf", "atualizado_em"];

/** @param {{place: Place}} props */
export function Pessoas({ place }) {
  const list = useList("/pessoas", parameters(place));
  const total = Number(list.result?.paginacao.total ?? 0);
  useScrollToTop(place);
  const hasRows = Boolean(list.result?.itens.length);
  const empty = !hasRows && !list.loading && !list.refusal;
  useEffect(() => {
    if (list.result && !list.loading && !list.refusal) announce(`${plural(total, "pessoa", "pessoas")}${pageWords(place, total)}.`);
  }, [list.result, list.loading]);
  return html`<section class="list alone" aria-labelledby="titulo" aria-busy=${list.loading} data-other=${list.other}>
    <header class="head">
      <h1 id="titulo" tabindex="-1" data-home>Pessoas</h1>
      <p class="total">${(hasRows || empty) && html`<strong data-total>${plural(total, "pessoa", "pessoas")}</strong>`}</p>
      <${Checked} list=${list} />
      <div class="actions">
        <button type="button" onClick=${() => store.set({ dialog: "copiar" })}><${Icon} name="code" />Copiar como…</button>
        <button type="button" onClick=${() => store.set({ dialog: "exportar" })}><${Icon} name="down" />Exportar</button>
      </div>
    </header>
    <${Search} place=${place} />
    <${Chips} place=${place} />
    ${list.refusal && html`<${Trouble} refusal=${list.refusal} wait=${list.wait} retry=${list.reload} place=${place} stale=${hasRows} other=${list.other} />`}
    ${hasRows ? html`<${Shown} place=${place} list=${list} total=${total} />` : list.loading ? html`<${Skeleton} />` : empty && html`<${Empty} place=${place} total=${total} />`}
    <${News} list=${list} subject=${["pessoa", "pessoas"]} item="cpf" />
  </section>`;
}

/** The search field. It searches when typing pauses; further typing replaces the same history entry.
 * @param {{place: Place}} props */
function Search({ place }) {
  const given = place.filters.busca ?? "";
  const [text, setText] = useState(given);
  const asked = searchTerm(text);
  const wrong = text.trim() ? WRONG[recognize(text).kind] : "";
  useEffect(() => {
    if (searchTerm(text) !== given) setText(given);
  }, [given]);
  // The timer must call the `apply` of the latest render: the order may have changed meanwhile.
  const apply = useRef(() => {});
  apply.current = () => go(withFilters(place, { busca: asked }), { replace: Boolean(given && asked) });
  useEffect(() => {
    if (asked === given || wrong) return undefined;
    const timer = setTimeout(() => apply.current(), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [asked, given]);
  return html`<form class="search" role="search" aria-label="Pessoas" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <${Icon} name="search" />
    <input type="search" name="busca" autocomplete="off" spellcheck=${false} autocorrect=${false} maxlength="200" placeholder="Nome, em qualquer ordem, ou início do CPF" aria-label="Buscar pessoas por nome ou início do CPF" aria-invalid=${wrong ? "true" : undefined} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    ${text && html`<${Clear} label="Apagar a busca" clear=${() => setText("")} />`}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </form>`;
}

/** What to search for: of a complete CPF only the CPF, of a partly typed one only its digits. @param {string} text */
function searchTerm(text) {
  const { kind, value } = recognize(text);
  const term = kind === "cpf" ? value : clean(text);
  return /^[\d.\-\s]+$/.test(term) ? term.replace(/\D/g, "") : term;
}

/** @param {{place: Place, list: import("../lists.js").ListState, total: number}} props */
function Shown({ place, list, total }) {
  const { itens } = list.result;
  return html`<${SortSelect} place=${place} fields=${COLUMNS} words=${{ nome: "Nome", atualizado_em: "Último relatório" }} />
    <div class="table pessoas ${list.loading ? "loading" : ""}">
      <table role="table" aria-labelledby="titulo">
        <thead role="rowgroup"><tr role="row">
          <${Header} place=${place} field="nome" words="Nome" /><${Header} place=${place} field="cpf" /><${Header} place=${place} field="atualizado_em" words="Último relatório" />
        </tr></thead>
        <tbody role="rowgroup">${itens.map((/** @type {any} */ item) => html`<${Row} key=${item.cpf} item=${item} />`)}</tbody>
      </table>
    </div>
    <${Pager} place=${place} total=${total} />`;
}

/** @param {{place: Place, total: number}} props */
function Empty({ place, total }) {
  if (total) return html`<${BeyondEnd} place=${place} total=${total} />`;
  return html`<div class="empty">
    <p class="big">${Object.keys(filtersOf(place)).length ? "Nenhuma pessoa corresponde a esta busca." : "Nenhum CPF foi consultado ainda."}</p>
    ${place.filters.busca && html`<${Elsewhere} busca=${place.filters.busca} />`}
    ${Object.keys(place.filters).length > 0 && html`<button type="button" onClick=${() => go({ ...place, filters: {}, page: 1 })}>Limpar a busca</button>`}
  </div>`;
}

/** How the server understood a search without results, and where else to search. @param {{busca: string}} props */
function Elsewhere({ busca }) {
  const revealed = useStore((state) => state.revealed);
  const whole = withZeros(busca);
  const recognized = recognize(whole || busca);
  const elsewhere = whole || ["cnpj", "numero"].includes(recognized.kind);
  const hint = /^\d+$/.test(busca) ? `Nenhum CPF consultado começa com ${busca}.` : "Cada palavra deve ser o início de um nome ou sobrenome da pessoa; acentos e maiúsculas não importam.";
  const document_ = (revealed ? punctuate : mask)(recognized.value);
  return html`<p>${elsewhere && !whole ? "Empresas e relatórios não estão nesta lista." : `${hint} Empresas e relatórios não estão nesta lista: procure pelo CNPJ ou pelo número do relatório, completos.`}</p>
    ${elsewhere && html`<button type="button" class="primary" onClick=${() => go(placeOf(recognized))}>${recognized.kind === "numero" ? "Ver o relatório com este número" : `Ver os relatórios de ${document_}`}</button>`}`;
}

/** @param {{item: any}} props */
function Row({ item }) {
  const reports = placeAt("relatorios", { numero_documento: item.cpf });
  const visited = useStore((state) => state.visited) === item.cpf;
  const click = (/** @type {any} */ event) => {
    if (event.target.closest("button")) return;
    store.set({ visited: item.cpf });
    if (!event.target.closest("a") && !getSelection()?.toString()) go(reports);
  };
  return html`<tr role="row" class=${visited ? "visited" : ""} onClick=${click}>
    <td role="cell" class="c-nome" title=${item.nome}><a data-row href=${hashOf(reports)} onClick=${link(reports)}>${item.nome || "Sem nome"}</a></td>
    <td role="cell" class="c-cpf"><${Documento} value=${item.cpf} /></td>
    <td role="cell" class="c-atualizado_em"><${Instant} iso=${item.atualizado_em} /></td>
  </tr>`;
}
