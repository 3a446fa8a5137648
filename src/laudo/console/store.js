// The one store: what outlives a view. Views read it with useStore and change it with store.set.
import { useEffect, useState } from "./vendor/preact.js";
import { at } from "./address.js";

/**
 * @typedef {import("./address.js").Place} Place
 * @typedef {object} State
 * @property {string|null} token       of the caller; kept in sessionStorage by session.js, never in an address
 * @property {string} session         names this session in the entries of the history; "" without a token
 * @property {string} notice           why the caller is asked for a token again
 * @property {Place} place             where the caller is
 * @property {string} visited         whose reports were looked at last, out of the list of people
 * @property {boolean} revealed        whether CPFs are shown whole until the caller leaves
 * @property {string|null} dialog      which dialog is open
 * @property {number} maxRows          the largest page that the server gives
 * @property {"auto"|"light"|"dark"} theme
 * @property {boolean} keys            whether single keys are shortcuts
 * @property {{turn: number, text: string}[]} said  what the live region says, the newest last
 */

/** How much of what was said stays. */
const SAID = 3;

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
  place: at("relatorios"),
  visited: "",
  revealed: false,
  dialog: null,
  maxRows: 25,
  theme: "auto",
  keys: true,
  said: [],
});

/**
 * Read a part of the store and be drawn again when that part changes.
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

/** Remember a choice for the next time, where the browser has room for it. @param {string} name @param {string} choice */
export function remember(name, choice) {
  try {
    localStorage.setItem(name, choice);
  } catch {
    // It holds for as long as the page is there.
  }
}

/** Say something to those who cannot see the screen, also what was said before, and beside what is said at the same moment.
 * @param {string} text */
export function say(text) {
  const { said } = store.get();
  store.set({ said: [...said.slice(1 - SAID), { turn: (said.at(-1)?.turn ?? 0) + 1, text }] });
}
