// Meaning: paths on axes that stay, and mean cosines by layer.
import { COLOURS, TEXT, layerMark, layerName, meanCosines, signed } from './page.js';
import { node } from '../../parts/svg.js';

const { element, t } = window.Cloze;

/** Every path, drawn once for an answer; `step(layer)` moves the marks without touching the axes. */
export function paths(box, answer, way, tell) {
  const { points } = answer.ways[way];
  const wide = Math.max(260, Math.min(box.clientWidth, 1000));
  const high = Math.round(Math.min(520, Math.max(300, wide * 0.56)));
  const all = points.flat();
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  const [left, low] = [Math.min(...xs), Math.min(...ys)];
  const spans = [Math.max(Math.max(...xs) - left, 1e-9), Math.max(Math.max(...ys) - low, 1e-9)];
  const room = [wide - 70, high - 70];
  const unit = Math.min(room[0] / spans[0], room[1] / spans[1]);
  const place = ([x, y]) => [35 + (room[0] - spans[0] * unit) / 2 + (x - left) * unit, high - 35 - (room[1] - spans[1] * unit) / 2 - (y - low) * unit];
  const picture = node('svg', { class: 'mn-paths', viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: 'img', 'aria-label': TEXT.picture });
  picture.append(node('rect', { class: 'frame', x: 0.5, y: 0.5, width: wide - 1, height: high - 1, rx: 8 }));
  const route = (list) => list.map((point, n) => `${n ? 'L' : 'M'}${place(point).map((v) => v.toFixed(1)).join(' ')}`).join('');
  const lines = points.map((list, n) => {
    const colour = `c${answer.used[n].number % COLOURS}`;
    const trail = node('path', { class: `trail ${colour}` });
    picture.append(node('path', { class: `whole ${colour}`, d: route(list) }), trail);
    list.forEach((point, layer) => {
      const [cx, cy] = place(point);
      const dot = node('circle', { class: `dot ${colour}`, cx, cy, r: 3 });
      dot.append(node('title', {}, `${answer.used[n].number + 1} · ${layerName(layer)}: ${signed(point[0])}, ${signed(point[1])}`));
      picture.append(dot);
    });
    return { list, colour, trail };
  });
  const [sx, sy] = place(points[0][0]);
  const marks = lines.map(({ colour }, n) => {
    const group = node('g', { class: `mark ${colour}` });
    group.append(node('circle', { r: 11 }), node('text', { 'text-anchor': 'middle', y: 4 }, answer.used[n].number + 1));
    picture.append(group);
    return group;
  });
  picture.append(node('path', { class: 'origin', d: `M${sx - 6} ${sy}h12M${sx} ${sy - 6}v12` }));
  box.replaceChildren(picture);
  tell?.(t`Across ${Math.round(answer.ways[way].shares[0] * 100)} % of the differences, up ${Math.round(answer.ways[way].shares[1] * 100)} %.`);
  return (layer) => lines.forEach(({ list, trail }, n) => {
    trail.setAttribute('d', route(list.slice(0, layer + 1)));
    const [x, y] = place(list[layer]);
    marks[n].setAttribute('transform', `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  });
}

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [44, 14, 12, 28, 190];

/** Mean cosines of the visitor's occurrences and of random words, by layer. */
export function crowdingChart(box, answer, way, layer) {
  const mine = meanCosines(answer.cosines[way]);
  const random = answer.background[way];
  const wide = Math.max(260, Math.min(box.clientWidth, 700));
  const least = Math.min(0, ...mine, ...random);
  const x = (n) => LEFT + (n * (wide - LEFT - RIGHT)) / Math.max(1, mine.length - 1);
  const y = (value) => TOP + ((1 - value) / (1 - least)) * (HEIGHT - TOP - BOTTOM);
  const picture = node('svg', { class: 'mn-chart', viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: 'img', 'aria-label': TEXT.chart });
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(node('line', { class: 'grid', x1: LEFT, x2: wide - RIGHT, y1: y(value), y2: y(value) }), node('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, value));
  }
  picture.append(node('line', { class: 'now', x1: x(layer), x2: x(layer), y1: TOP, y2: HEIGHT - BOTTOM }));
  const every = Math.ceil(mine.length / Math.floor((wide - LEFT) / 30));
  mine.forEach((_, n) => { if (n % every === 0) picture.append(node('text', { class: 'tick', x: x(n), y: HEIGHT - 8, 'text-anchor': 'middle' }, layerMark(n))); });
  for (const [name, values] of [['random', random], ['mine', mine]]) {
    picture.append(node('path', { class: `line ${name}`, d: values.map((value, n) => `${n ? 'L' : 'M'}${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join('') }));
    values.forEach((value, n) => {
      const dot = node('circle', { class: `spot ${name}`, cx: x(n), cy: y(value), r: 3.4 });
      dot.append(node('title', {}, `${layerName(n)}: ${signed(value)}`));
      picture.append(dot);
    });
  }
  box.replaceChildren(picture, element('ul', { class: 'mn-legend' },
    element('li', {}, element('span', { class: 'mn-key mine', 'aria-hidden': 'true' }), element('span', { text: TEXT.yours })),
    element('li', {}, element('span', { class: 'mn-key random', 'aria-hidden': 'true' }), element('span', { text: TEXT.random }))));
}
