// Replaces a view whose address omits who was searched for, or has parameters that are not accepted: the view would show something else.
import { html, useEffect } from "../vendor/preact.js";
import { isParameter, nearestParameter, PATH, without } from "../address.js";
import { ContinueWithout } from "../parts.js";
import { TITLES } from "../router.js";
import { announce } from "../store.js";
import { Exact } from "./exact.js";

/** @typedef {import("../address.js").Place} Place */

/** What the address of each list may omit, and the filter to search for it again. @type {Record<string, {what: string, filter: string}>} */
const LISTS = {
  relatorios: { what: "o CPF ou CNPJ procurado", filter: "numero_documento" },
  pessoas: { what: "o nome ou CPF procurado", filter: "busca" },
};

/** The label of the button that leads to a view that is not a list. @type {Record<string, string>} */
const VIEW_LABELS = { painel: "Ver o painel", perfil: "Ver o perfil" };

/** @param {{place: Place}} props */
export function Missing({ place }) {
  const { what, filter } = LISTS[place.view];
  return html`<${Replacement} place=${place} words=${`Este endereço não inclui ${what}.`}>
    <p>Por privacidade, o que você procura fica só na aba da busca e não vai no endereço. Procure novamente:</p>
    <${Exact} name=${filter} place=${without(place, place.missing)} />
    <${ContinueWithout} place=${place} keys=${place.missing} />
  <//>`;
}

/** Shown for parameters that are not accepted, in the way of the API's refusals. @param {{place: Place}} props */
export function Refused({ place }) {
  const words = place.refused.map((name) => {
    if (name === PATH) return "Este endereço não corresponde a nenhuma página do console.";
    if (isParameter(place.view, name)) return `O valor do parâmetro “${name}” deste endereço não é válido.`;
    const nearest = nearestParameter(place.view, name);
    return `O parâmetro “${name}” deste endereço não existe nesta página.${nearest && ` O mais parecido é ${nearest}.`}`;
  });
  return html`<${Replacement} place=${place} words=${words.join(" ")}>
    <p>${place.refused.includes(PATH) ? "Confira o endereço ou comece pelos relatórios:" : "Se essa parte fosse ignorada, a página poderia mostrar algo diferente do que você pediu. Confira o endereço ou continue sem ela:"}</p>
    <${ContinueWithout} place=${place} keys=${place.refused} words=${VIEW_LABELS[place.view]} />
  <//>`;
}

/** @param {{place: Place, words: string, children: any}} props */
function Replacement({ place, words, children }) {
  useEffect(() => announce(words), [words]);
  return html`<section class="list alone ${place.open ? "opened" : ""}" aria-labelledby="titulo">
    <header class="head"><h1 id="titulo" tabindex="-1" data-home>${TITLES[place.view]}</h1></header>
    <div class="empty" data-missing><p class="big">${words}</p>${children}</div>
  </section>`;
}
