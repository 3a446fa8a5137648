// Keyboard shortcuts. Single keys can be switched off. In a field none works, except ↓, which goes from a search to its results.
import { remember, store } from "./store.js";

const KEYS = "laudo.keys";

/** The shortcuts that the dialog lists. */
export const SHORTCUTS = [
  ["/", "Busca rápida: CPF, CNPJ, número do relatório ou nome"],
  ["↓ ↑", "Próxima linha, linha anterior (ou j e k); na busca, ↓ leva à lista"],
  ["Enter", "Abrir a linha"],
  ["Esc", "Fechar o relatório ou a janela"],
  ["→ ←", "Próxima página, página anterior"],
  ["r", "Mostrar as novidades; no painel, atualizar"],
  ["1 2 3 4", "Relatórios, Pessoas, Painel, Perfil"],
  ["?", "Estes atalhos"],
];

/** Switch the shortcuts on or off. @param {boolean} keys */
export function switchKeys(keys) {
  remember(KEYS, keys ? "1" : "0");
  store.set({ keys });
}

/** Start listening to keys. */
export function listenToKeys() {
  store.set({ keys: localStorage.getItem(KEYS) !== "0" });
  addEventListener("keydown", (event) => {
    const { keys, token } = store.get();
    if (!token || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // Shift and an arrow change the selection.
    if (event.shiftKey && event.key.startsWith("Arrow")) return;
    const row = event.key === "ArrowDown" || event.key === "ArrowUp";
    const fromSearch = event.key === "ArrowDown" && event.target instanceof HTMLInputElement && event.target.type === "search";
    if ((isField(event.target) && !fromSearch) || document.querySelector("dialog:modal")) return;
    if (!keys && !row && event.key !== "Escape") return;
    // A held key moves along the rows only. Turning a page for each repetition would exceed the browser's limit on history entries.
    if (event.repeat && !row && !/^[jk]$/.test(event.key)) return;
    if (press(event.key)) event.preventDefault();
  });
}

/** @param {EventTarget|null} target */
function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));
}

/** Do what a key stands for; gives whether it stands for anything. @param {string} key */
function press(key) {
  if (key === "?") store.set({ dialog: "atalhos" });
  else if (key === "/") focus("[data-find]");
  else if (key === "ArrowDown" || key === "j") return step(1);
  else if (key === "ArrowUp" || key === "k") return step(-1);
  else if (key === "ArrowRight") return click(".pager a[rel=next]");
  else if (key === "ArrowLeft") return click(".pager a[rel=prev]");
  else if (key === "r") return click("[data-news]");
  else if (key === "Escape") return click("[data-close]");
  else if (/^[1-4]$/.test(key)) return click(`[data-view="${key}"]`);
  else return false;
  return true;
}

/** @param {string} selector */
function focus(selector) {
  const found = document.querySelector(selector);
  if (found instanceof HTMLInputElement) {
    found.focus();
    found.select();
  }
}

/** @param {string} selector */
function click(selector) {
  const found = document.querySelector(selector);
  if (found instanceof HTMLElement) found.click();
  return found !== null;
}

/** Move the focus along the rows. If no row has it, start from the one that is open or was visited last; from a field, go to the first. @param {number} by */
function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return false;
  const focused = document.activeElement;
  const from = focused?.closest("tbody tr") ?? (isField(focused) ? null : document.querySelector("tr.open, tr.visited"));
  const index = rows.findIndex((row) => from?.contains(row));
  const found = rows[index < 0 ? (by > 0 ? 0 : rows.length - 1) : index + by];
  if (found instanceof HTMLElement) found.focus();
  return true;
}
