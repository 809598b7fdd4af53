// Terms: aligned maps of one head, one cell read in all of them at once.
import { fit, prepare, screenRatio, widest } from '../../parts/paint.js';

const { element, t } = window.Cloze;
const LEAST_LETTER = 13; // pixels between two labels: fewer would print one over the other
const MOST_CELL = 34;

/** base64 of little-endian float32 -> Float32Array. */
export function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const style = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

/**
 * Maps over the same rows and columns; `choose({row, column} | null)` is called when a cell is pointed at or left.
 * draw({maps: [{key, title, note, values, kind: 'term' | 'share' | 'change', top}], rows: [text], columns: [text]}).
 */
export function createMaps(host, choose) {
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
    const cursor = element('span', { class: 'ts-cursor', hidden: true });
    const box = element('div', { class: 'ts-canvas' }, canvas, cursor);
    const root = element('figure', { class: `ts-map${map.off ? ' off' : ''}`, 'data-map': map.key },
      element('figcaption', {}, map.sign ? element('span', { class: 'ts-sign', text: map.sign }) : null,
        element('b', { text: map.title }), map.note ? element('span', { class: 'ts-note', text: map.note }) : null), box);
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
    host.replaceChildren(...drawn.map(({ root }) => root), ...(next.extra ? [next.extra] : []));
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
    if (!shown || event.altKey || event.ctrlKey || event.metaKey) return;
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
