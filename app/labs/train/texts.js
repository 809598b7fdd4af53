// Training: what a run reads. Shipped texts, a pasted one, files of the visitor, texts of the run that was copied.
import { sendText } from './api.js';
import { makeSources } from './sources.js';
import { makeTextCard } from './text-card.js';
import { size } from './words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  paste: 'Paste a text', placeholder: 'One sentence on each line, a blank line between documents.',
  file: 'Send a file: text (.txt) or a table (.csv, .tsv, .jsonl, .parquet)', sending: 'Sending the text …', remove: 'Remove',
  kept: 'Texts of the run that these settings come from',
});
const OWN = 'texts/';

/** Leave the texts of a copied run out of a config: they went with the run that was just started. */
export function forgetOwn({ data }) {
  for (const name of ['texts', 'training_only']) if (data[name]) data[name] = data[name].filter((text) => !text.startsWith(OWN));
}

/**
 * prefix: of the ids. chosen(): names of texts in the config. choose(name, on), onChange() and onProblem(error or null) tell the form
 * what the visitor did.
 */
export function makeTexts({ prefix, chosen, choose, onChange, onProblem }) {
  let most = 0;
  let sent = []; // {text, column, card}
  let pasted = null; // the pasted text that was sent last, with its entry
  let sizes = new Map(); // of texts of the copied run, by name
  const sending = new Set(); // files under way; each comes to an error or null
  const boxes = element('div', { class: 'train-texts' });
  const kept = element('ul', { class: 'train-sent train-own-texts', 'aria-label': TEXT.kept });
  const list = element('ul', { class: 'train-sent' });
  const status = element('p', { class: 'train-note', role: 'status' });
  const paste = element('textarea', { id: `${prefix}-paste`, rows: '3', placeholder: TEXT.placeholder });
  const file = element('input', { type: 'file', id: `${prefix}-file`, accept: '.txt,.csv,.tsv,.jsonl,.parquet,text/plain' });
  const sources = makeSources({ prefix, onText: add, onProblem });
  const field = (label, input) => element('label', { class: 'train-field' }, element('span', { text: label }), input);
  const root = element('div', { class: 'train-reads' }, boxes, kept, list, status, field(TEXT.paste, paste), field(TEXT.file, file), sources.root);

  const idOf = ({ text, column }) => (column === null ? text.id : `${text.id}.${column}`);

  function entryOf(text, onRemove) {
    const entry = { text, column: text.column ?? null };
    entry.card = makeTextCard(entry, { id: `${prefix}-column-${text.id}`, onColumn: onChange, onRemove: onRemove && (() => onRemove(entry)) });
    entry.card.fill(text);
    return entry;
  }

  function add(text) {
    sent = [...sent.filter((each) => each.text.id !== text.id), entryOf(text, (entry) => {
      sent = sent.filter((each) => each !== entry);
      fill();
      onChange();
    })];
    fill();
    onChange();
  }

  /** Texts that went with the run whose settings these are. */
  function fillKept(names) {
    kept.replaceChildren(...names.map((name) => {
      const facts = sizes.get(name);
      const short = name.slice(OWN.length);
      return element('li', {}, element('span', { text: facts ? t`${short}: ${format.count(facts.lines)} lines, ${size(facts.bytes)}` : short }),
        element('button', { type: 'button', class: 'quiet', text: TEXT.remove, 'aria-label': t`Remove ${short}`, onclick: () => { choose(name, false); onChange(); } }));
    }));
    kept.hidden = !names.length;
  }

  function fill() {
    const names = chosen();
    for (const box of boxes.querySelectorAll('input')) box.checked = names.includes(box.value);
    fillKept([...new Set(names.filter((name) => name.startsWith(OWN)))]);
    const cards = [...sent, ...(pasted ? [pasted.entry] : [])].map(({ card }) => card.root);
    if (cards.length !== list.children.length || cards.some((card, n) => list.children[n] !== card)) list.replaceChildren(...cards);
  }

  paste.addEventListener('change', onChange);
  file.addEventListener('change', async () => {
    const chosenFile = file.files[0];
    if (!chosenFile) return;
    onProblem(null);
    status.textContent = TEXT.sending;
    const mine = send(chosenFile);
    sending.add(mine);
    const problem = await mine;
    sending.delete(mine);
    if (problem) onProblem(problem);
    status.textContent = sending.size ? TEXT.sending : '';
    file.value = '';
  });

  async function send(chosenFile) {
    try {
      if (chosenFile.size > most) throw new Error(t`${chosenFile.name} has ${size(chosenFile.size)}; up to ${size(most)} go.`);
      add(await sendText(chosenFile.name, chosenFile));
      return null;
    } catch (error) {
      return Object.assign(error, { message: error.message.includes(chosenFile.name) ? error.message : `${chosenFile.name}: ${error.message}` });
    }
  }

  return {
    root,
    fill,
    build(offer) {
      most = offer.most_bytes;
      sources.build(offer.sources);
      boxes.replaceChildren(...offer.texts.map((text) => {
        const box = element('input', { type: 'checkbox', value: text.pattern });
        box.addEventListener('change', () => { choose(text.pattern, box.checked); fill(); onChange(); });
        return element('label', { class: 'train-check' }, box, element('span', { text: message(text.title) }),
          element('span', { class: 'train-note', text: size(text.bytes) }));
      }));
    },
    /** Ids of the visitor's own texts; a pasted one is sent now, and a file that is being sent is waited for. */
    async ids() {
      while (sending.size) for (const problem of await Promise.all(sending)) if (problem) throw problem;
      const text = paste.value.trim() ? paste.value : '';
      if (!text) pasted = null;
      else if (pasted?.text !== text) {
        pasted = null;
        const answer = await sendText('pasted.txt', new Blob([text]));
        if (paste.value === text) pasted = { text, entry: entryOf(answer, null) };
      }
      return [...sent, ...(pasted ? [pasted.entry] : [])].map(idOf);
    },
    /** What the server counted: `reads` of the texts that were sent, `own` of those of the copied run. */
    show({ reads, own }) {
      const known = new Map(reads.map((each) => [each.id, each]));
      for (const entry of [...sent, ...(pasted ? [pasted.entry] : [])]) if (known.has(idOf(entry))) entry.card.fill(known.get(idOf(entry)));
      sizes = new Map(own.map((each) => [each.name, each]));
      fill();
    },
    /** Names of the visitor's own texts as files, with the column that is read of a table. */
    names: () => [...sent, ...(pasted ? [pasted.entry] : [])].map(({ text, column }) => ({ name: text.name, column: column === null ? null : text.columns[column] })),
    clear() { [sent, pasted, paste.value] = [[], null, '']; fill(); },
  };
}
