// Parts that say what Python answered: a line, a table, a listing, a file (app/parts/plain.py).
import { cell, copyText, download, safe } from './download.js';
import { BROKEN, downloadDrawing, downloadPicture } from './export.js';

const { Cloze } = window;
const { chooseExample, element, field, language, message, onSentence, phrase, question, sentence, texts } = Cloze;
const TEXT = texts({
  csv: 'Save as CSV', numbers: 'The numbers', svg: 'Save as SVG', png: 'Save as PNG', more: 'More rows are in no table.', code: 'The code that recomputes this', copy: 'Copy', copied: 'Copied', press: 'Press Ctrl+C',
});

const SHORT = 30; // letters of a cell that may be as narrow as its longest word

const shown = (value) => {
  if (Array.isArray(value)) return value[1];
  if (typeof value !== 'number') return value ?? '–';
  if (Number.isInteger(value)) return value.toLocaleString('en');
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return Math.abs(value) < 1e-4 && value !== 0 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
};
/** Texts that came from Python, one on each line. */
const messages = (text) => String(text).split('\n').map(message).join('\n');
/** Settings that begin a line, by what they are called on the page. */
const named = (text, names) => text.replace(/^[\w.]+/gm, (path) => (Object.hasOwn(names, path) ? phrase([names[path]]) : path));
const plain = (value) => (Array.isArray(value) ? value[0] : value);

/** A value with the words of the page's language: `words` are pairs of a path and the text told as its key and values. */
export function spoken({ words = [], ...value }) {
  const copy = structuredClone(value);
  for (const [path, told] of words) {
    const holder = path.slice(0, -1).reduce((found, key) => found?.[key], copy);
    if (holder) holder[path.at(-1)] = phrase(told);
  }
  return copy;
}

/** A table in the page's language, its columns of messages, too. */
function translated(value, say = messages) {
  const found = spoken(value);
  const cellOf = (each, n) => (found.messages?.includes(n) && typeof each === 'string' ? say(each) : each);
  return { ...found, rows: found.rows.map((row) => row.map(cellOf)) };
}

/** Rows under their headings; the first cell of a row names it. */
export function tableOf({ caption, columns, rows, left_out: more = 0 }) {
  const line = (row) => element('tr', {}, ...row.map((value, n) => {
    const text = element('bdi', { text: shown(value) });
    const kind = typeof plain(value) === 'number' ? 'number' : text.textContent.length > SHORT ? 'long' : undefined;
    return n ? element('td', { class: kind, 'data-label': columns[n] }, text)
      : element('th', { scope: 'row' }, text);
  }));
  return element('div', {}, element('table', {},
    caption ? element('caption', { text: caption }) : null,
    element('thead', {}, element('tr', {}, ...columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...rows.map(line))), more ? element('p', { text: TEXT.more }) : null);
}

/** Save rows of cells. */
export const saveRows = (name, rows) => download(`${name}.csv`,
  rows.map((row) => row.map((value) => cell(plain(value))).join(',')).join('\r\n'), 'text/csv;charset=utf-8');

/** A button that saves a table as CSV; `current()` gives it. */
export const csvButton = (name, current) => element('button', {
  type: 'button', class: 'quiet outlined', text: TEXT.csv,
  onclick: () => {
    const { columns, rows, left_out: more = 0 } = current();
    saveRows(name, [columns, ...rows, ...(more ? [[TEXT.more]] : [])]);
  },
});

/** A table for a file, where blanks are those that people search for. */
const written = (value) => translated(value, (text) => messages(text).replaceAll('\u00a0', ' '));

/** Open a fold of the lab around a part, where it is closed. */
const unfold = (part, label) => [...part.closest('[role="tabpanel"]').querySelectorAll('button.label-wrap:not(.open)')]
  .find((button) => button.textContent.trim().startsWith(label))?.click();

function mountLine(view, kind) {
  const line = element('p', { class: kind, role: 'status' });
  const show = () => {
    const { text = '', told, names = {}, folds = [] } = view.value ?? {};
    line.textContent = told ? phrase(told) : named(messages(text ?? ''), names);
    line.hidden = !line.textContent;
    folds.forEach((label) => unfold(view.root, phrase([label])));
  };
  view.root.replaceChildren(line);
  view.onValue(show);
  show();
  if (kind === 'problem') view.send('seen', {});
}

/** A button that copies `text()`; where a page may not, `box` is selected. */
function copyButton(box, text) {
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: TEXT.copy });
  copy.addEventListener('click', async () => {
    copy.textContent = await copyText(text(), box) ? TEXT.copied : TEXT.press;
    setTimeout(() => { copy.textContent = TEXT.copy; }, 2000);
  });
  return copy;
}

const tabbed = ({ columns, rows }) => [columns, ...rows]
  .map((row) => row.map((value) => String(shown(typeof value === 'number' ? value : safe(value))).replaceAll(/\s+/g, ' ')).join('\t')).join('\n');

function mountTable(view) {
  const box = element('div', { class: 'table-scroll', tabindex: '0', role: 'region' });
  const { files, copies } = view.root.dataset; // of a table that is no text
  const save = files ? csvButton(files, () => written(view.value)) : '';
  const copy = copies === undefined ? [] : [' ', copyButton(box, () => tabbed(written(view.value)))];
  const show = () => {
    const found = view.value?.columns ? translated(view.value) : null;
    view.root.hidden = !found;
    if (!found) return;
    box.setAttribute('aria-label', found.caption || TEXT.numbers);
    box.replaceChildren(tableOf(found));
  };
  view.root.replaceChildren(box, save, ...copy);
  view.onValue(show);
  show();
}

function mountListing(view) {
  const code = element('pre', { class: 'code', tabindex: '0', role: 'region', 'aria-label': TEXT.code });
  const copy = copyButton(code, () => code.textContent);
  view.root.replaceChildren(element('details', {}, element('summary', { text: TEXT.code }), code, copy));
  const show = () => {
    code.textContent = view.value?.text ?? '';
    view.root.hidden = !code.textContent;
  };
  view.onValue(show);
  show();
}

function mountFiles(view) {
  const name = view.root.dataset.files;
  const problem = element('p', { class: 'problem', role: 'status', hidden: true, text: BROKEN });
  const wanted = new Set();
  const button = (kind) => element('button', {
    type: 'button', class: 'quiet outlined', text: TEXT[kind],
    onclick: () => { wanted.add(kind); problem.hidden = true; view.send('ask', {}); },
  });
  view.root.replaceChildren(button('svg'), ' ', button('png'), problem);
  view.onValue(() => {
    const { text } = view.value ?? {};
    if (!text) return;
    if (wanted.delete('svg')) downloadDrawing(`${name}.svg`, text);
    if (wanted.delete('png')) downloadPicture(`${name}.png`, text).catch(() => { problem.hidden = false; });
  });
}

function mountHeading(view) {
  const heading = element('h2');
  const show = () => {
    const { text = '', told } = view.value ?? {};
    heading.textContent = told ? phrase(told) : message(text);
  };
  view.root.replaceChildren(heading);
  view.onValue(show);
  show();
}

// Gradio tells of a value only when it is another one. What a link holds of the lab is there before the first one: a
// question without it would be answered as if the visitor had chosen nothing.
function mountSentenceInput(view) {
  const reads = view.root.dataset.reads.split(' ');
  const tell = onSentence(view, ({ model, error }) => {
    if (!model || Cloze.arriving() || Cloze.restoring(view.root)) return false;
    const asked = { ...question(), language };
    // A text that cannot be read is asked about as it stands: the lab says, too, why it cannot.
    if (error) Object.assign(asked, { text: field('sentence-text')?.value ?? asked.text, marks: [] });
    view.value = Object.fromEntries(reads.map((name) => [name, asked[name]]));
    return true;
  });
  document.addEventListener('cloze:restored', tell);
}

// What was found in another text than the one that is there by now hides nothing.
function mountSentenceOutput(view) {
  view.onValue(() => {
    const { text, hide } = view.value ?? {};
    if (!hide) return;
    view.value = { ...view.value, hide: null };
    if (text === sentence.text) chooseExample({ text, hide });
  });
}

const KINDS = {
  'view-heading': mountHeading, 'view-sentence-input': mountSentenceInput, 'view-sentence-output': mountSentenceOutput, 'view-kept': () => {},
  'view-answer-line': (view) => mountLine(view, 'summary'), 'view-problem-line': (view) => mountLine(view, 'problem'), 'view-table': mountTable, 'view-listing': mountListing,
  'view-files': mountFiles,
};

export function mount(view) {
  const [, make] = Object.entries(KINDS).find(([name]) => view.root.classList.contains(name));
  make(view);
}
