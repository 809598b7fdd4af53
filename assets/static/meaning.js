// The Meaning tab. Its module and its style load when the tab is first seen, not with the page.
window.Cloze.register('meaning', (view) => {
  const seen = new ResizeObserver(async () => {
    if (view.root.offsetParent === null) return;
    seen.disconnect();
    const { mount } = await import('./meaning-view.js');
    mount(view);
  });
  seen.observe(view.root);
});
