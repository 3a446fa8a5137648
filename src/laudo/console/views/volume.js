// How many reports were updated on each day or in each month: a chart, and the same as a table beside it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { at, narrow, write } from "../address.js";
import { inputDay, integer, month, plural, shortDay } from "../format.js";
import { useOnce } from "../lists.js";
import { Skeleton, Trouble } from "../parts.js";
import { link } from "../router.js";
import { api } from "../session.js";
import { useStore } from "../store.js";
import { countSpans, spans } from "../totals.js";

const HEIGHT = 260;
/** The room that a character of a label takes. */
const DIGIT = 8;

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
  const choose = (/** @type {"dias"|"meses"} */ to) => narrow(place, { volume: to === "dias" ? "" : to });
  return html`<section class="card volume" aria-labelledby="volume">
    <header>
      <h2 id="volume">Volume</h2>
      <div class="switch" role="group" aria-label="Período">
        <a href=${write(choose("dias"))} onClick=${link(choose("dias"))} aria-current=${by === "dias"}>30 dias</a>
        <a href=${write(choose("meses"))} onClick=${link(choose("meses"))} aria-current=${by === "meses"}>12 meses</a>
      </div>
      ${found && html`<p class="muted">${plural(total, "relatório atualizado", "relatórios atualizados")}${found.old && `; os mais recentes são de ${shortDay(new Date(newest))}`}</p>`}
    </header>
    ${asked.refusal && html`<${Trouble} ...${asked} stale=${Boolean(found)} />`}
    ${found ? html`<div class="pair"><${Chart} by=${by} spans=${found.spans} counts=${found.counts} /><${Table} by=${by} spans=${found.spans} counts=${found.counts} /></div>` : !asked.refusal && html`<${Skeleton} count=${5} />`}
  </section>`;
}

/** Count up to today, or where nothing has happened for so long, up to the newest report.
 * @param {"dias"|"meses"} by @param {string} newest @param {AbortSignal} signal */
async function count(by, newest, signal) {
  const today = spans(by, new Date());
  const old = newest !== "" && new Date(newest) < today[0].from;
  const asked = old ? spans(by, new Date(newest)) : today;
  return { spans: asked, old, counts: await countSpans(api(), asked, signal) };
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
          const place = at("relatorios", { atualizado_em_de: inputDay(from), atualizado_em_ate: inputDay(last) });
          return html`<tr key=${from.toISOString()}>
            <th scope="row"><a href=${write(place)} onClick=${link(place)}>${label(by, from)}</a></th>
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

/** @param {Shown} props */
function Chart({ by, spans: shown, counts }) {
  const place = useRef(/** @type {HTMLElement|null} */ (null));
  const theme = useStore((state) => state.theme);
  // Browsers do not ask again for a module that was not there, as after the service was upgraded.
  const [missing, setMissing] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const stop = new AbortController();
    import("../vendor/uplot.js").then(
      ({ default: uPlot }) => !stop.signal.aborted && keepDrawn(uPlot, element, { by, spans: shown, counts }, stop.signal),
      () => setMissing(true),
    );
    return () => stop.abort();
  }, [by, counts, theme]);
  if (missing) return html`<p class="hint">O gráfico não pôde ser carregado: recarregue a página. Os números estão na tabela.</p>`;
  return html`<div class="chart" ref=${place} role="img" aria-label=${`Gráfico de barras do volume por ${by === "dias" ? "dia" : "mês"}; os números estão na tabela.`}></div>`;
}

/** Draw, and again when the room or the colors change. @param {any} uPlot @param {HTMLElement} element @param {Shown} shown @param {AbortSignal} signal */
function keepDrawn(uPlot, element, { by, spans: shown, counts }, signal) {
  /** @type {{destroy: () => void}|null} */
  let chart = null;
  let width = 0;
  const draw = () => {
    chart?.destroy();
    width = element.clientWidth;
    // At once: some browsers print a page as it is when they have told it that they will.
    const atOnce = (/** @type {any} */ made, /** @type {() => void} */ begin) => {
      element.append(made.root);
      made.batch(begin);
    };
    chart = new uPlot(options(uPlot, element, { by, spans: shown, counts }), [shown.map((_, index) => index), counts], atOnce);
  };
  draw();
  const room = new ResizeObserver(() => element.clientWidth !== width && draw());
  room.observe(element);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => {
    room.disconnect();
    chart?.destroy();
  });
}

/** @param {any} uPlot @param {HTMLElement} element @param {Shown} shown */
function options(uPlot, element, { by, spans: shown, counts }) {
  const style = getComputedStyle(element);
  const color = (/** @type {string} */ name) => resolve(element, name);
  const scale = 24 + DIGIT * integer(Math.max(...counts)).length;
  const axis = { stroke: color("--muted"), font: `12px ${style.fontFamily}`, ticks: { show: false } };
  const every = Math.ceil((shown.length * (12 + DIGIT * label(by, shown[0].from).length)) / (element.clientWidth - scale));
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: false, range: [-0.6, shown.length - 0.4] }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, Math.max(1, most * 1.08)] } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, splits: () => shown.map((_, index) => index).filter((index) => (shown.length - 1 - index) % every === 0), values: (/** @type {any} */ _, /** @type {number[]} */ at_) => at_.map((index) => label(by, shown[index].from)) },
      { ...axis, size: scale, grid: { stroke: color("--line"), width: 1 }, values: (/** @type {any} */ _, /** @type {number[]} */ at_) => at_.map((value) => (Number.isInteger(value) ? integer(value) : "")) },
    ],
    series: [{}, { fill: color("--accent-fill"), stroke: color("--accent-fill"), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.72, 44], radius: 0.12 }) }],
  };
}

/** The color that a custom property has here and now; canvases know no custom properties.
 * @param {HTMLElement} element @param {string} name */
function resolve(element, name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
