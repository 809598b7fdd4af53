// The part `Steps` of steps.py: a text comes out of [MASK]s, a row for each step.
const { direction, element, format, t, texts } = window.Cloze;
const TEXT = texts({
  picture: 'The text, step by step', step: 'Step', stays: 'Words that stay', play: 'Play', pause: 'Pause', hidden: 'hidden', again: 'hidden again', start: 'all hidden',
});
const PACE = 700; // milliseconds for each step that runs by itself
const MASK = '[MASK]';

function cell({ text, kind, chance }, chosen) {
  const spoken = kind === 'again' ? TEXT.again : kind === 'hidden' ? TEXT.hidden : '';
  return element('td', { class: kind, title: chance === undefined ? '' : format.exact(chance) },
    element('bdi', { text: text || (chosen ? MASK : '·'), 'aria-hidden': spoken ? 'true' : undefined }),
    spoken ? element('span', { class: 'spoken', text: spoken }) : null,
    chosen ? element('small', { dir: 'ltr', text: chance === undefined ? '' : format.percent(chance) }) : null);
}

export function mount(view) {
  const stage = element('div', { class: 'stage', role: 'region', tabindex: '0', 'aria-label': TEXT.picture });
  const run = element('button', { type: 'button', class: 'play' });
  const slider = element('input', { type: 'range', min: 0, step: 1, 'aria-label': TEXT.step });
  const said = element('output', { 'aria-live': 'off' }); // the slider says it
  view.root.replaceChildren(stage, element('div', { class: 'scrub' }, run, slider, said));
  let timer = null;
  let of = null; // the text whose steps are looked at
  let looked = null; // at which step, once one has been chosen here: a late answer holds the choice of before

  const last = () => view.value.rows.length - 1;
  function now() {
    const at = looked ?? view.value.at;
    return at >= 0 ? Math.min(at, last()) : last();
  }

  function stay(word) {
    view.value = { ...view.value, wish: word };
    view.send('stay', {});
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    run.textContent = TEXT.play;
  }
  function go(step) {
    looked = step;
    view.value = { ...view.value, at: step };
    draw();
    view.send('scrub', {});
  }
  function play() {
    if (timer) return stop();
    run.textContent = TEXT.pause;
    go(0);
    timer = setInterval(() => {
      if (!stage.isConnected || now() === last()) return stop();
      go(now() + 1);
      return undefined;
    }, PACE);
    return undefined;
  }

  function draw() {
    const { columns, rows, text } = view.value ?? {};
    view.root.hidden = !rows;
    if (!rows) return;
    if (of !== null && of !== text && (looked ?? view.value.at) >= 0) { // of another text its end is seen first
      stop();
      looked = -1;
      view.value = { ...view.value, at: looked };
      view.send('scrub', {});
    }
    of = text;
    const at = now();
    const held = document.activeElement?.closest?.('.view-steps [data-key]')?.dataset.key;
    const head = element('tr', {}, element('th', { scope: 'col', text: TEXT.stays }), ...columns.map(({ text: word, word: n, stays }, place) => element('th', { scope: 'col' },
      element('button', { type: 'button', 'data-key': `w${place}`, 'aria-pressed': String(stays), onclick: () => stay(n) }, element('bdi', { text: word })))));
    const lines = rows.map((line, n) => element('tr', { class: n === at ? 'chosen' : '' },
      element('th', { scope: 'row' }, element('button', { type: 'button', 'data-key': `s${n}`, 'aria-pressed': String(n === at), 'aria-label': t`Step ${n}`, title: n ? t`Step ${n}` : TEXT.start, text: n, onclick: () => { stop(); go(n); } })),
      ...line.map((each) => cell(each, n === at))));
    const table = element('table', { 'aria-label': TEXT.picture, dir: direction(text) }, element('thead', {}, head), element('tbody', {}, ...lines));
    const left = stage.scrollLeft;
    stage.replaceChildren(table);
    stage.scrollLeft = left;
    if (held) stage.querySelector(`[data-key="${held}"]`)?.focus({ preventScroll: true });
    slider.max = last();
    slider.value = at;
    said.textContent = at ? t`Step ${at} of ${last()}` : TEXT.start;
    slider.setAttribute('aria-valuetext', said.textContent);
  }
  run.textContent = TEXT.play;
  run.addEventListener('click', play);
  slider.addEventListener('input', () => { stop(); go(Number(slider.value)); });
  view.onValue(draw);
  draw();
}
