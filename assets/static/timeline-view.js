// The Timeline tab: one text masked epoch by epoch, lengths of spans, and the input formats.
import { REGIMES, comparison, formatCard, grid, growth, histogram } from './timeline-parts.js';

const { element, format, sentence, onSentence, question, asker } = window.Cloze;
const times = (least, most) => (least === most ? `${least} times` : `${least} to ${most} times`);
const TEXT = {
  title: 'What is hidden, epoch by epoch?',
  intro: 'BERT drew its masks once, when the data were written: ten copies of each text, the same ones in every epoch. '
    + 'RoBERTa draws afresh at each visit, so a piece is asked in ever new contexts.',
  copies: (copies, epochs) => `A copy comes round again every ${copies} epochs. `
    + (epochs > copies ? `In ${epochs} epochs each mask is seen ${times(Math.floor(epochs / copies), Math.ceil(epochs / copies))}.` : 'So far no mask has come twice.'),
  static: 'One copy: every epoch asks the same pieces, and the others are never asked.',
  dynamic: 'A new draw at each visit. On a short text two draws may be alike by chance.',
  counts: 'asked: in how many epochs the piece is to be predicted. contexts: in how many different inputs it is.',
  lengths: 'Published are the shares of the paper, drawn are lengths from the same sampler. Found are runs of hidden words in masked text of the Primer: '
    + 'spans that touch merge, a budget cuts or skips, and a text ends, so they need not agree.',
  formats: 'Six documents of the Primer, cut as RoBERTa’s authors compared it. A number and a colour stand for a document, the width for pieces; '
    + 'what is left of a bar is special pieces and padding. Behind each bar: pieces, special ones included, and the label of a pair.',
  silent: 'The server does not answer. Is it still running?',
};
const KINDS = [
  ['uniform', 'Pieces', 'BERT, RoBERTa'], ['whole_word', 'Whole words', 'BERT'], ['ngram', 'n-grams', 'ALBERT'],
  ['windowed_ngram', 'n-grams in windows', 'DeBERTa'], ['span', 'Spans', 'SpanBERT'], ['with_replacement', 'With replacement', 'ELECTRA'],
];
const TRY = [
  ['BERT: ten copies, 40 epochs', { kind: 'uniform', copies: 10, epochs: 40, regime: 'copies' }],
  ['RoBERTa: afresh', { kind: 'uniform', epochs: 40, regime: 'dynamic' }],
  ['One mask for ever', { kind: 'uniform', epochs: 20, regime: 'static' }],
  ['SpanBERT’s spans', { kind: 'span', epochs: 20, regime: 'dynamic' }],
];
const LEGEND = [['M', '[MASK]'], ['R', 'another piece'], ['K', 'kept']];

function loadStyle() {
  if (document.querySelector('link[href="/cloze/timeline.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/timeline.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

function slider(id, text, { min, max, step = 1 }, changed) {
  const input = element('input', { type: 'range', id, min, max, step });
  const output = element('output', { for: id, class: 'tl-out' });
  input.addEventListener('input', () => changed(Number(input.value)));
  const label = element('label', { class: 'tl-slider' }, element('span', { text }), input, output);
  return { label, show: (value) => { input.value = value; output.textContent = value; } };
}

export async function mount(view) {
  await loadStyle();
  const state = { kind: 'uniform', regime: view.root.clientWidth > 700 ? 'all' : 'copies', epochs: 20, copies: 10, seed: 1, length: 96 };
  let asked = { rev: 0, key: '' };
  let cutAsked = { rev: 0, key: '' };
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const kinds = new Map(KINDS.map(([name, text, family]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-kind': name, onclick: () => set({ kind: name }),
  }, element('span', { text }), element('small', { text: family }))]));
  const regimes = new Map([['all', 'Side by side'], ...Object.entries(REGIMES)].map(([name, text]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-regime': name, text, onclick: () => { state.regime = name; controls(); draw(); },
  })]));
  const epochs = slider('tl-epochs', 'Epochs', { min: 1, max: 40 }, (value) => set({ epochs: value }));
  const copies = slider('tl-copies', 'Copies', { min: 1, max: 20 }, (value) => set({ copies: value, regime: state.regime === 'all' ? 'all' : 'copies' }));
  const seed = element('input', { type: 'number', min: 0, max: 2147483646, id: 'tl-seed', class: 'tl-number' });
  const next = element('button', { type: 'button', class: 'primary', id: 'tl-next', text: 'Next seed' });
  const note = element('p', { class: 'tl-note' });
  const gridBox = element('div', { class: 'tl-grids' });
  const legend = element('ul', { class: 'tl-legend' });
  const compareBox = element('div', { class: 'tl-scroll', tabindex: '0', role: 'region', 'aria-label': 'Regimes compared' });
  const growthBox = element('div', { class: 'tl-chart' });
  const said = element('p', { class: 'summary' });
  const lengthBox = element('div', { class: 'tl-scroll', tabindex: '0', role: 'region', 'aria-label': 'Lengths' });
  const lengthCard = element('section', { class: 'card', hidden: true }, element('h3', { text: 'How long are the spans?' }), element('p', { class: 'tl-note', text: TEXT.lengths }), lengthBox);
  const length = slider('tl-length', 'Longest example', { min: 32, max: 256, step: 16 }, (value) => { state.length = value; controls(); askFormats(); });
  const formatBox = element('div', { class: 'tl-formats' });
  const code = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: 'Copy' });
  const save = (what, text) => element('button', { type: 'button', class: 'quiet outlined', 'data-save': what, text, onclick: () => view.send('save', ours({ what, regime: state.regime === 'all' ? 'dynamic' : state.regime })) });
  const results = element('div', { class: 'tl-body' },
    element('section', { class: 'card' },
      element('div', { class: 'tl-row', role: 'group', 'aria-label': 'Regime' }, ...regimes.values()), legend, gridBox, element('p', { class: 'tl-note', text: TEXT.counts })),
    element('section', { class: 'card' }, element('h3', { text: 'How many contexts does a piece get?' }), compareBox, growthBox, said),
    lengthCard);
  view.root.replaceChildren(element('div', { class: 'tl' },
    element('h2', { text: TEXT.title }), element('p', { class: 'tl-intro', text: TEXT.intro }),
    element('div', { class: 'tl-row', role: 'group', 'aria-label': 'What to try' }, element('span', { class: 'tl-note', text: 'Try' }),
      ...TRY.map(([text, patch]) => element('button', { type: 'button', class: 'quiet outlined', text, onclick: () => set(patch) }))),
    element('section', { class: 'card' },
      element('h3', { text: 'The masking' }),
      element('div', { class: 'tl-row tl-kinds', role: 'group', 'aria-label': 'Masking' }, ...kinds.values()),
      note,
      element('div', { class: 'tl-row tl-sliders' }, epochs.label, copies.label, element('label', { class: 'tl-slider' }, 'Seed', seed), next)),
    problem, results,
    element('section', { class: 'card' }, element('h3', { text: 'Four ways to cut documents' }), element('p', { class: 'tl-note', text: TEXT.formats }),
      element('div', { class: 'tl-row' }, length.label), formatBox),
    element('div', { class: 'tl-save' }, save('svg', 'Save the epochs as SVG'), save('csv', 'Save every mask as CSV'),
      element('details', {}, element('summary', { text: 'The code that recomputes this' }), code, copy))));

  function fail(message) {
    problem.hidden = !message;
    problem.textContent = message ?? '';
    results.hidden = Boolean(message);
    if (message) view.root.dataset.state = 'error';
  }
  const silent = () => fail(TEXT.silent);
  const send = asker(view, 'ask', silent);
  const sendFormats = asker(view, 'formats', silent);
  const ours = (extra = {}) => question({ kind: state.kind, epochs: state.epochs, copies: state.copies, seed: state.seed, ...extra });

  function ask() {
    const { kind, epochs: e, copies: c, seed: s } = state;
    const key = JSON.stringify([sentence.text, sentence.model, sentence.error, kind, e, c, s]);
    if (!sentence.text || key === asked.key) return;
    if (sentence.error) { fail(sentence.error); asked = { rev: 0, key }; return; }
    const data = ours();
    asked = { rev: data.rev, key };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  function askFormats() {
    const key = JSON.stringify([sentence.model, state.length, state.seed]);
    if (!sentence.model || key === cutAsked.key) return;
    const data = question({ length: state.length, seed: state.seed });
    cutAsked = { rev: data.rev, key };
    sendFormats(data);
  }

  function set(patch) {
    Object.assign(state, patch);
    controls();
    if (answered && patch.regime) draw();
    ask();
    if ('seed' in patch) askFormats();
  }

  function controls() {
    for (const [name, button] of kinds) button.setAttribute('aria-pressed', String(name === state.kind));
    for (const [name, button] of regimes) button.setAttribute('aria-pressed', String(name === state.regime));
    epochs.show(state.epochs);
    copies.show(state.copies);
    length.show(state.length);
    seed.value = state.seed;
  }

  function draw() {
    if (!answered) return;
    const names = state.regime === 'all' ? Object.keys(REGIMES) : [state.regime];
    const { visits } = answered.regimes.copies;
    gridBox.replaceChildren(...names.map((name) => element('figure', { class: 'tl-figure', 'data-regime': name },
      element('figcaption', {}, element('b', { text: REGIMES[name] }),
        element('span', { text: name === 'copies' ? TEXT.copies(Math.max(...visits) + 1, visits.length) : TEXT[name] })),
      element('div', { class: 'tl-scroll', tabindex: '0', role: 'region', 'aria-label': `Epochs, ${REGIMES[name]}` }, grid(answered, name)))));
    view.root.dataset.regime = state.regime;
  }

  function drawAll() {
    const { cases, regimes: found } = answered;
    const total = Object.values(cases).reduce((sum, n) => sum + n, 0) || 1;
    note.textContent = `${answered.kind_note}; ${format.percent(answered.rate)} of the input. ${answered.truncated ? `The text is long: this tab uses its first ${answered.tokens.length} pieces.` : ''}`;
    legend.replaceChildren(...LEGEND.map(([letter, text]) => element('li', {}, element('span', { class: `tl-swatch case-${letter}`, text: letter }),
      element('span', { text: `${text}: ${cases[letter]} of ${total} (${Math.round((100 * cases[letter]) / total)} %)` }))));
    draw();
    compareBox.replaceChildren(comparison(answered));
    growthBox.replaceChildren(growth(answered));
    const last = (name) => found[name].growth.at(-1);
    said.textContent = `After ${answered.draws.length} ${answered.draws.length === 1 ? 'epoch' : 'epochs'} a piece has been asked in ${last('dynamic').toFixed(1)} different contexts with dynamic masking, `
      + `${last('copies').toFixed(1)} with copies, ${last('static').toFixed(1)} with one mask.`;
    lengthCard.hidden = !answered.lengths;
    if (answered.lengths) lengthBox.replaceChildren(histogram(answered.lengths));
    code.textContent = answered.code;
  }

  next.addEventListener('click', () => set({ seed: (state.seed + 1) % 2147483646 }));
  seed.addEventListener('change', () => set({ seed: Math.max(0, Math.min(2147483646, Math.trunc(Number(seed.value)) || 0)) }));
  copy.addEventListener('click', async () => {
    const { copyText } = await import('./attention-export.js');
    copy.textContent = await copyText(code.textContent, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
  });
  onSentence(view, () => { ask(); askFormats(); });

  view.onValue(async () => {
    const answer = view.value;
    if (!answer) return;
    if (answer.kind === 'file') {
      const { download } = await import('./attention-export.js');
      download(answer.name, answer.text, answer.type);
    } else if (answer.rev === cutAsked.rev) {
      view.root.dataset.cut = answer.rev;
      formatBox.replaceChildren(...(answer.error ? [element('p', { class: 'problem', text: answer.error })] : answer.formats.map((entry) => formatCard(entry, answer.length))));
    } else if (answer.rev === asked.rev) {
      view.root.dataset.rev = answer.rev;
      fail(answer.error);
      if (answer.error) return;
      answered = answer;
      drawAll();
      view.root.dataset.state = 'ready';
    }
  });
  controls();
}
