// Between the store's place and the browser's history.
import { beside, read, write } from "./address.js";
import { store } from "./store.js";

/** @typedef {import("./address.js").Place} Place */

/** What each view is called. */
export const TITLES = { relatorios: "Relatórios", pessoas: "Pessoas", painel: "Painel", perfil: "Perfil" };

/** What a place is called. @param {Place} place */
export function titleOf({ view, open }) {
  return open ? `Relatório ${open.slice(0, 8)}` : TITLES[view];
}

/** Go somewhere, as a step that "back" undoes unless `replace` or one is there already. @param {Place} place @param {{replace?: boolean}} [how] */
export function go(place, { replace = false } = {}) {
  const address = write(place);
  const entry = { session: store.get().session, beside: beside(place) };
  const stays = address === location.hash && JSON.stringify(entry) === JSON.stringify(history.state);
  if (replace || stays) history.replaceState(entry, "", address);
  else history.pushState(entry, "", address);
  const { place: before, dialog } = store.get();
  const leaves = place.view !== before.view;
  if (leaves) scrollTo(0, 0);
  // What was typed before a dialog opened is looked for below it.
  arrive(place, leaves ? null : dialog);
}

/** Follow the browser from now on. */
export function follow() {
  // An address that was typed may say what none may hold.
  addEventListener("popstate", () => (write(here()) === location.hash ? arrive(here()) : go(here(), { replace: true })));
  go(here(), { replace: true });
}

/** Be where one begins, and let this entry of the history say nothing of what was looked at. */
export function forget() {
  history.replaceState(null, "", location.href.split("#")[0]);
  arrive(here());
}

/** Make a click on a link a step of ours; other buttons and keys stay the browser's.
 * @param {Place} place @returns {(event: MouseEvent) => void} */
export function link(place) {
  return (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(place);
  };
}

/** What an entry holds beside its address is for the session that put it there. */
function here() {
  const entry = history.state;
  return read(location.hash, entry?.session === store.get().session ? entry.beside : null);
}

/** @param {Place} place @param {string|null} [dialog] the one that is still open there */
function arrive(place, dialog = null) {
  store.set({ place, dialog });
}
