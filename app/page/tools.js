// Beside the chips: hide at random, show all, and folds with example sentences, how is drawn, the model's card.
(() => {
  'use strict';
  const {
    element, icon, register, sentence, change, onChange, question, asker, field, write, format,
    t, texts, message, modelTitle, listed, keep, kept,
  } = window.Cloze;

  const DICE = [
    'M4.5 3h11A1.5 1.5 0 0 1 17 4.5v11a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 15.5v-11A1.5 1.5 0 0 1 4.5 3Z',
    'M7 7h.01M13 7h.01M10 10h.01M7 13h.01M13 13h.01',
  ];

  // --- examples ---------------------------------------------------------------------------

  let defaults = []; // for models that read English

  register('examples', (view) => {
    let drawn = '';
    defaults = view.value.examples;
    const draw = () => {
      const examples = sentence.card?.examples ?? view.value.examples;
      if (drawn === JSON.stringify(examples)) return;
      drawn = JSON.stringify(examples);
      view.root.replaceChildren(
        element('div', { class: 'examples', role: 'group', 'aria-label': t`Example sentences` },
          ...examples.map((example) => element('button', {
            type: 'button', class: 'example', title: example.text, text: message(example.name),
            onclick: () => window.Cloze.chooseExample(example),
          }))));
    };
    draw();
    onChange(draw); // also while it is hidden
  });

  // --- notes: what the model cannot read, and who can; who answers in the open lab -----------

  let refused = null; // why a masking could not be drawn
  function refuse(why) {
    if (refused === why) return;
    refused = why;
    document.dispatchEvent(new CustomEvent('cloze:refused'));
  }
  let chooseModel = () => {};
  const LANGUAGE = texts({ en: 'English', zh: 'Chinese' });

  const answering = new Map(); // lab -> the models that answered there, and the language of each
  const openLab = () => window.Cloze.place?.tab ?? 'mask';

  /** Who answers in the open lab for the chosen model, and does not read what is asked. */
  function stranger() {
    const [name, language] = Object.entries(answering.get(openLab()) ?? {})
      .find(([each, reads]) => each !== sentence.model && sentence.script && reads !== sentence.script) ?? [];
    return name && { name, language };
  }

  /** Whether models that all read what is asked answer in the open lab for the chosen one, which may not. */
  function served() {
    const by = Object.entries(answering.get(openLab()) ?? {});
    return by.length > 0 && by.every(([each, reads]) => each !== sentence.model && reads === sentence.script);
  }

  function advise({ name = sentence.model, model, language, example }) {
    const button = (text, onclick) => element('button', { type: 'button', class: 'quiet outlined', text, onclick });
    return element('div', { class: 'advice' },
      element('p', { text: t`${name} does not read this sentence: it learnt ${LANGUAGE[language] ?? language}.` }),
      model ? button(t`Read it with ${model}`, () => chooseModel(model)) : null,
      button(t`Take a sentence that it reads`, () => {
        if (name !== sentence.model) chooseModel(name);
        window.Cloze.chooseExample(example);
      }));
  }

  register('notes', (view) => {
    const notes = element('div', { class: 'notes', role: 'status' });
    view.root.replaceChildren(notes);
    const draw = () => {
      // Where somebody else is advised to read it, the pieces without a name go without saying.
      const said = [...(sentence.advice ? [] : sentence.notes), ...(refused ? [refused.replace(/^seed\b/, t`Seed`)] : [])];
      const other = sentence.advice ? undefined : stranger();
      const own = served() ? null : sentence.advice;
      const advice = own ?? (other?.language === 'en' ? { ...other, example: defaults[0] } : null);
      const held = notes.contains(document.activeElement);
      notes.replaceChildren(...(advice ? [advise(advice)] : []), ...said.map((text) => element('p', { text: message(text) })));
      notes.hidden = !notes.childElementCount;
      if (!held) return;
      // What was pressed is gone, and not every lab has chips.
      const next = [notes.querySelector('button'), document.querySelector('.chip[tabindex="0"]'), field('sentence-text')];
      next.find((each) => each?.offsetParent)?.focus({ preventScroll: true });
    };
    onChange(draw);
    for (const event of ['cloze:by', 'cloze:tab', 'cloze:refused']) document.addEventListener(event, draw);
    draw();
  });

  document.addEventListener('cloze:by', ({ detail: { root, by } }) => {
    answering.set(root.closest('[role="tabpanel"]')?.id.replace('tab-', ''), by);
  });

  register('answering', (view) => {
    const line = element('p', { class: 'answering', role: 'status' });
    view.root.replaceChildren(line);
    const draw = () => {
      const by = Object.keys(answering.get(openLab()) ?? {});
      const names = listed(by.filter((name) => name !== sentence.model));
      const both = by.includes(sentence.model) ? t`${names} answers here, too` : t`${names} answers here`;
      const text = names ? both : '';
      if (line.textContent !== text) line.textContent = text;
      line.hidden = !text;
    };
    document.addEventListener('cloze:by', draw);
    document.addEventListener('cloze:tab', draw);
    onChange(draw);
    draw();
  });

  // --- tools ------------------------------------------------------------------------------

  const LEGEND = [
    ['mask', t`hidden`, t`80 %: the model sees [MASK]`],
    ['random', t`replaced`, t`10 %: it sees a random word`],
    ['kept', t`kept`, t`10 %: it sees the word itself`],
  ];

  // Where a hidden word is not read at all.
  const BLIND = texts({ mask: '80 %: the model does not see it', random: '10 %: other places see a random word', kept: '10 %: other places see the word itself' });

  // --- what is drawn ----------------------------------------------------------------------

  const KINDS = texts({ uniform: 'single pieces', whole_word: 'whole words', ngram: 'n-grams', span: 'spans' });
  const ABOUT = texts({
    uniform: 'BERT and RoBERTa: every piece is as likely as any other.',
    whole_word: 'All pieces of a word or none.',
    ngram: 'ALBERT: one, two or three words on end, n of them with weight 1/n.',
    span: 'SpanBERT: up to ten words on end, short ones more often; one draw of the case for the whole span.',
  });
  const RATES = [5, 10, 15, 20, 30, 40, 50];
  const FIRST = { kind: 'uniform', rate: 15 };

  /** The choice in the address, whoever wrote it. */
  function keptChoice() {
    const { kind, rate, seed, whole, pieces } = kept('mask-draw') ?? {};
    return {
      kind: Object.hasOwn(KINDS, kind) ? kind : FIRST.kind,
      rate: RATES.includes(rate) ? rate : FIRST.rate,
      seed: Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31 ? seed : null,
      switches: { whole: whole === true, pieces: pieces === true },
    };
  }

  function chooser(id, name, options, value, choose) {
    return element('select', { class: 'choice', id, 'aria-label': name, onchange: (event) => choose(event.target.value) },
      ...options.map(([key, text]) => element('option', { value: key, text, selected: String(key) === String(value) })));
  }

  /** How long the drawn runs are (bars) beside the law they are drawn from (outlines). */
  function histogram({ lengths, law, kind }) {
    const most = Math.max(law.length, ...lengths);
    const drawn = Array.from({ length: most }, (_, n) => lengths.filter((length) => length === n + 1).length);
    const tallest = Math.max(...law, ...drawn.map((count) => count / lengths.length));
    const height = (share) => `${(share / tallest) * 100}%`;
    const columns = drawn.map((count, n) => {
      const expected = law[n] ?? 0;
      const bar = element('span', { class: 'drawn' });
      const outline = element('span', { class: 'law' });
      bar.style.height = height(count / lengths.length);
      outline.style.height = height(expected);
      return element('span', {
        class: 'column', 'data-count': count,
        title: t`Length ${n + 1}: ${count} of ${lengths.length} drawn; the law gives ${format.percent(expected)}.`,
      }, element('span', { class: 'field' }, bar, outline), element('span', { class: 'length', text: n + 1 }));
    });
    const mean = (lengths.reduce((sum, length) => sum + length, 0) / lengths.length).toFixed(1);
    const expected = law.reduce((sum, share, n) => sum + share * (n + 1), 0).toFixed(1);
    const heading = kind === 'span' ? t`Span lengths in words` : t`n-gram lengths in words`;
    const told = t`Lengths drawn: ${lengths.join(', ')}. Mean ${mean}, by the law ${expected}.`;
    return element('figure', { class: 'lengths', id: 'draw-lengths' },
      element('figcaption', {}, element('b', { text: heading }), element('span', { text: told }),
        element('span', { class: 'soft', text: t`Bars: this draw. Outlines: the law. Runs that touch are one, and the last ends where the share is reached, so a short text seldom follows the law.` })),
      element('div', { class: 'columns', role: 'img', 'aria-label': `${heading}. ${told}` }, ...columns));
  }

  function toggle(name, text, title) {
    const button = element('button', {
      type: 'button', class: 'switch', role: 'switch', title, id: `switch-${name}`,
    }, element('span', { class: 'track' }), element('span', { text }));
    button.addEventListener('click', () => change({ [name]: !sentence[name] }));
    return button;
  }

  const FOLDS = [['examples', t`Examples`], ['draw', t`Options`], ['model', t`Model`]];

  /** Open a part of the block below the chips, and close the one that was open; none for ''. */
  function openFold(name) {
    const block = document.getElementById('sentence');
    block.dataset.open = name;
    for (const each of block.querySelectorAll('.fold-button')) each.setAttribute('aria-expanded', String(each.id === `fold-${name}`));
  }

  const fold = (name, text) => element('button', {
    type: 'button', class: 'quiet fold-button', id: `fold-${name}`, 'aria-expanded': 'false', text,
    onclick: () => openFold(document.getElementById('sentence').dataset.open === name ? '' : name),
  });
  register('opener', (view) => { view.root.replaceChildren(fold('open', t`Open a model`)); });

  register('tools', (view) => {
    const choice = keptChoice();
    const roll = element('button', {
      type: 'button', class: 'quiet', id: 'draw',
      title: t`Draw positions as in pretraining. Each press takes the next seed.`,
    }, icon(...DICE), element('span', { text: t`Hide at random` }));
    const kinds = chooser('draw-kind', t`What is drawn`, Object.entries(KINDS), choice.kind, (kind) => choose({ kind }));
    const rates = chooser('draw-rate', t`Share that is drawn`, RATES.map((rate) => [rate, `${rate}\u00a0%`]), choice.rate,
      (rate) => choose({ rate: Number(rate) }));
    const lengths = element('div', { class: 'lengths-box', hidden: true });
    const clear = element('button', { type: 'button', class: 'quiet', id: 'clear', text: t`Show all` });
    const whole = toggle('whole', t`Whole words`, t`Hide all pieces of a word together`);
    const pieces = toggle('pieces', t`Show pieces`, t`Show how the model cuts words into pieces`);
    const count = element('span', { class: 'count', role: 'status' });
    const legend = element('ul', { class: 'legend', 'aria-label': t`What the colours mean` },
      ...LEGEND.map(([kind, name, meaning]) => element('li', {},
        element('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' }),
        element('b', { text: name }), element('span', { 'data-case': kind, text: meaning }))));
    view.root.replaceChildren(
      element('div', { class: 'tools' }, roll, clear, ...FOLDS.map(([name, text]) => fold(name, text))),
      element('div', { class: 'draw-fold', 'data-fold': 'draw' }, rates, kinds, whole, pieces, count), legend, lengths);
    // With a new list of models, where it is in none yet.
    chooseModel = (name, offered) => {
      const choices = offered?.map(([title, model]) => [modelTitle(title), model]);
      if (choices) window.gradio_config.components.find(({ props }) => props?.elem_id === 'sentence-model').props.choices = choices;
      window.Cloze.chosenModel = { __type__: 'update', value: name, ...(choices ? { choices } : {}) };
      view.send('choose');
    };

    let drawn = null; // the seed of the last draw
    let asked = 0;
    let shown = ''; // the marks whose lengths are shown
    let restore = choice.seed; // a link names the draw behind its marks: its lengths are asked for again
    let restoring = false;
    const ask = asker(view, 'draw');

    function remember(seed) {
      const { kind, rate } = choice;
      keep('mask-draw', {
        ...(kind === FIRST.kind ? {} : { kind }), ...(rate === FIRST.rate ? {} : { rate }), ...(seed === null ? {} : { seed }),
        ...(sentence.whole ? { whole: true } : {}), ...(sentence.pieces ? { pieces: true } : {}),
      });
    }

    function choose(change) {
      Object.assign(choice, change);
      kinds.value = choice.kind;
      kinds.title = ABOUT[choice.kind];
      drawn = null; // the same seed draws something else now
      remember(null);
    }
    kinds.title = ABOUT[choice.kind];

    const marked = (marks) => JSON.stringify([...marks].map(({ position, case: kind }) => [position, kind]).sort((a, b) => a[0] - b[0]));

    function draw(seed) {
      const data = question({ seed, kind: choice.kind, rate: choice.rate / 100 });
      asked = data.rev;
      ask(data);
    }

    function showLengths(answer) {
      const [first, again] = [marked(answer.marks), marked(sentence.marks.values())];
      if (!answer.lengths.length || first !== again) return;
      shown = again;
      lengths.replaceChildren(histogram(answer));
      lengths.hidden = false;
      remember(answer.seed);
    }
    roll.addEventListener('click', () => {
      const input = field('sentence-seed');
      let seed = Math.trunc(Number(input?.value || 0));
      if (seed === drawn) seed += 1;
      if (input?.value !== String(seed)) write('sentence-seed', String(seed)); // of 3.7 or none, what is drawn with
      drawn = seed;
      draw(seed);
    });
    clear.addEventListener('click', () => change({ marks: new Map() }));
    // After the switch's own click: a draw of single pieces would go against it.
    whole.addEventListener('click', () => {
      if (sentence.whole && choice.kind === 'uniform') choose({ kind: 'whole_word' });
      if (!sentence.whole && choice.kind === 'whole_word') choose({ kind: 'uniform' });
    });
    for (const button of [whole, pieces]) button.addEventListener('click', () => remember(lengths.hidden ? null : drawn));
    change(choice.switches);

    view.onValue(() => {
      const answer = view.value;
      if (!answer || answer.rev !== asked) return;
      view.root.dataset.rev = answer.rev;
      refuse(answer.error ?? null);
      if (answer.error) drawn = null;
      else if (answer.text === sentence.text && answer.model === sentence.model) {
        if (!restoring) change({ marks: new Map(answer.marks.map((mark) => [mark.position, mark])), drawn: true });
        restoring = false;
        showLengths(answer);
      }
    });

    function drawState() {
      const usable = sentence.tokens.filter((token) => !token.special).length;
      const hidden = sentence.marks.size;
      const cases = new Set([...sentence.marks.values()].map((mark) => mark.case));
      if (!hidden) sentence.drawn = false;
      if (restore !== null && hidden && sentence.tokens.length) {
        [drawn, restore, restoring] = [restore, null, true];
        write('sentence-seed', String(drawn));
        draw(drawn);
      }
      if (!lengths.hidden && marked(sentence.marks.values()) !== shown) {
        lengths.hidden = true;
        remember(null);
      }
      whole.setAttribute('aria-checked', String(sentence.whole));
      pieces.setAttribute('aria-checked', String(sentence.pieces));
      roll.disabled = !usable;
      if (!hidden && document.activeElement === clear) roll.focus(); // what is disabled has no focus
      clear.disabled = !hidden;
      const pieceCount = usable === 1 ? t`1 piece` : t`${usable} pieces`;
      count.textContent = usable ? pieceCount + (hidden ? t`, ${hidden} marked` : '') : '';
      const blind = ['order', 'causal'].includes(sentence.card?.fills);
      for (const [kind, , meaning] of LEGEND) legend.querySelector(`[data-case="${kind}"]`).textContent = blind ? BLIND[kind] : meaning;
      legend.hidden = !sentence.drawn && !cases.has('random') && !cases.has('kept');
    }
    onChange(drawState);
    drawState();
    // A refusal is about the seed that stands there and the draw that was asked for.
    onChange(() => refuse(null));
    document.addEventListener('cloze:tab', () => refuse(null));
    document.addEventListener('input', ({ target }) => { if (target === field('sentence-seed')) refuse(null); });
  });
  Object.assign(window.Cloze, { chooseModel: (...given) => chooseModel(...given), openFold });
})();
