// The caller's session: the token is in sessionStorage while the tab lives, and removed when the caller signs out.
import { connect } from "./api.js";
import { forgetPlace, go } from "./router.js";
import { storageKey } from "./service.js";
import { store } from "./store.js";

const TOKEN = storageKey("token");
const SESSION = storageKey("session");
const REVEALED = storageKey("revealed");

/** @type {{token: string, api: import("./api.js").Api}|null} */
let current = null;

/** Whether the browser lets a page store anything. If all cookies are blocked, even reading `sessionStorage` throws. */
export function canStore() {
  try {
    return Boolean(sessionStorage && localStorage);
  } catch {
    return false;
  }
}

/** The token of this tab's session; "" without one. */
export function storedToken() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** Resume the session after a reload. */
export function resumeSession() {
  const token = storedToken() || null;
  store.set({ token, session: token ? sessionName() : "", revealed: sessionStorage.getItem(REVEALED) === "1" });
}

/** The client of the caller; throws without one. @returns {import("./api.js").Api} */
export function api() {
  const { token } = store.get();
  if (!token) throw new Error("no token");
  if (current?.token !== token) current = { token, api: connect(token) };
  return current.api;
}

/** Sign in with a token that the server has accepted. @param {string} token */
export function signIn(token) {
  sessionStorage.setItem(TOKEN, token);
  store.set({ token, session: sessionName() });
  // From now on the history entry belongs to this session.
  go(store.get().place, { replace: true });
}

/** Sign out, and forget everything that was shown. `notice` says why, unless the caller asked for it. @param {string} [notice] */
export function signOut(notice = "") {
  for (const name of [TOKEN, SESSION, REVEALED]) sessionStorage.removeItem(name);
  current = null;
  store.set({ token: null, session: "", visited: "", revealed: false, notice, messages: [] });
  forgetPlace();
}

/** Reload a page that "back" restores from the browser's back/forward cache if the session has changed since. */
export function reloadRestoredPage() {
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
function sessionName() {
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
export function isPlausible(text) {
  return /^[\x21-\x2b\x2d-\x7e]{16,200}$/.test(text);
}
