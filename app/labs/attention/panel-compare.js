// Attention, two models on the same sentence, each with its own pieces.

import { cellName, quote } from './data.js';
import { createGrid, decodeGrid, gridTable } from './grid.js';
import { choices, useChoices } from './skeleton.js';
import { pairOf, state } from './state.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Do two models look at the same words?',
  lead: 'Two models read the same sentence, each cut into its own pieces. Only maps over the same words can be compared by eye: head 3 of one has nothing to do with head 3 of the other.',
  other: 'Second model', what: 'What is compared', layer: 'Layer', head: 'Head', corner: 'from \\ to',
  alone: 'There is only one model here to choose. Train a model in the Train tab, or put another one into the models folder; it appears here by itself.',
  mean: 'Mean over all heads of both', clearest: 'The clearest head of each', rollout: 'Rollout of both', scale: 'Square-root scale from 0 to 100 %, the same for both.',
  same: 'Both models cut the sentence into the same pieces.',
});
const WHAT = texts({ mean: 'mean over all heads', head: 'one head of each', rollout: 'rollout' });

function build(lab) {
  const other = element('select', { 'aria-label': TEXT.other, onchange: () => lab.set({ other: other.value, place: null }) });
  const whatRow = choices('what', TEXT.what, WHAT, state.what);
  const showWhat = useChoices(whatRow, (what) => lab.set({ what }));
  const words = element('p', { class: 'attn-words attn-sentence' });
  const places = [0, 1].map((side) => ['layer', 'head'].map((name, index) => element('select', {
    'aria-label': TEXT[name], onchange: (event) => move(side, index, Number(event.target.value)),
  })));
  const titles = [element('h4'), element('h4')];
  let grids = [];
  let sides = [];
  const say = (n) => (row, column, text) => t`${quote(grids[n].rows[row])} looks at ${quote(grids[n].columns[column])}: ${text}`;
  const maps = [0, 1].map((n) => createGrid({ label: TEXT.title, say: say(n), square: true }));
  const pickers = places.map((pair) => element('div', { class: 'attn-row' }, ...pair.map((select, n) => element('label', { class: 'attn-pick' },
    element('span', { text: [TEXT.layer, TEXT.head][n] }), select))));
  const figures = element('div', { class: 'attn-pairs' }, ...maps.map((map, n) => element('figure', {}, titles[n], pickers[n], map.root)));
  const alone = element('p', { class: 'empty', text: TEXT.alone, hidden: true });
  const controls = element('div', { class: 'attn-row' }, element('label', { class: 'attn-pick' }, element('span', { text: TEXT.other }), other), whatRow);
  const note = element('p', { class: 'attn-note', text: TEXT.scale });
  const node = element('div', { class: 'attn-card' }, controls, words, figures, note, alone);

  /** One of the numbers that name the head of a side. */
  function move(side, index, value) {
    const place = [...sides[side].place];
    place[index] = value;
    if (side === 0) lab.set({ layer: place[0], headNumber: place[1], fixed: true });
    else lab.set({ place: place.join('.') });
  }

  return {
    node,
    ask() {
      showWhat(state.what);
      const mine = state.fixed && typeof state.layer === 'number' && typeof state.headNumber === 'number' ? [state.layer, state.headNumber] : null;
      return { other: state.other, what: state.what, places: [mine, state.place === null ? null : pairOf(state.place)] };
    },
    draw(answer, palette) {
      const single = Boolean(answer.alone);
      alone.hidden = !single;
      for (const part of [controls, words, figures, note]) part.hidden = single;
      if (single) return;
      other.replaceChildren(...answer.choices.map(({ name, title }) => element('option', { value: name, text: window.Cloze.modelTitle(title) })));
      other.value = answer.other;
      sides = answer.sides;
      grids = answer.grids.map(decodeGrid);
      sides.forEach((side, n) => {
        titles[n].textContent = side.model;
        pickers[n].hidden = state.what !== 'head';
        [side.layers, side.heads].forEach((count, index) => {
          places[n][index].replaceChildren(...Array.from({ length: count }, (_, each) => element('option', { value: each, text: each + 1 })));
          places[n][index].value = String(side.place[index]);
        });
        maps[n].draw(grids[n], palette);
      });
      const [a, b] = sides.map((side) => side.tokens.map((token) => token.label).join(' '));
      words.textContent = a === b ? TEXT.same : t`${sides[0].model} reads ${sides[0].tokens.length} pieces, ${sides[1].model} reads ${sides[1].tokens.length}: the rows and columns are not the same.`;
    },
    tables: () => grids.map((grid, n) => gridTable(grid, state.what === 'head' ? `${sides[n].model}, ${cellName(...sides[n].place)}` : sides[n].model, TEXT.corner)),
  };
}

export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.mean, set: (lab) => lab.set({ what: 'mean' }) },
    { text: TEXT.clearest, set: (lab) => lab.set({ what: 'head', layer: 'auto', headNumber: 'auto', fixed: false, place: null }) },
    { text: TEXT.rollout, set: (lab) => lab.set({ what: 'rollout' }) },
  ],
};
