// What Gradio 6.31 does and need not. Runs before Gradio's own script, which has its configuration from `gradio_config`.
(() => {
  'use strict';
  // Where the browser refuses to keep anything (all cookies blocked, a frame without an origin), its part that keeps a value would
  // stop the page: what it keeps then lasts as long as the page.
  try {
    window.localStorage.getItem('');
  } catch {
    const kept = new Map();
    Object.defineProperty(window, 'localStorage', { value: {
      getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => { kept.set(name, String(value)); }, removeItem: (name) => { kept.delete(name); },
    } });
  }

  // It walks all events and components when it starts, several times, through Svelte's proxies: half of the time until the page is
  // there. Svelte watches plain arrays only, and neither list ever changes (components are drawn from copies, which do).
  class Unwatched extends Array {}

  // For arguments that no event of ours has, it looks every target of an event up in the tree of all components, again through
  // proxies: all 600 of them twice when it starts, each time after it has read them into its table of events, and those of an
  // event whenever it happens. So every second reader, and whoever would map them, hears of none.
  class Targets extends Unwatched {
    static get [Symbol.species]() { return Array; }

    #read = false;

    * [Symbol.iterator]() {
      this.#read = !this.#read;
      for (let n = 0; this.#read && n < this.length; n += 1) yield this[n];
    }

    map() { return []; }
  }
  // An answer marks every input of its event as done, for ever, and whenever an event begins or ends all that were ever marked are
  // told so again, each found by a walk over the tree: with every lab that was opened a click costs more. Where no progress is
  // shown, nobody is marked.
  class Unmarked extends Unwatched {
    concat() { return []; }
  }

  // And each input is told, by a walk of its own, that nothing was found wrong with it; no event of ours has such a check.
  class Inputs extends Unwatched {
    static get [Symbol.species]() { return Array; }

    forEach(...each) { if (!window.Cloze?.mounted) super.forEach(...each); }
  }

  // When it starts it asks twice which events each component has, and looks through all of them each time. It asks in the order of
  // the layout: so the next one of the layout is tried before the search.
  const OF_ONE = /\.targets\.find\(/;
  class Events extends Unwatched {
    #order = [];

    #next = 0;

    #of = new Map();

    inOrder(layout) {
      const walk = ({ id, children = [] }) => { this.#order.push(id); children.forEach(walk); };
      walk(layout);
      for (const event of this) {
        for (const id of new Set(Array.prototype.map.call(event.targets, ([target]) => target))) {
          this.#of.set(id, [...(this.#of.get(id) ?? []), event]);
        }
      }
      return this;
    }

    filter(wanted) {
      if (!layout) return super.filter(wanted); // the sign-in
      if (!OF_ONE.test(wanted)) return super.filter(wanted).inOrder(layout); // those of the page that is shown
      const asked = (n) => Boolean(wanted({ targets: [[this.#order[n]]] }));
      if (!asked(this.#next)) this.#next = this.#order.findIndex((_, n) => asked(n));
      if (this.#next < 0) {
        this.#next = 0;
        return super.filter(wanted);
      }
      const found = this.#of.get(this.#order[this.#next]) ?? [];
      this.#next = (this.#next + 1) % this.#order.length;
      return [...found];
    }
  }
  const { components, dependencies = null, layout } = window.gradio_config ?? {};
  if (dependencies) {
    // What follows an event runs one after the other, each to its end: what needs no server would wait for its answer.
    dependencies.sort((one, other) => one.backend_fn - other.backend_fn);
    for (const event of dependencies) {
      event.targets = Targets.from(event.targets);
      event.inputs = Inputs.from(event.inputs);
      if (event.show_progress === 'hidden') event.show_progress_on = new Unmarked();
    }
    window.gradio_config.dependencies = Events.from(dependencies);
    window.gradio_config.components = Unwatched.from(components);
  }

  // A list that is open goes where its box is when somebody scrolls, but not when an answer above the box makes room for itself.
  document.addEventListener('DOMContentLoaded', () => {
    new ResizeObserver(() => {
      if (document.querySelector('ul[role=listbox]')) window.dispatchEvent(new Event('scroll'));
    }).observe(document.body);
  });

  // It counts the seconds of its start-up sign in a loop of animation frames, and goes on when the sign is gone: a page at
  // rest would draw sixty frames a second, a tenth of a processor. The first frame of that loop after the page has mounted is not given.
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

  // Of events that come in one moment it sends every question at once, whatever their trigger_mode says, and shows the answers as
  // they come: an older one may come last and stay. So the questions of one event leave one by one; each was asked with all that
  // stood there when it happened.
  const RUN = /\/run\/predict(\?|$)/;
  const { fetch } = window;
  const last = new Map();
  const those = (mode) => new Set((dependencies ?? []).filter((event) => event.trigger_mode === mode).map((event) => event.id));
  const together = those('multiple');
  // While a server starts anew the proxy before it answers in its place, and Gradio drops what was asked: it is asked again until the
  // server is there, but what may happen once only (a run that starts) is left to the visitor.
  const once = those('once');
  const GATEWAY = [502, 503];
  const PAUSE = 1_000;
  async function persist(event, asked) {
    for (;;) {
      const began = performance.now();
      const found = await fetch(...asked);
      const away = GATEWAY.includes(found.status);
      window.Cloze?.away?.(away, began);
      if (!away || once.has(event)) return found;
      await new Promise((done) => { setTimeout(done, PAUSE); });
    }
  }
  window.fetch = (...asked) => {
    const [address, options] = asked;
    if (typeof options?.body !== 'string' || !RUN.test(String(address))) return fetch(...asked);
    const event = Number(/"fn_index":(\d+)/.exec(options.body.slice(options.body.lastIndexOf('"fn_index":')))?.[1]);
    if (Number.isNaN(event) || together.has(event)) return persist(event, asked);
    const before = last.get(event);
    // It may ask the same twice in one moment: the second answer would undo what the visitor did after the first one.
    const same = before?.body === options.body;
    const answer = same ? before.answer : Promise.allSettled([before?.answer]).then(() => persist(event, asked));
    if (!same) {
      const mine = { body: options.body, answer };
      last.set(event, mine);
      answer.catch(() => {}).finally(() => { if (last.get(event) === mine) last.delete(event); });
    }
    return answer.then((found) => found.clone());
  };

  // A dropdown opens its list at every key, a moment later: with Tab the focus is elsewhere by then, and the list would stay. And
  // a long list is a stop of its own on the keyboard's way, which closes under the focus.
  window.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab' || !event.target.matches?.('input[role="combobox"]')) return;
    event.stopPropagation();
    document.getElementById(event.target.getAttribute('aria-controls'))?.setAttribute('tabindex', '-1');
  }, true);
})();
