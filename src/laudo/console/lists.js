// Hooks for the views: they request an answer, keep it until the next one arrives, and check from time to time whether it has changed.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { Refusal, UNREADABLE } from "./api.js";
import { api, leave } from "./session.js";
import { say } from "./store.js";

const REFRESH_MS = 20_000;
const MOST_WAIT_S = 60;
const LATE_MS = 1500;

/**
 * @typedef {object} Asked
 * @property {any} result        of the last answer, also while the next one is awaited
 * @property {boolean} loading
 * @property {Refusal|null} refusal
 * @property {number} wait       seconds until the automatic retry; 0 when there is none
 * @property {any} news          a newer answer that is not shown yet
 * @property {Date|null} checked when the answer was last known to be true
 * @property {boolean} stale     whether the last attempt to check it again failed
 * @property {boolean} other     whether the result is of another page or order, because the requested one was refused
 * @property {number} turn       how often a new answer was requested
 * @property {() => void} reload
 *
 * @typedef {Omit<Asked, "turn"|"wait"|"reload"> & {question: string, of: string}} State  what is known. `question` is what was asked; `of` is the same without page and order
 */

/**
 * Request a list, and again whenever the question changes.
 * @param {string} path @param {Record<string, string>} parameters
 * @returns {Asked}
 */
export function useList(path, parameters) {
  const question = JSON.stringify([path, parameters]);
  const { page, rows, sort, ...filters } = parameters;
  const of = JSON.stringify([path, filters]);
  // Show a remembered answer at once, so that "back" can restore the scroll position.
  const recalled = () => {
    const known = api().recall(path, parameters);
    return known && { question, of, result: known.body.result, checked: known.at, other: false };
  };
  const [state, setState] = useState(() => /** @type {State} */ ({ question, of, result: null, loading: true, refusal: null, news: null, checked: null, stale: false, other: false, ...recalled() }));
  const [turn, again] = useTurn();
  const voice = useVoice(question);
  // A layout effect runs before the page is painted, so the server works meanwhile.
  useLayoutEffect(() => {
    const stop = new AbortController();
    setState((/** @type {State} */ old) => ({ ...old, ...(old.question !== question && recalled()), loading: true, news: null }));
    api()
      .ask(path, parameters, { signal: stop.signal })
      .then(({ body, at }) => {
        voice.forget();
        setState({ question, of, result: body.result, loading: false, refusal: null, news: null, checked: at, stale: false, other: false });
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        const refusal = voice.refused(error);
        // Drop the rows of another list: below these filters, they would be taken for their result.
        const left = (/** @type {State} */ old) => (old.of === of ? { other: old.other || old.question !== question } : { of, result: null, checked: null, other: false });
        setState((/** @type {State} */ old) => ({ ...old, ...left(old), question, loading: false, refusal, stale: true }));
      });
    return () => stop.abort();
  }, [question, turn]);
  const wait = useCountdown(state.loading ? null : state.refusal, again);
  useRefresh(JSON.stringify([question, turn]), path, parameters, state, setState);
  return { ...state, loading: state.loading || state.question !== question, turn, wait, reload: voice.anew(again) };
}

/** The state before anything was asked. */
const NOTHING = { question: null, turn: 0, value: null, refusal: null };

/**
 * Ask once for each value of `question`. If it is null, ask nothing and forget the answer. If a retry is refused, keep the previous answer.
 * @template T @param {string|null} question @param {(signal: AbortSignal) => Promise<T>} ask
 * @returns {{value: T|null, loading: boolean, refusal: Refusal|null, wait: number, retry: () => void}}
 */
export function useOnce(question, ask) {
  const [found, setFound] = useState(/** @type {{question: string|null, turn: number, value: T|null, refusal: Refusal|null}} */ (NOTHING));
  const [turn, again] = useTurn();
  const voice = useVoice(question);
  useEffect(() => {
    if (question === null) return setFound(NOTHING);
    const stop = new AbortController();
    ask(stop.signal)
      .then((value) => {
        if (stop.signal.aborted) return;
        voice.forget();
        setFound({ question, turn, value, refusal: null });
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        const refusal = voice.refused(error);
        setFound((/** @type {typeof found} */ old) => ({ question, turn, value: old.question === question ? old.value : null, refusal }));
      });
    return () => stop.abort();
  }, [question, turn]);
  const { value, refusal } = found.question === question ? found : { value: null, refusal: null };
  const loading = question !== null && (found.question !== question || found.turn !== turn);
  return { value, loading, refusal, wait: useCountdown(loading ? null : refusal, again), retry: voice.anew(again) };
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
export function useTurn() {
  const [turn, setTurn] = useState(0);
  return [turn, useCallback(() => setTurn((/** @type {number} */ count) => count + 1), [])];
}

/** Seconds to wait before a retry; 0 for no automatic retry. @param {Refusal|null} refusal */
function waitFor(refusal) {
  if (refusal?.kind === "limit" || refusal?.kind === "unavailable") return Math.min(refusal.retryAfter || 5, MOST_WAIT_S);
  return refusal?.kind === "offline" ? 10 : 0;
}

/** Retry after a refusal, once that may help; gives the seconds until then. @param {Refusal|null} refusal @param {() => void} again */
export function useCountdown(refusal, again) {
  const [wait, setWait] = useState(0);
  useEffect(() => setWait(waitFor(refusal)), [refusal]);
  useEffect(() => {
    if (!wait) return undefined;
    const timer = setTimeout(() => {
      setWait(wait - 1);
      if (wait === 1) again();
    }, 1000);
    return () => clearTimeout(timer);
  }, [wait]);
  useEffect(() => {
    if (!refusal) return undefined;
    addEventListener("online", again);
    return () => removeEventListener("online", again);
  }, [refusal]);
  return wait;
}

/** Check for changes from time to time. News is not shown until the caller asks for it. Only one check runs at a time, and a new `asking`
 * aborts it, so that no older answer is taken for news.
 * @param {string} asking @param {string} path @param {Record<string, string>} parameters
 * @param {State} state @param {(change: (old: State) => State) => void} setState */
function useRefresh(asking, path, parameters, state, setState) {
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    const stop = new AbortController();
    let looking = false;
    const look = async () => {
      if (looking || document.hidden || latest.current.loading || latest.current.refusal) return;
      looking = true;
      try {
        const { body, at } = await api().ask(path, parameters, { signal: stop.signal });
        setState((old) => ({ ...old, checked: at, stale: false, news: newer(old, body.result) }));
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Refusal && error.kind === "auth") refused(error);
        else setState((old) => ({ ...old, stale: true }));
      } finally {
        looking = false;
      }
    };
    const timer = setInterval(look, REFRESH_MS);
    document.addEventListener("visibilitychange", look);
    addEventListener("online", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      removeEventListener("online", look);
      stop.abort();
    };
  }, [asking]);
}

/** The news in a newer answer; null if it shows the same. @param {State} old @param {any} result */
function newer({ result: shown, news }, result) {
  return shown && isSame(shown, result) ? null : news && isSame(news, result) ? news : result;
}

/** Whether two answers show the same. The ETag also changes with reports that are not on this page. @param {any} one @param {any} other results */
export function isSame(one, other) {
  const [shown, others] = [one, other].map(({ paginacao, itens }) => JSON.stringify([paginacao.total, itens]));
  return shown === others;
}

/** An outage refuses several requests at once: the same message within this time is announced only once. */
const OUTAGE_MS = 1000;
let heard = { message: "", at: 0 };

/** Announce a refusal once during automatic retries; again if the message changes, or if somebody retries by hand.
 * @param {string|null} question */
function useVoice(question) {
  const said = useRef({ question, message: "" });
  if (said.current.question !== question) said.current = { question, message: "" };
  const forget = () => {
    said.current.message = "";
  };
  return {
    forget,
    /** @param {unknown} error */
    refused(error) {
      const refusal = refused(error, said.current.message);
      said.current.message = refusal.message;
      return refusal;
    },
    /** @param {() => void} again */
    anew: (again) => () => {
      forget();
      again();
    },
  };
}

/** Turn any error into a Refusal and announce it, unless its message is `before`. If the token was refused, end the session.
 * @param {unknown} error @param {string} [before] @returns {Refusal} */
export function refused(error, before = "") {
  const refusal = error instanceof Refusal ? error : new Refusal("server", UNREADABLE);
  if (refusal.kind === "auth") leave("O token não é mais aceito. Entre novamente.");
  else {
    const at = performance.now();
    const again = refusal.message === before || (refusal.message === heard.message && at - heard.at <= OUTAGE_MS);
    if (!again) {
      say(refusal.message);
      heard = { message: refusal.message, at };
    }
  }
  return refusal;
}
