// Training: the numbers as a table, and what a run was asked to do.
import { get } from './api.js';
import { code, scroll } from './areas.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  log: 'Log', config: 'Settings (config.json)', command: 'The command that starts or continues this run',
  copy: 'Copy', copied: 'Copied', select: 'Press Ctrl+C', diff: (name) => t`What differs from ${name}`, same: 'The settings are the same.', unset: 'not set',
  setting: 'Setting',
});

export function copyButton(target) {
  const button = element('button', { type: 'button', class: 'quiet outlined', text: TEXT.copy });
  button.addEventListener('click', async () => {
    const { copyText } = await import('../../parts/export.js');
    button.textContent = await copyText(target.textContent, target) ? TEXT.copied : TEXT.select;
    setTimeout(() => { button.textContent = TEXT.copy; }, 2000);
  });
  return button;
}

function leaves(value, path = '') {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, child]) => leaves(child, path ? `${path}.${key}` : key));
}

/** Rows [path, left, right] of what differs between two configs. */
export function difference(left, right) {
  const [a, b] = [new Map(leaves(left)), new Map(leaves(right))];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((path) => a.get(path) !== b.get(path) && !['name', 'description'].includes(path)).sort()
    .map((path) => [path, a.get(path) ?? TEXT.unset, b.get(path) ?? TEXT.unset]);
}

export function makeSettings() {
  const log = code(TEXT.log, 'train-log');
  const config = code(TEXT.config);
  const command = code(TEXT.command);
  const diffs = element('div');
  const logs = element('details', {}, element('summary', { text: TEXT.log }), log);
  const configs = new Map();
  const root = element('section', { class: 'card train-settings' },
    diffs, logs,
    element('details', {}, element('summary', { text: TEXT.config }), config, copyButton(config)),
    element('details', {}, element('summary', { text: TEXT.command }), command, copyButton(command)));

  function read(id, query = '') {
    const key = id + query;
    if (!configs.has(key)) {
      configs.set(key, get(`runs/${id}/config${query}`).catch((error) => { configs.delete(key); throw error; }));
    }
    return configs.get(key);
  }
  const full = (id) => read(id, '?full=1'); // a setting left out does not differ from its default

  let drawn = '';
  async function fill(id, live, others) {
    const lines = live.log.join('\n');
    if (log.textContent !== lines) {
      log.textContent = lines;
      log.scrollTop = log.scrollHeight;
    }
    command.textContent = live.command;
    const key = [id, ...others].join();
    if (key === drawn) return;
    // What is shown until then is of another run, or compares it with others.
    if (drawn.split(',')[0] !== id) config.textContent = '';
    diffs.replaceChildren();
    drawn = key;
    let found;
    try {
      const own = await read(id);
      if (key !== drawn) return;
      config.textContent = JSON.stringify(own, null, 2);
      found = await Promise.all(others.map(async (other) => [other, difference(await full(id), await full(other))]));
    } catch { // that the server is silent is told elsewhere; the next report asks again
      if (key === drawn) drawn = '';
      return;
    }
    if (key !== drawn) return;
    diffs.replaceChildren(...found.map(([other, rows]) => element('div', { class: 'train-diff' },
      element('h3', { text: TEXT.diff(other) }),
      rows.length ? scroll(TEXT.diff(other), element('table', {},
        element('thead', {}, element('tr', {}, ...[TEXT.setting, id, other].map((text) => element('th', { scope: 'col', text })))),
        element('tbody', {}, ...rows.map(([path, left, right]) => element('tr', {},
          element('th', { scope: 'row', text: path }), element('td', { text: left }), element('td', { text: right }))))))
        : element('p', { class: 'train-note', text: TEXT.same }))));
  }
  return { root, fill };
}
