// Ranks on a logarithmic scale, 1 at the top, one line for each word.
import { titledSvg } from '../../parts/export.js';
import { node } from '../../parts/svg.js';

const { format, sentence, t, texts } = window.Cloze;
const COLOURS = { best: '--model', own: '--hidden-mark', second: '--kept-mark', rival: '--random-mark' };
const DASHES = ['', '6 4', '2 3', '9 3 2 3', '1 4', '12 4'];
const MARKS = [
  (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z`,
  (x, y) => `M${x - 4} ${y - 4}h8v8h-8Z`,
  (x, y) => `M${x} ${y - 5}l5 9h-10Z`,
  (x, y) => `M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5Z`,
];
const TOP = 14;
const HEIGHT = 260;
const LEFT = 52;
const BOTTOM = 30;
const LINE = 17;

/** Heights of labels that stand at least a line apart, as near to the wanted ones as that allows. */
function apart(wanted) {
  const order = wanted.map((y, n) => [y, n]).sort((a, b) => a[0] - b[0]);
  const placed = [];
  let last = -Infinity;
  for (const [y, n] of order) {
    last = Math.max(y, last + LINE);
    placed[n] = last;
  }
  const over = Math.max(0, last - (HEIGHT - 4));
  return placed.map((y) => y - over);
}

const kindOf = ({ kinds }) => ['own', 'best', 'rival', 'second'].find((kind) => kinds.includes(kind));

export function chart({ names, lines, vocabulary, width }) {
  const wide = Math.max(280, Math.min(width, 860));
  const longest = Math.max(...lines.map(({ word }) => [...word].length));
  const right = Math.min(wide * 0.34, 26 + longest * 8.5);
  const x = (n) => LEFT + (n * (wide - LEFT - right)) / Math.max(1, names.length - 1);
  const y = (rank) => TOP + (Math.log(rank) / Math.log(vocabulary)) * (HEIGHT - TOP - BOTTOM);
  const picture = node('svg', {
    class: 'lab-chart', viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: 'img',
    'aria-label': t`Rank of each word after every layer; the table below has the numbers.`,
  });
  for (let rank = 1; rank < vocabulary; rank *= 10) {
    picture.append(
      node('line', { class: 'grid', x1: LEFT, x2: x(names.length - 1), y1: y(rank), y2: y(rank) }),
      node('text', { class: 'tick', x: LEFT - 10, y: y(rank) + 4, 'text-anchor': 'end' }, rank.toLocaleString('en')));
  }
  const every = Math.ceil((names.length * 46) / (x(names.length - 1) - LEFT + 46));
  names.forEach((name, n) => {
    if ((names.length - 1 - n) % every) return;
    picture.append(node('text', { class: 'tick', x: x(n), y: HEIGHT - 8, 'text-anchor': 'middle' }, name));
  });
  const labels = apart(lines.map(({ ranks }) => y(ranks.at(-1))));
  lines.forEach((line, number) => {
    const colour = `stroke: var(${COLOURS[kindOf(line)]})`;
    const fill = `fill: var(${COLOURS[kindOf(line)]})`;
    const points = line.ranks.map((rank, n) => [x(n), y(rank)]);
    picture.append(node('polyline', {
      class: 'line', style: colour, 'stroke-dasharray': DASHES[number % DASHES.length], points: points.map((point) => point.join()).join(' '),
    }));
    for (const [px, py] of points) picture.append(node('path', { class: 'mark', style: fill, d: MARKS[number % MARKS.length](px, py) }));
    const [px, py] = points.at(-1);
    picture.append(
      node('line', { class: 'lead', x1: px + 6, y1: py, x2: px + 14, y2: labels[number] }),
      node('text', { class: 'name', x: px + 18, y: labels[number] + 5 }, line.word));
  });
  return picture;
}

const KEYS = texts({ best: 'best after the last layer', own: 'the word of your sentence', second: 'second after the last layer', rival: 'a word of your own' });

/** The chart as a file that can be understood alone. */
export function chartFile(output, { at, lines, vocabulary }) {
  const kinds = Object.keys(COLOURS).filter((kind) => lines.some((line) => kindOf(line) === kind));
  const page = getComputedStyle(document.body);
  const hidden = (token) => token.masked || sentence.marks.has(token.position);
  const shown = sentence.tokens.filter((token) => !token.special).map((token) => (token.position === at ? '[?]' : hidden(token) ? '[MASK]' : token.text)).join(' ');
  return titledSvg(output.querySelector('.lab-chart'), {
    title: t`Rank after every layer`,
    lines: [
      `${sentence.model} · ${[...shown].length > 90 ? `${[...shown].slice(0, 90).join('')}…` : shown}`,
      t`Up: the rank of a word in the gap [?] among ${format.count(vocabulary)} pieces, 1 at the top. Across: layers.`,
    ],
    keys: kinds.map((kind) => ({ text: KEYS[kind], colour: page.getPropertyValue(COLOURS[kind]).trim() })),
  });
}
