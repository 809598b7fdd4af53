// Training: where the words of the sentence look at one snapshot, as a small map of one layer and head.
import { node } from '../../parts/svg.js';

const { element, format, listed, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Where each word looks', layer: 'Layer', head: 'Head', mean: 'mean', label: 'Attention map: each row is a word that looks, each column one that is looked at. Arrow keys move.',
});
const MOST_LETTERS = 9;
const CELL = 24;

const short = (text) => ([...text].length > MOST_LETTERS ? `${[...text].slice(0, MOST_LETTERS - 1).join('')}…` : text);
const entries = (count, first) => [...(first ? [['', first]] : []), ...Array.from({ length: count }, (_, n) => [String(n), String(n + 1)])];

function offer(select, list, value) {
  const key = JSON.stringify(list);
  if (select.dataset.key !== key) {
    select.replaceChildren(...list.map(([name, text]) => element('option', { value: name, text })));
    select.dataset.key = key;
  }
  select.value = value;
}

/** change: called when another layer or head is chosen. */
export function makeMap(change) {
  const layer = element('select', { id: 'train-layer', onchange: () => { wanted.layer = Number(layer.value); change(); } });
  const head = element('select', { id: 'train-head', onchange: () => { wanted.head = head.value === '' ? null : Number(head.value); change(); } });
  const pick = (name, select) => element('label', { class: 'train-pick' }, element('span', { text: name }), select);
  const host = element('div', { class: 'train-map', tabindex: '0', role: 'group', 'aria-label': TEXT.label });
  const told = element('p', { class: 'train-note train-map-told', 'aria-live': 'polite' });
  const root = element('figure', { class: 'train-looks', hidden: true },
    element('figcaption', {}, element('span', { text: TEXT.title }), element('span', { class: 'train-picks' }, pick(TEXT.layer, layer), pick(TEXT.head, head))), host, told);
  const wanted = { layer: null, head: null }; // the last layer, the mean of its heads
  let shown = null;
  let place = null; // [row, column] that the pointer or the keys chose
  let drawn = null; // sizes of the drawing

  function tell() {
    if (!shown) { told.textContent = ''; return; }
    const { tokens, weights } = shown;
    const name = (n) => tokens[n].text;
    if (place) {
      told.textContent = t`“${name(place[0])}” looks at “${name(place[1])}”: ${format.percent(weights[place[0]][place[1]])}.`;
    } else {
      const row = Math.max(0, tokens.findIndex((token) => token.masked));
      const best = weights[row].map((value, n) => [value, n]).sort((a, b) => b[0] - a[0]).slice(0, 3);
      told.textContent = t`“${name(row)}” looks most at ${listed(best.map(([value, n]) => t`“${name(n)}” (${format.percent(value)})`))}.`;
    }
    if (shown.left_out) {
      told.textContent += ` ${shown.left_out === 1 ? t`The last piece is left out.` : t`The last ${shown.left_out} pieces are left out.`}`;
    }
    drawn?.cursor.setAttribute('visibility', place ? 'visible' : 'hidden');
    if (place && drawn) {
      drawn.cursor.setAttribute('x', drawn.left + place[1] * drawn.cell);
      drawn.cursor.setAttribute('y', drawn.top + place[0] * drawn.cell);
    }
  }

  function draw() {
    const count = shown.tokens.length;
    if (place && (place[0] >= count || place[1] >= count)) place = null;
    const names = shown.tokens.map((token) => short(token.text));
    const turned = names.some((text) => [...text].length > 2);
    const room = Math.max(...names.map((text) => [...text].reduce((sum, letter) => sum + (/[\u2e80-\u9fff]/.test(letter) ? 12 : 7), 0))) + 8;
    const [left, top] = [room, turned ? room : 20];
    const cell = Math.max(9, Math.min(CELL, Math.floor((Math.max(240, host.clientWidth) - left - 2) / count)));
    const [width, height] = [left + count * cell + 2, top + count * cell + 2];
    const svg = node('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'train-svg', 'aria-hidden': 'true' });
    shown.tokens.forEach((token, n) => {
      const middle = n * cell + cell / 2;
      const kind = token.masked ? 'map-name masked' : 'map-name';
      svg.append(node('text', { class: kind, x: left - 5, y: top + middle + 4, 'text-anchor': 'end', text: names[n] }));
      svg.append(turned ? node('text', { class: kind, transform: `translate(${left + middle + 4} ${top - 5}) rotate(-90)`, text: names[n] })
        : node('text', { class: kind, x: left + middle, y: top - 6, 'text-anchor': 'middle', text: names[n] }));
    });
    shown.weights.forEach((row, y) => row.forEach((value, x) => svg.append(node('rect', {
      class: 'map-cell', x: left + x * cell, y: top + y * cell, width: cell - 1, height: cell - 1, 'fill-opacity': (0.05 + 0.95 * value ** 0.7).toFixed(3),
    }))));
    const cursor = node('rect', { class: 'map-cursor', width: cell - 1, height: cell - 1, visibility: 'hidden' });
    svg.append(cursor);
    drawn = { svg, left, top, cell, count, cursor, width };
    host.replaceChildren(svg);
    tell();
  }

  const point = (event) => {
    if (!drawn) return;
    const box = drawn.svg.getBoundingClientRect();
    const scale = drawn.width / box.width;
    const at = (value, start) => Math.floor((value * scale - start) / drawn.cell);
    const [row, column] = [at(event.clientY - box.top, drawn.top), at(event.clientX - box.left, drawn.left)];
    place = [row, column].every((n) => n >= 0 && n < drawn.count) ? [row, column] : null;
    tell();
  };
  for (const name of ['pointermove', 'pointerdown']) host.addEventListener(name, point);
  const leave = () => { place = null; tell(); };
  // A finger leaves when it is lifted: what it pointed at is still to be read.
  host.addEventListener('pointerleave', ({ pointerType }) => { if (pointerType !== 'touch') leave(); });
  host.addEventListener('blur', leave);
  host.addEventListener('keydown', (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !drawn) return;
    event.preventDefault();
    place = place ? place.map((n, side) => Math.min(drawn.count - 1, Math.max(0, n + by[side]))) : [0, 0];
    tell();
  });
  new ResizeObserver(() => { if (shown && root.isConnected && !root.hidden) draw(); }).observe(root);

  return {
    root,
    wanted,
    /** Another run may have other layers. */
    reset() { [wanted.layer, wanted.head, shown, place, root.hidden] = [null, null, null, null, true]; },
    show(found) {
      if (found === shown) return;
      shown = found;
      root.hidden = false;
      root.dataset.layer = found.layer;
      root.dataset.head = found.head ?? '';
      offer(layer, entries(found.layers), String(found.layer));
      offer(head, entries(found.heads, TEXT.mean), found.head === null ? '' : String(found.head));
      draw();
    },
  };
}
