// Training: what a fine-tuned model reached: beside baselines, its confusions, its mistakes, how sure it is.
import { get } from './api.js';
import { scroll } from './areas.js';
import { makeFigure } from '../../parts/figure.js';
import { figure, figureName } from './words.js';

const { element, format, message, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'What it reached', confusion: 'What it takes for what', confusionNote: 'Rows: what is right. Columns: what the model says.',
  labels: 'Label by label', calibration: 'Does it know how sure it may be?', worst: 'Its worst mistakes', best: 'What it is surest of',
  noWorst: 'Every row to measure on was answered rightly.', said: 'the model says:', right: 'right:', model: 'this model', nothing: 'no answer',
  all: 'All figures', undefined: 'undefined', columns: ['Label', 'Precision', 'Recall', 'F1', 'Rows'], method: 'Method',
  outside: 'no name', tags: 'Below a word stands the tag that the model gives it, and under that the right one where it is mistaken.', tagsBest: 'Below a word stands its tag.',
});

const allRows = (task, own) => [{ name: 'model', title: TEXT.model, metrics: own },
  ...(task.baselines ?? []).map((each) => ({ ...each, title: message(each.title) }))];

export const metricRows = (task, own, wanted) => allRows(task, own).filter((each) => each.metrics[wanted] !== undefined);

/** Bars of one metric: the model, then what can be had without one. */
export function makeBars(task, own, wanted) {
  return element('ul', { class: 'train-bars', 'data-metric': wanted }, ...metricRows(task, own, wanted).map((each) => {
    const fill = element('span', { class: 'train-fill' });
    const value = each.metrics[wanted];
    fill.style.transform = `scaleX(${Math.max(0, Math.min(1, value ?? 0))})`;
    return element('li', { 'data-name': each.name }, element('span', { text: each.title }),
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, fill), element('b', { text: value === null ? TEXT.undefined : figure(wanted, value) }));
  }));
}

function metricTable(task, own) {
  const rows = allRows(task, own);
  const names = Object.keys(own);
  return scroll(TEXT.all, element('table', {},
    element('thead', {}, element('tr', {}, ...[TEXT.method, ...names.map(figureName)].map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...rows.map((row) => element('tr', {}, element('th', { scope: 'row', text: row.title }),
      ...names.map((key) => element('td', { text: row.metrics[key] === undefined ? '' : figure(key, row.metrics[key]) })))))));
}

function confusion(result, labels) {
  const root = element('figure', { class: 'train-confusion' }, element('figcaption', {}, element('span', { text: TEXT.confusionNote })));
  root.append(scroll(TEXT.confusion, element('table', {},
    element('thead', {}, element('tr', {}, element('td'), ...labels.map((text) => element('th', { scope: 'col' }, element('bdi', { text }))))),
    element('tbody', {}, ...result.confusion.map((row, n) => {
      const sum = row.reduce((a, b) => a + b, 0) || 1;
      return element('tr', {}, element('th', { scope: 'row' }, element('bdi', { text: labels[n] })), ...row.map((count, m) => {
        const cell = element('td', { class: n === m ? 'right' : 'wrong', text: format.count(count), title: t`${Math.round((100 * count) / sum)} % of ${labels[n]}` });
        cell.style.setProperty('--share', `${Math.round((70 * count) / sum)}%`);
        return cell;
      }));
    })))));
  return root;
}

function labelTable(labels) {
  const part = (value) => `${(value * 100).toFixed(1)}\u00a0%`;
  return scroll(TEXT.labels, element('table', {},
    element('thead', {}, element('tr', {}, ...TEXT.columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...Object.entries(labels).map(([name, each]) => element('tr', {}, element('th', { scope: 'row' }, element('bdi', { text: name })),
      ...[part(each.precision), part(each.recall), part(each.f1), format.count(each.support)].map((text) => element('td', { text })))))));
}

/** What the model says, and where it is mistaken what is right. */
const verdict = (row, wrong) => element('p', { class: 'train-note' }, element('span', { text: `${TEXT.said} ` }), element('b', { class: wrong ? 'wrong' : 'right', text: plain(row.said) }),
  wrong ? element('span', { text: ` · ${TEXT.right} ` }) : null, wrong ? element('b', { text: plain(row.expected) }) : null);

/** Rows about the same text stand together, so that it is read once. */
function together(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.pair ? row.text : row, [...(groups.get(row.pair ? row.text : row) ?? []), row]);
  return [...groups.values()];
}

const CJK = /^[\u2e80-\u9fff\uff00-\uffef]/;
/** Words over their tags; null where these do not belong to words one by one. */
function tagged(row, wrong) {
  const words = row.text.split(' ');
  const tags = (value) => (Array.isArray(value) ? value : String(value ?? '').split(' '));
  const [said, right] = [tags(row.said), tags(wrong ? row.expected : row.said)];
  if (said.length !== words.length || right.length !== words.length) return null;
  const root = element('p', { class: 'train-tagged' });
  words.forEach((word, n) => {
    if (n && !(CJK.test(word) && CJK.test(words[n - 1]))) root.append(' ');
    if (said[n] === 'O' && right[n] === 'O') { root.append(element('bdi', { text: word })); return; }
    const same = said[n] === right[n];
    const shown = (tag) => (tag === 'O' ? TEXT.outside : tag);
    root.append(element('span', { class: 'train-tag', 'data-wrong': same ? null : 'yes', title: t`the model says ${shown(said[n])}, right is ${shown(right[n])}` },
      element('bdi', { text: word }), element('small', { class: same ? 'right' : 'wrong', text: shown(said[n]) }),
      same ? null : element('small', { text: shown(right[n]) })));
  });
  return root;
}

function examples(rows, wrong, kind) {
  const words = kind === 'tag' ? new Map(rows.map((row) => [row, tagged(row, wrong)])) : new Map();
  const list = element('ul', { class: 'train-examples' }, ...together(rows).map((group) => {
    if (words.get(group[0])) return element('li', {}, words.get(group[0]));
    const text = element('p', {}, element('bdi', { text: group[0].text }));
    if (group.length === 1) {
      if (group[0].pair) text.append(element('span', { class: 'train-pair' }, element('bdi', { text: group[0].pair })));
      return element('li', {}, text, verdict(group[0], wrong));
    }
    return element('li', {}, text, element('ul', { class: 'train-asked-of' }, ...group.map((row) => element('li', {},
      element('p', {}, element('bdi', { text: row.pair })), verdict(row, wrong)))));
  }));
  const legend = [...words.values()].some(Boolean) ? element('p', { class: 'train-note', text: wrong ? TEXT.tags : TEXT.tagsBest }) : null;
  return legend ? element('div', { class: 'train-tags' }, legend, list) : list;
}
const plain = (said) => (Array.isArray(said) ? said.join(' ') : typeof said === 'number' ? said.toFixed(2) : said || TEXT.nothing);

export function makeResult() {
  const root = element('section', { class: 'card train-result', hidden: true });
  let shown = null;

  function draw(result, task) {
    const main = result.main;
    const value = result.metrics[main];
    const chart = makeFigure({ name: 'cloze-calibration' });
    const parts = [element('h3', { text: TEXT.title }), element('p', { class: 'train-sum', text: t`${figureName(main)} ${figure(main, value)} on ${format.count(task.dev.rows)} rows it has not learned from, after epoch ${result.best_epoch}, its best.` }),
      makeBars(task, result.metrics, main), element('details', {}, element('summary', { text: TEXT.all }), metricTable(task, result.metrics))];
    if (result.confusion.length && task.labels.length <= 30) parts.push(element('h4', { text: TEXT.confusion }), confusion(result, task.labels));
    if (Object.keys(result.labels).length) parts.push(element('details', {}, element('summary', { text: TEXT.labels }), labelTable(result.labels)));
    const bins = result.calibration?.bins ?? [];
    if (bins.length) parts.push(element('h4', { text: TEXT.calibration }), element('p', { class: 'train-note', text: t`Each dot: predictions of about one probability, and how many of them are right. On the dashed line both agree; the mean distance is ${(result.calibration.error * 100).toFixed(1)} %.` }), chart.root);
    parts.push(element('h4', { text: TEXT.worst }), result.worst.length ? examples(result.worst.slice(0, 8), true, task.kind) : element('p', { class: 'train-note', text: TEXT.noWorst }));
    if (result.best.length) parts.push(element('details', {}, element('summary', { text: TEXT.best }), examples(result.best.slice(0, 8), false, task.kind)));
    root.replaceChildren(...parts);
    root.hidden = false;
    if (result.figure) chart.show(result.figure);
  }

  return {
    root,
    async fill(id, live) {
      const key = live.evaluated ? `${id}|${live.summary.updated}` : null;
      if (key === shown) return;
      shown = key;
      root.hidden = true;
      if (!key) return;
      try {
        const result = await get(`runs/${id}/result`);
        if (shown === key) draw(result, live.task ?? result.task);
      } catch { if (shown === key) shown = null; }
    },
  };
}
