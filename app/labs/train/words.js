// Training: how numbers and names read.
import { get } from './api.js';

const { format, language, phrase, t, tag, texts } = window.Cloze;

export const STATES = texts({
  new: 'not started', queued: 'waiting', starting: 'starting', running: 'training',
  stopping: 'stopping', stopped: 'stopped', finished: 'finished', failed: 'failed', crashed: 'interrupted',
});
export const ACTIVE = new Set(['queued', 'starting', 'running', 'stopping']);

/** Sentences one after the other; Chinese has no blanks between them. */
export const sentences = (...parts) => parts.filter(Boolean).join(language === 'zh' ? '' : ' ');

// The names of all figures stand in Python, beside the charts.
const NAMES = await get('names').catch(() => ({}));

export function figureName(key) {
  const words = key.replaceAll('_', ' ');
  return NAMES[key] ? phrase(NAMES[key]) : words.charAt(0).toUpperCase() + words.slice(1);
}

// Shipped sets that a race probes.
const SETS = texts({ sentiment: 'sentiment', topic: 'topic', nli: 'inference' });

export const setName = (name) => SETS[name] ?? name;
const SHARES = /accuracy|f1$|share|found|lucky|exact|precision|recall|calibration_error/;

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
