// The only store: state that outlives a view. Views read it with useStore and change it with store.set.
import { useEffect, useState } from "./vendor/preact.js";
import { placeAt } from "./address.js";

/**
 * @typedef {import("./address.js").Place} Place
 * @typedef {object} State
 * @property {string|null} token       the caller's; session.js keeps it in sessionStorage, never in an address
 * @property {string} session         the session's name in history entries; "" without a token
 * @property {string} notice           why the caller has to sign in again
 * @property {Place} place             where the caller is
 * @property {string} visited         the CPF that was last opened from the list of people
 * @property {boolean} revealed        whether all CPFs are shown whole
 * @property {string|null} dialog      which dialog is open
 * @property {number} maxRows          the largest page size that the server accepts
 * @property {"auto"|"light"|"dark"} theme
 * @property {boolean} keys            whether single-key shortcuts are on
 * @property {{id: number, text: string}[]} messages  the messages in the live region, the newest last
 */

/** How many messages stay in the live region. */
const MOST_MESSAGES = 3;

/** @param {State} initial */
function createStore(initial) {
  let state = initial;
  /** @type {Set<() => void>} */
  const listeners = new Set();
  return {
    get: () => state,
    /** @param {Partial<State>} change */
    set(change) {
      state = { ...state, ...change };
      for (const listener of [...listeners]) listener();
    },
    /** @param {() => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const store = createStore({
  token: null,
  session: "",
  notice: "",
  place: placeAt("relatorios"),
  visited: "",
  revealed: false,
  dialog: null,
  maxRows: 25,
  theme: "auto",
  keys: true,
  messages: [],
});

/**
 * Read a part of the store, and draw again when it changes.
 * @template T
 * @param {(state: State) => T} select
 * @returns {T}
 */
export function useStore(select) {
  const [, redraw] = useState(0);
  const value = select(store.get());
  useEffect(() => {
    let last = value;
    const check = () => {
      const now = select(store.get());
      if (now !== last) {
        last = now;
        redraw((/** @type {number} */ count) => count + 1);
      }
    };
    check();
    return store.subscribe(check);
  }, []);
  return value;
}

/** Remember a choice for the next visit, if the browser can store it. @param {string} name @param {string} choice */
export function remember(name, choice) {
  try {
    localStorage.setItem(name, choice);
  } catch {
    // Without storage, the choice holds until the page is closed.
  }
}

/** Announce something to screen readers. Repeated and simultaneous messages are announced, too.
 * @param {string} text */
export function announce(text) {
  const { messages } = store.get();
  store.set({ messages: [...messages.slice(1 - MOST_MESSAGES), { id: (messages.at(-1)?.id ?? 0) + 1, text }] });
}
