// Rows of pieces, a row for each vocabulary (app/labs/tokenizers/pieces.py).
import { spoken } from '../../parts/plain.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({ unknown: 'unknown', cut: 'Cut off after 256 pieces.' });

function pieceOf(piece) {
  const kind = piece.special ? 'special' : piece.unknown ? 'unknown' : piece.masked ? 'masked' : '';
  return element('span', {
    class: `tok-piece ${kind}`, 'data-id': piece.id,
    title: [piece.piece, `id ${piece.id}`, piece.bytes && t`bytes: ${piece.bytes.split(' ').length}`].filter(Boolean).join(' · '),
  },
  element('span', { class: 'tok-face' },
    piece.prefix ? element('span', { class: 'tok-prefix', text: piece.prefix }) : null,
    element('span', { text: piece.text }),
    piece.unknown ? element('span', { class: 'tok-flag', text: TEXT.unknown }) : null),
  element('span', { class: 'tok-id', text: piece.id }),
  element('span', { class: 'tok-bytes', text: piece.bytes || '·' }));
}

/** Consecutive pieces of one word stand in one box, special ones alone. */
function wordsOf(pieces) {
  const boxes = [];
  for (const piece of pieces) {
    if (piece.word === null || boxes.at(-1)?.word !== piece.word) boxes.push({ word: piece.word, pieces: [] });
    boxes.at(-1).pieces.push(piece);
  }
  return boxes.map(({ word, pieces: own }) => element('li', {
    class: `tok-word ${word === null ? 'alone' : word % 2 ? 'odd' : 'even'}`,
  }, ...own.map(pieceOf)));
}

const rowOf = ({ title, note, counts, pieces, truncated }) => element('section', { class: 'tok-row' },
  element('header', {},
    element('h3', { text: title }), element('b', { text: counts }), element('span', { text: note.join(' · ') })),
  element('ol', { class: 'tok-words', 'aria-label': t`Pieces, ${title}` }, ...wordsOf(pieces)),
  truncated ? element('p', { text: TEXT.cut }) : null);

export function mount(view) {
  const show = () => { if (view.value?.rows) view.root.replaceChildren(...spoken(view.value).rows.map(rowOf)); };
  view.onValue(show);
  show();
}
