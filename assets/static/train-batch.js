// Training: the first batch as the model will see it.
import { sentences } from './train-words.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'The first batch',
  legend: 'Each line is one example as the model reads it. Below a piece stands what it has to say there; '
    + 'the second text has a darker ground.',
  order: 'Numbers give the order of prediction. Point at a numbered piece to see what the model may look at when it guesses it.',
  pair: { 'in order': 'The second text is in order.', 'not in order': 'The second text is not in order.' },
  says: (row) => t`Row ${row.number}, to be answered with: ${row.says}.`,
  boundary: (each) => t`${each.piece}: from the pieces around its span, place ${each.place + 1}`,
});
const CASES = texts({
  mask: 'the model sees [MASK]', random: 'the model sees a random piece', similar: 'the model sees a similar word',
  kept: 'the model sees the piece itself',
});

function example(row) {
  const targets = new Map((row.targets ?? []).map((target, n) => [target.place, { ...target, number: n + 1 }]));
  const boundaries = (row.boundaries ?? []).map(TEXT.boundary);
  const pieces = row.pieces.map((text, n) => {
    const target = targets.get(n);
    const label = row.labels[n] ?? target?.piece;
    const kind = row.case[n] || (target ? 'mask' : '');
    const piece = element('span', {
      class: 'train-piece', 'data-case': kind === 'similar' ? 'random' : kind, 'data-segment': row.segments[n] === 1 ? 1 : 0,
      title: [`id ${row.ids[n]}`, target ? null : CASES[kind]].filter(Boolean).join(', '), tabindex: target ? '0' : null,
    }, element('bdi', { text }), target ? element('sup', { text: String(target.number) }) : null,
    label && !target ? element('small', {}, element('bdi', { text: label })) : null);
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

export function makeBatch() {
  const facts = element('p', { class: 'train-note' });
  const rows = element('div', { class: 'train-rows', tabindex: '0', role: 'region', 'aria-label': TEXT.title });
  const root = element('section', { class: 'card train-first', hidden: true, 'aria-live': 'polite' },
    element('h3', { text: TEXT.title }), facts, rows);
  return {
    root,
    show(found) {
      facts.textContent = sentences(TEXT.legend, found.rows.some((row) => row.targets) ? TEXT.order : null);
      rows.replaceChildren(...found.rows.map(example));
      root.hidden = false;
      root.scrollIntoView({ block: 'nearest' });
    },
    hide() { root.hidden = true; },
  };
}
