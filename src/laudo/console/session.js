// The caller's token: in sessionStorage while the tab lives, gone when the caller leaves.
import { connect } from "./api.js";
import { forget } from "./router.js";
import { store } from "./store.js";

const TOKEN = "laudo.token";
const REVEALED = "laudo.revealed";

/** @type {{token: string, api: import("./api.js").Api}|null} */
let current = null;

/** Take up the session that a reload interrupted. */
export function resume() {
  const token = sessionStorage.getItem(TOKEN);
  store.set({ token, revealed: sessionStorage.getItem(REVEALED) === "1" });
}

/** The client of the caller; throws without one. @returns {import("./api.js").Api} */
export function api() {
  const { token } = store.get();
  if (!token) throw new Error("no token");
  if (current?.token !== token) current = { token, api: connect(token) };
  return current.api;
}

/** Enter with a token that has been tried. @param {string} token */
export function enter(token) {
  sessionStorage.setItem(TOKEN, token);
  store.set({ token, notice: "" });
}

/** Leave, and forget all that was seen; `notice` says why when the caller did not choose to. @param {string} [notice] */
export function leave(notice = "") {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(REVEALED);
  current = null;
  forget();
  store.set({ token: null, revealed: false, notice, dialog: null, said: "" });
}

/** Show CPFs whole, or masked again, until the caller leaves. @param {boolean} revealed */
export function reveal(revealed) {
  if (revealed) sessionStorage.setItem(REVEALED, "1");
  else sessionStorage.removeItem(REVEALED);
  store.set({ revealed });
}

/** Tell whether a text could be a token at all. @param {string} text */
export function plausible(text) {
  return /^[\x21-\x2b\x2d-\x7e]{8,200}$/.test(text);
}
