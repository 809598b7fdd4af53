// Training: the tables of a labelled set that a visitor sends. A refused one takes the place of the one before it.
import { sendLabelled } from './api.js';
import { size } from './words.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  file: 'Send a table (.csv, .tsv, .jsonl, .parquet)', dev: 'Rows to measure on (optional)',
  paste: 'Or paste one, with a first row of column names', remove: 'Remove', sending: 'Sending the table …',
  held: 'Without a second table 15 % of the rows are kept to measure on.', without: 'Go on without it',
});
const PLACEHOLDER = 'text,label\nThe film was a joy.,positive\nI left after an hour.,negative';
const ENDINGS = '.csv,.tsv,.jsonl,.parquet';

/** onChange(part) is told when a table is gone, was sent or was refused; most(): bytes that may be sent. */
export function makeSent({ most, onChange }) {
  const tables = { set: null, dev: null }; // {id, name, bytes}
  const refused = { set: null, dev: null };
  const turns = { set: 0, dev: 0 };
  const field = (label, input, ...more) => element('div', { class: 'train-field' }, element('label', { for: input.id }, element('span', { text: label })), input, ...more);
  const input = (id) => element('input', { type: 'file', id, accept: ENDINGS });
  const files = { set: input('train-set-file'), dev: input('train-set-dev') };
  const notes = { set: element('p', { class: 'train-kept', role: 'status' }), dev: element('p', { class: 'train-kept', role: 'status' }) };
  const paste = element('textarea', { id: 'train-set-paste', rows: '4', placeholder: PLACEHOLDER, spellcheck: 'false' });
  const root = element('div', { class: 'train-own', hidden: true },
    element('div', { class: 'train-row train-files-row' }, field(TEXT.file, files.set, notes.set), field(TEXT.dev, files.dev, notes.dev)),
    field(TEXT.paste, paste), element('p', { class: 'train-note', text: TEXT.held }));

  function draw(part, busy = '') {
    const table = tables[part];
    const lead = busy || (table ? t`${table.name}, ${size(table.bytes)}` : refused[part] ? t`${refused[part].name} was refused.` : '');
    const button = table ? TEXT.remove : refused[part] && part === 'dev' ? TEXT.without : null;
    notes[part].replaceChildren(...[element('span', { text: lead }), button && !busy ? element('button', {
      type: 'button', class: 'quiet', text: button, onclick: () => forget(part) }) : null].filter(Boolean));
  }

  function forget(part) {
    turns[part] += 1;
    [tables[part], refused[part], files[part].value] = [null, null, ''];
    if (part === 'set') paste.value = '';
    draw(part);
    onChange(part);
  }

  async function send(part, name, content) {
    turns[part] += 1;
    const mine = turns[part];
    [tables[part], refused[part]] = [null, null];
    draw(part, TEXT.sending);
    onChange(part);
    try {
      if (content.size > most()) throw new Error(t`${name} has ${size(content.size)}; up to ${size(most())} go.`);
      const table = await sendLabelled(name, content);
      if (mine !== turns[part]) return;
      tables[part] = table;
    } catch (error) {
      if (mine !== turns[part]) return;
      refused[part] = { name, message: error.message.includes(name) ? error.message : `${name}: ${error.message}` };
    }
    files[part].value = '';
    draw(part);
    onChange(part);
  }

  for (const part of ['set', 'dev']) {
    files[part].addEventListener('change', () => {
      const [file] = files[part].files;
      if (!file) return;
      if (part === 'set') paste.value = '';
      send(part, file.name, file);
    });
  }
  paste.addEventListener('change', () => { if (paste.value.trim()) send('set', 'pasted', new Blob([paste.value])); else if (tables.set?.name.startsWith('pasted')) forget('set'); });

  return {
    root,
    tables,
    /** Why there is nothing to learn from, where a table was refused. */
    problem: () => (refused.set ?? refused.dev)?.message ?? null,
    names: () => [tables.set, tables.dev].filter(Boolean).map(({ name }) => ({ name })),
    ids: () => (tables.set && !refused.dev ? [tables.set.id, tables.dev?.id].filter(Boolean) : []),
  };
}
