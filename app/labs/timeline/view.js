// The Timeline tab: one text masked epoch by epoch, lengths of spans, and the input formats.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import { makeFigure } from '../../parts/figure.js';
import { REGIMES, comparison, formatCard, grid } from './parts.js';

const { element, format, sentence, onSentence, question, asker, t, texts, message } = window.Cloze;
const TEXT = texts({
  title: 'What is hidden, epoch by epoch?',
  intro: 'BERT drew its masks once, when the data were written: ten copies of each text, the same ones in every epoch. '
    + 'RoBERTa draws afresh at each visit, so a piece is asked in ever new contexts.',
  copies(copies, epochs) {
    if (epochs <= copies) return t`A copy comes round again every ${copies} epochs. So far no mask has come twice.`;
    const [least, most] = [Math.floor(epochs / copies), Math.ceil(epochs / copies)];
    if (least === most) return t`A copy comes round again every ${copies} epochs. In ${epochs} epochs each mask is seen ${least} times.`;
    return t`A copy comes round again every ${copies} epochs. In ${epochs} epochs each mask is seen ${least} to ${most} times.`;
  },
  static: 'One copy: every epoch asks the same pieces, and the others are never asked.',
  dynamic: 'A new draw at each visit. On a short text two draws may be alike by chance.',
  counts: 'asked: in how many epochs the piece is to be predicted. contexts: in how many different inputs it is.',
  lengths: 'Published are the shares of the paper, drawn are lengths from the same sampler. Found are runs of hidden words in masked text of the Primer: '
    + 'spans that touch merge, a budget cuts or skips, and a text ends, so they need not agree.',
  formats: 'Six documents of the Primer, cut as RoBERTa’s authors compared it. A number and a colour stand for a document, the width for pieces; '
    + 'what is left of a bar is special pieces and padding. Behind each bar: pieces, special ones included, and the label of a pair.',
  silent: 'The server does not answer. Is it still running?',
  side: 'Side by side', epochs: 'Epochs', copyCount: 'Copies', next: 'Next seed', seed: 'Seed', masking: 'The masking', kinds: 'Masking', regime: 'Regime',
  howLong: 'How long are the spans?', longest: 'Longest example', tries: 'What to try', attempt: 'Try', compared: 'Regimes compared',
  howMany: 'How many contexts does a piece get?', ways: 'Four ways to cut documents',
});
const KINDS = [
  ['uniform', t`Pieces`, 'BERT, RoBERTa'], ['whole_word', t`Whole words`, 'BERT'], ['ngram', t`n-grams`, 'ALBERT'],
  ['windowed_ngram', t`n-grams in windows`, 'DeBERTa'], ['span', t`Spans`, 'SpanBERT'], ['with_replacement', t`With replacement`, 'ELECTRA'],
];
const TRY = [
  [t`BERT: ten copies, 40 epochs`, { kind: 'uniform', copies: 10, epochs: 40, regime: 'copies' }],
  [t`RoBERTa: afresh`, { kind: 'uniform', epochs: 40, regime: 'dynamic' }],
  [t`One mask for ever`, { kind: 'uniform', epochs: 20, regime: 'static' }],
  [t`SpanBERT’s spans`, { kind: 'span', epochs: 20, regime: 'dynamic' }],
];
const LEGEND = [
  ['M', (n, total, share) => t`[MASK]: ${n} of ${total} (${share} %)`, t`the model sees [MASK]`],
  ['R', (n, total, share) => t`another piece: ${n} of ${total} (${share} %)`, t`it sees another piece`],
  ['K', (n, total, share) => t`kept: ${n} of ${total} (${share} %)`, t`it sees the piece itself`],
];
const PLAIN = { kind: 'uniform', epochs: 20, copies: 10, seed: 1, length: 96 };
const MOST_SEED = 2147483646;

function slider(id, text, { min, max, step = 1 }, changed) {
  const input = element('input', { type: 'range', id, min, max, step });
  const output = element('output', { for: id, class: 'tl-out' });
  input.addEventListener('input', () => changed(Number(input.value)));
  const label = element('label', { class: 'tl-slider' }, element('span', { text }), input, output);
  return { label, show: (value) => { input.value = value; output.textContent = value; } };
}

// The setting that the address holds; whatever does not fit is left out.
function kept() {
  const found = window.Cloze.kept('timeline') ?? {};
  const setting = {
    kind: KINDS.some(([name]) => name === found.kind) ? found.kind : PLAIN.kind,
    epochs: wholeOr(found.epochs, 1, 40, PLAIN.epochs),
    copies: wholeOr(found.copies, 1, 20, PLAIN.copies),
    seed: wholeOr(found.seed, 0, MOST_SEED, PLAIN.seed),
    length: wholeOr(found.length, 32, 256, PLAIN.length),
  };
  if (found.regime === 'all' || Object.hasOwn(REGIMES, found.regime ?? '')) setting.regime = found.regime;
  return setting;
}

export async function mount(view) {
  const state = { ...PLAIN, regime: view.root.clientWidth > 700 ? 'all' : 'copies', ...kept() };
  let asked = { rev: 0, key: '' };
  let cutAsked = { rev: 0, key: '' };
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const kinds = new Map(KINDS.map(([name, text, family]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-kind': name, onclick: () => set({ kind: name }),
  }, element('span', { text }), element('small', { text: family }))]));
  const regimes = new Map([['all', TEXT.side], ...Object.entries(REGIMES)].map(([name, text]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-regime': name, text, onclick: () => { state.regime = name; controls(); keep(); draw(); },
  })]));
  const epochs = slider('tl-epochs', TEXT.epochs, { min: 1, max: 40 }, (value) => set({ epochs: value }));
  const copies = slider('tl-copies', TEXT.copyCount, { min: 1, max: 20 }, (value) => set({ copies: value, regime: state.regime === 'all' ? 'all' : 'copies' }));
  const seed = element('input', { type: 'number', min: 0, max: 2147483646, id: 'tl-seed', class: 'tl-number' });
  const next = element('button', { type: 'button', class: 'primary', id: 'tl-next', text: TEXT.next });
  const note = element('p', { class: 'tl-note' });
  const gridBox = element('div', { class: 'tl-grids', 'data-picture': '' });
  const legend = element('ul', { class: 'tl-legend' });
  const compareBox = element('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.compared });
  const growth = makeFigure({ name: 'cloze-timeline-contexts' });
  const said = element('p', { class: 'summary' });
  const lengths = makeFigure({ name: 'cloze-timeline-lengths' });
  const lengthCard = element('section', { class: 'card', hidden: true }, element('h3', { text: TEXT.howLong }), element('p', { class: 'tl-note', text: TEXT.lengths }), lengths.root);
  const length = slider('tl-length', TEXT.longest, { min: 32, max: 256, step: 16 }, (value) => { state.length = value; controls(); keep(); askFormats(); });
  const formatBox = element('div', { class: 'tl-formats' });
  const code = makeCode();
  const saver = makeSaver((what) => {
    const data = ours({ what, regime: state.regime });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text, true));
  const results = element('div', { class: 'tl-body' },
    element('section', { class: 'card' },
      element('div', { class: 'tl-row', role: 'group', 'aria-label': TEXT.regime }, ...regimes.values()), gridBox, legend),
    fold(TEXT.howMany, element('p', { class: 'tl-note', text: TEXT.counts }), compareBox, growth.root, said),
    lengthCard);
  const save = element('div', { class: 'tl-save' }, ...saver.buttons, code.root);
  view.root.replaceChildren(element('div', { class: 'tl' },
    labHead(TEXT.title, element('div', { class: 'tl-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'tl-note', text: TEXT.attempt }),
      ...TRY.map(([text, patch]) => element('button', { type: 'button', class: 'quiet outlined', text, onclick: () => set(patch) })))),
    problem, results,
    fold(TEXT.masking,
      element('div', { class: 'tl-row tl-kinds', role: 'group', 'aria-label': TEXT.kinds }, ...kinds.values()),
      note,
      element('div', { class: 'tl-row tl-sliders' }, epochs.label, copies.label, element('label', { class: 'tl-slider' }, TEXT.seed, seed), next)),
    fold(TEXT.ways, element('p', { class: 'tl-note', text: TEXT.formats }),
      element('div', { class: 'tl-row' }, length.label), formatBox),
    about(TEXT.intro), save));

  function fail(words, stay = false) {
    problem.hidden = !words;
    problem.textContent = words ?? '';
    results.hidden = Boolean(words) && !stay;
    save.hidden = results.hidden;
    if (words) view.root.dataset.state = 'error';
  }
  const silent = () => fail(TEXT.silent);
  const send = asker(view, 'ask', silent);
  const sendFormats = asker(view, 'formats', silent);
  const ours = (extra = {}) => question({ kind: state.kind, epochs: state.epochs, copies: state.copies, seed: state.seed, ...extra });

  function ask() {
    const { kind, epochs: e, copies: c, seed: s } = state;
    const key = JSON.stringify([sentence.text, sentence.model, sentence.error, kind, e, c, s]);
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    if (sentence.error) { fail(message(sentence.error)); asked = { rev: 0, key }; return; }
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
    keep();
    if (answered && patch.regime) draw();
    ask();
    if ('seed' in patch) askFormats();
  }

  function keep() {
    const changed = Object.entries(PLAIN).filter(([name, value]) => state[name] !== value).map(([name]) => [name, state[name]]);
    window.Cloze.keep('timeline', { ...Object.fromEntries(changed), regime: state.regime });
  }

  function controls() {
    for (const [name, button] of kinds) button.setAttribute('aria-pressed', String(name === state.kind));
    for (const [name, button] of regimes) button.setAttribute('aria-pressed', String(name === state.regime));
    epochs.show(state.epochs);
    copies.show(state.copies);
    length.show(state.length);
    seed.value = state.seed;
  }

  const swatch = (letter) => element('span', { class: `tl-swatch case-${letter}`, text: letter });

  /** How often each case occurs in a regime, over all its epochs. */
  function counted(name) {
    const { cases } = answered.regimes[name];
    const total = Object.values(cases).reduce((sum, n) => sum + n, 0);
    return element('ul', { class: 'tl-legend' }, ...LEGEND.map(([letter, words]) => element('li', {}, swatch(letter),
      element('span', { text: words(cases[letter], total, Math.round((100 * cases[letter]) / (total || 1))) }))));
  }

  function draw() {
    if (!answered) return;
    const names = state.regime === 'all' ? Object.keys(REGIMES) : [state.regime];
    const { visits } = answered.regimes.copies;
    gridBox.replaceChildren(...names.map((name) => element('figure', { class: 'tl-figure', 'data-regime': name },
      element('figcaption', {}, element('b', { text: REGIMES[name] }),
        element('span', { text: name === 'copies' ? TEXT.copies(Math.max(...visits) + 1, visits.length) : TEXT[name] }),
        names.length > 1 ? counted(name) : null),
      element('div', { class: 'tl-scroll', tabindex: '0', role: 'region', 'aria-label': t`Epochs, ${REGIMES[name]}` }, grid(answered, name)))));
    if (names.length === 1) legend.replaceChildren(...counted(names[0]).children);
    else legend.replaceChildren(...LEGEND.map(([letter, , text]) => element('li', {}, swatch(letter), element('span', { text }))));
    view.root.dataset.regime = state.regime;
  }

  function drawAll() {
    const { regimes: found } = answered;
    const rate = t`${format.percent(answered.rate)} of the input are asked.`;
    const cut = answered.truncated ? t`The text is long: this tab uses its first ${answered.tokens.length} pieces.` : null;
    note.textContent = [message(answered.kind_note), rate, cut].filter(Boolean).join(' · ');
    draw();
    compareBox.replaceChildren(comparison(answered));
    growth.show(answered.figures.growth);
    const count = answered.draws.length;
    const [fresh, copied, one] = ['dynamic', 'copies', 'static'].map((name) => found[name].growth.at(-1).toFixed(1));
    said.textContent = count === 1
      ? t`After 1 epoch a piece has been asked in ${fresh} different contexts with dynamic masking, ${copied} with copies, ${one} with one mask.`
      : t`After ${count} epochs a piece has been asked in ${fresh} different contexts with dynamic masking, ${copied} with copies, ${one} with one mask.`;
    lengthCard.hidden = !answered.figures.lengths;
    lengths.show(answered.figures.lengths);
    code.show(answered.code);
  }

  next.addEventListener('click', () => set({ seed: (state.seed + 1) % MOST_SEED }));
  seed.addEventListener('change', () => set({ seed: Math.max(0, Math.min(MOST_SEED, Math.trunc(Number(seed.value)) || 0)) }));
  onSentence(view, () => { ask(); askFormats(); });

  view.onValue(() => {
    const answer = view.value;
    if (!answer || saver.take(answer)) return;
    if (answer.rev === cutAsked.rev) {
      view.root.dataset.cut = answer.rev;
      formatBox.replaceChildren(...(answer.error ? [element('p', { class: 'problem', text: message(answer.error) })] : answer.formats.map((entry) => formatCard(entry, answer.length))));
    } else if (answer.rev === asked.rev) {
      view.root.dataset.rev = answer.rev;
      fail(message(answer.error));
      if (answer.error) return;
      answered = answer;
      drawAll();
      view.root.dataset.state = 'ready';
    }
  });
  controls();
}
