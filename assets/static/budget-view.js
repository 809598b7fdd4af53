// The Budget tab: what models cost, by part, in bytes, in operations and in time.
import { drawFactor, legend, makeBars } from './budget-chart.js';
import { makeChooser, makeOwn } from './budget-own.js';
import * as tables from './budget-tables.js';

const { element, asker, question } = window.Cloze;
const TEXT = {
  title: 'What does a model cost?',
  intro: 'Every number is counted from the module that is built for a size, not from a formula. Sharing layers and '
    + 'narrowing tables saves parameters; it does not save a single operation.',
  bars: 'Where the parameters are',
  costs: 'Parameters, bytes, operations, time',
  factor: 'Narrow tables',
  claims: 'What is printed, and what is counted',
  claimsIntro: 'Figures from papers, repositories and articles beside the count of the same thing.',
  shares: 'Each bar to full length',
  measure: 'Measure on this machine',
  measuring: 'Measuring …',
  measureNote: 'Random weights, one sequence, one size after the other. The fastest of the passes is shown; others '
    + 'who use this machine make all of them slower.',
  hint: 'Point at a part, or walk through them with the arrow keys.',
  silent: 'The server does not answer. Is it still running?',
  chosen: 'Models',
  length: 'Tokens in the sequence',
};
const PRESETS = [
  ['BERT against ALBERT', ['bert-base-uncased', 'albert-base']],
  ['Four ways to be base', ['bert-base-uncased', 'albert-base', 'electra-small-discriminator', 'deberta-v3-base']],
  ['The vocabulary grows', ['bert-base-chinese', 'bert-base-uncased', 'bert-base-multilingual-cased', 'mdeberta-v3-base']],
  ['Relative positions', ['bert-base-uncased', 'xlnet-base-cased', 'deberta-base', 'deberta-v3-base']],
];
const PATIENCE = 120_000;

function loadStyle() {
  if (document.querySelector('link[href="/cloze/budget.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/budget.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

export async function mount(view) {
  await loadStyle();
  const state = { names: PRESETS[1][1], own: null, length: 64, shares: false, answer: null, parts: {}, times: new Map(), shown: null };
  let asked = 0;
  let timing = null;

  // --- the page ---------------------------------------------------------------------------

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const chooser = makeChooser((names) => { state.names = names; ask(); });
  let pause = 0;
  const own = makeOwn((values) => { state.own = values; clearTimeout(pause); pause = setTimeout(ask, 120); });
  const length = element('input', { type: 'number', id: 'budget-length', min: 1, max: 512, step: 1, value: state.length });
  length.addEventListener('change', () => { state.length = Number(length.value); state.times.clear(); ask(); });
  const summary = element('p', { class: 'summary', role: 'status' });
  const readout = element('p', { class: 'budget-readout', 'aria-live': 'polite' });
  const bars = makeBars((words) => { readout.textContent = words; });
  const key = element('ul', { class: 'budget-legend' });
  const shares = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', id: 'budget-shares' },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text: TEXT.shares }));
  shares.addEventListener('click', () => {
    state.shares = !state.shares;
    shares.setAttribute('aria-checked', String(state.shares));
    drawBars();
  });
  const twin = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': 'Parameters by part' });
  const costBox = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.costs });
  const measure = element('button', { type: 'button', class: 'primary', id: 'budget-measure', text: TEXT.measure });
  const pick = element('select', { id: 'budget-factor', 'aria-label': 'Model of the drawing' });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'budget-factor');
  svg.setAttribute('role', 'img');
  const factorWords = element('p', { class: 'budget-words' });
  const factorBox = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.factor });
  const claimBox = element('div', { class: 'budget-scroll', id: 'budget-claims', tabindex: '0', role: 'region', 'aria-label': TEXT.claims },
    element('p', { class: 'budget-note', text: 'Counting …' }));
  const code = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: 'Copy' });
  const save = (what, text) => element('button', { type: 'button', class: 'quiet outlined', 'data-save': what, text, onclick: () => send('save', { what, shares: state.shares }) });

  view.root.replaceChildren(element('div', { class: 'budget' },
    element('h2', { text: TEXT.title }),
    element('p', { class: 'budget-intro', text: TEXT.intro }),
    element('div', { class: 'budget-presets', role: 'group', 'aria-label': 'What to try' },
      element('span', { class: 'budget-note', text: 'Try' }),
      ...PRESETS.map(([text, names]) => element('button', {
        type: 'button', class: 'quiet outlined', text,
        onclick: () => { own.off(); state.own = null; chooser.set(names); },
      }))),
    problem,
    element('section', { class: 'card budget-choose' },
      element('div', { class: 'budget-top' }, chooser.root,
        element('label', { class: 'budget-field short' }, element('span', { text: TEXT.length }), length)),
      own.root),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.bars }), shares),
      summary, bars.root, readout, key,
      element('details', {}, element('summary', { text: 'The numbers' }), twin)),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.costs }), measure),
      costBox, element('p', { class: 'budget-note', text: TEXT.measureNote })),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.factor }), pick),
      factorWords, svg, factorBox),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.claims })),
      element('p', { class: 'budget-note', text: TEXT.claimsIntro }), claimBox),
    element('div', { class: 'budget-save' },
      save('svg', 'Save the bars as SVG'), save('csv', 'Save the numbers as CSV'),
      element('details', {}, element('summary', { text: 'The code that recomputes this' }), code, copy))));

  // --- questions --------------------------------------------------------------------------

  const fail = (message) => {
    problem.hidden = !message;
    problem.textContent = message ?? '';
    if (message) view.root.dataset.state = 'error';
  };
  const about = (extra) => question({ sizes: state.names, own: state.own, length: state.length, ...extra });
  const sendAsk = asker(view, 'ask', () => { if (!state.answer) fail(TEXT.silent); });

  function ask() {
    const times = Object.fromEntries([...state.times].filter(([, time]) => time.fastest).map(([name, time]) => [name, time.fastest]));
    const data = about({ whole: !state.catalogue, times });
    asked = data.rev;
    view.root.dataset.asked = asked;
    view.root.dataset.state = 'waiting';
    sendAsk(data);
  }
  const send = (event, extra = {}) => view.send(event, about(extra));

  function measureNext() {
    const row = state.answer?.rows.find(({ name }) => state.times.get(name) === 'waiting');
    if (!row) {
      timing = null;
      measure.disabled = false;
      measure.textContent = TEXT.measure;
      view.root.dataset.measured = String(state.times.size);
      ask();
      return;
    }
    const mine = row.name !== 'own size';
    const data = about({ sizes: mine ? [row.name] : [], own: mine ? null : state.own });
    const give = (result) => {
      clearTimeout(timing?.timer);
      state.times.set(row.name, result);
      drawCosts();
      measureNext();
    };
    timing = { rev: data.rev, give, timer: setTimeout(() => give({ error: 'took too long' }), PATIENCE) };
    view.send('time', data);
  }
  measure.addEventListener('click', () => {
    if (timing || !state.answer) return;
    measure.disabled = true;
    measure.textContent = TEXT.measuring;
    for (const { name } of state.answer.rows) state.times.set(name, 'waiting');
    drawCosts();
    measureNext();
  });

  // --- drawing ----------------------------------------------------------------------------

  function drawBars() {
    const { rows } = state.answer;
    bars.draw(rows, state.parts, state.shares);
    readout.textContent = rows.length ? TEXT.hint : '';
    key.replaceChildren(...legend(rows, state.parts));
  }
  const drawCosts = () => costBox.replaceChildren(tables.costs(state.answer.rows, state.answer.length, state.times));

  function drawFactors() {
    const { rows } = state.answer;
    if (!rows.length) { factorBox.replaceChildren(); svg.replaceChildren(); factorWords.textContent = ''; pick.replaceChildren(); return; }
    const row = rows.find(({ name }) => name === state.shown)
      ?? rows.find(({ factorisation }) => factorisation.factorised) ?? rows[0];
    const f = row.factorisation;
    pick.replaceChildren(...rows.map(({ name }) => element('option', { value: name, text: name, selected: name === row.name })));
    const said = f.factorised
      ? `${row.name} has tables of width ${row.embedding} and projects to ${row.width}: ${f.ratio.toFixed(2)} times fewer parameters than a table of full width.`
      : `${row.name} has tables as wide as its layers.`;
    factorWords.textContent = `${said} Narrow tables pay off below E\u00a0=\u00a0${f.break_even.toFixed(0)}.`;
    svg.setAttribute('aria-label', factorWords.textContent);
    const wide = Math.min(680, Math.max(280, factorBox.clientWidth));
    drawFactor(svg, row, wide);
    factorBox.replaceChildren(tables.factors(rows));
  }
  pick.addEventListener('change', () => { state.shown = pick.value; drawFactors(); });
  let width = 0;
  new ResizeObserver(() => {
    if (state.answer && factorBox.clientWidth && factorBox.clientWidth !== width) { width = factorBox.clientWidth; drawFactors(); }
  }).observe(factorBox);

  function draw(answer) {
    state.answer = answer;
    if (answer.catalogue) {
      state.catalogue = answer.catalogue;
      state.parts = answer.parts;
      chooser.fill(answer.catalogue, answer.most);
      own.fill(answer.catalogue, answer.limits);
      send('claims');
    }
    summary.textContent = answer.rows.length ? answer.summary : 'Choose a model above.';
    code.textContent = answer.code;
    twin.replaceChildren(tables.parts(answer.rows, state.parts));
    // The own size changes under its name.
    const former = state.former ?? '';
    state.former = JSON.stringify(state.own);
    if (former !== state.former) state.times.delete('own size');
    drawBars();
    drawCosts();
    drawFactors();
    measure.disabled = Boolean(timing) || !answer.rows.length;
  }

  view.onValue(async () => {
    const answer = view.value;
    if (!answer) return;
    if (timing?.rev === answer.rev) { timing.give(answer); return; }
    if (answer.kind === 'claims') {
      claimBox.replaceChildren(tables.claims(answer.claims));
      view.root.dataset.claims = 'ready';
    } else if (answer.kind === 'file') {
      const { download } = await import('./attention-export.js');
      download(answer.name, answer.text, answer.type);
    } else if (answer.rev === asked) {
      fail(answer.error);
      if (!answer.error) {
        draw(answer);
        view.root.dataset.state = 'ready';
      }
      view.root.dataset.rev = answer.rev;
    } else if (answer.error && answer.kind === undefined) fail(answer.error);
  });
  copy.addEventListener('click', async () => {
    const { copyText } = await import('./attention-export.js');
    copy.textContent = await copyText(code.textContent, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
  });

  chooser.set(state.names, true);
  ask();
}
