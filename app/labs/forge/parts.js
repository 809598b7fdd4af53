// Forge: tokens with bars, cards of gaps, squares of loss, the score. Numbers come from Python.
import { wholeOr } from '../../parts/lab-files.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  replaced: 'replaced', spoken: 'probability “replaced”:', sample: 'The word that was drawn', original: 'The word of the text', gap: 'gap',
  lucky: 'A lucky draw: it is the word of the text, so it counts as real.',
  written: 'The text itself has a gap here: nobody knows the real word.',
  generator: 'Generator', discriminator: 'Discriminator', you: 'You', none: 'no attempt yet', reset: 'Reset',
  rules: 'Each new roll counts, each new word of yours counts; lucky draws do not. Kept in this browser only.',
});

export const MOST_SEED = 2147483646;
export const MOST_FAKES = 16;
export const percent = (value) => `${Math.round(value * 100)}\u00a0%`;

/**
 * One column for each token: the word, what stood there, a bar of P(replaced) and its number.
 * faces: [{text, note, kind}]; kind '' | 'forged' | 'lucky' | 'mine' | 'special'.
 */
export function strip(faces, chances, threshold, label, pick = null) {
  const items = faces.map(({ text, note, kind, position, title }, n) => {
    const chance = chances[n];
    const accused = chance >= threshold;
    const fill = element('span', { class: 'fd-fill' });
    fill.style.height = `${Math.max(chance * 100, 1)}%`;
    const word = element('bdi', { class: 'fd-word', text });
    const parts = [
      word,
      element('span', { class: 'fd-note', text: note ?? '' }),
      element('span', { class: 'fd-well', 'aria-hidden': 'true' }, fill),
      element('span', { class: 'fd-spoken', text: TEXT.spoken }),
      element('span', { class: 'fd-number', title: format.exact(chance), text: percent(chance) }),
      element('span', { class: 'fd-said', text: accused ? TEXT.replaced : '' }),
    ];
    const shape = {
      class: `fd-token ${kind ?? ''}${accused ? ' accused' : ''}`, 'data-position': position, 'data-chance': chance, title,
    };
    return element('li', {}, pick && kind !== 'special'
      ? element('button', { ...shape, type: 'button', onclick: () => pick(position) }, ...parts)
      : element('div', shape, ...parts));
  });
  return element('ol', { class: 'fd-strip', 'aria-label': label, dir: window.Cloze.direction(window.Cloze.sentence.text) }, ...items);
}

function row(rank, word, probability, kind, title) {
  const fill = element('span', { class: 'fill' });
  fill.style.transform = `scaleX(${probability ?? 0})`;
  return element('div', { class: `candidate ${kind}`, title },
    element('span', { class: 'rank', text: rank }), element('bdi', { class: 'word', text: word }),
    element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
    element('span', { class: 'share', text: probability === null ? '' : format.percent(probability) }));
}

/** A gap: the generator's distribution, the word that was drawn, the word of the text. */
export function gapCard(gap, token) {
  const { sample, candidates, lucky } = gap;
  const rows = candidates.map((candidate, n) => {
    const drawn = candidate.id === sample.id;
    const own = candidate.id === gap.original_id;
    return row(n + 1, candidate.display, candidate.probability, `${drawn ? 'drawn' : ''} ${own ? 'is-original' : ''}`,
      drawn ? TEXT.sample : own ? TEXT.original : null);
  });
  const listed = (id) => candidates.some((candidate) => candidate.id === id);
  if (!listed(sample.id)) rows.push(row('…', sample.display, sample.probability, 'drawn', TEXT.sample));
  if (!gap.written && !lucky && !listed(gap.original_id)) {
    rows.push(row('…', gap.original, gap.original_probability, 'is-original', TEXT.original));
  }
  return element('section', { class: `guess fd-gap${lucky ? ' lucky' : ''}`, 'data-position': gap.position, 'data-piece': sample.piece },
    element('h3', { class: 'fd-steps' },
      element('bdi', { text: gap.written ? TEXT.gap : token.text }), element('span', { class: 'fd-arrow', text: '→' }),
      element('span', { class: 'fd-mask', text: '[MASK]' }), element('span', { class: 'fd-arrow', text: '→' }),
      element('bdi', { class: 'fd-drawn', text: sample.display })),
    element('div', { class: 'candidates' }, ...rows),
    element('p', { class: 'verdict', text: lucky ? TEXT.lucky : gap.written ? TEXT.written : '' }));
}

/** Which positions teach: the same tokens twice, filled where the model gets a loss. */
export function lossPicture(answer) {
  const { loss, gaps, tokens, vocabulary } = answer;
  const masked = new Set(gaps.map(({ position }) => position));
  const line = (name, text, count, mean, on) => element('div', { class: 'fd-loss', 'data-loss': name },
    element('b', { text }),
    element('span', { class: 'fd-squares', 'aria-hidden': 'true', dir: window.Cloze.direction(window.Cloze.sentence.text) }, ...tokens.map((token) => element('i', {
      class: on(token.position) ? 'on' : '', title: token.text,
    }))),
    element('span', { class: 'fd-count', text: t`${count} of ${tokens.length} (${percent(count / tokens.length)})` }),
    element('span', { class: 'fd-mean', text: mean === null ? '' : t`mean loss ${mean.toFixed(2)} nats` }));
  return element('div', { class: 'fd-losses' },
    line('generator', TEXT.generator, loss.generator.count, loss.generator.mean, (p) => masked.has(p)),
    line('discriminator', TEXT.discriminator, loss.discriminator.count, loss.discriminator.mean, () => true),
    element('p', { class: 'fd-small', text: t`More places, but less in each: a verdict is a yes or a no (at most 1 bit), a masked word is a choice among ${format.count(vocabulary)} pieces (up to ${Math.log2(vocabulary).toFixed(1)} bits). [CLS] and [SEP] are judged, too.` }));
}

// --- the score: kept in this browser and nowhere else ----------------------------------------------

const KEY = 'cloze-forge-score';
const EMPTY = { generator: [0, 0], human: [0, 0] };
const counted = new Set();

export function readScore() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    const whole = (pair) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isInteger);
    return found && whole(found.generator) && whole(found.human) ? found : structuredClone(EMPTY);
  } catch { return structuredClone(EMPTY); }
}

function keep(score) {
  try { localStorage.setItem(KEY, JSON.stringify(score)); } catch { /* private windows may refuse */ }
}

/** Count attempts of one side; the same attempt counts once. */
export function count(side, attempts) {
  const score = readScore();
  for (const { key, fooled } of attempts) {
    if (counted.has(key)) continue;
    counted.add(key);
    score[side][0] += 1;
    if (fooled) score[side][1] += 1;
  }
  keep(score);
}

export function scoreBoard(redraw) {
  const score = readScore();
  const line = (name, text, [tried, fooled]) => {
    const fill = element('span', { class: 'fill' });
    fill.style.transform = `scaleX(${tried ? fooled / tried : 0})`;
    return element('div', { class: 'fd-score', 'data-side': name },
      element('b', { text }), element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
      element('span', { class: 'fd-count', text: tried ? t`fooled it with ${fooled} of ${tried} (${percent(fooled / tried)})` : TEXT.none }));
  };
  return element('div', { class: 'fd-board' },
    line('human', TEXT.you, score.human), line('generator', TEXT.generator, score.generator),
    element('div', { class: 'fd-row' },
      element('span', { class: 'fd-small', text: TEXT.rules }),
      element('button', {
        type: 'button', class: 'quiet', text: TEXT.reset, onclick: () => { counted.clear(); keep(EMPTY); redraw(); },
      })));
}

/** What the address kept; anything may stand there. */
export function restored() {
  const kept = window.Cloze.kept('forge') ?? {};
  const fakes = (Array.isArray(kept.fakes) ? kept.fakes : []).filter((entry) => Array.isArray(entry)
    && wholeOr(entry[0], 0, 511, null) !== null && typeof entry[1] === 'string' && entry[1].trim() && entry[1].length <= 64);
  return {
    roll: wholeOr(kept.roll, 0, MOST_SEED, 1),
    seed: wholeOr(kept.seed, 0, MOST_SEED, 1),
    temperature: kept.temperature >= 0.1 && kept.temperature <= 3 ? Number(kept.temperature) : 1,
    detective: typeof kept.detective === 'string' ? kept.detective.slice(0, 200) : null,
    fakes: new Map(fakes.slice(0, MOST_FAKES).map(([position, word]) => [position, word.trim()])),
  };
}
