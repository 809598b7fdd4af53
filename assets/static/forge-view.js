// The Forge tab: a generator fills gaps, a discriminator judges every token, the visitor forges too.
import { strip, gapCard, lossPicture, scoreBoard, count, percent } from './forge-parts.js';

const { element, sentence, change, onSentence, question, asker, write } = window.Cloze;
const TEXT = {
  title: 'Who wrote this word?',
  intro: 'ELECTRA and DeBERTa v3 learn as detectives: a small generator fills hidden words with samples of its own, and the discriminator '
    + 'says for every token whether it was replaced. The generator is kept small on purpose: a perfect forger would leave nothing to learn from.',
  silent: 'The server does not answer. Is it still running?',
  missing: 'No model that judges tokens is installed here.',
  how: 'A discriminator and its generator come from one training run: open the Train tab and choose ELECTRA, or run',
  command: 'python -m core_models.zoo build electra-mini',
  after: 'Both are then offered here: a discriminator NAME belongs to the generator NAME-generator.',
};
const TRIES = [
  { name: 'Fool it', text: 'The capital of France is Paris .', hide: 'paris', fake: 'london', temperature: 1 },
  { name: 'A hot generator', text: 'The heart pumps blood through the body.', hide: 'blood', temperature: 2.5 },
  { name: 'Lucky draws', text: 'In winter the lake is covered with snow.', hide: 'is', temperature: 0.3 },
];
const FIRST_CARDS = 12;
const FLAT = 0.02; // verdicts this close together say nothing about single words

function loadStyle() {
  if (document.querySelector('link[href="/cloze/forge.css"]')) return null;
  const link = element('link', { rel: 'stylesheet', href: '/cloze/forge.css' });
  const loaded = new Promise((done) => { link.onload = done; link.onerror = done; });
  document.head.append(link);
  return loaded;
}

function missing() {
  return element('div', { class: 'card fd-missing' },
    element('h3', { text: TEXT.missing }),
    element('p', { text: TEXT.how }),
    element('pre', { class: 'code', tabindex: '0', text: TEXT.command }),
    element('p', { text: TEXT.after }));
}

function flatNote(chances) {
  const [least, most] = [Math.min(...chances), Math.max(...chances)];
  if (chances.length < 3 || most - least >= FLAT) return null;
  return element('p', { class: 'fd-flat', text: `It says nearly the same of every token (${(least * 100).toFixed(1)} % to `
    + `${(most * 100).toFixed(1)} %): this model cannot yet tell one word from another.` });
}

function twin(answer) {
  const gaps = new Map(answer.gaps.map((gap) => [gap.position, gap]));
  const cell = (value) => element('td', { text: value === undefined || value === null ? '–' : percent(value) });
  return element('table', {},
    element('caption', { text: 'Probability “replaced” of every token' }),
    element('thead', {}, element('tr', {}, ...['Token', 'Untouched', 'Drawn', 'Forged', 'With your words'].map((text) => element('th', { scope: 'col', text })))),
    element('tbody', {}, ...answer.tokens.map(({ position, text }) => element('tr', {},
      element('th', { scope: 'row', text }), cell(answer.before[position]),
      element('td', { text: gaps.get(position)?.sample.display ?? '' }),
      cell(answer.after?.[position]), cell(answer.mine?.verdicts[position])))));
}

export async function mount(view) {
  await loadStyle();
  const state = { roll: 1, seed: 1, temperature: 1, fakes: new Map(), picked: null, detective: null, counting: null, pending: null };
  let asked = { rev: 0, key: '' };
  let answered = null;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const none = element('div', { hidden: true });
  const who = element('div', { class: 'fd-row fd-who', role: 'radiogroup', 'aria-label': 'Discriminator' });
  const source = element('span', { class: 'fd-small' });
  const redrawButton = element('button', { type: 'button', class: 'quiet outlined', id: 'fd-draw', text: 'Other positions' });
  const rollButton = element('button', { type: 'button', class: 'primary', id: 'fd-roll', text: 'Roll again' });
  const rollNumber = element('span', { class: 'fd-small fd-mono' });
  const heat = element('input', { type: 'range', id: 'fd-heat', min: '0.1', max: '3', step: '0.1', value: '1' });
  const heatShown = element('output', { class: 'fd-mono', for: 'fd-heat', text: '1.0' });
  const gaps = element('div', { class: 'guesses fd-gaps' });
  const moreGaps = element('p', { class: 'fd-small' });
  const summary = element('p', { class: 'summary', role: 'status' });
  const forged = element('div');
  const own = element('div');
  const input = element('input', {
    type: 'text', class: 'fd-input', id: 'fd-word', maxlength: '64', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder: 'your fake word',
  });
  const place = element('label', { class: 'fd-place', for: 'fd-word' });
  const notes = element('div', { class: 'fd-notes', role: 'status' });
  const board = element('div');
  const losses = element('div');
  const twinBox = element('div', { class: 'fd-scroll', tabindex: '0', role: 'region', 'aria-label': 'Every token' });
  const details = element('details', {}, element('summary', { text: 'The table' }), twinBox);
  const code = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: 'Copy' });
  const save = (what, text) => element('button', {
    type: 'button', class: 'quiet outlined', 'data-save': what, text, onclick: () => view.send('save', question({ ...values(), what })),
  });
  const form = element('form', { class: 'fd-row fd-form' }, place, input,
    element('button', { type: 'submit', class: 'primary', id: 'fd-try', text: 'Try to fool it' }));

  const machine = element('section', { class: 'card' },
    element('h3', { text: '1. The generator forges' }),
    element('div', { class: 'fd-row' }, rollButton, rollNumber,
      element('label', { class: 'fd-heat', for: 'fd-heat' }, 'Temperature', heat, heatShown), redrawButton, source),
    gaps, moreGaps);
  const judge = element('section', { class: 'card' },
    element('h3', { text: '2. The discriminator judges every token' }), summary, forged,
    element('p', { class: 'fd-small', text: 'Bars show the probability “replaced”; the dashed line is 50 %, where it would accuse.' }));
  const body = element('div', { class: 'fd-body' }, who, machine, judge,
    element('section', { class: 'card' },
      element('h3', { text: '3. Your turn' }),
      element('p', { class: 'fd-small', text: 'Choose a word of the true sentence, type another one and see whether it is noticed.' }),
      own, form, notes, board),
    element('section', { class: 'card', id: 'fd-loss' },
      element('h3', { text: 'How many positions teach' }), losses),
    element('div', { class: 'fd-save' }, save('svg', 'Save as SVG'), save('csv', 'Save as CSV'), details,
      element('details', {}, element('summary', { text: 'The code that recomputes this' }), code, copy)));
  const tries = element('div', { class: 'fd-row', role: 'group', 'aria-label': 'What to try' },
      element('span', { class: 'fd-small', text: 'Try' }),
      ...TRIES.map((entry) => element('button', { type: 'button', class: 'quiet outlined', text: entry.name, onclick: () => attempt(entry) })));
  view.root.replaceChildren(element('div', { class: 'fd' },
    element('h2', { text: TEXT.title }), element('p', { class: 'fd-intro', text: TEXT.intro }),
    tries, problem, none, body));

  const fail = (message) => {
    problem.hidden = !message;
    problem.textContent = message ?? '';
    if (message) view.root.dataset.state = 'error';
  };
  const send = asker(view, 'ask', () => fail(TEXT.silent));
  const values = () => ({
    roll: state.roll, seed: state.seed, temperature: state.temperature, detective: state.detective,
    fakes: [...state.fakes].map(([position, word]) => ({ position, word })),
  });

  function ask(counting = null) {
    const data = question(values());
    asked = { ...asked, rev: data.rev };
    state.counting = counting;
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    send(data);
  }

  // --- what the visitor does ------------------------------------------------------------------

  function attempt(entry) {
    state.temperature = entry.temperature;
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

  rollButton.addEventListener('click', () => { state.roll += 1; ask('generator'); });
  redrawButton.addEventListener('click', () => { state.seed += 1; ask(); });
  heat.addEventListener('input', () => {
    state.temperature = Number(heat.value);
    heatShown.textContent = state.temperature.toFixed(1);
    ask();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const word = input.value.trim();
    if (!word || state.picked === null) return;
    if (!state.fakes.has(state.picked) && state.fakes.size >= 16) return;
    state.fakes.set(state.picked, word);
    ask('human');
  });
  copy.addEventListener('click', async () => {
    const { copyText } = await import('./attention-export.js');
    copy.textContent = await copyText(code.textContent, code) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
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
      note: gap.lucky ? 'lucky: real' : gap.written ? 'gap' : `was ${answered.tokens[gap.position].text}`,
    }]));
    forged.replaceChildren(strip(facesOf(changes), answered.after, answered.threshold, 'The forged sentence'),
      flatNote(answered.after) ?? '');
  }

  function drawOwn() {
    const { mine, tokens, before, threshold } = answered;
    const changes = new Map((mine?.fakes ?? []).filter((fake) => fake.id !== null).map((fake) => [fake.position, {
      text: fake.word, kind: 'mine', note: `was ${tokens[fake.position].text}`,
    }]));
    own.replaceChildren(strip(facesOf(changes), mine?.verdicts ?? before, threshold, 'Your sentence: choose a word', pick),
      mine ? flatNote(mine.verdicts) ?? '' : '');
    const chosen = tokens[state.picked];
    own.querySelector(`[data-position="${state.picked}"]`)?.classList.add('picked');
    place.replaceChildren(...(chosen ? ['Instead of “', element('bdi', { text: chosen.text }), '”'] : ['Choose a word above']));
    notes.replaceChildren(...(mine?.fakes ?? []).map((fake) => {
      const chance = mine.verdicts[fake.position];
      const said = fake.note ?? (chance < threshold
        ? `“${fake.word}” fools it (${percent(chance)}).` : `“${fake.word}” is noticed (${percent(chance)}).`);
      return element('p', { 'data-fooled': fake.id === null ? '' : String(chance < threshold) }, element('span', { text: said }),
        element('button', {
          type: 'button', class: 'quiet', text: 'Undo', 'aria-label': `Undo ${fake.word}`,
          onclick: () => { state.fakes.delete(fake.position); ask(); },
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
      ? `${chosen.title} judges, ${generator} forges.` : `${chosen.title} judges. Its generator is not installed, so only you can forge.` });
    who.replaceChildren(...(detectives.length > 1 ? detectives.map(({ name, title }) => element('button', {
      type: 'button', class: 'quiet outlined', role: 'radio', 'aria-checked': String(name === chosen.name), text: title,
      onclick: () => { state.detective = name; state.fakes.clear(); ask(); },
    })) : []), label);
  }

  function draw() {
    const some = answered.gaps.length > 0;
    drawWho();
    machine.hidden = judge.hidden = answered.after === null;
    rollButton.disabled = !some;
    rollNumber.textContent = `roll ${state.roll}`;
    redrawButton.hidden = !answered.drawn;
    source.textContent = answered.drawn
      ? `${answered.gaps.length} of ${answered.tokens.filter((token) => !token.special).length} words hidden by a draw of 15 % (seed ${state.seed}). Click words above the tabs to hide others.`
      : 'Hidden: the words you marked above the tabs.';
    gaps.replaceChildren(...answered.gaps.slice(0, FIRST_CARDS).map((gap) => gapCard(gap, answered.tokens[gap.position])));
    gaps.hidden = !some;
    moreGaps.textContent = answered.gaps.length > FIRST_CARDS ? `The first ${FIRST_CARDS} of ${answered.gaps.length} gaps are shown.` : '';
    summary.textContent = answered.summary;
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
    code.textContent = answered.code;
  }

  onSentence(view, () => {
    hidePending();
    const marks = [...sentence.marks.keys()].sort((a, b) => a - b);
    const key = JSON.stringify([sentence.text, sentence.model, marks]);
    if (!sentence.text || key === asked.key) return;
    if (sentence.error) { fail(sentence.error); body.hidden = true; asked = { rev: 0, key }; return; }
    if (answered && sentence.text !== answered.text) {
      state.fakes.clear();
      state.picked = null;
      if (!state.wish) input.value = '';
    }
    asked.key = key;
    ask();
  });

  view.onValue(async () => {
    const answer = view.value;
    if (!answer) return;
    if (answer.kind === 'file') {
      const { download } = await import('./attention-export.js');
      download(answer.name, answer.text, answer.type);
      return;
    }
    if (answer.rev !== asked.rev) return;
    fail(answer.error);
    view.root.dataset.rev = answer.rev;
    none.hidden = answer.kind !== 'missing';
    tries.hidden = !none.hidden;
    body.hidden = Boolean(answer.error) || answer.kind === 'missing';
    if (answer.kind === 'missing') {
      none.replaceChildren(missing());
      view.root.dataset.state = 'missing';
    }
    if (body.hidden) return;
    answered = { ...answer, text: sentence.text };
    if (state.counting) tally(state.counting);
    state.counting = null;
    draw();
    view.root.dataset.state = 'ready';
  });
}
