// The Meaning tab: one word in several sentences, its way through the layers, its neighbours.
import { about, labHead, namedFold } from '../../parts/layout.js';
import { makeFigure } from '../../parts/figure.js';
import { makeCode, wholeOr } from '../../parts/lab-files.js';
import { EXAMPLES, TEXT, at, badge, cosineTable, layerName, signed } from './page.js';

const { element, sentence, onSentence, question, asker, t, message } = window.Cloze;
const REST = 350; // milliseconds after the last key
const AGAIN = 700; // milliseconds between looks at an index that is being built
const STEP = 900; // milliseconds of one layer while it plays
const [LEAST, MOST, LONGEST, LONGEST_WORD] = [2, 8, 300, 40];

// What the address holds; whatever does not fit is left out.
function kept() {
  const found = window.Cloze.kept('meaning') ?? {};
  const example = EXAMPLES.find(({ name }) => name === found.example) ?? EXAMPLES[0];
  const texts = Array.isArray(found.sentences) && found.sentences.length >= LEAST && found.sentences.length <= MOST
    && found.sentences.every((text) => typeof text === 'string' && text.length <= LONGEST);
  const own = texts && typeof found.word === 'string' && found.word.length <= LONGEST_WORD;
  return {
    word: own ? found.word : example.name,
    sentences: own ? [...found.sentences] : [...example.sentences],
    layer: wholeOr(found.layer, 0, 1000, null),
    way: found.way === 'raw' ? 'raw' : 'centred',
    which: wholeOr(found.which, 0, MOST - 1, 0),
    others: found.others === true,
  };
}

const exampleOf = (state) => EXAMPLES.find(({ name, sentences }) => name === state.word && JSON.stringify(sentences) === JSON.stringify(state.sentences));
const languageOf = ({ name }) => (/\p{Script=Han}/u.test(name) ? 'zh' : 'en');

function keep(state) {
  const example = exampleOf(state);
  const values = example ? (example === EXAMPLES[0] ? {} : { example: example.name }) : { word: state.word, sentences: state.sentences };
  if (state.layer !== null) values.layer = state.layer;
  if (state.way !== 'centred') values.way = state.way;
  if (state.which) values.which = state.which;
  if (state.others) values.others = true;
  window.Cloze.keep('meaning', values);
}

export async function mount(view) {
  const state = kept();
  let asked = { rev: 0, model: null };
  let nearRev = 0;
  let answer = null;
  let typing = 0;
  let waiting = 0;
  let playing = 0;

  // --- parts ------------------------------------------------------------------------------------

  const region = (label) => element('div', { class: 'mn-scroll', tabindex: '0', role: 'region', 'aria-label': label });
  const note = (text = '') => element('p', { class: 'mn-note', text });
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const word = element('input', { type: 'text', id: 'mn-word', class: 'mn-input mn-word', maxlength: LONGEST_WORD, autocomplete: 'off', spellcheck: 'false' });
  const rows = element('ol', { class: 'mn-rows' });
  const add = element('button', { type: 'button', class: 'quiet outlined', id: 'mn-add', text: TEXT.add });
  const take = element('button', { type: 'button', class: 'quiet outlined', id: 'mn-take', text: TEXT.fromBar });
  const cut = note();
  const slider = element('input', { type: 'range', id: 'mn-layer', min: 0, step: 1 });
  const layerText = element('output', { for: 'mn-layer', class: 'mn-layer' });
  const play = element('button', { type: 'button', class: 'primary', id: 'mn-play', text: TEXT.play });
  const ways = element('div', { class: 'mn-row', role: 'radiogroup', 'aria-label': TEXT.way });
  const path = makeFigure({ name: 'cloze-meaning' });
  const picture = element('div', { 'data-picture': '' }, path.root);
  const wayNote = note();
  const said = element('p', { class: 'summary', role: 'status' });
  const cosines = region(TEXT.cosineTable);
  const chart = makeFigure({ name: 'cloze-meaning-likeness' });
  const which = element('div', { class: 'mn-row', role: 'radiogroup', 'aria-label': TEXT.nearOf });
  const others = element('button', { type: 'button', class: 'switch', role: 'switch', id: 'mn-others' }, element('span', { class: 'track', 'aria-hidden': 'true' }), element('span', { text: TEXT.others }));
  const bar = element('progress', { max: 1, value: 0, 'aria-label': TEXT.progress });
  const building = element('div', { class: 'mn-building', hidden: true }, note(TEXT.building), bar);
  const nearBars = makeFigure({ name: 'cloze-meaning-neighbours' });
  const near = element('div', {}, nearBars.root);
  const nearNote = note();
  const code = makeCode();
  const sheet = namedFold('mn-edit', t`The word and its sentences`, element('label', { class: 'mn-label', for: 'mn-word' }, element('span', { text: TEXT.word }), word),
    rows, element('div', { class: 'mn-row' }, add, take), cut);
  const results = element('div', { class: 'mn-body', hidden: true },
    element('section', { class: 'card', id: 'mn-path' }, element('div', { class: 'mn-row' }, play, element('label', { class: 'mn-label', for: 'mn-layer' }, element('span', { text: TEXT.layer }), slider), layerText, ways),
      picture, wayNote),
    namedFold('mn-alike', TEXT.cosines, said, cosines, note(TEXT.both), chart.root, note(TEXT.crowding)),
    namedFold('mn-near', TEXT.near, element('div', { class: 'mn-row' }, element('span', { class: 'mn-note', text: TEXT.nearOf }), which, others), building, near, nearNote), code.root);
  const tries = element('div', { class: 'mn-row', role: 'group', 'aria-label': TEXT.tries }, element('span', { class: 'mn-note', text: TEXT.attempt }),
    ...EXAMPLES.map(({ name, sentences }) => element('button', {
      type: 'button', class: 'quiet outlined', 'data-try': name, text: name, onclick: () => edit({ word: name, sentences: [...sentences], which: 0 }),
    })));
  view.root.replaceChildren(element('div', { class: 'mn' }, labHead(TEXT.title, tries), problem, results, sheet, about(TEXT.intro, TEXT.pathNote)));

  // --- questions --------------------------------------------------------------------------------

  function fail(text, stop = false) {
    problem.hidden = !text;
    problem.textContent = text ?? '';
    if (stop) results.hidden = true;
    if (text) view.root.dataset.state = 'error';
  }
  const layerNow = () => Math.min(state.layer ?? answer.steps + 1, answer.steps + 1);
  const ours = (extra = {}) => question({ word: state.word, sentences: state.sentences, way: state.way, layer: answer ? layerNow() : 0, ...extra });
  const sendAsk = asker(view, 'ask', () => fail(TEXT.silent));
  const sendNear = asker(view, 'near', () => {});

  function ask() {
    if (!sentence.model) return;
    const data = ours();
    asked = { rev: data.rev, model: sentence.model };
    view.root.dataset.asked = data.rev;
    view.root.dataset.state = 'waiting';
    sendAsk(data);
  }

  function askNear() {
    clearTimeout(waiting);
    if (!answer || !view.root.isConnected) return;
    if (view.root.offsetParent === null) { waiting = setTimeout(askNear, AGAIN); return; }
    const data = ours({ which: state.which, centred: state.way === 'centred', others: state.others });
    nearRev = data.rev;
    near.dataset.asked = data.rev;
    sendNear(data);
  }

  // --- what the visitor does ------------------------------------------------------------------

  function edit(patch) {
    Object.assign(state, patch);
    drawRows();
    keep(state);
    ask();
  }

  function typed() {
    clearTimeout(typing);
    typing = setTimeout(() => { keep(state); ask(); }, REST);
  }

  // An example that nobody has changed gives way to one that the model can read, unless a link asks for it.
  function suit() {
    const shown = exampleOf(state);
    const language = sentence.card?.language;
    if (!shown || !language || languageOf(shown) === language || (!asked.model && window.Cloze.kept('meaning')?.example)) return;
    const other = EXAMPLES.find((example) => languageOf(example) === language);
    if (!other) return;
    Object.assign(state, { word: other.name, sentences: [...other.sentences], which: 0 });
    drawRows();
    keep(state);
  }

  function drawRows() {
    word.value = state.word;
    rows.replaceChildren(...state.sentences.map((text, n) => {
      // As tall as its text: on a narrow screen one line would end before the very word.
      const input = element('textarea', { class: 'mn-input mn-sentence', rows: 1, spellcheck: 'false', maxlength: LONGEST, 'aria-label': t`Sentence ${n + 1}`, autocomplete: 'off', dir: 'auto' });
      input.value = text;
      input.addEventListener('input', () => { state.sentences[n] = input.value.replace(/\s*\n\s*/g, ' '); typed(); });
      input.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.isComposing) event.preventDefault(); });
      const remove = element('button', {
        type: 'button', class: 'quiet square', 'aria-label': t`Remove sentence ${n + 1}`, title: TEXT.remove, text: '×', disabled: state.sentences.length <= LEAST,
        onclick: () => edit({ sentences: state.sentences.filter((_, each) => each !== n), which: 0 }),
      });
      return element('li', { 'data-sentence': n }, badge(n), input, remove, element('small', { class: 'mn-missing' }));
    }));
    add.disabled = take.disabled = state.sentences.length >= MOST;
  }

  function more(text) {
    state.sentences.push(text);
    drawRows();
    rows.lastElementChild.querySelector('textarea').focus();
    if (text) typed();
  }

  function toLayer(layer) {
    state.layer = layer;
    keep(state);
    drawLayer();
    clearTimeout(waiting);
    if (playing) waiting = setTimeout(askNear, STEP);
    else askNear(); // one question at a time: a drag asks for where it is by then
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    play.textContent = TEXT.play;
  }

  play.addEventListener('click', () => {
    if (playing) { stop(); return; }
    play.textContent = TEXT.pause;
    toLayer(0);
    playing = setInterval(() => {
      if (layerNow() >= answer.steps + 1 || view.root.offsetParent === null) stop();
      else toLayer(layerNow() + 1);
    }, STEP);
  });
  slider.addEventListener('input', () => { stop(); toLayer(Number(slider.value)); });
  word.addEventListener('input', () => { state.word = word.value; typed(); });
  add.addEventListener('click', () => more(''));
  take.addEventListener('click', () => more(sentence.text.slice(0, LONGEST)));
  others.addEventListener('click', () => { state.others = !state.others; keep(state); drawNearControls(); askNear(); });

  // --- drawing ----------------------------------------------------------------------------------

  function radio(group, entries, value, chosen) {
    const focused = group.contains(document.activeElement) ? document.activeElement.dataset.value : null;
    group.replaceChildren(...entries.map(([name, content]) => element('button', {
      type: 'button', class: 'quiet outlined', role: 'radio', 'aria-checked': String(name === value), 'data-value': name, onclick: () => chosen(name),
    }, content)));
    if (focused !== null) group.querySelector(`[data-value="${focused}"]`)?.focus();
  }

  function drawNearControls() {
    others.setAttribute('aria-checked', String(state.others));
    if (!answer.used.some(({ number }) => number === state.which)) state.which = answer.used[0].number;
    radio(which, answer.used.map(({ number }) => [number, badge(number)]), state.which, (number) => { state.which = number; keep(state); drawNearControls(); askNear(); });
  }

  function drawWay() {
    radio(ways, Object.entries(TEXT.ways), state.way, (name) => { state.way = name; keep(state); drawWay(); askNear(); });
    wayNote.textContent = TEXT.wayNote[state.way];
    drawLayer();
  }

  function drawLayer() {
    const layer = layerNow();
    slider.value = layer;
    layerText.textContent = layerName(layer);
    slider.setAttribute('aria-valuetext', layerName(layer));
    const { paths, likeness } = answer.figures[state.way];
    path.show(at(paths, layer));
    chart.show(at(likeness, layer));
    cosines.replaceChildren(cosineTable(answer, layer));
    const table = answer.cosines.centred[layer];
    const pairs = answer.used.flatMap((a, r) => answer.used.slice(r + 1).map((b, c) => ({ a: a.number + 1, b: b.number + 1, value: table[r][r + 1 + c] })))
      .sort((a, b) => b.value - a.value);
    const [first, last] = [pairs[0], pairs.at(-1)];
    said.textContent = layer === 0 || pairs.length < 2 || last.value > 0.9999 ? t`${layerName(layer)}: one vector for all of them.`
      : t`${layerName(layer)}, mean subtracted: sentences ${first.a} and ${first.b} are most alike (${signed(first.value)}), ${last.a} and ${last.b} least (${signed(last.value)}).`;
  }

  function draw() {
    results.hidden = false;
    const held = new Map(answer.used.map((each) => [each.number, each]));
    for (const row of rows.children) {
      const n = Number(row.dataset.sentence);
      row.querySelector('.mn-missing').textContent = held.has(n) || !state.sentences[n].trim() ? '' : TEXT.missing;
    }
    const several = answer.used.filter(({ pieces }) => pieces.length > 1);
    cut.replaceChildren(...(several.length ? [`${TEXT.several} `, element('bdi', { class: 'mn-pieces', text: several[0].pieces.join(' · ') })] : []));
    slider.max = answer.steps + 1;
    drawNearControls();
    drawWay();
    code.show(answer.code);
  }

  onSentence(view, () => {
    if (!sentence.model || sentence.model === asked.model) return;
    suit();
    ask();
  });

  view.onValue(() => {
    const found = view.value;
    if (!found) return;
    if (found.rev === nearRev) {
      building.hidden = found.kind !== 'building';
      near.hidden = found.kind === 'building';
      if (found.kind === 'building') {
        bar.value = found.progress;
        nearNote.textContent = '';
        waiting = setTimeout(askNear, AGAIN);
        return;
      }
      near.dataset.rev = found.rev;
      nearBars.show(found.figure ?? null);
      if (found.error) { nearNote.textContent = message(found.error); return; }
      nearNote.textContent = !found.figure ? TEXT.noNear : t`${layerName(found.layer)}: looked up among ${found.count} words of the Primer, drawn with a fixed seed; ${found.same} of them are the same word.`;
      return;
    }
    if (found.rev !== asked.rev) return;
    view.root.dataset.rev = found.rev;
    fail(found.error && message(found.error), Boolean(found.error));
    if (found.error) { answer = null; stop(); return; }
    answer = found;
    draw();
    view.root.dataset.state = 'ready';
    askNear();
  });
  drawRows();
}
