// Training: one sentence through the snapshots of a run. The slider drags what the model would say.
import { post } from './train-api.js';
import { drawChart } from './train-chart.js';

const { element, sentence, format, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'The same sentence at every snapshot', text: 'Sentence with [MASK]', word: 'Word to follow',
  hint: 'A snapshot is kept at steps 1, 2, 4, 8 and so on. Drag to see the model learn.',
  gap: 'Write [MASK] where the model should guess.', open: 'Open this snapshot in the Mask tab', openAttention: 'Open this snapshot in the Attention tab', slider: 'Snapshot',
  verdicts: 'Sentence to judge', detectHint: 'A snapshot is kept at steps 1, 2, 4, 8 and so on. The darker a piece, the surer the model is that somebody else put it there.',
  suspicion: (word) => t`How sure the model is that “${word}” was put there`, chart: (word) => t`How likely “${word}” is in the first gap`, one: 'The word to follow must be one piece of this vocabulary.',
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

export function makeScrub(openModel) {
  const slider = element('input', { type: 'range', min: '0', step: '1', id: 'train-slider', 'aria-label': TEXT.slider });
  const at = element('output', { for: 'train-slider' });
  const text = element('input', { type: 'text', id: 'train-sentence', maxlength: '2000', autocomplete: 'off' });
  const word = element('input', { type: 'text', id: 'train-word', maxlength: '64', autocomplete: 'off' });
  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const gaps = element('div', { class: 'train-gaps', 'aria-live': 'polite' });
  const host = element('div', { class: 'train-chart' });
  const caption = element('figcaption');
  const figure = element('figure', { hidden: true }, caption, host);
  const open = element('button', { type: 'button', class: 'quiet outlined', id: 'train-open-step', text: TEXT.open });
  const label = (name, input) => element('label', { class: 'train-field' }, element('span', { text: name }), input);
  const hint = element('p', { class: 'train-note', text: TEXT.hint });
  const textName = element('span', { text: TEXT.text });
  const root = element('section', { class: 'card train-scrub', hidden: true },
    element('h3', { text: TEXT.title }), hint,
    element('div', { class: 'train-row' }, element('label', { class: 'train-field' }, textName, text), label(TEXT.word, word)),
    element('div', { class: 'train-slide' }, slider, at), problem, gaps, figure, open);
  let run = null;
  let steps = [];
  let answers = new Map(); // `${text}|${word}|${step}` -> predictions
  let busy = false;
  let detects = false; // whether the model tells replaced pieces, and fills no gaps

  const key = (step) => `${text.value}|${word.value}|${step}`;
  const step = () => steps[Number(slider.value)];

  function drawGaps() {
    at.textContent = t`step ${format.count(step() ?? 0)}`;
    root.dataset.step = step() ?? '';
    const found = answers.get(key(step()));
    if (!found) return;
    root.dataset.answered = step();
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
      element('small', { text: `${Math.round(probability * 100)} %` }));
    root.style.setProperty('--share', `${Math.round(probability * 70)}%`);
    return root;
  }

  /** The probability that the curve follows at a snapshot. */
  function followed(each) {
    const found = answers.get(key(each));
    if (!detects) return found?.[0]?.watched?.[0]?.probability;
    return found?.find((one) => one.text.toLowerCase() === word.value.trim().toLowerCase())?.probability;
  }

  function drawCurve() {
    const points = steps.flatMap((each, n) => {
      const value = followed(each);
      return value !== null && value !== undefined ? [[n, value, each]] : [];
    });
    figure.hidden = !word.value.trim() || points.length < 2;
    if (figure.hidden) return;
    const title = (detects ? TEXT.suspicion : TEXT.chart)(word.value.trim());
    caption.textContent = title;
    const chart = drawChart(host, {
      series: [{ tone: 1, points: points.map(([x, y]) => [x, y]), dots: true }],
      showX: (n) => (steps[n] === undefined ? '' : format.count(steps[n])), showY: (value) => `${Number((value * 100).toPrecision(3))} %`, height: 150,
      small: true, label: title,
    });
    chart?.mark(Number(slider.value));
  }

  async function ask(wanted) {
    const name = key(wanted);
    const words = word.value.trim() ? [word.value.trim()] : [];
    const { predictions, verdicts } = await post(`runs/${run}/guess`, { step: wanted, text: text.value, words });
    answers.set(name, verdicts ?? predictions);
  }

  const askable = () => (detects ? text.value.trim() : text.value.includes(MASK));

  // The snapshot under the slider first, then the others, the nearest first.
  async function work() {
    if (busy || !steps.length || root.hidden) return;
    busy = true;
    problem.hidden = true;
    try {
      for (;;) {
        const place = Number(slider.value);
        const next = steps.map((each, n) => [each, Math.abs(n - place)]).filter(([each]) => !answers.has(key(each)))
          .sort((a, b) => a[1] - b[1])[0];
        if (!next || !askable()) break;
        await ask(next[0]);
        drawGaps();
        drawCurve();
      }
      if (!askable()) throw new Error(TEXT.gap);
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
    }
    busy = false;
  }

  let timer = 0;
  const changed = () => { clearTimeout(timer); timer = setTimeout(() => { drawGaps(); drawCurve(); work(); }, 250); };
  text.addEventListener('input', changed);
  word.addEventListener('input', changed);
  slider.addEventListener('input', () => { drawGaps(); drawCurve(); work(); });
  open.addEventListener('click', () => openModel(`run/${run}/step-${step()}`, detects ? 'Attention' : 'Mask'));

  return {
    root,
    fill(id, snapshots, judges) {
      root.hidden = !snapshots.length;
      if (root.hidden) return;
      const wasLast = Number(slider.value) === steps.length - 1;
      if (id !== run) {
        [run, answers, steps] = [id, new Map(), []];
        if (judges !== detects) text.value = '';
        detects = judges;
        open.textContent = detects ? TEXT.openAttention : TEXT.open;
        hint.textContent = detects ? TEXT.detectHint : TEXT.hint;
        textName.textContent = detects ? TEXT.verdicts : TEXT.text;
        gaps.replaceChildren();
        if (!text.value) { const page = fromPage(); text.value = detects ? sentence.text : page.text; word.value = page.word; }
      }
      if (snapshots.join() === steps.join()) return;
      const first = !steps.length;
      steps = snapshots;
      slider.max = String(steps.length - 1);
      if (first || wasLast) slider.value = slider.max;
      drawGaps();
      drawCurve();
      work();
    },
  };
}
