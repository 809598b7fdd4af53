// Why: what is said about the bars, tables of agreement, the sum check. Numbers come from Python.
import { tableOf } from '../../parts/plain.js';

const { element, format, t, texts } = window.Cloze;

export const METHODS = ['integrated', 'gradient', 'saliency', 'occlusion'];
export const TEXT = texts({
  title: 'Why this answer?',
  intro: 'Every word gets a share of the answer: upwards it speaks for it, downwards against it. '
    + 'Four methods tell four stories; where they disagree, none of them is the truth about the model.',
  silent: 'The server does not answer. Is it still running?',
  missing: 'The package captum is not installed here, and this tab computes its explanations with it.',
  install: 'Install it where this page runs and start the page again:',
  kinds: {
    piece: 'The word in a gap', replaced: 'Real or replaced', class: 'The class', score: 'The score', tag: 'The tag of a word',
    start: 'Start of the answer', end: 'End of the answer',
  },
  pairs: { next_sentence: 'Next sentence', sentence_order: 'Sentence order' },
  methods: { integrated: 'Integrated gradients', gradient: 'Input × gradient', saliency: 'Saliency', occlusion: 'Occlusion' },
  about: {
    integrated: 'The gradient is added up on the straight way from an empty baseline to the sentence. The shares add up to what the sentence changes.',
    gradient: 'The gradient at the sentence itself, times the vector of the word. Quick, but it sees only what an infinitely small change would do.',
    saliency: 'How strongly the answer reacts to a small change of the word’s vector. It has no sign: it does not tell for from against.',
    occlusion: 'Each word, or several in a row, is replaced by [MASK] in turn; the bar is by how much the answer falls, on average. What words do together is counted twice or not at all.',
  },
  scales: { log_probability: 'log-probability', probability: 'probability', logit: 'logit (raw score)' },
  baselines: { mask: '[MASK] everywhere', pad: '[PAD] everywhere', zero: 'zero vectors' },
  verdicts: { real: 'real', replaced: 'replaced', next: 'next', random: 'random', 'in order': 'in order', swapped: 'swapped' },
});
const FIXED = ['replaced_token', 'next_sentence', 'sentence_order'];

/** The name of an answer: labels of the visitor's own and pieces are never translated. */
export const nameOf = (scene, choice) => (FIXED.includes(scene.named) ? TEXT.verdicts[choice.name] ?? choice.name : choice.name);
export const choiceOf = (scene, index) => scene.choices.find((choice) => choice.index === index);

/** A number as people read it, with its sign where it has one. */
export function number(value, signed = true) {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;
  const shown = size > 0 && size < 0.0005 ? size.toExponential(0) : size.toFixed(digits);
  const zero = Number(shown) === 0;
  if (value < 0 && !zero) return `−${shown}`;
  return signed && !zero ? `+${shown}` : shown;
}

export function missing() {
  return element('div', { class: 'card wy-missing' },
    element('h3', { text: TEXT.missing }), element('p', { text: TEXT.install }),
    element('pre', { class: 'code', tabindex: '0', text: 'pip install "captum>=0.9"' }));
}

/** What is explained, in words. */
export function headline(scene, answer) {
  const chosen = choiceOf(scene, scene.answer);
  const against = scene.against === null ? null : choiceOf(scene, scene.against);
  if (against) {
    const more = Math.exp(Math.abs(answer.value));
    const times = more >= 100 ? more.toFixed(0) : more.toPrecision(2);
    const [a, b] = [nameOf(scene, chosen), nameOf(scene, against)];
    return answer.value >= 0
      ? t`Why “${a}” rather than “${b}”? It is ${times} times as likely (difference of logits ${number(answer.value)}).`
      : t`Why “${a}” rather than “${b}”? It is not: the other one is ${times} times as likely (difference of logits ${number(answer.value)}).`;
  }
  if (chosen) return t`Why “${nameOf(scene, chosen)}”? The model gives it ${format.percent(chosen.probability)}.`;
  if (scene.kind === 'score') return t`Why this score? The model says ${number(answer.value, false)}.`;
  const word = scene.tokens[scene.position].text;
  const shown = valueShown(scene.scale, answer.value);
  return scene.kind === 'start' ? t`Why does the answer start at “${word}”? (${shown})` : t`Why does the answer end at “${word}”? (${shown})`;
}

const valueShown = (scale, value) => (scale === 'probability' ? format.percent(value)
  : scale === 'log_probability' ? format.percent(Math.exp(value)) : number(value));

/** The strongest words on either side, by integrated gradients. */
export function strongest(scene, values) {
  const words = scene.tokens.filter((token) => !token.special && !token.hidden).map((token) => ({ text: token.text, value: values[token.position] }));
  if (!words.length) return '';
  const best = words.reduce((a, b) => (b.value > a.value ? b : a));
  const worst = words.reduce((a, b) => (b.value < a.value ? b : a));
  if (best.value > 0 && worst.value < 0) return t`Most for it: “${best.text}” (${number(best.value)}). Most against it: “${worst.text}” (${number(worst.value)}).`;
  if (best.value > 0) return t`Most for it: “${best.text}” (${number(best.value)}). No word speaks against it.`;
  if (worst.value < 0) return t`Most against it: “${worst.text}” (${number(worst.value)}). No word speaks for it.`;
  return '';
}

/** Whether the shares of integrated gradients add up to what they must. */
export function sumCheck(answer) {
  const { sum, value, start, error, error_share: share } = answer;
  if (share === null) {
    return element('p', { class: 'wy-check', 'data-sum': sum, 'data-error': error, text: t`The baseline gives the same answer as the sentence (${number(value)}), so there is nothing to share out.` });
  }
  const percent = share < 0.00005 ? '< 0.01\u00a0%' : `${(share * 100).toFixed(2)}\u00a0%`;
  const wrong = share > 0.05;
  return element('p', { class: `wy-check${wrong ? ' wrong' : ''}`, 'data-sum': sum, 'data-error': error },
    element('b', { text: wrong ? '✗ ' : '✓ ' }),
    t`The shares add up to ${number(sum)}. From the baseline (${number(start)}) to the sentence (${number(value)}) the answer changes by ${number(value - start)}: the sum misses it by ${percent}.`,
    wrong ? ` ${t`Take more steps.`}` : '');
}

const cell = (value) => (value === null ? '–' : [value, value.toFixed(2).replace('-', '−')]);

/** Rank correlation of each two methods. */
export const agreementTable = (answer) => tableOf({
  caption: t`Spearman’s rank correlation of the strengths that two methods give to the ${answer.words_read} words: 1 = the same order, 0 = no relation`,
  columns: ['', ...METHODS.map((name) => TEXT.methods[name])],
  rows: METHODS.map((name, row) => [TEXT.methods[name], ...answer.agreement[row].map(cell)]),
});

const drawnAnew = (blocks) => (blocks === 0 ? t`the head alone` : blocks === 1 ? t`the head and the last block` : t`the head and the last ${blocks} blocks`);

/** How alike the explanations stay while the model forgets, from the top. */
export const checkTable = (found) => tableOf({
  caption: t`How alike the explanation stays when the top of the model is drawn anew (rank correlation with the trained model, draw ${found.seed})`,
  columns: [t`Drawn anew`, ...METHODS.map((name) => TEXT.methods[name])],
  rows: found.stages.map((stage) => [drawnAnew(stage.blocks), ...METHODS.map((name) => cell(stage.alike[name]))]),
});

/** What the check says in a sentence: methods that stay alike although everything was forgotten. */
export function checkVerdict(found) {
  const last = found.stages.at(-1).alike;
  const alike = METHODS.filter((name) => last[name] !== null && last[name] >= 0.7).map((name) => TEXT.methods[name]);
  if (METHODS.every((name) => last[name] === null)) return t`There are too few words to compare.`;
  if (!alike.length) return t`With every layer drawn anew no explanation stays: they depend on what the model has learnt. With few words a chance likeness is common; draw again.`;
  return t`Even with every layer drawn anew this stays alike: ${alike.join(', ')}. Here it may speak of the words’ vectors rather than of what the layers learnt. With few words chance can do that, too; draw again.`;
}
