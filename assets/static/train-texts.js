// Training: what a run reads. Shipped texts, a pasted one, files of the visitor.
import { sendText } from './train-api.js';
import { size } from './train-words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  paste: 'Paste a text', placeholder: 'One sentence on each line, a blank line between documents.',
  file: 'Send a file: text (.txt) or a table (.csv, .tsv, .jsonl, .parquet)', column: 'Column of the text, in a table',
  columnHint: 'text, or the only one', sending: 'Sending the text …', remove: 'Remove',
});

/** Leave the texts of a copied run out of a config: they went with the run that was just started. */
export function forgetOwn({ data }) {
  for (const name of ['texts', 'training_only']) if (data[name]) data[name] = data[name].filter((text) => !text.startsWith('texts/'));
}

/**
 * prefix: of the ids. chosen(): patterns of shipped texts that are ticked. choose(pattern, on), onColumn(name),
 * onChange() and onProblem(error or null) tell the form what the visitor did.
 */
export function makeTexts({ prefix, chosen, choose, onColumn, onChange, onProblem }) {
  let most = 0;
  let sent = []; // texts that were sent: {id, name, lines, bytes}
  let pasted = null; // the pasted text that was sent last, and its entry
  const boxes = element('div', { class: 'train-texts' });
  const list = element('ul', { class: 'train-sent' });
  const status = element('p', { class: 'train-note', role: 'status' });
  const paste = element('textarea', { id: `${prefix}-paste`, rows: '3', placeholder: TEXT.placeholder });
  const file = element('input', { type: 'file', id: `${prefix}-file`, accept: '.txt,.csv,.tsv,.jsonl,.parquet,text/plain' });
  const column = element('input', { type: 'text', id: `${prefix}-column`, maxlength: '200', autocomplete: 'off', placeholder: TEXT.columnHint });
  const field = (label, input) => element('label', { class: 'train-field' }, element('span', { text: label }), input);
  const root = element('div', { class: 'train-reads' }, boxes, list, status, field(TEXT.paste, paste),
    element('div', { class: 'train-row train-send' }, field(TEXT.file, file), field(TEXT.column, column)));

  function fill() {
    const ticked = chosen();
    for (const box of boxes.querySelectorAll('input')) box.checked = ticked.includes(box.value);
    list.replaceChildren(...sent.map((text) => element('li', {},
      element('span', { text: text.column ? t`${text.name}: column “${text.column}”, ${size(text.bytes)}`
        : t`${text.name}: ${format.count(text.lines)} lines, ${size(text.bytes)}` }),
      text.sample?.length ? element('span', { class: 'train-note', text: t`begins “${text.sample[0].slice(0, 90)}”` }) : null,
      element('button', { type: 'button', class: 'quiet', text: TEXT.remove, onclick: () => {
        sent = sent.filter((each) => each !== text);
        fill();
        onChange();
      } }))));
  }

  paste.addEventListener('change', onChange);
  file.addEventListener('change', async () => {
    const chosenFile = file.files[0];
    if (!chosenFile) return;
    onProblem(null);
    status.textContent = TEXT.sending;
    try {
      if (chosenFile.size > most) throw new Error(t`${chosenFile.name} has ${size(chosenFile.size)}; up to ${size(most)} go.`);
      const text = await sendText(chosenFile.name, chosenFile, column.value.trim());
      if (text.column) onColumn(text.column);
      sent = [...sent.filter((each) => each.id !== text.id), text];
      fill();
      onChange();
    } catch (error) { onProblem(error); }
    status.textContent = '';
    file.value = '';
  });

  return {
    root,
    fill,
    build(offered, bytes) {
      most = bytes;
      boxes.replaceChildren(...offered.map((text) => {
        const box = element('input', { type: 'checkbox', value: text.pattern });
        box.addEventListener('change', () => { choose(text.pattern, box.checked); fill(); onChange(); });
        return element('label', { class: 'train-check' }, box, element('span', { text: message(text.title) }),
          element('span', { class: 'train-note', text: size(text.bytes) }));
      }));
    },
    /** Ids of the visitor's own texts; a pasted one is sent now. */
    async ids() {
      const text = paste.value.trim() ? paste.value : '';
      if (text && pasted?.text !== text) pasted = { text, entry: await sendText('pasted.txt', new Blob([text])) };
      if (!text) pasted = null;
      return [...sent.map(({ id }) => id), ...(pasted ? [pasted.entry.id] : [])];
    },
    clear() { [sent, pasted, paste.value] = [[], null, '']; fill(); },
  };
}
