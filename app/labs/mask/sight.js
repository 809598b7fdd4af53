// Who looks at whom in one model: a small grid, the word of the row looks at the words of the filled columns.
import { node } from '../../parts/svg.js';

const { element, t, listed } = window.Cloze;
const CELL = 15;
const LETTER = 6.6;
const LABEL = 12; // letters of a word beside the grid

const shorten = (word) => ([...word].length > LABEL ? `${[...word].slice(0, LABEL - 1).join('')}…` : word);

/** What the model knows when it predicts the gap, in one sentence. */
function told({ names, seen, gap, read, cut }) {
  const quote = (n) => `“${names[n]}”`;
  if (read === null) return t`The prediction is read before the first word: nothing of the sentence is known yet.`;
  const all = names.map((_, n) => n).filter((n) => seen[read][n] && n !== gap).map(quote);
  const known = listed([...(cut[0] && all.length ? ['…'] : []), ...all, ...(cut[1] && seen[read].at(-1) ? ['…'] : [])]);
  if (!known) return t`The prediction is read at ${quote(read)}, which looks at no word.`;
  return read === gap ? t`The prediction is read at the gap, which looks at ${known}.`
    : t`The prediction is read at ${quote(read)}, just before the gap, which looks at ${known}.`;
}

export function sightGrid(sight) {
  const { names, seen, gap, read } = sight;
  const last = names.length - 1;
  const shown = names.map(shorten).map((name, n) => `${n === 0 && sight.cut[0] ? '… ' : ''}${name}${n === last && sight.cut[1] ? ' …' : ''}`);
  const room = Math.max(...shown.map((name) => [...name].reduce((sum, letter) => sum + (letter > '⺀' ? 2 : 1), 0))) * LETTER + 8;
  const size = CELL * names.length;
  const picture = node('svg', {
    class: 'lab-sight', viewBox: `0 0 ${room + size + 2} ${room + size + 2}`, width: room + size + 2, height: room + size + 2,
    role: 'img', 'aria-label': `${t`Who looks at whom`}. ${told(sight)}`,
  });
  shown.forEach((name, n) => {
    const own = n === gap ? 'own' : '';
    const middle = room + CELL * (n + 0.5);
    picture.append(
      node('text', { class: own, x: room - 6, y: middle + 4, 'text-anchor': 'end' }, name),
      node('text', { class: own, transform: `translate(${middle + 4} ${room - 6}) rotate(-90)` }, name));
  });
  seen.forEach((row, y) => row.forEach((flag, x) => {
    const cell = node('rect', {
      class: flag ? 'seen' : 'blind', x: room + CELL * x + 1, y: room + CELL * y + 1, width: CELL - 2, height: CELL - 2, rx: 2,
    });
    cell.append(node('title', {}, flag ? t`“${names[y]}” looks at “${names[x]}”` : t`“${names[y]}” does not look at “${names[x]}”`));
    picture.append(cell);
  }));
  if (read !== null) {
    picture.append(node('rect', { class: 'read', x: room, y: room + CELL * read, width: size, height: CELL, rx: 3 }));
  }
  return element('div', { class: 'lab-look' }, picture, element('p', { class: 'lab-small', text: told(sight) }));
}
