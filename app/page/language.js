// The language of the page. English texts stand in the code and are their own keys; the translations of
// all of them are one catalogue (zh.json of each room), which loads before anything is drawn.
//
//   t`Hide ${n} words`           a text with values; the key is "Hide {0} words"
//   texts({ title: 'Forge' })    the same object with every text in it translated (keys, numbers, functions stay)
//   message(text)                a text that came from Python, values filled in: found by its pattern
//   phrase([key, ...values])     a text of a picture that Python drew, values apart; a list among them is such a text, too
//   modelTitle(title)            a title of the list of models: its name stays, what it can do is translated
//   listed(['a', 'b'])           "a, b" with the comma of the language
//   apart(text)                  a visitor's text beside signs and numbers that it must not draw into its direction
//   setLanguage('zh')            remembers the choice and opens the same page again
//
// Never pass what a visitor typed to texts or message: it would be translated where it happens to be a key.
(() => {
  'use strict';
  const NAMES = { en: 'English', zh: '简体中文' };
  const TAGS = { en: 'en', zh: 'zh-Hans' };
  const KEY = 'cloze-language';
  const WORDY = 8; // fewest fixed characters of a pattern that messages are compared with

  // Where the page lies: "/", or the path that a proxy shows it under.
  window.ClozeRoot = new URL('../../../', document.currentScript.src).pathname;
  const known = (name) => (Object.hasOwn(NAMES, name ?? '') ? name : null);
  const stored = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const preferred = () => (navigator.languages ?? []).map((tag) => known(tag.slice(0, 2))).find(Boolean);
  const language = known(new URLSearchParams(location.search).get('lang')) ?? known(stored()) ?? preferred() ?? 'en';
  const page = document.documentElement;
  const setTag = () => { if (page.lang !== TAGS[language]) page.lang = TAGS[language]; };
  setTag();
  // Gradio writes its own language there when it mounts.
  new MutationObserver(setTag).observe(page, { attributes: true, attributeFilter: ['lang'] });
  // Written into the page, so that it is read before the scripts below it.
  if (language !== 'en') document.write(`<script src="${window.ClozeRoot}cloze/locales/${language}.js"></script>`);

  const missing = new Set(); // keys without a translation, for the tests
  const catalogue = () => window.ClozeCatalogue ?? {};
  // A run may be called "toString", which every object has.
  const entry = (key) => (Object.hasOwn(catalogue(), key) ? catalogue()[key] : undefined);

  function translate(key) {
    if (language === 'en' || !/\p{L}/u.test(key)) return key;
    const found = entry(key);
    if (found === undefined) missing.add(key);
    return found ?? key;
  }

  // Letters that run from right to left would draw the signs and numbers after them into their own direction.
  const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
  const apart = (value) => (typeof value === 'string' && RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value);
  // A number and its sign stay on one line.
  const bound = (text) => text.replace(/(\d) %/g, '$1\u00a0%');
  const fill = (text, values) => bound(text.replace(/\{(\d)\}/g, (whole, index) => apart(values[index]) ?? whole));

  function t(parts, ...values) {
    const key = parts.reduce((text, part, index) => `${text}{${index - 1}}${part}`);
    return fill(translate(key), values);
  }

  function texts(value) {
    if (typeof value === 'string') return bound(translate(value));
    if (Array.isArray(value)) return value.map(texts);
    if (value?.constructor !== Object) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, texts(each)]));
  }

  let patterns = null;
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  function compile() {
    return Object.entries(catalogue())
      .filter(([key]) => key.includes('{0}') && key.replace(/\{\d\}/g, '').length >= WORDY)
      .sort(([a], [b]) => b.length - a.length)
      .map(([key, translation]) => {
        const order = [...key.matchAll(/\{(\d)\}/g)].map(([, index]) => Number(index));
        const form = key.split(/\{\d\}/).map(escape).join('([^]*?)');
        return { form: new RegExp(`^${form}$`), order, translation };
      });
  }

  function message(text) {
    if (typeof text !== 'string' || !text) return text;
    if (language === 'en') return bound(text);
    const exact = entry(text);
    if (exact !== undefined) return bound(exact);
    patterns ??= compile();
    for (const { form, order, translation } of patterns) {
      const found = form.exec(text);
      if (!found) continue;
      const values = [];
      order.forEach((index, place) => { values[index] = found[place + 1]; });
      return fill(translation, values);
    }
    if (/\p{L}/u.test(text)) missing.add(text);
    return text;
  }

  // Joints between values, such as "{0}: {1}", have no letters, but Chinese has signs of its own for them.
  const phrase = ([key, ...values]) => fill(
    entry(key) ?? translate(key),
    values.map((value) => (Array.isArray(value) ? phrase(value) : value)),
  );

  function setLanguage(name) {
    try { localStorage.setItem(KEY, name); } catch { /* private windows may refuse */ }
    const address = new URL(location.href);
    address.searchParams.set('lang', name);
    if (window.Cloze.lesson) address.searchParams.set('lesson', window.Cloze.lesson); // the tour goes on
    location.replace(address);
    if (address.href === location.href) location.reload();
  }

  const listed = (parts) => parts.join(language === 'zh' ? '、' : ', ');

  // Python's titles: "name · what it does, what else", or of a training run "name (run)" and so on.
  function modelTitle(title) {
    const [name, does] = title.split(' · ');
    if (does) return `${modelTitle(name)} · ${listed(does.split(', ').map(translate))}`;
    const [, run, step, race] = /^(.*?)(?: \(run\)|, step ([\d,]+)| \(of (.*)\))$/.exec(title) ?? [];
    if (!run) return title;
    if (step) return t`${run}, step ${step}`;
    return race ? t`${run} (of ${race})` : t`${run} (run)`;
  }

  // What Gradio itself draws: labels, placeholders, the names of tabs. Before it has drawn them.
  const LABELS = ['label', 'placeholder', 'info'];
  window.ClozeLabels = () => {
    if (language === 'en') return;
    for (const { type, props } of window.gradio_config?.components ?? []) {
      if (type === 'button') props.value = catalogue()[props.value] ?? props.value;
      if (props?.elem_id === 'sentence-model') props.choices = props.choices.map(([title, name]) => [modelTitle(title), name]);
      else if (Array.isArray(props?.choices)) props.choices = props.choices.map(([title, name]) => [catalogue()[title] ?? title, name]);
      for (const name of LABELS) if (typeof props?.[name] === 'string') props[name] = catalogue()[props[name]] ?? props[name];
    }
  };

  window.ClozeLanguage = { language, names: NAMES, tag: TAGS[language], t, texts, message, phrase, modelTitle, listed, apart, setLanguage, missing };
})();
