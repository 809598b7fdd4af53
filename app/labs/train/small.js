// Training: the small charts below the large one: every accuracy that the run reports, then how it trains.
import { drawChart } from './chart.js';
import { axisText, figure, figureName } from './words.js';

const { element, t } = window.Cloze;
const ALWAYS = ['learning_rate', 'gradient_norm', 'tokens_per_second'];
const FIRST = ['masked_token_accuracy', 'permutation_accuracy', 'causal_accuracy', 'replaced_token_accuracy'];

/** Accuracies in the reports, the one that it is trained for first. */
function accuracies(records) {
  const keys = [...new Set(records.flatMap((each) => Object.keys(each)))].filter((key) => /_accuracy$/.test(key) && !key.startsWith('validation_'));
  return keys.sort((a, b) => (FIRST.indexOf(a) + 1 || 9) - (FIRST.indexOf(b) + 1 || 9));
}

export function makeSmall() {
  const root = element('div', { class: 'train-small' });
  const made = new Map();
  function chartOf(key) {
    if (!made.has(key)) {
      const [host, value] = [element('div', { class: 'train-chart' }), element('b')];
      made.set(key, { host, value, root: element('figure', { 'data-figure': key },
        element('figcaption', {}, element('span', { text: figureName(key) }), value), host) });
    }
    return made.get(key);
  }
  return {
    root,
    /** runs: the feeds of the runs, the one that is shown first. */
    draw(runs, by, showX) {
      const shown = [...accuracies(runs[0].records), ...ALWAYS].map((key) => [key, runs.map((feed, tone) => ({ tone, points: feed.points(key, by) }))])
        .filter(([, lines]) => lines[0].points.length);
      const charts = shown.map(([key]) => chartOf(key).root);
      if (charts.length !== root.children.length || charts.some((each, n) => each !== root.children[n])) root.replaceChildren(...charts);
      for (const [key, lines] of shown) {
        const { host, value } = chartOf(key);
        value.textContent = figure(key, lines[0].points.at(-1)[1]);
        drawChart(host, {
          series: lines.filter((line) => line.points.length), showX, showY: (number) => axisText(key, number),
          height: 130, small: true, zero: key !== 'gradient_norm', label: t`${figureName(key)} over the run`,
        });
      }
    },
  };
}
