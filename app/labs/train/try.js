// Training: a box to try a fine-tuned model in: labels with their probability, names marked, the answer found.
import { post } from './api.js';

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  title: 'Try it', ask: 'Ask the model', text: 'A sentence', answer: 'A text that holds the answer', second: 'A second sentence', question: 'A question about it',
  none: 'It finds no name here.', no: (share) => t`It says that the text does not answer this (${share}).`, curve: 'Where the answer begins (upper bar) and ends (lower bar), piece by piece',
});
const EXAMPLES = {
  classify: ['The evening was a delight from the first song to the last.'],
  pair: ['A man is playing a guitar on the street.', 'Somebody makes music.'],
  regress: ['The children play in the garden.', 'Kids are playing outside.'],
  tag: ['Maria Silva flew from Lisbon to the office of the United Nations in Geneva.'],
  answer: ['The river freezes in December and is open again in April. Boats carry wood to the coast in summer.', 'When is the river open again?'],
};
const CHINESE = {
  classify: ['这家店的服务很好，我很喜欢。'], tag: ['张伟从北京飞到上海。'],
};

function bars(probabilities, chosen) {
  return element('ol', { class: 'train-bars' }, ...Object.entries(probabilities).sort((a, b) => b[1] - a[1]).slice(0, 12).map(([label, share]) => {
    const fill = element('span', { class: 'train-fill' });
    fill.style.transform = `scaleX(${share})`;
    return element('li', { 'data-name': label, class: label === chosen ? 'chosen' : null }, element('bdi', { text: label }),
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, fill), element('b', { text: format.percent(share) }));
  }));
}

/** The text with some stretches of it marked; places count code points, as Python does. */
function marked(text, stretches) {
  const letters = [...text];
  const root = element('p', { class: 'train-marked' });
  let at = 0;
  for (const { start, end, label, share } of stretches) {
    if (start < at) continue;
    root.append(letters.slice(at, start).join(''));
    root.append(element('mark', { title: share === undefined ? null : format.percent(share) }, element('bdi', { text: letters.slice(start, end).join('') }),
      label ? element('small', { text: label }) : null));
    at = end;
  }
  root.append(letters.slice(at).join(''));
  return root;
}

function curve({ places, starts, ends }, text) {
  const letters = [...text];
  const best = Math.max(...starts, ...ends, 1e-9);
  const bar = (value, side) => {
    const made = element('i', { class: side });
    made.style.transform = `scaleX(${value / best})`;
    return made;
  };
  return element('figure', {}, element('figcaption', {}, element('span', { text: TEXT.curve })),
    element('div', { class: 'train-curve' }, ...places.slice(0, 200).map(([from, to], n) => element('span', {
      title: t`begins ${format.percent(starts[n])}, ends ${format.percent(ends[n])}`,
    }, bar(starts[n], 'begin'), element('bdi', { text: letters.slice(from, to).join('') || '·' }), bar(ends[n], 'end')))));
}

function answerOf(found) {
  if (found.kind === 'regress') {
    const [low, high] = found.scale;
    const fill = element('span', { class: 'train-fill' });
    fill.style.transform = `scaleX(${Math.max(0, Math.min(1, (found.score - low) / (high - low || 1)))})`;
    return [element('p', { class: 'train-sum', text: t`${found.score.toFixed(2)} on a scale from ${low} to ${high}` }),
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, fill)];
  }
  if (found.kind === 'tag') {
    if (found.entities_known) {
      return [marked(found.text, found.entities.map((each) => ({ ...each, label: each.type, share: each.probability }))),
        found.entities.length ? null : element('p', { class: 'train-note', text: TEXT.none })];
    }
    return [marked(found.text, found.words.map(([start, end], n) => ({ start, end, label: found.tags[n], share: found.tag_probabilities[n] })))];
  }
  if (found.kind === 'answer') {
    const best = found.answers[0];
    const none = 1 - found.answers.reduce((sum, each) => sum + each.probability, 0);
    return [found.answer && best ? marked(found.text, [{ ...best, share: best.probability }]) : element('p', { class: 'train-sum', text: TEXT.no(format.percent(Math.max(0, none))) }),
      found.answers.length ? bars(Object.fromEntries(found.answers.map((each) => [each.text, each.probability])), found.answer) : null,
      found.curve ? curve(found.curve, found.text) : null];
  }
  return [bars(found.probabilities, found.label)];
}

export function makeTry() {
  const text = element('textarea', { id: 'train-try-text', rows: '2', maxlength: '20000' });
  const pair = element('input', { type: 'text', id: 'train-try-pair', maxlength: '2000', autocomplete: 'off' });
  const names = [element('span'), element('span')];
  const second = element('label', { class: 'train-field' }, names[1], pair);
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const answer = element('div', { class: 'train-answer', 'aria-live': 'polite' });
  const button = element('button', { type: 'button', class: 'primary', id: 'train-try-ask', text: TEXT.ask });
  const root = element('section', { class: 'card train-try', hidden: true }, element('h3', { text: TEXT.title }),
    element('label', { class: 'train-field' }, names[0], text), second, element('p', { class: 'train-actions' }, button), problem, answer);
  let run = null;
  let turn = 0; // of the last question: what is answered later to an earlier one, or of another run, is not shown

  async function ask() {
    button.disabled = true;
    problem.hidden = true;
    turn += 1;
    const mine = turn;
    const asked = text.value;
    try {
      const found = await post(`runs/${run}/try`, { text: asked, pair: second.hidden ? '' : pair.value });
      if (mine !== turn) return;
      answer.replaceChildren(...answerOf(found).filter(Boolean));
      root.dataset.answered = asked;
    } catch (error) {
      if (mine !== turn) return;
      problem.hidden = false;
      problem.textContent = error.message;
    }
    button.disabled = false;
  }
  button.addEventListener('click', ask);
  pair.addEventListener('keydown', (event) => { if (event.key === 'Enter') ask(); });
  text.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); ask(); } });

  return {
    root,
    fill(id, live) {
      root.hidden = !live.task || !live.model;
      if (root.hidden || id === run) return;
      run = id;
      const { kind, chinese, paired } = live.task;
      names[0].textContent = kind === 'answer' ? TEXT.answer : TEXT.text;
      names[1].textContent = kind === 'answer' ? TEXT.question : TEXT.second;
      second.hidden = !(paired ?? ['pair', 'regress', 'answer'].includes(kind));
      [text.value, pair.value] = [...(chinese ? CHINESE : EXAMPLES)[kind] ?? [], '', ''];
      text.rows = kind === 'answer' ? 4 : 2;
      answer.replaceChildren();
      turn += 1;
      [problem.hidden, button.disabled] = [true, false];
    },
  };
}
