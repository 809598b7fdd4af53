// Training: one sentence through the snapshots of a run. The slider drags what the model would say.
import { post } from './api.js';
import { makeFigure } from '../../parts/figure.js';
import { makeMap } from './scrub-map.js';
import { sentences } from './words.js';

const { element, sentence, format, message, onChange, t, texts } = window.Cloze;
const TEXT = texts({
  text: 'Sentence with [MASK]', word: 'Word to follow',
  hint: 'A snapshot is kept at steps 1, 2, 4, 8 and so on. Drag to see the model learn.',
  gap: 'Write [MASK] where the model should guess.', open: 'Fill gaps with this snapshot', openAttention: 'See the attention of this snapshot', slider: 'Snapshot',
  verdicts: 'Sentence to judge', detectHint: 'A snapshot is kept at steps 1, 2, 4, 8 and so on. The darker a piece, the surer the model is that somebody else put it there.',
  one: 'The word to follow must be one piece of this vocabulary.',
  lastHint: 'The last stop is the newest model.', openLast: 'Fill gaps with this model', openLastAttention: 'See the attention of this model',
});
const MASK = '[MASK]';

/** The sentence of the page with its hidden words as gaps, and the first hidden word. */
function fromPage() {
  const marks = [...sentence.marks.values()].map(({ position }) => sentence.tokens[position]).filter(Boolean);
  const chosen = marks.length ? marks
    : sentence.tokens.filter((token) => !token.special && /\p{L}{2,}/u.test(token.text)).slice(-1);
  const letters = [...sentence.text];
  const words = new Map();
  for (const token of chosen) {
    const pieces = sentence.tokens.filter((other) => other.word === token.word && !other.special);
    const [start, end] = [Math.min(...pieces.map((p) => p.start)), Math.max(...pieces.map((p) => p.end))];
    words.set(start, { start, end, text: letters.slice(start, end).join('') });
  }
  const ordered = [...words.values()].sort((a, b) => b.start - a.start);
  for (const { start, end } of ordered) letters.splice(start, end - start, MASK);
  return { text: letters.join(''), word: ordered.at(-1)?.text ?? '' };
}

export function mountScrub(view) {
  const slider = element('input', { type: 'range', min: '0', step: '1', id: 'train-slider', 'aria-label': TEXT.slider });
  const at = element('output', { for: 'train-slider', 'aria-live': 'off' }); // the slider says it
  const text = element('input', { type: 'text', id: 'train-sentence', maxlength: '2000', autocomplete: 'off' });
  const word = element('input', { type: 'text', id: 'train-word', maxlength: '64', autocomplete: 'off' });
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const gaps = element('div', { class: 'train-gaps', 'aria-live': 'polite' });
  const curve = makeFigure({ name: 'cloze-snapshots' });
  let followedKey = ''; // what the curve was asked for last
  let drawn = null; // and its figure
  const wordNote = element('p', { class: 'train-note train-word-note', role: 'status', hidden: true });
  const map = makeMap(() => { drawGaps(); work(); });
  const open = element('button', { type: 'button', class: 'quiet outlined', id: 'train-open-step', text: TEXT.open });
  const label = (name, input) => element('label', { class: 'train-field' }, element('span', { text: name }), input);
  const hint = element('p', { class: 'train-note', text: TEXT.hint });
  const textName = element('span', { text: TEXT.text });
  const root = element('div', { class: 'train-scrub', hidden: true }, hint,
    element('div', { class: 'train-row' }, element('label', { class: 'train-field' }, textName, text), label(TEXT.word, word)),
    element('div', { class: 'train-slide' }, slider, at), problem, element('div', { class: 'train-look' }, gaps, map.root), wordNote, curve.root, open);
  const unseen = () => root.offsetParent === null; // folded
  new ResizeObserver(() => { if (!unseen()) { drawCurve(); work(); } }).observe(view.root);
  let run = null;
  let stops = []; // {ask: step or "last", at: step, id}
  let answers = new Map(); // by key: predictions or verdicts
  let maps = new Map(); // by mapKey
  let busy = false;
  let told = null; // the answer that stands there: it is said once, however often all is drawn
  let lost = false; // the server did not answer
  let edited = false; // whether the visitor wrote the sentence
  let typed = false; // whether the visitor chose the word
  let chosen = false; // whether it stays, whatever this model makes of it
  let detects = false; // whether the model tells replaced pieces, and fills no gaps
  let finished = false;

  const key = (stop) => `${run}|${stop.id}|${word.value.trim()}|${text.value}`;
  const mapKey = (stop) => `${run}|${stop.id}|${map.wanted.layer}|${map.wanted.head}|${text.value}`;
  const here = () => stops[Number(slider.value)];
  const isLast = (stop) => stop.ask === 'last';
  const stepText = (stop) => (!isLast(stop) ? t`step ${format.count(stop.at)}`
    : finished ? t`step ${format.count(stop.at)}, the trained model` : t`step ${format.count(stop.at)}, the last checkpoint`);

  function drawGaps() {
    const stop = here();
    if (!stop) return;
    at.textContent = stepText(stop);
    slider.setAttribute('aria-valuetext', at.textContent);
    root.dataset.step = stop.at;
    open.textContent = isLast(stop) ? (detects ? TEXT.openLastAttention : TEXT.openLast) : detects ? TEXT.openAttention : TEXT.open;
    const looks = maps.get(mapKey(stop));
    if (looks) { map.show(looks); root.dataset.looked = stop.at; }
    const found = answers.get(key(stop));
    if (!found) return;
    root.dataset.answered = stop.at;
    if (found === told) return;
    told = found;
    gaps.classList.toggle('train-verdicts', detects);
    if (detects) { gaps.replaceChildren(...found.map(verdict)); return; }
    gaps.replaceChildren(...found.map((prediction) => element('ol', { class: 'candidates' },
      ...prediction.candidates.map((candidate) => {
        const fill = element('span', { class: 'fill' });
        fill.style.transform = `scaleX(${candidate.probability})`;
        const own = word.value && candidate.display.toLowerCase() === word.value.trim().toLowerCase();
        return element('li', {}, element('div', { class: `candidate${own ? ' is-original' : ''}` },
          element('span', { class: 'rank', text: String(candidate.rank) }),
          element('bdi', { class: 'word', text: candidate.display }),
          element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
          element('span', { class: 'share', text: format.percent(candidate.probability) })));
      }))));
  }

  function verdict({ text: piece, probability }) {
    const root = element('span', { class: 'train-verdict', title: format.percent(probability) }, element('bdi', { text: piece }),
      element('small', { text: `${Math.round(probability * 100)}\u00a0%` }));
    root.style.setProperty('--share', `${Math.round(probability * 70)}%`);
    return root;
  }

  /** Of an answer: the probability that the curve follows, or why there is none. */
  function followed(found) {
    const wanted = word.value.trim();
    if (!detects) return found?.[0]?.watched?.find((each) => each.word === wanted) ?? {};
    const piece = found?.find((one) => one.text.toLowerCase() === wanted.toLowerCase());
    return piece ?? (found ? { note: t`“${wanted}” is none of the pieces of this sentence.` } : {});
  }

  /** In place of a word that cannot be followed and that nobody typed: the model's own, or a piece of the sentence. */
  function substitute(found) {
    const word = (each) => /\p{L}{2}|\p{Script=Han}/u.test(each.text ?? each.display);
    if (detects) return found.filter(word).sort((a, b) => b.text.length - a.text.length)[0]?.text;
    const offered = found[0]?.candidates ?? [];
    const whole = offered.find((each) => word(each) && !each.continues);
    return whole?.display ?? offered.find((each) => /\p{L}/u.test(each.display))?.piece; // a raw piece is looked up as it is
  }

  /** The curve of the word, once every snapshot has answered; the line stands at the one that is shown. */
  async function drawCurve() {
    const wanted = word.value.trim();
    const each = stops.map((stop) => answers.get(key(stop))).map((found) => (found ? followed(found) : null));
    const points = each.flatMap((one, n) => (Number.isFinite(one?.probability) ? [[stops[n].at, one.probability]] : []));
    const note = wanted && each.find((one) => one?.note)?.note;
    const all = each.length > 0 && each.every(Boolean);
    wordNote.hidden = !wanted || !(note || (all && !points.length));
    wordNote.textContent = wordNote.hidden ? '' : note ? message(note) : TEXT.one;
    const asked = wanted && !note && points.length > 1 ? JSON.stringify({ word: wanted, detects, points }) : '';
    if (!asked) { followedKey = ''; drawn = null; curve.show(null); return; }
    if (asked !== followedKey) {
      if (!all) return; // the last answer asks
      followedKey = asked;
      let found = null;
      try { found = (await post('followed', JSON.parse(asked))).figure; } catch { /* the answers stand above it */ }
      if (asked !== followedKey) return;
      drawn = found;
    }
    if (!drawn) { curve.show(null); return; }
    const at = points.findIndex(([step]) => step === here().at);
    curve.show({ ...drawn, layout: { ...drawn.layout, shapes: drawn.layout.shapes.map((line) => ({ ...line, x0: at, x1: at, visible: at >= 0 })) } });
  }

  async function ask(stop) {
    const [name, mapName] = [key(stop), mapKey(stop)];
    const words = word.value.trim() ? [word.value.trim()] : [];
    const found = await post(`runs/${run}/guess`, {
      step: stop.ask, text: text.value, words, ...(maps.has(mapName) ? {} : { attention: { ...map.wanted } }),
    });
    answers.set(name, found.verdicts ?? found.predictions);
    if (found.attention) maps.set(mapName, found.attention);
    if (chosen || name !== key(stop)) return;
    chosen = true;
    const better = followed(answers.get(name)).note || !word.value.trim() ? substitute(answers.get(name)) : null;
    if (better) word.value = better;
  }

  const askable = () => (detects ? text.value.trim() : text.value.includes(MASK));

  // The snapshot under the slider first, then the others, the nearest first.
  async function work() {
    if (busy || !stops.length || unseen()) return;
    busy = true;
    problem.hidden = true;
    try {
      for (;;) {
        const place = Number(slider.value);
        const next = stops.map((stop, n) => [stop, Math.abs(n - place)]).filter(([stop]) => !answers.has(key(stop)) || !maps.has(mapKey(stop)))
          .sort((a, b) => a[1] - b[1])[0];
        if (!next || !askable()) break;
        const asked = key(next[0]) + mapKey(next[0]);
        try { await ask(next[0]); } catch (error) { if (asked === key(next[0]) + mapKey(next[0])) throw error; } // else of what nobody wants any more
        drawGaps();
        drawCurve();
      }
      lost = false;
      if (!askable() && (edited || sentence.tokens?.length)) throw new Error(TEXT.gap);
    } catch (error) {
      lost = Boolean(error.silent);
      problem.hidden = false;
      problem.textContent = error.message;
    }
    busy = false;
  }

  let timer = 0;
  const changed = () => { clearTimeout(timer); timer = setTimeout(() => { drawGaps(); drawCurve(); work(); }, 250); };
  text.addEventListener('input', () => { edited = true; changed(); });
  word.addEventListener('input', () => { [typed, chosen] = [true, true]; changed(); });
  slider.addEventListener('input', () => { drawGaps(); drawCurve(); work(); });
  open.addEventListener('click', () => {
    const stop = here();
    window.Cloze.runs.open({ model: isLast(stop) ? `run/${run}` : `run/${run}/step-${stop.ask}` }, detects ? 'attention' : 'mask');
  });

  /** The sentence of the page, as soon as it is there. */
  function prefill() {
    if (!sentence.tokens?.length) return;
    const page = fromPage();
    if (!text.value && !edited) text.value = detects ? sentence.text : page.text;
    if (!typed) word.value = detects || text.value === page.text ? page.word : '';
  }
  onChange(() => {
    if (root.hidden || !run || text.value || edited) return;
    prefill();
    if (text.value) work();
  });

  function fill() {
    const found = view.value;
    root.hidden = !found?.stops;
    if (root.hidden) return;
    const wasLast = Number(slider.value) === stops.length - 1;
    if (found.run !== run) {
      [run, answers, maps, stops, chosen] = [found.run, new Map(), new Map(), [], typed];
      if (found.detects !== detects) [text.value, edited] = ['', false];
      detects = found.detects;
      textName.textContent = detects ? TEXT.verdicts : TEXT.text;
      gaps.replaceChildren();
      map.reset();
      for (const name of ['answered', 'looked']) delete root.dataset[name];
      prefill();
    }
    finished = found.finished;
    const now = found.stops;
    hint.textContent = sentences(detects ? TEXT.detectHint : TEXT.hint, now.some(isLast) ? TEXT.lastHint : null);
    if (now.map((stop) => stop.id).join() === stops.map((stop) => stop.id).join()) { if (lost) work(); return; }
    const first = !stops.length;
    stops = now;
    slider.max = String(stops.length - 1);
    if (first || wasLast) slider.value = slider.max;
    drawGaps();
    drawCurve();
    work();
  }
  view.root.replaceChildren(root);
  view.onValue(fill);
  fill();
}
