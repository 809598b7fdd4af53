// Training: the routes of the server. Every failure becomes an Error with a message for people.

const SILENT = 'The server does not answer. Is it still running? Your runs go on without it.';

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`/train/${path}`, {
      ...options, headers: { 'x-cloze': 'train', ...(options.headers ?? {}) },
    });
  } catch {
    throw Object.assign(new Error(SILENT), { silent: true });
  }
  const values = await answer.json().catch(() => null);
  if (answer.ok && values !== null && !values.error) return values;
  throw Object.assign(new Error(values?.error ?? `The server answers with ${answer.status}.`),
    { silent: values === null });
}

export const get = (path) => ask(path);
export const post = (path, values = {}) => ask(path, {
  method: 'POST', body: JSON.stringify(values), headers: { 'content-type': 'application/json' },
});
export const sendText = (name, content, column = '') => ask(`texts?${new URLSearchParams({ name, column })}`, {
  method: 'POST', body: content, headers: { 'content-type': 'application/octet-stream' },
});
