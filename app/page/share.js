// In the header: a link to exactly this view, and the guided tour. Both load when they are asked for.
//
//   ?plain=1    only the sentence and the open lab: no header, examples or random masking (for a projector or a lesson's frame)
//   ?lesson=3   opens the tour at its third step
(() => {
  'use strict';
  const { element, t } = window.Cloze;
  const given = new URLSearchParams(location.search);
  document.documentElement.classList.toggle('plain', given.get('plain') === '1');

  const tour = async (lesson) => (await import('./tour.js')).open(lesson);
  const share = async (button) => (await import('./share-view.js')).toggle(button);

  function add(brand) {
    const button = element('button', {
      type: 'button', class: 'quiet', id: 'share', 'aria-expanded': 'false', text: t`Share`, onclick: () => share(button),
    });
    brand.querySelector('#language-switch').before(
      element('button', { type: 'button', class: 'quiet', id: 'tour', text: t`Tour`, onclick: () => tour(1) }), button);
    const lesson = Number(given.get('lesson'));
    if (Number.isInteger(lesson) && lesson > 0) tour(lesson);
  }
  const brand = document.querySelector('header.brand');
  if (brand) add(brand);
  else document.addEventListener('cloze:header', (event) => add(event.detail), { once: true });
})();
