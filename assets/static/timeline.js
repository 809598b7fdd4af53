// The Timeline tab. Its modules and its style load when the tab is first seen, not with the page.
window.Cloze.register('timeline', (view) => {
  const seen = new ResizeObserver(async () => {
    if (view.root.offsetParent === null) return;
    seen.disconnect();
    const { mount } = await import('./timeline-view.js');
    mount(view);
  });
  seen.observe(view.root);
});
