// The Attention tab: state, requests and the wiring of its views.
//
// Asks Python by the event `ask` and draws its answer (view.value): the tokens, the overview and the selected
// head, or another head of the same sentence alone. `export` asks for a file. Every question carries `rev`;
// answers to older ones are dropped. What visitors wrote reaches the page as textContent only.
// The other modes (attention-lab.js) ask for themselves, after the overview of the sentence is there.

import { MEAN, cellIndex, cellName, decodeHead, largest, percent, shownPositions, toBytes } from './data.js';
import { copyText } from '../../parts/download.js';
import { MOST_NUMBERS, createHeat, fillTable } from './heat.js';
import { createLines } from './lines.js';
import { createControls } from './modes.js';
import { createOverview } from './overview.js';
import { FOR_FILES, readPalette } from '../../parts/paint.js';
import { build } from './skeleton.js';
import { keep, restore, state } from './state.js';
import { downloadDrawing, downloadFile, downloadPicture, titledCanvas } from '../../parts/export.js';

const { Cloze } = window;
const { t, texts, message } = Cloze;
const PATIENCE = 250; // milliseconds before the page says that it waits
const WIDE = ['rollout', 'compare']; // modes without the overview
const TEXT = texts({
  rest: 'Rows look at columns.', // under the heat map when nothing is pointed at
  silent: 'No answer has come yet. It will appear here when it does; the machine may be busy.',
  noText: 'There is no text yet. Type a sentence or pick an example.',
  strongest: 'strongest',
  ownScale: 'Square-root scale; each map runs to its own strongest link, so maps cannot be compared.',
  oneScale: 'Square-root scale, the same for all maps.',
  lines: 'Lines from 1 % up. Point at a token for its own numbers, click to hold it.',
  printed: 'Printed numbers are percent.',
  rounded: 'Numbers of long sentences are rounded to 0.002 %.',
  copied: 'Code copied', selected: 'The code is selected; copy it with your keyboard',
  broken: 'This browser cannot draw the picture; save it as SVG.',
});

export function mount(view) {
  const { root } = view;
  restore();
  build(root);
  const part = (role) => root.querySelector(`[data-role="${role}"]`);
  const now = {
    rev: 0, // of the last question
    asked: '', // the sentence of the last question
    drawn: '', // the sentence on the screen
    answer: null, // its tokens and overview
    head: null, // the numbers on the screen
    width: 0,
  };
  let palette = null;
  let waiting = 0;
  let lab = null; // the other modes, loaded when one is first opened
  state.fixed = state.layer !== 'auto';

  const overview = createOverview(part('overview'), { onSelect: (cell) => pick(cell.layer, cell.head) });
  const lines = createLines(part('lines'), { onToken: showSentence });
  const heat = createHeat(part('heat'), {
    onCell: (words, token) => {
      part('cell').textContent = words ?? TEXT.rest;
      lines.isolate(token ?? lines.held());
    },
  });
  const controls = createControls(root, { onMode: openMode, onPair: (whole) => { ask(whole); if (!whole) lab?.refresh(); } });

  // ---- asking ----------------------------------------------------------------------------------

  const visible = () => root.getClientRects().length > 0;
  const selection = () => ({
    layer: state.layer, head: state.headNumber, hide: state.hide, second: state.second, part: state.second ? state.part : 'all',
  });

  const sendAsk = Cloze.asker(view, 'ask', () => fail(TEXT.silent));
  const keyOf = ({ text, model, marks }) => JSON.stringify([text, model, marks, state.second]);

  /** Ask for the sentence. `whole` also when only the head changed. */
  function ask(whole) {
    if (!Cloze.sentence.tokens.length) return;
    const question = Cloze.question(selection());
    now.rev = question.rev;
    now.asked = keyOf(question);
    clearTimeout(waiting);
    root.setAttribute('aria-busy', 'true');
    waiting = setTimeout(() => root.classList.add('attn-waiting'), PATIENCE);
    sendAsk({ ...question, whole: whole || now.asked !== now.drawn });
  }

  function onSentence(sentence) {
    if (!sentence.tokens.length) {
      now.rev = null; // the answer to an earlier sentence must not replace the message
      now.asked = '';
      fail(message(sentence.error) ?? TEXT.noText);
      return;
    }
    if (keyOf(Cloze.question()) === now.asked) return; // only the look of the chips changed
    if (now.answer && sentence.model !== now.answer.model) forgetHead();
    ask(true);
  }

  function forgetHead() {
    Object.assign(state, { layer: 'auto', headNumber: 'auto', fixed: false });
  }

  function pick(layer, head) {
    // The heads on the screen may be those of the model before.
    if (now.answer?.model !== Cloze.sentence.model) return;
    if (state.mode !== 'heads' && lab) { lab.onCell({ layer, head }); return; }
    Object.assign(state, { layer, headNumber: head, fixed: true });
    keep();
    overview.select(layer, head);
    ask(false);
  }

  function save(kind, picture = false, shows = 'lines') {
    const token = lines.current();
    const question = Cloze.question(selection());
    Object.assign(now, { fileRev: question.rev, picture });
    view.send('export', { ...question, kind, shows, position: token?.position ?? null, side: token?.side ?? null });
  }

  // ---- answers ---------------------------------------------------------------------------------

  function done() {
    clearTimeout(waiting);
    root.removeAttribute('aria-busy');
    root.classList.remove('attn-waiting');
  }

  function fail(words) {
    done();
    part('error').hidden = !words;
    part('error').textContent = words ?? '';
    root.classList.toggle('attn-failed', Boolean(words));
  }

  function receive(answer) {
    if (!answer || answer.rev !== now.rev) return;
    if (answer.error && state.fixed && !now.head) { forgetHead(); ask(true); return; } // a link to a head of another model
    fail(message(answer.error));
    if (answer.error) return;
    if (answer.overview) {
      now.answer = answer;
      now.maps = toBytes(answer.overview.maps);
      now.drawn = now.asked;
      lines.release();
      controls.drawSegments(answer.segments, answer.tokens);
    }
    now.head = { ...answer.head, ...decodeHead(answer.head.numbers) };
    state.layer = answer.head.layer;
    state.headNumber = answer.head.head;
    if (answer.overview) drawAll();
    else drawHead();
    if (answer.overview && state.mode !== 'heads') openMode();
    root.dataset.rev = answer.rev;
  }

  async function receiveFile(file) {
    if (!file || file.rev !== now.fileRev) return;
    now.fileRev = null;
    const tell = (text) => { part('status').textContent = text; };
    if (file.error) tell(message(file.error));
    else await downloadFile(file, now.picture).then((name) => tell(t`Saved ${name}`), () => tell(TEXT.broken));
  }

  // ---- modes -----------------------------------------------------------------------------------

  async function openMode() {
    const heads = state.mode === 'heads';
    if (!heads && !lab) {
      const { createLab } = await import('./lab.js');
      lab ??= createLab(part('lab'), { overview, main: now, redraw: drawAll, renew: () => controls.show(), ask });
    }
    controls.show();
    part('one').hidden = state.mode !== 'heads';
    part('lab').hidden = state.mode === 'heads';
    part('body').classList.toggle('attn-wide', WIDE.includes(state.mode));
    drawAll();
    if (state.mode !== 'heads' && now.answer) lab.open();
  }

  // ---- drawing ---------------------------------------------------------------------------------

  function drawAll() {
    if (!now.answer || !visible()) return;
    const started = performance.now();
    palette = readPalette(root);
    now.palette = palette;
    const { answer } = now;
    root.classList.add('attn-full');
    part('shape').textContent = shapeWords(answer);
    if (!WIDE.includes(state.mode)) {
      overview.draw({ ...answer, maps: now.maps, hide: state.hide, own: state.own, layer: state.layer, head: state.headNumber }, palette);
    }
    part('tick-top').textContent = state.own ? TEXT.strongest : percent(1);
    root.classList.toggle('attn-own', state.own);
    for (const name of ['hide', 'own']) root.querySelector(`[data-switch="${name}"]`).setAttribute('aria-checked', String(state[name]));
    part('scale').textContent = state.own ? TEXT.ownScale : TEXT.oneScale;
    part('hidden-note').hidden = !state.hide;
    if (state.mode === 'heads') drawHead();
    else lab?.draw();
    root.dataset.ms = (performance.now() - started).toFixed(1);
  }

  function shapeWords({ overview: shape }) {
    const size = t`${shape.layers} layers × ${shape.heads} heads, one small map each.`;
    if (!shape.hidden && shape.side >= shape.length) return size;
    return `${size} ${t`${shape.length} tokens are shrunk to ${shape.side} × ${shape.side} by the largest weight of each block; the numbers of a chosen head are complete.`}`;
  }

  function drawHead() {
    if (!now.head || !visible() || state.mode !== 'heads') return;
    const { tokens } = now.answer;
    const shown = shownPositions(tokens, state.hide);
    const title = cellName(state.layer, state.headNumber);
    part('title').textContent = title;
    part('empty').hidden = shown.length > 0;
    part('views').hidden = shown.length === 0;
    overview.select(state.layer, state.headNumber);
    part('code').textContent = now.head.code;
    rest((state.hide ? now.head.summary_plain : now.head.summary).map(message).join(' '));
    if (!shown.length) return;
    const top = state.own ? Math.max(largest(now.head, shown), 1e-6) : 1;
    const drawn = { head: now.head, tokens, shown, top, palette };
    const leftOut = lines.draw(drawn);
    part('lines-note').textContent = leftOut
      ? t`Lines from 1 % up; ${leftOut} of the weaker ones are left out. Point at a token for all of its own.`
      : TEXT.lines;
    heat.draw(drawn);
    part('heat-note').textContent = heatNote(shown.length);
    part('cell').textContent = TEXT.rest;
    if (part('table-box').open) fillTable(part('table'), drawn, title);
  }

  function heatNote(count) {
    if (count <= MOST_NUMBERS) return TEXT.printed;
    return now.head.kind === 'sqrt16' ? TEXT.rounded : '';
  }

  function rest(words) {
    part('sentence').dataset.rest = words;
    if (!lines.current()) part('sentence').textContent = words;
  }

  function showSentence(words) {
    part('sentence').textContent = words ?? part('sentence').dataset.rest ?? '';
  }

  // ---- controls --------------------------------------------------------------------------------

  /** The cell before or after the selected one, in reading order. */
  function step(by) {
    if (!now.answer) return;
    const { layers, heads } = now.answer.overview;
    const cells = layers * (heads + 1) + 1;
    const next = (cellIndex(state.layer, state.headNumber, layers, heads) + by + cells) % cells;
    const layer = Math.floor(next / (heads + 1));
    if (next === cells - 1) pick(MEAN, MEAN);
    else pick(layer, next % (heads + 1) === heads ? MEAN : next % (heads + 1));
  }

  /** All heads as a drawing that says what it is. */
  function allHeads() {
    const { model, overview: shape } = now.answer;
    return titledCanvas(overview.picture(), FOR_FILES, {
      title: t`${model}: all heads`, lines: [t`${shape.layers} layers (down) × ${shape.heads} heads (across); in each small map rows look at columns.`, state.own ? TEXT.ownScale : TEXT.oneScale],
    });
  }

  const actions = {
    previous: () => step(-1),
    next: () => step(1),
    svg: () => save('svg'),
    csv: () => save('csv'),
    'png-lines': () => save('svg', true),
    'svg-heat': () => save('svg', false, 'heat'),
    'png-heat': () => save('svg', true, 'heat'),
    'svg-overview': () => downloadDrawing('attention-all-heads.svg', allHeads()),
    'png-overview': () => downloadPicture('attention-all-heads.png', allHeads()),
    copy: async () => {
      part('status').textContent = await copyText(now.head.code, part('code')) ? TEXT.copied : TEXT.selected;
    },
  };
  root.addEventListener('click', (event) => {
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (action && now.head) actions[action]?.();
  });
  root.addEventListener('click', (event) => {
    const name = event.target.closest('[data-switch]')?.dataset.switch;
    if (name !== 'hide' && name !== 'own') return;
    state[name] = !state[name];
    keep();
    if (name === 'hide') {
      lines.release();
      // A shrunk map has special tokens inside its blocks: only the server can leave them out.
      const shape = now.answer?.overview;
      if (shape && (shape.hidden || shape.side < shape.length)) ask(true);
      lab?.refresh();
    }
    drawAll();
  });
  part('table-box').addEventListener('toggle', () => now.head && drawHead());

  // ---- life ------------------------------------------------------------------------------------

  new ResizeObserver(() => {
    if (root.clientWidth === now.width) return;
    now.width = root.clientWidth;
    drawAll();
  }).observe(root);
  new MutationObserver(drawAll).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  document.fonts.ready.then(drawAll);
  document.addEventListener('cloze:attention-file', (event) => receiveFile(event.detail));
  view.onValue(() => receive(view.value));
  Cloze.onSentence(view, onSentence);
  if (state.mode !== 'heads') openMode();
}
