// Training: the first batch as the model will see it.
import { sentences } from './words.js';

const { element, phrase, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'The first batch',
  legend: 'Each line is one example as the model reads it. Below a piece stands what it has to say there; '
    + 'the second text has a darker ground.',
  plain: 'Each line is one example as the model reads it. Nothing in it is hidden.',
  order: 'Numbers give the order of prediction. Point at a numbered piece to see what the model may look at when it guesses it.',
  shortened: 'Of a long text only the beginning was read for this, so the run itself learns other pieces and begins with other examples.',
  pair: { 'in order': 'The second text is in order.', 'not in order': 'The second text is not in order.' },
  says: (row) => t`Row ${row.number}, to be answered with: ${worded(row.says)}.`,
  boundary: (each) => t`${each.piece}: from the pieces around its span, place ${each.place + 1}`,
  key: 'What the colours mean', ids: 'Show the ids', example: 'piece',
});
const CASES = texts({
  mask: 'the model sees [MASK]', random: 'the model sees a random piece', similar: 'the model sees a similar word',
  kept: 'the model sees the piece itself', target: 'to be guessed, in the order of the numbers', label: 'what it has to say there',
  second: 'belongs to the second text',
});
/** A label of the set as it is, a text of ours in the page's language. */
const worded = (label) => (Array.isArray(label) ? phrase(label) : label);
// Swatches of the legend: name, kind of a piece, the piece itself, what stands below it.
const SWATCHES = [['mask', 'mask', '[MASK]'], ['random', 'random', TEXT.example], ['similar', 'random', TEXT.example], ['kept', 'kept', TEXT.example], ['target', 'mask', TEXT.example]];

function example(row) {
  const targets = new Map((row.targets ?? []).map((target, n) => [target.place, { ...target, number: n + 1 }]));
  const boundaries = (row.boundaries ?? []).map(TEXT.boundary);
  const pieces = row.pieces.map((text, n) => {
    const target = targets.get(n);
    const label = worded(row.labels[n]) ?? target?.piece;
    const kind = row.case[n] || (target ? 'mask' : '');
    const piece = element('span', {
      class: 'train-piece', 'data-case': kind === 'similar' ? 'random' : kind, 'data-segment': row.segments[n] === 1 ? 1 : 0,
      title: [`id ${row.ids[n]}`, target ? null : CASES[kind]].filter(Boolean).join(', '), tabindex: target ? '0' : null,
    }, element('bdi', { text }), target ? element('sup', { text: String(target.number) }) : null,
    label && !target ? element('small', {}, element('bdi', { text: label })) : null,
    element('small', { class: 'train-id', text: String(row.ids[n]) }));
    if (target) {
      const light = (on) => { for (const seen of target.sees) pieces[seen]?.classList.toggle('seen', on); };
      for (const [event, on] of [['mouseenter', true], ['focus', true], ['mouseleave', false], ['blur', false]]) {
        piece.addEventListener(event, () => light(on));
      }
    }
    return piece;
  });
  const notes = [row.says ? TEXT.says(row) : null, row.pair ? TEXT.pair[row.pair] : null, boundaries.length ? boundaries.join('; ') : null].filter(Boolean);
  return element('div', { class: 'train-example' }, element('p', {}, ...pieces),
    notes.length ? element('p', { class: 'train-note', text: sentences(...notes) }) : null);
}

/** Entries for what is there, and nothing else. */
function legend(rows) {
  const there = new Set(rows.flatMap((row) => [...row.case, row.targets ? 'target' : '']));
  const entry = (text, piece) => element('li', {}, piece, element('span', { text }));
  const entries = SWATCHES.filter(([name]) => there.has(name)).map(([name, kind, text]) => entry(CASES[name], element('span', {
    class: 'train-piece', 'data-case': kind, 'aria-hidden': 'true' }, text, name === 'target' ? element('sup', { text: '1' }) : null)));
  if (rows.some((row) => row.labels.some((label) => label !== null))) {
    entries.push(entry(CASES.label, element('span', { class: 'train-piece', 'aria-hidden': 'true' }, element('small', { text: TEXT.example }))));
  }
  if (rows.some((row) => row.segments.includes(1))) {
    entries.push(entry(CASES.second, element('span', { class: 'train-piece', 'data-segment': '1', 'aria-hidden': 'true', text: TEXT.example })));
  }
  return entries;
}

export function mountBatch(view) {
  const title = element('h3');
  const facts = element('p', { class: 'train-note' });
  const key = element('ul', { class: 'train-key', 'aria-label': TEXT.key });
  const ids = element('input', { type: 'checkbox', onchange: () => rows.classList.toggle('with-ids', ids.checked) });
  const rows = element('div', { class: 'train-rows', tabindex: '0', role: 'region', 'aria-label': TEXT.title });
  view.root.replaceChildren(title, facts, key, element('label', { class: 'train-check' }, ids, element('span', { text: TEXT.ids })), rows);

  function show() {
    const found = view.value;
    view.root.hidden = !found?.rows;
    if (view.root.hidden) return;
    title.textContent = found.entrant ? t`The first batch of ${found.entrant}` : TEXT.title;
    const asks = found.rows.some((row) => row.targets || row.says || row.labels.some((label) => label !== null));
    facts.textContent = sentences(asks ? TEXT.legend : TEXT.plain, found.rows.some((row) => row.targets) ? TEXT.order : null, found.shortened ? TEXT.shortened : null);
    key.replaceChildren(...legend(found.rows));
    rows.replaceChildren(...found.rows.map(example));
    view.root.scrollIntoView({ block: 'nearest' });
  }
  view.onValue(show);
  show();
}
