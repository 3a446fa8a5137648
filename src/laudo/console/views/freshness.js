// How current a list is: when it was last known to be true, whether an answer is awaited, and what has changed since.
import { html, useEffect } from "../vendor/preact.js";
import { clock, day, moment, plural, zone } from "../format.js";
import { useLate } from "../lists.js";
import { announce } from "../store.js";
import { difference } from "../totals.js";

const STILL_LOADING = "Ainda buscando…";

/** Says that an answer is taking long; in print, that one is awaited at all. Shows the children unless it is late.
 * @param {{going: boolean, children?: any}} props */
export function Late({ going, children }) {
  const late = useLate(going);
  useEffect(() => {
    if (late) announce(STILL_LOADING);
  }, [late]);
  return html`${going && html`<p class=${late ? "checked off awaited" : "on-paper"}>${STILL_LOADING}</p>`}${!late && children}`;
}

/** When the list was last known to be true, or that an answer is taking long. @param {{list: import("../lists.js").ListState}} props */
export function Checked({ list }) {
  return html`<${Late} going=${list.loading}><${Since} list=${list} /><//>`;
}

/** @param {{list: import("../lists.js").ListState}} props */
function Since({ list }) {
  if (!list.checked) return null;
  return html`<p class="checked ${list.stale ? "off" : ""}" title="Verificado a cada 20 segundos">${list.stale ? "sem atualização desde" : "atualizado às"} ${moment(list.checked)}</p>
    <${OnPaper} words="Consultado" at=${list.checked} />`;
}

/** For print: when the data was true, and the time zone. @param {{words: string, at: Date}} props */
export function OnPaper({ words: done, at }) {
  return html`<p class="on-paper since">${done} em ${day(at.toISOString())} às ${clock(at)}; datas e horas no fuso ${zone()}.</p>`;
}

/** What has changed since. It lies over the end of the list and moves no row: one that moves just before a press opens another report.
 * @param {{list: import("../lists.js").ListState, subject: string[], item: string}} props */
export function News({ list, subject, item }) {
  const difference_ = list.news && list.result ? difference(list.result, list.news, item) : null;
  useEffect(() => {
    if (difference_) announce(`Há novidades: ${words(difference_, subject)}.`);
  }, [list.news]);
  if (!difference_) return null;
  const show = () => {
    list.reload();
    scrollTo(0, 0);
  };
  return html`<div class="news">
    <span>Há novidades: ${words(difference_, subject)}.</span>
    <button type="button" data-news onClick=${show}>Mostrar <kbd aria-hidden="true">r</kbd></button>
  </div>`;
}

/** @param {{total: number, fresh: number, changed: number}} difference_ @param {string[]} subject */
function words({ total, fresh, changed }, subject) {
  const [one, many] = subject;
  // If the total changed, new rows on this page say nothing more: count only rows that were there and changed.
  const rows = total ? changed : fresh;
  const sentences = [];
  if (total) sentences.push(`${plural(Math.abs(total), one, many)} a ${total > 0 ? "mais" : "menos"}`);
  if (rows) sentences.push(`${plural(rows, "linha", "linhas")} desta página ${rows === 1 ? "mudou" : "mudaram"}`);
  return sentences.join("; ") || "a lista mudou";
}
