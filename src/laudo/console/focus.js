// Keeps the focus in the page: if the focused element is removed, the nearest element marked `data-home` gets the focus.

/** Elements that may receive the focus on behalf of the part of the page around them. */
const HOME = "[data-home]";

/** Start keeping the focus. @param {Element} root */
export function keepFocus(root) {
  /** The element that had the focus last, and all its ancestors. @type {Element[]} */
  let focusedPath = [];
  addEventListener("focusin", ({ target }) => {
    focusedPath = [];
    for (let element = target instanceof Element ? target : null; element; element = element.parentElement) focusedPath.push(element);
  });
  const restoreFocus = () => {
    if (!focusedPath.length || focusedPath[0].isConnected || document.activeElement !== document.body) return;
    const homes = focusedPath.filter((element) => element.isConnected).flatMap((element) => [...element.querySelectorAll(HOME)]);
    const home = homes.find((element) => element.getClientRects().length);
    if (home instanceof HTMLElement) home.focus({ preventScroll: true });
  };
  new MutationObserver(restoreFocus).observe(root, { childList: true, subtree: true });
}
