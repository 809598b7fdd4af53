// The frame of the Mask tab's sections: asks while open, chooses gaps and words, exports.
import { copyText, download, downloadDrawing, downloadPicture } from '../../parts/export.js';
import { LABS } from './draw.js';

const { element, sentence, change, onSentence, question, asker, write, keep, kept, t, message: say } = window.Cloze;
const PAUSE = 250;
const MIXED = t`Here every marked word is hidden, also those that were replaced or kept above.`;

/** Words that were typed with commas between them. */
const split = (text) => [...new Set(text.split(/[,，;、\n]/).map((word) => word.trim()).filter(Boolean))];

function makeFoot(name, state) {
  const lines = element('pre', { class: 'code', tabindex: '0' });
  const copy = element('button', { type: 'button', class: 'quiet outlined', text: t`Copy` });
  copy.addEventListener('click', async () => {
    copy.textContent = await copyText(lines.textContent, lines) ? t`Copied` : t`Press Ctrl+C`;
    setTimeout(() => { copy.textContent = t`Copy`; }, 2000);
  });
  const csv = element('button', {
    type: 'button', class: 'quiet outlined save-csv', text: t`Save as CSV`,
    onclick: () => download(`cloze-${name}.csv`, state.answer.csv, 'text/csv;charset=utf-8'),
  });
  const svg = element('button', {
    type: 'button', class: 'quiet outlined save-svg', text: t`Save as SVG`,
    onclick: () => downloadDrawing(`cloze-${name}.svg`, state.answer.svg),
  });
  const png = element('button', {
    type: 'button', class: 'quiet outlined save-png', text: t`Save as PNG`,
    onclick: () => downloadPicture(`cloze-${name}.png`, state.answer.svg),
  });
  const root = element('div', { class: 'lab-foot', hidden: true },
    element('details', {}, element('summary', { text: t`The code that recomputes this` }), lines, copy), svg, png, csv);
  return {
    root,
    update(answer) {
      root.hidden = false;
      lines.textContent = answer.code;
      svg.hidden = !answer.svg;
      png.hidden = svg.hidden;
    },
  };
}

function makeChooser(ask, state) {
  const select = element('select', { class: 'lab-select', onchange: () => { state.at = Number(select.value); ask(); } });
  const root = element('label', { class: 'lab-field', hidden: true }, `${t`Gap`} `, select);
  return {
    root,
    update({ gaps, at }) {
      root.hidden = gaps.length < 2;
      select.replaceChildren(...gaps.map(({ positions, text }) => element('option', {
        value: positions[0], selected: positions.includes(at), text: `${text} (${positions[0]})`,
      })));
    },
  };
}

/** What the address says of a section, whoever wrote it. */
function readKept(name) {
  const { words, at, models } = kept(`mask-${name}`) ?? {};
  return {
    at: Number.isInteger(at) && at >= 0 && at < 1024 ? at : null,
    models: Array.isArray(models) && models.length <= 4 && models.every((each) => typeof each === 'string') ? models : null,
    words: typeof words === 'string' ? words.slice(0, 400) : '',
  };
}

export async function mount(view, lab, body, name) {
  const kind = LABS[name];
  const { words, ...choice } = readKept(name);
  const state = { ...choice, answer: null };
  let asked = 0;
  let last = '';
  let pending = null;
  let timer = 0;

  const problem = element('p', { class: 'problem', role: 'status', hidden: true });
  const empty = element('p', { class: 'lab-empty', hidden: true, text: kind.empty });
  const output = element('div', { class: 'lab-output' });
  const input = element('input', {
    type: 'text', class: 'lab-words', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', maxlength: '400',
    placeholder: t`words, with commas between`, oninput: () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); },
  });
  input.value = words;
  const remember = () => keep(`mask-${name}`, lab.open ? {
    open: true,
    ...(input.value.trim() && kind.words ? { words: input.value.trim() } : {}),
    ...(state.at === null ? {} : { at: state.at }),
    ...(state.models === null ? {} : { models: state.models }),
  } : {});
  const chooser = makeChooser(() => ask(), state);
  const foot = makeFoot(name, state);
  const tries = kind.tries.map((entry) => element('button', {
    type: 'button', class: 'quiet outlined lab-try', text: entry.name, onclick: () => tryOut(entry),
  }));
  const offered = element('span', { class: 'lab-tries' }, element('span', { class: 'lab-small', text: t`What to try:` }), ...tries);
  body.replaceChildren(
    element('p', { class: 'lab-intro', text: kind.intro }),
    element('div', { class: 'lab-row' },
      chooser.root,
      kind.words ? element('label', { class: 'lab-field' }, `${kind.words} `, input) : null,
      offered),
    problem, empty, output, foot.root);

  const fail = (message) => {
    problem.hidden = false;
    problem.textContent = say(message);
    view.root.dataset.state = 'error';
  };
  const send = asker(view, 'ask', () => fail(t`No answer yet: a large model may take longer, or the server has stopped.`));
  const openGaps = () => sentence.marks.size > 0 || sentence.tokens.some((token) => token.masked);

  function ask() {
    remember();
    if (!lab.open) return;
    if (!sentence.tokens.length || (kind.needsGap && !openGaps())) {
      [asked, problem.hidden, empty.hidden, output.hidden, foot.root.hidden] = [0, true, false, true, true];
      chooser.root.hidden = true;
      view.root.dataset.state = 'empty';
      return;
    }
    const data = question({ at: state.at, rivals: kind.words ? split(input.value) : [], models: state.models });
    asked = data.rev;
    view.root.dataset.asked = asked;
    view.root.dataset.state = 'waiting';
    empty.hidden = true;
    send(data);
  }

  function look() {
    hidePending();
    offered.hidden = kind.needsGap && sentence.card?.fills === null; // every try would end in the same error
    const marks = [...sentence.marks.keys()].sort((a, b) => a - b);
    const key = JSON.stringify([sentence.text, sentence.model, marks]);
    if (key === last || !lab.open) return;
    last = key;
    ask();
  }

  function tryOut(entry) {
    if (kind.words) input.value = (entry.rivals ?? []).join(', ');
    pending = entry;
    [last, state.at] = ['', null];
    change({ marks: new Map() });
    if (sentence.text === entry.text) hidePending();
    else write('sentence-text', entry.text);
  }

  // The new text comes back from Python in pieces; then its words can be hidden.
  function hidePending() {
    if (!pending || sentence.text !== pending.text) return;
    const places = pending.hide.map((word) => [pending.text.indexOf(word), word.length]);
    const inside = (token) => places.some(([start, length]) => token.start >= start && token.end <= start + length);
    pending = null;
    window.Cloze.setHidden(sentence.tokens.filter((token) => !token.special && inside(token)), true);
  }

  function draw() {
    const mixed = [...sentence.marks.values()].some((mark) => mark.case !== 'mask');
    output.replaceChildren(...kind.draw(state.answer, {
      choose(models) { state.models = models; ask(); },
    }), ...(mixed ? [element('p', { class: 'lab-small', text: MIXED })] : []));
  }

  view.onValue(() => {
    const answer = view.value;
    if (!answer || answer.rev !== asked) return;
    view.root.dataset.rev = answer.rev;
    if (answer.error) {
      output.hidden = true;
      foot.root.hidden = true;
      fail(answer.error);
      return;
    }
    state.answer = answer;
    problem.hidden = true;
    output.hidden = false;
    if (answer.gaps && answer.at !== undefined) chooser.update(answer);
    draw();
    foot.update(answer);
    view.root.dataset.state = 'ready';
  });

  lab.addEventListener('toggle', () => { remember(); look(); });
  onSentence(view, look);
  look();
}
