// Training: the held-out examples that the newest validation found hardest and easiest.

const { element, format, t, texts } = window.Cloze;
const TEXT = texts({
  worst: 'The hardest', best: 'The easiest',
  masked_token: 'Marked words were hidden. Below each stands what the model said instead, or a tick where it was right.',
  permutation: 'Marked words were predicted in a random order, each from those before it. Below each stands what the model said instead, or a tick where it was right.',
  causal: 'Every word is predicted from those to its left. Marked are the hardest; below each stands what the model said instead, or a tick where it was right.',
  replaced_token: 'Marked are the words that the generator put in, with the original below, and the ones that the model took for replaced. A cross means that it was mistaken.',
  original: 'the original',
});
const CJK = /^[\u3400-\u9fff\u3000-\u303f\uff00-\uffef]/u;
const SPECIAL = /^(\[(CLS|SEP)\]|<\/?(s|cls|sep)>)$/;
const CLOSING = /^[.,;:!?)\]”’%]/u;

function tip(asked, kind) {
  const loss = asked.loss.toFixed(2);
  const share = format.percent(asked.chance);
  if (kind === 'replaced_token') {
    return asked.replaced ? t`“${asked.shown}” was put in for “${asked.right}”. The model’s probability that it was replaced: ${share}; loss ${loss}.`
      : t`“${asked.right}” is the original. The model’s probability that it was replaced: ${share}; loss ${loss}.`;
  }
  if (!asked.wrong) return t`The model said “${asked.said}” (${share}), which is right; loss ${loss}.`;
  return t`The model said “${asked.said}” (${share}); right is “${asked.right}”; loss ${loss}.`;
}

function below(asked, kind) {
  if (kind !== 'replaced_token') return asked.wrong ? asked.said : '✓';
  const was = asked.replaced ? asked.right : TEXT.original;
  return asked.wrong ? `✗ ${was}` : was;
}

function question(asked, kind) {
  return element('span', {
    class: 'train-asked', 'data-wrong': asked.wrong ? 'yes' : null, title: tip(asked, kind), role: 'img', 'aria-label': tip(asked, kind),
  }, element('bdi', { text: kind === 'replaced_token' ? asked.shown : asked.right }), element('small', {}, element('bdi', { text: below(asked, kind) })));
}

/** Words with blanks between them, pieces of one word together. */
function passage(example, kind) {
  const asked = new Map(example.asked.map((each) => [each.place, each]));
  const root = element('p', { class: 'train-passage' });
  const open = example.pieces.findIndex(([text]) => !SPECIAL.test(text));
  const close = example.pieces.findLastIndex(([text]) => !SPECIAL.test(text));
  example.pieces.forEach(([text, starts], place) => {
    if ((place < open || place > close) && !asked.has(place)) return;
    const before = example.pieces[place - 1]?.[0] ?? '';
    const glued = !starts || CLOSING.test(text) || (CJK.test(text) && CJK.test(before));
    if (root.childNodes.length && !glued) root.append(' ');
    root.append(asked.has(place) ? question(asked.get(place), kind) : element('bdi', { text }));
  });
  return root;
}

const list = (title, examples, kind) => [element('h4', { text: title }), element('ol', { class: 'train-extremes' }, ...examples.map((each) => element('li', {},
  passage(each, kind),
  element('p', { class: 'train-note', text: each.questions === 1 ? t`Loss ${each.loss.toFixed(2)} nats, one token asked.`
    : t`Loss ${each.loss.toFixed(2)} nats for each of ${format.count(each.questions)} tokens asked.` }))))];

export function mountPassages(view) {
  view.root.classList.add('train-held-out');
  const best = element('details', {}, element('summary', { text: TEXT.best }));
  function draw() {
    const found = view.value;
    if (!found?.worst) { view.root.replaceChildren(); return; }
    best.replaceChildren(best.firstChild, ...list('', found.best, found.kind).slice(1)); // what was open stays open
    view.root.replaceChildren(element('p', { class: 'train-note', text: found.examples === 1
      ? t`After step ${format.count(found.step)}, of the only example.`
      : t`After step ${format.count(found.step)}, of ${format.count(found.examples)} examples.` }),
      element('p', { class: 'train-note', text: TEXT[found.kind] ?? '' }), ...list(TEXT.worst, found.worst, found.kind), best);
  }
  view.onValue(draw);
  draw();
}
