// Where the service is: its root is the folder of this page, be it that of the host or below a path that a proxy takes off.

/** The address that every route is below. */
export const SERVICE = new URL(".", location.href).href.slice(0, -1);

/** Name what a tab keeps for this service alone: others may share the host. @param {string} what */
export function own(what) {
  return `laudo.${what} ${SERVICE}`;
}
