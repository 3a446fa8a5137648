// The only module that asks the server: public routes, the caller's token in a header, nothing in a cookie or a cache.
import { SERVICE } from "./service.js";

/**
 * @typedef {"auth"|"invalid"|"limit"|"unavailable"|"offline"|"server"} Kind
 * @typedef {{body: any, etag: string, next: string, size: number, at: Date}} Answer  `at`: when it was last true
 */

/** Why there is no answer; `message` is for people, `keys` are the parameters at fault, `retryAfter` in seconds. */
export class Refusal extends Error {
  /** @param {Kind} kind @param {string} message @param {{status?: number, keys?: string[], retryAfter?: number, requestId?: string, text?: string}} [more] */
  constructor(kind, message, { status = 0, keys = [], retryAfter = 0, requestId = "", text = "" } = {}) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.keys = keys;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
    this.text = text;
  }
}

export const UNREADABLE = "Não foi possível ler a resposta do servidor.";
const REMEMBERED = 64;
/** For how long a server may say nothing, not for how long it may speak. */
const PATIENCE_MS = 20_000;
/** For how long a page that is about to be left may still be seen. */
const LEAVING_MS = 10_000;
let leaving = -LEAVING_MS;
addEventListener("beforeunload", () => {
  leaving = performance.now();
});

/** @type {Record<number, Kind>} */
const KINDS = { 400: "invalid", 401: "auth", 429: "limit", 502: "unavailable", 503: "unavailable", 504: "unavailable" };

/** Give the document of the API: what is the server's to say of it. @returns {Promise<any>} */
export async function description() {
  const { answer, text } = await send(`${SERVICE}/openapi.json`, { cache: "default" });
  return read(answer, text, (body) => isObject(body?.paths));
}

/** Make a client for one caller. @param {string} token */
export function connect(token) {
  /** Answers by address, oldest first, so that what has not changed costs a 304. @type {Map<string, Answer>} */
  const known = new Map();
  let answered = -Infinity;

  /**
   * Ask; a refusal is thrown as Refusal, and an aborted request as AbortError.
   * @param {string} path @param {Record<string, string>} [parameters] @param {{signal?: AbortSignal, remember?: boolean}} [how]
   * @returns {Promise<Answer>}
   */
  async function ask(path, parameters = {}, { signal, remember = true } = {}) {
    const address = addressOf(path, parameters);
    const before = known.get(address);
    /** @type {Record<string, string>} */
    const headers = { Authorization: token };
    if (before?.etag) headers["If-None-Match"] = before.etag;
    const { answer, text } = await send(address, { headers }, signal);
    const same = answer.status === 304 && before;
    const whole = same || { body: read(answer, text, WHOLE[path] ?? isObject), etag: answer.headers.get("ETag") ?? "", next: next(answer.headers.get("Link")), size: text.length };
    const found = { ...whole, at: new Date() };
    answered = performance.now();
    return remember && found.etag ? keep(address, found) : found;
  }

  /** @param {string} address @param {Answer} answer */
  function keep(address, answer) {
    known.delete(address);
    known.set(address, answer);
    const oldest = known.keys().next().value;
    if (known.size > REMEMBERED && oldest !== undefined) known.delete(oldest);
    return answer;
  }

  /** How many items a list has. @param {string} path @param {Record<string, string>} filters @param {AbortSignal} [signal] */
  async function count(path, filters, signal) {
    const { body } = await ask(path, filters, { signal });
    return Number(body.result.paginacao.total);
  }

  /** What was answered last, if that is still known. @param {string} path @param {Record<string, string>} parameters */
  const recall = (path, parameters) => known.get(addressOf(path, parameters)) ?? null;

  /** For how many seconds nothing has been answered. */
  const silence = () => (performance.now() - answered) / 1000;

  return { ask, count, recall, silence };
}

/** @typedef {ReturnType<typeof connect>} Api */

/** @param {string} path @param {Record<string, string>} parameters */
function addressOf(path, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return SERVICE + path + (query && `?${query}`);
}

/** Send, and receive all of the answer. @param {string} address @param {RequestInit} how @param {AbortSignal} [signal] */
async function send(address, how, signal) {
  const stop = new AbortController();
  const end = () => stop.abort();
  let timer = setTimeout(end, PATIENCE_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(end, PATIENCE_MS);
  };
  signal?.addEventListener("abort", end);
  try {
    signal?.throwIfAborted();
    const answer = await fetch(address, {
      signal: stop.signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      ...how,
    });
    return { answer, text: await received(answer, heard) };
  } catch (error) {
    // Some browsers break off what a page asks as soon as it is to be left, which says nothing of the server.
    const left = leaving + LEAVING_MS - performance.now();
    if (left > 0) await new Promise((done) => setTimeout(done, left));
    if (signal?.aborted) throw error;
    throw new Refusal("offline", "O servidor não respondeu. Verifique sua conexão.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** Give the text of a body, and tell of each part as it comes. @param {Response} answer @param {() => void} heard */
function received(answer, heard) {
  heard();
  const tell = new TransformStream({
    transform(part, parts) {
      heard();
      parts.enqueue(part);
    },
  });
  return new Response(answer.body?.pipeThrough(tell)).text();
}

/** What tells an answer of a list, or of the caller, from the page of a proxy. @type {Record<string, (body: any) => boolean>} */
const WHOLE = {
  "/relatorios": isList,
  "/pessoas": isList,
  "/usuario": (body) => isObject(body?.result),
};

/** @param {any} body */
function isList(body) {
  return Array.isArray(body?.result?.itens) && isObject(body.result.paginacao);
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === "object" && value !== null;
}

/** Read what was answered; what it refuses, and what is not the service's, is thrown as Refusal.
 * @param {Response} answer @param {string} text @param {(body: any) => boolean} isWhole */
function read(answer, text, isWhole) {
  const body = parse(text);
  if (!answer.ok) throw refusal(answer, text, body);
  if (!isWhole(body)) throw new Refusal("server", UNREADABLE, { status: answer.status });
  return body;
}

/** @param {string} text */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {Response} answer @param {string} text @param {any} body */
function refusal(answer, text, body) {
  // How long to wait is a header for programs; people see it counted down.
  const said = typeof body?.message === "string" ? body.message.replace(/[^.]*\bRetry-After\b[^.]*\.?/, "").trim() : "";
  const message = said || `O servidor respondeu com o código ${answer.status}.`;
  return new Refusal(KINDS[answer.status] ?? "server", message, {
    status: answer.status,
    keys: body?.validation?.keys,
    // A proxy may say something other than whole seconds.
    retryAfter: Math.max(0, Math.ceil(Number(answer.headers.get("Retry-After")))) || 0,
    requestId: answer.headers.get("X-Request-Id") ?? "",
    text,
  });
}

/** Read the address of the next page out of a Link header. @param {string|null} header */
export function next(header) {
  return /<([^>]+)>;\s*rel="next"/.exec(header ?? "")?.[1] ?? "";
}

/** Let at most `width` of the tasks given run at once. @param {number} width */
export function queue(width) {
  let running = 0;
  /** @type {(() => void)[]} */
  const waiting = [];
  /** @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  return async (task) => {
    if (running >= width) await new Promise((resolve) => waiting.push(() => resolve(undefined)));
    running += 1;
    try {
      return await task();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
}
