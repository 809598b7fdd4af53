// Gradio 6.31 counts the seconds of its start-up sign in a loop of animation frames, and goes on when the sign is gone: a page at
// rest would draw sixty frames a second, a tenth of a processor. The first frame of that loop after the page has mounted is not given.
(() => {
  'use strict';
  const CLOCK = /performance\.now\(\)[^;]*\/\s*1e3/;
  const real = window.requestAnimationFrame;
  let patience = 120;
  window.requestAnimationFrame = (callback) => {
    if (!window.Cloze?.mounted) return real.call(window, callback);
    const found = CLOCK.test(callback);
    patience -= 1;
    if (found || patience === 0) window.requestAnimationFrame = real;
    return found ? 0 : real.call(window, callback);
  };
})();
