// The Claims tab. Its modules and its style load when the tab is first seen, not with the page.
window.Cloze.register('claims', (view) => {
  const seen = new ResizeObserver(async () => {
    if (view.root.offsetParent === null) return;
    seen.disconnect();
    const { mount } = await import('./claims-view.js');
    mount(view);
  });
  seen.observe(view.root);
});
