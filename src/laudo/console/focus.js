// Keeps the focus in the page: where what had it goes away, it passes to what stands for its surroundings.

/** What takes the focus for the part of the page around it. */
const HOME = "[data-home]";

/** From now on. @param {Element} root */
export function keepFocus(root) {
  /** What had the focus last, and all that is around it. @type {Element[]} */
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
