// Training: one text that was sent, as it was read: rows of a table with the chosen column, or the first documents.
import { scroll } from './areas.js';
import { size } from './words.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  remove: 'Remove', rows: 'Rows of the table, as they are read', row: 'Row', documents: 'The first documents, as they are read',
  column: 'Column of the text',
});

function rowTable(text) {
  const table = element('table', { class: 'train-parsed' },
    element('thead', {}, element('tr', {}, element('th', { scope: 'col', text: TEXT.row }),
      ...text.columns.map((name) => element('th', { scope: 'col' }, element('bdi', { text: name }))))),
    element('tbody', {}, ...text.rows.map((row, n) => element('tr', {}, element('th', { scope: 'row', text: format.count(text.numbers[n]) }),
      ...row.map((cell) => element('td', {}, element('bdi', { text: cell })))))));
  const [shown, all] = [format.count(text.rows.length), format.count(text.of)];
  const told = text.more ? t`${shown} of the first ${all} rows, from all their parts.`
    : text.rows.length < text.of ? t`${shown} of ${all} rows, from all parts of the table.` : null;
  return element('div', {}, scroll(TEXT.rows, table), told ? element('p', { class: 'train-note', text: told }) : null);
}

const documentList = (text) => scroll(TEXT.documents, element('ol', { class: 'train-documents' },
  ...text.sample.map((document) => element('li', {}, ...document.map((sentence) => element('p', {}, element('bdi', { text: sentence })))))));

/** entry: {text, column}, column null for a text. onColumn() when another one is chosen; onRemove null where it goes with the paste. */
export function makeTextCard(entry, { id, onColumn, onRemove }) {
  const { text } = entry;
  const facts = element('span', { class: 'train-note' });
  const select = text.columns?.length ? element('select', { id }, ...text.columns.map((name, place) => {
    const option = element('option', { value: String(place), text: name });
    option.disabled = !text.usable[place];
    return option;
  })) : null;
  const preview = select ? rowTable(text) : text.sample?.length ? documentList(text) : null;
  const root = element('li', { class: 'train-text' },
    element('div', { class: 'train-text-head' }, element('b', {}, element('bdi', { text: text.name })), facts,
      select ? element('label', { class: 'train-text-column' }, element('span', { text: TEXT.column }), select) : null,
      onRemove ? element('button', { type: 'button', class: 'quiet', text: TEXT.remove, 'aria-label': t`Remove ${text.name}`, onclick: onRemove }) : null),
    ...[preview].filter(Boolean));

  function mark() {
    if (!select) return;
    select.value = String(entry.column);
    for (const row of preview.querySelectorAll('tr')) {
      [...row.children].forEach((cell, place) => cell.classList.toggle('chosen', place === entry.column + 1));
    }
  }
  select?.addEventListener('change', () => {
    entry.column = Number(select.value);
    mark();
    onColumn();
  });
  mark();
  return {
    root,
    /** What the server counted in the chosen column. */
    fill({ lines, documents, bytes }) {
      facts.textContent = t`${format.count(lines)} lines in ${format.count(documents)} documents, ${size(bytes)}`;
    },
  };
}
