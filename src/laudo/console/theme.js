// The theme: light, dark, or that of the system. The browser remembers the choice.
import { remember, store } from "./store.js";

const THEME = "laudo.theme";
const ORDER = /** @type {const} */ (["auto", "light", "dark"]);

export const THEMES = { auto: "igual ao do sistema", light: "claro", dark: "escuro" };

/** Restore the choice of the last visit. */
export function restoreTheme() {
  const kept = localStorage.getItem(THEME);
  applyTheme(ORDER.find((theme) => theme === kept) ?? "auto");
}

/** Change to the next of the three themes. */
export function switchTheme() {
  const next = ORDER[(ORDER.indexOf(store.get().theme) + 1) % ORDER.length];
  remember(THEME, next);
  applyTheme(next);
}

/** @param {"auto"|"light"|"dark"} theme */
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  store.set({ theme });
}
