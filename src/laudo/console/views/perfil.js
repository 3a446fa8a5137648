// The caller's profile. The token is hidden until the caller reveals it.
import { html, useState } from "../vendor/preact.js";
import { useOnce } from "../lists.js";
import { Copy, Skeleton, Trouble } from "../parts.js";
import { api, signOut } from "../session.js";

const FIELDS = /** @type {const} */ ([
  ["nome_usuario", "Usuário"],
  ["email", "E-mail"],
  ["nome_organizacao", "Organização"],
  ["id_organizacao", "Nº da organização"],
  ["webhook_url", "Webhook"],
]);

export function Perfil() {
  const [shown, setShown] = useState(false);
  const { value: profile, ...asked } = useOnce("perfil", async (signal) => (await api().ask("/usuario", {}, { signal, remember: false })).body.result);
  return html`<section class="perfil" aria-labelledby="titulo">
    <h1 id="titulo" tabindex="-1" data-home>Perfil</h1>
    ${asked.refusal ? html`<${Trouble} ...${asked} />` : !profile && html`<${Skeleton} count=${6} />`}
    ${profile &&
    html`<dl>
        ${FIELDS.map(([name, words]) => html`<dt key=${`${name}-name`}>${words}</dt><dd key=${name}>${profile[name] || html`<span class="muted">não configurado</span>`}</dd>`)}
        <dt>Token</dt>
        <dd class="token">
          <code>${shown ? profile.api_token : "•".repeat(24)}</code>
          <button type="button" onClick=${() => setShown(!shown)}>${shown ? "Ocultar" : "Mostrar"}</button>
          <${Copy} text=${profile.api_token} label="Copiar o token" class="">Copiar<//>
        </dd>
      </dl>
      <p class="hint">Quem tem o token tem o mesmo acesso que você: não o envie por mensagem nem o coloque no código. Para revogá-lo, fale com quem opera o serviço.</p>
      <p><button type="button" onClick=${() => signOut()}>Sair</button></p>`}
  </section>`;
}
