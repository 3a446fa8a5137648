// The caller's session: the token is in sessionStorage while the tab lives, and removed when the caller signs out.
import { connect } from "./api.js";
import { forget } from "./router.js";
import { own } from "./service.js";
import { store } from "./store.js";

const TOKEN = own("token");
const SESSION = own("session");
const REVEALED = own("revealed");

/** @type {{token: string, api: import("./api.js").Api}|null} */
let current = null;

/** Whether the browser lets a page store anything. If all cookies are blocked, even reading `sessionStorage` throws. */
export function keeps() {
  try {
    return Boolean(sessionStorage && localStorage);
  } catch {
    return false;
  }
}

/** The token of this tab's session; "" without one. */
export function kept() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** Resume the session after a reload. */
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

/** Sign in with a token that the server has accepted. @param {string} token */
export function enter(token) {
  sessionStorage.setItem(TOKEN, token);
  store.set({ token, session: named() });
}

/** Sign out, and forget everything that was shown. `notice` says why, unless the caller asked for it. @param {string} [notice] */
export function leave(notice = "") {
  for (const name of [TOKEN, SESSION, REVEALED]) sessionStorage.removeItem(name);
  current = null;
  store.set({ token: null, session: "", visited: "", revealed: false, notice, said: [] });
  forget();
}

/** Reload a page that "back" restores from the browser's back/forward cache if the session has changed since. */
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

/** The random name of this session, which survives a reload. */
function named() {
  const name = sessionStorage.getItem(SESSION) ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  sessionStorage.setItem(SESSION, name);
  return name;
}

/** Show CPFs whole, or masked again, until the caller signs out. @param {boolean} revealed */
export function reveal(revealed) {
  if (revealed) sessionStorage.setItem(REVEALED, "1");
  else sessionStorage.removeItem(REVEALED);
  store.set({ revealed });
}

/** Whether a text could be a token. @param {string} text */
export function plausible(text) {
  return /^[\x21-\x2b\x2d-\x7e]{16,200}$/.test(text);
}
