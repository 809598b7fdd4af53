// Attention, heads switched off: the prediction of a hidden word without them, and what each one is worth.

import { cellName, quote } from './data.js';
import { createGrid, gridTable } from './grid.js';
import { pairOf, state } from './state.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Which heads does the prediction need?',
  lead: 'Click heads on the left to switch them off: their output becomes zero, everything else stays. The bars show what the model puts into the gap with all heads and without these.',
  gap: 'Hidden word', none: 'No word is hidden, so there is nothing to predict. Hide one above the tabs, or try an example.',
  clear: 'Switch all on', sweep: 'Sweep: every head off in turn', stop: 'Stop',
  shared: 'In every layer that shares the weights', word: 'word', before: 'all heads', after: 'some off', own: 'the word of the text', first: 'the model’s first choice',
  damage: 'Damage of each head', corner: 'layer \\ head', wordCorner: 'word \\ heads',
  scale: 'How much log-probability (nats) the word loses when this head alone is off. Above zero (teal): the prediction suffers. Below zero (orange): it gets better. Click a cell to switch that head off.',
  paris: 'Hide “Paris” and sweep', worst: 'Switch off the head that hurts most', layer: 'Switch off the last layer',
  noSweep: 'Sweep first: then the worst head is known.',
});

const FAINT = 0.1; // nats: the largest change has the strongest colour from here on

function bar(value) {
  const fill = element('span', { class: 'attn-fill' });
  fill.style.width = `${100 * value}%`;
  return element('td', {}, element('span', { class: 'attn-bar', 'aria-hidden': 'true' }, fill), element('span', { class: 'attn-share', text: format.percent(value), title: format.exact(value) }));
}

function build(lab) {
  const gap = element('select', { 'aria-label': TEXT.gap, onchange: () => lab.set({ gap: Number(gap.value) }) });
  const button = (text, onclick) => element('button', { type: 'button', class: 'quiet outlined', text, onclick });
  const clear = button(TEXT.clear, () => lab.set({ off: [] }));
  const sweepButton = button(TEXT.sweep, () => (sweep.running ? stop() : start()));
  sweepButton.dataset.action = 'sweep';
  const shared = element('button', { type: 'button', class: 'switch', role: 'switch', onclick: () => lab.set({ shared: !state.shared }) },
    element('span', { class: 'track' }), element('span', { text: TEXT.shared }));
  const list = element('p', { class: 'attn-note' });
  const words = element('p', { class: 'attn-words attn-sentence', 'aria-live': 'polite' });
  const table = element('table', { class: 'attn-words-table' });
  const progress = element('progress', { max: 1, value: 0, 'aria-label': TEXT.sweep, hidden: true });
  const told = element('span', { class: 'attn-note', role: 'status' });
  const say = (row, column, text) => t`${cellName(row, column)} off: ${text} nats`;
  const map = createGrid({ label: TEXT.damage, say, high: 26, onPick: (row, column) => toggle([`${row}.${column}`]) });
  const mapBox = element('figure', { hidden: true }, element('h4', { text: TEXT.damage }), map.root, element('p', { class: 'attn-note', text: TEXT.scale }));
  const inside = element('div', { class: 'attn-card' },
    element('div', { class: 'attn-scroll-wide', tabindex: 0, role: 'region', 'aria-label': TEXT.title }, table), words,
    element('div', { class: 'attn-row' }, sweepButton, progress, told), mapBox);
  const pick = element('label', { class: 'attn-pick' }, element('span', { text: TEXT.gap }), gap);
  const empty = element('p', { class: 'empty', text: TEXT.none, hidden: true });
  const node = element('div', { class: 'attn-card' }, element('div', { class: 'attn-row' }, pick, clear, shared), list, empty, inside);
  let answer = null;
  let sweep = { key: '', rows: [], running: false };

  function toggle(heads) {
    const whole = heads.every((head) => state.off.includes(head));
    const others = state.off.filter((head) => !heads.includes(head));
    lab.set({ off: whole ? others : [...others, ...heads] });
  }

  // ---- the sweep: one question for each layer, so that it shows how far it is and can be stopped -----------

  const layersOf = () => answer.schedule.length;
  const keyNow = () => JSON.stringify([lab.main.drawn, answer?.gap, state.shared]);
  function start() {
    if (answer?.gap === null) return;
    if (sweep.key !== keyNow() || sweep.rows.length === layersOf()) sweep = { key: keyNow(), rows: [], running: false };
    sweep.running = true;
    next();
  }
  function stop() { sweep.running = false; drawSweep(); }
  function next() {
    if (state.wantSweep && answer?.gap !== null) { state.wantSweep = false; sweep.running = true; sweep.key = keyNow(); sweep.rows = []; }
    if (!sweep.running || !answer || answer.gap === null) return;
    if (sweep.key !== keyNow()) { sweep = { key: '', rows: [], running: false }; drawSweep(); return; }
    if (sweep.rows.length < layersOf()) lab.step({ lab: 'damage', layer: sweep.rows.length, position: answer.gap, shared: state.shared });
    else sweep.running = false;
    drawSweep();
  }
  function receive(row) {
    if (row.error) { sweep.running = false; told.textContent = message(row.error); return; }
    // A change comes; a loss is shown, as damage should be above zero.
    if (sweep.key === keyNow() && row.layer === sweep.rows.length) sweep.rows.push(row.row.map((change) => 0 - change));
    if (sweep.rows.length === layersOf()) sweep.running = false;
    drawSweep();
  }

  function gridOfSweep() {
    const [layers, heads] = [layersOf(), answer.heads];
    const values = new Float32Array(layers * heads).fill(NaN);
    sweep.rows.forEach((row, n) => values.set(row, n * heads));
    const top = values.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), FAINT);
    return {
      values, top, signed: true, share: false,
      rows: Array.from({ length: layers }, (_, n) => t`layer ${n + 1}`), columns: Array.from({ length: heads }, (_, n) => t`head ${n + 1}`),
    };
  }

  function worst() {
    let found = null;
    sweep.rows.forEach((row, layer) => row.forEach((value, head) => { if (!found || value > found.value) found = { layer, head, value }; }));
    return found;
  }

  function drawSweep() {
    const done = sweep.key === keyNow() ? sweep.rows.length : 0;
    const all = done && done === layersOf();
    sweepButton.textContent = sweep.running ? TEXT.stop : TEXT.sweep;
    progress.hidden = !sweep.running;
    progress.value = done / layersOf();
    mapBox.hidden = !done;
    mapBox.dataset.done = String(Boolean(all));
    told.textContent = sweep.running ? t`layer ${done + 1} of ${layersOf()}` : '';
    if (!done || !lab.main.palette) return;
    map.draw(gridOfSweep(), lab.main.palette);
    const bad = worst();
    if (!all) return;
    told.textContent = bad.value > 0
      ? t`${cellName(bad.layer, bad.head)} matters most: without it ${quote(answer.target.display)} loses ${bad.value.toFixed(2)} nats.`
      : t`No single head is needed here: without any one of them ${quote(answer.target.display)} gets no less probable.`;
  }

  function tellHeads() {
    const off = state.off.map(pairOf).map(([layer, head]) => cellName(layer, head)).join(', ');
    const { hit } = answer;
    list.textContent = state.off.length === 0 ? '' : hit.length > state.off.length
      ? t`Off: ${off}. The layers share their weights, so ${hit.length} heads of the stack are off at once.` : t`Off: ${off}.`;
  }

  return {
    node,
    save: () => ({ sweep: sweep.rows.length > 0 && sweep.key === keyNow() && sweep.rows.length === layersOf() }),
    next,
    receive,
    start,
    worst,
    ask: () => ({ off: state.off.map(pairOf), position: state.gap, shared: state.shared }),
    onCell({ layer, head }) {
      const { layers, heads } = lab.main.answer.overview;
      const cells = [];
      for (let l = 0; l < layers; l += 1) for (let h = 0; h < heads; h += 1) if ((layer ?? l) === l && (head ?? h) === h) cells.push(`${l}.${h}`);
      toggle(cells);
    },
    mark: (overview) => overview.choose(new Set((answer?.hit?.map((pair) => pair.join('.'))) ?? state.off), 'off'),
    draw(found) {
      answer = found;
      const nothing = answer.gap === null;
      empty.hidden = !nothing;
      inside.hidden = pick.hidden = nothing;
      if (nothing) { list.textContent = ''; shared.hidden = true; return; }
      const label = (position) => `${position}  ${lab.main.answer.tokens[position]?.original ?? lab.main.answer.tokens[position]?.label}`;
      gap.replaceChildren(...answer.gaps.map((position) => element('option', { value: position, text: label(position) })));
      gap.value = String(answer.gap);
      shared.hidden = new Set(answer.schedule).size === answer.schedule.length;
      shared.setAttribute('aria-checked', String(state.shared));
      clear.disabled = !state.off.length;
      tellHeads();
      const head = element('thead', {}, element('tr', {}, ...[TEXT.word, TEXT.before, ...(state.off.length ? [TEXT.after] : [])].map((text) => element('th', { scope: 'col', text }))));
      table.replaceChildren(head, element('tbody', {}, ...answer.rows.map((row) => element('tr', { class: row.target ? 'own' : null, 'data-id': row.id },
        element('th', { scope: 'row' }, element('bdi', { text: row.display })), bar(row.before), state.off.length ? bar(row.after) : null))));
      const { display, before, after, ranks, own } = answer.target;
      const role = own ? TEXT.own : TEXT.first;
      words.textContent = state.off.length
        ? t`${quote(display)} (${role}): ${format.percent(Math.exp(before))} with all heads, ${format.percent(Math.exp(after))} without these; ${(after - before).toFixed(2).replace('-', '−')} nats, rank ${ranks[0]} → ${ranks[1]}.`
        : t`${quote(display)} (${role}): ${format.percent(Math.exp(before))} with all heads, rank ${ranks[0]}. Switch a head off to see what changes.`;
      drawSweep();
    },
    tables() {
      if (!answer || answer.gap === null) return [];
      const values = Float32Array.from(answer.rows.flatMap(({ before, after }) => [before, after]));
      const chances = { values, rows: answer.rows.map((row) => row.display), columns: [TEXT.before, TEXT.after], share: true };
      const tables = [gridTable(chances, TEXT.title, TEXT.wordCorner)];
      if (sweep.rows.length && sweep.key === keyNow()) tables.push(gridTable(gridOfSweep(), TEXT.damage, TEXT.corner));
      return tables;
    },
  };
}

export default {
  title: TEXT.title,
  lead: TEXT.lead,
  build,
  tries: [
    { text: TEXT.paris,
      set: (lab) => { state.wantSweep = true; lab.stage({ text: 'The capital of France is Paris.', hide: 'paris', second: '', values: { off: [], gap: null } }); lab.panel().next(); } },
    { text: TEXT.worst,
      set: (lab) => { const bad = lab.panel().worst(); if (bad) lab.set({ off: [`${bad.layer}.${bad.head}`] }); else lab.tell(TEXT.noSweep); } },
    { text: TEXT.layer,
      set: (lab) => {
        const { layers, heads } = lab.main.answer.overview;
        lab.set({ off: Array.from({ length: heads }, (_, head) => `${layers - 1}.${head}`) });
      } },
  ],
};
