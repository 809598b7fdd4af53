// The Permutation tab: an order of prediction, both masks, probabilities and attention.
import { about, fold, labHead } from '../../parts/layout.js';
import { makeCode, makeSaver, wholeOr } from '../../parts/lab-files.js';
import { chances, chips, mark, matrix } from './parts.js';
import { contentSentence, querySentence } from './words.js';

const { element, format, sentence, onSentence, question, write, asker, t, texts, message, language } = window.Cloze;
const TEXT = texts({
  title: 'In which order is a sentence predicted?',
  intro: 'XLNet hides nothing. It draws an order of the pieces, and predicts each from those before it in that order. '
    + 'A content stream knows what stands at a place; a query stream knows only where the place is, so that it can be asked what stands there.',
  move: 'Drag a piece, or focus it and press the arrow keys. The number before a piece is its step, the small one its place in the text. '
    + 'Framed pieces are predicted.',
  released: 'In the released code spans are drawn from the seed and only they are predicted; all other pieces are seen by everyone. '
    + 'The order decides only among the framed pieces.',
  read: 'Each row can be read as a sentence: point at it, or focus its name. Filled: seen. Ring: the piece itself.',
  leak: 'Wrong on purpose: with the leak on, every query sees the piece it is asked for. With one stream only there would be no way out: '
    + 'a state that knows its own piece has nothing to predict, and one that does not is no use to the others. Hence two streams.',
  lacking: 'The masks above need no weights, but probabilities and attention need a model with two streams, and none is installed. '
    + 'Train one: choose XLNet in the Train tab, or run',
  attention: 'Stronger colour: more weight (by its square root). Point at a cell for the number. Both streams read keys and values of the content stream.',
  silent: 'The server does not answer. Is it still running?',
  whole: 'By the chain rule every order gives a probability of the whole sentence; a perfect model would give the same for all of them.',
  order: 'Order of prediction', shuffle: 'Shuffle', paper: 'Paper', release: 'Released code', leakSwitch: 'Leak: a query sees itself',
  memorySwitch: 'A memory of a sentence before', before: 'The sentence before', chances: 'Probabilities', layers: 'Layer', heads: 'Head',
  probable: 'How probable is each piece?', look: 'Where both streams look', see: 'What each stream may see', theOrder: 'The order', seed: 'Seed', variant: 'Variant',
  tries: 'What to try', try: 'Try', query: 'Query stream', asks: 'asks for the framed pieces', content: 'Content stream', gives: 'gives keys and values to both',
});
const COMMAND = 'python -m core_models.zoo build xlnet-mini';
const MEMORY = 'Paris lies on the river Seine.';
const MOST_SEED = 2147483646;
const ALL_TEXT = 'Madrid is the capital of Spain.'; // xlnet-mini has its last word first
/** The order of the text, but marks behind the last word come before all words. */
function lastWordLast(order, pieces) {
  const last = order.findLast((n) => /[\p{L}\p{N}]/u.test(pieces[n].text)) ?? order.at(-1);
  return [...order.filter((n) => n > last), ...order.filter((n) => n <= last)];
}
const TRY = {
  all: [t`The last word sees all`, (n, pieces) => ({ order: lastWordLast(n, pieces), k: 12, variant: 'paper', leak: false }), ALL_TEXT],
  back: [t`The first word comes last`, (n) => ({ order: [...n].reverse(), k: 12, variant: 'paper', leak: false })],
  every: [t`Predict every piece`, () => ({ order: null, k: 1, variant: 'paper', leak: false })],
  leak: [t`Why two streams`, (n) => ({ order: n, k: 2, variant: 'paper', leak: true })],
  released: [t`As released`, () => ({ order: null, k: 3, variant: 'released', leak: false })],
};

function makeSwitch(id, text, changed) {
  const button = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', id },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text }));
  button.addEventListener('click', () => changed(button.getAttribute('aria-checked') !== 'true'));
  return button;
}

const numbers = (count, name) => Array.from({ length: count }, (_, n) => element('option', { value: n, text: name(n + 1) }));

/** What the address kept; anything may stand there. */
function restored() {
  const kept = window.Cloze.kept('permutation') ?? {};
  const order = Array.isArray(kept.order) && kept.order.length <= 32 && kept.order.every((n) => wholeOr(n, 0, 31, null) !== null);
  const memory = typeof kept.memory === 'string' && kept.memory.trim() ? kept.memory.slice(0, 400) : null;
  return {
    order: order ? kept.order : null, seed: wholeOr(kept.seed, 0, MOST_SEED, 1), variant: kept.variant === 'released' ? 'released' : 'paper',
    k: wholeOr(kept.k, 1, 12, 3), leak: kept.leak === true, remember: memory !== null, memory: memory ?? MEMORY,
    layer: wholeOr(kept.layer, 0, 999, 0), head: wholeOr(kept.head, 0, 999, 0),
  };
}

export async function mount(view) {
  const state = restored();
  let linked = state.order && new URLSearchParams(location.hash.slice(1)).get('text'); // the text that the order of the link belongs to
  let asked = { rev: 0, key: '', sentence: '' };
  let judged = 0;
  let pending = null; // an example that waits for its sentence
  let masks = null;

  // --- parts ------------------------------------------------------------------------------------

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const live = element('p', { class: 'pm-live', role: 'status' });
  const list = element('ol', { 'data-picture': '', class: 'pm-order', 'aria-label': TEXT.order });
  const drawChips = chips(list, live, (order) => set({ order }));
  const rule = element('p', { class: 'pm-note' });
  const seed = element('input', { type: 'number', min: 0, max: MOST_SEED, value: state.seed, id: 'pm-seed', class: 'pm-number' });
  const shuffle = element('button', { type: 'button', class: 'primary', id: 'pm-shuffle', text: TEXT.shuffle });
  const slider = element('input', { type: 'range', min: 1, max: 12, value: 3, id: 'pm-k' });
  const share = element('output', { for: 'pm-k', class: 'pm-share' });
  const variants = Object.fromEntries([['paper', TEXT.paper], ['released', TEXT.release]].map(([name, text]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-variant': name, text, onclick: () => set({ variant: name, order: name === state.variant ? state.order : null }),
  })]));
  const leak = makeSwitch('pm-leak', TEXT.leakSwitch, (on) => set({ leak: on }));
  const remember = makeSwitch('pm-memory', TEXT.memorySwitch, (on) => set({ remember: on }));
  const before = element('input', { type: 'text', class: 'pm-before', id: 'pm-before', value: state.memory, maxlength: 400, 'aria-label': TEXT.before });
  const warning = element('p', { class: 'pm-warning', text: TEXT.leak, hidden: true });
  const note = element('p', { class: 'pm-note' });
  const figures = element('div', { class: 'pm-figures', 'data-picture': '' });
  const said = element('p', { class: 'summary', role: 'status' });
  const chanceBox = element('div', { class: 'pm-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.chances });
  const bits = element('p', { class: 'summary' });
  const layer = element('select', { class: 'pm-pick', 'aria-label': TEXT.layers });
  const head = element('select', { class: 'pm-pick', 'aria-label': TEXT.heads });
  const maps = element('div', { class: 'pm-figures' });
  const lacking = element('section', { class: 'card', 'data-lacking': '', hidden: true }, element('h3', { text: TEXT.probable }),
    element('p', { text: TEXT.lacking }), element('pre', { class: 'code', tabindex: '0', text: COMMAND }));
  const code = makeCode();
  const files = makeSaver((what) => {
    const data = ours({ what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  const model = element('div', { class: 'pm-body' },
    fold(TEXT.probable, note, chanceBox, bits),
    fold(TEXT.look,
      element('div', { class: 'pm-row' }, layer, head, element('span', { class: 'pm-note', text: TEXT.attention })), maps));
  const seen = element('section', { class: 'card' }, said, figures);
  const results = element('div', { class: 'pm-body' },
    lacking, model, about(TEXT.intro, TEXT.read),
    element('div', { class: 'pm-save' }, ...files.buttons, code.root));
  const order = element('section', { class: 'card' },
      list, live,
      element('div', { class: 'pm-row' }, shuffle, element('label', { class: 'pm-label pm-slider' }, 'K', slider, share)),
      warning,
      element('details', { class: 'pm-options fold', open: state.leak || state.remember || state.variant !== 'paper' }, element('summary', { text: t`How it is drawn` }), rule,
        element('div', { class: 'pm-row' }, element('label', { class: 'pm-label' }, TEXT.seed, seed),
          element('span', { class: 'pm-row pm-variants', role: 'group', 'aria-label': TEXT.variant }, ...Object.values(variants))),
        element('div', { class: 'pm-row' }, leak, remember, before)));
  const body = element('div', { class: 'pm-body' }, element('div', { class: 'lab-two' }, order, seen), results);
  view.root.replaceChildren(element('div', { class: 'pm' },
    labHead(TEXT.title, element('div', { class: 'pm-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'pm-note', text: TEXT.try }),
      ...Object.entries(TRY).map(([name, [text, patch, line]]) => element('button', {
        type: 'button', class: 'quiet outlined', 'data-try': name, text, onclick: () => attempt(patch, line),
      })))),
    problem, body));

  // --- questions --------------------------------------------------------------------------------

  function fail(text) {
    problem.hidden = !text;
    problem.textContent = text ?? '';
    results.hidden = Boolean(text);
    body.hidden = false;
    if (text) view.root.dataset.state = 'error';
  }
  const silent = () => fail(TEXT.silent);
  const sendAsk = asker(view, 'ask', silent);
  const sendJudge = asker(view, 'judge', () => { if (judged) silent(); });

  function ours(extra = {}) {
    const { order, seed: number, variant, k, layer: l, head: h } = state;
    return question({ order, seed: number, variant, k, leak: state.leak, memory: state.remember ? before.value : null, layer: l, head: h, ...extra });
  }

  function ask() {
    if (sentence.error) {
      fail(message(sentence.error));
      body.hidden = true;
      asked = { ...asked, rev: 0 };
      judged = 0;
      return;
    }
    if (!sentence.text) return;
    const data = ours();
    asked = { ...asked, rev: data.rev };
    judged = 0; // what is still to be said is of other masks
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    sendAsk(data);
  }

  function judge() {
    const data = ours();
    judged = data.rev;
    view.root.dataset.state = 'waiting';
    sendJudge(data);
  }

  function attempt(patch, line) {
    pending = line && sentence.text !== line ? { patch, line } : null;
    if (pending) write('sentence-text', line);
    else if (masks) set(patch([...masks.order].sort((a, b) => a - b), masks.pieces));
  }

  function set(patch) {
    Object.assign(state, patch);
    controls();
    keep();
    ask();
  }

  // A drawn order follows from its seed; only one that the visitor made is kept.
  function keep() {
    const { order, seed: number, variant, k, layer: l, head: h } = state;
    window.Cloze.keep('permutation', {
      ...(order && { order }), ...(number !== 1 && { seed: number }), ...(variant !== 'paper' && { variant }), ...(k !== 3 && { k }),
      ...(state.leak && { leak: true }), ...(state.remember && { memory: before.value }), ...(l && { layer: l }), ...(h && { head: h }),
    });
  }

  function controls() {
    seed.value = state.seed;
    slider.value = state.k;
    leak.setAttribute('aria-checked', String(state.leak));
    remember.setAttribute('aria-checked', String(state.remember));
    for (const [name, button] of Object.entries(variants)) button.setAttribute('aria-pressed', String(name === state.variant));
    before.hidden = !state.remember;
    warning.hidden = !state.leak;
    rule.textContent = state.variant === 'paper' ? TEXT.move : TEXT.released;
  }

  // --- drawing ----------------------------------------------------------------------------------

  function drawMasks() {
    const { pieces } = masks;
    const columns = pieces.map((piece) => ({ label: piece.text }));
    const rows = (stream) => masks[stream].map(({ position, seen }) => ({ position, cells: [...seen].map((flag) => ({ seen: flag === '1' })) }));
    const reading = (stream) => (n, table) => {
      for (const other of figures.querySelectorAll('table')) mark(other, -1);
      mark(table, n);
      said.textContent = (stream === 'query' ? querySentence : contentSentence)(masks[stream][n], masks);
      said.classList.toggle('wrong', stream === 'query' && masks.leak);
    };
    figures.replaceChildren(
      matrix({ title: TEXT.query, note: TEXT.asks, rows: rows('query'), columns, offset: 0, pieces, kind: 'query', choose: reading('query') }),
      matrix({ title: TEXT.content, note: TEXT.gives, rows: rows('content'), columns, offset: 0, pieces, kind: 'content', choose: reading('content') }));
    reading('query')(0, figures.querySelector('table.query'));
    share.textContent = state.k === 1 ? t`every piece: ${masks.targets.length} of ${masks.order.length}` : t`the last 1/${state.k}: ${masks.targets.length} of ${masks.order.length}`;
    if (state.variant === 'released') share.textContent = t`about 1/${state.k}, in spans: ${masks.targets.length} of ${masks.order.length}`;
    drawChips({ order: masks.order, pieces, targets: new Set(masks.targets) },
      list.contains(document.activeElement) ? document.activeElement.dataset.position : null);
    const notes = [];
    if (masks.reader && masks.reader !== sentence.model) notes.push(t`${sentence.model} has one stream only, so ${masks.reader} answers, with its own pieces.`);
    const long = masks.truncated ? t`The text is long: this tab uses its first ${pieces.length} pieces.` : '';
    if (long) notes.push(long);
    if (masks.reader && state.variant === 'paper') notes.push(TEXT.whole);
    note.textContent = notes.join(language === 'zh' ? '' : ' ');
    live.textContent = long;
    code.show(masks.code);
    lacking.hidden = Boolean(masks.reader);
    model.hidden = !masks.reader;
  }

  function drawChances(answer) {
    const { pieces } = masks;
    chanceBox.replaceChildren(chances(answer, pieces));
    const { whole } = answer;
    const best = answer.orders.map(({ name }) => [name, (whole ?? answer.bits)[name]]).sort((a, b) => a[1] - b[1])[0];
    const own = (whole ?? answer.bits).own.toFixed(1);
    const least = best[1].toFixed(1);
    if (best[0] === 'own') {
      bits.textContent = whole ? t`The whole sentence: ${own} bits in your order; none of the other orders is cheaper.`
        : t`The framed pieces together: ${own} bits in your order; none of the other orders is cheaper.`;
    } else {
      bits.textContent = whole ? t`The whole sentence: ${own} bits in your order; the cheapest order here needs ${least}.`
        : t`The framed pieces together: ${own} bits in your order; the cheapest order here needs ${least}.`;
    }
    const { forgotten } = answer.bits;
    if (forgotten !== undefined) {
      bits.textContent += `${language === 'zh' ? '' : ' '}${t`With the memory the framed pieces need ${answer.bits.own.toFixed(1)} bits, without it ${forgotten.toFixed(1)}.`}`;
    }
    const found = answer.attention;
    if (layer.options.length !== found.layers) layer.replaceChildren(...numbers(found.layers, (n) => t`Layer ${n}`));
    if (head.options.length !== found.heads) head.replaceChildren(...numbers(found.heads, (n) => t`Head ${n}`));
    layer.value = found.layer;
    head.value = found.head;
    const columns = [...found.remembered.map((label) => ({ label, remembered: true })), ...pieces.map((piece) => ({ label: piece.text }))];
    const rows = (stream) => found[stream].slice(0, masks[stream].length).map((values, n) => ({
      position: masks[stream][n].position,
      cells: values.map((value, column) => ({ value, title: t`${columns[column].label}: ${format.percent(value)}` })),
    }));
    const offset = found.remembered.length;
    maps.replaceChildren(...[['query', TEXT.query], ['content', TEXT.content]].map(([kind, title]) => matrix({
      title, note: t`layer ${found.layer + 1}, head ${found.head + 1}`, rows: rows(kind), columns, offset, pieces, kind,
    })));
  }

  // --- events -----------------------------------------------------------------------------------

  shuffle.addEventListener('click', () => set({ seed: (state.seed + 1) % MOST_SEED, order: null }));
  seed.addEventListener('change', () => set({ seed: Math.max(0, Math.min(MOST_SEED, Math.trunc(Number(seed.value)) || 0)), order: null }));
  slider.addEventListener('input', () => set({ k: Number(slider.value) }));
  before.addEventListener('change', () => set({}));
  for (const [name, box] of [['layer', layer], ['head', head]]) box.addEventListener('change', () => { state[name] = Number(box.value); keep(); judge(); });

  onSentence(view, () => {
    const key = `${sentence.model}\n${sentence.text}\n${sentence.error ?? ''}`;
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    asked.key = key;
    if (linked && sentence.text === linked) linked = null;
    else if (!linked && state.order) { state.order = null; keep(); }
    ask();
  });

  view.onValue(() => {
    const answer = view.value;
    if (!answer || files.take(answer)) return;
    if (answer.rev === asked.rev) {
      view.root.dataset.rev = answer.rev;
      if (answer.error && state.order) { set({ order: null }); return; } // an order of other pieces
      fail(message(answer.error));
      if (answer.error) return;
      masks = { ...answer, leak: state.leak };
      drawMasks();
      if (pending) {
        const { patch, line } = pending;
        pending = null;
        if (sentence.text === line) { attempt(patch); return; }
      }
      if (answer.reader) judge();
      else view.root.dataset.state = 'ready';
    } else if (answer.rev === judged) {
      judged = 0;
      fail(message(answer.error));
      if (answer.error) return;
      drawChances(answer);
      view.root.dataset.state = 'ready';
    }
  });
  controls();
}
