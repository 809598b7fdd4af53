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

// A link to a run opens its tab, as soon as Gradio has drawn it.
(() => {
  if (!window.Cloze.place.run) return;
  const open = () => { if (!window.Cloze.openTab('Train')) setTimeout(open, 50); };
  open();
})();
