// Adds "Experimentar" to the reference: a form for each route that sends requests with the token of this tab.
import { html, render, useRef, useState } from "./vendor/preact.js";
import { connect, fetchOpenApi, parse, Refusal } from "./api.js";
import { integer } from "./format.js";
import { withRetries } from "./retries.js";
import { canStore, reloadRestoredPage, storedToken } from "./session.js";
import { restoreTheme } from "./theme.js";

/**
 * @typedef {{name: string, in: string, example?: unknown, schema: Schema}} Parameter
 * @typedef {{enum?: string[], default?: unknown}} Schema
 * @typedef {{status: string, size: number, ms: number, text: string}} Outcome
 */

/** @param {{path: string, parameters: Parameter[], needsToken: boolean}} props */
function Try({ path, parameters, needsToken }) {
  const [given, setGiven] = useState(/** @type {Record<string, string>} */ ({}));
  const [outcome, setOutcome] = useState(/** @type {Outcome|null} */ (null));
  const last = useRef(new AbortController());
  const token = canStore() ? storedToken() : "";
  if (needsToken && !token) return html`<details class="try"><summary>Experimentar</summary><p>Para experimentar, <a href="./">entre com o seu token</a> e volte a esta página.</p></details>`;
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    last.current.abort();
    const { signal } = (last.current = new AbortController());
    const found = await answer(path, asked, needsToken ? token : "", signal);
    if (!signal.aborted) setOutcome(found);
  };
  const query = new URLSearchParams(asked).toString();
  return html`<details class="try">
    <summary>Experimentar</summary>
    <form onSubmit=${send}>
      ${parameters.map((parameter) => html`<${Input} key=${parameter.name} parameter=${parameter} set=${(/** @type {string} */ value) => setGiven({ ...given, [parameter.name]: value })} value=${given[parameter.name] ?? ""} />`)}
      <div class="send"><button type="submit" class="primary">Enviar</button><code>GET ${path}${query && `?${query}`}</code></div>
    </form>
    <output aria-live="polite">${outcome && html`<span data-outcome>${outcome.status} · ${integer(outcome.size)} caracteres · ${integer(outcome.ms)} ms</span>`}</output>
    ${outcome && html`<pre tabindex="0" role="region" aria-label="Resposta"><code>${outcome.text}</code></pre>`}
  </details>`;
}

/** @param {{parameter: Parameter, value: string, set: (value: string) => void}} props */
function Input({ parameter, value, set }) {
  const { name, schema, example } = parameter;
  const change = (/** @type {any} */ event) => set(event.target.value);
  const { enum: choices } = schema;
  if (choices) {
    return html`<label>${name}<select name=${name} value=${value} onChange=${change}><option value="">–</option>${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}</select></label>`;
  }
  return html`<label>${name}<input name=${name} autocomplete="off" spellcheck=${false} autocorrect=${false} placeholder=${String(schema.default ?? example ?? "")} value=${value} onInput=${change} /></label>`;
}

/** @param {string} path @param {Record<string, string>} asked @param {string} token @param {AbortSignal} signal
 * @returns {Promise<Outcome|null>} null if the request was aborted */
async function answer(path, asked, token, signal) {
  const began = performance.now();
  const elapsed = () => Math.round(performance.now() - began);
  try {
    const { body, size } = await connect(token).ask(path, asked, { signal, remember: false });
    return { status: "200", size, ms: elapsed(), text: JSON.stringify(maskToken(body), null, 2) };
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof Refusal)) throw error;
    const body = parse(error.text);
    return { status: String(error.status || "sem resposta"), size: error.text.length, ms: elapsed(), text: body ? JSON.stringify(body, null, 2) : error.text || error.message };
  }
}

/** Give a body with the token hidden. @param {any} body */
function maskToken(body) {
  if (!body?.result?.api_token) return body;
  return { ...body, result: { ...body.result, api_token: "•".repeat(24) } };
}

async function start() {
  if (canStore()) {
    restoreTheme();
    reloadRestoredPage();
  }
  const document_ = await withRetries(fetchOpenApi, new AbortController().signal);
  for (const section of document.querySelectorAll("section[data-path]")) {
    const path = section.getAttribute("data-path") ?? "";
    const get = document_.paths[path].get;
    const parameters = (get.parameters ?? []).filter((/** @type {any} */ parameter) => parameter.in === "query" && !parameter.deprecated);
    const slot = section.querySelector("[data-try]");
    if (slot) render(html`<${Try} path=${path} parameters=${parameters} needsToken=${!Array.isArray(get.security) || get.security.length > 0} />`, slot);
  }
}

start();
