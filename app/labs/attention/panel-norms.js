// Attention, norms: weights beside what is really given.

import { MEAN, cellName, percent, quote } from './data.js';
import { createGrid, decodeGrid, gridTable } from './grid.js';
import { state } from './state.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'What is really given?',
  lead: 'A token may be looked at much and give little, because its value is small. The norm is the length of the vector it adds through this head: weight times value, after the output projection.',
  weights: 'Attention', norms: 'Norm of what is given', corner: 'from \\ to',
  special: 'A head that stares at [CLS] or [SEP]', words: 'A head that links words', layer: 'All heads of the last layer together',
  units: 'Norms are in units of the hidden state; their colours run to the largest one (square-root scale). The norm of a layer is that of the sum over its heads, whose vectors may cancel.',
  empty: 'Every token of this sentence is a special one; there is nothing left to show.',
});

function build(lab) {
  const place = element('h4', { class: 'attn-place' });
  const words = element('p', { class: 'attn-words attn-sentence' });
  let grids = [];
  const say = (n) => (row, column, text) => (n === 0
    ? t`${quote(grids[0].rows[row])} looks at ${quote(grids[0].columns[column])}: ${text}`
    : t`${quote(grids[1].columns[column])} gives ${quote(grids[1].rows[row])} a vector of length ${text}`);
  const maps = [TEXT.weights, TEXT.norms].map((label, n) => createGrid({ label, say: say(n), square: true }));
  const figures = element('div', { class: 'attn-pairs' }, ...maps.map((map, n) => element('figure', {},
    element('h4', { text: [TEXT.weights, TEXT.norms][n] }), map.root)));
  const node = element('div', { class: 'attn-card' }, place, words, figures, element('p', { class: 'attn-note', text: TEXT.units }));

  return {
    node,
    ask() {
      // The mean over all heads is of no layer: begin with the last one.
      const { layers } = lab.main.answer.overview;
      if (typeof state.layer !== 'number') Object.assign(state, { layer: layers - 1, headNumber: MEAN, fixed: true });
      return { layer: state.layer, head: state.headNumber };
    },
    onCell: ({ layer, head }) => layer !== MEAN && lab.set({ layer, headNumber: head, fixed: true }),
    draw(answer, palette) {
      grids = answer.grids.map(decodeGrid);
      place.textContent = answer.head === null ? t`Layer ${answer.layer + 1} · all heads together` : cellName(answer.layer, answer.head);
      figures.hidden = !grids[0].rows.length;
      const { weights, norms } = answer.shares;
      words.textContent = figures.hidden ? TEXT.empty
        : t`[CLS] and [SEP] get ${percent(weights)} of the attention, but give ${percent(norms)} of all norms.`;
      if (!figures.hidden) maps.forEach((map, n) => map.draw(grids[n], palette));
    },
    tables: () => (grids.length ? [gridTable(grids[0], TEXT.weights, TEXT.corner), gridTable(grids[1], TEXT.norms, TEXT.corner)] : []),
  };
}

/** The head whose strongest link is the strongest of those that `fits(source, target)`. */
function strongestHead(lab, list, fits) {
  const { layers, heads } = lab.main.answer.overview;
  let best = { layer: layers - 1, headNumber: 0, weight: -1 };
  for (let layer = 0; layer < layers; layer += 1) {
    for (let head = 0; head < heads; head += 1) {
      const link = list[layer * (heads + 1) + head];
      if (link && link[2] > best.weight && fits(link[0], link[1])) best = { layer, headNumber: head, weight: link[2] };
    }
  }
  return { layer: best.layer, headNumber: best.headNumber, fixed: true };
}

export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.special,
      set: (lab) => {
        const { overview, tokens } = lab.main.answer;
        lab.set(strongestHead(lab, overview.strongest, (from, to) => tokens[to].special && !tokens[from].special));
      } },
    { text: TEXT.words, set: (lab) => lab.set(strongestHead(lab, lab.main.answer.overview.strongest_plain, (from, to) => from !== to)) },
    { text: TEXT.layer, set: (lab) => lab.set({ layer: lab.main.answer.overview.layers - 1, headNumber: MEAN, fixed: true }) },
  ],
};
