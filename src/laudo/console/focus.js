// Keeps the focus in the page: if the focused element is removed, the nearest element marked `data-home` gets the focus.

/** Elements that may receive the focus on behalf of the part of the page around them. */
const HOME = "[data-home]";

/** Start keeping the focus. @param {Element} root */
export function keepFocus(root) {
  /** The element that had the focus last, and all its ancestors. @type {Element[]} */
  let around = [];
  addEventListener("focusin", ({ target }) => {
    around = [];
    for (let element = target instanceof Element ? target : null; element; element = element.parentElement) around.push(element);
  });
  const pass = () => {
    if (!around.length || around[0].isConnected || document.activeElement !== document.body) return;
    const homes = around.filter((element) => element.isConnected).flatMap((element) => [...element.querySelectorAll(HOME)]);
    const home = homes.find((element) => element.getClientRects().length);
    if (home instanceof HTMLElement) home.focus({ preventScroll: true });
  };
  new MutationObserver(pass).observe(root, { childList: true, subtree: true });
}
