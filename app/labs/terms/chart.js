// Terms: what a head's terms make of a distance, and which row of the table a distance reads.
import { node } from '../../parts/svg.js';
import { whole } from './parts.js';

const { element, t } = window.Cloze;
const HEIGHT = 278;
const [LEFT, RIGHT, TOP, BOTTOM] = [54, 16, 26, 48];
export const COLOURS = { content: '--ink-soft', c2p: '--model', p2c: '--hidden-mark', position: '--model', segment: '--random-mark' };
const DASHES = { content: '2 3', c2p: '', p2c: '7 4', position: '', segment: '7 4' };

/** Round numbers between two bounds, about `count` of them. */
export function ticks(least, most, count = 5) {
  const rough = (most - least) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let value = Math.ceil(least / step) * step; value <= most + step / 1e6; value += step) found.push(Number(value.toPrecision(10)));
  return found;
}

function frame(width, reach, least, most, label, upright) {
  const wide = Math.max(260, Math.min(width, 1000));
  const x = (distance) => LEFT + ((distance + reach) / (2 * reach)) * (wide - LEFT - RIGHT);
  const y = (value) => TOP + ((most - value) / (most - least || 1)) * (HEIGHT - TOP - BOTTOM);
  const picture = node('svg', { class: 'ts-chart', viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: 'img', 'aria-label': label });
  for (const value of ticks(least, most)) {
    picture.append(node('line', { class: value === 0 ? 'zero' : 'grid', x1: LEFT, x2: wide - RIGHT, y1: y(value), y2: y(value) }),
      node('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, whole(value)));
  }
  for (const value of ticks(-reach, reach, wide < 500 ? 4 : 8)) {
    picture.append(node('text', { class: 'tick', x: x(value), y: HEIGHT - 28, 'text-anchor': 'middle' }, whole(value)));
  }
  picture.append(node('text', { class: 'tick', x: 4, y: 14 }, upright),
    node('text', { class: 'tick', x: wide - RIGHT, y: HEIGHT - 8, 'text-anchor': 'end' }, t`distance`));
  picture.append(node('line', { class: 'zero', x1: x(0), x2: x(0), y1: TOP, y2: HEIGHT - BOTTOM }));
  return { picture, x, y, wide };
}

// Point at a distance, or focus the chart and press the arrow keys.
function follow(box, picture, { x, wide }, reach, tell) {
  const line = node('line', { class: 'pointer', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
  picture.append(line);
  let at = 0;
  const go = (distance) => {
    at = Math.max(-reach, Math.min(reach, distance));
    line.setAttribute('x1', x(at));
    line.setAttribute('x2', x(at));
    line.setAttribute('visibility', 'visible');
    tell(at);
  };
  picture.addEventListener('pointermove', (event) => {
    const seen = picture.getBoundingClientRect();
    const place = ((event.clientX - seen.left) / seen.width) * wide;
    go(Math.round(((place - LEFT) / (wide - LEFT - RIGHT)) * 2 * reach - reach));
  });
  box.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    go(at + step);
  };
  box.onfocus = () => go(at);
  return go;
}

/** A focusable box for a chart. */
export const chartBox = (label) => element('div', { class: 'ts-chartbox', tabindex: '0', role: 'group', 'aria-label': label, 'aria-keyshortcuts': 'ArrowLeft ArrowRight' });

/**
 * Means of every term by distance: dots for pairs that occur, lines for what the table would give.
 * means: [[distance, pairs, mean of each name...]]; curves: {c2p, p2c, edges} or null.
 */
export function distanceChart(box, { names, means, curves, reach }, label, tell) {
  const values = means.flatMap((row) => row.slice(2)).concat(curves?.c2p ?? [], curves?.p2c ?? []);
  const most = Math.max(0.1, ...values) * 1.08;
  const least = Math.min(-0.1, ...values) * 1.08;
  const made = frame(box.clientWidth, reach, least, most, label, t`score, mean of each term`);
  const { picture, x, y } = made;
  for (const edge of curves?.edges ?? []) {
    picture.append(node('line', { class: 'edge', x1: x(edge - 0.5), x2: x(edge - 0.5), y1: HEIGHT - BOTTOM - 9, y2: HEIGHT - BOTTOM + 3 }));
  }
  for (const [place, name] of names.entries()) {
    const colour = `stroke:var(${COLOURS[name]})`;
    const curve = curves?.[name];
    if (curve) {
      const path = curve.map((value, n) => `${n ? 'L' : 'M'}${x(n - reach).toFixed(1)} ${y(value).toFixed(1)}`).join('');
      picture.append(node('path', { class: 'curve', d: path, style: colour, 'stroke-dasharray': DASHES[name] }));
    }
    const dots = node('g', { style: `fill:var(${COLOURS[name]})`, class: 'dots', 'data-term': name });
    for (const row of means) {
      const [cx, cy] = [x(row[0]).toFixed(1), y(row[place + 2]).toFixed(1)];
      if (name === 'p2c' || name === 'segment') dots.append(node('rect', { x: cx - 2.6, y: cy - 2.6, width: 5.2, height: 5.2 }));
      else dots.append(node('circle', { cx, cy, r: name === 'content' ? 2.2 : 3 }));
    }
    picture.append(dots);
  }
  box.replaceChildren(picture);
  return follow(box, picture, made, reach, tell);
}

export function legend(names, label) {
  return element('ul', { class: 'ts-legend' }, ...names.map((name) => {
    const mark = element('span', { class: `ts-key ${name}`, 'aria-hidden': 'true' });
    mark.style.setProperty('--key', `var(${COLOURS[name]})`);
    return element('li', {}, mark, element('span', { text: label(name) }));
  }));
}

/** Row of the table for every distance: rows[n] belongs to the distance n - reach. */
export function tableChart(box, { rows, reach, count, exact }, label, tell) {
  const made = frame(box.clientWidth, reach, 0, count, label, t`row of the table`);
  const { picture, x, y } = made;
  picture.append(node('rect', { class: 'exact', x: x(exact[0]), width: Math.max(1, x(exact[1]) - x(exact[0])), y: TOP, height: HEIGHT - TOP - BOTTOM }));
  const straight = [-count / 2, count / 2].map((d) => `${x(Math.max(-reach, Math.min(reach, d)))} ${y(Math.max(0, Math.min(count, d + count / 2)))}`);
  picture.append(node('path', { class: 'reference', d: `M${straight[0]}L${straight[1]}` }));
  picture.append(node('path', { class: 'curve', style: 'stroke:var(--model)', d: rows.map((row, n) => `${n ? 'L' : 'M'}${x(n - reach).toFixed(1)} ${y(row).toFixed(1)}`).join('') }));
  box.replaceChildren(picture);
  return follow(box, picture, made, reach, tell);
}

/** "distance 200 reads row 409, as do 198 to 203" in the page's language. */
export function sayRow({ rows, reach }, distance) {
  const row = rows[distance + reach];
  let [low, high] = [distance, distance];
  while (low > -reach && rows[low - 1 + reach] === row) low -= 1;
  while (high < reach && rows[high + 1 + reach] === row) high += 1;
  if (low === high) return t`Distance ${whole(distance)} reads row ${row}, and no other distance does.`;
  return t`Distance ${whole(distance)} reads row ${row}, as every distance from ${whole(low)} to ${whole(high)} does.`;
}
