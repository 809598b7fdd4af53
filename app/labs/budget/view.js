// The Budget tab: what models cost, by part, in bytes, in operations and in time.
import { drawFactor, legend, makeBars } from './chart.js';
import { makeChooser, makeOwn } from './own.js';
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import * as tables from './tables.js';

const { element, asker, question, t, texts, message } = window.Cloze;
const TEXT = texts({
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
  byPart: 'Parameters by part', drawn: 'Model of the drawing', counting: 'Counting …', tries: 'What to try', attempt: 'Try',
  numbers: 'The numbers', choose: 'Choose a model above.', slow: 'took too long',
});
const PRESETS = [
  [t`BERT against ALBERT`, ['bert-base-uncased', 'albert-base']],
  [t`Four ways to be base`, ['bert-base-uncased', 'albert-base', 'electra-small-discriminator', 'deberta-v3-base']],
  [t`The vocabulary grows`, ['bert-base-chinese', 'bert-base-uncased', 'bert-base-multilingual-cased', 'mdeberta-v3-base']],
  [t`Relative positions`, ['bert-base-uncased', 'xlnet-base-cased', 'deberta-base', 'deberta-v3-base']],
];
const PATIENCE = 120_000;
const PLAIN = { names: PRESETS[1][1], own: null, length: 64, shares: false };
const NAME = /^[\w.-]{1,60}$/;

// The choice that the address holds; whatever does not fit is left out. Python checks the values of the own size.
function kept() {
  const found = window.Cloze.kept('budget') ?? {};
  const names = Array.isArray(found.sizes) ? found.sizes.filter((name) => typeof name === 'string' && NAME.test(name)).slice(0, 8) : null;
  const own = found.own?.constructor === Object && typeof found.own.base === 'string' ? found.own : null;
  return { names: names ?? PLAIN.names, own, length: wholeOr(found.length, 1, 512, PLAIN.length), shares: found.shares === true };
}

export async function mount(view) {
  const state = { ...PLAIN, ...kept(), answer: null, parts: {}, times: new Map(), shown: null };
  let asked = 0;
  let timing = null;

  // --- the page ---------------------------------------------------------------------------

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const chooser = makeChooser((names) => { state.names = names; keep(); ask(); });
  let pause = 0;
  const own = makeOwn((values) => { state.own = values; clearTimeout(pause); pause = setTimeout(() => { keep(); ask(); }, 120); });
  const length = element('input', { type: 'number', id: 'budget-length', min: 1, max: 512, step: 1, value: state.length });
  length.addEventListener('change', () => { state.length = Number(length.value); state.times.clear(); keep(); ask(); });
  const summary = element('p', { class: 'summary', role: 'status' });
  const readout = element('p', { class: 'budget-readout', 'aria-live': 'polite' });
  const bars = makeBars((words) => { readout.textContent = words; });
  const key = element('ul', { class: 'budget-legend' });
  const shares = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': String(state.shares), id: 'budget-shares' },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text: TEXT.shares }));
  shares.addEventListener('click', () => {
    state.shares = !state.shares;
    shares.setAttribute('aria-checked', String(state.shares));
    keep();
    if (state.answer) drawBars();
  });
  const twin = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.byPart });
  const costBox = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.costs });
  const measure = element('button', { type: 'button', class: 'primary', id: 'budget-measure', text: TEXT.measure });
  const pick = element('select', { id: 'budget-factor', 'aria-label': TEXT.drawn });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'budget-factor');
  svg.setAttribute('role', 'img');
  const factorWords = element('p', { class: 'budget-words' });
  const factorBox = element('div', { class: 'budget-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.factor });
  const claimBox = element('div', { class: 'budget-scroll', id: 'budget-claims', tabindex: '0', role: 'region', 'aria-label': TEXT.claims },
    element('p', { class: 'budget-note', text: TEXT.counting }));
  const code = makeCode();
  const saver = makeSaver((what) => send('save', { what, shares: state.shares }), (text) => fail(text));

  view.root.replaceChildren(element('div', { class: 'budget' },
    element('h2', { text: TEXT.title }),
    element('p', { class: 'budget-intro', text: TEXT.intro }),
    element('div', { class: 'budget-presets', role: 'group', 'aria-label': TEXT.tries },
      element('span', { class: 'budget-note', text: TEXT.attempt }),
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
      element('details', {}, element('summary', { text: TEXT.numbers }), twin)),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.costs }), measure),
      costBox, element('p', { class: 'budget-note', text: TEXT.measureNote })),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.factor }), pick),
      factorWords, svg, factorBox),
    element('section', { class: 'card' },
      element('header', {}, element('h3', { text: TEXT.claims })),
      element('p', { class: 'budget-note', text: TEXT.claimsIntro }), claimBox),
    element('div', { class: 'budget-save' }, ...saver.buttons, code.root)));

  // --- questions --------------------------------------------------------------------------

  const fail = (words) => {
    problem.hidden = !words;
    problem.textContent = words ?? '';
    if (words) view.root.dataset.state = 'error';
  };
  const keep = () => window.Cloze.keep('budget', {
    ...(JSON.stringify(state.names) === JSON.stringify(PLAIN.names) ? {} : { sizes: state.names }),
    ...(state.own ? { own: state.own } : {}),
    ...(state.length === PLAIN.length ? {} : { length: state.length }),
    ...(state.shares ? { shares: true } : {}),
  });
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
  function send(event, extra = {}) {
    const data = about(extra);
    view.send(event, data);
    return data.rev;
  }

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
    const settings = () => JSON.stringify([state.length, mine ? null : state.own]);
    const before = settings();
    const data = about({ sizes: mine ? [row.name] : [], own: mine ? null : state.own });
    const give = (result) => {
      clearTimeout(timing?.timer);
      if (settings() === before) state.times.set(row.name, result); // else of another length or size
      drawCosts();
      measureNext();
    };
    timing = { rev: data.rev, give, timer: setTimeout(() => give({ error: TEXT.slow }), PATIENCE) };
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
    const [even, name] = [f.break_even.toFixed(0), row.name === 'own size' ? message(row.name) : row.name];
    factorWords.textContent = f.factorised
      ? t`${name} has tables of width ${row.embedding} and projects to ${row.width}: ${f.ratio.toFixed(2)} times fewer parameters than a table of full width. Narrow tables pay off below E = ${even}.`
      : t`${name} has tables as wide as its layers. Narrow tables pay off below E = ${even}.`;
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
      for (const name of Object.keys(answer.parts)) answer.parts[name] = message(answer.parts[name]);
      state.catalogue = answer.catalogue;
      state.parts = answer.parts;
      chooser.fill(answer.catalogue, answer.most);
      own.fill(answer.catalogue, answer.limits, state.own);
      send('claims');
    }
    summary.textContent = answer.rows.length ? message(answer.summary).replaceAll('own size', message('own size')) : TEXT.choose;
    code.show(answer.code);
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

  view.onValue(() => {
    const answer = view.value;
    if (!answer || saver.take(answer)) return;
    if (timing?.rev === answer.rev) { timing.give(answer.error ? { error: message(answer.error) } : answer); return; }
    if (answer.kind === 'claims') {
      claimBox.replaceChildren(tables.claims(answer.claims));
      view.root.dataset.claims = 'ready';
    } else if (answer.rev === asked) {
      fail(message(answer.error));
      if (!answer.error) {
        draw(answer);
        view.root.dataset.state = 'ready';
      }
      view.root.dataset.rev = answer.rev;
    } else if (answer.error && answer.kind === undefined) fail(message(answer.error));
  });

  chooser.set(state.names, true);
  ask();
}
