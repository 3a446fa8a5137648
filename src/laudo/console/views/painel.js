// The account at a glance: first the reports that wait for manual validation, then totals, then volume.
import { html, useEffect } from "../vendor/preact.js";
import { hashOf, placeAt } from "../address.js";
import { CHOICES, FIELDS, integer, moment, plural, share } from "../format.js";
import { isSame, useList, useOnce } from "../lists.js";
import { Documento, Instant, NoReports, Skeleton, Status, Trouble } from "../parts.js";
import { link } from "../router.js";
import { api } from "../session.js";
import { announce } from "../store.js";
import { countChoices, retryingApi } from "../totals.js";
import { Late, OnPaper } from "./freshness.js";
import { Volume } from "./volume.js";

const MOST_SHOWN = 4;
const OLDEST_FIRST = "atualizado_em";
const CARDS = ["status", "resultado", "tipo_pessoa"];

/** @param {{place: import("../address.js").Place}} props */
export function Painel({ place }) {
  const { value: found, ...asked } = useOnce("painel", load);
  return html`<div class="painel">
    <header class="head">
      <h1 tabindex="-1" data-home>Painel</h1>
      <p class="total">${found && html`<strong data-total>${plural(found.total, "relatório", "relatórios")}</strong>`}</p>
      <${Late} going=${asked.loading} />
      ${found && html`<${Counted} key=${found.at} ...${found} /><${OnPaper} words="Consultado" at=${found.at} />
        <div class="actions"><button type="button" data-news onClick=${asked.retry}>Atualizar <kbd aria-hidden="true">r</kbd></button></div>`}
    </header>
    ${asked.refusal ? html`<${Trouble} ...${asked} stale=${Boolean(found)} />` : !found && html`<${Skeleton} count=${8} />`}
    ${found && !found.total && html`<${NoReports} />`}
    ${found?.total > 0 &&
    html`<div class="cards"><${Waiting} pending=${found.pending} />${CARDS.map((name) => html`<${Card} key=${name} name=${name} counts=${found.counts} total=${found.total} />`)}</div>
      <${Volume} place=${place} newest=${found.newest} at=${found.at} />`}
  </div>`;
}

/** When the counts were made, and whether the list has changed since. @param {{list: any, total: number, at: Date}} props */
function Counted({ list, total, at: counted }) {
  const { result, news, stale } = useList("/relatorios", {});
  const changed = Boolean(result) && !isSame(list, news ?? result);
  const since = changed ? "; houve mudanças desde então" : stale && "; não foi possível verificar desde então";
  useEffect(() => announce(changed ? "Houve mudanças desde a última atualização." : `${plural(total, "relatório", "relatórios")}.`), [changed]);
  return html`<p class="checked ${since ? "off" : ""}">atualizado às ${moment(counted)}${since}</p>`;
}

/** @param {AbortSignal} signal */
async function load(signal) {
  const retrying = retryingApi(api(), signal);
  // Read the list before the counts, so that a change in between is noticed.
  const list = await retrying.ask({});
  const pending = await retrying.ask({ pendente_validacao_manual: "true", sort: OLDEST_FIRST });
  const counts = await countChoices(retrying, {});
  return { list, counts, pending, total: Number(list.paginacao.total), newest: list.itens[0]?.atualizado_em ?? "", at: new Date() };
}

/** @param {{pending: any}} props */
function Waiting({ pending }) {
  const total = Number(pending.paginacao.total);
  const all = { ...placeAt("relatorios", { pendente_validacao_manual: "true" }), sort: OLDEST_FIRST };
  return html`<section class="card waiting" aria-labelledby="pendentes">
    <h2 id="pendentes">Aguardando validação manual</h2>
    ${total ? html`<p class="figure"><a href=${hashOf(all)} onClick=${link(all)} data-pending>${integer(total)}</a></p>` : html`<p class="muted">Nenhum relatório.</p>`}
    ${total > 1 && html`<p class="hint">Os parados há mais tempo vêm primeiro.</p>`}
    <ol>
      ${pending.itens.slice(0, MOST_SHOWN).map((/** @type {any} */ item) => {
        const opened = { ...all, open: item.numero };
        return html`<li key=${item.numero}>
          <a href=${hashOf(opened)} onClick=${link(opened)} aria-label=${`Abrir o relatório ${item.numero.slice(0, 8)}`}>${item.numero.slice(0, 8)}</a>
          <${Documento} value=${item.numero_documento} /><${Status} value=${item.status} /><${Instant} iso=${item.atualizado_em} />
        </li>`;
      })}
    </ol>
    ${total > MOST_SHOWN && html`<a class="more" href=${hashOf(all)} onClick=${link(all)}>Ver todos</a>`}
  </section>`;
}

/** @param {{name: string, counts: Record<string, number>, total: number}} props */
function Card({ name, counts, total }) {
  const choices = Object.entries(CHOICES[name]).map(([value, words]) => ({ value, words, count: counts[`${name}=${value}`] ?? 0 }));
  const decided = choices.reduce((sum, { count }) => sum + count, 0);
  // The counts are not of the same instant: while reports change, the parts may add up to more than the total.
  const whole = Math.max(total, decided);
  const rest = whole - decided;
  return html`<section class="card" aria-labelledby=${`card-${name}`}>
    <h2 id=${`card-${name}`}>${FIELDS[name]}</h2>
    <ul class="bars">
      ${choices.map(({ value, words, count }) => {
        const place = placeAt("relatorios", { [name]: value });
        return html`<li key=${value} data-value=${value}>
          <a href=${hashOf(place)} onClick=${link(place)}>${words}</a>
          <${Bar} part=${count} whole=${whole} />
          <span class="number">${integer(count)}</span><span class="share">${share(count, whole)}</span>
        </li>`;
      })}
      ${name === "resultado" &&
      html`<li data-value="none">
        <span>Sem decisão</span><${Bar} part=${rest} whole=${whole} />
        <span class="number">${integer(rest)}</span><span class="share">${share(rest, whole)}</span>
      </li>`}
    </ul>
  </section>`;
}

/** A bar whose length is the share of the whole; empty for zero. @param {{part: number, whole: number}} props */
function Bar({ part, whole }) {
  return html`<span class="bar-line" aria-hidden="true">${part > 0 && html`<span style=${{ inlineSize: `${(100 * part) / whole}%` }}></span>`}</span>`;
}
