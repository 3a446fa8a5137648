// Between the store's place and the browser's history.
import { beside, read, write } from "./address.js";
import { store } from "./store.js";

/** @typedef {import("./address.js").Place} Place */

const TITLES = { relatorios: "Relatórios", pessoas: "Pessoas", painel: "Painel", perfil: "Perfil" };

/** Go somewhere, as a step that "back" undoes unless `replace`. @param {Place} place @param {{replace?: boolean}} [how] */
export function go(place, { replace = false } = {}) {
  const address = write(place);
  if (replace) history.replaceState(beside(place), "", address);
  else history.pushState(beside(place), "", address);
  arrive(place);
}

/** Follow the browser from now on. */
export function follow() {
  addEventListener("popstate", () => arrive(here()));
  go(here(), { replace: true });
}

/** Forget the person that this entry of the history is about. */
export function forget() {
  history.replaceState(null, "", location.pathname);
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

function here() {
  return read(location.hash, history.state);
}

/** @param {Place} place */
function arrive(place) {
  document.title = `${TITLES[place.view]} · laudo`;
  store.set({ place, dialog: null });
}
