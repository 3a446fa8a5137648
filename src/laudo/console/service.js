// The service's address: the folder of this page, which is the host's root or a path that a proxy strips.

/** The base address of every route. */
export const SERVICE = new URL(".", location.href).href.slice(0, -1);

/** A storage key of this service alone: other services may share the host. @param {string} name */
export function storageKey(name) {
  return `laudo.${name} ${SERVICE}`;
}
