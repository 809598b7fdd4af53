// Budget: the tables.
import { bytes, nameOf, short } from './chart.js';

const { element, format, t, texts, message } = window.Cloze;

const COLUMNS = [t`Parameters`, 'float32', 'bfloat16', t`Operations per token`, t`Time of one pass`];
const FACTORS = ['V', 'H', 'E', 'V × H', 'V × E + E × H', t`Times smaller`, t`Break-even E`];
const TEXT = texts({
  model: 'Model', measuring: 'measuring …', part: 'Part', byPart: 'Parameters by part, counted from the built module',
  encoder: 'Encoder without pooler', base: 'Encoder with pooler', pretraining: 'With pretraining heads',
  factors: 'The piece table, wide or narrow with a projection (its bias left out)',
  claims: 'Figures in millions of parameters unless another unit is said', equal: 'equal',
  printed: 'Printed', counted: 'Counted', said: 'What is said', isPrinted: 'Printed is', why: 'Why',
});
const head = (...names) => element('thead', {}, element('tr', {}, ...names.map((text) => element('th', { scope: 'col', text }))));

function meter(value, most, text, label) {
  const fill = element('span', { class: 'budget-fill' });
  fill.style.width = `${(100 * value) / most}%`;
  return element('td', { class: 'budget-meter', 'data-label': label },
    element('span', { class: 'budget-number', text }),
    element('span', { class: 'budget-track', 'aria-hidden': 'true' }, fill));
}

/** Parameters, bytes, operations and time side by side. times: name -> {fastest, milliseconds, runs} | {error} | 'waiting' */
export function costs(rows, length, times) {
  const most = (of) => Math.max(1e-9, ...rows.map(of));
  const known = (row) => times.get(row.name)?.fastest ?? 0;
  const [size, work, spent] = [most((row) => row.pretraining), most((row) => row.per_token), most(known)];
  return element('table', { class: 'budget-cards budget-costs' },
    element('caption', { text: t`With pretraining heads; operations and time for a sequence of ${length} tokens` }),
    head(TEXT.model, ...COLUMNS),
    element('tbody', {}, ...rows.map((row) => {
      const time = times.get(row.name);
      let cell = element('td', { class: 'budget-none', 'data-label': COLUMNS[4], text: time === 'waiting' ? TEXT.measuring : '–' });
      if (time?.error) cell = element('td', { class: 'budget-none', 'data-label': COLUMNS[4], text: time.error });
      else if (time?.fastest) {
        cell = meter(time.fastest, spent, `${Number(time.fastest.toPrecision(3)).toLocaleString('en')} ms`, COLUMNS[4]);
        cell.title = t`Fastest of ${time.runs} passes; median ${time.milliseconds.toFixed(1)} ms, slowest ${time.slowest.toFixed(1)} ms, ${time.threads} threads`;
      }
      return element('tr', { 'data-name': row.name },
        element('th', { scope: 'row', text: nameOf(row) }),
        meter(row.pretraining, size, short(row.pretraining), COLUMNS[0]),
        element('td', { 'data-label': COLUMNS[1], text: bytes(row.bytes_float32) }),
        element('td', { 'data-label': COLUMNS[2], text: bytes(row.bytes_bfloat16) }),
        meter(row.per_token, work, short(row.per_token), COLUMNS[3]),
        cell);
    })));
}

/** Every part of every size: the twin of the bars. */
export function parts(rows, names) {
  const used = Object.keys(names).filter((part) => rows.some((row) => row.parts[part]));
  return element('table', {},
    element('caption', { text: TEXT.byPart }),
    head(TEXT.part, ...rows.map(nameOf)),
    element('tbody', {},
      ...used.map((part) => element('tr', {},
        element('th', { scope: 'row', text: names[part] }),
        ...rows.map((row) => element('td', { text: format.count(row.parts[part]) })))),
      ...['encoder', 'base', 'pretraining'].map((sum) => element('tr', { class: 'budget-sum' },
          element('th', { scope: 'row', text: TEXT[sum] }),
          ...rows.map((row) => element('td', { text: format.count(row[sum]) }))))));
}

/** Narrow tables against wide ones. */
export function factors(rows) {
  return element('table', { class: 'budget-cards budget-factors' },
    element('caption', { text: TEXT.factors }),
    head(TEXT.model, ...FACTORS),
    element('tbody', {}, ...rows.map((row) => {
      const f = row.factorisation;
      const narrow = f.factorised ? [format.count(f.narrow), f.ratio.toFixed(3)] : ['–', '–'];
      const cells = [row.vocabulary, row.width, row.embedding, f.full].map(format.count);
      return element('tr', {},
        element('th', { scope: 'row', text: nameOf(row) }),
        ...[...cells, ...narrow, f.break_even.toFixed(1)]
          .map((text, n) => element('td', { 'data-label': FACTORS[n], text })));
    })));
}

const printed = (value, unit) => `${format.count(value)}${unit === '%' ? '\u00a0%' : ''}`;
const exact = (value, unit) => (unit === 'pieces' ? format.count(value)
  : `${value.toFixed(unit === 'times' ? 2 : 1)}${unit === '%' ? '\u00a0%' : ''}`);

/** Published figures beside exact ones. */
export function claims(list) {
  return element('table', { class: 'budget-cards budget-claims' },
    element('caption', { text: TEXT.claims }),
    head(TEXT.said, TEXT.printed, TEXT.counted, TEXT.isPrinted, TEXT.why),
    element('tbody', {}, ...list.map((claim) => {
      const off = Math.abs(claim.difference);
      const by = off.toFixed(off < 10 ? 1 : 0);
      const words = off < 0.05 ? TEXT.equal : claim.difference > 0 ? t`${by} % higher` : t`${by} % lower`;
      const unit = claim.unit === 'million parameters' ? '' : claim.unit === '%' ? '' : ` ${message(claim.unit)}`;
      return element('tr', { 'data-off': off < 2 ? 'little' : off < 10 ? 'some' : 'much' },
        element('th', { scope: 'row' },
          element('span', { text: message(claim.claim) }), element('small', { text: message(claim.source) })),
        element('td', { 'data-label': TEXT.printed, text: printed(claim.printed, claim.unit) + unit }),
        element('td', { 'data-label': TEXT.counted },
          element('b', { text: exact(claim.exact, claim.unit) + unit }), element('small', { text: message(claim.counts) })),
        element('td', { 'data-label': TEXT.isPrinted }, element('span', { class: 'budget-off', text: words })),
        element('td', { text: message(claim.reason) }));
    })));
}
