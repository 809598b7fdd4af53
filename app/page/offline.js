// When the server cannot be reached: what is typed meanwhile is kept, and views that cannot be loaded say so.
//
// Gradio notices first, at an event or at its heartbeat: it shows a toast, asks every two seconds, and opens the page again once
// the server answers. The page then opens with the address, and with the text that was not read yet (link.js).
(() => {
  'use strict';
  const { element, field, loaded, keepUnread, style, t } = window.Cloze;
  const HINT = t`The server cannot be reached. What you type here is kept, and read as soon as it answers.`;
  const GOES_ON = t`The server cannot be reached. The page goes on as soon as it answers.`;
  const LOADING = t`This part of the page has not been loaded yet, and the server cannot be reached. It opens as soon as the server answers.`;
  const LOST = 'Connection to the server was lost. Attempting reconnection...';
  const GRADIO = { Error: t`Error`, [LOST]: t`Connection to the server was lost. Attempting reconnection...` };
  const PAUSE = 2_000;
  const SOON = 5_000; // milliseconds after which what tabs need is fetched ahead
  // What the header opens, what labs have said, the modules of all views: each a module and its style, if any.
  const ahead = () => [['page/share-view'], ['page/tour', 'page/tour'], ['parts/figure', 'parts/figure'], ...window.Cloze.ahead,
    ...(window.gradio_config?.components ?? [])
      .map(({ props }) => /data-module="([^"]+)"/.exec(props?.html_template ?? '')?.[1]).filter(Boolean).map((name) => [name, name])];

  // Where the text is, and above the labs that read none.
  const hints = [HINT, GOES_ON].map((text) => element('p', { class: 'offline problem', role: 'status', hidden: true, text }));
  const tell = (hidden) => { for (const hint of hints) hint.hidden = hidden; };
  let away = false;
  let since = 0;

  const typed = () => { if (away) keepUnread(field('sentence-text')?.value ?? ''); };
  const toast = () => document.querySelector('.toast-wrap');

  function lose() {
    if (!hints[0].isConnected) {
      document.querySelector('.view-chips')?.append(hints[0]);
      document.getElementById('frame')?.append(element('div', { class: 'view offline-lab' }, hints[1]));
    }
    tell(false);
    if (!away) {
      document.addEventListener('input', typed);
      since = performance.now();
    }
    away = true;
    typed();
  }

  /** asked: when the question was sent that has been answered; one that was under way at the loss tells nothing. */
  function find(asked = Infinity) {
    if (!away || asked < since || toast()?.childElementCount) return; // Gradio opens the page again itself
    away = false;
    tell(true);
    document.removeEventListener('input', typed);
  }

  // Gradio's own words, in the language of the page.
  function readToast() {
    for (const text of toast().querySelectorAll('.toast-title, .toast-message-text')) {
      const node = [...text.childNodes].find((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
      const own = node?.data.trim();
      if (own === LOST) lose();
      if ((GRADIO[own] ?? own) !== own) node.data = GRADIO[own];
    }
  }

  // --- what could not be loaded -------------------------------------------------------------------

  const unloaded = /dynamically imported module|importing a module|module script failed/i;
  let asking = false;
  async function ask() {
    try {
      const { ok } = await fetch(`${window.ClozeRoot}cloze/favicon.svg`, { cache: 'no-store' });
      if (!ok) throw new Error('a proxy answers'); // with a page of its own, which never comes back
      location.reload();
    } catch { setTimeout(ask, PAUSE); }
  }

  window.addEventListener('unhandledrejection', (event) => {
    if (!unloaded.test(event.reason?.message ?? '')) return;
    event.preventDefault();
    lose();
    const panel = [...document.querySelectorAll('#tabs [role="tabpanel"]')].find((each) => each.offsetParent !== null);
    if (panel && !panel.querySelector('.offline') && [...panel.querySelectorAll('.view[data-module]')].some((view) => !view.childElementCount)) {
      panel.append(element('div', { class: 'view' }, element('p', { class: 'offline problem', role: 'status', text: LOADING })));
    }
    if (!asking) ask();
    asking = true;
  });

  // --- ahead of time ------------------------------------------------------------------------------

  // A module that has been fetched needs no server any more; nothing is drawn before its tab is seen.
  async function fetchAhead() {
    for (const [name, looks] of new Map(ahead())) { // many parts share a module
      if (away) return;
      if (looks) style(looks);
      // What fails now is fetched, or missed, when the tab is opened.
      try {
        const { ahead: fetchMore } = await import(`${window.ClozeRoot}cloze/app/${name}.js`);
        await fetchMore?.();
      } catch { return; }
      await new Promise((done) => { (window.requestIdleCallback ?? setTimeout)(done); });
    }
  }

  window.Cloze.away = (gone, asked) => (gone ? lose() : find(asked)); // a proxy says so (gradio.js)
  window.addEventListener('offline', lose);
  window.addEventListener('online', () => find());
  loaded.then(() => {
    const watch = () => {
      if (!toast()) { setTimeout(watch, PAUSE); return; }
      new MutationObserver(readToast).observe(toast(), { childList: true, subtree: true, characterData: true });
      readToast();
    };
    watch();
    if (!navigator.connection?.saveData) setTimeout(() => (window.requestIdleCallback ?? setTimeout)(fetchAhead), SOON);
  });
})();
