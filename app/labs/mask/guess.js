// One card: what the model expects at one position, the word of the text, and a word of one's own.
(() => {
  'use strict';
  const { element, sentence, change, write, format, t, texts, message } = window.Cloze;

  const TOP = 5;
  const SEEN = texts({
    mask: 'the model sees [MASK]',
    random: 'the model sees another word',
    kept: 'the model sees the word itself',
  });

  // Families that never read [MASK] answer from elsewhere (core_models/prediction/passes.py).
  const BLIND = texts({
    order: 'the model knows the place, not the word',
    causal: 'the model reads only the words before it',
  });

  // How unsure the model is, in plain words: exp(entropy) is the number of equally likely words
  // that would leave it as unsure.
  function doubt(entropy) {
    const words = Math.exp(entropy);
    if (words < 1.5) return t`Nearly certain.`;
    const number = words < 10 ? words.toFixed(1) : format.count(Math.round(words));
    if (words < 4) return t`Fairly sure: about ${number} likely words.`;
    if (words < 50) return t`Unsure: about ${number} likely words.`;
    return t`Guessing: about ${number} likely words.`;
  }

  const isUpper = (text) => /^\p{Lu}/u.test(text);
  const fitCase = (word, original) => (isUpper(original) && !isUpper(word)
    ? word.charAt(0).toUpperCase() + word.slice(1) : word);
  // Byte-level pieces do not mark the first word of a text; there is none that they could continue.
  const continues = ({ continues: marked, piece }, { start }) => marked
    && (piece.startsWith('##') || Boolean([...sentence.text].slice(0, start).join('').trim()));
  const readable = (candidate, token) => (sentence.pieces ? candidate.piece
    : `${continues(candidate, token) ? '-' : ''}${candidate.display}`);

  // The candidate replaces the piece in the text; Python then reads the new text.
  function put(token, candidate) {
    // The card goes; a keyboard goes on at the word.
    document.querySelector(`.chips .chip[data-position="${token.position}"]`)?.focus({ preventScroll: true });
    const marks = new Map(sentence.marks);
    marks.delete(token.position);
    change({ marks });
    const letters = [...sentence.text];
    const word = candidate.continues || token.masked
      ? candidate.display : fitCase(candidate.display, token.text);
    letters.splice(token.start, token.end - token.start, word);
    write('sentence-text', letters.join(''));
  }

  function makeRow() {
    const parts = {
      rank: element('span', { class: 'rank' }),
      word: element('bdi', { class: 'word' }),
      fill: element('span', { class: 'fill' }),
      share: element('span', { class: 'share' }),
    };
    return { ...parts, bar: element('span', { class: 'bar', 'aria-hidden': 'true' }, parts.fill) };
  }

  function show(parts, rank, word, probability) {
    const known = probability !== null;
    parts.rank.textContent = rank === null ? '' : format.count(rank);
    if (word !== null) parts.word.textContent = word;
    parts.fill.style.transform = `scaleX(${known ? probability : 0})`;
    parts.share.textContent = known ? format.percent(probability) : '';
    parts.share.title = known ? format.exact(probability) : '';
  }

  function make(ask) {
    const rows = Array.from({ length: TOP }, () => {
      const parts = makeRow();
      const button = element('button', { type: 'button', class: 'candidate' },
        parts.rank, parts.word, parts.bar, parts.share);
      return { ...parts, button };
    });
    const own = makeRow();
    const mine = makeRow();
    const card = {
      rows, own, mine,
      face: element('bdi', { class: 'face' }),
      seen: element('span', { class: 'seen' }),
      original: element('div', { class: 'candidate was', title: t`The word of your sentence` },
        own.rank, own.word, own.bar, own.share),
      input: element('input', {
        type: 'text', class: 'mine-word', placeholder: t`your word`, autocomplete: 'off',
        autocapitalize: 'off', spellcheck: 'false', maxlength: '64', oninput: () => ask(),
      }),
      note: element('p', { class: 'mine-note', role: 'status' }),
      verdict: element('p', { class: 'verdict' }),
    };
    card.root = element('section', { class: 'guess' },
      element('h3', {}, card.face, card.seen),
      element('ol', { class: 'candidates' }, ...rows.map(({ button }) => element('li', {}, button))),
      card.original,
      element('div', { class: 'candidate mine' }, mine.rank, card.input, mine.bar, mine.share),
      card.note, card.verdict);
    for (const [index, { button }] of rows.entries()) {
      button.addEventListener('click', () => {
        const candidate = card.prediction?.candidates[index];
        if (candidate) put(card.token, candidate);
      });
    }
    return card;
  }

  // Names the position; a new card keeps its rows empty, so that the click is felt at once.
  function prepare(card, token, mark) {
    const kind = token.masked ? 'mask' : mark.case;
    card.token = token;
    card.root.dataset.position = token.position;
    card.root.dataset.case = kind;
    card.face.textContent = token.masked ? t`Gap in the text` : token.text;
    card.seen.textContent = kind === 'random' && mark.shown
      ? t`the model sees “${mark.shown}”` : SEEN[kind];
    const blind = BLIND[sentence.card?.fills];
    if (blind) card.seen.textContent = blind;
    card.input.setAttribute('aria-label', t`Your word for ${token.text}`);
    if (card.prediction) fill(card, card.prediction);
  }

  function wait(card) {
    card.root.classList.add('waiting');
    card.prediction = null;
    for (const parts of card.rows) {
      show(parts, null, '', null);
      parts.button.disabled = true;
    }
    card.original.hidden = true;
  }

  function fill(card, prediction) {
    card.root.classList.remove('waiting');
    card.prediction = prediction;
    const { original, candidates } = prediction;
    card.rows.forEach((parts, index) => {
      const candidate = candidates[index];
      parts.button.disabled = !candidate;
      parts.button.parentNode.hidden = !candidate;
      if (!candidate) return;
      show(parts, candidate.rank, readable(candidate, card.token), candidate.probability);
      parts.word.classList.toggle('raw', sentence.pieces);
      parts.button.classList.toggle('is-original', !card.token.unknown && original?.id === candidate.id);
      parts.button.title = t`Put “${candidate.display}” into the sentence`;
      parts.button.dataset.piece = candidate.piece;
    });
    // [UNK] stands for the word only because the model has no piece for it.
    card.original.hidden = !original || card.token.unknown || candidates.some(({ id }) => id === original.id);
    if (!card.original.hidden) {
      show(card.own, original.rank, readable(original, card.token), original.probability);
      card.own.word.classList.toggle('raw', sentence.pieces);
    }
    card.verdict.textContent = doubt(prediction.entropy);
    fillMine(card, prediction);
  }

  function fillMine(card, prediction) {
    const word = card.input.value.trim();
    const found = word ? prediction.watched.find((entry) => entry.word === word) : null;
    show(card.mine, found?.rank ?? null, null, found?.probability ?? null);
    card.note.textContent = message(found?.note ?? '');
  }

  window.Cloze.guess = { TOP, make, prepare, wait, fill };
})();
