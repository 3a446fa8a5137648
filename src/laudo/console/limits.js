// The server's limits, read from its OpenAPI document.
import { description } from "./api.js";
import { patiently } from "./patience.js";
import { store } from "./store.js";

let known = false;

/** Learn the largest page size, once. Until then a size that every server accepts is used. Throws a refusal that a retry would not solve.
 * @param {AbortSignal} signal */
export async function learnLimits(signal) {
  if (known) return;
  const { paths } = await patiently(description, signal);
  const rows = paths["/relatorios"]?.get?.parameters?.find((/** @type {any} */ parameter) => parameter.name === "rows");
  store.set({ maxRows: Number(rows?.schema?.maximum) || store.get().maxRows });
  known = true;
}
