// Attention, q·k: one query of one head against every key, dimension by dimension.

import { MEAN, cellName, percent, quote } from './data.js';
import { decodeGrid, gridTable } from './grid.js';
import { prepare, screenRatio } from '../../parts/paint.js';
import { state } from './state.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Why does it look there?',
  lead: 'One token asks (query), every token offers (key): two lists of numbers, multiplied place by place (teal above zero, orange below). Sum, scale and softmax turn each strip into a share.',
  query: 'Token that looks', key: 'key', sum: 'sum', scaled: '× scale', score: 'score', share: 'softmax', strip: 'q × k in each dimension', bias: 'bias',
  gap: 'The gap looks for its word', clear: 'The head with the clearest link', products: 'Products in each dimension', steps: 'From sum to share',
  keyCorner: 'key \\ dimension', stepCorner: 'key \\ step',
});
const HIGH = 16; // of a strip in CSS pixels
const LEAST = 96; // and its width
const MOST_STEP = 7; // of one dimension in it
const NARROW = 480; // of the card: below it a key has lines of its own instead of a row of many columns

function build(lab) {
  const place = element('h4', { class: 'attn-place' });
  const query = element('select', { 'aria-label': TEXT.query, onchange: () => lab.set({ query: Number(query.value) }) });
  const words = element('p', { class: 'attn-words attn-sentence' });
  const told = element('p', { class: 'attn-cell-words', 'aria-live': 'polite' });
  // The roles stand there because style sheets that lay rows out otherwise take them away.
  const table = element('table', { class: 'attn-keys', role: 'table' });
  const note = element('p', { class: 'attn-note' });
  const node = element('div', { class: 'attn-card' },
    element('div', { class: 'attn-row' }, place, element('label', { class: 'attn-pick' }, element('span', { text: TEXT.query }), query)), words, told, note);
  const box = element('div', { class: 'attn-scroll-wide', tabindex: 0, role: 'region', 'aria-label': TEXT.products }, table);
  node.insertBefore(box, told);
  let grids = [];
  let names = {};
  let room = 0; // for a strip, in CSS pixels

  const number = (value, digits = 2) => (value === null || Number.isNaN(value) ? '–' : value.toFixed(digits).replace('-', '−'));

  /** The products of one key as a strip; pointing at a place tells its number. */
  function strip(values, top, label, palette) {
    const canvas = element('canvas', { class: 'attn-strip', 'aria-hidden': 'true' });
    const size = values.length;
    const step = Math.max(1, Math.min(MOST_STEP, room / size));
    const context = prepare(canvas, size * step, HIGH, screenRatio());
    values.forEach((value, n) => {
      const code = Math.round(Math.min(Math.abs(value) / top, 1) * 255);
      const colour = (value < 0 ? palette.below : palette.ramp)[code];
      context.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
      context.fillRect(n * step, 0, step, HIGH);
    });
    canvas.addEventListener('pointermove', (event) => {
      const n = Math.max(0, Math.min(size - 1, Math.floor(event.offsetX / step)));
      told.textContent = t`${label}, dimension ${n + 1}: ${number(values[n], 3)}`;
    });
    canvas.addEventListener('pointerleave', () => { told.textContent = ''; });
    return canvas;
  }

  function fill(answer, columns, label, palette) {
    const size = grids[0].columns.length;
    table.replaceChildren(
      element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...columns.map((text) => element('th', { scope: 'col', role: 'columnheader', text })))),
      element('tbody', { role: 'rowgroup' }, ...answer.keys.map((key, n) => {
        const row = answer.rows[n];
        const bar = element('span', { class: 'attn-fill' });
        bar.style.width = `${100 * row.share}%`;
        return element('tr', { 'data-key': key, role: 'row' },
          element('th', { scope: 'row', role: 'rowheader' }, element('bdi', { text: label(key) })),
          element('td', { role: 'cell', class: 'attn-products' }, strip(grids[0].values.slice(n * size, (n + 1) * size), grids[0].top, label(key), palette)),
          ...answer.names.slice(0, -1).map((name) => element('td', { role: 'cell', 'data-name': name, 'data-column': names[name], text: number(row[name]) })),
          element('td', { role: 'cell', 'data-name': 'share' }, element('span', { class: 'attn-bar', 'aria-hidden': 'true' }, bar), element('span', { class: 'attn-share', text: percent(row.share) })));
      })));
  }

  function draw(answer, palette) {
    grids = answer.grids.map(decodeGrid);
    const label = (position) => answer.tokens[position].label;
    place.textContent = cellName(answer.layer, answer.head);
    query.replaceChildren(...answer.tokens.map((token) => element('option', { value: token.position, text: `${token.position}  ${token.label}` })));
    query.value = String(answer.query);
    names = Object.fromEntries(answer.names.map((name) => [name, TEXT[name] ?? name]));
    const size = grids[0].columns.length;
    const columns = [TEXT.key, TEXT.strip, ...answer.names.map((name) => names[name])];
    const narrow = box.clientWidth < NARROW;
    table.classList.toggle('narrow', narrow);
    room = narrow ? box.clientWidth : 230;
    fill(answer, columns, label, palette);
    // Strips give way, so that no number is cut.
    const over = box.scrollWidth - box.clientWidth;
    if (!narrow && over > 0 && room > LEAST) {
      room = Math.max(LEAST, room - over - 2);
      fill(answer, columns, label, palette);
    }
    const best = answer.rows.reduce((most, row, n) => (row.share > answer.rows[most].share ? n : most), 0);
    const own = grids[0].values.slice(best * size, (best + 1) * size);
    const strongest = own.reduce((most, value, n) => (value > own[most] ? n : most), 0);
    words.textContent = t`${quote(label(answer.query))} looks most at ${quote(label(answer.keys[best]))} (${percent(answer.rows[best].share)}); dimension ${strongest + 1} adds the most to that score.`;
    const scale = answer.scale.toFixed(4);
    note.textContent = answer.keys.length < answer.count
      ? t`scale = ${scale} for ${answer.size} dimensions. The ${answer.keys.length} keys with the largest shares of ${answer.count} are shown.`
      : t`scale = ${scale} for ${answer.size} dimensions.`;
  }

  return {
    node,
    draw,
    ask() {
      const { layers } = lab.main.answer.overview;
      if (typeof state.layer !== 'number') Object.assign(state, { layer: layers - 1, headNumber: 0, fixed: true });
      if (state.headNumber === MEAN) state.headNumber = 0;
      return { layer: state.layer, head: state.headNumber, query: state.query };
    },
    onCell: ({ layer, head }) => layer !== MEAN && head !== MEAN && lab.set({ layer, headNumber: head, fixed: true }),
    tables: () => {
      if (!grids.length) return [];
      const steps = { ...grids[1], columns: grids[1].columns.map((name) => names[name] ?? name) };
      return [gridTable(steps, TEXT.steps, TEXT.stepCorner), gridTable(grids[0], TEXT.products, TEXT.keyCorner)];
    },
  };
}

export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.gap, set: (lab) => lab.stage({ text: 'The capital of France is Paris.', hide: 'paris', second: '', values: (place) => ({ query: place }) }) },
    { text: TEXT.clear,
      set: (lab) => {
        const { overview: { strongest_plain: links, heads, layers }, tokens } = lab.main.answer;
        let best = null;
        for (let n = 0; n < layers * (heads + 1); n += 1) {
          if (n % (heads + 1) === heads || !links[n] || links[n][0] === links[n][1]) continue;
          if (!best || links[n][2] > best.link[2]) best = { n, link: links[n] };
        }
        if (best && tokens.length) lab.set({ layer: Math.floor(best.n / (heads + 1)), headNumber: best.n % (heads + 1), query: best.link[0], fixed: true });
      } },
  ],
};
