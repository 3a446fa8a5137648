// What the server gives at most, in the document of its API.
import { description } from "./api.js";
import { patiently } from "./patience.js";
import { store } from "./store.js";

let known = false;

/** Learn the largest page, once; until then it is what every server gives. A refusal that does not pass is thrown.
 * @param {AbortSignal} signal */
export async function learnLimits(signal) {
  if (known) return;
  const { paths } = await patiently(description, signal);
  const rows = paths["/relatorios"]?.get?.parameters?.find((/** @type {any} */ parameter) => parameter.name === "rows");
  store.set({ maxRows: Number(rows?.schema?.maximum) || store.get().maxRows });
  known = true;
}
