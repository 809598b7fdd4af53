// Attention, rollout and flow: what one token is made of after all layers.

import { quote } from './data.js';
import { createGrid, decodeGrid, gridTable } from './grid.js';
import { state } from './state.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'What is a token made of?',
  lead: 'Each layer mixes what the layers before have mixed. Rollout multiplies the maps of all layers, half of each token staying what it was; flow is the most that could run through the same links.',
  token: 'Token', upto: 'Up to layer', ways: 'Three ways to ask', after: 'Rollout after each layer',
  cls: 'What does [CLS] hold?', gap: 'What fills the gap?', first: 'Only the first layer',
  rollout: 'rollout', flow: 'flow', corner: 'way \\ token', layerCorner: 'layer \\ token',
  scale: 'Square-root scale from 0 to 100 %. Rows of attention and rollout add up to 100 %; each flow is a problem of its own.',
});

function build(lab) {
  const token = element('select', { 'aria-label': TEXT.token, onchange: () => lab.set({ token: Number(token.value) }) });
  const upto = element('select', { 'aria-label': TEXT.upto, onchange: () => lab.set({ upto: Number(upto.value) === count ? null : Number(upto.value) }) });
  const words = element('p', { class: 'attn-words attn-sentence' });
  const note = element('p', { class: 'attn-note' });
  let count = 0;
  let grids = [];
  const say = (n) => (row, column, text) => t`${grids[n].rows[row]}: ${text} of it comes from ${quote(grids[n].columns[column])}`;
  const ways = createGrid({ label: TEXT.ways, say: say(0), high: 26 });
  const after = createGrid({ label: TEXT.after, say: say(1), high: 22 });
  const pick = (label, node) => element('label', { class: 'attn-pick' }, element('span', { text: label }), node);
  const node = element('div', { class: 'attn-card' },
    element('div', { class: 'attn-row' }, pick(TEXT.token, token), pick(TEXT.upto, upto)), words,
    element('figure', {}, element('h4', { text: TEXT.ways }), ways.root), note,
    element('figure', {}, element('h4', { text: TEXT.after }), after.root),
    element('p', { class: 'attn-note', text: TEXT.scale }));

  function fill(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, text]) => element('option', { value, text })));
    select.value = String(chosen);
  }

  return {
    node,
    ask: () => ({ position: state.token, layers: state.upto }),
    draw(answer, palette) {
      count = answer.layers;
      fill(token, answer.tokens.map((each) => [each.position, `${each.position}  ${each.label}`]), answer.position);
      fill(upto, Array.from({ length: count }, (_, n) => [n + 1, String(n + 1)]), answer.upto);
      grids = answer.grids.map(decodeGrid);
      grids[0].rows = [t`attention of layer ${answer.upto}`, TEXT.rollout, TEXT.flow].slice(0, grids[0].rows.length);
      grids[1].rows = grids[1].rows.map((_, n) => t`after layer ${n + 1}`);
      for (const grid of grids) grid.aligned = [...grids[0].rows, ...grids[1].rows];
      ways.draw(grids[0], palette);
      after.draw(grids[1], palette);
      const width = grids[0].columns.length;
      const best = (row) => grids[0].values.slice(row * width, (row + 1) * width).reduce((most, value, n, all) => (value > all[most] ? n : most), 0);
      const label = (row) => quote(answer.tokens[best(row)].label);
      const who = quote(answer.tokens[answer.position].label);
      words.textContent = answer.flow
        ? t`${who}: the attention of layer ${answer.upto} points most at ${label(0)}, the rollout at ${label(1)}, the flow at ${label(2)}.`
        : t`${who}: the attention of layer ${answer.upto} points most at ${label(0)}, the rollout at ${label(1)}.`;
      note.textContent = answer.flow ? '' : t`Flow is computed for up to ${answer.most} tokens; this text has ${width}.`;
    },
    tables: () => (grids.length ? [gridTable(grids[0], TEXT.ways, TEXT.corner), gridTable(grids[1], TEXT.after, TEXT.layerCorner)] : []),
  };
}

export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.cls, set: (lab) => lab.set({ token: null, upto: null }) },
    { text: TEXT.gap, set: (lab) => lab.stage({ text: 'The capital of France is Paris.', hide: 'paris', second: '', values: (place) => ({ token: place, upto: null }) }) },
    { text: TEXT.first, set: (lab) => lab.set({ upto: 1 }) },
  ],
};
