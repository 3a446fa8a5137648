// One report beside the list, and the others of the same document.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { hashOf, parameters, placeAt } from "../address.js";
import { isPersonal } from "../documents.js";
import { ago, exact, FIELDS, joinWords, kindOf, plural } from "../format.js";
import { useList, useNome } from "../lists.js";
import { Copy, Documento, Icon, Instant, Resultado, SidePanel, Skeleton, Status, Trouble } from "../parts.js";
import { go, link } from "../router.js";
import { SERVICE } from "../service.js";
import { api } from "../session.js";
import { announce } from "../store.js";
import { Checked, OnPaper } from "./freshness.js";

/** @typedef {import("../address.js").Place} Place */

/** @param {{place: Place}} props */
export function Detalhe({ place }) {
  const list = useList("/relatorios", { numero: place.open });
  const heading = useRef(/** @type {HTMLElement|null} */ (null));
  const shown = list.result?.itens[0];
  const item = (list.news ?? list.result)?.itens[0] ?? (list.loading || list.refusal ? fromList(place) : undefined);
  const absent = list.result && !item && !list.loading && !list.refusal;
  const said = shown && list.news ? changeWords(shown, item) : absent ? "Este relatório não existe nesta conta." : "";
  useEffect(() => {
    if (said) announce(said);
  }, [said]);
  useEffect(() => {
    const before = document.querySelector("tr.open [data-row]");
    heading.current?.focus({ preventScroll: true });
    return () => {
      const focused = document.activeElement;
      if (focused !== document.body && !focused?.closest(".detalhe")) return;
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  const close = () => go({ ...place, open: "" });
  return html`<${SidePanel} below=${960} close=${close} class="detalhe" aria-labelledby="detalhe" aria-busy=${list.loading}>
    <header>
      <h2 id="detalhe" tabindex="-1" data-home ref=${heading}>Relatório <code>${place.open.slice(0, 8)}</code></h2>
      <${Copy} text=${place.open} label="Copiar o número" />
      <button type="button" class="quiet" data-close aria-label="Fechar o relatório" onClick=${close}><${Icon} name="close" /></button>
    </header>
    ${list.refusal && html`<${Trouble} refusal=${list.refusal} wait=${list.wait} retry=${list.reload} stale=${Boolean(item)} />`}
    ${list.loading && !item && html`<${Skeleton} count=${6} />`}
    ${absent && html`<p class="empty">${said}</p>`}
    ${item && said && html`<p class="notice">${said}</p>`}
    ${item && list.stale && !list.refusal && html`<${Checked} list=${list} />`}
    ${item && list.checked && html`<${OnPaper} words="Consultado" at=${list.checked} />`}
    ${item && html`<${Report} item=${item} place=${place} />`}
  <//>`;
}

/** The report from its row in the list, shown until the report itself has been loaded. @param {Place} place */
function fromList(place) {
  return api().recall("/relatorios", parameters(place))?.body.result.itens.find((/** @type {any} */ item) => item.numero === place.open);
}

/** How a report has changed since it was opened, in words. @param {any} before @param {any} now */
function changeWords(before, now) {
  if (!now) return "Este relatório não existe mais nesta conta.";
  const fields = Object.keys(FIELDS).filter((name) => name !== "atualizado_em" && before[name] !== now[name]);
  return `Este relatório mudou enquanto estava aberto${fields.length ? `: ${joinWords(fields.map((name) => FIELDS[name].toLowerCase()))}` : ""}.`;
}

/** @param {{item: any, place: Place}} props */
function Report({ item, place }) {
  const sameMatriz = placeAt("relatorios", { nome: item.nome });
  return html`<div class="badges">
      <${Status} value=${item.status} />${item.resultado && html`<${Resultado} value=${item.resultado} />`}
      ${item.pendente_validacao_manual && html`<span class="manual">Validação manual pendente</span>`}
    </div>
    ${item.mensagem && html`<p class="message">${item.mensagem}</p>`}
    <dl>
      <dt>${isPersonal(item.numero_documento) ? "CPF" : "CNPJ"}</dt>
      <dd><${Documento} value=${item.numero_documento} /><${Copy} text=${item.numero_documento} label="Copiar o documento completo" /></dd>
      ${isPersonal(item.numero_documento) && html`<${Nome} cpf=${item.numero_documento} />`}
      <dt>${FIELDS.tipo_pessoa}</dt>
      <dd>${kindOf(item.tipo_pessoa)}</dd>
      <dt>${FIELDS.nome}</dt>
      <dd><a href=${hashOf(sameMatriz)} onClick=${link(sameMatriz)} title="Ver os relatórios desta matriz">${item.nome}</a></dd>
      <dt>${FIELDS.resultado}</dt>
      <dd>${item.resultado ? html`<${Resultado} value=${item.resultado} />` : "Sem decisão"}</dd>
      <dt>Atualizado</dt>
      <dd><time datetime=${item.atualizado_em}>${exact(item.atualizado_em)}</time> <span class="muted">${ago(item.atualizado_em)}</span></dd>
      <dt>${FIELDS.numero}</dt>
      <dd><code class="uuid">${item.numero}</code></dd>
    </dl>
    <div class="actions">
      <${Copy} text=${JSON.stringify(item, null, 2)} label="Copiar o JSON, com o documento completo" class="">Copiar JSON<//>
      <${Copy} text=${`${SERVICE}/${hashOf({ ...placeAt("relatorios"), open: item.numero })}`} label="Copiar o link deste relatório" class="">Copiar link<//>
    </div>
    <${Others} item=${item} place=${place} />`;
}

/** The person's name, from the organization's list of people. @param {{cpf: string}} props */
function Nome({ cpf }) {
  const { nome, refusal, reload } = useNome(cpf);
  if (refusal) return html`<dt>Nome</dt><dd><span class="muted">Não foi possível consultar.</span> <button type="button" class="text" onClick=${reload}>Tentar novamente</button></dd>`;
  return nome ? html`<dt>Nome</dt><dd>${nome}</dd>` : null;
}

/** @param {{item: any, place: Place}} props */
function Others({ item, place }) {
  const list = useList("/relatorios", { numero_documento: item.numero_documento });
  const found = list.news ?? list.result;
  if (!found) return html`<section class="others"><h3>Outros relatórios deste documento</h3>${list.refusal ? html`<${Trouble} refusal=${list.refusal} wait=${list.wait} retry=${list.reload} />` : html`<${Skeleton} count=${3} />`}</section>`;
  const others = found.itens.filter((/** @type {any} */ other) => other.numero !== item.numero).slice(0, 8);
  const all = placeAt("relatorios", { numero_documento: item.numero_documento });
  return html`<section class="others">
    <h3>Outros relatórios deste documento</h3>
    ${others.length === 0 && html`<p class="muted">Nenhum outro relatório.</p>`}
    <ol>
      ${others.map(
        (/** @type {any} */ other) => html`<li key=${other.numero}>
          <a href=${hashOf({ ...place, open: other.numero })} onClick=${link({ ...place, open: other.numero })}><span class="sr">Abrir o relatório de </span><${Instant} iso=${other.atualizado_em} /></a>
          <${Status} value=${other.status} /><${Resultado} value=${other.resultado} />
          <span class="nome">${other.nome}</span>
        </li>`,
      )}
    </ol>
    ${found.paginacao.total > 1 && html`<a class="more" href=${hashOf(all)} onClick=${link(all)}>Ver os ${plural(found.paginacao.total, "relatório", "relatórios")} deste documento</a>`}
  </section>`;
}
