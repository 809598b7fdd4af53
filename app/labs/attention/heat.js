// Attention: the same head as a heat map with its true numbers, and the table twin.

import { percent, quote, strongestLinks } from './data.js';
import { bitmap, codeOf, fit, prepare, screenRatio, widest } from '../../parts/paint.js';

const { t, texts } = window.Cloze;
const TEXT = texts({ from: 'from', to: 'to', attention: 'attention' });

export const MOST_NUMBERS = 16; // cells carry printed numbers up to this many tokens
const MOST_LABELS = 48; // rows and columns carry their words up to this many tokens
const MOST_TABLE = 32; // the table twin is the whole matrix up to this many tokens
const STRONGEST = 200; // above that it lists the strongest links

export function createHeat(host, { onCell }) {
  const canvas = host.querySelector('canvas');
  const cursor = host.querySelector('[data-role="cursor"]');
  let view = null;
  let place = null;
  let at = null; // {row, column}

  function layout() {
    const { tokens, shown, palette } = view;
    const width = Math.max(220, host.clientWidth);
    const count = shown.length;
    const worded = count <= MOST_LABELS;
    const size = Math.max(9, Math.min(12, (width * 0.8) / count));
    const font = `${size}px ${palette.mono}`;
    const words = worded ? shown.map((position) => tokens[position].label) : [];
    const most = worded ? Math.min(widest(words, font), width * 0.24, 104) : 26;
    const left = Math.ceil(most) + 8;
    const cell = Math.min((width - left) / count, 44);
    const every = Math.ceil(size / cell - 0.05); // words are left out rather than printed over each other
    return { left, top: left, cell, count, worded, every, font, most, side: cell * count, palette };
  }

  const weightAt = (row, column) => view.head.values[view.shown[row] * view.head.length + view.shown[column]];

  function draw(next) {
    const started = performance.now();
    view = next;
    place = layout();
    paint(canvas, screenRatio());
    canvas.dataset.ms = (performance.now() - started).toFixed(1);
    if (at && (at.row >= place.count || at.column >= place.count)) at = null;
    moveCursor();
  }

  function paint(target, ratio) {
    const { left, top, count, side, palette } = place;
    const context = prepare(target, left + side, top + side, ratio);
    // More cells than pixels: each pixel shows the largest weight under it, or single links would vanish.
    const pixels = Math.min(count, Math.max(1, Math.floor(side * ratio)));
    context.imageSmoothingEnabled = false;
    context.drawImage(bitmap(codes(pixels), pixels, pixels, palette), left, top, side, side);
    if (place.worded) words(context);
    else ticks(context);
    if (count <= MOST_NUMBERS) numbers(context);
    return target;
  }

  function codes(pixels) {
    const { head: { values, length }, shown } = view;
    const { count } = place;
    const largest = new Float32Array(pixels * pixels);
    const bins = shown.map((_, i) => Math.floor((i * pixels) / count));
    for (let row = 0; row < count; row += 1) {
      const [start, line] = [shown[row] * length, bins[row] * pixels];
      for (let column = 0; column < count; column += 1) {
        const weight = values[start + shown[column]];
        const i = line + bins[column];
        if (weight > largest[i]) largest[i] = weight;
      }
    }
    return Uint8Array.from(largest, (weight) => codeOf(weight, view.top));
  }

  function words(context) {
    const { left, top, cell, every, font, most, palette } = place;
    context.font = font;
    context.textBaseline = 'middle';
    view.shown.forEach((position, i) => {
      if (i % every) return;
      const token = view.tokens[position];
      const text = fit(token.label, most, font);
      context.fillStyle = token.masked ? palette.hidden : token.special ? palette.soft : palette.ink;
      context.textAlign = 'right';
      context.fillText(text, left - 7, top + cell * (i + 0.5));
      context.save();
      context.translate(left + cell * (i + 0.5), top - 7);
      context.rotate(-Math.PI / 2);
      context.textAlign = 'left';
      context.fillText(text, 0, 0);
      context.restore();
    });
  }

  function ticks(context) {
    const { left, top, cell, count, palette } = place;
    context.font = `10px ${palette.sans}`;
    context.fillStyle = palette.soft;
    context.textBaseline = 'middle';
    const every = count > 240 ? 100 : count > 120 ? 50 : 20;
    for (let i = 0; i <= count - every / 4; i += every) {
      context.textAlign = 'right';
      context.fillText(view.shown[i], left - 5, top + cell * (i + 0.5));
      context.textAlign = 'center';
      context.fillText(view.shown[i], left + cell * (i + 0.5), top - 8);
    }
  }

  function numbers(context) {
    const { left, top, cell, count, palette } = place;
    const size = Math.min(12, cell * 0.46);
    if (size < 6.5) return;
    context.font = `${size}px ${palette.mono}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let row = 0; row < count; row += 1) {
      for (let column = 0; column < count; column += 1) {
        const weight = weightAt(row, column);
        if (weight < 0.005) continue;
        context.fillStyle = palette.onCell(codeOf(weight, view.top));
        context.fillText(Math.round(weight * 100), left + cell * (column + 0.5), top + cell * (row + 0.5));
      }
    }
  }

  function moveCursor() {
    cursor.hidden = at === null;
    if (at === null) return;
    const { left, top, cell } = place;
    Object.assign(cursor.style, { left: `${left + at.column * cell}px`, top: `${top + at.row * cell}px`, width: `${cell}px`, height: `${cell}px` });
  }

  /** The number under the pointer or the arrow keys, in words. */
  function choose(next) {
    at = next;
    moveCursor();
    if (!at) return onCell(null, null);
    const [from, to] = [view.shown[at.row], view.shown[at.column]];
    const [who, whom] = [quote(view.tokens[from].label), quote(view.tokens[to].label)];
    const words_ = t`${who} looks at ${whom}: ${percent(weightAt(at.row, at.column))}`;
    return onCell(words_, { position: from, side: 'from' });
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - place.left) / place.cell);
    const row = Math.floor((event.clientY - box.top - place.top) / place.cell);
    const inside = row >= 0 && column >= 0 && row < place.count && column < place.count;
    return inside ? { row, column } : null;
  }

  canvas.addEventListener('pointermove', (event) => {
    if (!view) return;
    const next = under(event);
    if (next?.row !== at?.row || next?.column !== at?.column) choose(next);
  });
  canvas.addEventListener('pointerleave', () => view && choose(null));
  canvas.addEventListener('focus', () => view && !at && choose({ row: 0, column: 0 }));
  canvas.addEventListener('blur', () => view && choose(null));
  canvas.addEventListener('keydown', (event) => {
    if (!view) return;
    const { row, column } = at ?? { row: 0, column: 0 };
    const last = place.count - 1;
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, last],
      PageUp: [0, column],
      PageDown: [last, column],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const [toRow, toColumn] = move.map((value) => Math.max(0, Math.min(value, last)));
    choose({ row: toRow, column: toColumn });
  });

  return { draw };
}

function cell(name, text, row, attributes = {}) {
  const node = document.createElement(name);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  row.append(node);
}

/** Fill `table` with the numbers of a head: the whole matrix, or for long sentences the strongest links. */
export function fillTable(table, { head, tokens, shown }, title) {
  table.replaceChildren();
  const whole = shown.length <= MOST_TABLE;
  const caption = table.createCaption();
  caption.textContent = whole
    ? t`${title}: share of attention in percent; rows look at columns.`
    : t`${title}: the ${STRONGEST} strongest links of ${shown.length} × ${shown.length}. The CSV file has all numbers.`;
  const top = table.createTHead().insertRow();
  const body = table.createTBody();
  if (!whole) {
    [TEXT.from, TEXT.to, TEXT.attention].forEach((text) => cell('th', text, top, { scope: 'col' }));
    for (const { source, target, weight } of strongestLinks(head, shown, 0, STRONGEST).links) {
      const row = body.insertRow();
      cell('td', `${tokens[source].label} (${source})`, row);
      cell('td', `${tokens[target].label} (${target})`, row);
      cell('td', percent(weight), row);
    }
    return;
  }
  cell('th', `${TEXT.from} \\ ${TEXT.to}`, top, { scope: 'col' });
  shown.forEach((position) => cell('th', tokens[position].label, top, { scope: 'col' }));
  shown.forEach((from) => {
    const row = body.insertRow();
    cell('th', tokens[from].label, row, { scope: 'row' });
    shown.forEach((to) => cell('td', (head.values[from * head.length + to] * 100).toFixed(2), row));
  });
}
