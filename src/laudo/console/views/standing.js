// How what is shown stands: when it was last true, whether it is awaited, and what has become known since.
import { html, useEffect } from "../vendor/preact.js";
import { clock, plural } from "../format.js";
import { useLate } from "../lists.js";
import { say } from "../store.js";
import { difference } from "../totals.js";

const STILL = "Ainda buscando…";

/** That what is asked for takes longer than a moment, and on paper that it is awaited at all; until then what else there is to say.
 * @param {{going: boolean, children?: any}} props */
export function Late({ going, children }) {
  const late = useLate(going);
  useEffect(() => {
    if (late) say(STILL);
  }, [late]);
  return html`${going && html`<p class=${late ? "checked off awaited" : "on-paper"}>${STILL}</p>`}${!late && children}`;
}

/** When the list was last known to be true, or that it is still being asked for. @param {{list: import("../lists.js").Asked}} props */
export function Checked({ list }) {
  return html`<${Late} going=${list.loading}><${Since} list=${list} /><//>`;
}

/** @param {{list: import("../lists.js").Asked}} props */
function Since({ list }) {
  if (!list.checked) return null;
  return html`<p class="checked ${list.stale ? "off" : ""}" title="Verificado a cada 20 segundos">${list.stale ? "sem atualização desde" : "atualizado às"} ${clock(list.checked)}</p>`;
}

/** What has become known since, without moving what is being read.
 * @param {{list: import("../lists.js").Asked, subject: string[], item: string}} props */
export function News({ list, subject, item }) {
  const difference_ = list.news && list.result ? difference(list.result, list.news, item) : null;
  useEffect(() => {
    if (difference_) say(`Há novidades: ${words(difference_, subject)}.`);
  }, [list.news]);
  if (!difference_) return null;
  return html`<div class="news">
    <span>Há novidades: ${words(difference_, subject)}.</span>
    <button type="button" data-news onClick=${list.reload}>Mostrar <kbd aria-hidden="true">r</kbd></button>
  </div>`;
}

/** @param {{total: number, updated: number}} difference_ @param {string[]} subject */
function words({ total, updated }, subject) {
  const [one, many] = subject;
  if (total > 0) return `${plural(total, one, many)} a mais`;
  if (total < 0) return `${plural(-total, one, many)} a menos`;
  return updated ? `${plural(updated, "linha", "linhas")} desta página ${updated === 1 ? "mudou" : "mudaram"}` : "a lista mudou";
}
