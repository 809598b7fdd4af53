// The Permutation tab: an order of prediction, both masks, probabilities and attention.
import { chances, chips, mark, matrix } from './permutation-parts.js';

const { element, format, sentence, onSentence, question, asker } = window.Cloze;
const TEXT = {
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
  memory: 'Paris lies on the river Seine.',
  whole: 'By the chain rule every order gives a probability of the whole sentence; a perfect model would give the same for all of them.',
};
const TRY = {
  all: ['The last word sees all', (n) => ({ order: n, k: 12, variant: 'paper', leak: false })],
  back: ['The first word comes last', (n) => ({ order: [...n].reverse(), k: 12, variant: 'paper', leak: false })],
  every: ['Predict every piece', () => ({ order: null, k: 1, variant: 'paper', leak: false })],
  leak: ['Why two streams', (n) => ({ order: n, k: 2, variant: 'paper', leak: true })],
  released: ['As released', () => ({ order: null, k: 3, variant: 'released', leak: false })],
};

function loadStyle() {
  if (document.querySelector('link[href="/cloze/permutation.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/permutation.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

function makeSwitch(id, text, changed) {
  const button = element('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': 'false', id },
    element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text }));
  button.addEventListener('click', () => changed(button.getAttribute('aria-checked') !== 'true'));
  return button;
}

const numbers = (count, name) => Array.from({ length: count }, (_, n) => element('option', { value: n, text: `${name} ${n + 1}` }));

export async function mount(view) {
  await loadStyle();
  const state = { order: null, seed: 1, variant: 'paper', k: 3, leak: false, remember: false, layer: 0, head: 0 };
  let asked = { rev: 0, key: '', sentence: '' };
  let judged = 0;
  let masks = null;

  // --- parts ------------------------------------------------------------------------------------

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const live = element('p', { class: 'pm-live', role: 'status' });
  const list = element('ol', { class: 'pm-order', 'aria-label': 'Order of prediction' });
  const drawChips = chips(list, live, (order) => set({ order }));
  const rule = element('p', { class: 'pm-note' });
  const seed = element('input', { type: 'number', min: 0, max: 2147483646, value: 1, id: 'pm-seed', class: 'pm-number' });
  const shuffle = element('button', { type: 'button', class: 'primary', id: 'pm-shuffle', text: 'Shuffle' });
  const slider = element('input', { type: 'range', min: 1, max: 12, value: 3, id: 'pm-k' });
  const share = element('output', { for: 'pm-k', class: 'pm-share' });
  const variants = Object.fromEntries([['paper', 'Paper'], ['released', 'Released code']].map(([name, text]) => [name, element('button', {
    type: 'button', class: 'quiet outlined', 'data-variant': name, text, onclick: () => set({ variant: name, order: name === state.variant ? state.order : null }),
  })]));
  const leak = makeSwitch('pm-leak', 'Leak: a query sees itself', (on) => set({ leak: on }));
  const remember = makeSwitch('pm-memory', 'A memory of a sentence before', (on) => set({ remember: on }));
  const before = element('input', { type: 'text', class: 'pm-before', id: 'pm-before', value: TEXT.memory, maxlength: 400, 'aria-label': 'The sentence before' });
  const warning = element('p', { class: 'pm-warning', text: TEXT.leak, hidden: true });
  const note = element('p', { class: 'pm-note' });
  const figures = element('div', { class: 'pm-figures' });
  const said = element('p', { class: 'summary', role: 'status' });
  const chanceBox = element('div', { class: 'pm-scroll', tabindex: '0', role: 'region', 'aria-label': 'Probabilities' });
  const bits = element('p', { class: 'summary' });
  const layer = element('select', { class: 'pm-pick', 'aria-label': 'Layer' });
  const head = element('select', { class: 'pm-pick', 'aria-label': 'Head' });
  const maps = element('div', { class: 'pm-figures' });
  const lacking = element('section', { class: 'card', 'data-lacking': '', hidden: true }, element('h3', { text: 'How probable is each piece?' }),
    element('p', { text: TEXT.lacking }), element('pre', { class: 'code', tabindex: '0', text: 'python -m core_models.zoo build xlnet-mini' }));
  const code = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: 'Copy' });
  const save = (what, text) => element('button', { type: 'button', class: 'quiet outlined', 'data-save': what, text, onclick: () => view.send('save', ours({ what })) });
  const model = element('div', { class: 'pm-body' },
    element('section', { class: 'card' }, element('h3', { text: 'How probable is each piece?' }), note, chanceBox, bits),
    element('section', { class: 'card' }, element('h3', { text: 'Where both streams look' }),
      element('div', { class: 'pm-row' }, layer, head, element('span', { class: 'pm-note', text: TEXT.attention })), maps));
  const results = element('div', { class: 'pm-body' },
    element('section', { class: 'card' }, element('h3', { text: 'What each stream may see' }), element('p', { class: 'pm-note', text: TEXT.read }), said, figures),
    lacking, model,
    element('div', { class: 'pm-save' }, save('svg', 'Save the masks as SVG'), save('csv', 'Save the table as CSV'),
      element('details', {}, element('summary', { text: 'The code that recomputes this' }), code, copy)));
  const body = element('div', { class: 'pm-body' },
    element('section', { class: 'card' },
      element('h3', { text: 'The order' }), rule, list, live,
      element('div', { class: 'pm-row' }, shuffle, element('label', { class: 'pm-label' }, 'Seed', seed),
        element('span', { class: 'pm-row pm-variants', role: 'group', 'aria-label': 'Variant' }, ...Object.values(variants))),
      element('label', { class: 'pm-label pm-slider' }, 'K', slider, share),
      element('div', { class: 'pm-row' }, leak, remember, before), warning),
    results);
  view.root.replaceChildren(element('div', { class: 'pm' },
    element('h2', { text: TEXT.title }), element('p', { class: 'pm-intro', text: TEXT.intro }),
    element('div', { class: 'pm-row', role: 'group', 'aria-label': 'What to try' }, element('span', { class: 'pm-note', text: 'Try' }),
      ...Object.entries(TRY).map(([name, [text, patch]]) => element('button', {
        type: 'button', class: 'quiet outlined', 'data-try': name, text,
        onclick: () => masks && set(patch([...masks.order].sort((a, b) => a - b))),
      }))),
    problem, body));

  // --- questions --------------------------------------------------------------------------------

  function fail(message) {
    problem.hidden = !message;
    problem.textContent = message ?? '';
    results.hidden = Boolean(message);
    if (message) view.root.dataset.state = 'error';
  }
  const silent = () => fail(TEXT.silent);
  const sendAsk = asker(view, 'ask', silent);
  const sendJudge = asker(view, 'judge', () => { if (judged) silent(); });

  function ours(extra = {}) {
    const { order, seed: number, variant, k, layer: l, head: h } = state;
    return question({ order, seed: number, variant, k, leak: state.leak, memory: state.remember ? before.value : null, layer: l, head: h, ...extra });
  }

  function ask() {
    if (!sentence.text) return;
    if (sentence.error) { fail(sentence.error); return; }
    const data = ours();
    asked = { ...asked, rev: data.rev };
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

  function set(patch) {
    Object.assign(state, patch);
    controls();
    ask();
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
      said.textContent = masks[stream][n].said;
      said.classList.toggle('wrong', stream === 'query' && masks.leak);
    };
    figures.replaceChildren(
      matrix({ title: 'Query stream', note: 'asks for the framed pieces', rows: rows('query'), columns, offset: 0, pieces, kind: 'query', choose: reading('query') }),
      matrix({ title: 'Content stream', note: 'gives keys and values to both', rows: rows('content'), columns, offset: 0, pieces, kind: 'content', choose: reading('content') }));
    reading('query')(0, figures.querySelector('table.query'));
    share.textContent = `${state.k === 1 ? 'every piece' : `the last 1/${state.k}`}: ${masks.targets.length} of ${masks.order.length} ${masks.order.length === 1 ? 'piece' : 'pieces'}`;
    if (state.variant === 'released') share.textContent = `about 1/${state.k}, in spans: ${masks.targets.length} of ${masks.order.length}`;
    drawChips({ order: masks.order, pieces, targets: new Set(masks.targets) },
      list.contains(document.activeElement) ? document.activeElement.dataset.position : null);
    const notes = [];
    if (masks.reader && masks.reader !== sentence.model) notes.push(`${sentence.model} has one stream only, so ${masks.reader} answers, with its own pieces.`);
    if (masks.truncated) notes.push(`The text is long: this tab uses its first ${pieces.length} pieces.`);
    if (masks.reader && state.variant === 'paper') notes.push(TEXT.whole);
    note.textContent = notes.join(' ');
    if (masks.truncated) live.textContent = `The text is long: this tab uses its first ${pieces.length} pieces.`;
    else live.textContent = '';
    code.textContent = masks.code;
    lacking.hidden = Boolean(masks.reader);
    model.hidden = !masks.reader;
  }

  function drawChances(answer) {
    const { pieces } = masks;
    chanceBox.replaceChildren(chances(answer, pieces));
    const { whole } = answer;
    const best = Object.entries(whole ?? answer.bits).sort((a, b) => a[1] - b[1])[0];
    bits.textContent = `${whole ? 'The whole sentence' : 'The framed pieces together'}: ${(whole ?? answer.bits).own.toFixed(1)} bits in your order; `
      + `${best[0] === 'own' ? 'none of the other orders is cheaper.' : `the cheapest order here needs ${best[1].toFixed(1)}.`}`;
    const found = answer.attention;
    if (layer.options.length !== found.layers) layer.replaceChildren(...numbers(found.layers, 'Layer'));
    if (head.options.length !== found.heads) head.replaceChildren(...numbers(found.heads, 'Head'));
    layer.value = found.layer;
    head.value = found.head;
    const columns = [...found.remembered.map((label) => ({ label, remembered: true })), ...pieces.map((piece) => ({ label: piece.text }))];
    const rows = (stream) => found[stream].slice(0, masks[stream].length).map((values, n) => ({
      position: masks[stream][n].position,
      cells: values.map((value, column) => ({ value, title: `${columns[column].label}: ${format.percent(value)}` })),
    }));
    const offset = found.remembered.length;
    maps.replaceChildren(...[['query', 'Query stream'], ['content', 'Content stream']].map(([kind, title]) => matrix({
      title, note: `layer ${found.layer + 1}, head ${found.head + 1}`, rows: rows(kind), columns, offset, pieces, kind,
    })));
  }

  // --- events -----------------------------------------------------------------------------------

  shuffle.addEventListener('click', () => set({ seed: (state.seed + 1) % 2147483646, order: null }));
  seed.addEventListener('change', () => set({ seed: Math.max(0, Math.min(2147483646, Math.trunc(Number(seed.value)) || 0)), order: null }));
  slider.addEventListener('input', () => set({ k: Number(slider.value) }));
  before.addEventListener('change', ask);
  for (const [name, box] of [['layer', layer], ['head', head]]) box.addEventListener('change', () => { state[name] = Number(box.value); judge(); });
  copy.addEventListener('click', async () => {
    const { copyText } = await import('./attention-export.js');
    copy.textContent = await copyText(code.textContent, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
  });

  onSentence(view, () => {
    const key = `${sentence.model}\n${sentence.text}\n${sentence.error ?? ''}`;
    if (!sentence.text || key === asked.key) return;
    asked.key = key;
    state.order = null;
    ask();
  });

  view.onValue(async () => {
    const answer = view.value;
    if (!answer) return;
    if (answer.kind === 'file') {
      const { download } = await import('./attention-export.js');
      download(answer.name, answer.text, answer.type);
    } else if (answer.rev === asked.rev) {
      view.root.dataset.rev = answer.rev;
      fail(answer.error);
      if (answer.error) return;
      masks = { ...answer, leak: state.leak };
      state.order = answer.order;
      drawMasks();
      if (answer.reader) judge();
      else view.root.dataset.state = 'ready';
    } else if (answer.rev === judged) {
      judged = 0;
      fail(answer.error);
      if (answer.error) return;
      drawChances(answer);
      view.root.dataset.state = 'ready';
    }
  });
  controls();
}
