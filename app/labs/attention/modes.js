// Attention: the row of modes, and the second sentence with the links that are shown of a pair.

import { useChoices } from './skeleton.js';
import { keep, state } from './state.js';

const { element, t, texts } = window.Cloze;
const TEXT = texts({
  table: 'The model adds an embedding of the segment to every token:',
  scores: 'The model asks in every layer whether two tokens share a segment:',
  none: 'This model makes no difference between segments:',
});
const FILTERED = ['heads', 'combined']; // modes that draw single links
const PATIENCE = 350; // milliseconds after the last key

/** Wire the controls above the maps. `onMode()` and `onPair(whole)` tell the view what changed. */
export function createControls(root, { onMode, onPair }) {
  const part = (role) => root.querySelector(`[data-role="${role}"]`);
  const showMode = useChoices(part('modes'), (mode) => { state.mode = mode; keep(); onMode(); });
  const showFilter = useChoices(part('filter'), (name) => { state.part = name; keep(); onPair(false); });
  const input = part('second');
  let open = false;
  let typing = 0;

  function show() {
    open ||= Boolean(state.second);
    showMode(state.mode);
    showFilter(state.part);
    if (input !== document.activeElement) input.value = state.second;
    root.querySelector('[data-action="add-second"]').hidden = open;
    part('second-box').hidden = !open;
    part('filter-box').hidden = !state.second || !FILTERED.includes(state.mode);
    if (!state.second) part('segments-box').hidden = true;
  }

  function write(text) {
    clearTimeout(typing);
    if (text.trim() === state.second) return;
    state.second = text.trim();
    if (!state.second) state.part = 'all';
    keep();
    show();
    onPair(true);
  }

  input.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => write(input.value), PATIENCE);
  });
  input.addEventListener('change', () => write(input.value));
  root.addEventListener('click', (event) => {
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (action === 'add-second') { open = true; show(); input.focus(); }
    if (action === 'remove-second') { open = false; input.value = ''; write(''); show(); root.querySelector('[data-action="add-second"]').focus(); }
  });

  /** Draw which segment each token belongs to. */
  function drawSegments(segments, tokens) {
    part('segments-box').hidden = !segments;
    if (!segments) return;
    part('segments-note').textContent = TEXT[segments.use];
    part('segments').replaceChildren(...tokens.map((token, n) => element('span', {
      class: `attn-segment s${Math.min(segments.ids[n], 2)}`, title: t`segment ${segments.ids[n]}`,
    }, element('bdi', { text: token.label }), element('small', { text: segments.ids[n] }))));
  }

  show();
  return { show, drawSegments };
}
