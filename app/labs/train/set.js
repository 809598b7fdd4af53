// Training: a labelled set is chosen or sent, and shown: columns, labels, first rows, warnings.
import { post, said } from './api.js';
import { scroll } from './areas.js';
import { makeSent } from './sets-sent.js';
import { sentences } from './words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  set: 'Labelled set', own: 'my own table …',
  kind: 'What it asks', column: (role) => t`Column: ${role}`, none: 'none',
  rows: 'Rows to learn from', raw: 'The table as it was read',
});
const KEPT = '*';
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

function rowTable(rows, all) {
  const table = element('table', { class: 'train-rows-table' },
    element('tbody', {}, ...rows.map((row) => element('tr', {}, element('th', { scope: 'row', text: t`Row ${format.count(row.number)}` }),
      element('td', {}, element('bdi', { text: row.text }), row.pair ? element('small', {}, element('bdi', { text: row.pair })) : null),
      element('td', {}, element('bdi', { text: row.said || '—' }))))));
  const note = t`${format.count(rows.length)} of the ${format.count(all)} rows to learn from, with their numbers in the table.`;
  return element('div', {}, scroll(TEXT.rows, table), element('p', { class: 'train-note', text: note }));
}

/** `onChange()` is called when task(), texts() or facts() has changed. */
export function makeSet({ onChange, onProblem }) {
  let offer = null;
  let mapping = { kind: null, columns: {} };
  let facts = null;
  let current = false; // whether the facts are those of what is chosen now
  let asked = 0;
  let missed = false; // the server did not answer: that says nothing of the set
  let from = null; // run whose file is kept

  const field = (label, input, ...more) => element('label', { class: 'train-field' }, element('span', { text: label }), input, ...more);
  const choice = element('select', { id: 'train-set' });
  const sent = makeSent({
    most: () => offer.most_bytes,
    onChange: (part) => {
      if (part === 'set') mapping = { kind: null, columns: {} };
      look();
    },
  });
  const kind = element('select', { id: 'train-set-kind' });
  const roles = element('div', { class: 'train-row' });
  const map = element('div', { class: 'train-map', hidden: true }, field(TEXT.kind, kind), roles);
  const about = element('div', { class: 'train-about', 'aria-live': 'polite' });
  const root = element('div', { class: 'train-set' }, field(TEXT.set, choice), sent.root, map, about);

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
        look(true, true);
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
      rowTable(facts.rows, train.rows)].filter(Boolean));
  }

  const rawTable = () => scroll(TEXT.raw, element('table', {},
    element('thead', {}, element('tr', {}, ...facts.columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...facts.cells.map((row) => element('tr', {}, ...facts.columns.map((name) => element('td', { text: row[name] ?? '' })))))));

  /** Nothing of an earlier table stays: what is shown is what would be learned. */
  function forget() {
    facts = null;
    map.hidden = true;
    about.replaceChildren();
  }

  /** same: the same table with other columns, so it may stay in sight. */
  async function look(byVisitor = true, same = false) {
    asked += 1; // an answer under way is of something else
    const mine = asked;
    [current, missed] = [false, false];
    if (choice.value !== KEPT) choice.querySelector(`[value="${KEPT}"]`)?.remove();
    const [set, dev] = choice.value ? [choice.value === KEPT ? null : choice.value] : sent.ids();
    sent.root.hidden = Boolean(choice.value);
    const refused = choice.value ? null : sent.problem();
    const kept = choice.value === KEPT;
    if (!set || !(choice.value || same)) forget();
    root.dataset.state = refused ? 'error' : '';
    onProblem(refused);
    onChange(byVisitor);
    if (!set && !kept) return;
    try {
      const task = choice.value ? { set } : { set, dev, kind: mapping.kind, columns: mapping.columns };
      const found = await post('look', kept ? { source: from } : { task });
      if (mine !== asked) return;
      [facts, current] = [found, true];
      fillMap();
      fillAbout();
      root.dataset.state = facts.problem ? 'error' : 'ready';
      onProblem(facts.problem ? said(facts.problem) : null);
      onChange(byVisitor);
    } catch (error) {
      if (mine !== asked) return;
      forget();
      missed = Boolean(error.silent);
      root.dataset.state = 'error';
      onProblem(error.message);
      onChange(byVisitor);
    }
  }

  choice.addEventListener('change', () => look());
  kind.addEventListener('change', () => { mapping = { kind: kind.value, columns: {} }; look(true, true); });

  return {
    root,
    facts: () => (current && !facts?.problem ? facts : null),
    build(offered) {
      if (offer) { if (missed) look(false); return; }
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
    texts: () => (choice.value ? [] : sent.ids()),
    names: () => (choice.value ? [] : sent.names()),
    /** The file of a copied run, which goes with the new one. */
    keep(run, name) {
      from = run;
      choice.querySelector(`[value="${KEPT}"]`)?.remove();
      choice.append(element('option', { value: KEPT, text: name }));
      choice.value = KEPT;
      look(false);
    },
    choose(name) {
      if (offer.sets.some((each) => each.name === name)) { choice.value = name; look(false); return true; }
      return false;
    },
  };
}
