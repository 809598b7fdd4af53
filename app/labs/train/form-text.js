// Training: what the form for a new run says, and what it starts from without a recipe.
const { t, texts } = window.Cloze;

export const TEXT = texts({
  title: 'New run', preset: 'Begin with a recipe', texts: 'What it reads', model: 'What it is', training: 'How it learns',
  name: 'Name', precision: 'Precision', vocabulary: 'Vocabulary', family: 'Family', shape: 'Layers × width', other: 'other …', layers: 'Layers', width: 'Width',
  from: 'Start from', scratch: 'a fresh model', json: 'All settings as config.json', apply: 'Use these settings',
  jsonHint: 'Every field the trainer knows; the fields above are part of it.',
  start: 'Start training', batch: 'Show the first batch', time: 'How long will it take?', command: 'The same from the command line',
  save: 'Save the settings as a file', measuring: 'Trying it for two seconds …', none: 'No recipes are shipped.',
  copied: (id) => t`These are the settings of ${id}.`, needsGpu: 'needs a GPU; this machine has none',
});
export const PRECISIONS = texts({ auto: 'the faster one here' });
const FORMATS = texts({
  next_sentence: 'pairs of segments, half of them neighbours', sentence_order: 'two segments, half of them swapped',
  sentence_pair: 'pairs of sentences', full_sentences: 'full sentences up to the longest length', doc_sentences: 'full sentences of one document',
  single: 'single segments', recurrent: 'a stream that goes on from batch to batch',
});
const MASKINGS = texts({
  uniform: 'single pieces', whole_word: 'whole words', ngram: 'runs of words', windowed_ngram: 'runs of words in windows', span: 'spans',
  with_replacement: 'single pieces, drawn with replacement', similar_word: 'words, replaced by similar ones', ordering: 'an order of prediction',
});
const OBJECTIVES = texts({
  masked_token: 'masked tokens', next_sentence: 'next sentence', sentence_order: 'sentence order', span_boundary: 'span boundary',
  permutation: 'permutation', replaced_token: 'replaced tokens', causal: 'next token', distillation: 'distillation',
});
// Path in config.json, label, step of the number field.
export const NUMBERS = [
  ['steps', t`Steps`], ['batch_size', t`Batch size`], ['data.max_length', t`Longest example`],
  ['optimizer.learning_rate', t`Learning rate`, 'any'], ['schedule.warmup', t`Warm-up steps`], ['seed', t`Seed`],
];
export const FOLLOWS_FAMILY = ['objectives', 'masking', 'generator', 'distillation'];
export const FALLBACK = {
  model: { size: 'bert-2x128', dropout: 0 }, tokenizer: { vocabulary: 2000 },
  data: { texts: ['primer/english-*.txt'], max_length: 64 },
  optimizer: { learning_rate: 0.002 }, schedule: { warmup: 50 }, steps: 1000, batch_size: 32,
  report_every: 20, validate_every: 100, checkpoints: { every: 100, keep: 2, snapshots: true },
};

const MASKED = ['masked_token', 'span_boundary', 'distillation'];

/** What is hidden, and from what it has to be guessed: each objective hides something else, or nothing. */
function hidden({ masking, objectives }) {
  const how = `${Math.round(masking.rate * 100)}\u00a0%`;
  const split = masking.split.map((share) => Math.round(share * 100)).join('/');
  const kind = MASKINGS[masking.kind] ?? masking.kind;
  const most = masking.longest > 1 ? t`At most ${masking.longest} words at a time.` : null;
  if ('causal' in objectives) return [t`Nothing is hidden: every piece is guessed from those to its left.`];
  if ('permutation' in objectives) {
    return [t`Nothing is replaced: ${how} of the pieces are guessed in an order that is drawn, each from those before it in that order.`,
      masking.dynamic ? t`The order is drawn anew each time.` : t`The order is drawn once for each example.`, most];
  }
  if ('replaced_token' in objectives) {
    return [t`A generator fills ${how} of the text, ${kind}; the model says of every piece whether it stood there before.`,
      masking.dynamic ? t`What is filled is drawn anew each time.` : t`What is filled is drawn once for each example.`, most];
  }
  if (!MASKED.some((name) => name in objectives)) return [t`Nothing is hidden.`];
  if (masking.kind === 'similar_word') {
    return [masking.dynamic ? t`${how} of the text gives way to similar words, drawn anew each time (${split} similar/random/kept).`
      : t`${how} of the text gives way to similar words, drawn once (${split} similar/random/kept).`, most];
  }
  return [masking.dynamic ? t`Hides ${how}, drawn anew each time: ${kind} (${split} hidden/random/kept).`
    : t`Hides ${how}, drawn once: ${kind} (${split} hidden/random/kept).`, most,
  'distillation' in objectives ? t`What has to be said there is what the teacher says.` : null];
}

/** Sentences about what a run learns. */
export function taught(found) {
  const goals = Object.entries(found.objectives).map(([key, weight]) => `${OBJECTIVES[key] ?? key}${weight === 1 ? '' : ` (× ${weight})`}`);
  return [t`Learns: ${goals.join(', ')}. Examples: ${FORMATS[found.format] ?? found.format}.`, ...hidden(found)];
}
