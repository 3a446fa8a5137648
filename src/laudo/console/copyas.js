// The current list as code to paste: curl, Python or the command line. Pure. The token is a variable, never its value.

/** Quote for a POSIX shell, and for zsh, which expands a word that begins with "=" to the path of a command. @param {string} text */
export function shell(text) {
  return /^(?!=)[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Quote for Python. @param {string} text */
export function python(text) {
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** @param {string} base the service's address @param {string} path @param {Record<string, string>} parameters */
export function curl(base, path, parameters) {
  const lines = [`curl --get ${shell(base + path)}`, '--header "Authorization: $LAUDO_TOKEN"'];
  for (const [name, value] of Object.entries(parameters)) lines.push(`--data-urlencode ${shell(`${name}=${value}`)}`);
  return lines.join(" \\\n  ");
}

/** @param {string} base @param {string} path @param {Record<string, string>} parameters */
export function sdk(base, path, parameters) {
  const args = Object.entries(parameters).map(([name, value]) => `${name}=${literal(name, value)}`);
  const call = args.length > 2 ? `\n    ${args.join(",\n    ")},\n` : args.join(", ");
  const body = `for item in client.${path.slice(1)}(${call}):\n    print(item)`;
  return `import os\n\nfrom laudo.client import Laudo\n\nclient = Laudo(${python(base)}, os.environ["LAUDO_TOKEN"])\n${body}`;
}

/** @param {string} base @param {string} path @param {Record<string, string>} parameters */
export function cli(base, path, parameters) {
  const options = Object.entries(parameters).map(([name, value]) => `--${name.replaceAll("_", "-")} ${shell(value)}`);
  return [`LAUDO_URL=${shell(base)} laudo ${path.slice(1)}`, ...options].join(options.length > 2 ? " \\\n  " : " ");
}

/** @param {string} name @param {string} value */
function literal(name, value) {
  if (name === "pendente_validacao_manual") return value === "true" ? "True" : "False";
  return python(value);
}
