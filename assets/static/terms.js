// The Terms tab. Its module and its style load when the tab is first seen, not with the page.
window.Cloze.register('terms', (view) => {
  const seen = new ResizeObserver(async () => {
    if (view.root.offsetParent === null) return;
    seen.disconnect();
    const { mount } = await import('./terms-view.js');
    mount(view);
  });
  seen.observe(view.root);
});
