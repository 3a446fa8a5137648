// A filter that is applied when its form is submitted: by report number, document or person.
import { html } from "../vendor/preact.js";
import { withFilters } from "../address.js";
import { recognize, withZeros, WRONG } from "../documents.js";
import { FIELDS } from "../format.js";
import { useTyped } from "../parts.js";
import { go } from "../router.js";

/** Each field's hint, the kinds of text that it accepts, and the messages for other kinds.
 * @type {Record<string, {hint: string, kinds: string[], wrong: Record<string, string>, other: string}>} */
const INPUTS = {
  numero: { hint: "UUID", kinds: ["numero"], wrong: { several: WRONG.several, part: WRONG.part }, other: "Isto não é um número de relatório (UUID)." },
  numero_documento: { hint: "CPF ou CNPJ", kinds: ["cpf", "cnpj"], wrong: { several: WRONG.several, short: WRONG.short, masked: WRONG.masked }, other: "Isto não é um CPF nem um CNPJ." },
  busca: { hint: "Nome ou início do CPF", kinds: ["nome", "cpf", "cnpj", "numero"], wrong: WRONG, other: WRONG.none },
};

/** Documents may be typed with or without punctuation. @param {{name: string, place: import("../address.js").Place}} props */
export function Exact({ name, place }) {
  const { text, wrong, type, setWrong } = useTyped();
  const input = INPUTS[name];
  const apply = (/** @type {Event} */ event) => {
    event.preventDefault();
    const { kind, value } = recognize((name === "numero_documento" && withZeros(text)) || text);
    if (!input.kinds.includes(kind)) return setWrong(input.wrong[kind] ?? input.other);
    type("");
    go({ ...withFilters(place, { [name]: value }), open: "" });
  };
  return html`<form class="exact" onSubmit=${apply}>
    <label for=${`exact-${name}`}>${FIELDS[name]}</label>
    <div class="field">
      <input id=${`exact-${name}`} name=${name} autocomplete="off" spellcheck=${false} autocorrect=${false} maxlength="200" placeholder=${input.hint} aria-invalid=${wrong ? "true" : undefined} value=${text} onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button type="submit" class="quiet" aria-label=${`Filtrar por ${FIELDS[name].toLowerCase()}`}>Filtrar</button>
    </div>
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
  </form>`;
}
