// The Train tab. Its modules and its style load when the tab is first seen, not with the page.
window.Cloze.register('train', (view) => {
  const load = async () => {
    const { mount } = await import('./train-view.js');
    mount(view);
  };
  const seen = new ResizeObserver(() => {
    if (view.root.offsetParent === null) return;
    seen.disconnect();
    load();
  });
  seen.observe(view.root);
});

window.Cloze.register('finder', (view) => {
  view.root.closest('.block')?.style.setProperty('display', 'none');
  // A link to a model that stands in no list, such as a snapshot: the server knows whether it is there.
  const REVISION = 1; // one question, once
  const send = window.Cloze.asker(view, 'open', () => window.Cloze.missing());
  window.Cloze.findModel = (name) => send({ rev: REVISION, name });
  view.onValue(() => { if (view.value?.rev === REVISION && view.value.error) window.Cloze.missing(); });
  if (window.Cloze.wanted) window.Cloze.findModel(window.Cloze.wanted);
});

// A link to a run opens its tab, as soon as Gradio has drawn it.
(() => {
  if (!window.Cloze.place.run) return;
  const open = () => { if (!window.Cloze.openTab('Train')) setTimeout(open, 50); };
  open();
})();
