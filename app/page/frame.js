// Header with name, mark, language and theme switch; no data.
(() => {
  'use strict';
  const { element, icon, register, setTheme, dark, t, texts, language, names, setLanguage, sentence, onChange } = window.Cloze;
  // How the chosen model reads: the page must not say of one family what holds for another.
  const READS = texts({
    masked: 'An encoder reads a sentence from both sides at once. Click any word below to hide it and the model says what it would put there.',
    order: 'This model reads what stands on both sides of a gap, and no [MASK]. Click any word below to hide it and the model says what it would put there.',
    causal: 'This model reads from left to right, and so knows only what stands before a gap. Click any word below to hide it and the model says what it would put there.',
    judge: 'This model reads a sentence from both sides at once and says of every word whether it was replaced. The tabs below show what it sees.',
    other: 'This model reads a sentence from both sides at once, and was trained for another task than filling gaps. The tabs below show what it sees.',
  });
  const reads = (card) => READS[card ? card.fills ?? (card.judges ? 'judge' : 'other') : 'masked'];
  const SUN = [
    'M10 6.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6Z',
    'M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4',
  ];
  const MOON = ['M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7Z'];

  register('header', (view) => {
    const mark = element('img', { src: '/cloze/favicon.svg', alt: '', width: 30, height: 30 });
    const button = element('button', { type: 'button', class: 'quiet square', id: 'theme-switch' });
    const draw = () => {
      const name = dark() ? t`Use the light theme` : t`Use the dark theme`;
      button.replaceChildren(icon(...(dark() ? SUN : MOON)));
      button.setAttribute('aria-label', name);
      button.title = name;
    };
    button.addEventListener('click', () => setTheme(dark() ? 'light' : 'dark'));
    new MutationObserver(draw)
      .observe(document.body, { attributes: true, attributeFilter: ['class'] });
    draw();
    const other = language === 'zh' ? 'en' : 'zh';
    const translate = element('button', {
      type: 'button', class: 'quiet', id: 'language-switch', lang: other, text: names[other],
      onclick: () => setLanguage(other),
    });
    const line = element('p', { text: READS.masked });
    onChange(() => { if (line.textContent !== reads(sentence.card)) line.textContent = reads(sentence.card); });
    view.root.replaceChildren(
      element('header', { class: 'brand' },
        mark,
        element('span', { class: 'name', text: 'Cloze' }),
        element('span', { class: 'line', text: t`a model reads between the words` }),
        translate, button),
      element('div', { class: 'hero' },
        element('h1', { text: t`Hide a word. See what the model expects.` }),
        line));
    document.dispatchEvent(new CustomEvent('cloze:header', { detail: view.root.querySelector('.brand') }));
  });
})();
