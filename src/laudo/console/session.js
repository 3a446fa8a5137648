// The caller's token: in sessionStorage while the tab lives, gone when the caller leaves.
import { connect } from "./api.js";
import { forget } from "./router.js";
import { own } from "./service.js";
import { store } from "./store.js";

const TOKEN = own("token");
const SESSION = own("session");
const REVEALED = own("revealed");

/** @type {{token: string, api: import("./api.js").Api}|null} */
let current = null;

/** Whether the browser lets a page keep something for a tab: where all cookies are blocked, asking is an error already. */
export function keeps() {
  try {
    return Boolean(sessionStorage && localStorage);
  } catch {
    return false;
  }
}

/** The token of the session that this tab is in, "" without one. */
export function kept() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** Take up the session that a reload interrupted. */
export function resume() {
  const token = kept() || null;
  store.set({ token, session: token ? named() : "", revealed: sessionStorage.getItem(REVEALED) === "1" });
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
  store.set({ token, session: named() });
}

/** Leave, and forget all that was seen; `notice` says why when the caller did not choose to. @param {string} [notice] */
export function leave(notice = "") {
  for (const name of [TOKEN, SESSION, REVEALED]) sessionStorage.removeItem(name);
  current = null;
  store.set({ token: null, session: "", visited: "", revealed: false, notice, said: [] });
  forget();
}

/** Let a page that the browser kept whole, and shows again by "back", begin anew where the session is another one by now. */
export function renewKept() {
  /** @type {string|null} */
  let before = null;
  addEventListener("pagehide", () => {
    before = sessionStorage.getItem(SESSION);
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted || sessionStorage.getItem(SESSION) === before) return;
    document.body.replaceChildren();
    location.reload();
  });
}

/** The name of this session, the same after a reload. */
function named() {
  const name = sessionStorage.getItem(SESSION) ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  sessionStorage.setItem(SESSION, name);
  return name;
}

/** Show CPFs whole, or masked again, until the caller leaves. @param {boolean} revealed */
export function reveal(revealed) {
  if (revealed) sessionStorage.setItem(REVEALED, "1");
  else sessionStorage.removeItem(REVEALED);
  store.set({ revealed });
}

/** Tell whether a text could be a token at all. @param {string} text */
export function plausible(text) {
  return /^[\x21-\x2b\x2d-\x7e]{16,200}$/.test(text);
}
