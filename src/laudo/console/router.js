// Keeps the store's place and the browser's history in step.
import { hashOf, privateFilters, readHash } from "./address.js";
import { store } from "./store.js";

/** @typedef {import("./address.js").Place} Place */

/** The title of each view. */
export const TITLES = { relatorios: "Relatórios", pessoas: "Pessoas", painel: "Painel", perfil: "Perfil" };

/** The title of a place. @param {Place} place */
export function titleOf({ view, open }) {
  return open ? `Relatório ${open.slice(0, 8)}` : TITLES[view];
}

/** Go to a place. Adds a history entry, unless `replace` is set or the caller is there already. @param {Place} place @param {{replace?: boolean}} [how] */
export function go(place, { replace = false } = {}) {
  const address = hashOf(place);
  const entry = { session: store.get().session, beside: privateFilters(place) };
  const stays = address === location.hash && JSON.stringify(entry) === JSON.stringify(history.state);
  if (replace || stays) history.replaceState(entry, "", address);
  else history.pushState(entry, "", address);
  const { place: before, dialog } = store.get();
  const leaves = place.view !== before.view;
  if (leaves) scrollTo(0, 0);
  // A search that was typed before a dialog opened takes effect below it: the dialog stays open.
  show(place, leaves ? null : dialog);
}

/** Start following the browser's history. */
export function followHistory() {
  // A typed address may contain private values or errors: replace it by what `hashOf` makes of it.
  addEventListener("popstate", () => (hashOf(currentPlace()) === location.hash ? show(currentPlace()) : go(currentPlace(), { replace: true })));
  go(currentPlace(), { replace: true });
}

/** Go to the first place, and remove from this history entry what was looked at. */
export function forgetPlace() {
  history.replaceState(null, "", location.href.split("#")[0]);
  show(currentPlace());
}

/** Handle a plain click on a link as `go`. Other mouse buttons and modifier keys are left to the browser.
 * @param {Place} place @returns {(event: MouseEvent) => void} */
export function link(place) {
  return (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(place);
  };
}

/** The current place. What the history entry holds beside the address counts only in the session that wrote it. */
function currentPlace() {
  const entry = history.state;
  return readHash(location.hash, entry?.session === store.get().session ? entry.beside : null);
}

/** @param {Place} place @param {string|null} [dialog] the one that stays open */
function show(place, dialog = null) {
  store.set({ place, dialog });
}
