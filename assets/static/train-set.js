// Training: a labelled set is chosen or sent, and shown: columns, labels, first rows, warnings.
import { post, said, sendLabelled } from './train-api.js';
import { scroll } from './train-areas.js';
import { sentences, size } from './train-words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  set: 'Labelled set', own: 'my own table …', file: 'Send a table (.csv, .tsv, .jsonl)', dev: 'Rows to measure on (optional)',
  paste: 'Or paste one, with a first row of column names',
  kind: 'What it asks', guessed: 'as the columns suggest', column: (role) => t`Column: ${role}`, none: 'none',
  held: 'Without a second table 15 % of the rows are kept to measure on.',
  rows: 'First rows', raw: 'The table as it was read',
});
const PLACEHOLDER = 'text,label\nThe film was a joy.,positive\nI left after an hour.,negative';
export const KINDS = texts({
  classify: 'a label of a text', pair: 'a label of two texts', regress: 'a score', tag: 'a tag for each word', answer: 'an answer in a text',
});
const ROLES = texts({
  text: 'text', text_b: 'second text', label: 'label', score: 'score', tokens: 'words', tags: 'tags', context: 'text',
  question: 'question', answers: 'answers', start: 'first character',
});

function labelBars(labels) {
  const most = Math.max(...Object.values(labels));
  return element('ul', { class: 'train-labels' }, ...Object.entries(labels).slice(0, 24).map(([label, count]) => {
    const fill = element('span', { class: 'train-fill' });
    fill.style.transform = `scaleX(${count / most})`;
    return element('li', {}, element('bdi', { text: label }), element('span', { class: 'train-bar', 'aria-hidden': 'true' }, fill),
      element('span', { text: format.count(count) }));
  }));
}

function rowTable(rows) {
  return scroll(TEXT.rows, element('table', { class: 'train-rows-table' },
    element('tbody', {}, ...rows.map((row) => element('tr', {},
      element('td', {}, element('bdi', { text: row.text }), row.pair ? element('small', {}, element('bdi', { text: row.pair })) : null),
      element('td', {}, element('bdi', { text: row.said || '—' })))))));
}

/** `onChange()` is called when task(), texts() or facts() has changed. */
export function makeSet({ onChange, onProblem }) {
  let offer = null;
  let sent = { set: null, dev: null };
  let mapping = { kind: null, columns: {} };
  let facts = null;
  let asked = 0;

  const field = (label, input, ...more) => element('label', { class: 'train-field' }, element('span', { text: label }), input, ...more);
  const choice = element('select', { id: 'train-set' });
  const file = element('input', { type: 'file', id: 'train-set-file', accept: '.csv,.tsv,.jsonl' });
  const dev = element('input', { type: 'file', id: 'train-set-dev', accept: '.csv,.tsv,.jsonl' });
  const paste = element('textarea', { id: 'train-set-paste', rows: '4', placeholder: PLACEHOLDER, spellcheck: 'false' });
  const kind = element('select', { id: 'train-set-kind' });
  const roles = element('div', { class: 'train-row' });
  const map = element('div', { class: 'train-map', hidden: true }, field(TEXT.kind, kind), roles);
  const own = element('div', { class: 'train-own', hidden: true },
    element('div', { class: 'train-row train-files-row' }, field(TEXT.file, file), field(TEXT.dev, dev)), field(TEXT.paste, paste),
    element('p', { class: 'train-note', text: TEXT.held }));
  const about = element('div', { class: 'train-about', 'aria-live': 'polite' });
  const root = element('div', { class: 'train-set' }, field(TEXT.set, choice), own, map, about);

  function fillMap() {
    const columns = facts?.columns ?? [];
    map.hidden = !columns.length;
    if (map.hidden) return;
    kind.replaceChildren(...Object.entries(KINDS).map(([value, text]) => element('option', { value, text })));
    kind.value = mapping.kind ?? facts.kind ?? 'classify';
    roles.replaceChildren(...offer.kinds[kind.value].map((role) => {
      const select = element('select', { id: `train-role-${role}` }, element('option', { value: '', text: TEXT.none }),
        ...columns.map((column) => element('option', { value: column, text: column })));
      select.value = mapping.columns[role] ?? (facts.kind === kind.value ? facts.guess?.[role] : null) ?? '';
      select.addEventListener('change', () => {
        if (select.value) mapping.columns[role] = select.value; else delete mapping.columns[role];
        mapping.kind = kind.value;
        look();
      });
      return field(TEXT.column(ROLES[role] ?? role), select);
    }));
  }

  function fillAbout() {
    if (!facts?.train) { about.replaceChildren(...(facts?.cells ? [rawTable()] : [])); return; }
    const { train, dev: measured } = facts;
    const [learned, kept, length] = [format.count(train.rows), format.count(measured.rows), train.mean_length.toFixed(0)];
    const lines = [facts.chinese ? t`${learned} rows to learn from and ${kept} to measure on, ${length} characters on average: ${KINDS[facts.kind]}.`
      : t`${learned} rows to learn from and ${kept} to measure on, ${length} words on average: ${KINDS[facts.kind]}.`];
    if (train.scores) lines.push(t`Scores from ${train.scores[0]} to ${train.scores[1]}.`);
    if (train.unanswered) lines.push(t`${train.unanswered} questions have no answer.`);
    about.replaceChildren(...[
      element('p', { class: 'train-sum', text: sentences(...lines) }),
      Object.keys(train.labels).length ? labelBars(train.labels) : null,
      facts.warnings.length ? element('ul', { class: 'train-warnings' }, ...facts.warnings.map((text) => element('li', { text: message(text) }))) : null,
      rowTable(facts.rows)].filter(Boolean));
  }

  const rawTable = () => scroll(TEXT.raw, element('table', {},
    element('thead', {}, element('tr', {}, ...facts.columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...facts.cells.map((row) => element('tr', {}, ...facts.columns.map((name) => element('td', { text: row[name] ?? '' })))))));

  async function look(byVisitor = true) {
    const set = choice.value || sent.set?.id;
    own.hidden = Boolean(choice.value);
    if (!set) { facts = null; map.hidden = true; about.replaceChildren(); onChange(byVisitor); return; }
    asked += 1;
    const mine = asked;
    try {
      const task = choice.value ? { set } : { set, dev: sent.dev?.id, kind: mapping.kind, columns: mapping.columns };
      const found = await post('look', { task });
      if (mine !== asked) return;
      facts = found;
      fillMap();
      fillAbout();
      root.dataset.state = facts.problem ? 'error' : 'ready';
      onProblem(facts.problem ? said(facts.problem) : null);
      if (!facts.problem) onChange(byVisitor);
    } catch (error) {
      if (mine === asked) onProblem(error.message);
    }
  }

  async function send(part, name, content) {
    try {
      if (content.size > offer.most_bytes) throw new Error(t`${name} has ${size(content.size)}; up to ${size(offer.most_bytes)} go.`);
      sent[part] = await sendLabelled(name, content);
      if (part === 'set') mapping = { kind: null, columns: {} };
      await look();
    } catch (error) { onProblem(error.message); }
  }

  choice.addEventListener('change', () => look());
  file.addEventListener('change', () => { if (file.files[0]) send('set', file.files[0].name, file.files[0]); });
  dev.addEventListener('change', () => {
    if (dev.files[0]) send('dev', dev.files[0].name, dev.files[0]);
    else { sent.dev = null; look(); }
  });
  paste.addEventListener('change', () => { if (paste.value.trim()) send('set', 'pasted', new Blob([paste.value])); });
  kind.addEventListener('change', () => { mapping = { kind: kind.value, columns: {} }; look(); });

  return {
    root,
    facts: () => (facts?.problem ? null : facts),
    build(offered) {
      if (offer) return;
      offer = offered;
      choice.replaceChildren(...offer.sets.map((each) => element('option', { value: each.name, text: message(each.title) })),
        element('option', { value: '', text: TEXT.own }));
      choice.value = offer.sets.some((each) => each.name === 'sentiment') ? 'sentiment' : offer.sets[0]?.name ?? '';
      look(false);
    },
    /** The part `task` of the config, and the ids of the files that belong to it. */
    task() {
      if (choice.value) return { set: choice.value };
      const columns = Object.keys(mapping.columns).length ? { columns: mapping.columns } : {};
      return mapping.kind ? { kind: mapping.kind, ...columns } : columns;
    },
    texts: () => (choice.value ? [] : [sent.set?.id, sent.set && sent.dev?.id].filter(Boolean)),
    choose(name) {
      if (offer.sets.some((each) => each.name === name)) { choice.value = name; look(false); return true; }
      return false;
    },
  };
}
