// The list of reports: its filters, its table, its pages.
import { html, useEffect } from "../vendor/preact.js";
import { filtersOf, instant, parameters } from "../address.js";
import { Chips } from "../chips.js";
import { doubt, isPersonal } from "../documents.js";
import { plural } from "../format.js";
import { useList } from "../lists.js";
import { BeyondEnd, Pager, pageWords } from "../pager.js";
import { Icon, NoReports, Skeleton, Trouble, useMedia, useScrollToTop } from "../parts.js";
import { go } from "../router.js";
import { announce, store, useStore } from "../store.js";
import { Filters, NARROW } from "./filters.js";
import { Checked, News } from "./freshness.js";
import { RelatorioTable } from "./table.js";

/** @typedef {import("../address.js").Place} Place */

/** @param {{place: Place}} props */
export function Relatorios({ place }) {
  const list = useList("/relatorios", parameters(place));
  const filtering = useStore((state) => state.dialog === "filtros");
  const isNarrow = useMedia(`(width < ${NARROW}px)`);
  useScrollToTop(place);
  const total = Number(list.result?.paginacao.total ?? 0);
  const hasRows = Boolean(list.result?.itens.length);
  const empty = !hasRows && !list.loading && !list.refusal;
  const filterCount = Object.keys(filtersOf(place)).length;
  useEffect(() => {
    if (list.result && !list.loading && !list.refusal) announce(`${plural(total, "relatório", "relatórios")}${pageWords(place, total)}. ${doubt(place.filters.numero_documento ?? "")}`.trim());
  }, [list.result, list.loading]);
  return html`<div class="split ${place.open ? "opened" : ""}">
    ${(filtering || !isNarrow) && html`<${Filters} place=${place} list=${list} close=${() => store.set({ dialog: null })} />`}
    <section class="list" aria-labelledby="titulo" aria-busy=${list.loading} data-other=${list.other}>
      <header class="head">
        <h1 id="titulo" tabindex="-1" data-home>Relatórios</h1>
        <p class="total">${(hasRows || empty) && html`<strong data-total>${plural(total, "relatório", "relatórios")}</strong>`}</p>
        <${Checked} list=${list} />
        <div class="actions">
          <button type="button" class="only-narrow" aria-haspopup="dialog" onClick=${() => store.set({ dialog: "filtros" })}><${Icon} name="filter" />Filtros${filterCount > 0 && html` <span class="count">${filterCount}</span>`}</button>
          <button type="button" onClick=${() => store.set({ dialog: "copiar" })}><${Icon} name="code" />Copiar como…</button>
          <button type="button" onClick=${() => store.set({ dialog: "exportar" })}><${Icon} name="down" />Exportar</button>
        </div>
      </header>
      <${Chips} place=${place} />
      ${list.refusal && html`<${Trouble} refusal=${list.refusal} wait=${list.wait} retry=${list.reload} place=${place} stale=${hasRows} other=${list.other} />`}
      ${hasRows ? html`<${Shown} place=${place} list=${list} total=${total} />` : list.loading ? html`<${Skeleton} />` : empty && html`<${Empty} place=${place} total=${total} />`}
      <${News} list=${list} subject=${["relatório", "relatórios"]} item="numero" />
    </section>
  </div>`;
}

/** @param {{place: Place, list: import("../lists.js").ListState, total: number}} props */
function Shown({ place, list, total }) {
  return html`<${RelatorioTable} place=${place} itens=${list.result.itens} loading=${list.loading} /><${Pager} place=${place} total=${total} />`;
}

/** @param {{place: Place, total: number}} props */
function Empty({ place, total }) {
  if (total) return html`<${BeyondEnd} place=${place} total=${total} />`;
  const { numero_documento: document_, atualizado_em_de: from, atualizado_em_ate: to, ...others } = place.filters;
  if (!Object.keys(place.filters).length) return html`<${NoReports} />`;
  const alone = document_ && !from && !to && !Object.keys(others).length;
  return html`<div class="empty">
    <p class="big">${alone ? `Esta conta não tem relatórios deste ${isPersonal(document_) ? "CPF" : "CNPJ"}.` : "Nenhum relatório corresponde a estes filtros."}</p>
    ${alone && isPersonal(document_) && html`<p>A lista Pessoas mostra quem foi consultado por qualquer conta da organização: os relatórios podem ser de outra conta.</p>`}
    ${from && to && instant(from, false) >= instant(to, true) && html`<p>O período termina antes de começar.</p>`}
    <button type="button" onClick=${() => go({ ...place, filters: {}, page: 1 })}>Limpar filtros</button>
  </div>`;
}
