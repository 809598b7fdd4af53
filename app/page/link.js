// The address holds the sentence, the model, the marks, the open tab, its settings and the run shown, after the
// #: a link to exactly this page that a reload survives. What follows the # never leaves the browser.
//
//   Cloze.kept('forge')             what the lab of this name kept in the address, or null; check every value
//   Cloze.keep('forge', {roll: 2})  keep this; plain values, few and short. The name begins with the tab's
//   event cloze:tab of the document     another tab is open: Cloze.place.tab
//
// Another tab is an entry of the browser's history; all other changes only change the entry. Back opens the tab before, with the
// sentence as it is now.
(() => {
  'use strict';
  const { sentence, change, t, message } = window.Cloze;
  const MOST = 6_000; // characters; longer ones make no link that programs accept
  const CODE = { mask: '', random: 'r', kept: 'k' };

  function parse() {
    const values = new URLSearchParams(location.hash.slice(1));
    if (!values.get('text')) return null;
    const marks = new Map();
    for (const part of (values.get('marks') ?? '').split('.')) {
      const found = /^(\d{1,4})(k|r(\d{1,7}))?$/.exec(part);
      if (!found) continue;
      const [, position, kind, piece] = found;
      marks.set(Number(position), {
        position: Number(position),
        case: kind ? (kind === 'k' ? 'kept' : 'random') : 'mask',
        ...(piece ? { piece: Number(piece) } : {}),
      });
    }
    return { text: values.get('text'), model: values.get('model'), marks };
  }

  function address() {
    const marks = [...sentence.marks.values()].sort((a, b) => a.position - b.position)
      .map((mark) => `${mark.position}${CODE[mark.case]}${mark.piece ?? ''}`).join('.');
    const values = new URLSearchParams({ text: sentence.text, model: sentence.model });
    if (marks) values.set('marks', marks);
    if (place.run) values.set('run', place.run);
    if (place.tab && place.tab !== FIRST_TAB) values.set('tab', place.tab);
    for (const [name, state] of labs) {
      const own = name.split('-')[0] === (place.tab ?? FIRST_TAB);
      if (own && Object.keys(state).length) values.set(`lab-${name}`, JSON.stringify(state));
    }
    return `${location.pathname}${location.search}#${values}`;
  }

  // What else the address holds: the training run that is shown.
  const FIRST_TAB = 'mask';
  const given = new URLSearchParams(location.hash.slice(1));
  const place = { run: given.get('run'), tab: given.get('tab') };
  const labs = new Map(); // name -> plain object
  for (const [name, text] of given) {
    if (!name.startsWith('lab-')) continue;
    try {
      const state = JSON.parse(text);
      if (state?.constructor === Object) labs.set(name.slice(4), state);
    } catch { /* a broken link opens the lab as it is */ }
  }
  // A text that was typed while the server was away (offline.js) is what the page opens with when it is there again.
  const UNREAD = 'cloze-unread';
  function unread() {
    try {
      const { text, model } = JSON.parse(sessionStorage.getItem(UNREAD));
      sessionStorage.removeItem(UNREAD);
      return typeof text === 'string' && text && typeof model === 'string' ? { text, model, marks: new Map() } : null;
    } catch { return null; }
  }
  window.Cloze.keepUnread = (text) => {
    try {
      if (text === sentence.text) sessionStorage.removeItem(UNREAD);
      else sessionStorage.setItem(UNREAD, JSON.stringify({ text, model: sentence.model }));
    } catch { /* private windows may refuse */ }
  };
  let opened = unread() ?? parse();
  let first = null; // how the page opens without a link: such an address stays bare

  function follow() {
    if (!sentence.text || sentence.error) return;
    if (opened) {
      const { text, model, marks, stranger } = opened;
      if (sentence.text !== text || (model && sentence.model !== model)) return;
      opened = null;
      if (stranger) {
        const note = t`The link names the model “${stranger.slice(0, 60)}”, which is not here.`;
        change({ notes: [...sentence.notes, note] });
        return;
      }
      const fitting = [...marks].filter(([position]) => {
        const token = sentence.tokens[position];
        return token && !token.special && !token.masked;
      });
      change({ marks: new Map(fitting) });
      return;
    }
    const next = address();
    first ??= next;
    const bare = next === first && !location.hash;
    if (bare) return;
    const short = next.length <= MOST + location.pathname.length + location.search.length;
    const alone = `${location.pathname}${location.search}#run=${place.run}`;
    if (short || place.run) history.replaceState(entry(), '', short ? next : alone);
  }

  // Entries of this visit. Those of an earlier one, and addresses that somebody typed, open the page anew.
  const VISIT = `${performance.timeOrigin}`;
  const entry = () => ({ visit: VISIT, tab: place.tab ?? FIRST_TAB });
  let going = null; // the tab of the entry that Back or Forward went to, until it is open
  window.addEventListener('popstate', ({ state }) => {
    if (state?.visit !== VISIT) return;
    going = state.tab === (place.tab ?? FIRST_TAB) || !openNamed(state.tab) ? null : state.tab;
    if (going === null) follow();
    else setTimeout(() => { going = null; }, 1_000);
  });

  // Called once when the page has mounted: the text and the model to open with. Without a link both stay what they are
  // when the answer arrives, and not what they were when it was asked for: a visitor may be quicker.
  const AS_IT_IS = { __type__: 'update' };
  window.Cloze.opening = (text, model) => {
    window.Cloze.mounted = true;
    if (!opened) return [AS_IT_IS, AS_IT_IS];
    const picker = window.gradio_config.components.find(
      (part) => part.props?.elem_id === 'sentence-model');
    const models = picker.props.choices.map(([, name]) => name);
    if (models.includes(opened.model)) return [opened.text, opened.model];
    // A snapshot of a run stands in no list: the Train tab asks the server for it (train.js).
    if (/^run\/./.test(opened.model ?? '')) {
      window.Cloze.wanted = opened.model;
      window.Cloze.findModel?.(opened.model);
    } else window.Cloze.missing();
    return [opened.text, model];
  };
  // The model of the link is nowhere: open with another one, and say so.
  window.Cloze.missing = () => {
    if (!opened) return;
    opened.stranger = opened.model;
    opened.model = null;
    follow();
  };
  // Open a tab by its name; on a narrow screen it may stand in Gradio's menu of further tabs.
  window.Cloze.openTab = (name) => {
    const tabs = document.querySelectorAll('#tabs [role="tab"], #tabs .overflow-dropdown button');
    const called = (text) => [...tabs].find((each) => each.textContent.trim() === text);
    const tab = called(name) ?? called(message(name));
    tab?.click();
    return Boolean(tab);
  };
  // Gradio measures its tabs when their row changes, not when the font arrives: with another font,
  // some of them may have gone into the menu.
  document.fonts.addEventListener('loadingdone', () => window.dispatchEvent(new Event('resize')));
  // A tab is known by the id of its panel, which no translation changes and no narrow screen hides.
  const openPanel = (bar) => [...bar.querySelectorAll('[role="tabpanel"]')]
    .find((panel) => panel.offsetParent !== null)?.id.replace('tab-', '');
  function openNamed(name) {
    const wanted = window.gradio_config.components.find((part) => part.props?.elem_id === `tab-${name}`);
    return Boolean(wanted) && window.Cloze.openTab(wanted.props.label);
  }
  function showTab(name) {
    place.tab = name;
    document.dispatchEvent(new CustomEvent('cloze:tab'));
    // Only what the visitor did is a step of theirs.
    const step = going === null && navigator.userActivation?.hasBeenActive !== false;
    going = null;
    history[step ? 'pushState' : 'replaceState'](entry(), '', location.href);
    follow();
  }
  function followTabs() {
    const bar = document.querySelector('#tabs');
    if (!bar?.querySelector('[role="tab"]')) { requestAnimationFrame(followTabs); return; }
    if (!place.tab || !openNamed(place.tab)) place.tab = null;
    history.replaceState(entry(), '', location.href);
    new MutationObserver(() => {
      const open = openPanel(bar);
      if (!open || open === (place.tab ?? FIRST_TAB) || (going !== null && open !== going)) return;
      showTab(open);
    }).observe(bar, { subtree: true, attributes: true, attributeFilter: ['style', 'class', 'aria-selected'] });
  }
  followTabs();
  window.Cloze.kept = (name) => labs.get(name) ?? null;
  window.Cloze.keep = (name, state) => { labs.set(name, state); follow(); };
  window.Cloze.place = place;
  window.Cloze.setPlace = (values) => { Object.assign(place, values); follow(); };
  window.Cloze.onChange(follow);
  window.addEventListener('hashchange', () => { if (history.state?.visit !== VISIT) location.reload(); });
})();
