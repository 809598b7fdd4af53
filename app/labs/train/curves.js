// Training: the curves of a run or a race. Python draws them from the reports; this asks again when there are new ones.
import { makeFigure } from '../../parts/figure.js';
import { saveRows } from '../../parts/plain.js';
import { fold } from '../../parts/layout.js';
import { get } from './api.js';

const { element, phrase, t, texts } = window.Cloze;
const TEXT = texts({ shown: 'Show', by: 'by', small: 'How it trains', csv: 'All reports as CSV' });

function choice(label, id, change) {
  const select = element('select', { id, onchange: change });
  return { select, root: element('label', { class: 'train-pick' }, element('span', { text: label }), select) };
}

function options(select, entries, value) {
  const key = JSON.stringify(entries);
  if (select.dataset.key !== key) {
    select.replaceChildren(...entries.map(([each, text]) => element('option', { value: each, text })));
    select.dataset.key = key;
  }
  if (value !== null) select.value = value;
}

/** prefix: of ids; axes: { name: text }, the first one at first; rows(): what the CSV holds. */
export function makeCurves(prefix, axes, rows) {
  let asked = '';
  let current = null;
  let wish = null; // the figure that the visitor chose
  let last = []; // what fill was given
  const again = () => { asked = ''; fill(...last); };
  const shown = choice(TEXT.shown, `${prefix}-figure`, () => { wish = shown.select.value; again(); });
  const axis = choice(TEXT.by, `${prefix}-axis`, again);
  options(axis.select, Object.entries(axes), Object.keys(axes)[0]);
  const big = makeFigure({ name: 'cloze-run' });
  const small = makeFigure({ name: 'cloze-run-figures' });
  const said = element('p', { class: 'train-readout', role: 'status' });
  const smallFold = fold(TEXT.small, small.root);
  const csv = element('button', { type: 'button', class: 'quiet outlined', id: `${prefix}-csv`, text: TEXT.csv, onclick: () => saveRows(current, rows()) });
  const root = element('div', { class: 'train-curves', hidden: true },
    element('section', { class: 'card' }, element('header', {}, shown.root, axis.root, csv),
      element('div', { 'data-picture': '' }, big.root), said), smallFold);

  /** others: runs to compare with; version: changes with every report, '' before the first one. */
  async function fill(id, others, version) {
    last = [id, others, version];
    if (id !== current) {
      [current, wish, root.hidden] = [id, null, true];
      for (const figure of [big, small]) figure.show(null); // what they show is of another run
    }
    root.hidden = !version;
    const by = axis.select.value;
    const key = JSON.stringify([id, others, version, wish, by]);
    if (!version || key === asked) return;
    asked = key;
    let found;
    try {
      found = await get(`runs/${id}/chart?${new URLSearchParams({ by, with: others.join(), ...(wish ? { what: wish } : {}) })}`);
    } catch { if (asked === key) asked = ''; return; } // that the server is silent is told elsewhere; the next report asks again
    if (asked !== key) return;
    options(shown.select, found.keys.map(([name, told]) => [name, Array.isArray(told) ? phrase(told) : told]), found.what);
    said.textContent = found.said ? phrase(found.said) : '';
    big.show(found.figure);
    small.show(found.small);
    smallFold.hidden = !found.small;
    root.dataset.drawn = version;
  }
  return { root, fill };
}
