// Attention: every head as a thumbnail, all on one canvas. Clear buttons lie over it, so that pointing,
// focus and names are the browser's own; the arrow keys rove, Enter selects.

import { MEAN, cellIndex, cellName, percent, quote, shownPositions } from './data.js';
import { FOR_FILES, bitmap, prepare, screenRatio } from '../../parts/paint.js';

const { t, texts } = window.Cloze;
const TEXT = texts({ mean: 'mean', all: 'all heads' });
const LARGEST = 84;
const LEFT = 30;
const TOP = 22;
const SPLIT = 10; // between the heads and their mean

export function createOverview(host, { onSelect }) {
  const canvas = host.querySelector('canvas');
  const grid = host.querySelector('[data-role="cells"]');
  const preview = host.parentElement.querySelector('[data-role="preview"]');
  let view = null; // the last thing drawn, for redraws
  let buttons = [];
  let built = ''; // the model's shape that the buttons stand for
  let placed = ''; // and the size they were placed for

  function layout(width) {
    const { layers, heads } = view.overview;
    const gap = heads > 8 ? 3 : 6;
    const room = width - LEFT - SPLIT - gap * heads;
    const cell = Math.max(10, Math.min(LARGEST, Math.floor(room / (heads + 1))));
    const x = (column) => LEFT + column * (cell + gap) + (column === heads ? SPLIT : 0);
    const y = (row) => TOP + row * (cell + gap) + (row === layers ? SPLIT : 0);
    return { cell, x, y, width: x(heads) + cell, height: y(layers) + cell };
  }

  /** Rows of cells: the layers, each followed by its mean; below them the mean over everything. */
  function cells() {
    const { layers, heads } = view.overview;
    const rows = [];
    for (let layer = 0; layer < layers; layer += 1) {
      const row = [];
      for (let head = 0; head <= heads; head += 1) row.push({ layer, head: head === heads ? MEAN : head, column: head });
      rows.push(row);
    }
    rows.push([{ layer: MEAN, head: MEAN, column: heads }]);
    return rows;
  }

  /** The codes of all maps one below the other, as they are to be drawn, and how many rows each has. */
  function mapCodes() {
    const { side, length, hidden } = view.overview;
    let { maps } = view;
    let rows = side;
    if (view.hide && !hidden && side === length) {
      const kept = shownPositions(view.tokens, true);
      rows = kept.length;
      const cells_ = maps.length / (side * side);
      const part = new Uint8Array(cells_ * rows * rows);
      let at = 0;
      for (let cell = 0; cell < cells_; cell += 1) {
        for (const from of kept) for (const to of kept) part[at++] = maps[(cell * side + from) * side + to];
      }
      maps = part;
    }
    return { codes: view.own ? stretch(maps, rows * rows) : maps, rows };
  }

  /** Let each map run to its strongest code: codes are square roots, so a factor on them is one on the weights. */
  function stretch(codes, size) {
    const wide = new Uint8Array(codes.length);
    for (let start = 0; start < codes.length; start += size) {
      const map = codes.subarray(start, start + size);
      const top = map.reduce((most, code) => Math.max(most, code), 1);
      for (let i = 0; i < size; i += 1) wide[start + i] = (map[i] * 255) / top;
    }
    return wide;
  }

  function draw(next, palette) {
    const started = performance.now();
    view = { ...next, palette };
    const place = layout(host.clientWidth);
    paint(canvas, place, screenRatio());
    canvas.dataset.ms = (performance.now() - started).toFixed(1);
    overlay(place);
  }

  function paint(target, place, ratio) {
    const { overview: { layers, heads }, palette } = view;
    const context = prepare(target, place.width + 1, place.height + 1, ratio);
    context.strokeStyle = palette.line;
    const { codes, rows } = mapCodes();
    const all = rows ? bitmap(codes, codes.length / rows, rows, palette) : null;
    context.imageSmoothingEnabled = rows > place.cell * ratio;
    for (const [row, line] of cells().entries()) {
      for (const { layer, head, column } of line) {
        const [x, y] = [place.x(column), place.y(row)];
        const from = cellIndex(layer, head, layers, heads) * rows;
        if (all) context.drawImage(all, 0, from, rows, rows, x, y, place.cell, place.cell);
        context.strokeRect(x - 0.5, y - 0.5, place.cell + 1, place.cell + 1);
      }
    }
    ticks(context, place, palette);
    return target;
  }

  function ticks(context, place, palette) {
    const { layers, heads } = view.overview;
    context.fillStyle = palette.soft;
    context.font = `11px ${palette.sans}`;
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    const every = place.cell < 14 ? 2 : 1;
    for (let head = 0; head < heads; head += every) context.fillText(head + 1, place.x(head) + place.cell / 2, TOP - 9);
    if (place.cell >= 26) context.fillText(TEXT.mean, place.x(heads) + place.cell / 2, TOP - 9);
    else context.fillText('\u2300', place.x(heads) + place.cell / 2, TOP - 9);
    context.textAlign = 'right';
    for (let layer = 0; layer < layers; layer += 1) context.fillText(layer + 1, LEFT - 8, place.y(layer) + place.cell / 2);
    context.fillText(TEXT.all, place.x(heads) - 8, place.y(layers) + place.cell / 2);
  }

  /** The buttons: rebuilt when the model's shape changes, else only moved. */
  function overlay(place) {
    const { layers, heads } = view.overview;
    const shape = `${layers}x${heads}`;
    if (shape !== built) {
      built = shape;
      grid.replaceChildren();
      buttons = cells().map((line) => {
        const row = document.createElement('div');
        row.setAttribute('role', 'row');
        grid.append(row);
        return line.map(({ layer, head, column }) => {
          const button = document.createElement('button');
          button.type = 'button';
          button.setAttribute('role', 'gridcell');
          button.setAttribute('aria-selected', 'false');
          button.tabIndex = -1;
          button.setAttribute('aria-label', cellName(layer, head));
          Object.assign(button.dataset, { layer: layer ?? '', head: head ?? '', column });
          row.append(button);
          return button;
        });
      });
    }
    if (placed !== `${shape} ${place.cell}`) arrange(place);
    placed = `${shape} ${place.cell}`;
    select(view.layer, view.head);
  }

  function arrange(place) {
    buttons.forEach((line, row) => line.forEach((button) => {
      const column = Number(button.dataset.column);
      button.style.left = `${place.x(column)}px`;
      button.style.top = `${place.y(row)}px`;
      button.style.width = `${place.cell}px`;
      button.style.height = `${place.cell}px`;
    }));
  }

  const numberOf = (text) => (text === '' ? MEAN : Number(text));
  const placeOf = (button) => {
    const row = buttons.findIndex((line) => line.includes(button));
    return [row, buttons[row].indexOf(button)];
  };
  const cellOf = (button) => ({ layer: numberOf(button.dataset.layer), head: numberOf(button.dataset.head) });

  function describe({ layer, head }) {
    const { layers, heads, strongest, strongest_plain: plain } = view.overview;
    const pair = (view.hide ? plain : strongest)[cellIndex(layer, head, layers, heads)];
    if (!pair) return cellName(layer, head);
    const [source, target, weight] = pair;
    const [who, whom] = [quote(view.tokens[source].label), quote(view.tokens[target].label)];
    return t`${cellName(layer, head)}. Strongest link: ${who} looks at ${whom} ${percent(weight)}`;
  }

  /** Mark several heads ("layer.head") instead of the selected one; `kind` is "picked" or "off". */
  function choose(heads, kind) {
    grid.setAttribute('aria-multiselectable', 'true');
    for (const button of grid.querySelectorAll('button')) {
      const on = heads.has(`${button.dataset.layer}.${button.dataset.head}`);
      button.setAttribute('aria-selected', String(on));
      button.classList.toggle('off', on && kind === 'off');
    }
  }

  const buttonOf = (layer, head) => (layer === MEAN ? [buttons.length - 1, 0] : [layer, head ?? buttons[0].length - 1]);

  function select(layer, head) {
    view.layer = layer;
    view.head = head;
    grid.removeAttribute('aria-multiselectable');
    grid.querySelectorAll('[aria-selected="true"]').forEach((button) => {
      button.setAttribute('aria-selected', 'false');
      button.classList.remove('off');
    });
    const [row, column] = buttonOf(layer, head);
    buttons[row][column].setAttribute('aria-selected', 'true');
    // Who moves by keyboard meanwhile is left where they are.
    if (!grid.contains(document.activeElement)) rove(row, column);
    rest();
  }

  /** Tell of the cell under the keyboard, else of the selected one. */
  function rest() {
    const button = grid.contains(document.activeElement) ? document.activeElement : null;
    show(button ? cellOf(button) : view);
  }

  /** Make one button the one that Tab reaches. */
  function rove(row, column) {
    grid.querySelectorAll('[tabindex="0"]').forEach((button) => { button.tabIndex = -1; });
    buttons[row][column].tabIndex = 0;
  }

  function show(cell) {
    preview.textContent = describe(cell);
  }

  function moveTo(row, column) {
    const line = buttons[Math.max(0, Math.min(row, buttons.length - 1))];
    const button = line[Math.max(0, Math.min(column, line.length - 1))];
    button.focus();
  }

  grid.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) onSelect(cellOf(button));
  });
  grid.addEventListener('pointerover', (event) => {
    const button = event.target.closest('button');
    if (button) show(cellOf(button));
  });
  grid.addEventListener('pointerleave', () => view && rest());
  grid.addEventListener('focusout', () => view && setTimeout(rest));
  grid.addEventListener('focusin', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    rove(...placeOf(button));
    button.setAttribute('aria-label', describe(cellOf(button)));
    show(cellOf(button));
  });
  grid.addEventListener('keydown', (event) => {
    const [row, column] = placeOf(event.target);
    const moves = {
      ArrowUp: [row - 1, buttons[row].length === 1 ? Infinity : column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, Infinity],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    moveTo(...move);
  });

  const picture = () => paint(document.createElement('canvas'), layout(host.clientWidth), FOR_FILES);
  return { draw, select, choose, picture };
}
