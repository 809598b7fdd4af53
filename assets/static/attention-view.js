// The Attention tab: state, requests and the wiring of its views.
//
// Asks Python by the event `ask` and draws its answer (view.value): the tokens, the overview and the selected
// head, or another head of the same sentence alone. `export` asks for a file. Every question carries `rev`;
// answers to older ones are dropped. What visitors wrote reaches the page as textContent only.

import { MEAN, cellIndex, cellName, decodeHead, largest, percent, shownPositions, toBytes } from './attention-data.js';
import { copyText, download, downloadCanvas } from './attention-export.js';
import { MOST_NUMBERS, createHeat, fillTable } from './attention-heat.js';
import { createLines } from './attention-lines.js';
import { createOverview } from './attention-overview.js';
import { readPalette } from './attention-paint.js';
import { build } from './attention-skeleton.js';

const { Cloze } = window;
const PATIENCE = 250; // milliseconds before the page says that it waits
const REST = 'Rows look at columns.'; // under the heat map when nothing is pointed at

export function mount(view) {
  const { root } = view;
  build(root);
  const part = (role) => root.querySelector(`[data-role="${role}"]`);
  const state = {
    rev: 0, // of the last question
    asked: '', // the sentence of the last question
    drawn: '', // the sentence on the screen
    answer: null, // its tokens and overview
    head: null, // the numbers on the screen
    layer: 'auto',
    headNumber: 'auto',
    hide: false,
    own: false,
    width: 0,
  };
  let palette = null;
  let waiting = 0;

  const overview = createOverview(part('overview'), { onSelect: (cell) => pick(cell.layer, cell.head) });
  const lines = createLines(part('lines'), { onToken: showSentence });
  const heat = createHeat(part('heat'), {
    onCell: (words, token) => {
      part('cell').textContent = words ?? REST;
      lines.isolate(token ?? lines.held());
    },
  });

  // ---- asking ----------------------------------------------------------------------------------

  const visible = () => root.getClientRects().length > 0;
  const selection = () => ({ layer: state.layer, head: state.headNumber, hide: state.hide });

  const sendAsk = Cloze.asker(view, 'ask', () => (
    fail('No answer has come yet. It will appear here when it does; the machine may be busy.')));
  const keyOf = ({ text, model, marks }) => JSON.stringify([text, model, marks]);

  /** Ask for the sentence. `whole` also when only the head changed. */
  function ask(whole) {
    const question = Cloze.question(selection());
    state.rev = question.rev;
    state.asked = keyOf(question);
    clearTimeout(waiting);
    root.setAttribute('aria-busy', 'true');
    waiting = setTimeout(() => root.classList.add('attn-waiting'), PATIENCE);
    sendAsk({ ...question, whole: whole || state.asked !== state.drawn });
  }

  function onSentence(sentence) {
    if (!sentence.tokens.length) {
      state.rev = null; // the answer to an earlier sentence must not replace the message
      state.asked = '';
      fail(sentence.error ?? 'There is no text yet. Type a sentence or pick an example.');
      return;
    }
    if (keyOf(Cloze.question()) === state.asked) return; // only the look of the chips changed
    if (state.answer && sentence.model !== state.answer.model) {
      state.layer = 'auto';
      state.headNumber = 'auto';
    }
    ask(true);
  }

  function pick(layer, head) {
    // The heads on the screen may be those of the model before.
    if (state.answer?.model !== Cloze.sentence.model) return;
    state.layer = layer;
    state.headNumber = head;
    overview.select(layer, head);
    ask(false);
  }

  function save(kind) {
    const token = lines.current();
    const question = Cloze.question(selection());
    state.fileRev = question.rev;
    view.send('export', { ...question, kind, position: token?.position ?? null, side: token?.side ?? null });
  }

  // ---- answers ---------------------------------------------------------------------------------

  function done() {
    clearTimeout(waiting);
    root.removeAttribute('aria-busy');
    root.classList.remove('attn-waiting');
  }

  function fail(message) {
    done();
    part('error').hidden = !message;
    part('error').textContent = message ?? '';
    root.classList.toggle('attn-failed', Boolean(message));
  }

  function receive(answer) {
    if (!answer || answer.rev !== state.rev) return;
    fail(answer.error);
    if (answer.error) return;
    if (answer.overview) {
      state.answer = answer;
      state.maps = toBytes(answer.overview.maps);
      state.drawn = state.asked;
      lines.release();
    }
    state.head = { ...answer.head, ...decodeHead(answer.head.numbers) };
    state.layer = answer.head.layer;
    state.headNumber = answer.head.head;
    if (answer.overview) drawAll();
    else drawHead();
    root.dataset.rev = answer.rev;
  }

  function receiveFile(file) {
    if (!file || file.rev !== state.fileRev) return;
    state.fileRev = null;
    if (!file.error) download(file.name, file.text, file.type);
    part('status').textContent = file.error ?? `Saved ${file.name}`;
  }

  // ---- drawing ---------------------------------------------------------------------------------

  function drawAll() {
    if (!state.answer || !visible()) return;
    const started = performance.now();
    palette = readPalette(root);
    const { answer } = state;
    root.classList.add('attn-full');
    part('shape').textContent = shapeWords(answer);
    overview.draw({ ...answer, maps: state.maps, hide: state.hide, own: state.own, layer: state.layer, head: state.headNumber }, palette);
    part('tick-top').textContent = state.own ? 'strongest' : percent(1);
    root.classList.toggle('attn-own', state.own);
    part('scale').textContent = state.own
      ? 'Square-root scale; each map runs to its own strongest link, so maps cannot be compared.'
      : 'Square-root scale, the same for all maps.';
    part('hidden-note').hidden = !state.hide;
    drawHead();
    root.dataset.ms = (performance.now() - started).toFixed(1);
  }

  function shapeWords({ overview: shape }) {
    const size = shape.hidden || shape.side < shape.length
      ? ` ${shape.length} tokens are shrunk to ${shape.side} \u00d7 ${shape.side} by the largest weight of each block; the numbers of a chosen head are complete.`
      : '';
    return `${shape.layers} layers \u00d7 ${shape.heads} heads, one small map each.${size}`;
  }

  function drawHead() {
    if (!state.head || !visible()) return;
    const { tokens } = state.answer;
    const shown = shownPositions(tokens, state.hide);
    const title = cellName(state.layer, state.headNumber);
    part('title').textContent = title;
    part('empty').hidden = shown.length > 0;
    part('views').hidden = shown.length === 0;
    overview.select(state.layer, state.headNumber);
    part('code').textContent = state.head.code;
    rest(state.hide ? state.head.summary_plain : state.head.summary);
    if (!shown.length) return;
    const top = state.own ? Math.max(largest(state.head, shown), 1e-6) : 1;
    const view = { head: state.head, tokens, shown, top, palette };
    const leftOut = lines.draw(view);
    part('lines-note').textContent = leftOut
      ? `Lines from 1\u00a0% up; ${leftOut} of the weaker ones are left out. Point at a token for all of its own.`
      : 'Lines from 1\u00a0% up. Point at a token for its own numbers, click to hold it.';
    heat.draw(view);
    part('heat-note').textContent = heatNote(shown.length);
    part('cell').textContent = REST;
    if (part('table-box').open) fillTable(part('table'), view, title);
  }

  function heatNote(count) {
    if (count <= MOST_NUMBERS) return 'Printed numbers are percent.';
    return state.head.kind === 'sqrt16' ? 'Numbers of long sentences are rounded to 0.002\u00a0%.' : '';
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
    if (!state.answer) return;
    const { layers, heads } = state.answer.overview;
    const cells = layers * (heads + 1) + 1;
    const next = (cellIndex(state.layer, state.headNumber, layers, heads) + by + cells) % cells;
    const layer = Math.floor(next / (heads + 1));
    if (next === cells - 1) pick(MEAN, MEAN);
    else pick(layer, next % (heads + 1) === heads ? MEAN : next % (heads + 1));
  }

  const fileName = () => `attention-${cellName(state.layer, state.headNumber).toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;

  const actions = {
    previous: () => step(-1),
    next: () => step(1),
    svg: () => save('svg'),
    csv: () => save('csv'),
    'png-heat': () => downloadCanvas(`${fileName()}.png`, heat.picture(), palette.card),
    'png-overview': () => downloadCanvas('attention-all-heads.png', overview.picture(), palette.card),
    copy: async () => {
      const copied = await copyText(state.head.code, part('code'));
      part('status').textContent = copied ? 'Code copied' : 'The code is selected; copy it with your keyboard';
    },
  };
  root.addEventListener('click', (event) => {
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (action && state.head) actions[action]();
  });
  root.addEventListener('click', (event) => {
    const button = event.target.closest('[data-switch]');
    if (!button) return;
    const name = button.dataset.switch;
    state[name] = !state[name];
    button.setAttribute('aria-checked', String(state[name]));
    if (name === 'hide') {
      lines.release();
      // A shrunk map has special tokens inside its blocks: only the server can leave them out.
      const shape = state.answer?.overview;
      if (shape && (shape.hidden || shape.side < shape.length)) ask(true);
    }
    drawAll();
  });
  part('table-box').addEventListener('toggle', () => state.head && drawHead());

  // ---- life ------------------------------------------------------------------------------------

  new ResizeObserver(() => {
    if (root.clientWidth === state.width) return;
    state.width = root.clientWidth;
    drawAll();
  }).observe(root);
  new MutationObserver(drawAll).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  document.fonts.ready.then(drawAll);
  document.addEventListener('cloze:attention-file', (event) => receiveFile(event.detail));
  view.onValue(() => receive(view.value));
  Cloze.onSentence(view, onSentence);
}
