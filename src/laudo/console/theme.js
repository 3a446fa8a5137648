// The theme: light, dark, or that of the system. The browser remembers the choice.
import { remember, store } from "./store.js";

const THEME = "laudo.theme";
const ORDER = /** @type {const} */ (["auto", "light", "dark"]);

export const THEMES = { auto: "igual ao do sistema", light: "claro", dark: "escuro" };

/** Restore the choice of the last visit. */
export function resumeTheme() {
  const kept = localStorage.getItem(THEME);
  wear(ORDER.find((theme) => theme === kept) ?? "auto");
}

/** Change to the next of the three themes. */
export function turnTheme() {
  const next = ORDER[(ORDER.indexOf(store.get().theme) + 1) % ORDER.length];
  remember(THEME, next);
  wear(next);
}

/** @param {"auto"|"light"|"dark"} theme */
function wear(theme) {
  document.documentElement.dataset.theme = theme;
  store.set({ theme });
}
