// Attention, several heads as one map.

import { decodeHead, largest, shownPositions } from './data.js';
import { createHeat, fillTable } from './heat.js';
import { createLines } from './lines.js';
import { choices, heatBox, linesBox, useChoices } from './skeleton.js';
import { state } from './state.js';

const { element, message, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Several heads as one',
  lead: 'Pick any heads on the left: each click takes one in or out, the mean of a layer takes all of it. Mean: the attention averaged over them. Maximum: the strongest link of any of them.',
  how: 'How the heads are combined', none: 'Pick a head to begin.', all: 'All heads', clear: 'No heads', rest: 'Rows look at columns.',
  last: 'All heads of the last layer', strongest: 'The strongest link of any head', across: 'Two sentences: who looks across?',
  one: '1 head is combined.',
});
const HOW = texts({ mean: 'mean', max: 'maximum' });

const every = ({ layers, heads }) => Array.from({ length: layers * heads }, (_, n) => `${Math.floor(n / heads)}.${n % heads}`);

function build(lab) {
  const count = element('span', { class: 'attn-note' });
  const sentence = element('p', { class: 'attn-words attn-sentence', 'aria-live': 'polite' });
  const howRow = choices('how', TEXT.how, HOW, state.how);
  const showHow = useChoices(howRow, (how) => lab.set({ how }));
  const linesHost = linesBox();
  const heatHost = heatBox();
  const cell = element('p', { class: 'attn-cell-words', 'aria-live': 'polite' });
  const figures = element('div', { class: 'attn-views' }, element('figure', {}, linesHost), element('figure', {}, heatHost, element('figcaption', {}, cell)));
  const quick = (text, picks) => element('button', { type: 'button', class: 'quiet outlined', text, onclick: () => lab.set({ picks: picks(), cleared: true }) });
  const node = element('div', { class: 'attn-card' },
    element('div', { class: 'attn-row' }, howRow, quick(TEXT.all, () => every(shape())), quick(TEXT.clear, () => []), count), sentence, figures);
  let rest = '';
  const lines = createLines(linesHost, { onToken: (words) => { sentence.textContent = words ?? rest; } });
  const heat = createHeat(heatHost, {
    onCell: (words, token) => { cell.textContent = words ?? TEXT.rest; lines.isolate(token ?? lines.held()); },
  });
  let drawn = null;
  const shape = () => lab.main.answer.overview;

  return {
    node,
    ask: () => {
      // What to begin with: the heads of the last layer.
      if (!state.picks.length && !state.cleared) {
        const { layers, heads } = shape();
        state.picks = every(shape()).slice((layers - 1) * heads);
      }
      count.textContent = state.picks.length === 1 ? TEXT.one : t`${state.picks.length} heads are combined.`;
      showHow(state.how);
      figures.hidden = !state.picks.length;
      if (!state.picks.length) sentence.textContent = TEXT.none;
      return state.picks.length ? { picks: state.picks.map((text) => text.split('.').map(Number)), how: state.how } : null;
    },
    onCell({ layer, head }) {
      const cells = every(shape()).filter((text) => {
        const [l, h] = text.split('.').map(Number);
        return (layer === null || l === layer) && (head === null || h === head);
      });
      const whole = cells.every((text) => state.picks.includes(text));
      const others = state.picks.filter((text) => !cells.includes(text));
      lab.set({ picks: whole ? others : [...others, ...cells], cleared: true });
    },
    mark: (overview) => overview.choose(new Set(state.picks), 'picked'),
    draw(answer, palette) {
      if (!state.picks.length) return;
      const head = decodeHead(answer.numbers);
      const shown = shownPositions(answer.tokens, state.hide);
      rest = (state.hide ? answer.summary_plain : answer.summary).map(message).join(' ');
      sentence.textContent = rest;
      figures.hidden = !shown.length;
      if (!shown.length) return;
      drawn = { head, tokens: answer.tokens, shown, top: state.own ? Math.max(largest(head, shown), 1e-6) : 1, palette };
      lines.draw(drawn);
      heat.draw(drawn);
      cell.textContent = TEXT.rest;
    },
    tables() {
      if (!drawn) return [];
      const table = element('table');
      fillTable(table, drawn, t`${HOW[state.how]} of ${state.picks.length} heads`);
      return [table];
    },
  };
}

const everyOf = (lab) => every(lab.main.answer.overview);
export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.last, set: (lab) => { const { heads } = lab.main.answer.overview; lab.set({ picks: everyOf(lab).slice(-heads), how: 'mean' }); } },
    { text: TEXT.strongest, set: (lab) => lab.set({ picks: everyOf(lab), how: 'max' }) },
    { text: TEXT.across,
      set: (lab) => lab.stage({
        text: 'The capital of France is Paris.', second: 'Many people live in Paris.', values: { part: 'ab', picks: everyOf(lab), how: 'max' },
      }) },
  ],
};
