// Attention: the modes beside single heads. Each is a panel (attention-panel-*.js) with
//   title, lead, tries [{text, set()}]            words, and examples that set the state up
//   build(lab) -> {node, ask() -> values | null, draw(answer, palette), tables() -> [table], onCell?(cell), mark?(overview), save?() -> more values for a file,
//                  next?(), receive?(answer)}     the last two for work in steps (lab.step)
// This file holds what they share: one question at a time, the message, the table twin, the files, the code.

import { makeCode, makeSaver } from '../../parts/lab-files.js';
import { keep, state } from './state.js';

const { Cloze } = window;
const { element, message, texts } = Cloze;
const TEXT = texts({
  tries: 'Try', table: 'The numbers as a table', save: 'Save',
  silent: 'No answer has come yet. It will appear here when it does; the machine may be busy.',
});
const PANELS = {
  combined: () => import('./panel-combined.js'),
  rollout: () => import('./panel-rollout.js'),
  norms: () => import('./panel-norms.js'),
  off: () => import('./panel-off.js'),
  products: () => import('./panel-products.js'),
  compare: () => import('./panel-compare.js'),
};

/** `main` is what the view knows of the sentence: answer (tokens, overview), palette. */
export function createLab(root, { overview, main, redraw, renew, ask: askMain }) {
  const view = Cloze.attentionLab;
  const panels = new Map(); // mode -> {frame, panel, answer, key}
  let asked = { rev: 0, mode: '', key: '' };
  let stepped = { rev: 0, mode: '' }; // the step of a panel's longer work that is under way
  let wish = null; // an example that waits for its sentence

  const send = Cloze.asker(view, 'ask', () => current()?.frame.tell(TEXT.silent));
  const current = () => panels.get(state.mode);

  const question = (values) => Cloze.question({
    lab: state.mode, second: state.second, part: state.second ? state.part : 'all', hide: state.hide, ...values,
  });

  // ---- one panel -------------------------------------------------------------------------------

  function makeFrame(mode, parts) {
    const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
    const status = element('p', { class: 'attn-note attn-status', role: 'status' });
    const tableBox = element('div', { class: 'attn-table', tabindex: 0, role: 'region', 'aria-label': TEXT.table });
    const details = element('details', { class: 'attn-more' }, element('summary', { text: TEXT.table }), tableBox);
    const code = makeCode();
    code.root.classList.add('attn-more');
    const tell = (text) => { status.textContent = text ?? ''; };
    const saver = makeSaver((kind) => {
      const { panel } = panels.get(mode);
      const data = question({ ...panel.ask(), ...panel.save?.(), kind });
      view.send('save', data);
      return data.rev;
    }, tell);
    const panel = parts.build(api);
    const frame = element('div', { class: 'attn-card attn-panel', 'data-mode': mode },
      element('h3', { text: parts.title }),
      element('p', { class: 'attn-note attn-lead', text: parts.lead }),
      element('div', { class: 'attn-row attn-tries' }, element('span', { class: 'attn-note', text: TEXT.tries }),
        ...parts.tries.map(({ text, set }) => element('button', { type: 'button', class: 'quiet attn-try', text, onclick: () => set(api) }))),
      problem, panel.node, details, code.root,
      element('div', { class: 'attn-save', role: 'group', 'aria-label': TEXT.save }, ...saver.buttons), status);
    const fillTables = () => { if (details.open) tableBox.replaceChildren(...panel.tables()); };
    details.addEventListener('toggle', fillTables);
    Object.assign(frame, { tell, saver, fillTables });
    frame.fail = (text) => {
      problem.hidden = !text;
      problem.textContent = text ?? '';
      panel.node.hidden = Boolean(text);
    };
    frame.showCode = (text) => { code.root.hidden = !text; code.show(text ?? ''); };
    return { frame, panel, answer: null, key: '' };
  }

  async function open() {
    const { mode } = state;
    if (!panels.has(mode)) {
      const parts = (await PANELS[mode]()).default;
      if (!panels.has(mode)) panels.set(mode, makeFrame(mode, parts));
    }
    if (state.mode !== mode) return;
    if (root.firstChild !== current().frame) root.replaceChildren(current().frame);
    refresh();
    draw();
    current().panel.next?.(); // what was begun goes on
  }

  // ---- asking and drawing ----------------------------------------------------------------------

  /** Ask for what is to be seen now, unless it is there. */
  function refresh() {
    const it = current();
    if (!it || !main.answer || main.drawn !== sentenceKey()) return; // the view calls again when it has the sentence
    fitting();
    const values = it.panel.ask();
    mark();
    if (!values) return;
    const data = question(values);
    const key = JSON.stringify({ ...data, rev: 0 });
    if (key === it.key || key === asked.key) return;
    asked = { rev: data.rev, mode: state.mode, key };
    root.setAttribute('aria-busy', 'true');
    send(data);
  }

  function sentenceKey() {
    const { text, model, marks } = question({});
    return JSON.stringify([text, model, marks, state.second]);
  }

  /** Forget heads and tokens that this model or sentence does not have; a link may name any. */
  function fitting() {
    const { overview: { layers, heads }, tokens } = main.answer;
    const there = (text) => { const [layer, head] = text.split('.'); return layer < layers && head < heads; };
    state.picks = state.picks.filter(there);
    state.off = state.off.filter(there);
    for (const name of ['token', 'query', 'gap']) if (state[name] !== null && state[name] >= tokens.length) state[name] = null;
    if (state.upto !== null && state.upto > layers) state.upto = null;
  }

  function receive(answer) {
    if (!answer) return;
    for (const { frame } of panels.values()) if (frame.saver.take(answer)) return;
    if (stepped.rev && answer.rev === stepped.rev) {
      const { mode } = stepped;
      stepped = { rev: 0, mode: '' };
      if (mode !== state.mode) return; // asked for again when the panel is opened
      current().panel.receive?.(answer);
      current().panel.next?.();
      return;
    }
    if (answer.rev !== asked.rev) return;
    const it = panels.get(asked.mode);
    root.removeAttribute('aria-busy');
    it.key = answer.error ? '' : asked.key;
    asked = { rev: 0, mode: '', key: '' };
    it.frame.fail(message(answer.error));
    it.frame.tell('');
    if (answer.error) return;
    it.answer = answer;
    it.frame.showCode(answer.code);
    draw();
    it.frame.fillTables();
    it.frame.dataset.rev = answer.rev;
    it.panel.next?.();
  }

  function draw() {
    const it = current();
    if (!it?.answer || !main.palette || root.hidden) return;
    it.panel.draw(it.answer, main.palette);
    mark();
  }

  function mark() {
    const it = current();
    if (it?.panel.mark) it.panel.mark(overview);
    else if (state.mode !== 'rollout' && state.mode !== 'compare') overview.select(state.layer, state.headNumber);
  }

  // ---- what panels may do ----------------------------------------------------------------------

  /** Change settings, remember them and ask again. */
  function set(values) {
    Object.assign(state, values);
    keep();
    renew();
    refresh();
    draw();
  }

  const api = {
    state, main, overview, set, redraw,
    panel: () => current().panel,
    tell: (text) => current()?.frame.tell(text),
    /** Ask for a step of longer work, if nothing else is asked; then receive(answer) and next() are called. */
    step(values) {
      if (stepped.rev || asked.rev) return;
      const data = question(values);
      stepped = { rev: data.rev, mode: state.mode };
      send(data);
    },
    /** Set a sentence up, hide a word of it, then change settings; `values` may need the word's position. */
    stage({ text, hide = null, second = state.second, values = {} }) {
      wish = { text, hide, values };
      if (second !== state.second) {
        state.second = second;
        renew();
        askMain(true);
      }
      if (Cloze.sentence.text !== text) Cloze.write('sentence-text', text);
      finish();
    },
  };

  function finish() {
    if (!wish || Cloze.sentence.text !== wish.text || !Cloze.sentence.tokens.length) return;
    const { hide, values } = wish;
    wish = null;
    const found = hide ? Cloze.sentence.tokens.filter((token) => token.text.toLowerCase() === hide) : [];
    if (found.some(({ position }) => !Cloze.sentence.marks.has(position))) Cloze.setHidden(found, true);
    set(typeof values === 'function' ? values(found[0]?.position ?? null) : values);
  }

  Cloze.onChange(finish);
  view.onValue(() => receive(view.value));
  return { open, refresh, draw, onCell: (cell) => current()?.panel.onCell?.(cell) };
}
