// The sign-in: asks for a token and checks it with the server.
import { html, useState } from "../vendor/preact.js";
import { connect, Refusal, UNREADABLE } from "../api.js";
import { Logo } from "../parts.js";
import { isPlausible, signIn } from "../session.js";
import { useStore } from "../store.js";

export function Entrar() {
  const notice = useStore((state) => state.notice);
  const [text, setText] = useState("");
  const [shown, setShown] = useState(false);
  const [trying, setTrying] = useState(false);
  const [trouble, setTrouble] = useState("");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (trying) return undefined;
    const token = text.trim();
    if (!isPlausible(token)) return setTrouble(token ? "Isto não parece um token: confira se foi copiado por inteiro, sem espaços." : "Cole o seu token.");
    setTrying(true);
    setTrouble("");
    try {
      await connect(token).ask("/usuario", {}, { remember: false });
      signIn(token);
    } catch (error) {
      setTrouble(problemWords(error));
      setTrying(false);
    }
  };
  return html`<main class="entrar">
    <form onSubmit=${submit}>
      <h1><${Logo} />laudo</h1>
      <p class="lead">Relatórios de validação de pessoas e empresas.</p>
      ${notice && html`<p class="notice" id="notice">${notice}</p>`}
      <input class="sr" type="text" name="username" autocomplete="username" value="laudo" readonly tabindex="-1" aria-hidden="true" />
      <label for="token">Token de acesso</label>
      <div class="secret">
        <input
          id="token"
          data-home
          name="password"
          type=${shown ? "text" : "password"}
          autocomplete="current-password"
          autocapitalize="off"
          spellcheck=${false}
          autocorrect=${false}
          autofocus
          aria-invalid=${trouble ? "true" : undefined}
          aria-describedby=${trouble ? "trouble" : notice ? "notice" : "hint"}
          value=${text}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)}
        />
        <button type="button" class="quiet" onClick=${() => setShown(!shown)}>${shown ? "Ocultar" : "Mostrar"}</button>
      </div>
      <p class="wrong" id="trouble" role="alert" hidden=${!trouble}>${trouble}</p>
      <button type="submit" class="primary" aria-disabled=${trying}>${trying ? "Entrando…" : "Entrar"}</button>
      <p class="hint" id="hint">O token fica nesta aba, até você sair ou fechá-la. Não há senha nem cookie.</p>
      <p class="hint"><a href="docs">Referência da API</a></p>
    </form>
  </main>`;
}

/** @param {unknown} error */
function problemWords(error) {
  if (!(error instanceof Refusal) || error.message === UNREADABLE) return `${UNREADABLE} Confira se este endereço é mesmo o de um serviço laudo.`;
  if (error.kind === "auth") return "Este token não foi aceito. Ele pode estar incompleto, expirado ou revogado, ou o acesso ainda não foi liberado.";
  const wait = error.retryAfter ? ` Tente novamente em ${error.retryAfter} s.` : "";
  return `${error.message}${wait}`;
}
