// Who the caller is; the token is hidden until asked for.
import { html, useState } from "../vendor/preact.js";
import { refused, useOnce } from "../lists.js";
import { Copy, Skeleton, Trouble } from "../parts.js";
import { api, leave } from "../session.js";

const FIELDS = /** @type {const} */ ([
  ["nome_usuario", "Usuário"],
  ["email", "E-mail"],
  ["nome_organizacao", "Organização"],
  ["id_organizacao", "Nº da organização"],
  ["webhook_url", "Webhook"],
]);

export function Perfil() {
  const [turn, setTurn] = useState(0);
  const [shown, setShown] = useState(false);
  const found = useOnce(String(turn), async (signal) => {
    try {
      return { profile: (await api().ask("/usuario", {}, { signal, remember: false })).body.result, refusal: null };
    } catch (error) {
      if (signal.aborted) throw error;
      return { profile: null, refusal: refused(error) };
    }
  });
  return html`<section class="perfil" aria-labelledby="titulo">
    <h1 id="titulo">Perfil</h1>
    ${!found && html`<${Skeleton} count=${6} />`}
    ${found?.refusal && html`<${Trouble} refusal=${found.refusal} wait=${0} retry=${() => setTurn(turn + 1)} />`}
    ${found?.profile &&
    html`<dl>
        ${FIELDS.map(([name, words]) => html`<dt key=${`${name}-name`}>${words}</dt><dd key=${name}>${found.profile[name] || html`<span class="muted">não configurado</span>`}</dd>`)}
        <dt>Token</dt>
        <dd class="token">
          <code>${shown ? found.profile.api_token : "•".repeat(24)}</code>
          <button type="button" aria-pressed=${shown} onClick=${() => setShown(!shown)}>${shown ? "Ocultar" : "Mostrar"}</button>
          <${Copy} text=${found.profile.api_token} label="Copiar o token" class="">Copiar<//>
        </dd>
      </dl>
      <p class="hint">Quem tem o token tem este acesso: não o envie por mensagem nem o escreva em código. Para revogá-lo, fale com quem opera o serviço.</p>
      <p><button type="button" onClick=${() => leave()}>Sair</button></p>`}
  </section>`;
}
