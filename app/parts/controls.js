// What a link keeps of a lab made of Gradio's components (app/parts/controls.py). Names with a dot belong to the switch before it.
(() => {
  'use strict';
  const { Cloze } = window;
  const { t } = Cloze;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const kind = (value) => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value);

  // What components begin with, and what the choices that are made or kept set them to.
  const base = (plain, implied, state) => Object.entries(implied).reduce((found, [name, sets]) => (
    Object.hasOwn(sets, state[name] ?? '') ? { ...found, ...sets[state[name]] } : found), plain);

  // Before a lab has been given what its link holds, a change that Gradio tells is no visitor's, and would lose the link.
  const given = new Set();

  Cloze.keepValues = ([lab, plain, , implied], values) => {
    if (!given.has(lab)) return;
    const state = {};
    const names = Object.keys(plain);
    const set = base(plain, implied, Object.fromEntries(names.map((name, n) => [name, values[n]])));
    names.forEach((name, n) => {
      const [group, member] = name.split('.');
      if (member) { if (state[group] === true || state[group]?.constructor === Object) state[group] = { ...state[group], [member]: values[n] }; }
      else if (!same(values[n], set[name])) state[name] = values[n];
    });
    if (!same(state, Cloze.kept(lab) ?? {})) Cloze.keep(lab, state);
  };

  // A component without a value in the link, or with one that it would refuse, stays as it is: Gradio takes a value for an act.
  const AS_IT_IS = { __type__: 'update' };
  const fits = (found, { from = -Infinity, to = Infinity, among = null }) => [found].flat().every((value) => (
    among ? among.includes(value) : typeof value !== 'number' || (value >= from && value <= to)));
  Cloze.keptValues = ([lab, plain, limits, implied]) => {
    const state = Cloze.kept(lab) ?? {};
    const set = base(plain, implied, state);
    return Object.entries(plain).map(([name, first]) => {
      const [group, member] = name.split('.');
      let found = member ? state[group]?.[member] : state[name];
      if (kind(first) === 'boolean' && found?.constructor === Object) return true;
      if (kind(first) === 'boolean' && (found === 0 || found === 1)) return Boolean(found); // of old links
      if (kind(first) === 'string' && Array.isArray(found)) found = found.join('\n'); // texts of old links, one in each line
      if (kind(first) === 'string' && kind(found) === 'number') found = `#${found}`; // a choice of old links, by its number
      if (kind(found) === kind(first) && fits(found, limits[name] ?? {})) return found;
      return same(set[name], first) ? AS_IT_IS : set[name];
    });
  };

  // The components have these values now.
  Cloze.restored = (lab) => {
    given.add(lab);
    document.dispatchEvent(new CustomEvent('cloze:restored'));
  };
  // Whether what the link holds of the lab around a part is not in its components yet.
  const remembered = window.gradio_config.dependencies.flatMap(({ js }) => /^\(\) => Cloze\.restored\("(.*)"\)$/.exec(js)?.[1] ?? []);
  Cloze.restoring = (part) => {
    const lab = part.closest('[role="tabpanel"][id^="tab-"]')?.id.replace('tab-', '');
    return Object.keys(Cloze.keptBy(lab)).some((name) => remembered.includes(name) && !given.has(name));
  };

  // Gradio 6.31 calls the crosses of what is chosen in a list by numbers: "Remove 51".
  const crosses = document.getElementsByClassName('token-remove');
  function nameCrosses() {
    for (const cross of crosses) {
      const name = cross.classList.contains('remove-all') ? t`Remove all` : t`Remove ${cross.previousElementSibling?.textContent ?? ''}`;
      if (cross.title !== name) cross.title = name;
    }
  }
  // What it does not tell who hears the page: whether a fold is open, what choices are about, of what a panel is. Its sliders
  // have English names: "range slider for Layer".
  const fold = (button) => button.setAttribute('aria-expanded', String(button.classList.contains('open')));
  const folds = new MutationObserver((changes) => changes.forEach(({ target }) => fold(target)));
  let labels = 0;
  const UNTOLD = {
    'button.label-wrap:not([aria-expanded])': (button) => {
      fold(button);
      button.querySelector('.icon')?.setAttribute('aria-hidden', 'true');
      folds.observe(button, { attributeFilter: ['class'] });
    },
    'fieldset:not([aria-labelledby]) > [data-testid="block-info"]': (label) => {
      label.id ||= `choices-${labels += 1}`;
      label.parentElement.setAttribute('aria-labelledby', label.id);
    },
    '[role="tabpanel"][id]:not([aria-labelledby])': (panel) => panel.setAttribute('aria-labelledby', `${panel.id}-button`),
    'input:is([aria-label^="range slider for "], [aria-label^="number input for "])': (input) => (
      input.setAttribute('aria-label', input.getAttribute('aria-label').replace(/^(range slider|number input) for /, ''))),
  };
  const ANY = Object.keys(UNTOLD).join();
  function tellMore() {
    for (const each of document.querySelectorAll(ANY)) {
      for (const [which, tell] of Object.entries(UNTOLD)) if (each.matches(which)) tell(each);
    }
  }
  Cloze.loaded.then(() => new MutationObserver(() => { nameCrosses(); tellMore(); })
    .observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['title'] }));
})();
