// Attention: a map of numbers between any rows and columns, on a canvas, read by pointer and by arrow keys.

import { percent, toBytes } from './data.js';
import { FOR_FILES, fit, prepare, screenRatio, widest } from '../../parts/paint.js';

const { element, t } = window.Cloze;
const MOST_LABELS = 48; // rows or columns carry their words up to this many
const MOST_NUMBERS = 400; // cells that carry their numbers
const TALLEST = 34;

/** A map of viz.attention_grid.Grid as sent: the same with its values as numbers (NaN = nothing there). */
export function decodeGrid(grid) {
  const bytes = toBytes(grid.data);
  const values = grid.kind === 'float32' ? new Float32Array(bytes.buffer) : Float32Array.from(bytes, (code) => (code / 255) * grid.top);
  return { ...grid, values };
}

export const numberText = (value, grid) => {
  if (Number.isNaN(value)) return '';
  return grid.share ? percent(value) : value.toFixed(Math.abs(value) >= 100 ? 1 : 3).replace('-', '−');
};

/**
 * A map that `draw(grid, palette)` fills. `say(row, column, text)` puts a cell into words, `onPick(row, column)` is
 * called by a click or Enter, `square` keeps cells square, `high` is the least height of a row. `grid.aligned` are the row
 * labels of all maps whose columns should stand one under the other.
 */
export function createGrid({ label, say, onPick = null, square = false, high = 20 }) {
  const canvas = element('canvas', { tabindex: 0, role: 'application', 'aria-label': label });
  const cursor = element('div', { class: 'attn-cursor', hidden: true });
  const words = element('p', { class: 'attn-cell-words', 'aria-live': 'polite' });
  const root = element('div', { class: 'attn-grid' }, element('div', { class: `attn-map${onPick ? ' picks' : ''}` }, canvas, cursor), words);
  let grid = null;
  let palette = null;
  let place = null;
  let at = null;

  function layout() {
    const [rows, columns] = [grid.rows.length, grid.columns.length];
    const width = Math.max(220, root.clientWidth);
    const font = `12px ${palette.mono}`;
    const rowWords = rows <= MOST_LABELS;
    const columnWords = columns <= MOST_LABELS;
    const left = rowWords ? Math.ceil(Math.min(widest(grid.aligned ?? grid.rows, font), width * 0.34, 170)) + 8 : 30;
    const top = columnWords ? Math.ceil(Math.min(widest(grid.columns, font), 100)) + 8 : 22;
    const wide = Math.min((width - left) / columns, 44);
    const tall = square ? wide : Math.min(Math.max(wide, high), TALLEST);
    return { rows, columns, left, top, wide, tall, font, rowWords, columnWords, width: left + wide * columns, height: top + tall * rows };
  }

  const valueAt = (row, column) => grid.values[row * grid.columns.length + column];
  const code = (value) => {
    const share = Math.min(Math.abs(value) / grid.top, 1);
    return Math.round((grid.signed ? share : Math.sqrt(share)) * 255);
  };

  function draw(next, colours) {
    const started = performance.now();
    grid = next;
    palette = colours;
    place = layout();
    paint(canvas, screenRatio());
    if (at && (at.row >= place.rows || at.column >= place.columns)) at = null;
    move();
    if (!at) words.textContent = '';
    canvas.dataset.ms = (performance.now() - started).toFixed(1);
  }

  /** The cells as a small picture: where there are more of them than pixels, a pixel shows the strongest under it. */
  function bitmap(ratio) {
    const { rows, columns, wide, tall } = place;
    const [width, height] = [Math.min(columns, Math.ceil(columns * wide * ratio)), Math.min(rows, Math.ceil(rows * tall * ratio))];
    const strongest = new Float32Array(width * height);
    for (let row = 0; row < rows; row += 1) {
      const line = Math.floor((row * height) / rows) * width;
      for (let column = 0; column < columns; column += 1) {
        const value = valueAt(row, column);
        const i = line + Math.floor((column * width) / columns);
        if (Math.abs(value) > Math.abs(strongest[i])) strongest[i] = value;
      }
    }
    const small = element('canvas');
    Object.assign(small, { width, height });
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    strongest.forEach((value, i) => { pixels[i] = (value < 0 ? palette.below : palette.ramp)[code(value)]; });
    small.getContext('2d').putImageData(image, 0, 0);
    return small;
  }

  function paint(target, ratio) {
    const { rows, columns, left, top, wide, tall } = place;
    const context = prepare(target, place.width + 1, place.height + 1, ratio);
    context.imageSmoothingEnabled = false;
    context.drawImage(bitmap(ratio), left, top, wide * columns, tall * rows);
    context.strokeStyle = palette.line;
    context.strokeRect(left - 0.5, top - 0.5, wide * columns + 1, tall * rows + 1);
    labels(context);
    if (rows * columns <= MOST_NUMBERS && wide >= 24) numbers(context);
    return target;
  }

  function labels(context) {
    const { rows, columns, left, top, wide, tall, font, rowWords, columnWords } = place;
    context.font = font;
    context.fillStyle = palette.ink;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const everyRow = rowWords ? Math.ceil(12 / tall) : 50;
    for (let row = 0; row < rows; row += everyRow) {
      context.fillText(rowWords ? fit(grid.rows[row], left - 8, font) : row, left - 7, top + tall * (row + 0.5));
    }
    context.textAlign = 'left';
    const everyColumn = columnWords ? Math.ceil(12 / wide) : columns > 100 ? 50 : 8;
    for (let column = 0; column < columns; column += everyColumn) {
      context.save();
      context.translate(left + wide * (column + 0.5), top - 7);
      if (columnWords) context.rotate(-Math.PI / 2);
      else context.textAlign = 'center';
      context.fillText(columnWords ? fit(grid.columns[column], top - 8, font) : grid.columns[column].slice(0, 4), 0, 0);
      context.restore();
    }
  }

  function numbers(context) {
    const { rows, columns, left, top, wide, tall } = place;
    context.font = `11px ${palette.mono}`;
    context.textAlign = 'center';
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = valueAt(row, column);
        if (Number.isNaN(value) || Math.abs(value) < 0.005 * (grid.signed ? 1 : grid.top)) continue;
        const strong = code(value);
        context.fillStyle = (value < 0 ? palette.onBelow : palette.onCell)(strong);
        const text = grid.share ? Math.round(value * 100) : value.toFixed(Math.abs(value) >= 9.95 ? 0 : wide >= 34 ? 2 : 1).replace('-', '−');
        context.fillText(text, left + wide * (column + 0.5), top + tall * (row + 0.5));
      }
    }
  }

  function move() {
    cursor.hidden = at === null;
    if (!at) return;
    const { left, top, wide, tall } = place;
    Object.assign(cursor.style, { left: `${left + at.column * wide}px`, top: `${top + at.row * tall}px`, width: `${wide}px`, height: `${tall}px` });
  }

  function choose(next) {
    at = next;
    move();
    words.textContent = at ? say(at.row, at.column, numberText(valueAt(at.row, at.column), grid)) : '';
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - place.left) / place.wide);
    const row = Math.floor((event.clientY - box.top - place.top) / place.tall);
    return row >= 0 && column >= 0 && row < place.rows && column < place.columns ? { row, column } : null;
  }

  canvas.addEventListener('pointermove', (event) => {
    const next = grid && under(event);
    if (grid && (next?.row !== at?.row || next?.column !== at?.column)) choose(next);
  });
  canvas.addEventListener('pointerleave', () => grid && document.activeElement !== canvas && choose(null));
  canvas.addEventListener('focus', () => grid && !at && choose({ row: 0, column: 0 }));
  canvas.addEventListener('blur', () => grid && choose(null));
  canvas.addEventListener('click', (event) => {
    const cell = grid && under(event);
    if (cell) onPick?.(cell.row, cell.column);
  });
  canvas.addEventListener('keydown', (event) => {
    if (!grid) return;
    const { row, column } = at ?? { row: 0, column: 0 };
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [row, 0], End: [row, place.columns - 1], PageUp: [0, column], PageDown: [place.rows - 1, column],
    };
    if (event.key === 'Enter' || event.key === ' ') onPick?.(row, column);
    else if (!moves[event.key]) return;
    else {
      const [down, across] = moves[event.key];
      choose({ row: Math.max(0, Math.min(down, place.rows - 1)), column: Math.max(0, Math.min(across, place.columns - 1)) });
    }
    event.preventDefault();
  });

  return { root, draw, picture: () => paint(element('canvas'), FOR_FILES) };
}

const MOST_CELLS = 2000;

/** A map as a table; of a large one the first rows and columns, and it says so. */
export function gridTable(grid, caption, corner) {
  const table = element('table');
  const side = Math.floor(Math.sqrt(MOST_CELLS));
  const large = grid.values.length > MOST_CELLS;
  const rows = large ? grid.rows.slice(0, side) : grid.rows;
  const columns = large ? grid.columns.slice(0, side) : grid.columns;
  table.createCaption().textContent = large ? t`${caption}: the first ${rows.length} rows and ${columns.length} columns; the CSV file has all.` : caption;
  const head = table.createTHead().insertRow();
  head.append(element('th', { scope: 'col', text: corner }), ...columns.map((text) => element('th', { scope: 'col', text })));
  const body = table.createTBody();
  rows.forEach((text, row) => {
    const line = body.insertRow();
    line.append(element('th', { scope: 'row', text }));
    columns.forEach((_, column) => {
      line.append(element('td', { text: numberText(grid.values[row * grid.columns.length + column], grid) }));
    });
  });
  return table;
}
