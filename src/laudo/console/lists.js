// Hooks for the views: they request an answer, keep it until the next one arrives, and check from time to time whether it has changed.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { Refusal, UNREADABLE } from "./api.js";
import { api, signOut } from "./session.js";
import { announce } from "./store.js";

const REFRESH_MS = 20_000;
const MOST_WAIT_S = 60;
const LATE_MS = 1500;

/**
 * @typedef {object} ListState
 * @property {any} result        of the last answer, also while the next one is awaited
 * @property {boolean} loading
 * @property {Refusal|null} refusal
 * @property {number} wait       seconds until the automatic retry; 0 when there is none
 * @property {any} news          a newer answer that is not shown yet
 * @property {Date|null} checked when the answer was last known to be true
 * @property {boolean} stale     whether the last attempt to check it again failed
 * @property {boolean} other     whether the result is of another page or order, because the requested one was refused
 * @property {number} repeats    how often a new answer was requested
 * @property {() => void} reload
 *
 * @typedef {Omit<ListState, "repeats"|"wait"|"reload"> & {question: string, listKey: string}} State  what is known. `question` is what was asked; `listKey` is the same without page and order
 */

/**
 * Request a list, and again whenever the question changes.
 * @param {string} path @param {Record<string, string>} parameters
 * @returns {ListState}
 */
export function useList(path, parameters) {
  const question = JSON.stringify([path, parameters]);
  const { page, rows, sort, ...filters } = parameters;
  const listKey = JSON.stringify([path, filters]);
  // Show a remembered answer at once, so that "back" can restore the scroll position.
  const recalled = () => {
    const known = api().recall(path, parameters);
    return known && { question, listKey, result: known.body.result, checked: known.at, other: false };
  };
  const [state, setState] = useState(() => /** @type {State} */ ({ question, listKey, result: null, loading: true, refusal: null, news: null, checked: null, stale: false, other: false, ...recalled() }));
  const [repeats, repeat] = useRepeats();
  const announcer = useAnnouncer(question);
  // A layout effect runs before the page is painted, so the server works meanwhile.
  useLayoutEffect(() => {
    const stop = new AbortController();
    setState((/** @type {State} */ old) => ({ ...old, ...(old.question !== question && { refusal: null, ...recalled() }), loading: true, news: null }));
    api()
      .ask(path, parameters, { signal: stop.signal })
      .then(({ body, at }) => {
        setState({ question, listKey, result: body.result, loading: false, refusal: null, news: null, checked: at, stale: false, other: false });
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        const refusal = announcer.announce(error);
        // Drop the rows of another list: below these filters, they would be taken for their result.
        const rowsToKeep = (/** @type {State} */ old) => (old.listKey === listKey ? { other: old.other || old.question !== question } : { listKey, result: null, checked: null, other: false });
        setState((/** @type {State} */ old) => ({ ...old, ...rowsToKeep(old), question, loading: false, refusal, stale: true }));
      });
    return () => stop.abort();
  }, [question, repeats]);
  const wait = useCountdown(state.loading ? null : state.refusal, repeat);
  useRefresh(JSON.stringify([question, repeats]), path, parameters, state, setState);
  return { ...state, loading: state.loading || state.question !== question, repeats, wait, reload: announcer.byHand(repeat) };
}

/** The state before anything was asked. */
const NOTHING = { question: null, repeats: 0, value: null, refusal: null };

/**
 * Ask once for each value of `question`. If it is null, ask nothing and forget the answer. If a retry is refused, keep the previous answer.
 * @template T @param {string|null} question @param {(signal: AbortSignal) => Promise<T>} ask
 * @returns {{value: T|null, loading: boolean, refusal: Refusal|null, wait: number, retry: () => void}}
 */
export function useOnce(question, ask) {
  const [found, setFound] = useState(/** @type {{question: string|null, repeats: number, value: T|null, refusal: Refusal|null}} */ (NOTHING));
  const [repeats, repeat] = useRepeats();
  const announcer = useAnnouncer(question);
  useEffect(() => {
    if (question === null) return setFound(NOTHING);
    const stop = new AbortController();
    ask(stop.signal)
      .then((value) => {
        if (stop.signal.aborted) return;
        setFound({ question, repeats, value, refusal: null });
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        const refusal = announcer.announce(error);
        setFound((/** @type {typeof found} */ old) => ({ question, repeats, value: old.question === question ? old.value : null, refusal }));
      });
    return () => stop.abort();
  }, [question, repeats]);
  const { value, refusal } = found.question === question ? found : { value: null, refusal: null };
  const loading = question !== null && (found.question !== question || found.repeats !== repeats);
  return { value, loading, refusal, wait: useCountdown(loading ? null : refusal, repeat), retry: announcer.byHand(repeat) };
}

/** The name by which the organization knows a person ("" until it is known), and the state of that request. @param {string} cpf */
export function useNome(cpf) {
  const list = useList("/pessoas", { cpf });
  // Until the answer arrives, the list still holds the previous one, about another person.
  const person = (list.news ?? list.result)?.itens.find((/** @type {any} */ item) => item.cpf === cpf);
  return { nome: String(person?.nome ?? ""), refusal: list.refusal, reload: list.reload };
}

/** Whether something takes so long that the page should say so. @param {boolean} going */
export function useLate(going) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!going) return undefined;
    const timer = setTimeout(() => setLate(true), LATE_MS);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [going]);
  return late;
}

/** A counter of repetitions, and a function that starts another one. @returns {[number, () => void]} */
export function useRepeats() {
  const [repeats, setRepeats] = useState(0);
  return [repeats, useCallback(() => setRepeats((/** @type {number} */ count) => count + 1), [])];
}

/** Seconds to wait before a retry; 0 for no automatic retry. @param {Refusal|null} refusal */
function waitFor(refusal) {
  if (refusal?.kind === "limit" || refusal?.kind === "unavailable") return Math.min(refusal.retryAfter || 5, MOST_WAIT_S);
  return refusal?.kind === "offline" ? 10 : 0;
}

/** Retry after a refusal, once that may help; gives the seconds until then. @param {Refusal|null} refusal @param {() => void} repeat */
export function useCountdown(refusal, repeat) {
  const [wait, setWait] = useState(0);
  useEffect(() => setWait(waitFor(refusal)), [refusal]);
  useEffect(() => {
    if (!wait) return undefined;
    const timer = setTimeout(() => {
      setWait(wait - 1);
      if (wait === 1) repeat();
    }, 1000);
    return () => clearTimeout(timer);
  }, [wait]);
  useEffect(() => {
    if (!refusal) return undefined;
    addEventListener("online", repeat);
    return () => removeEventListener("online", repeat);
  }, [refusal]);
  return wait;
}

/** Check for changes from time to time. News is not shown until the caller asks for it. Only one check runs at a time, and a new
 * `requestKey` aborts it, so that no older answer is taken for news.
 * @param {string} requestKey @param {string} path @param {Record<string, string>} parameters
 * @param {State} state @param {(change: (old: State) => State) => void} setState */
function useRefresh(requestKey, path, parameters, state, setState) {
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    const stop = new AbortController();
    let checking = false;
    const check = async () => {
      if (checking || document.hidden || latest.current.loading || latest.current.refusal) return;
      checking = true;
      try {
        const { body, at } = await api().ask(path, parameters, { signal: stop.signal });
        setState((old) => ({ ...old, checked: at, stale: false, news: newsIn(old, body.result) }));
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Refusal && error.kind === "auth") announceRefusal(error);
        else setState((old) => ({ ...old, stale: true }));
      } finally {
        checking = false;
      }
    };
    const timer = setInterval(check, REFRESH_MS);
    document.addEventListener("visibilitychange", check);
    addEventListener("online", check);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", check);
      removeEventListener("online", check);
      stop.abort();
    };
  }, [requestKey]);
}

/** The news in a newer answer; null if it shows the same. @param {State} old @param {any} result */
function newsIn({ result: shown, news }, result) {
  return shown && isSame(shown, result) ? null : news && isSame(news, result) ? news : result;
}

/** Whether two answers show the same. The ETag also changes with reports that are not on this page. @param {any} one @param {any} other results */
export function isSame(one, other) {
  const [shown, others] = [one, other].map(({ paginacao, itens }) => JSON.stringify([paginacao.total, itens]));
  return shown === others;
}

/** An outage refuses several requests at once: the same message within this time is announced only once. */
const OUTAGE_MS = 1000;
let lastAnnounced = { message: "", at: 0 };

/** Announce a refusal once during automatic retries; again if the message changes, or if somebody retries by hand.
 * @param {string|null} question */
function useAnnouncer(question) {
  const announced = useRef({ question, message: "" });
  if (announced.current.question !== question) announced.current = { question, message: "" };
  return {
    /** @param {unknown} error */
    announce(error) {
      const refusal = announceRefusal(error, announced.current.message);
      announced.current.message = refusal.message;
      return refusal;
    },
    /** @param {() => void} repeat */
    byHand: (repeat) => () => {
      announced.current.message = "";
      repeat();
    },
  };
}

/** Turn any error into a Refusal and announce it, unless its message is `before`. If the token was refused, end the session.
 * @param {unknown} error @param {string} [before] @returns {Refusal} */
export function announceRefusal(error, before = "") {
  const refusal = error instanceof Refusal ? error : new Refusal("server", UNREADABLE);
  if (refusal.kind === "auth") signOut("O token não é mais aceito. Entre novamente.");
  else {
    const at = performance.now();
    const isRepeated = refusal.message === before || (refusal.message === lastAnnounced.message && at - lastAnnounced.at <= OUTAGE_MS);
    if (!isRepeated) {
      announce(refusal.message);
      lastAnnounced = { message: refusal.message, at };
    }
  }
  return refusal;
}
