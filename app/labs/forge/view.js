// The Forge tab: a generator fills gaps, a discriminator judges every token, the visitor forges too.
import { about, labHead, namedFold } from '../../parts/layout.js';
import { strip, gapCard, lossPicture, scoreBoard, count, percent, restored, MOST_FAKES, MOST_SEED } from './parts.js';
import { makeCode, makeSaver } from '../../parts/lab-files.js';

const { element, sentence, change, onSentence, question, asker, write, listed, t, texts, message, language } = window.Cloze;
const TEXT = texts({
  title: 'Who wrote this word?',
  intro: 'ELECTRA and DeBERTa v3 learn as detectives: a small generator fills hidden words with samples of its own, and the discriminator '
    + 'says for every token whether it was replaced. The generator is kept small on purpose: a perfect forger would leave nothing to learn from.',
  silent: 'The server does not answer. Is it still running?',
  missing: 'No model that judges tokens is installed here.',
  how: 'A discriminator and its generator come from one training run: open the Train tab and choose ELECTRA, or run',
  after: 'Both are then offered here: a discriminator NAME belongs to the generator NAME-generator.',
  caption: 'Probability “replaced” of every token',
  columns: ['Token', 'Untouched', 'Drawn', 'Forged', 'With your words'],
  judges: 'Discriminator', redraw: 'Other positions', roll: 'Roll again', fake: 'your fake word', every: 'Every token', table: 'The table',
  try: 'Try to fool it', tries: 'What to try', trying: 'Try',
  first: '1. The generator forges', heat: 'Temperature', second: '2. The discriminator judges every token',
  bars: 'Bars show the probability “replaced”; the dashed line is 50 %, where it would accuse.',
  third: '3. Your turn', turn: 'Choose a word of the true sentence, type another one and see whether it is noticed.',
  losses: 'How many positions teach', forged: 'The forged sentence', own: 'Your sentence: choose a word', choose: 'Choose a word above',
  lucky: 'lucky: real', gap: 'gap', undo: 'Undo', marked: 'Hidden: the words you marked above the tabs.',
});
const COMMAND = 'python -m core_models.zoo build electra-mini';
const TRIES = [
  { name: t`Fool it`, text: 'The capital of France is Paris.', hide: 'paris', fake: 'london', temperature: 1 },
  { name: t`A hot generator`, text: 'The heart pumps blood through the body.', hide: 'blood', temperature: 2.5 },
  { name: t`Lucky draws`, text: 'In winter the lake is covered with snow.', hide: 'is', temperature: 0.3 },
];
const FIRST_CARDS = 12;
const FLAT = 0.02; // verdicts this close together say nothing about single words

function missing() {
  return element('div', { class: 'card fd-missing' },
    element('h3', { text: TEXT.missing }),
    element('p', { text: TEXT.how }),
    element('pre', { class: 'code', tabindex: '0', text: COMMAND }),
    element('p', { text: TEXT.after }));
}

function flatNote(chances) {
  const [least, most] = [Math.min(...chances), Math.max(...chances)];
  if (chances.length < 3 || most - least >= FLAT) return null;
  return element('p', { class: 'fd-flat', text: t`It says nearly the same of every token (${(least * 100).toFixed(1)} % to ${(most * 100).toFixed(1)} %): this model cannot yet tell one word from another.` });
}

function twin(answer) {
  const gaps = new Map(answer.gaps.map((gap) => [gap.position, gap]));
  const cell = (value) => element('td', { text: value === undefined || value === null ? '–' : percent(value) });
  return element('table', {},
    element('caption', { text: TEXT.caption }),
    element('thead', {}, element('tr', {}, ...TEXT.columns.map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...answer.tokens.map(({ position, text }) => element('tr', {},
      element('th', { scope: 'row', text }), cell(answer.before[position]),
      element('td', { text: gaps.get(position)?.sample.display ?? '' }),
      cell(answer.after?.[position]), cell(answer.mine?.verdicts[position])))));
}

export async function mount(view) {
  const state = { ...restored(), picked: null, counting: null, pending: null };
  let linked = state.fakes.size ? new URLSearchParams(location.hash.slice(1)).get('text') : null; // what the words of the link belong to
  let asked = { rev: 0, key: '' };
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const none = element('div', { hidden: true });
  const who = element('div', { class: 'fd-row fd-who', role: 'radiogroup', 'aria-label': TEXT.judges });
  const source = element('span', { class: 'fd-small' });
  const redrawButton = element('button', { type: 'button', class: 'quiet outlined', id: 'fd-draw', text: TEXT.redraw });
  const rollButton = element('button', { type: 'button', class: 'primary', id: 'fd-roll', text: TEXT.roll });
  const rollNumber = element('span', { class: 'fd-small fd-mono' });
  const heat = element('input', { type: 'range', id: 'fd-heat', min: '0.1', max: '3', step: '0.1', value: state.temperature });
  const heatShown = element('output', { class: 'fd-mono', for: 'fd-heat', text: state.temperature.toFixed(1) });
  const gaps = element('div', { class: 'guesses fd-gaps' });
  const moreGaps = element('p', { class: 'fd-small' });
  const summary = element('p', { class: 'summary', role: 'status' });
  const forged = element('div', { 'data-picture': '' });
  const own = element('div');
  const input = element('input', {
    type: 'text', class: 'fd-input', id: 'fd-word', maxlength: '64', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder: TEXT.fake,
  });
  const place = element('label', { class: 'fd-place', for: 'fd-word' });
  const notes = element('div', { class: 'fd-notes', role: 'status' });
  const board = element('div');
  const losses = element('div');
  const twinBox = element('div', { class: 'fd-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.every });
  const details = element('details', {}, element('summary', { text: TEXT.table }), twinBox);
  const code = makeCode();
  const files = makeSaver((what) => {
    const data = question({ ...values(), what });
    view.send('save', data);
    return data.rev;
  }, (text) => fail(text));
  const form = element('form', { class: 'fd-row fd-form' }, place, input,
    element('button', { type: 'submit', class: 'primary', id: 'fd-try', text: TEXT.try }));

  const machine = element('section', { class: 'card' },
    element('h3', { text: TEXT.first }),
    element('div', { class: 'fd-row' }, rollButton, rollNumber,
      element('label', { class: 'fd-heat', for: 'fd-heat' }, TEXT.heat, heat, heatShown), redrawButton, source),
    gaps, moreGaps);
  const judge = element('section', { class: 'card' },
    element('h3', { text: TEXT.second }), forged, summary);
  const body = element('div', { class: 'fd-body' }, element('div', { class: 'lab-two' }, machine, judge), who,
    namedFold('fd-turn', TEXT.third,
      element('p', { class: 'fd-small', text: TEXT.turn }),
      own, form, notes, board),
    namedFold('fd-loss', TEXT.losses, losses), about(TEXT.intro, TEXT.bars),
    element('div', { class: 'fd-save' }, ...files.buttons, details, code.root));
  const tries = element('div', { class: 'fd-row', role: 'group', 'aria-label': TEXT.tries },
      element('span', { class: 'fd-small', text: TEXT.trying }),
      ...TRIES.map((entry) => element('button', { type: 'button', class: 'quiet outlined', text: entry.name, onclick: () => attempt(entry) })));
  view.root.replaceChildren(element('div', { class: 'fd' },
    labHead(TEXT.title, tries), problem, none, body));

  const fail = (text) => {
    problem.hidden = !text;
    problem.textContent = text ?? '';
    if (text) view.root.dataset.state = 'error';
  };
  const send = asker(view, 'ask', () => fail(TEXT.silent));
  const values = () => ({
    roll: state.roll, seed: state.seed, temperature: state.temperature, detective: state.detective,
    fakes: [...state.fakes].map(([position, word]) => ({ position, word })),
  });

  function keep() {
    const { roll, seed, temperature, detective, fakes } = state;
    window.Cloze.keep('forge', {
      ...(roll !== 1 && { roll }), ...(seed !== 1 && { seed }), ...(temperature !== 1 && { temperature }),
      ...(detective && { detective }), ...(fakes.size && { fakes: [...fakes] }),
    });
  }

  function ask(counting = null) {
    const data = question(values());
    asked = { ...asked, rev: data.rev, text: data.text };
    state.counting = counting;
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  // --- what the visitor does ------------------------------------------------------------------

  function attempt(entry) {
    state.temperature = entry.temperature;
    keep();
    heat.value = entry.temperature;
    heatShown.textContent = entry.temperature.toFixed(1);
    state.pending = entry;
    change({ marks: new Map() });
    if (sentence.text === entry.text) hidePending();
    else write('sentence-text', entry.text);
  }

  function hidePending() {
    const entry = state.pending;
    if (!entry || sentence.text !== entry.text) return;
    state.pending = null;
    const found = sentence.tokens.filter((token) => token.text.toLowerCase() === entry.hide);
    if (found.length) window.Cloze.setHidden(found, true);
    if (entry.fake) { input.value = entry.fake; state.wish = entry.hide; }
  }

  rollButton.addEventListener('click', () => { state.roll = (state.roll + 1) % MOST_SEED; keep(); ask('generator'); });
  redrawButton.addEventListener('click', () => { state.seed = (state.seed + 1) % MOST_SEED; keep(); ask(); });
  heat.addEventListener('input', () => {
    state.temperature = Number(heat.value);
    heatShown.textContent = state.temperature.toFixed(1);
    keep();
    ask();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const word = input.value.trim();
    if (!word || state.picked === null) return;
    if (!state.fakes.has(state.picked) && state.fakes.size >= MOST_FAKES) return;
    state.fakes.set(state.picked, word);
    keep();
    ask('human');
  });

  function pick(position) {
    state.picked = position;
    drawOwn();
    input.focus();
  }

  // --- drawing ----------------------------------------------------------------------------------

  function facesOf(changes) {
    return answered.tokens.map((token) => {
      const changed = changes.get(token.position);
      if (!changed) return { position: token.position, text: token.text, kind: token.special ? 'special' : '' };
      return { position: token.position, ...changed };
    });
  }

  function drawForged() {
    const changes = new Map(answered.gaps.map((gap) => [gap.position, {
      text: gap.sample.display, kind: gap.lucky ? 'lucky' : 'forged',
      note: gap.lucky ? TEXT.lucky : gap.written ? TEXT.gap : t`was ${answered.tokens[gap.position].text}`,
    }]));
    forged.replaceChildren(strip(facesOf(changes), answered.after, answered.threshold, TEXT.forged),
      flatNote(answered.after) ?? '');
  }

  function drawOwn() {
    const { mine, tokens, before, threshold } = answered;
    const changes = new Map((mine?.fakes ?? []).filter((fake) => fake.id !== null).map((fake) => [fake.position, {
      text: fake.word, kind: 'mine', note: t`was ${tokens[fake.position].text}`,
    }]));
    own.replaceChildren(strip(facesOf(changes), mine?.verdicts ?? before, threshold, TEXT.own, pick),
      mine ? flatNote(mine.verdicts) ?? '' : '');
    const chosen = tokens[state.picked];
    own.querySelector(`[data-position="${state.picked}"]`)?.classList.add('picked');
    place.textContent = chosen ? t`Instead of “${chosen.text}”` : TEXT.choose;
    notes.replaceChildren(...(mine?.fakes ?? []).map((fake) => {
      const chance = mine.verdicts[fake.position];
      const said = message(fake.note) ?? (chance < threshold
        ? t`“${fake.word}” fools it (${percent(chance)}).` : t`“${fake.word}” is noticed (${percent(chance)}).`);
      return element('p', { 'data-fooled': fake.id === null ? '' : String(chance < threshold) }, element('span', { text: said }),
        element('button', {
          type: 'button', class: 'quiet', text: TEXT.undo, 'aria-label': t`Undo ${fake.word}`,
          onclick: () => { state.fakes.delete(fake.position); keep(); ask(); },
        }));
    }));
  }

  function tally(side) {
    const { after, gaps: all, mine, chosen, tokens, threshold } = answered;
    const context = JSON.stringify([chosen.name, tokens.map(({ id }) => id)]);
    if (side === 'human') {
      const fakes = (mine?.fakes ?? []).filter((fake) => fake.id !== null);
      count(side, fakes.map((fake) => ({
        key: `h ${context} ${fake.position} ${fake.id}`, fooled: mine.verdicts[fake.position] < threshold,
      })));
      return;
    }
    const filled = [state.roll, ...all.map((gap) => [gap.position, gap.sample.id])];
    count(side, all.filter((gap) => !gap.lucky && !gap.written).map((gap) => ({
      key: `g ${context} ${JSON.stringify(filled)} ${gap.position}`, fooled: after[gap.position] < threshold,
    })));
  }

  const drawBoard = () => board.replaceChildren(scoreBoard(drawBoard));
  const drawTwin = () => { if (details.open && answered) twinBox.replaceChildren(twin(answered)); };
  details.addEventListener('toggle', drawTwin);

  function drawWho() {
    const { detectives, chosen, generator } = answered;
    const label = element('span', { class: 'fd-small', text: generator
      ? t`${chosen.title} judges, ${generator} forges.` : t`${chosen.title} judges. Its generator is not installed, so only you can forge.` });
    who.replaceChildren(...(detectives.length > 1 ? detectives.map(({ name, title }) => element('button', {
      type: 'button', class: 'quiet outlined', role: 'radio', 'aria-checked': String(name === chosen.name), text: window.Cloze.modelTitle(title),
      onclick: () => { state.detective = name; state.fakes.clear(); keep(); ask(); },
    })) : []), label);
    if (answered.truncated) who.append(element('p', { class: 'fd-small', text: t`The text is long: this tab uses its first ${answered.tokens.filter((token) => !token.special).length} pieces.` }));
    const unreadBy = (tokens) => [...new Set(tokens.filter((token) => token.unknown).map((token) => token.text))];
    const unread = unreadBy(answered.tokens);
    // The sentence bar says the same of its own model.
    if (unread.length && unread.join() !== unreadBy(sentence.tokens).join()) {
      who.append(element('p', { class: 'fd-small', text: t`${chosen.title} has no piece for ${listed(unread.slice(0, 6))} and reads [UNK] instead.` }));
    }
  }

  function draw() {
    const some = answered.gaps.length > 0;
    drawWho();
    machine.hidden = judge.hidden = answered.after === null;
    rollButton.disabled = !some;
    rollNumber.textContent = t`roll ${state.roll}`;
    redrawButton.hidden = !answered.drawn;
    source.textContent = answered.drawn
      ? t`${answered.gaps.length} of ${answered.tokens.filter((token) => !token.special).length} pieces hidden by a draw of 15 % (seed ${state.seed}). Click words above the tabs to hide others.`
      : TEXT.marked;
    gaps.replaceChildren(...answered.gaps.slice(0, FIRST_CARDS).map((gap) => gapCard(gap, answered.tokens[gap.position])));
    gaps.hidden = !some;
    gaps.dir = window.Cloze.direction(sentence.text);
    for (const card of gaps.children) card.dir = 'ltr';
    moreGaps.textContent = answered.gaps.length > FIRST_CARDS ? t`The first ${FIRST_CARDS} of ${answered.gaps.length} gaps are shown.` : '';
    summary.textContent = answered.summary.map(message).join(language === 'zh' ? '' : ' ');
    if (answered.after) drawForged();
    losses.closest('.card').hidden = !answered.loss;
    if (answered.loss) losses.replaceChildren(lossPicture(answered));
    if (state.wish) {
      state.picked = answered.tokens.find((token) => token.text.toLowerCase() === state.wish)?.position ?? null;
      state.wish = null;
    }
    if (!answered.tokens[state.picked] || answered.tokens[state.picked].special) state.picked = null;
    drawOwn();
    drawBoard();
    drawTwin();
    code.show(answered.code);
  }

  onSentence(view, () => {
    hidePending();
    const marks = [...sentence.marks.keys()].sort((a, b) => a - b);
    const key = JSON.stringify([sentence.text, sentence.model, marks]);
    if ((!sentence.text && !sentence.error) || key === asked.key) return;
    if (sentence.error) { fail(message(sentence.error)); body.hidden = true; asked = { rev: 0, key }; return; }
    if (linked && sentence.text === linked) linked = null;
    else if (!linked && answered && sentence.text !== answered.text && state.fakes.size) {
      state.fakes.clear();
      keep();
    }
    if (answered && sentence.text !== answered.text) {
      state.picked = null;
      if (!state.wish) input.value = '';
    }
    asked.key = key;
    ask();
  });

  view.onValue(() => {
    const answer = view.value;
    if (!answer || files.take(answer) || answer.rev !== asked.rev) return;
    fail(message(answer.error));
    view.root.dataset.rev = answer.rev;
    none.hidden = answer.kind !== 'missing';
    tries.hidden = !none.hidden;
    body.hidden = Boolean(answer.error) || answer.kind === 'missing';
    if (answer.kind === 'missing') {
      none.replaceChildren(missing());
      view.root.dataset.state = 'missing';
    }
    if (body.hidden) return;
    answered = { ...answer, text: asked.text }; // a hidden tab does not follow the sentence
    if (state.counting) tally(state.counting);
    state.counting = null;
    draw();
    view.root.dataset.state = 'ready';
  });
}
