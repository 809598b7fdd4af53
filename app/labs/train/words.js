// Training: how numbers and names read.
const { format, language, t, tag, texts } = window.Cloze;

export const STATES = texts({
  new: 'not started', queued: 'waiting', starting: 'starting', running: 'training',
  stopping: 'stopping', stopped: 'stopped', finished: 'finished', failed: 'failed', crashed: 'interrupted',
});
export const ACTIVE = new Set(['queued', 'starting', 'running', 'stopping']);

export const FIGURES = texts({
  loss: 'Total loss', masked_token_loss: 'Masked-token loss', masked_token_accuracy: 'Masked-token accuracy',
  next_sentence_loss: 'Next-sentence loss', next_sentence_accuracy: 'Next-sentence accuracy',
  sentence_order_loss: 'Sentence-order loss', sentence_order_accuracy: 'Sentence-order accuracy',
  replaced_token_loss: 'Replaced-token loss', replaced_token_accuracy: 'Replaced-token accuracy',
  span_boundary_loss: 'Span-boundary loss', permutation_loss: 'Permutation loss', causal_loss: 'Next-token loss',
  learning_rate: 'Learning rate', gradient_norm: 'Gradient norm', tokens_per_second: 'Tokens per second',
  replaced_token_share: 'Share of replaced tokens', replaced_token_found: 'Replaced tokens found', replaced_token_lucky: 'Samples that hit the original',
  distillation_loss: 'Distillation loss', distillation_accuracy: 'Agreement with the teacher', hidden_cosine_loss: 'Distance from the teacher’s states',
  span_boundary_accuracy: 'Span-boundary accuracy', permutation_accuracy: 'Permutation accuracy', causal_accuracy: 'Next-token accuracy',
  classify_loss: 'Label loss', classify_accuracy: 'Label accuracy', tag_loss: 'Tag loss', tag_accuracy: 'Tag accuracy',
  span_loss: 'Answer loss', span_accuracy: 'Answer accuracy', regress_loss: 'Score loss', similarity_loss: 'Similarity loss',
});

/** Sentences one after the other; Chinese has no blanks between them. */
export const sentences = (...parts) => parts.filter(Boolean).join(language === 'zh' ? '' : ' ');

/** The name of a figure on held-out text. */
export const heldOutName = (key) => t`${figureName(key)}, held out`;

export function figureName(key) {
  const words = key.replaceAll('_', ' ');
  return FIGURES[key] ?? METRICS[key] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

const METRICS = texts({
  accuracy: 'Accuracy', macro_f1: 'Macro-F1', pearson: 'Pearson correlation', spearman: 'Spearman correlation', entity_f1: 'F1 of names',
  entity_precision: 'Precision of names', entity_recall: 'Recall of names', f1: 'F1', exact: 'Exact match', exact_match: 'Exact match',
  calibration_error: 'Calibration error', best_f1: 'F1 at the best threshold',
  answerable_f1: 'F1 where there is an answer', no_answer_accuracy: 'Accuracy where there is no answer',
});
/** A metric of a task, with its own name. */
export const metricName = (key) => METRICS[key] ?? figureName(key);

// Shipped sets that a race probes.
const SETS = texts({ sentiment: 'sentiment', topic: 'topic', nli: 'inference' });

export const setName = (name) => SETS[name] ?? name;
const SHARES = /accuracy|f1$|share|found|lucky|exact|precision|recall|calibration_error/;

/** A figure at an axis. */
export function axisText(key, value) {
  if (SHARES.test(key)) return `${Math.round(value * 1000) / 10}\u00a0%`;
  if (key === 'learning_rate') return value === 0 ? '0' : value < 1e-4 ? value.toExponential(1).replace('.0e', 'e') : String(Number(value.toPrecision(3)));
  return value >= 10_000 ? `${Math.round(value / 1000)} k` : format.count(Number(value.toPrecision(4)));
}

export function figure(key, value) {
  if (value === null || value === undefined) return '';
  if (SHARES.test(key)) return `${(value * 100).toFixed(1)}\u00a0%`;
  if (key === 'learning_rate') return value === 0 ? '0' : value.toPrecision(3).replace(/\.?0+(e|$)/, '$1');
  if (/tokens/.test(key) && !/loss/.test(key)) return format.count(Math.round(value));
  return value >= 100 ? value.toFixed(1) : value.toFixed(3);
}

const COMPACT = new Intl.NumberFormat(tag, { notation: 'compact', compactDisplay: 'long', maximumFractionDigits: 1 });

/** A large number as people say it: "4.9 million". */
export const many = (number) => (number >= 1e6 ? COMPACT.format(number) : format.count(number));

export function duration(seconds) {
  if (seconds < 90) return t`${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return t`${Math.round(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return t`${hours} h ${Math.round((seconds % 3600) / 60)} min`;
  return t`${Math.round(hours / 24)} days`;
}

export function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1024))} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

/** What runs are called, by id: those of one name bear the end of their id, too. */
export function namesOf(runs) {
  const count = new Map();
  for (const { name } of runs) count.set(name, (count.get(name) ?? 0) + 1);
  return new Map(runs.map(({ id, name }) => [id, count.get(name) > 1 ? `${name} · ${id.split('-').at(-1)}` : name]));
}

const FAMILY = {
  bert: 'BERT', roberta: 'RoBERTa', albert: 'ALBERT', spanbert: 'SpanBERT', electra: 'ELECTRA', macbert: 'MacBERT',
  xlnet: 'XLNet', deberta: 'DeBERTa', deberta_v2: 'DeBERTa v2', deberta_v3: 'DeBERTa v3',
};

export function modelName({ family, layers, width, from, race }) {
  if (race) return t`race of ${race}`;
  if (from) return t`from ${from}`;
  return family ? `${FAMILY[family] ?? family} ${layers} × ${width}` : '';
}
