// Training: a line chart as SVG with axes, baselines and a readout under the pointer.
import { SVG, node } from '../../parts/svg.js';
import { figure, namesOf } from './words.js';

const { message, t, texts } = window.Cloze;
const KNOWN = texts({ uniform: 'knows nothing', unigram_entropy: 'knows only how frequent pieces are' });
const MARGIN = { top: 14, right: 14, bottom: 34, left: 52 };

/** Colour variables and dashes of overlaid runs: never colour alone. */
export const TONES = ['--model', '--hidden-mark', '--kept-mark', '--random-mark', '--ink-soft'];
const SHARED = TONES.length - 1; // what some of the runs have in common
const DASHES = ['', '7 4', '2 3', '9 3 2 3', '4 2'];

/** What can be had without a model, of one run: [[title, value]]. */
function ownBaselines(live, what) {
  if (live.task) return (live.task.baselines ?? []).filter((each) => Number.isFinite(each.metrics[what])).map((each) => [message(each.title), each.metrics[what]]);
  if (!/masked_token_loss|permutation_loss|causal_loss/.test(what)) return [];
  return Object.entries(live.baselines).filter(([, y]) => Number.isFinite(y)).map(([kind, y]) => [KNOWN[kind] ?? kind, y]);
}

/** Baselines of all runs that are drawn. Those in which runs differ bear the names and, where it is one run's, its colour. */
export function baselinesOf(feeds, what) {
  const shown = feeds.map((feed, tone) => ({ tone, live: feed.live, drawn: feed.records.some((each) => Number.isFinite(each[what] ?? each[`validation_${what}`])) }))
    .filter((each) => each.drawn);
  const groups = new Map();
  const names = namesOf(feeds.map(({ live }) => live.summary));
  for (const { tone, live } of shown) {
    for (const [title, y] of ownBaselines(live, what)) {
      const text = live.task ? figure(what, y) : y.toFixed(2);
      const key = `${title}: ${text}`;
      if (!groups.has(key)) groups.set(key, { title, text, y, runs: [] });
      groups.get(key).runs.push({ tone, name: names.get(live.summary.id) });
    }
  }
  return [...groups.values()].map(({ title, text, y, runs }) => (runs.length === shown.length ? { name: `${title}: ${text}`, y }
    : { name: t`${title} (${runs.map((run) => run.name).join(', ')}): ${text}`, y, tone: runs.length === 1 ? runs[0].tone : SHARED }));
}

const wide = (letter) => /[\u2e80-\u9fff\uff00-\uffef]/.test(letter);
const widthOf = (text) => [...text].reduce((sum, letter) => sum + (wide(letter) ? 12.5 : 6.3), 0);
/** A name cut to about so many pixels; its value at the end stays. */
function fitted(text, room) {
  if (widthOf(text) <= room) return text;
  const [value] = /[:：][^:：]*$/.exec(text) ?? [''];
  const letters = [...text.slice(0, text.length - value.length)];
  while (letters.length > 1 && widthOf(`${letters.join('')}…${value}`) > room) letters.pop();
  return `${letters.join('')}…${value}`;
}

/** Heights for names that want to stand at some heights, `apart` from each other where there is room between `top` and `bottom`. */
export function spread(wanted, apart, top, bottom) {
  const order = wanted.map((_, n) => n).sort((a, b) => wanted[a] - wanted[b]);
  const places = [...wanted];
  let low = top;
  for (const n of order) { places[n] = Math.max(places[n], low); low = places[n] + apart; }
  let high = bottom;
  for (const n of order.reverse()) { places[n] = Math.min(places[n], high); high = places[n] - apart; }
  return places;
}

/** Round numbers between two values, at most about `most` of them. */
export function ticks(low, high, most) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
    found.push(Number(at.toPrecision(12)));
  }
  return found;
}

function extent(series, baselines, zero, fromX) {
  const xs = series.flatMap((line) => line.points.map(([x]) => x));
  const ys = [...series.flatMap((line) => line.points.map(([, y]) => y)), ...baselines.map(({ y }) => y)];
  if (!xs.length) return null;
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  low = low >= 0 ? Math.max(0, zero ? 0 : low - pad) : low - pad;
  high += pad;
  return { x: [Math.min(fromX, ...xs), Math.max(...xs) || 1], y: [low, high] };
}

/**
 * Draw into `host`.
 * series: [{name, run, points: [[x, y]], tone, dots}], baselines: [{name, y, tone}],
 * showX, showY: number -> text; label: what a screen reader hears; zero: the y axis begins at 0;
 * fromX: where the x axis begins at the latest.
 */
export function drawChart(host, { series, baselines = [], showX, showY, height = 300, label, small = false, zero = false, fromX = 0 }) {
  const width = Math.max(240, host.clientWidth);
  const range = extent(series, baselines, zero, fromX);
  if (!range) { host.replaceChildren(); return null; }
  const margin = small ? { top: 8, right: 10, bottom: 22, left: 58 } : MARGIN;
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const x = (value) => margin.left + ((value - range.x[0]) / (range.x[1] - range.x[0] || 1)) * inner.width;
  const y = (value) => margin.top + (1 - (value - range.y[0]) / (range.y[1] - range.y[0] || 1)) * inner.height;
  const svg = node('svg', {
    xmlns: SVG, viewBox: `0 0 ${width} ${height}`, width, height, class: 'train-svg', role: 'img', 'aria-label': label,
  });
  for (const value of ticks(...range.y, small ? 3 : 6)) {
    svg.append(
      node('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
      node('text', { class: 'tick', x: margin.left - 8, y: y(value) + 4, 'text-anchor': 'end', text: showY(value) }));
  }
  for (const value of ticks(...range.x, Math.min(8, Math.floor(inner.width / 90)))) {
    const edge = x(value) > width - margin.right - 16;
    svg.append(node('text', {
      class: 'tick', x: edge ? width - 2 : x(value), y: height - (small ? 6 : 12),
      'text-anchor': edge ? 'end' : 'middle', text: showX(value),
    }));
  }
  // Names stand over their lines, and those of lines that lie close together below each other.
  const heights = spread(baselines.map((each) => y(each.y) - 5), 16, margin.top + 2, height - margin.bottom - 4);
  const names = baselines.map(({ name, y: value, tone }, n) => {
    const style = tone === undefined ? undefined : `stroke: var(${TONES[tone % TONES.length]})`;
    svg.append(node('line', { class: 'baseline', x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value), style }));
    const text = fitted(name, inner.width - 12);
    return node('text', {
      class: 'baseline-name', x: width - margin.right - 4, y: heights[n], 'text-anchor': 'end', text,
      style: style?.replace('stroke', 'fill'),
    }, ...(text === name ? [] : [node('title', { text: name })]));
  });
  for (const { points, tone, dots } of series) {
    const path = points.map(([a, b], n) => `${n ? 'L' : 'M'}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join('');
    svg.append(node('path', {
      class: dots ? 'line held-out' : 'line', d: path, style: `stroke: var(${TONES[tone % TONES.length]})`,
      'stroke-dasharray': DASHES[tone % DASHES.length] || undefined,
    }));
    if (dots || points.length === 1) {
      for (const [a, b] of points) {
        svg.append(node('circle', {
          class: 'dot', cx: x(a).toFixed(1), cy: y(b).toFixed(1), r: dots ? 3.5 : 2.5,
          style: `stroke: var(${TONES[tone % TONES.length]})`,
        }));
      }
    }
  }
  const cursor = node('line', { class: 'cursor', y1: margin.top, y2: height - margin.bottom, visibility: 'hidden' });
  svg.append(...names, cursor);
  host.replaceChildren(svg);
  return {
    svg,
    /** The x of the nearest point to a place on the screen, and the cursor drawn there. */
    pick(clientX) {
      const box = svg.getBoundingClientRect();
      const wanted = ((clientX - box.left) / box.width) * width;
      const xs = series.flatMap((line) => line.points.map(([value]) => value));
      const found = xs.reduce((best, value) => (
        Math.abs(x(value) - wanted) < Math.abs(x(best) - wanted) ? value : best), xs[0]);
      this.mark(found);
      return found;
    },
    mark(value) {
      cursor.setAttribute('visibility', value === null ? 'hidden' : 'visible');
      if (value !== null) { cursor.setAttribute('x1', x(value)); cursor.setAttribute('x2', x(value)); }
    },
  };
}
