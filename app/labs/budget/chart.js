// Budget: stacked bars, and what narrow tables save.
import { node } from '../../parts/svg.js';

const { element, format, t, message } = window.Cloze;

/** 109482240 -> "109.5 M". */
export function short(value) {
  for (const [size, unit, digits] of [[1e9, 'G', 2], [1e6, 'M', 1], [1e3, 'k', 1]]) {
    if (Math.abs(value) >= size) return `${(value / size).toFixed(digits)} ${unit}`;
  }
  return String(Math.round(value));
}

/** 440425712 -> "420 MiB". */
export function bytes(value) {
  return value >= 2 ** 30 ? `${(value / 2 ** 30).toFixed(2)} GiB` : `${(value / 2 ** 20).toFixed(value < 1e7 ? 1 : 0)} MiB`;
}

const share = (part, whole) => (part < whole / 1000 ? '< 0.1\u00a0%' : `${((100 * part) / whole).toFixed(1)}\u00a0%`);

/** A published size is called as it is, the visitor's own one in the language of the page. */
export const nameOf = ({ name }) => (name === 'own size' ? message(name) : name);

/** Bars that arrow keys walk through; `tell` gets what stands under the pointer in words. */
export function makeBars(tell) {
  const root = element('div', {
    class: 'budget-bars', role: 'group', tabindex: '0', 'aria-label': t`Parameters by part; arrow keys walk through them`,
  });
  let cells = [];
  let at = null;

  function choose(row, column) {
    const line = cells[row];
    if (!line?.length) return;
    const cell = line[Math.max(0, Math.min(column, line.length - 1))];
    for (const other of cells.flat()) other.node.classList.toggle('chosen', other === cell);
    at = { row, column: line.indexOf(cell) };
    tell(cell.words);
  }

  root.addEventListener('keydown', (event) => {
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    if (!at) { choose(0, 0); return; }
    choose(Math.max(0, Math.min(at.row + move[0], cells.length - 1)), Math.max(0, at.column + move[1]));
  });

  return {
    root,
    draw(rows, names, shares) {
      const longest = Math.max(1, ...rows.map((row) => row.pretraining));
      at = null;
      cells = [];
      root.replaceChildren(...rows.map((row, r) => {
        const whole = shares ? row.pretraining : longest;
        const line = [];
        cells.push(line);
        const bar = element('div', { class: 'budget-bar' });
        for (const [part, size] of Object.entries(row.parts)) {
          if (!size) continue;
          const wide = size / whole;
          const words = t`${nameOf(row)}: ${names[part]} ${format.count(size)}, ${share(size, row.pretraining)} of it`;
          const node = element('span', { class: `budget-part part-${part}`, title: words });
          node.style.width = `${100 * wide}%`;
          const cell = { node, words };
          const column = line.push(cell) - 1;
          node.addEventListener('pointerenter', () => choose(r, column));
          node.addEventListener('click', () => choose(r, column));
          bar.append(node);
        }
        return element('div', { class: 'budget-row' },
          element('span', { class: 'budget-name', text: nameOf(row) }),
          bar,
          element('span', { class: 'budget-total', text: short(row.pretraining) }));
      }));
    },
  };
}

/** The key of the parts that occur. */
export function legend(rows, names) {
  const used = Object.keys(names).filter((part) => rows.some((row) => row.parts[part]));
  return used.map((part) => element('li', {},
    element('span', { class: `budget-key part-${part}`, 'aria-hidden': 'true' }),
    element('span', { text: names[part] })));
}

/** V x H against V x E + E x H as E grows, with the break-even and where this model stands. */
export function drawFactor(svg, row, width) {
  const height = 210;
  const [left, right, top, bottom] = [52, 14, 18, 34];
  const { full, narrow, break_even: even } = row.factorisation;
  const most = row.width * 1.12;
  const slope = row.vocabulary + row.width;
  const ceiling = Math.max(full, slope * most, narrow) * 1.04;
  const x = (e) => left + ((width - left - right) * e) / most;
  const y = (n) => height - bottom - ((height - top - bottom) * n) / ceiling;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('width', width);
  svg.setAttribute('height', height);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((f) => Math.round(f * row.width));
  const levels = [0, full / 2, full];
  svg.replaceChildren(
    ...levels.map((n) => node('line', { class: 'grid', x1: left, x2: width - right, y1: y(n), y2: y(n) })),
    ...levels.map((n) => node('text', { x: left - 8, y: y(n) + 4, 'text-anchor': 'end' }, short(n))),
    ...ticks.map((e) => node('text', { x: x(e), y: height - 14, 'text-anchor': 'middle' }, e)),
    node('text', { class: 'axis', x: width - right, y: height - 1, 'text-anchor': 'end' }, t`E, width of the tables`),
    node('line', { class: 'full', x1: x(0), x2: x(most), y1: y(full), y2: y(full) }),
    node('line', { class: 'narrow', x1: x(0), x2: x(most), y1: y(0), y2: y(slope * most) }),
    node('text', { class: 'full-name', x: x(0) + 8, y: y(full) - 7 }, 'V × H'),
    node('text', { class: 'narrow-name', x: x(most * 0.42) + 10, y: y(slope * most * 0.42) + 14 }, 'V × E + E × H'),
    node('line', { class: 'even', x1: x(even), x2: x(even), y1: y(full), y2: height - bottom }),
    node('circle', { class: row.factorisation.factorised ? 'dot narrow' : 'dot full', cx: x(row.embedding), cy: y(row.factorisation.factorised ? narrow : full), r: 6 }),
  );
}
