// Two texts as a model reads them (app/labs/pairs/reading.py).
import { spoken } from '../../parts/plain.js';

const { element, t } = window.Cloze;

const pieceOf = ({ piece, id, segment, special, unknown }) => element('li', {
  class: `reading-piece segment-${Math.min(segment, 2)}${special ? ' special' : ''}${unknown ? ' unknown' : ''}`,
  title: t`${piece}, id ${id}, segment ${segment}`,
}, element('bdi', { text: piece }), element('small', { text: segment }));

export function mount(view) {
  const show = () => {
    if (!view.value?.pieces) return;
    const { pieces, said } = spoken(view.value);
    view.root.replaceChildren(element('ol', { 'aria-label': t`The input` }, ...pieces.map(pieceOf)), element('p', { class: 'summary', text: said }));
  };
  view.onValue(show);
  show();
}
