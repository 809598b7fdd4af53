// The part `TermMaps` of maps.py: aligned maps of one head, one cell read in all of them at once.
import { fit, prepare, screenRatio, widest } from '../../parts/paint.js';
import { csvButton, spoken } from '../../parts/plain.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  score: 'score', softmax: 'attention (softmax)', change: 'change of attention', unseen: 'not seen',
  point: 'Point at a cell, or focus the maps and press the arrow keys. Rows look at columns.',
});
const COLOURS = { content: '--ink-soft', c2p: '--model', p2c: '--hidden-mark', position: '--model', segment: '--random-mark' };
const LEAST_LETTER = 13; // pixels between two labels: fewer would print one over the other
const MOST_CELL = 34;

/** base64 of little-endian float32 -> Float32Array. */
function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const style = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

/**
 * Maps over the same rows and columns; `choose({row, column} | null)` is called when a cell is pointed at or left.
 * draw({maps: [{key, title, note, values, kind: 'term' | 'share' | 'change', top, off}], rows: [text], columns: [text]}).
 */
function createMaps(host, choose, turn) {
  let shown = null;
  let at = null;
  let drawn = [];

  function place(width) {
    const { rows, columns } = shown;
    const size = 11;
    const font = `${size}px ${style('--mono') || 'monospace'}`;
    const most = Math.min(widest([...rows, ...columns], font), width * 0.27, 92);
    const left = Math.ceil(most) + 6;
    const cell = Math.min(MOST_CELL, (width - left - 1) / columns.length);
    return { font, most, left, top: left, cell, every: Math.max(1, Math.ceil(LEAST_LETTER / cell)), wide: left + cell * columns.length, high: left + cell * rows.length };
  }

  function paint(canvas, map) {
    const where = place(canvas.parentElement.clientWidth);
    const { left, top, cell, font, most, every } = where;
    const context = prepare(canvas, where.wide + 1, where.high + 1, screenRatio());
    const colours = { plus: style('--model'), minus: style('--hidden-mark'), line: style('--line'), soft: style('--ink-soft'), paper: style('--paper'), none: style('--track') };
    context.font = font;
    context.textBaseline = 'middle';
    context.fillStyle = colours.soft;
    shown.rows.forEach((text, n) => {
      if (n % every) return;
      context.textAlign = 'right';
      context.fillText(fit(text, most, font), left - 4, top + cell * (n + 0.5));
    });
    shown.columns.forEach((text, n) => {
      if (n % every) return;
      context.save();
      context.translate(left + cell * (n + 0.5), top - 4);
      context.rotate(-Math.PI / 2);
      context.textAlign = 'left';
      context.fillText(fit(text, most, font), 0, 0);
      context.restore();
    });
    const side = cell > 5 ? cell - 1 : cell;
    map.values.forEach((value, n) => {
      const x = left + cell * (n % shown.columns.length);
      const y = top + cell * Math.floor(n / shown.columns.length);
      context.globalAlpha = 1;
      context.fillStyle = Number.isNaN(value) ? colours.none : colours.paper;
      context.fillRect(x, y, side, side);
      if (Number.isNaN(value)) return;
      const share = Math.min(1, Math.abs(value) / map.top);
      context.globalAlpha = map.kind === 'term' ? share : Math.sqrt(share);
      context.fillStyle = value < 0 ? colours.minus : colours.plus;
      context.fillRect(x, y, side, side);
    });
    context.globalAlpha = 1;
    context.strokeStyle = colours.line;
    context.strokeRect(left - 0.5, top - 0.5, where.wide - left + 0.5, where.high - top + 0.5);
    return where;
  }

  function figure(map) {
    const canvas = element('canvas', { role: 'img', 'aria-label': map.title });
    const cursor = element('span', { class: 'cursor', hidden: true });
    const box = element('div', { class: 'canvas' }, canvas, cursor);
    const name = map.off === undefined ? element('b', { text: map.title }) : element('button', {
      type: 'button', class: 'switch', role: 'switch', 'aria-checked': String(!map.off), 'data-term': map.key, onclick: () => turn(map.key),
    }, element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text: map.title }));
    const root = element('figure', { class: map.off ? 'off' : undefined },
      element('figcaption', {}, map.sign ? element('span', { class: 'sign', text: map.sign }) : null, name,
        map.note ? element('span', { class: 'note', text: map.note }) : null), box);
    return { map, root, box, canvas, cursor, where: null };
  }

  function redraw() {
    if (!shown || host.offsetParent === null) return;
    for (const each of drawn) each.where = paint(each.canvas, each.map);
    move(at);
  }

  function draw(next) {
    shown = next;
    if (at && (at.row >= next.rows.length || at.column >= next.columns.length)) at = null;
    drawn = next.maps.map(figure);
    const focused = host.contains(document.activeElement) ? document.activeElement.dataset.term : null;
    host.replaceChildren(...drawn.map(({ root }) => root));
    if (focused) host.querySelector(`[data-term="${focused}"]`)?.focus();
    redraw();
  }

  function move(next) {
    at = next;
    for (const { cursor, where } of drawn) {
      cursor.hidden = !at;
      if (!at || !where) continue;
      Object.assign(cursor.style, {
        left: `${where.left + at.column * where.cell}px`, top: `${where.top + at.row * where.cell}px`, width: `${where.cell}px`, height: `${where.cell}px`,
      });
    }
    choose(at);
  }

  function under(event) {
    const each = drawn.find(({ canvas }) => canvas === event.target);
    if (!each?.where) return null;
    const box = each.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - each.where.left) / each.where.cell);
    const row = Math.floor((event.clientY - box.top - each.where.top) / each.where.cell);
    const inside = row >= 0 && column >= 0 && row < shown.rows.length && column < shown.columns.length;
    return inside ? { row, column } : null;
  }

  for (const name of ['pointermove', 'pointerdown']) {
    host.addEventListener(name, (event) => {
      const next = under(event);
      if (next && (next.row !== at?.row || next.column !== at?.column)) move(next);
    });
  }
  host.addEventListener('focus', () => { if (shown && !at) move({ row: 0, column: 0 }); });
  host.addEventListener('keydown', (event) => {
    if (!shown || event.target !== host || event.altKey || event.ctrlKey || event.metaKey) return;
    const { row, column } = at ?? { row: 0, column: 0 };
    const [down, across] = [shown.rows.length - 1, shown.columns.length - 1];
    const next = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], Home: [row, 0], End: [row, across],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    move({ row: Math.max(0, Math.min(down, next[0])), column: Math.max(0, Math.min(across, next[1])) });
  });
  host.setAttribute('tabindex', '0');
  host.setAttribute('role', 'group');
  host.setAttribute('aria-label', t`Maps of the terms; arrow keys move from cell to cell`);
  host.setAttribute('aria-keyshortcuts', 'ArrowUp ArrowDown ArrowLeft ArrowRight Home End');
  new ResizeObserver(redraw).observe(host);
  new MutationObserver(redraw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  return { draw, move };
}

const signed = (value) => String(value).replace('-', '\u2212');
const number = (value) => (Number.isNaN(value) ? TEXT.unseen : signed(value.toPrecision(4)));

export function mount(view) {
  const host = element('div', { class: 'maps' });
  const cell = element('p', { class: 'cell', role: 'status' });
  let shown = null; // the value in the page's language, its numbers read

  /** The sum of one cell: a + b + c = score, softmax. */
  function sumOf({ row, column }) {
    const n = row * shown.columns.length + column;
    const [[from, query], [to, key]] = [shown.rows[row], shown.columns[column]];
    const parts = [element('bdi', { text: query }), ' \u2192 ', element('bdi', { text: key }), ` (${signed(from - to)}): `];
    shown.terms.forEach(({ term, title, values }, index) => {
      const value = element('span', { class: 'value', title, text: number(values[n]) });
      value.style.setProperty('--key', `var(${COLOURS[term]})`);
      parts.push(index ? ' + ' : '', value);
    });
    const share = shown.probabilities[n];
    parts.push(' = ', element('b', { text: number(shown.scores[n]) }), ' \u2192 ', element('b', { title: format.exact(share), text: format.percent(share) }));
    if (shown.off.length) parts.push(t` (before: ${format.percent(shown.before[n])})`);
    return parts;
  }

  function turn(term) {
    const { off } = view.value;
    const wish = off.includes(term) ? off.filter((each) => each !== term) : [...off, term];
    view.value = { ...view.value, wish };
    view.send('turn', {});
  }
  const drawer = createMaps(host, (at) => cell.replaceChildren(...(at && shown ? sumOf(at) : [TEXT.point])), turn);

  function everyCell() {
    const plain = (value) => (Number.isNaN(value) ? null : value);
    const rows = shown.rows.flatMap(([from, query], r) => shown.columns.map(([to, key], c) => {
      const n = r * shown.columns.length + c;
      const values = [...shown.terms.map(({ values }) => values), shown.scores, shown.probabilities, shown.before];
      return [from, query, to, key, from - to, ...values.map((each) => plain(each[n]))];
    }));
    const terms = shown.terms.map(({ term }) => term);
    return { columns: ['query', 'query_piece', 'key', 'key_piece', 'distance', ...terms, 'score', 'probability', 'probability_before'], rows };
  }

  function show() {
    view.root.hidden = !view.value?.terms;
    if (view.root.hidden) return;
    const { terms, scores, probabilities, before, ...rest } = spoken(view.value);
    const [sum, share, old] = [scores, probabilities, before].map(numbers);
    shown = { ...rest, scores: sum, probabilities: share, before: old, terms: terms.map((each) => ({ ...each, values: numbers(each.values) })) };
    const { off, top } = rest;
    const several = terms.length > 1;
    const list = shown.terms.map(({ term, title, note, values }, n) => ({
      key: term, title, note, values, sign: n ? '+' : '', kind: 'term', top, off: several ? off.includes(term) : undefined,
    }));
    list.push({ key: 'score', title: TEXT.score, sign: '=', kind: 'term', top, values: sum },
      { key: 'softmax', title: TEXT.softmax, sign: '\u2192', kind: 'share', top: 1, values: share });
    if (off.length) {
      const values = share.map((value, n) => value - old[n]);
      const most = Math.max(0.001, ...values.map(Math.abs));
      list.push({ key: 'change', title: TEXT.change, note: t`up to ${format.percent(most)}`, sign: '\u0394', kind: 'change', top: most, values });
    }
    const label = ([, text]) => text;
    drawer.draw({ maps: list, rows: rest.rows.map(label), columns: rest.columns.map(label) });
  }
  view.root.replaceChildren(host, cell, csvButton(view.root.dataset.files, everyCell));
  document.addEventListener('cloze:lab', ({ detail }) => { if (detail === 'terms' && view.root.isConnected) view.send('told', {}); });
  view.onValue(show);
  show();
}
