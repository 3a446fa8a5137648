// How many reports were updated in each day or month: a chart, and a table of the same numbers.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { hashOf, placeAt, withFilters } from "../address.js";
import { inputDay, integer, month, plural, shortDay } from "../format.js";
import { useOnce } from "../lists.js";
import { Skeleton, Trouble } from "../parts.js";
import { link } from "../router.js";
import { api } from "../session.js";
import { countSpans, retryingApi, spans } from "../totals.js";

/** @param {{place: import("../address.js").Place, newest: string, at: Date}} props  `newest`: when the newest report was updated, "" without
 * one; `at`: when the rest of the panel was counted */
export function Volume({ place, newest, at: counted }) {
  const by = place.filters.volume === "meses" ? "meses" : "dias";
  const { value: found, ...asked } = useOnce(by, (signal) => count(by, newest, signal));
  const known = useRef(counted);
  useEffect(() => {
    if (known.current !== counted) asked.retry();
    known.current = counted;
  }, [counted]);
  const total = found?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  const choose = (/** @type {"dias"|"meses"} */ to) => withFilters(place, { volume: to === "dias" ? "" : to });
  return html`<section class="card volume" aria-labelledby="volume">
    <header>
      <h2 id="volume">Volume</h2>
      <div class="switch" role="group" aria-label="Período">
        <a href=${hashOf(choose("dias"))} onClick=${link(choose("dias"))} aria-current=${by === "dias"}>30 dias</a>
        <a href=${hashOf(choose("meses"))} onClick=${link(choose("meses"))} aria-current=${by === "meses"}>12 meses</a>
      </div>
      ${found && html`<p class="muted">${plural(total, "relatório atualizado", "relatórios atualizados")}${found.old && `; o mais recente é de ${shortDay(new Date(newest))}`}</p>`}
    </header>
    ${asked.refusal && html`<${Trouble} ...${asked} stale=${Boolean(found)} />`}
    ${found ? html`<div class="pair"><${Chart} by=${by} spans=${found.spans} counts=${found.counts} /><${Table} by=${by} spans=${found.spans} counts=${found.counts} /></div>` : !asked.refusal && html`<${Skeleton} count=${5} />`}
  </section>`;
}

/** Count up to today; if the newest report is older than that period, up to that report.
 * @param {"dias"|"meses"} by @param {string} newest @param {AbortSignal} signal */
async function count(by, newest, signal) {
  const today = spans(by, new Date());
  const old = newest !== "" && new Date(newest) < today[0].from;
  const asked = old ? spans(by, new Date(newest)) : today;
  return { spans: asked, old, counts: await countSpans(retryingApi(api(), signal), asked) };
}

/** @typedef {{by: "dias"|"meses", spans: {from: Date, to: Date}[], counts: number[]}} Shown */

/** @param {Shown} props */
function Table({ by, spans: shown, counts }) {
  const most = Math.max(1, ...counts);
  const rows = shown.map((span, index) => ({ ...span, count: counts[index] })).reverse();
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Volume em tabela">
    <table>
      <caption class="sr">Relatórios atualizados por ${by === "dias" ? "dia" : "mês"}</caption>
      <thead><tr><th scope="col">${by === "dias" ? "Dia" : "Mês"}</th><th scope="col" class="number">Relatórios</th></tr></thead>
      <tbody>
        ${rows.map(({ from, to, count: number }) => {
          const last = new Date(to.getFullYear(), to.getMonth(), to.getDate() - 1);
          const place = placeAt("relatorios", { atualizado_em_de: inputDay(from), atualizado_em_ate: inputDay(last) });
          return html`<tr key=${from.toISOString()}>
            <th scope="row"><a href=${hashOf(place)} onClick=${link(place)}>${label(by, from)}</a></th>
            <td class="number" style=${{ backgroundSize: `${(100 * number) / most}% 100%` }}>${integer(number)}</td>
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}

/** @param {"dias"|"meses"} by @param {Date} from */
function label(by, from) {
  return by === "dias" ? shortDay(from) : month(from);
}

/** The bars. Screen readers get one image, whose label refers to the table. @param {Shown} props */
function Chart({ by, spans: shown, counts }) {
  const marks = scale(Math.max(1, ...counts));
  const top = marks[marks.length - 1];
  const heightOf = (/** @type {number} */ count) => `${(100 * count) / top}%`;
  return html`<div class="chart" data-by=${by} role="img" aria-label=${`Gráfico de barras do volume por ${by === "dias" ? "dia" : "mês"}; os números estão na tabela.`} style=${{ paddingInlineStart: `${integer(top).length + 1}ch` }}>
    <ol class="marks">${marks.map((mark) => html`<li key=${mark} style=${{ insetBlockEnd: heightOf(mark) }}><span>${integer(mark)}</span></li>`)}</ol>
    <ol class="columns">
      ${shown.map(({ from }, index) => html`<li key=${from.toISOString()} title=${`${label(by, from)}: ${integer(counts[index])}`}>
        ${counts[index] > 0 && html`<span style=${{ blockSize: heightOf(counts[index]) }}></span>`}<time>${by === "dias" ? shortDay(from, from) : month(from)}</time>
      </li>`)}
    </ol>
  </div>`;
}

const MOST_STEPS = 5;

/** Round numbers at equal distances, from zero to at least `most`. @param {number} most @returns {number[]} */
export function scale(most) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(most / MOST_STEPS)));
  const step = [1, 2, 5].map((part) => part * power).find((size) => size * MOST_STEPS >= most) ?? 10 * power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}
