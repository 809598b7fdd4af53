// The address holds the sentence, the model, the marks, the open tab, its settings and the run shown, after the
// #: a link to exactly this page that a reload survives. What follows the # never leaves the browser.
//
//   Cloze.kept('forge')             what the lab of this name kept in the address, or null; check every value
//   Cloze.keep('forge', {roll: 2})  keep this; plain values, few and short. The name begins with the tab's
//   event cloze:tab of the document     another lab is open: Cloze.place.tab
//   Cloze.arriving()                whether what the link holds of the sentence is not there yet
//   Cloze.openTab('budget')         open a lab by its name, in whatever place it is
//
// Another lab is an entry of the browser's history; all other changes only change the entry. Back opens the lab before, with the
// sentence as it is now.
//
// Without a link the page opens with an example whose word is hidden, in the language of the page where a model reads it.
(() => {
  'use strict';
  const { sentence, change, language, t } = window.Cloze;
  const MOST = 6_000; // characters; longer ones make no link that programs accept
  const CODE = { mask: '', random: 'r', kept: 'k' };

  // What a link cannot hold stays in this browser tab, beside the part that the address holds: a reload and another language
  // open the same page.
  const LONG = 'cloze-long';
  function hash() {
    try {
      const [short, whole] = JSON.parse(sessionStorage.getItem(LONG));
      return short === location.hash ? whole : location.hash;
    } catch { return location.hash; }
  }
  function keepLong(whole) {
    try { sessionStorage.setItem(LONG, JSON.stringify([location.hash, whole.slice(whole.indexOf('#'))])); } catch { /* private windows may refuse */ }
  }
  const given = new URLSearchParams(hash().slice(1));

  function parse() {
    if (!given.get('text')) return null;
    const marks = new Map();
    for (const part of (given.get('marks') ?? '').split('.')) {
      const found = /^(\d{1,4})(k|r(\d{1,7}))?$/.exec(part);
      if (!found) continue;
      const [, position, kind, piece] = found;
      marks.set(Number(position), {
        position: Number(position),
        case: kind ? (kind === 'k' ? 'kept' : 'random') : 'mask',
        ...(piece ? { piece: Number(piece) } : {}),
      });
    }
    return { text: given.get('text'), model: given.get('model'), marks };
  }

  // Without the sentence where there is none that can be read, or none that fits.
  function address({ text = !sentence.error, kept = true } = {}) {
    const marks = [...sentence.marks.values()].sort((a, b) => a.position - b.position)
      .map((mark) => `${mark.position}${CODE[mark.case]}${mark.piece ?? ''}`).join('.');
    const values = new URLSearchParams({ ...(text ? { text: sentence.text } : {}), model: sentence.model });
    if (text && marks) values.set('marks', marks);
    if (place.run) values.set('run', place.run);
    if (place.tab && place.tab !== FIRST_TAB) values.set('tab', place.tab);
    for (const [name, state] of kept ? labs : []) {
      const own = name.split('-')[0] === (place.tab ?? FIRST_TAB);
      if (own && Object.keys(state).length) values.set(`lab-${name}`, JSON.stringify(state));
    }
    return `${location.pathname}${location.search}#${values}`;
  }

  // What else the address holds: the training run that is shown.
  const FIRST_TAB = 'mask';
  const place = { run: given.get('run'), tab: given.get('tab')?.toLowerCase() ?? null };
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
  const part = (id) => window.gradio_config?.components.find(({ props }) => props?.elem_id === id)?.props;
  const models = () => part('sentence-model').choices.map(([, name]) => name);
  function firstVisit() {
    const own = { text: part('sentence-text')?.value, model: part('sentence-model')?.value, fresh: true };
    // A link that names the model alone: what it reads is an example of its own (follow).
    if (given.get('model')) return { ...own, model: given.get('model'), instead: own.text };
    if ([...given.keys()].some((name) => name !== 'tab' && name !== 'run')) return null;
    const [text, model] = part('cloze-examples')?.value?.openings?.[language] ?? [];
    return text ? { text, model, fresh: true, instead: own.text } : own;
  }
  // Words of an example, wherever its text stands.
  const hiddenBy = (example) => new Map(window.Cloze.tokensOf(example?.hide ?? [])
    .map(({ position }) => [position, { position, case: 'mask' }]));
  let opened = unread() ?? parse() ?? firstVisit();
  // Whether the sentence is still the one that the page came with, and the link's is on its way.
  window.Cloze.arriving = () => Boolean(opened)
    && sentence.text === part('sentence-text')?.value && sentence.model === part('sentence-model')?.value
    && (sentence.text !== opened.text || Boolean(opened.model && sentence.model !== opened.model));
  let nowhere = null; // a lab of the link that no place has
  let first = null; // how the page opens without a link: such an address stays bare

  function follow() {
    if (!sentence.text && !sentence.error) return;
    if (opened) {
      if (sentence.error) return;
      const { text, model, marks, stranger, fresh, instead } = opened;
      if (sentence.text !== text || (model && sentence.model !== model)) {
        // A visitor was quicker than the example.
        if (fresh && !(instead && [text, instead].includes(sentence.text))) opened = null;
        return;
      }
      opened = null;
      if (stranger) {
        const note = t`The link names the model “${stranger.slice(0, 60)}”, which is not here.`;
        change({ notes: [...sentence.notes, note] });
      }
      if (fresh) {
        const examples = sentence.card?.examples ?? [];
        const example = examples.find((each) => each.text === text);
        if (!example && examples.length && !stranger) {
          opened = { text: examples[0].text, model, fresh, instead };
          window.Cloze.write('sentence-text', examples[0].text);
          return;
        }
        change({ marks: hiddenBy(example) });
        return;
      }
      if (stranger) return;
      const fitting = [...marks].filter(([position]) => {
        const token = sentence.tokens[position];
        return token && !token.special && !token.masked;
      });
      const note = t`The link hides words that this sentence does not have.`;
      change({ marks: new Map(fitting), ...(fitting.length < marks.size ? { notes: [...sentence.notes, note] } : {}) });
      return;
    }
    if (nowhere) {
      const note = t`The link names the lab “${nowhere.slice(0, 60)}”, which is not here.`;
      nowhere = null;
      change({ notes: [...sentence.notes, note] });
      return;
    }
    const next = address();
    first ??= next;
    const bare = next === first && !location.hash;
    if (bare) return;
    const fits = [next, address({ text: false }), address({ text: false, kept: false })].find((each) => !tooLong(each));
    history.replaceState(entry(), '', fits);
    if (fits !== next) keepLong(next);
  }
  const tooLong = (link) => link.slice(link.indexOf('#')).length > MOST;

  // Entries of this visit. Those of an earlier one, and addresses that somebody typed, open the page anew.
  const VISIT = `${performance.timeOrigin}`;
  const entry = () => ({ visit: VISIT, tab: place.tab ?? FIRST_TAB });
  let going = null; // the tab of the entry that Back or Forward went to, until it is open
  window.addEventListener('popstate', ({ state }) => {
    if (state?.visit !== VISIT) return;
    going = state.tab === (place.tab ?? FIRST_TAB) || !window.Cloze.openTab(state.tab) ? null : state.tab;
    if (going === null) follow();
    else setTimeout(() => { going = null; }, 1_000);
  });

  // Called once when the page has mounted: the text and the model to open with. Without a link both stay what they are
  // when the answer arrives, and not what they were when it was asked for: a visitor may be quicker.
  const AS_IT_IS = { __type__: 'update' };
  window.Cloze.opening = (text, model) => {
    window.Cloze.mounted = true;
    if (!opened || (opened.fresh && !opened.instead)) return [AS_IT_IS, AS_IT_IS];
    const { text: wanted } = opened; // what follows may find that all of the link is there already
    if (models().includes(opened.model)) return [wanted, opened.model];
    // A snapshot of a run stands in no list: the Train tab asks the server for it (train.js).
    if (/^run\/./.test(opened.model ?? '')) {
      window.Cloze.wanted = opened.model;
      window.Cloze.findModel?.(opened.model);
    } else {
      // Of the hub or a folder: the visitor is asked before anything is fetched (open-model.js).
      if (/^(hub|folder)\/./.test(opened.model ?? '')) {
        offered = { ...opened };
        window.Cloze.askModel?.(opened.model);
      }
      window.Cloze.missing();
    }
    return [wanted, model];
  };
  let offered = null; // what a link holds whose model is not open here
  window.Cloze.offered = () => offered?.model ?? null;
  // A model has been opened: the link that named it goes on where it had to wait.
  window.Cloze.arrived = (name) => {
    if (offered?.model === name && sentence.text === offered.text) opened = offered;
    offered = null;
  };
  // The snapshot of the link is there; who has chosen a model meanwhile keeps it.
  window.Cloze.found = (name, choices) => {
    if (['', part('sentence-model')?.value].includes(sentence.model)) { window.Cloze.chooseModel(name, choices); return; }
    opened = null;
    follow();
  };
  // The model of the link is nowhere: open with another one, and say so.
  window.Cloze.missing = () => {
    if (!opened) return;
    opened.stranger = opened.model;
    opened.model = null;
    follow();
  };
  // What the table of places says of a lab.
  const told = (lab, what) => [part(`tab-${lab}`)?.elem_classes ?? []].flat()
    .find((name) => name.startsWith(`${what}-`))?.slice(what.length + 1);
  // Gradio draws the names of labs when their place is opened, with the first of them: press until the lab is open.
  const SOON = 20;
  const FADE = 48; // pixels at the ends of a row of names (page.css)
  let wish = null; // {lab, tries}: what is to be opened
  function reach() {
    if (!wish) return;
    const { lab } = wish;
    wish.tries -= 1;
    const open = document.getElementById(`tab-${lab}`)?.offsetParent;
    if (open) document.fonts.ready.then(() => showName(lab));
    if (open || !wish.tries) { wish = null; return; }
    document.getElementById(`tab-${lab}-button`)?.click();
    const place = document.getElementById(`place-${told(lab, 'in')}-button`);
    if (place?.getAttribute('aria-selected') === 'false') place.click();
    setTimeout(reach, SOON);
  }
  // "Budget" means "budget", too.
  window.Cloze.openTab = (name) => {
    const lab = String(name).toLowerCase();
    if (!told(lab, 'in')) return false;
    const idle = !wish;
    wish = { lab, tries: 500 };
    if (idle) reach();
    return true;
  };
  // Before Gradio draws: the lab of the link is the one that it opens.
  function preselect(lab) {
    const place = told(lab, 'in');
    if (!place) return;
    part('tabs').selected = place;
    part(`labs-${place}`).selected = lab;
  }
  // What the open lab reads decides what stands above it (page.css).
  const showReads = () => { document.documentElement.dataset.reads = told(place.tab ?? FIRST_TAB, 'reads') ?? 'words'; };
  // A lab is known by the id of its panel, which no translation changes.
  const openPanel = (bar) => [...bar.querySelectorAll('[role="tabpanel"][id^="tab-"]')]
    .find((panel) => panel.offsetParent !== null)?.id.replace('tab-', '');
  // Rows of names scroll sideways where they are too long.
  function showName(lab) {
    for (const name of [`place-${told(lab, 'in')}`, `tab-${lab}`]) {
      const button = document.getElementById(`${name}-button`);
      const row = button?.parentElement;
      if (!row) continue;
      const { left, right } = button.getBoundingClientRect();
      const edge = row.getBoundingClientRect();
      if (left < edge.left + FADE) row.scrollLeft += left - edge.left - FADE;
      else if (right > edge.right - FADE) row.scrollLeft += right - edge.right + FADE;
    }
  }
  function showTab(name) {
    place.tab = name;
    showReads();
    showName(name);
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
    if (place.tab) window.Cloze.openTab(place.tab);
    history.replaceState(entry(), '', location.href);
    const look = (tries = 250) => {
      const open = openPanel(bar);
      if (!open && tries) setTimeout(look, SOON, tries - 1); // it has a name, but is not drawn yet
      if (!open || (wish && wish.lab !== open)) return;
      if (open === (place.tab ?? FIRST_TAB) || (going !== null && open !== going)) return;
      showTab(open);
    };
    // As in any row of tabs, arrow keys go along; Enter opens.
    bar.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const row = step && [...event.target.parentElement.querySelectorAll(':scope > [role="tab"]')];
      if (!row?.includes(event.target)) return;
      row.at((row.indexOf(event.target) + step) % row.length).focus();
      event.preventDefault();
    });
    new MutationObserver(() => look()).observe(bar, { subtree: true, attributes: true, attributeFilter: ['aria-selected'] });
  }
  if (place.tab && !told(place.tab, 'in')) [nowhere, place.tab] = [place.tab, null];
  if (place.tab) preselect(place.tab);
  showReads();
  followTabs();
  window.Cloze.kept = (name) => labs.get(name) ?? null;
  window.Cloze.keep = (name, state) => {
    labs.set(name, state);
    follow();
    document.dispatchEvent(new CustomEvent('cloze:kept'));
  };
  // All that a lab keeps.
  window.Cloze.keptBy = (lab) => Object.fromEntries([...labs].filter(([name]) => name.split('-')[0] === lab));
  window.Cloze.address = address;
  window.Cloze.tooLong = tooLong;
  window.Cloze.place = place;
  window.Cloze.setPlace = (values) => { Object.assign(place, values); follow(); };
  window.Cloze.onChange(follow);
  window.addEventListener('hashchange', () => { if (history.state?.visit !== VISIT) location.reload(); });
})();
