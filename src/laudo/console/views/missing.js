// What stands in place of a list whose address does not say who was looked for: the list without that would be another one.
import { html, useEffect } from "../vendor/preact.js";
import { accepted } from "../address.js";
import { WayOut } from "../parts.js";
import { say } from "../store.js";
import { Exact } from "./exact.js";

/** Of each list that may miss something its heading, what that is, and the filter by which it is looked for again.
 * @type {Record<string, {title: string, what: string, again: string}>} */
const LISTS = {
  relatorios: { title: "Relatórios", what: "o CPF ou CNPJ que foi procurado", again: "numero_documento" },
  pessoas: { title: "Pessoas", what: "o nome ou CPF que foi procurado", again: "busca" },
};

/** @param {{place: import("../address.js").Place}} props */
export function Missing({ place }) {
  const { title, what, again } = LISTS[place.view];
  const words = `Este endereço não traz ${what}.`;
  useEffect(() => say(words), [words]);
  return html`<section class="list alone ${place.open ? "opened" : ""}" aria-labelledby="titulo">
    <header class="head"><h1 id="titulo" tabindex="-1" data-home>${title}</h1></header>
    <div class="empty" data-missing>
      <p class="big">${words}</p>
      <p>Para que um endereço não revele nada sobre ninguém, isso fica só na aba em que se procurou. Procure de novo:</p>
      <${Exact} name=${again} place=${accepted(place, place.missing)} />
      <${WayOut} place=${place} keys=${place.missing} />
    </div>
  </section>`;
}
