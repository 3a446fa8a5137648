// Hooks of the views: an answer that is asked for, kept while the next one comes, and looked at again when it may have changed.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { Refusal, UNREADABLE } from "./api.js";
import { api, leave } from "./session.js";
import { say } from "./store.js";

const REFRESH_MS = 20_000;
const MOST_WAIT_S = 60;
const LATE_MS = 1500;

/**
 * @typedef {object} Asked
 * @property {any} result        the last answer's, also while the next is awaited
 * @property {boolean} loading
 * @property {Refusal|null} refusal
 * @property {number} wait       seconds until it is tried again by itself; 0 when it is not
 * @property {any} news          a newer answer that is not shown yet
 * @property {Date|null} checked when the answer was last known to be true
 * @property {boolean} stale     whether it could not be looked at again since
 * @property {boolean} other     whether it is of another page or order of the list, since the one that was asked for was refused
 * @property {number} turn       how often it was asked for anew
 * @property {() => void} reload
 *
 * @typedef {Omit<Asked, "turn"|"wait"|"reload"> & {question: string, of: string}} State  what is known, what question that answers, and of what list it is
 */

/**
 * Ask for a list, again whenever the question changes.
 * @param {string} path @param {Record<string, string>} parameters
 * @returns {Asked}
 */
export function useList(path, parameters) {
  const question = JSON.stringify([path, parameters]);
  const { page, rows, sort, ...filters } = parameters;
  const of = JSON.stringify([path, filters]);
  // What was known of it when it was left stands at once, so that "back" finds its place in the page.
  const recalled = () => {
    const known = api().recall(path, parameters);
    return known && { question, of, result: known.body.result, checked: known.at, other: false };
  };
  const [state, setState] = useState(() => /** @type {State} */ ({ question, of, result: null, loading: true, refusal: null, news: null, checked: null, stale: false, other: false, ...recalled() }));
  const [turn, again] = useTurn();
  const voice = useVoice(question);
  // Before the page is painted, so that the server works meanwhile.
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
        // Nothing of another list may stand below these filters: it would be taken for what they found.
        const left = (/** @type {State} */ old) => (old.of === of ? { other: old.other || old.question !== question } : { of, result: null, checked: null, other: false });
        setState((/** @type {State} */ old) => ({ ...old, ...left(old), question, loading: false, refusal, stale: true }));
      });
    return () => stop.abort();
  }, [question, turn]);
  const wait = useCountdown(state.loading ? null : state.refusal, again);
  useRefresh(JSON.stringify([question, turn]), path, parameters, state, setState);
  return { ...state, loading: state.loading || state.question !== question, turn, wait, reload: voice.anew(again) };
}

/** What is known when nothing was asked. */
const NOTHING = { question: null, turn: 0, value: null, refusal: null };

/**
 * Ask something once for each value of `question`, not while that is null, which forgets it; what was known of it stays when it is refused.
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

/** The name by which the organization knows a person, "" until that is known, and how the question for it stands. @param {string} cpf */
export function useNome(cpf) {
  const list = useList("/pessoas", { cpf });
  // Until the answer comes, a list still has the one to its last question, which was another person.
  const person = (list.news ?? list.result)?.itens.find((/** @type {any} */ item) => item.cpf === cpf);
  return { nome: String(person?.nome ?? ""), refusal: list.refusal, reload: list.reload };
}

/** Whether something goes on for longer than one waits without a word. @param {boolean} going */
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

/** Something that may be done again: how often it was, and how to. @returns {[number, () => void]} */
export function useTurn() {
  const [turn, setTurn] = useState(0);
  return [turn, useCallback(() => setTurn((/** @type {number} */ count) => count + 1), [])];
}

/** Seconds after which a refusal may have passed. @param {Refusal|null} refusal */
function waitFor(refusal) {
  if (refusal?.kind === "limit" || refusal?.kind === "unavailable") return Math.min(refusal.retryAfter || 5, MOST_WAIT_S);
  return refusal?.kind === "offline" ? 10 : 0;
}

/** Try again what was refused, when it may have passed; gives the seconds until then. @param {Refusal|null} refusal @param {() => void} again */
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

/** Look again from time to time, once at a time and never across an `asking`, so that nothing older is taken for news; what is new
 * waits until it is asked for.
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

/** What of a newer answer is news. @param {State} old @param {any} result */
function newer({ result: shown, news }, result) {
  return shown && isSame(shown, result) ? null : news && isSame(news, result) ? news : result;
}

/** Whether two answers show the same: a version grows also with what this page does not show. @param {any} one @param {any} other results */
export function isSame(one, other) {
  const [shown, others] = [one, other].map(({ paginacao, itens }) => JSON.stringify([paginacao.total, itens]));
  return shown === others;
}

/** Within this, the same words are of one outage, which refuses several requests and is heard once. */
const OUTAGE_MS = 1000;
let heard = { message: "", at: 0 };

/** What refuses a question is said once while it is tried again by itself: anew when it is another refusal, or somebody asks anew.
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

/** Make any failure a refusal and say it, unless that was said `before`; one of the token ends the session.
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
