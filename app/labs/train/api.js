// Training: the routes of the server. Every failure becomes an Error with a message for people.

const { message, t } = window.Cloze;
const SILENT = t`The server does not answer. Is it still running? Your runs go on without it.`;

/** A secret of this browser: only with it can the runs that are made here be stopped and deleted. */
function secret() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
let owner = '';
export function own() {
  if (owner) return owner;
  try {
    owner = localStorage.getItem('cloze-owner') || secret();
    localStorage.setItem('cloze-owner', owner);
  } catch {
    owner ||= secret(); // storage is switched off: the runs are this page's until it is closed
  }
  return owner;
}

/** Python's words in the visitor's language; a list of errors has one on each line. */
export const said = (text) => text.split('\n').map((line) => message(line)).join('\n');

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`${window.ClozeRoot}train/${path}`, {
      ...options, headers: { 'x-cloze': 'train', 'x-cloze-owner': own(), ...(options.headers ?? {}) },
    });
  } catch {
    throw Object.assign(new Error(SILENT), { silent: true }); // or nobody wants the answer any more
  }
  const values = await answer.json().catch(() => null);
  if (answer.ok && values !== null && !values.error) return values;
  throw Object.assign(new Error(values?.error ? said(values.error) : t`The server answers with ${answer.status}.`),
    { silent: values === null });
}

export const get = (path) => ask(path);
export const post = (path, values = {}, signal = undefined) => ask(path, {
  method: 'POST', body: JSON.stringify(values), headers: { 'content-type': 'application/json' }, signal,
});
export const sendText = (name, content, column = '') => ask(`texts?${new URLSearchParams({ name, column })}`, {
  method: 'POST', body: content, headers: { 'content-type': 'application/octet-stream' },
});
export const sendLabelled = (name, content) => ask(`texts?${new URLSearchParams({ name, kind: 'labelled' })}`, {
  method: 'POST', body: content, headers: { 'content-type': 'application/octet-stream' },
});
