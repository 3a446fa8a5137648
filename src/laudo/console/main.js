// Starts the console: resumes the session, follows the address, and draws the view for it.
import { html, render, useEffect, useErrorBoundary } from "./vendor/preact.js";
import { keepFocus } from "./focus.js";
import { Frame } from "./frame.js";
import { listenToKeys } from "./keyboard.js";
import { learnLimits } from "./limits.js";
import { followHistory, titleOf } from "./router.js";
import { canStore, reloadRestoredPage, resumeSession } from "./session.js";
import { store, useStore } from "./store.js";
import { restoreTheme } from "./theme.js";
import { Detalhe } from "./views/detalhe.js";
import { Entrar } from "./views/entrar.js";
import { Missing, Refused } from "./views/missing.js";
import { Painel } from "./views/painel.js";
import { Perfil } from "./views/perfil.js";
import { Pessoas } from "./views/pessoas.js";
import { Relatorios } from "./views/relatorios.js";

const VIEWS = { relatorios: Relatorios, pessoas: Pessoas, painel: Painel, perfil: Perfil };

function Console() {
  const token = useStore((state) => state.token);
  const place = useStore((state) => state.place);
  const [broken] = useErrorBoundary();
  useEffect(() => {
    if (!token) return undefined;
    const stop = new AbortController();
    learnLimits(stop.signal).catch(() => {
      // Nothing to do: an export asks again.
    });
    return () => stop.abort();
  }, [token]);
  useEffect(() => {
    document.body.dataset.view = token ? place.view : "entrar";
  }, [token, place.view]);
  useEffect(() => {
    document.title = `${token ? titleOf(place) : "Entrar"} · laudo`;
  }, [token, place]);
  if (broken) return html`<main class="broken"><h1>Algo deu errado nesta página.</h1><p><a href="./">Recarregar</a></p></main>`;
  if (!token) return html`<${Entrar} />`;
  const View = place.refused.length ? Refused : place.missing.length ? Missing : VIEWS[place.view];
  return html`<${Frame} place=${place}>
    <${View} key=${place.view} place=${place} />
    ${place.open && html`<${Detalhe} key=${place.open} place=${place} />`}
  <//>`;
}

/** @param {Element} root */
function start(root) {
  root.replaceChildren();
  if (!canStore()) return render(html`<main class="broken"><h1>O navegador não permite que esta página guarde o token.</h1><p>Permita cookies e dados deste site nas configurações do navegador e <a href="./">recarregue a página</a>.</p></main>`, root);
  restoreTheme();
  resumeSession();
  reloadRestoredPage();
  followHistory();
  listenToKeys();
  keepFocus(root);
  return render(html`<${Console} />`, root);
}

const root = document.getElementById("console");
if (root) start(root);
