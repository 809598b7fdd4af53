// Attention: every head as a thumbnail, all on one canvas. Clear buttons lie over it, so that pointing, focus and names are the
// browser's own; the arrow keys rove, Enter selects. Which cells are marked comes from a part of its own (Chosen of parts.py).
import { BROKEN, downloadDrawing, downloadPicture, titledCanvas } from '../../parts/export.js';
import { FOR_FILES, bitmap, prepare, readPalette, screenRatio } from '../../parts/paint.js';
import { percent, quote, toBytes } from './words.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  mean: 'mean', all: 'all heads', grid: 'Layers down, heads across. Arrow keys move, Enter selects.', strongest: 'strongest',
  svg: 'All heads, SVG', png: 'All heads, PNG',
  ownScale: 'Square-root scale; each map runs to its own strongest link, so maps cannot be compared.',
  oneScale: 'Square-root scale, the same for all maps.',
});
const MEAN = -1; // "the mean over" in place of a layer or head number
const LARGEST = 84;
const LEFT = 30;
const TOP = 22;
const SPLIT = 10; // between the heads and their mean

/** "Layer 3 · Head 2", counted from 1 as people do. */
function cellName({ layer, head }) {
  if (layer === MEAN) return t`Mean over all heads`;
  return head === MEAN ? t`Layer ${layer + 1} · Mean` : t`Layer ${layer + 1} · Head ${head + 1}`;
}

function mountGrid(view) {
  const { root } = view;
  const canvas = element('canvas', { 'aria-hidden': 'true' });
  const cells = element('div', { class: 'heads-cells', role: 'grid', 'aria-label': TEXT.grid });
  const host = element('div', { class: 'heads-thumbs' }, canvas, cells);
  const words = element('p', { class: 'heads-words' });
  const shape = element('p', { class: 'heads-note' });
  const scale = element('p', { class: 'heads-note' });
  const ticks = element('div', { class: 'heads-ticks', 'aria-hidden': 'true' });
  const save = (text, act) => element('button', { type: 'button', class: 'quiet', text, onclick: act });
  root.replaceChildren(host, words,
    element('div', { class: 'heads-ramp', 'aria-hidden': 'true' }), ticks, scale, shape,
    element('p', { class: 'files' },
      save(TEXT.svg, () => downloadDrawing('attention-all-heads.svg', file())),
      save(TEXT.png, () => downloadPicture('attention-all-heads.png', file()).catch(() => { words.textContent = BROKEN; }))));
  root.hidden = true;
  let data = null; // the value with its maps as bytes
  let palette = null;
  let buttons = [];
  let marked = { cells: [], kind: 'one' };

  function layout() {
    const { layers, heads } = data;
    const gap = heads > 8 ? 3 : 6;
    const room = host.clientWidth - LEFT - SPLIT - gap * heads;
    const cell = Math.max(10, Math.min(LARGEST, Math.floor(room / (heads + 1))));
    const x = (column) => LEFT + column * (cell + gap) + (column === heads ? SPLIT : 0);
    const y = (row) => TOP + row * (cell + gap) + (row === layers ? SPLIT : 0);
    return { cell, x, y, width: x(heads) + cell, height: y(layers) + cell };
  }

  /** Rows of cells: the layers, each followed by its mean; below them the mean over everything. `index` is the map's. */
  function rowsOf({ layers, heads }) {
    const line = (layer) => Array.from({ length: heads + 1 }, (_, column) => ({
      layer, head: column === heads ? MEAN : column, column, index: layer * (heads + 1) + column,
    }));
    return [...Array.from({ length: layers }, (_, layer) => line(layer)),
      [{ layer: MEAN, head: MEAN, column: heads, index: layers * (heads + 1) }]];
  }

  function paint(target, place, ratio) {
    const { side, maps } = data;
    const context = prepare(target, place.width + 1, place.height + 1, ratio);
    context.strokeStyle = palette.line;
    const all = bitmap(maps, maps.length / side, side, palette);
    context.imageSmoothingEnabled = side > place.cell * ratio;
    rowsOf(data).forEach((line, row) => line.forEach(({ column, index }) => {
      const [x, y] = [place.x(column), place.y(row)];
      context.drawImage(all, 0, index * side, side, side, x, y, place.cell, place.cell);
      context.strokeRect(x - 0.5, y - 0.5, place.cell + 1, place.cell + 1);
    }));
    number(context, place);
    return target;
  }

  function number(context, place) {
    const { layers, heads } = data;
    context.fillStyle = palette.soft;
    context.font = `11px ${palette.sans}`;
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    const every = place.cell < 14 ? 2 : 1;
    for (let head = 0; head < heads; head += every) context.fillText(head + 1, place.x(head) + place.cell / 2, TOP - 9);
    context.fillText(place.cell >= 26 ? TEXT.mean : '\u2300', place.x(heads) + place.cell / 2, TOP - 9);
    context.textAlign = 'right';
    for (let layer = 0; layer < layers; layer += 1) context.fillText(layer + 1, LEFT - 8, place.y(layer) + place.cell / 2);
    context.fillText(TEXT.all, place.x(heads) - 8, place.y(layers) + place.cell / 2);
  }

  function draw() {
    if (!data || !host.clientWidth) return;
    palette = readPalette(root);
    const place = layout();
    paint(canvas, place, screenRatio());
    buttons.forEach((line, row) => line.forEach(({ node, cell }) => Object.assign(node.style, {
      left: `${place.x(cell.column)}px`, top: `${place.y(row)}px`, width: `${place.cell}px`, height: `${place.cell}px`,
    })));
  }

  function build() {
    buttons = rowsOf(data).map((line) => line.map((cell) => ({
      cell, node: element('button', { type: 'button', role: 'gridcell', 'aria-selected': 'false', tabindex: -1, 'aria-label': cellName(cell) }),
    })));
    cells.replaceChildren(...buttons.map((line) => element('div', { role: 'row' }, ...line.map(({ node }) => node))));
  }

  function receive() {
    if (!view.value?.maps) return;
    const same = data && data.layers === view.value.layers && data.heads === view.value.heads;
    data = { ...view.value, maps: toBytes(view.value.maps) };
    const { layers, heads, length, side, own } = data;
    root.hidden = false;
    if (!same) build();
    const size = t`Layers × heads: ${layers} × ${heads}, one small map each.`;
    const labels = data.labels.length;
    shape.textContent = labels > side && side >= 16
      ? `${size} ${t`${length} tokens are shrunk to ${side} × ${side} by the largest weight of each block; the numbers of a chosen head are complete.`}` : size;
    scale.textContent = own ? TEXT.ownScale : TEXT.oneScale;
    const at = (left, text) => element('span', { style: `left:${left}%`, text });
    ticks.replaceChildren(at(0, '0'), ...(own ? [] : [at(20, percent(0.04)), at(50, percent(0.25))]), at(100, own ? TEXT.strongest : percent(1)));
    draw();
    mark(marked);
  }

  function describe(cell) {
    const pair = data.strongest[cell.index];
    if (!pair) return cellName(cell);
    const [source, target, weight] = pair;
    // The small maps show all links, also where those of one sentence to the other are looked at.
    if (data.paired) return t`${cellName(cell)}. Strongest of all links: ${quote(data.labels[source])} looks at ${quote(data.labels[target])} ${percent(weight)}`;
    return t`${cellName(cell)}. Strongest link: ${quote(data.labels[source])} looks at ${quote(data.labels[target])} ${percent(weight)}`;
  }

  // ---- what is marked --------------------------------------------------------------------------

  const all = () => buttons.flat();
  const nameOf = ({ layer, head }) => `${layer}.${head}`;

  /** cells: "layer.head" of each; kind: "one", "picked" or "off". */
  function mark(next) {
    marked = next;
    if (!data) return;
    cells.toggleAttribute('aria-multiselectable', next.kind !== 'one');
    const on = new Set(next.cells);
    for (const { node, cell } of all()) {
      node.setAttribute('aria-selected', String(on.has(nameOf(cell))));
      node.classList.toggle('off', next.kind === 'off' && on.has(nameOf(cell)));
    }
    // Who moves by keyboard meanwhile is left where they are.
    if (!cells.contains(document.activeElement)) rove(all().find(({ cell }) => on.has(nameOf(cell))) ?? all()[0]);
    rest();
  }

  /** A click, or Enter: of several heads it takes one in or out, the mean of a layer all of it. */
  function choose(cell) {
    const { kind, own = [] } = marked;
    const covered = all().map(({ cell: each }) => each).filter(({ layer, head }) => layer !== MEAN && head !== MEAN
      && [layer, MEAN].includes(cell.layer) && [head, MEAN].includes(cell.head)).map(nameOf);
    const others = own.filter((name) => !covered.includes(name));
    const next = covered.every((name) => own.includes(name)) ? others : [...others, ...covered];
    const shown = kind === 'one' ? [nameOf(cell)] : next;
    mark({ ...marked, own: next, cells: shown });
    picked(marked, { layer: cell.layer, head: cell.head, own: next.join(' ') });
  }

  // ---- pointing and keys -----------------------------------------------------------------------

  const of = (node) => all().find((each) => each.node === node);
  const show = ({ cell }) => { words.textContent = describe(cell); };
  /** Tell of the cell under the keyboard, else of the first that is marked. */
  const rest = () => show(of(document.activeElement) ?? all().find(({ cell }) => marked.cells.includes(nameOf(cell))) ?? all().at(-1));

  /** Make one button the one that Tab reaches. */
  function rove({ node }) {
    for (const each of all()) each.node.tabIndex = -1;
    node.tabIndex = 0;
  }

  const on = (event, act) => cells.addEventListener(event, (what) => { const it = of(what.target.closest('button')); if (it) act(it, what); });
  on('click', ({ cell }) => choose(cell));
  on('pointerover', show);
  on('focusin', (it) => {
    rove(it);
    it.node.setAttribute('aria-label', describe(it.cell));
    show(it);
  });
  cells.addEventListener('pointerleave', () => data && rest());
  cells.addEventListener('focusout', () => data && setTimeout(rest));
  on('keydown', ({ node }, event) => {
    const row = buttons.findIndex((line) => line.some((each) => each.node === node));
    const column = buttons[row].findIndex((each) => each.node === node);
    const [line, place] = {
      ArrowUp: [row - 1, buttons[row].length === 1 ? Infinity : column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, Infinity],
    }[event.key] ?? [];
    if (line === undefined) return;
    event.preventDefault();
    const to = buttons[Math.max(0, Math.min(line, buttons.length - 1))];
    to[Math.max(0, Math.min(place, to.length - 1))].node.focus();
  });

  /** All heads as a drawing that says what it is. */
  const file = () => titledCanvas(paint(document.createElement('canvas'), layout(), FOR_FILES), FOR_FILES, {
    title: t`${data.model}: all heads`,
    lines: [t`Layers (down) × heads (across): ${data.layers} × ${data.heads}; in each small map rows look at columns.`, scale.textContent],
  });

  new ResizeObserver(draw).observe(host);
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  document.fonts.ready.then(draw);
  view.onValue(receive);
  receive();
  return mark;
}

// One grid and one part that marks it; either may be there first.
let mark = null;
let chosen = null;
const tell = () => { if (mark && chosen?.value?.cells) mark(chosen.value); };
function picked(marked, found) {
  chosen.value = { ...marked, picked: found };
  chosen.send('pick', {});
}

export function mount(view) {
  if (view.root.classList.contains('view-head-grid')) mark = mountGrid(view);
  else {
    chosen = view;
    view.onValue(tell);
  }
  tell();
}
