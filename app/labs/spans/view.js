// The Spans tab: a run of hidden words, the two tokens around it, and two heads that tell what stood there.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import { makeFigure } from '../../parts/figure.js';
import { HEADS, changes, nats, picture, placeCard, twin } from './parts.js';

const { element, format, sentence, change, onSentence, question, asker, write, t, texts, message } = window.Cloze;
const TEXT = texts({
  title: 'What the edges of a span know',
  intro: 'SpanBERT hides runs of words. Its masked-token head answers from each hidden place itself; a second head answers from the two tokens around the run '
    + 'and the number of the place alone, so that these two learn to know what lies between them.',
  silent: 'The server does not answer. Is it still running?',
  tries: 'What to try', try: 'Try',
  span: 'The span', first: 'First word', length: 'Number of words', hide: 'Hide these', which: 'Which span', reader: 'Model',
  draw: 'Draw spans as in pretraining',
  usual: 'Nothing is hidden above the tabs, so this tab takes words from the middle. Hide a run of words above, or choose one here.',
  edge: 'This span lies at the edge of the text. Pretraining asks the boundary head only where a word stands on either side, so here only the masked-token head answers.',
  cut: 'This span cuts a word. SpanBERT hides whole words.',
  picture: 'Each line carries the state of a boundary token to a place. With the number of the place that is all that the boundary head gets. Under each number: its first choice.',
  heads: 'Two heads on every place',
  inside: 'What stands inside',
  insideLine: 'Of ten spans in pretraining, eight are [MASK] throughout, one holds other words and one its own; the draw is made once for the whole span. '
    + 'The boundary head never reads these places: what it says can change only as far as the encoder carries the inside into the two boundary states.',
  kinds: { mask: '[MASK] (8 of 10)', random: 'Other words (1 of 10)', kept: 'Its own words (1 of 10)' },
  again: 'Draw other words',
  law: 'How long the spans are',
  lawLine: 'Lengths in words follow a geometric law with p = 0.2, cut at 10 and scaled up again. On a short text the 15 % are soon used up, so spans are cut short; spans that meet become one.',
  lacking: 'No SpanBERT with both heads is installed, so nothing is predicted here. The files on the model hub lack these heads as well. Train one: choose SpanBERT in the Train tab, or run',
  table: 'The table',
  tableRegion: 'Every hidden place', changeRegion: 'What changed',
});
const COMMAND = 'python -m core_models.zoo build spanbert-mini';
// Telling with spanbert-mini: it has both heads' first choices right on most places.
const TRIES = [
  { name: t`Three words`, text: 'Madrid is the capital of Spain.', hide: 'the capital of' },
  { name: t`A name`, text: 'People who visit Argentina often begin in the capital, Buenos Aires.', hide: 'Buenos Aires' },
  { name: t`Other words inside`, text: 'The government of Turkey meets in Ankara, the capital.', hide: 'meets in Ankara', inside: 'random' },
  { name: t`At the edge`, text: 'The heart pumps blood through the body.', hide: 'The heart' },
];
const KINDS = ['mask', 'random', 'kept'];
const MOST_SEED = 2147483646;
const FIRST_CARDS = 12;
const LONGEST = 10;

/** Words of the answer: [{text, start, end}] in characters. */
function wordsOf(tokens) {
  const found = [];
  let last = null;
  for (const token of tokens) {
    if (token.special) { last = null; continue; }
    if (last && token.word === last.word) { last.text += token.text; last.end = token.end; continue; }
    last = { word: token.word, text: token.text, start: token.start, end: token.end };
    found.push(last);
  }
  return found;
}

function restored() {
  const kept = window.Cloze.kept('spans') ?? {};
  return {
    run: wholeOr(kept.run, 0, 511, 0),
    inside: KINDS.includes(kept.inside) ? kept.inside : 'mask',
    roll: wholeOr(kept.roll, 0, MOST_SEED, 1),
    seed: wholeOr(kept.seed, 0, MOST_SEED, 0),
    reader: typeof kept.reader === 'string' ? kept.reader.slice(0, 200) : null,
    // What the two lists say while it is not hidden: the number of the first word, and how many.
    pick: Array.isArray(kept.pick) ? [wholeOr(kept.pick[0], 0, 511, 0), wholeOr(kept.pick[1], 1, LONGEST, 1)] : null,
  };
}

export async function mount(view) {
  const state = restored();
  let asked = { rev: 0, key: '' };
  let drawn = 0;
  let drawnFrom = ''; // the text whose spans are being drawn
  let answered = null;
  let pending = null;
  let stage = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const who = element('div', { class: 'sp-row', role: 'group', 'aria-label': TEXT.reader });
  const which = element('div', { class: 'sp-row', role: 'group', 'aria-label': TEXT.which });
  const first = element('select', { class: 'sp-pick', id: 'sp-first' });
  const length = element('select', { class: 'sp-pick', id: 'sp-length' });
  const hideButton = element('button', { type: 'button', class: 'primary', id: 'sp-hide', text: TEXT.hide });
  const drawButton = element('button', { type: 'button', class: 'quiet outlined', id: 'sp-draw', text: TEXT.draw });
  const notes = element('div', { class: 'sp-notes', role: 'status' });
  const stageBox = element('div', { 'data-picture': '' });
  const summary = element('p', { class: 'summary', role: 'status' });
  const cards = element('div', { class: 'sp-cards' });
  const more = element('p', { class: 'sp-small' });
  const equation = element('p', { class: 'sp-equation' });
  const kinds = KINDS.map((kind) => element('button', {
    type: 'button', class: 'quiet outlined', 'data-inside': kind, text: TEXT.kinds[kind], onclick: () => set({ inside: kind }),
  }));
  const again = element('button', { type: 'button', class: 'quiet outlined', id: 'sp-roll', text: TEXT.again, onclick: () => set({ roll: (state.roll + 1) % MOST_SEED }) });
  const moved = element('p', { class: 'summary', role: 'status' });
  const changeBox = element('div', { class: 'sp-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.changeRegion, hidden: true });
  const lawBars = makeFigure({ name: 'cloze-spans-law' });
  const twinBox = element('div', { class: 'sp-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.tableRegion });
  const details = element('details', {}, element('summary', { text: TEXT.table }), twinBox);
  const code = makeCode();
  const files = makeSaver((what) => {
    const data = ours({ what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  const lacking = element('section', { class: 'card', 'data-lacking': '', hidden: true }, element('h3', { text: TEXT.heads }),
    element('p', { class: 'sp-small', text: TEXT.lacking }), element('pre', { class: 'code', tabindex: '0', text: COMMAND }));
  const model = element('div', { class: 'sp-body' },
    element('section', { class: 'card' }, summary, cards, more, equation),
    fold(TEXT.inside, element('p', { class: 'sp-small', text: TEXT.insideLine }),
      element('div', { class: 'sp-row', role: 'group', 'aria-label': TEXT.inside }, ...kinds, again), moved, changeBox));
  const body = element('div', { class: 'sp-body' },
    element('section', { class: 'card' },
      element('div', { class: 'sp-row' },
        element('label', { class: 'sp-label' }, TEXT.first, first), element('label', { class: 'sp-label' }, TEXT.length, length), hideButton, drawButton),
      stageBox, who, which, notes),
    lacking, model,
    fold(TEXT.law, element('p', { class: 'sp-small', text: TEXT.lawLine }), lawBars.root),
    about(TEXT.intro, TEXT.picture),
    element('div', { class: 'sp-save' }, ...files.buttons, details, code.root));
  view.root.replaceChildren(element('div', { class: 'sp' },
    labHead(TEXT.title, element('div', { class: 'sp-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'sp-small', text: TEXT.try }),
      ...TRIES.map((entry) => element('button', { type: 'button', class: 'quiet outlined', text: entry.name, onclick: () => attempt(entry) })))),
    problem, body));

  // --- questions --------------------------------------------------------------------------------

  function fail(text) {
    problem.hidden = !text;
    problem.textContent = text ?? '';
    if (text) view.root.dataset.state = 'error';
  }
  const silent = () => fail(TEXT.silent);
  const send = asker(view, 'ask', silent);
  const sendDraw = asker(view, 'draw', silent);

  function ours(extra = {}) {
    return question({ run: state.run, inside: state.inside, roll: state.roll, reader: state.reader, ...extra });
  }

  function ask() {
    if (sentence.error) { fail(message(sentence.error)); body.hidden = true; asked = { ...asked, rev: 0 }; return; }
    if (!sentence.text) return;
    const data = ours();
    asked = { ...asked, rev: data.rev };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  function keep(patch) {
    Object.assign(state, patch);
    const { run, inside, roll, seed, reader, pick } = state;
    window.Cloze.keep('spans', {
      ...(run && { run }), ...(inside !== 'mask' && { inside }), ...(roll !== 1 && { roll }), ...(seed && { seed }), ...(reader && { reader }), ...(pick && { pick }),
    });
  }

  function set(patch) {
    keep(patch);
    ask();
  }

  /** Hide what stands under these spans of characters, and nothing else. */
  function hideCharacters(found) {
    const marks = sentence.tokens.filter((token) => !token.special && !token.masked && found.some(([a, b]) => token.start < b && a < token.end));
    keep({ run: 0, pick: null });
    change({ marks: new Map(marks.map(({ position }) => [position, { position, case: 'mask' }])) });
  }

  function attempt(entry) {
    pending = entry;
    set({ run: 0, inside: entry.inside ?? 'mask', pick: null });
    if (sentence.text === entry.text) hidePending();
    else write('sentence-text', entry.text);
  }

  function hidePending() {
    const entry = pending;
    if (!entry || sentence.text !== entry.text || !sentence.tokens.length) return;
    pending = null;
    const at = [...entry.text.slice(0, entry.text.indexOf(entry.hide))].length;
    hideCharacters([[at, at + [...entry.hide].length]]);
  }

  hideButton.addEventListener('click', () => {
    const words = wordsOf(answered.tokens);
    const chosen = words.slice(Number(first.value), Number(first.value) + Number(length.value));
    if (chosen.length) hideCharacters([[chosen[0].start, chosen.at(-1).end]]);
  });
  for (const list of [first, length]) list.addEventListener('change', () => keep({ pick: [Number(first.value), Number(length.value)] }));
  drawButton.addEventListener('click', () => {
    state.seed = (state.seed + 1) % MOST_SEED;
    const data = ours({ seed: state.seed });
    [drawn, drawnFrom] = [data.rev, data.text];
    sendDraw(data);
  });

  // --- drawing ----------------------------------------------------------------------------------

  function drawPickers() {
    const words = wordsOf(answered.tokens);
    const { start, stop, words: count } = answered.spans[answered.run];
    const from = words.findIndex((word) => word.end > answered.tokens[start].start);
    first.replaceChildren(...words.map((word, n) => element('option', { value: n, text: `${n + 1}. ${word.text}` })));
    length.replaceChildren(...Array.from({ length: LONGEST }, (_, n) => element('option', { value: n + 1, text: n + 1 })));
    const [word, many] = state.pick?.[0] < words.length ? state.pick : [Math.max(0, from), Math.min(LONGEST, stop > start ? count : 1)];
    [first.value, length.value] = [word, many];
    which.replaceChildren(...(answered.spans.length > 1 ? answered.spans.slice(0, 24).map((span, n) => element('button', {
      type: 'button', class: 'quiet outlined', 'aria-pressed': String(n === answered.run), 'data-run': n,
      text: answered.tokens.slice(span.start, Math.min(span.stop, span.start + 4)).map((token) => token.text).join(' '),
      onclick: () => set({ run: n, pick: null }),
    })) : []));
    which.hidden = answered.spans.length < 2;
    who.replaceChildren(...(answered.readers.length > 1 ? answered.readers.map(({ name, title }) => element('button', {
      type: 'button', class: 'quiet outlined', 'aria-pressed': String(name === answered.reader), text: window.Cloze.modelTitle(title), onclick: () => set({ reader: name }),
    })) : []));
    who.hidden = answered.readers.length < 2;
  }

  function drawNotes() {
    const span = answered.spans[answered.run];
    const said = [];
    if (answered.usual) said.push(TEXT.usual);
    if (span.edge) said.push(TEXT.edge);
    if (!span.whole) said.push(TEXT.cut);
    if (answered.reader && answered.reader !== sentence.model) said.push(t`${sentence.model} does not have both heads, so ${answered.reader} answers, with its own pieces.`);
    if (answered.truncated) said.push(t`The text is long: this tab uses its first ${answered.tokens.length} pieces.`);
    notes.replaceChildren(...said.map((text) => element('p', { class: 'sp-small', text })));
  }

  function sayHeads(losses) {
    const [own, told] = HEADS.map((head) => losses[head].mean);
    if (own === null) return t`The text itself has gaps here: nobody knows the real words.`;
    if (told === null) return t`On average the masked-token head gives the real words ${format.percent(Math.exp(-own))}.`;
    return t`On average (geometric mean) the masked-token head gives the real words ${format.percent(Math.exp(-own))}, the boundary head ${format.percent(Math.exp(-told))}.`;
  }

  function drawTold() {
    const { told, tokens, inside } = answered;
    const { losses } = told;
    summary.textContent = sayHeads(losses);
    cards.replaceChildren(...told.pieces.slice(0, FIRST_CARDS).map((piece) => placeCard(piece, tokens[piece.position])));
    more.textContent = told.pieces.length > FIRST_CARDS ? t`The first ${FIRST_CARDS} places are shown; the table below has ${told.pieces.length}.` : '';
    more.hidden = !more.textContent;
    equation.hidden = losses.total === null || losses.span_boundary.mean === null;
    if (!equation.hidden) {
      equation.textContent = t`Loss of the span (means in nats): ${nats(losses.masked_token.mean)} + ${nats(losses.span_boundary.mean)} = ${nats(losses.total)}, masked token + span boundary.`;
    }
    for (const button of kinds) button.setAttribute('aria-pressed', String(button.dataset.inside === inside));
    again.hidden = inside !== 'random';
    changeBox.hidden = moved.hidden = inside === 'mask';
    if (inside !== 'mask') {
      const { before, after, inside: within } = told.moved;
      moved.textContent = answered.spans[answered.run].edge
        ? t`The last states inside the span moved by ${format.percent(within)} of their length.`
        : t`The last states of the two boundary tokens moved by ${format.percent(before)} and ${format.percent(after)} of their length, those inside by ${format.percent(within)}.`;
      changeBox.replaceChildren(changes(told, tokens));
    }
  }

  const drawTwin = () => { if (details.open && answered?.told) twinBox.replaceChildren(twin(answered.told, answered.tokens)); };
  details.addEventListener('toggle', drawTwin);
  const watch = new ResizeObserver(() => stage?.fit());

  function draw() {
    drawPickers();
    drawNotes();
    watch.disconnect();
    stage = picture(answered);
    stageBox.replaceChildren(stage.root);
    stage.reveal();
    watch.observe(stage.row);
    lacking.hidden = Boolean(answered.reader);
    model.hidden = details.hidden = code.root.hidden = !answered.reader;
    if (answered.told) drawTold();
    lawBars.show(answered.law.figure);
    drawTwin();
    code.show(answered.code);
  }

  onSentence(view, () => {
    hidePending();
    const marks = [...sentence.marks.keys()].sort((a, b) => a - b);
    const key = JSON.stringify([sentence.text, sentence.model, marks, sentence.error]);
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    asked.key = key;
    ask();
  });

  view.onValue(() => {
    const answer = view.value;
    if (!answer || files.take(answer)) return;
    if (answer.rev === drawn) {
      drawn = 0;
      if (sentence.text !== drawnFrom) return;
      fail(message(answer.error));
      if (!answer.error) { hideCharacters(answer.spans); set({}); }
      return;
    }
    if (answer.rev !== asked.rev) return;
    view.root.dataset.rev = answer.rev;
    fail(message(answer.error));
    body.hidden = Boolean(answer.error);
    if (answer.error) return;
    const looked = ({ tokens, spans }) => JSON.stringify([tokens.map(({ text }) => text), spans.map(({ start, stop }) => [start, stop])]);
    if (answered && state.pick && looked(answered) !== looked(answer)) keep({ pick: null });
    answered = answer;
    draw();
    view.root.dataset.state = 'ready';
  });
}
