// The page's own small frame: views that mount into gr.HTML, the sentence they share, the theme.
//
//   Cloze.register(name, view => {...})      draw into view.root; called once per mounted view
//   Cloze.sentence                           what all tabs look at, see below
//   Cloze.onSentence(view, draw)             draw(sentence) now and after each change, while visible; where that says false,
//                                            calling what onSentence gives back tries again
//   Cloze.question(extra)                    the sentence as plain data for Python, with a fresh rev
//   Cloze.chooseExample({text, hide})        this sentence, with these words (small letters) hidden
//   Cloze.asker(view, event, onSilence)      a function that sends questions, one at a time
//   Cloze.element(tag, properties, ...children)   DOM without markup: text only ever by textContent
(() => {
  'use strict';

  const { t } = window.ClozeLanguage;
  const makers = new Map();
  const waiting = [];
  const listeners = new Set();
  let revision = 0;

  // --- DOM --------------------------------------------------------------------------------

  function element(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === undefined || value === null || value === false) continue;
      if (name === 'text') node.textContent = value;
      else if (name === 'class') node.className = value;
      else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? '' : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  const SVG = 'http://www.w3.org/2000/svg';
  function icon(...paths) {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 20 20');
    svg.setAttribute('class', 'icon');
    svg.setAttribute('aria-hidden', 'true');
    for (const d of paths) {
      const path = document.createElementNS(SVG, 'path');
      path.setAttribute('d', d);
      svg.append(path);
    }
    return svg;
  }

  // --- views ------------------------------------------------------------------------------

  function register(name, make) {
    makers.set(name, make);
    for (const entry of waiting.splice(0)) mount(...entry);
  }

  function mount(name, host, props, trigger, watch) {
    const root = host.querySelector(`.view-${name}`);
    const make = makers.get(name) ?? (root?.dataset.module && whenSeen);
    if (!make) {
      waiting.push([name, host, props, trigger, watch]);
      return;
    }
    if (!root || root.dataset.mounted) return;
    root.dataset.mounted = 'yes';
    watch('value', () => { if (props.value?.by) document.dispatchEvent(new CustomEvent('cloze:by', { detail: { root, by: props.value.by } })); });
    make({
      root,
      get value() { return props.value; },
      set value(next) { props.value = next; },
      onValue: (draw) => watch('value', draw),
      send: (event, data) => trigger(event, data),
    });
  }

  // A style sheet of ours; fulfilled when it is there, or cannot be had.
  const styles = new Map();
  function style(name) {
    if (!styles.has(name)) {
      styles.set(name, new Promise((done) => {
        document.head.append(element('link', { rel: 'stylesheet', href: `${window.ClozeRoot}cloze/app/${name}.css`, onload: done, onerror: done }));
      }));
    }
    return styles.get(name);
  }

  // A view with a module of its own: it and its style load when the view is first seen.
  function whenSeen(view) {
    const seen = new ResizeObserver(async () => {
      if (view.root.offsetParent === null) return;
      seen.disconnect();
      const name = view.root.dataset.module;
      const [{ mount: draw }] = await Promise.all([import(`${window.ClozeRoot}cloze/app/${name}.js`), style(name)]);
      draw(view);
    });
    seen.observe(view.root);
  }

  // --- the sentence -----------------------------------------------------------------------

  // tokens: [{position, id, piece, text, start, end, word, special, masked, unknown}]
  // marks: Map position -> {position, case: 'mask' | 'random' | 'kept', piece, shown}
  const sentence = {
    text: '', model: '', tokens: [], marks: new Map(), error: null, notes: [],
    whole: false, pieces: false, drawn: false, card: null, advice: null, script: null, change: 0,
  };

  function change(patch) {
    Object.assign(sentence, patch);
    sentence.change += 1;
    for (const listener of [...listeners]) listener();
  }

  function onChange(listener) {
    listeners.add(listener);
  }

  function onSentence(view, draw) {
    let drawn = -1;
    const update = () => {
      if (!view.root.isConnected) { listeners.delete(update); observer.disconnect(); return; }
      if (drawn === sentence.change || view.root.offsetParent === null) return;
      drawn = sentence.change;
      if (draw(sentence) === false) drawn = -1;
    };
    // A tab that becomes visible gets a size: then it catches up with what it missed.
    const observer = new ResizeObserver(update);
    observer.observe(view.root);
    listeners.add(update);
    update();
    return update;
  }

  function question(extra = {}) {
    revision += 1;
    const marks = [...sentence.marks.values()]
      .sort((a, b) => a.position - b.position)
      .map(({ position, case: kind, piece }) => ({ position, case: kind, piece: piece ?? null }));
    return { rev: revision, text: sentence.text, model: sentence.model, marks, ...extra };
  }

  // One question at a time per view; while one is being answered only the newest next one waits.
  // (Gradio's trigger_mode 'always_last' would send the data of the first event once more.)
  const PATIENCE = 10_000;
  function asker(view, event, onSilence = () => {}) {
    let flying = 0;
    let waiting = null;
    let sent = null;
    let timer = 0;
    const next = () => {
      if (flying || !waiting) return;
      sent = waiting;
      waiting = null;
      flying = sent.rev;
      timer = setTimeout(() => { flying = 0; if (!waiting) onSilence(); next(); }, PATIENCE);
      view.send(event, sent);
    };
    view.onValue(() => {
      if (!flying || view.value?.rev !== flying) return;
      clearTimeout(timer);
      flying = 0;
      // Too many wait: ask again, not all pages at one moment, unless something newer is asked.
      const { again } = view.value;
      if (again && !waiting) timer = setTimeout(() => { waiting ??= sent; next(); }, again * (750 + 500 * Math.random()));
      next();
    });
    return (data) => { clearTimeout(flying ? 0 : timer); waiting = data; next(); };
  }

  // --- native widgets ---------------------------------------------------------------------

  function field(id) {
    return document.querySelector(`#${id} textarea, #${id} input`);
  }

  function write(id, text) {
    const input = field(id);
    if (!input) return;
    const kind = input.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(input, text);
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }

  // --- theme ------------------------------------------------------------------------------

  const KEY = 'cloze-theme';
  const dark = () => document.body.classList.contains('dark');
  let picked = new URLSearchParams(location.search).get('__theme');
  const chosen = () => {
    try { return picked || localStorage.getItem(KEY); } catch { return picked; }
  };

  function setTheme(name) {
    // What the address says goes first when the page opens again, and is all there is where the browser keeps nothing.
    const address = new URL(location.href);
    let written = address.searchParams.has('__theme') || !(window.localStorage instanceof Storage); // see gradio.js
    picked = name;
    try { localStorage.setItem(KEY, name); } catch { written = true; }
    if (written) {
      address.searchParams.set('__theme', name);
      history.replaceState(history.state, '', address);
    }
    document.body.classList.toggle('dark', name === 'dark');
  }

  // Gradio sets the class from the system's preference when it mounts; a choice made here wins.
  function watchTheme() {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const apply = () => {
      const name = chosen();
      const wanted = !window.Cloze.printing && (name === 'dark' || (name !== 'light' && system.matches));
      if (dark() !== wanted) document.body.classList.toggle('dark', wanted);
    };
    apply();
    new MutationObserver(() => { if (chosen()) apply(); })
      .observe(document.body, { attributes: true, attributeFilter: ['class'] });
    system.addEventListener('change', apply);
    // On paper all is light, and as wide as it is drawn: pictures do not hear of another width then.
    const print = (printing) => {
      window.Cloze.printing = printing;
      document.documentElement.style.setProperty('--drawn', `${document.documentElement.clientWidth}px`);
      apply();
    };
    addEventListener('beforeprint', () => print(true));
    addEventListener('afterprint', () => print(false));
  }

  const page = new MutationObserver(() => {
    if (!document.body) return;
    page.disconnect();
    watchTheme();
  });
  page.observe(document.documentElement, { childList: true });

  const format = {
    percent(probability) {
      const value = probability * 100;
      if (value >= 99.95) return value >= 99.9995 ? '100\u00a0%' : `${Math.min(value, 99.99).toFixed(2)}\u00a0%`;
      if (value >= 1) return `${value.toFixed(1)}\u00a0%`;
      if (value >= 0.1) return `${value.toFixed(2)}\u00a0%`;
      if (value >= 0.001) return `${value.toFixed(3)}\u00a0%`;
      return '< 0.001\u00a0%';
    },
    exact: (probability) => t`probability ${probability.toPrecision(4)}`,
    count: (number) => number.toLocaleString('en'),
  };

  // Fulfilled when every script of ours has run.
  const loaded = new Promise((done) => { addEventListener('DOMContentLoaded', done, { once: true }); });

  window.Cloze = {
    loaded, register, mount, style, sentence, change, onChange, onSentence, question, asker, element, icon, field, write,
    setTheme, dark, format, ahead: [], ...window.ClozeLanguage,
  };
  window.ClozeLabels();

  // What js_on_load of the views queued so far, and from now on mounts at once.
  const queue = window.ClozeViews ?? [];
  window.ClozeViews = { push: (entry) => mount(...entry) };
  for (const entry of queue) mount(...entry);
})();
