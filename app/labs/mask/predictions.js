// The Mask tab: one card per marked position, and how to read them.
(() => {
  'use strict';
  const {
    element, register, sentence, change, onSentence, question, asker, guess, format, keep, kept, t, message: say,
  } = window.Cloze;

  const FIRST_CARDS = 24;

  function summarise(predictions) {
    const given = predictions.filter(({ original }) => original);
    const known = given.filter(({ position }) => !sentence.tokens[position]?.unknown);
    const first = known.filter(({ original }) => original.rank === 1).length;
    const others = predictions.length > 1
      ? t`Each gap is filled on its own: the model sees the other gaps as gaps.` : '';
    if (!given.length) return others;
    if (given.length > 1) return `${t`${first} of ${given.length} hidden pieces are the model’s first choice.`} ${others}`;
    if (!known.length) return `${t`The model has no piece for the word of your sentence, so that it cannot answer it.`} ${others}`.trim();
    const { rank } = known[0].original;
    const own = rank === 1 ? t`The word of your sentence is the model’s first choice.`
      : t`The word of your sentence is the model’s choice number ${format.count(rank)}.`;
    return `${own} ${others}`.trim();
  }

  // --- what can be taken along --------------------------------------------------------------

  const python = (value) => JSON.stringify(value);

  function code(load) {
    const marks = [...sentence.marks.values()].sort((a, b) => a.position - b.position);
    const of = (kind) => marks.filter((mark) => mark.case === kind);
    const list = (kind) => of(kind).map((mark) => mark.position).join(', ');
    const swaps = of('random').map((mark) => `${mark.position}: ${mark.piece}`).join(', ');
    const extra = [
      list('mask') && `masks=[${list('mask')}]`,
      swaps && `replaced={${swaps}}`,
      list('kept') && `kept=[${list('kept')}]`,
      `top_k=${guess.TOP}`,
    ].filter(Boolean);
    return [
      'import core_models as cm',
      'from core_models.prediction import fill',
      '',
      `model = cm.load(${python(load)})`,
      `result = fill(model, ${python(sentence.text)}, ${extra.join(', ')})`,
      'for prediction in result.predictions:',
      '    print(prediction.position, prediction.original, prediction.candidates)',
    ].join('\n');
  }

  // A cell that a spreadsheet would run as a formula gets a quote in front.
  function cell(value) {
    const text = String(value ?? '');
    const safe = typeof value !== 'number' && /^\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function table(predictions) {
    const rows = [['position', 'in the text', 'case', 'rank', 'candidate', 'piece', 'probability']];
    for (const { position, case: kind, original, candidates } of predictions) {
      const own = original && !sentence.tokens[position]?.unknown && !candidates.some(({ id }) => id === original.id) ? [original] : [];
      for (const found of [...candidates, ...own]) {
        rows.push([position, sentence.tokens[position]?.text, kind, found.rank, found.display,
          found.piece, found.probability]);
      }
    }
    return rows.map((row) => row.map(cell).join(',')).join('\r\n');
  }

  /** answer(): what is shown. asked(): the number of the question, whose answer may be under way. */
  function makeGuide(answer, asked, ask) {
    const counted = element('span');
    const lines = element('pre', { class: 'code', tabindex: '0' });
    const copy = element('button', { type: 'button', class: 'quiet outlined', text: t`Copy` });
    const pictures = {
      svg: element('button', { type: 'button', class: 'quiet outlined', id: 'save-svg', text: t`Save as SVG` }),
      png: element('button', { type: 'button', class: 'quiet outlined', id: 'save-png', text: t`Save as PNG` }),
    };
    const save = element('button', { type: 'button', class: 'quiet outlined', text: t`Save as CSV` });
    copy.addEventListener('click', async () => {
      const { copyText } = await import('../../parts/download.js');
      copy.textContent = await copyText(lines.textContent, lines) ? t`Copied` : t`Press Ctrl+C`;
      setTimeout(() => { copy.textContent = t`Copy`; }, 2000);
    });
    for (const [kind, button] of Object.entries(pictures)) button.addEventListener('click', () => ask(kind));
    let saved = null; // the question whose answer is to be saved
    async function write() {
      if (saved === null || answer()?.rev !== saved) return;
      saved = null;
      const text = table(answer().predictions);
      const { download } = await import('../../parts/download.js');
      download('cloze-predictions.csv', text, 'text/csv;charset=utf-8');
    }
    save.addEventListener('click', () => { saved = asked(); write(); });
    const root = element('aside', { class: 'guide' },
      element('h3', { text: t`How to read this` }),
      element('p', {}, counted, element('span', { class: 'key', 'aria-hidden': 'true' }),
        ` ${t`marks the word of your sentence.`}`),
      element('p', { text: t`Click a word to put it into the sentence, or type one of your own to see where it ranks.` }),
      element('details', {}, element('summary', { text: t`The code that recomputes this` }),
        lines, copy),
      element('div', { class: 'guide-files' }, pictures.svg, pictures.png, save));
    return {
      root,
      update({ vocabulary, load }) {
        const of = t`The model gave each of its ${format.count(vocabulary)} pieces a probability; a full bar would be 100 %.`;
        counted.textContent = `${of} `;
        lines.textContent = code(load);
        write();
      },
    };
  }

  function emptyState() {
    const own = sentence.tokens.filter((token) => !token.special);
    const last = own.findLast(({ text }) => /\p{L}{3,}|\p{Script=Han}/u.test(text)) ?? own.at(-1);
    if (!last) return null;
    const start = element('button', {
      type: 'button', class: 'quiet outlined', id: 'start',
      onclick: () => {
        window.Cloze.setHidden([last], true);
        // The button goes; a keyboard goes on at the word.
        document.querySelector(`.chips .chip[data-position="${last.position}"]`)?.focus({ preventScroll: true });
      },
    }, t`hide`, ' “', element('bdi', { text: last.text }), '”');
    return element('div', { class: 'empty' },
      element('p', { text: t`Nothing is hidden yet. Click a word above, or` }), start);
  }

  // A link holds the id of a random piece; only Python knows how it reads.
  function nameReplacements(seen) {
    const unnamed = [...sentence.marks.values()].filter(
      (mark) => mark.case === 'random' && !mark.shown && mark.position in seen);
    if (!unnamed.length) return;
    const marks = new Map(sentence.marks);
    for (const mark of unnamed) marks.set(mark.position, { ...mark, shown: seen[mark.position] });
    change({ marks });
  }

  // --- the view -----------------------------------------------------------------------------

  register('predictions', (view) => {
    const head = element('p', { class: 'summary', role: 'status' });
    const grid = element('div', { class: 'guesses', 'data-picture': true });
    const more = element('button', { type: 'button', class: 'quiet outlined', id: 'more' });
    const problem = element('p', { class: 'problem', role: 'status', hidden: true });
    const empty = element('div');
    const cards = new Map();
    let answered = null;
    let asked = 0;
    let all = false;
    let wanted = null; // the picture that was asked for: {rev, kind}
    let failure = null; // why the present question has no answer
    let restored = kept('mask-words') ?? {}; // the visitor's words in the address, by position, until they are asked for
    const guide = makeGuide(() => answered, () => asked, askPicture);
    const ways = element('div', { class: 'empty', hidden: true });
    view.root.replaceChildren(
      element('h2', { text: t`What fits the gap?` }), head, empty, problem, ways, grid, more);
    more.addEventListener('click', () => { all = true; draw(); fillCards(); });

    const keyOf = (token) => `${token.start} ${token.text}`;
    const places = () => sentence.tokens.filter(
      (token) => token.masked || sentence.marks.has(token.position));
    const fail = (reason) => {
      problem.hidden = false;
      problem.textContent = reason;
      view.root.dataset.state = 'error';
    };
    // Cards would show what was said of another question.
    const failQuestion = (reason) => {
      failure = reason;
      answered = null;
      grid.hidden = true;
      more.hidden = true;
      head.textContent = '';
      fail(reason);
    };

    /** A model that fills no gaps: say so, and where one that does is found. */
    function drawJudge({ generator, judges }) {
      const button = (id, text, onclick) => element('button', { type: 'button', class: 'quiet outlined', id, text, onclick });
      ways.replaceChildren(...[
        generator && button('open-generator', t`Open its generator`, () => window.Cloze.chooseModel(generator)),
        judges && button('open-forge', t`Open in “Generator and detective”`, () => window.Cloze.openTab('Forge')),
      ].filter(Boolean));
      ways.hidden = !ways.children.length;
      const { model } = sentence;
      const judged = generator
        ? t`${model} judges words and fills no gaps: it was trained to tell which words were replaced. The model that fills them is its generator; “Generator and detective” shows both at work.`
        : t`${model} judges words and fills no gaps: it was trained to tell which words were replaced. “Generator and detective” shows it at work.`;
      failQuestion(judges ? judged : t`${model} fills no gaps: it was trained for another task. Choose a model that fills gaps.`);
    }
    const send = asker(view, 'ask', () => failQuestion(t`The server does not answer. Is it still running?`));

    function ask() {
      const words = [...cards].map(([position, card]) => [position, card.input.value.trim()]).filter(([, word]) => word);
      restored = {};
      keep('mask-words', Object.fromEntries(words));
      const data = question({ words: [...new Set(words.map(([, word]) => word))], top_k: guess.TOP });
      asked = data.rev;
      failure = null;
      problem.hidden = true;
      view.root.dataset.asked = asked;
      view.root.dataset.state = 'waiting';
      send(data);
    }

    function askPicture(kind) {
      const data = question({ top_k: guess.TOP });
      wanted = { rev: data.rev, kind };
      view.send('picture', data);
    }

    async function savePicture({ error, svg }) {
      const { kind } = wanted;
      wanted = null;
      if (error) { fail(say(error)); return; }
      const { BROKEN, downloadDrawing, downloadPicture } = await import('../../parts/export.js');
      if (kind === 'svg') downloadDrawing('cloze-predictions.svg', svg);
      else await downloadPicture('cloze-predictions.png', svg).catch(() => fail(BROKEN));
    }

    function cardFor(token) {
      let card = cards.get(token.position);
      if (!card) {
        card = guess.make(ask);
        card.key = keyOf(token);
        const word = restored[token.position];
        if (typeof word === 'string') card.input.value = word.slice(0, card.input.maxLength);
        cards.set(token.position, card);
        guess.wait(card);
      }
      guess.prepare(card, token, sentence.marks.get(token.position));
      return card;
    }

    function draw() {
      const { card: model } = sentence;
      const able = !model || Boolean(model.fills);
      const open = able ? places() : [];
      const shown = all ? open : open.slice(0, FIRST_CARDS);
      const staying = new Map(shown.map((token) => [token.position, keyOf(token)]));
      for (const [position, card] of cards) {
        if (staying.get(position) === card.key) continue;
        card.root.remove();
        cards.delete(position);
      }
      shown.forEach((token, index) => {
        const { root } = cardFor(token);
        if (grid.children[index] !== root) grid.insertBefore(root, grid.children[index] ?? null);
      });
      grid.append(guide.root);
      grid.dataset.cards = Math.min(shown.length, 3);
      grid.hidden = !open.length || failure !== null;
      more.hidden = open.length <= shown.length || failure !== null;
      more.textContent = t`Show all ${open.length} gaps`;
      const start = open.length || sentence.error || !able ? null : emptyState();
      empty.replaceChildren(...(start ? [start] : []));
      problem.hidden = failure === null;
      ways.hidden = true;
      if (!open.length) {
        [asked, answered, all, failure] = [0, null, false, null];
        if (Object.keys(kept('mask-words') ?? {}).length && !Object.keys(restored).length) keep('mask-words', {});
        head.textContent = '';
        problem.hidden = true;
        view.root.dataset.state = 'empty';
        if (!able && !sentence.error) drawJudge(model);
      }
      return open.length;
    }

    function fillCards() {
      for (const prediction of answered?.predictions ?? []) {
        const card = cards.get(prediction.position);
        if (card) guess.fill(card, prediction);
      }
    }

    view.onValue(() => {
      const answer = view.value;
      if (answer?.rev === wanted?.rev && wanted) savePicture(answer);
      if (!answer || answer.rev !== asked) return;
      view.root.dataset.rev = answer.rev;
      if (answer.error) {
        failQuestion(say(answer.error));
        return;
      }
      answered = answer;
      failure = null;
      problem.hidden = true;
      grid.hidden = false;
      fillCards();
      guide.update(answer);
      const summary = summarise(answer.predictions);
      if (head.textContent !== summary) head.textContent = summary; // else it would be heard again with each letter of a word of one's own
      view.root.dataset.state = 'ready';
      nameReplacements(answer.seen);
    });

    let last = '';
    let lastModel = '';
    onSentence(view, () => {
      const { text, model, marks } = sentence;
      const seen = [...marks.values()].map(({ position, case: kind, piece }) => [position, kind, piece]);
      const key = JSON.stringify([text, model, seen]);
      if (model !== lastModel) {
        // What one model says must not stand under the name of another while that one computes.
        answered = null;
        for (const card of cards.values()) guess.wait(card);
        head.textContent = '';
      }
      if (key !== last) failure = null;
      const open = draw();
      if (open && key !== last) {
        for (const card of cards.values()) card.root.classList.add('waiting');
        ask();
      }
      [last, lastModel] = [key, model];
    });
  });
})();
