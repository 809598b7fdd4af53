// Below the chips: draw at random, clear, how chips behave. Above them: example sentences.
(() => {
  'use strict';
  const {
    element, icon, register, sentence, change, onSentence, question, asker, field, write, t, message,
  } = window.Cloze;

  const DICE = [
    'M4.5 3h11A1.5 1.5 0 0 1 17 4.5v11a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 15.5v-11A1.5 1.5 0 0 1 4.5 3Z',
    'M7 7h.01M13 7h.01M10 10h.01M7 13h.01M13 13h.01',
  ];

  // --- examples ---------------------------------------------------------------------------

  let wanted = null; // the word to hide once Python has cut the example into pieces

  function hideWanted() {
    if (!wanted || sentence.text !== wanted.text) return;
    const { hide } = wanted;
    wanted = null;
    const tokens = sentence.tokens.filter((token) => token.text.toLowerCase() === hide);
    const whole = sentence.tokens.filter((token) => tokens.some((t) => t.word === token.word));
    if (whole.length) window.Cloze.setHidden(whole, true);
  }

  register('examples', (view) => {
    const choose = (example) => {
      wanted = example;
      change({ marks: new Map() });
      if (sentence.text === example.text) hideWanted();
      else write('sentence-text', example.text);
    };
    view.root.replaceChildren(
      element('div', { class: 'examples', role: 'group', 'aria-label': t`Example sentences` },
        element('span', { class: 'lead', text: t`Try` }),
        ...view.value.map((example) => element('button', {
          type: 'button', class: 'example', title: example.text, text: message(example.name),
          onclick: () => choose(example),
        }))));
    onSentence(view, hideWanted);
  });

  // --- tools ------------------------------------------------------------------------------

  const LEGEND = [
    ['mask', t`hidden`, t`80 %: the model sees [MASK]`],
    ['random', t`replaced`, t`10 %: it sees a random word`],
    ['kept', t`kept`, t`10 %: it sees the word itself`],
  ];

  function toggle(name, text, title) {
    const button = element('button', {
      type: 'button', class: 'switch', role: 'switch', title, id: `switch-${name}`,
    }, element('span', { class: 'track' }), element('span', { text }));
    button.addEventListener('click', () => change({ [name]: !sentence[name] }));
    return button;
  }

  register('tools', (view) => {
    const roll = element('button', {
      type: 'button', class: 'primary', id: 'draw',
      title: t`Draw positions as in pretraining. Each press takes the next seed.`,
    }, icon(...DICE), element('span', { text: t`Hide 15 % at random` }));
    const clear = element('button', { type: 'button', class: 'quiet', id: 'clear', text: t`Show all` });
    const whole = toggle('whole', t`Whole words`, t`Hide all pieces of a word together`);
    const pieces = toggle('pieces', t`Show pieces`, t`Show how the model cuts words into pieces`);
    const count = element('span', { class: 'count', role: 'status' });
    const legend = element('ul', { class: 'legend', 'aria-label': t`What the colours mean` },
      ...LEGEND.map(([kind, name, meaning]) => element('li', {},
        element('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' }),
        element('b', { text: name }), element('span', { text: meaning }))));
    const notes = element('div', { class: 'notes', role: 'status' });
    view.root.replaceChildren(
      element('div', { class: 'tools' }, roll, clear, whole, pieces, count), legend, notes);

    let drawn = null; // the seed of the last draw
    let asked = 0;
    const ask = asker(view, 'draw');
    roll.addEventListener('click', () => {
      const input = field('sentence-seed');
      let seed = Math.trunc(Number(input?.value || 0));
      if (seed === drawn) {
        seed += 1;
        write('sentence-seed', String(seed));
      }
      drawn = seed;
      const data = question({ seed, whole_word: sentence.whole });
      asked = data.rev;
      ask(data);
    });
    clear.addEventListener('click', () => change({ marks: new Map() }));

    view.onValue(() => {
      const answer = view.value;
      if (!answer || answer.rev !== asked) return;
      view.root.dataset.rev = answer.rev;
      if (answer.error) change({ notes: [answer.error] });
      else if (answer.text === sentence.text && answer.model === sentence.model) {
        change({ marks: new Map(answer.marks.map((mark) => [mark.position, mark])), drawn: true });
      }
    });

    onSentence(view, () => {
      const usable = sentence.tokens.filter((token) => !token.special).length;
      const hidden = sentence.marks.size;
      const cases = new Set([...sentence.marks.values()].map((mark) => mark.case));
      if (!hidden) sentence.drawn = false;
      whole.setAttribute('aria-checked', String(sentence.whole));
      pieces.setAttribute('aria-checked', String(sentence.pieces));
      roll.disabled = !usable;
      clear.disabled = !hidden;
      const pieceCount = usable === 1 ? t`1 piece` : t`${usable} pieces`;
      count.textContent = usable ? pieceCount + (hidden ? t`, ${hidden} marked` : '') : '';
      legend.hidden = !sentence.drawn && !cases.has('random') && !cases.has('kept');
      notes.replaceChildren(...sentence.notes.map((text) => element('p', { text: message(text) })));
      notes.hidden = !sentence.notes.length;
    });
  });
})();
