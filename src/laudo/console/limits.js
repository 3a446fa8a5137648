// The server's limits, read from its OpenAPI document.
import { fetchOpenApi } from "./api.js";
import { withRetries } from "./retries.js";
import { store } from "./store.js";

let learned = false;

/** Learn the largest page size, once. Until then a size that every server accepts is used. Throws a refusal that a retry would not solve.
 * @param {AbortSignal} signal */
export async function learnLimits(signal) {
  if (learned) return;
  const { paths } = await withRetries(() => fetchOpenApi(signal), signal);
  const rows = paths["/relatorios"]?.get?.parameters?.find((/** @type {any} */ parameter) => parameter.name === "rows");
  store.set({ maxRows: Number(rows?.schema?.maximum) || store.get().maxRows });
  learned = true;
}
