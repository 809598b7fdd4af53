// Closer looks below the predictions. Each is closed at first; its module and style load, and
// Python is asked, only once it is opened.
(() => {
  'use strict';
  const { element, register, kept, style, texts } = window.Cloze;

  window.Cloze.ahead.push(['labs/mask/sections', 'labs/mask/view']);

  const LABS = texts({
    together: ['Several gaps together', 'each alone, one after another, the surest first, or the best of several beginnings'],
    word: ['A word of several pieces', 'a long word gets a probability, piece by piece'],
    models: ['Several models on this sentence', 'the same gap read from both sides, in an order, or from the left'],
  });

  for (const [name, [title, line]] of Object.entries(LABS)) {
    register(`mask-${name}`, (view) => {
      const body = element('div', { class: 'lab-body' });
      const lab = element('details', { class: 'lab', id: `lab-${name}` },
        element('summary', {}, element('h3', { text: title }), element('span', { class: 'lab-line', text: line })), body);
      lab.addEventListener('toggle', async () => {
        const [{ mount }] = await Promise.all([import('./sections.js'), style('labs/mask/view')]);
        mount(view, lab, body, name);
      }, { once: true });
      view.root.replaceChildren(lab);
      if (kept(`mask-${name}`)?.open === true) lab.open = true;
    });
  }
})();
