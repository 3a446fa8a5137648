// Retries what a busy server refused, after the time that it asks for. Pure, except for the clock.
import { Refusal } from "./api.js";

const ATTEMPTS = 6;
const MOST_WAIT_S = 30;
/** @param {Refusal} refusal */
const isTransient = ({ kind }) => ["limit", "unavailable", "offline", "server"].includes(kind);

/** @template T @param {() => Promise<T>} ask @param {AbortSignal} signal @param {(refusal: Refusal) => boolean} [shouldRetry] which refusals to retry @returns {Promise<T>} */
export async function withRetries(ask, signal, shouldRetry = isTransient) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      signal.throwIfAborted();
      return await ask();
    } catch (error) {
      if (!(error instanceof Refusal && shouldRetry(error)) || attempt === ATTEMPTS) throw error;
      await pause(Math.min(error.retryAfter || 2 ** attempt / 2, MOST_WAIT_S), signal);
    }
  }
}

/** @param {number} seconds @param {AbortSignal} signal */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
