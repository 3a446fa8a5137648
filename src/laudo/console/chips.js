// The active filters, each with a button that removes it.
import { html } from "./vendor/preact.js";
import { withFilters } from "./address.js";
import { doubt, isPersonal, mask, punctuate } from "./documents.js";
import { FIELDS, valueWords } from "./format.js";
import { useNome } from "./lists.js";
import { Icon } from "./parts.js";
import { go } from "./router.js";
import { useStore } from "./store.js";

/** @param {{place: import("./address.js").Place}} props */
export function Chips({ place }) {
  const revealed = useStore((state) => state.revealed);
  const active = Object.entries(place.filters).filter(([name]) => name !== "busca");
  if (!active.length) return null;
  return html`<ul class="chips" aria-label="Filtros aplicados">
    ${active.map(([name, value]) => {
      const words = valueWords(name, value, revealed ? punctuate : mask);
      return html`<li key=${name}>
        <span class="name">${FIELDS[name] ?? name}</span> <span class="value" title=${words}>${words}</span>
        ${name === "numero_documento" && isPersonal(value) && html`<${PersonName} cpf=${value} />`}
        ${name === "numero_documento" && doubt(value) && html`<span class="doubt">${doubt(value)}</span>`}
        <button type="button" data-home aria-label=${`Remover o filtro ${FIELDS[name] ?? name}: ${words}`} onClick=${() => go(withFilters(place, { [name]: "" }))}><${Icon} name="close" /></button>
      </li>`;
    })}
    ${active.length > 1 && html`<li class="all"><button type="button" class="text" onClick=${() => go({ ...place, filters: {}, page: 1 })}>Limpar filtros</button></li>`}
  </ul>`;
}

/** The name of the person whose reports are listed: the rows do not show it. @param {{cpf: string}} props */
function PersonName({ cpf }) {
  const { nome } = useNome(cpf);
  return nome && html`<span class="whose" title=${nome}>${nome}</span>`;
}
