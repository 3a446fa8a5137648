// The only module that sends requests: to public routes, with the caller's token in a header, without cookies or the browser's cache.
import { SERVICE } from "./service.js";

/**
 * @typedef {"auth"|"invalid"|"limit"|"unavailable"|"offline"|"server"} Kind
 * @typedef {{body: any, etag: string, next: string, size: number, at: Date}} Answer  `at`: when it was last known to be true
 */

/** Why there is no answer. `message` is for people, `keys` names the parameters at fault, `retryAfter` is in seconds. */
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
const MOST_REMEMBERED = 64;
/** The timeout while no byte arrives. A whole answer may take longer. */
const IDLE_TIMEOUT_MS = 20_000;
/** How long a page may stay visible after the browser has begun to leave it. */
const LEAVING_MS = 10_000;
let leavingSince = -LEAVING_MS;
addEventListener("beforeunload", () => {
  leavingSince = performance.now();
});

/** @type {Record<number, Kind>} */
const KINDS = { 400: "invalid", 401: "auth", 429: "limit", 502: "unavailable", 503: "unavailable", 504: "unavailable" };

/** Get the server's OpenAPI document. @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function fetchOpenApi(signal) {
  const { answer, text } = await send(`${SERVICE}/openapi.json`, {}, signal);
  return read(answer, text, (body) => isObject(body?.paths));
}

/** Make a client for one caller. @param {string} token */
export function connect(token) {
  /** Answers by address, oldest first, so that an unchanged one costs only a 304. @type {Map<string, Answer>} */
  const cache = new Map();
  let answeredAt = -Infinity;

  /**
   * Send a request. Throws a Refusal if there is no answer, or an AbortError if the request was aborted.
   * @param {string} path @param {Record<string, string>} [parameters] @param {{signal?: AbortSignal, remember?: boolean}} [how]
   * @returns {Promise<Answer>}
   */
  async function ask(path, parameters = {}, { signal, remember = true } = {}) {
    const address = addressOf(path, parameters);
    const remembered = cache.get(address);
    /** @type {Record<string, string>} */
    const headers = { Authorization: token };
    if (remembered?.etag) headers["If-None-Match"] = remembered.etag;
    const { answer, text } = await send(address, headers, signal);
    const unchanged = answer.status === 304 && remembered;
    const content = unchanged || { body: read(answer, text, IS_VALID[path] ?? isObject), etag: answer.headers.get("ETag") ?? "", next: nextLink(answer.headers.get("Link")), size: text.length };
    const found = { ...content, at: new Date() };
    answeredAt = performance.now();
    return remember && found.etag ? keep(address, found) : found;
  }

  /** @param {string} address @param {Answer} answer */
  function keep(address, answer) {
    cache.delete(address);
    cache.set(address, answer);
    const oldest = cache.keys().next().value;
    if (cache.size > MOST_REMEMBERED && oldest !== undefined) cache.delete(oldest);
    return answer;
  }

  /** The last answer to a request, if it is still kept. @param {string} path @param {Record<string, string>} parameters */
  const recall = (path, parameters) => cache.get(addressOf(path, parameters)) ?? null;

  /** The seconds since the last answer. */
  const secondsSinceAnswer = () => (performance.now() - answeredAt) / 1000;

  return { ask, recall, secondsSinceAnswer };
}

/** @typedef {ReturnType<typeof connect>} Api */

/** @param {string} path @param {Record<string, string>} parameters */
function addressOf(path, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return SERVICE + path + (query && `?${query}`);
}

/** Send a request and receive the whole answer. @param {string} address @param {Record<string, string>} headers @param {AbortSignal} [signal] */
async function send(address, headers, signal) {
  const stop = new AbortController();
  const end = () => stop.abort();
  let timer = setTimeout(end, IDLE_TIMEOUT_MS);
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(end, IDLE_TIMEOUT_MS);
  };
  signal?.addEventListener("abort", end);
  try {
    signal?.throwIfAborted();
    const answer = await fetch(address, {
      headers,
      signal: stop.signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    return { answer, text: await readBody(answer, restartTimer) };
  } catch (error) {
    // Some browsers cancel a page's requests as soon as it is about to be left. That is no failure of the server, so report it late.
    const left = leavingSince + LEAVING_MS - performance.now();
    if (left > 0) await new Promise((done) => setTimeout(done, left));
    if (signal?.aborted) throw error;
    throw new Refusal("offline", "O servidor não respondeu. Verifique sua conexão.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** Give the text of a body, and call `onPart` for each part that arrives. @param {Response} answer @param {() => void} onPart */
function readBody(answer, onPart) {
  onPart();
  const monitor = new TransformStream({
    transform(part, parts) {
      onPart();
      parts.enqueue(part);
    },
  });
  return new Response(answer.body?.pipeThrough(monitor)).text();
}

/** Tests that tell the service's answer from a page that a proxy sent. @type {Record<string, (body: any) => boolean>} */
const IS_VALID = {
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

/** Read an answer. Throws a Refusal if it is an error, or does not come from the service.
 * @param {Response} answer @param {string} text @param {(body: any) => boolean} isValid */
function read(answer, text, isValid) {
  const body = parse(text);
  if (!answer.ok) throw refusal(answer, text, body);
  if (!isValid(body)) throw new Refusal("server", UNREADABLE, { status: answer.status });
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
  // The sentence about Retry-After is for programs. People see a countdown instead.
  const sentence = typeof body?.message === "string" ? body.message.replace(/[^.]*\bRetry-After\b[^.]*\.?/, "").trim() : "";
  const message = sentence || `O servidor respondeu com o código ${answer.status}.`;
  return new Refusal(KINDS[answer.status] ?? "server", message, {
    status: answer.status,
    keys: body?.validation?.keys,
    // A proxy may send something other than whole seconds.
    retryAfter: Math.max(0, Math.ceil(Number(answer.headers.get("Retry-After")))) || 0,
    requestId: answer.headers.get("X-Request-Id") ?? "",
    text,
  });
}

/** Read the address of the next page out of a Link header. @param {string|null} header */
function nextLink(header) {
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
