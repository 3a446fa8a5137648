// Hooks of the views: an answer that is asked for, kept while the next one comes, and looked at again when it may have changed.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { Refusal } from "./api.js";
import { api, leave } from "./session.js";
import { say } from "./store.js";

const REFRESH_MS = 20_000;
const MOST_WAIT_S = 60;

/**
 * @typedef {object} Asked
 * @property {any} result        the last answer's, also while the next is awaited
 * @property {boolean} loading
 * @property {Refusal|null} refusal
 * @property {number} wait       seconds until it is tried again by itself; 0 when it is not
 * @property {any} news          a newer answer that is not shown yet
 * @property {Date|null} checked when the answer was last known to be true
 * @property {() => void} reload
 *
 * @typedef {Omit<Asked, "wait"|"reload"> & {question: string}} State  what is known, and what question that answers
 */

/**
 * Ask for a list, again whenever the question changes.
 * @param {string} path @param {Record<string, string>} parameters
 * @returns {Asked}
 */
export function useList(path, parameters) {
  const question = JSON.stringify([path, parameters]);
  const [state, setState] = useState(/** @type {State} */ ({ question, result: null, loading: true, refusal: null, news: null, checked: null }));
  const [turn, setTurn] = useState(0);
  const [wait, setWait] = useState(0);
  const reload = useCallback(() => setTurn((/** @type {number} */ count) => count + 1), []);
  // Before the page is painted, so that the server works meanwhile.
  useLayoutEffect(() => {
    const stop = new AbortController();
    setWait(0);
    setState((/** @type {State} */ old) => ({ ...old, loading: true, news: null }));
    api()
      .ask(path, parameters, { signal: stop.signal })
      .then(({ body }) => setState({ question, result: body.result, loading: false, refusal: null, news: null, checked: new Date() }))
      .catch((error) => {
        if (stop.signal.aborted) return;
        const refusal = refused(error);
        setState((/** @type {State} */ old) => ({ ...old, question, loading: false, refusal }));
        setWait(waitFor(refusal));
      });
    return () => stop.abort();
  }, [question, turn]);
  useCountdown(wait, setWait, reload);
  useRefresh(question, path, parameters, state, setState);
  return { ...state, loading: state.loading || state.question !== question, wait, reload };
}

/** Seconds after which a refusal may have passed. @param {Refusal} refusal */
function waitFor(refusal) {
  if (refusal.kind === "limit" || refusal.kind === "unavailable") return Math.min(refusal.retryAfter || 5, MOST_WAIT_S);
  return refusal.kind === "offline" ? 10 : 0;
}

/** @param {number} wait @param {(wait: (old: number) => number) => void} setWait @param {() => void} reload */
function useCountdown(wait, setWait, reload) {
  useEffect(() => {
    if (!wait) return undefined;
    const timer = setTimeout(() => (wait === 1 ? reload() : setWait((left) => left - 1)), 1000);
    return () => clearTimeout(timer);
  }, [wait]);
  useEffect(() => {
    addEventListener("online", reload);
    return () => removeEventListener("online", reload);
  }, []);
}

/** Look again from time to time; what is new waits until it is asked for.
 * @param {string} question @param {string} path @param {Record<string, string>} parameters
 * @param {State} state @param {(change: (old: State) => State) => void} setState */
function useRefresh(question, path, parameters, state, setState) {
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    const stop = new AbortController();
    const look = async () => {
      if (document.hidden || latest.current.loading || latest.current.refusal) return;
      try {
        const answer = await api().ask(path, parameters, { signal: stop.signal });
        setState((old) => ({ ...old, checked: new Date(), news: answer.unchanged ? old.news : answer.body.result }));
      } catch (error) {
        if (error instanceof Refusal && error.kind === "auth") refused(error);
      }
    };
    const timer = setInterval(look, REFRESH_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      stop.abort();
    };
  }, [question]);
}

/** Ask something once for each value of `question`; nothing is shown in its place when it fails.
 * @template T @param {string} question @param {(signal: AbortSignal) => Promise<T>} ask @returns {T|null} */
export function useOnce(question, ask) {
  const [found, setFound] = useState(/** @type {{question: string, value: T}|null} */ (null));
  useEffect(() => {
    const stop = new AbortController();
    ask(stop.signal)
      .then((value) => !stop.signal.aborted && setFound({ question, value }))
      .catch((error) => !stop.signal.aborted && refused(error));
    return () => stop.abort();
  }, [question]);
  return found?.question === question ? found.value : null;
}

/** Make any failure a refusal; one of the token ends the session. @param {unknown} error @returns {Refusal} */
export function refused(error) {
  const refusal = error instanceof Refusal ? error : new Refusal("server", "A resposta não pôde ser lida.");
  if (refusal.kind === "auth") leave("O token deixou de ser aceito. Entre de novo.");
  else say(refusal.message);
  return refusal;
}
