// The header line with name, language and theme switch, and the line of each place; no data.
(() => {
  'use strict';
  const { element, icon, register, setTheme, dark, message, t, language, names, setLanguage } = window.Cloze;
  const SUN = [
    'M10 6.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6Z',
    'M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4',
  ];
  const MOON = ['M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7Z'];

  register('header', (view) => {
    const mark = element('img', { src: `${window.ClozeRoot}cloze/favicon.svg`, alt: '', width: 26, height: 26 });
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
    view.root.replaceChildren(
      element('header', { class: 'brand' },
        mark,
        element('h1', { class: 'name', text: 'Cloze' }),
        element('span', { class: 'line', text: t`a model reads between the words` }),
        translate, button));
    document.dispatchEvent(new CustomEvent('cloze:header', { detail: view.root.querySelector('.brand') }));
  });

  // A file that is dropped beside a field for files: the browser would leave the page for it.
  for (const kind of ['dragover', 'drop']) {
    document.addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes('Files') || event.target.closest?.('input[type="file"]')) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = 'none';
    });
  }

  // What a place answers, beside the names of its labs.
  register('line', (view) => { view.root.replaceChildren(element('p', { text: message(view.value) })); });
})();
