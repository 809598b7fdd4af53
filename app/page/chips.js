// The sentence as chips. Click, Enter or Space hides or shows a piece; drag or shift for several.
(() => {
  'use strict';
  const { element, register, sentence, change, field, write, t, texts, message, listed } = window.Cloze;

  // --- marks ------------------------------------------------------------------------------

  const canHide = (token) => !token.special && !token.masked;
  const groupOf = (token) => (sentence.whole
    ? sentence.tokens.filter((other) => other.word === token.word && canHide(other))
    : [token].filter(canHide));

  function setHidden(tokens, hidden) {
    const marks = new Map(sentence.marks);
    for (const token of tokens.flatMap(groupOf)) {
      if (!hidden) marks.delete(token.position);
      else if (!marks.has(token.position)) {
        marks.set(token.position, { position: token.position, case: 'mask' });
      }
    }
    change({ marks });
  }

  // The pieces of these words (small letters), each at its first place: other vocabularies cut them otherwise.
  function tokensOf(words) {
    const text = sentence.text.toLowerCase();
    const places = words.map((word) => [text.indexOf(word), text.indexOf(word) + word.length]);
    return sentence.tokens.filter((token) => canHide(token) && places.some(([from, to]) => token.start < to && token.end > from));
  }

  // --- an example: a text with what is hidden in it ------------------------------------------

  let wish = null; // an example that waits for Python to cut its text into pieces

  function grant() {
    if (!wish) return;
    const { text, hide, done } = wish;
    // Typed over in the meantime.
    if ((field('sentence-text')?.value ?? text) !== text) { wish = null; done(); return; }
    if (sentence.text !== text || sentence.error || !sentence.tokens.length) return;
    const found = tokensIn(hide);
    wish = null;
    change({ marks: new Map(found.map(({ position }) => [position, { position, case: 'mask' }])) });
    done();
  }

  // What an example hides: words as for tokensOf, or spans of characters (code points).
  const tokensIn = (hide) => (typeof hide[0] === 'string' ? tokensOf(hide)
    : sentence.tokens.filter((token) => canHide(token) && hide.some(([from, to]) => token.start < to && token.end > from))).flatMap(groupOf);

  /** Show a text with this hidden in it and nothing else; fulfilled when it is there, or another text or example is. */
  const chooseExample = ({ text, hide = [] }) => new Promise((done) => {
    wish?.done();
    wish = { text, hide, done };
    if (sentence.text !== text) write('sentence-text', text);
    else grant();
  });

  /** Whether an example is what is shown now. */
  const showsExample = ({ text, hide = [] }) => {
    if (sentence.text !== text) return false;
    const hidden = new Set(tokensIn(hide).map(({ position }) => position));
    return hidden.size === sentence.marks.size && [...sentence.marks.keys()].every((position) => hidden.has(position));
  };
  window.Cloze.onChange(grant);

  /** Whether this text of an example is on its way. */
  const awaits = (text) => wish !== null && wish.text === text;

  // Where a character of the old text stands in the new one, null where the text changed.
  function follow(before, after) {
    const a = [...before];
    const b = [...after];
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head
      && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
    return (start, end) => {
      if (end <= head) return [start, end];
      const moved = b.length - a.length;
      return start >= a.length - tail ? [start + moved, end + moved] : null;
    };
  }

  // Marks stay on words that a change of the text or of the model leaves in place.
  function carryMarks(answer) {
    const marks = new Map();
    const place = follow(sentence.text, answer.text);
    for (const mark of sentence.marks.values()) {
      const old = sentence.tokens[mark.position];
      const span = old && place(old.start, old.end);
      if (!span) continue;
      for (const token of answer.tokens) {
        if (!canHide(token) || token.start >= span[1] || token.end <= span[0]) continue;
        const same = answer.model === sentence.model && mark.case !== 'mask';
        marks.set(token.position, {
          ...(same ? mark : { case: 'mask' }), position: token.position,
        });
      }
    }
    return marks;
  }

  function adopt(answer) {
    if (!answer) return;
    const { text, model, tokens, error, notes, card = null, advice = null, script = null } = answer;
    if (error) change({ text, model, tokens: [], marks: new Map(), error, notes: [], advice, script });
    else change({ text, model, tokens, marks: carryMarks(answer), error: null, notes, card, advice, script });
  }

  // --- drawing ----------------------------------------------------------------------------

  function label(token, mark) {
    if (token.masked) return '[MASK]';
    if (!mark || mark.case === 'kept') return token.text;
    return mark.case === 'mask' ? '[MASK]' : mark.shown ?? t`piece ${mark.piece}`;
  }

  function caption(token, mark) {
    if (mark) return mark.case === 'kept' ? t`kept` : token.text;
    return sentence.pieces && !token.masked ? token.piece : '';
  }

  // What the eye has from colour and border; a chip's name is all of its text.
  const SPOKEN = texts({ mask: 'hidden', random: 'replaced', kept: 'to be predicted' });
  function spoken(token, mark) {
    if (token.masked) return t`in the text`;
    return listed([token.unknown && t`unknown to the model`, mark && SPOKEN[mark.case]].filter(Boolean));
  }

  function dress(chip, token) {
    const mark = sentence.marks.get(token.position);
    const previous = sentence.tokens[token.position - 1];
    const next = sentence.tokens[token.position + 1];
    const inWord = (other) => other && token.word !== null && other.word === token.word;
    const classes = ['chip'];
    if (token.special) classes.push('special');
    if (token.unknown) classes.push('unknown');
    if (inWord(previous)) classes.push('joined-before');
    if (inWord(next)) classes.push('joined-after');
    const kind = token.masked ? 'mask' : mark?.case;
    if (kind) classes.push('marked', kind);
    chip.className = classes.join(' ');
    chip.dataset.position = token.position;
    chip.dataset.case = kind ?? '';
    chip.dataset.word = token.word ?? '';
    chip.firstChild.textContent = label(token, mark);
    chip.children[1].textContent = caption(token, mark);
    chip.lastChild.textContent = token.special ? '' : spoken(token, mark);
    chip.hidden = token.special && !sentence.pieces;
    if (token.special) { chip.setAttribute('aria-disabled', 'true'); return; }
    chip.removeAttribute('aria-disabled');
    chip.setAttribute('aria-pressed', String(Boolean(kind)));
    chip.title = token.unknown ? t`This model has no piece for it and reads ${token.piece} instead.` : '';
  }

  const CLOSING = /^[\p{Pe}\p{Pf}\p{Po}]+$/u;

  // By the first letter that has a direction, as dir="auto" would if the chips were plain text.
  const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
  const direction = (text) => (RIGHT_TO_LEFT.test(text) ? 'rtl' : 'ltr');

  const blank = () => element('button', { type: 'button', tabindex: '-1' },
    element('bdi', { class: 'face' }), element('bdi', { class: 'note' }),
    element('span', { class: 'spoken' }));

  // Before the chips are drawn, which may be at once: link.js hides with them what the page opens with.
  Object.assign(window.Cloze, { setHidden, tokensOf, chooseExample, showsExample, awaits });

  register('chips', (view) => {
    const list = element('div', {
      class: 'chips', role: 'toolbar',
      'aria-label': t`Words of the sentence; press one to hide it`,
    });
    const problem = element('p', { class: 'problem', role: 'status' });
    view.root.replaceChildren(list, problem);
    let focused = 0;
    let anchor = null;
    let drag = null;

    let chips = [];
    const chipOf = (position) => chips[position];
    const tokenAt = (target) => {
      const chip = target instanceof Element ? target.closest('.chip') : null;
      return chip && list.contains(chip) ? sentence.tokens[Number(chip.dataset.position)] : null;
    };
    const between = (a, b) => sentence.tokens.slice(Math.min(a, b), Math.max(a, b) + 1);
    const isHidden = (token) => sentence.marks.has(token.position);

    // The pieces of a word and the signs right after it stand in one box, so that no line ends between them.
    let laid = null;
    function layOut() {
      if (laid === sentence.tokens) return;
      laid = sentence.tokens;
      const held = document.activeElement;
      while (chips.length > laid.length) chips.pop();
      while (chips.length < laid.length) chips.push(blank());
      const boxes = [];
      laid.forEach(({ word, start, text }, index) => {
        const before = laid[index - 1];
        const together = before?.word != null && (before.word === word || (before.end === start && CLOSING.test(text)));
        if (!together) boxes.push([]);
        boxes.at(-1).push(chips[index]);
      });
      list.replaceChildren(...boxes.map((own) => (own.length > 1 ? element('span', { class: 'word' }, ...own) : own[0])));
      if (chips.includes(held)) held.focus({ preventScroll: true });
    }

    function draw() {
      layOut();
      sentence.tokens.forEach((token, index) => dress(chipOf(index), token));
      const usable = sentence.tokens.filter((token) => !token.special);
      if (!usable.some((token) => token.position === focused)) {
        focused = usable[0]?.position ?? 0;
      }
      for (const chip of chips) {
        chip.tabIndex = Number(chip.dataset.position) === focused ? 0 : -1;
      }
      list.hidden = !usable.length;
      list.dir = direction(sentence.text);
      problem.hidden = !sentence.error;
      problem.textContent = message(sentence.error ?? '');
      view.root.dataset.change = sentence.change;
    }

    function focus(position) {
      if (!chipOf(position)) return;
      chipOf(focused)?.setAttribute('tabindex', '-1');
      focused = position;
      chipOf(position).tabIndex = 0;
      chipOf(position).focus();
    }

    function press(token, extend) {
      if (!token || !canHide(token)) return;
      if (extend && anchor !== null && sentence.tokens[anchor]) {
        setHidden(between(anchor, token.position), true);
      } else {
        setHidden([token], !isHidden(token));
        anchor = token.position;
      }
    }

    // --- pointer: the drag only shows its range; marks change when it ends -----------------

    function preview() {
      const range = drag?.moved ? between(drag.from, drag.to) : [];
      const positions = new Set(range.filter(canHide).map((token) => token.position));
      for (const chip of chips) {
        chip.classList.toggle('in-range', positions.has(Number(chip.dataset.position)));
      }
    }

    list.addEventListener('pointerdown', (event) => {
      const token = tokenAt(event.target);
      if (!token || event.button !== 0 || event.pointerType === 'touch' || event.shiftKey) return;
      drag = { from: token.position, to: token.position, moved: false };
    });
    list.addEventListener('pointermove', (event) => {
      if (!drag) return;
      const token = tokenAt(document.elementFromPoint(event.clientX, event.clientY));
      if (!token || token.position === drag.to) return;
      drag.to = token.position;
      drag.moved = true;
      preview();
    });
    window.addEventListener('pointerup', () => {
      if (!drag) return;
      const { from, to, moved } = drag;
      drag = null;
      if (!moved) return;
      preview();
      anchor = from;
      setHidden(between(from, to), !isHidden(sentence.tokens[from]));
      const swallow = (event) => event.stopPropagation();
      list.addEventListener('click', swallow, { capture: true, once: true });
      setTimeout(() => list.removeEventListener('click', swallow, { capture: true }));
    });
    window.addEventListener('pointercancel', () => { drag = null; preview(); });

    // Buttons turn Enter and Space into clicks, so this one handler serves pointer and keyboard.
    list.addEventListener('click', (event) => {
      const token = tokenAt(event.target);
      if (!token || token.special) return;
      focus(token.position);
      press(token, event.shiftKey);
    });

    // --- keyboard ------------------------------------------------------------------------

    function nearestInRow(down) {
      const here = chipOf(focused).getBoundingClientRect();
      const middle = (here.left + here.right) / 2;
      let best = null;
      for (const chip of chips) {
        if (chip.hidden || chip.classList.contains('special')) continue;
        const box = chip.getBoundingClientRect();
        const rows = (down ? box.top - here.top : here.top - box.top);
        if (rows < here.height / 2) continue;
        const cost = rows * 10 + Math.abs((box.left + box.right) / 2 - middle);
        if (!best || cost < best.cost) best = { cost, position: Number(chip.dataset.position) };
      }
      return best?.position ?? focused;
    }

    function target(key) {
      const usable = sentence.tokens.filter((token) => !token.special).map((t) => t.position);
      const at = usable.indexOf(focused);
      const forward = getComputedStyle(list).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
      if (key === 'Home') return usable[0];
      if (key === 'End') return usable.at(-1);
      if (key === 'ArrowUp' || key === 'ArrowDown') return nearestInRow(key === 'ArrowDown');
      if (key !== 'ArrowLeft' && key !== 'ArrowRight') return null;
      return usable[Math.min(usable.length - 1, Math.max(0, at + (key === forward ? 1 : -1)))];
    }

    list.addEventListener('keydown', (event) => {
      const position = target(event.key);
      if (position === null || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const from = sentence.tokens[focused];
      const hidden = isHidden(from);
      focus(position);
      if (event.shiftKey) setHidden(between(from.position, position), hidden);
    });

    view.onValue(() => adopt(view.value));
    window.Cloze.onSentence(view, draw);
    adopt(view.value);
  });

  window.Cloze.direction = direction;
})();
