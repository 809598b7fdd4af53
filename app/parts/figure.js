// Plotly figures: one place that loads Plotly, dresses figures in the page's theme and language, and sets a table beside them.
//
//   makeFigure({ name, onPick })   a figure among the parts of a view: { root, show(payload | null) }
//   mount(view)                    the part `Figure` of app/parts/figure.py
//
// A payload is what `drawn` of figure.py gives: { data, layout, words }.
import { csvButton, spoken, tableOf } from './plain.js';

const { element, dark, style, texts } = window.Cloze;
const TEXT = texts({
  numbers: 'The numbers', svg: 'Save as SVG', png: 'Save as PNG',
  failed: 'The charts could not be loaded. They are drawn as soon as the server answers.',
});
// Plotly's own words, for its buttons.
const MODEBAR = texts({
  Zoom: 'Zoom', Pan: 'Pan', 'Zoom in': 'Zoom in', 'Zoom out': 'Zoom out', 'Reset axes': 'Reset axes',
  'Double-click to zoom back out': 'Double-click to zoom back out',
});

let loading = null;
const look = () => fetch(`${window.ClozeRoot}cloze/plotly-look.json`).then((answer) => {
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
});

/** Plotly and the look of all charts, loaded once; a failure is forgotten, so that the next figure tries again. */
function plotly() {
  loading ??= look().then((found) => new Promise((done, failed) => {
    const ready = () => {
      window.Plotly.register({ moduleType: 'locale', name: 'page', dictionary: MODEBAR, format: {} });
      done(found);
    };
    if (window.Plotly) ready();
    else document.head.append(element('script', { src: window.ClozeRoot + found.script, onload: ready, onerror: failed }));
  })).catch((error) => { loading = null; throw error; });
  return loading;
}

/** Fetched when the page is idle and run with the first chart (offline.js). */
export async function ahead() {
  const { script } = await look();
  await fetch(window.ClozeRoot + script);
}

/** Every colour of the light theme as its twin in the dark. */
function recoloured(value, twins) {
  if (typeof value === 'string') return Object.hasOwn(twins, value) ? twins[value] : value;
  if (Array.isArray(value)) return value.map((each) => recoloured(each, twins));
  if (value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, key === 'meta' ? each : recoloured(each, twins)]));
}

/** theme: 'light', 'dark' or 'print'. With a width, in pixels, Plotly need not measure its place, which would lay the page out. */
function dressed(payload, found, theme, width) {
  const figure = spoken(payload);
  const { data, layout } = theme === 'dark' ? recoloured(figure, found.twins) : figure;
  return { data, layout: { ...layout, template: found[theme], width } };
}

const NARROW = 520; // pixels of width, below which a legend above the chart would cover its title
const LEAST = 100; // pixels of width; below it a lab is being laid out, and Plotly would keep the margins that it cuts for it
const ROW = 21; // pixels of a legend's row
const MOST_ROWS = 2; // of a legend, for which there is room below a title (viz.figure.finish)
const MARK = 45; // pixels of a mark before a name, and of what parts two names
let pen = null;
function wide(text, size, layout) {
  pen ??= document.createElement('canvas').getContext('2d');
  pen.font = `${size}px ${layout.template.layout.font.family}`;
  return pen.measureText(text).width;
}

/** Rows of a legend that goes across, as Plotly lays it out: in columns as wide as the longest name, where one row is too short. */
function rowsOf(names, width, layout) {
  const each = names.map((name) => MARK + wide(name, layout.template.layout.font.size, layout));
  const whole = each.reduce((sum, one) => sum + one, 0);
  return whole <= width ? 1 : Math.ceil(names.length / Math.max(1, Math.floor(width / Math.max(...each))));
}

/** On a phone, or where its rows would cover the title, the legend stands below the chart, which is as much higher. */
function narrowed({ data, layout }, width) {
  const names = data.filter(({ name, showlegend }) => name && showlegend !== false).map(({ name }) => name);
  const below = layout.legend?.yref === 'container'; // it stands there already
  const column = layout.legend?.orientation === 'v';
  const rows = column ? names.length : rowsOf(names, width, layout);
  const covers = !column && layout.title?.text && rows > MOST_ROWS;
  if ((width >= NARROW && !covers) || names.length < 2 || below || layout.showlegend === false) return { data, layout };
  const room = ROW * rows + 8;
  const { t, b = 8, ...sides } = layout.margin ?? {};
  const texts = Object.entries(layout).some(([key, axis]) => key.startsWith('xaxis') && axis.title?.text) ? 48 : 28;
  const margin = { ...sides, t: Math.min(t, layout.title?.text || layout.annotations ? 44 : 20), b: Math.max(b, texts) + room };
  // Across: a column of a container would push the chart aside by its width.
  const legend = { ...layout.legend, orientation: 'h', xref: 'container', yref: 'container', x: 0, y: 0, yanchor: 'bottom' };
  return { data, layout: { ...layout, margin, legend, height: (layout.height ?? 360) + room } };
}

const SIDES = 50; // pixels that the numbers beside a chart take
const TURNED = 15; // pixels across of a text that stands beside an axis
/** Texts that Python gave to places of an axis, as many as there is room for: Plotly would draw one over the other. */
function thinned({ data, layout }, width) {
  const found = { ...layout };
  for (const [name, axis] of Object.entries(layout)) {
    const { tickvals, ticktext, showticklabels, domain: [from, to] = [0, 1] } = axis ?? {};
    // A box over all curves of a place is headed by its text.
    if (!/^xaxis/.test(name) || !ticktext || showticklabels === false || layout.hovermode === 'x unified') continue;
    const step = Math.ceil((TURNED * tickvals.length) / ((width - SIDES) * (to - from)));
    const some = (list) => list.filter((_, n) => n % step === 0);
    if (step < 2) continue;
    found[name] = { ...axis, tickvals: some(tickvals), ticktext: some(ticktext) };
    // Its heads: each stands above a place.
    if (layout.annotations?.length === tickvals.length) found.annotations = some(layout.annotations);
  }
  return { data, layout: found };
}

const BESIDE = 8; // pixels left and right of a title
const LINE = 21; // pixels of a title's line
// A word with the blanks before it; of Chinese, which has none, a character with the marks that stand at it.
const WORD = / *(?:[“‘（《「]*\p{Script=Han}[，。、：；！？”’）》」…]*|[^ \p{Script=Han}]+)/gu;
/** A title that is wider than its chart goes on in another line, by which the chart grows. */
function headed({ data, layout }, width) {
  const text = layout.title?.text;
  if (!text) return { data, layout };
  const { title: { font, pad }, margin } = layout.template.layout;
  const lines = [];
  for (const word of text.match(WORD) ?? []) {
    const longer = (lines.at(-1) ?? '') + word;
    if (lines.length && wide(longer, font.size, layout) > width - BESIDE) lines.push(word.trimStart());
    else lines.splice(-1, 1, longer);
  }
  const more = LINE * (lines.length - 1);
  if (!more) return { data, layout };
  const t = (layout.margin?.t || margin.t) + more;
  // Plotly puts the middle of the lines where it would put one.
  const title = { ...layout.title, text: lines.join('<br>'), pad: { ...pad, t: pad.t + more / 2 } };
  return { data, layout: { ...layout, title, margin: { ...layout.margin, t }, height: (layout.height ?? 360) + more } };
}

const SPARE = 48; // pixels that a chart may leave beside labels that have become shorter
// Plotly tells nowhere else what its axes asked for; the test of charts whose labels change notices another version.
function spare({ _fullLayout: { _size, _pushmargin } }) {
  return _size.l - Math.max(...Object.entries(_pushmargin).map(([id, { l }]) => (id === 'base' ? 0 : l.size)));
}

/** The room left of a chart as its last drawing left it: where that changes, Plotly draws all twice, and bars jump aside. */
function steadied(layout, { _fullLayout: was }) {
  const l = layout.margin?.l ?? layout.template.layout.margin.l;
  return was && was.width === layout.width && was._size.l > l ? { ...layout, margin: { ...layout.margin, l: was._size.l } } : layout;
}

function makeTwin(name) {
  const box = element('div', { class: 'figure-scroll', tabindex: '0', role: 'region', 'aria-label': TEXT.numbers });
  let payload = null;
  const meta = () => spoken(payload).layout.meta;
  const root = element('details', { class: 'figure-twin' }, element('summary', { text: TEXT.numbers }), box, csvButton(name, meta));
  const fill = () => { if (root.open && !root.hidden) box.replaceChildren(tableOf(meta())); };
  root.addEventListener('toggle', fill);
  return { root, show(found) { payload = found; root.hidden = !found.layout.meta?.columns; fill(); } };
}

const PATIENCE = 100; // milliseconds that a width has to stay before a chart takes it on
const LATEST = 1000; // milliseconds that a chart out of view waits for an idle moment
const idle = window.requestIdleCallback ?? setTimeout; // Safari has none

const TAP = 400; // milliseconds in which Plotly tells of one tap twice: of the finger, and of the mouse that the browser makes of it
/** Buttons that nobody sees before the chart is touched are not pressed by a finger: its first tap shows them. */
function guardButtons(plot) {
  let unseen = false;
  plot.addEventListener('pointerdown', ({ target, pointerType }) => {
    const bar = target.closest('.modebar');
    unseen = Boolean(bar) && pointerType === 'touch' && Number(getComputedStyle(bar).opacity) < 1;
  }, { capture: true });
  plot.addEventListener('click', (event) => {
    if (unseen && event.target.closest('.modebar')) event.stopPropagation();
    unseen = false;
  }, { capture: true });
}

const drawers = new Set();
new MutationObserver(() => { for (const draw of drawers) draw(); }).observe(document.body, { attributes: true, attributeFilter: ['class'] });

/** name: of saved files. onPick({ curve, point, x, y, customdata }): a mark was clicked. */
export function makeFigure({ name = 'figure', onPick = null } = {}) {
  const plot = element('div', { class: 'figure-plot', role: 'group' });
  const problem = element('p', { class: 'problem', role: 'status', text: TEXT.failed });
  const twin = makeTwin(name);
  const root = element('figure', { class: 'figure', hidden: true }, plot, twin.root);
  let payload = null;
  let found = null;
  let drawnTheme = null;

  async function save(format) {
    const width = Math.max(640, plot.clientWidth);
    const { data, layout } = headed(thinned(dressed(payload, found, 'print'), width), width);
    await window.Plotly.downloadImage({ data, layout: { ...layout, width, height: layout.height ?? 360 } },
      { format, filename: name, width, height: layout.height ?? 360, scale: format === 'png' ? 2 : 1 });
  }

  // Buttons are named one by one: Plotly's own set has one that sends the chart to another host. Made once: with another
  // object Plotly would draw all anew and forget the zoom.
  let settings = null;
  const config = () => settings ??= {
    displaylogo: false, locale: 'page',
    modeBarButtons: [['zoom2d', 'pan2d'], ['zoomIn2d', 'zoomOut2d', 'resetScale2d'], [
      { name: 'png', title: TEXT.png, icon: window.Plotly.Icons.camera, click: () => save('png') },
      { name: 'svg', title: TEXT.svg, icon: window.Plotly.Icons.disk, click: () => save('svg') },
    ]],
  };

  let drawing = null; // the payload that waits for Plotly
  let drawn = null;
  const theme = () => (dark() ? 'dark' : 'light');
  // Sizes and places as observers told them: to ask the page would lay it out anew for each chart.
  let width = 0;
  let drawnWidth = 0;
  let near = false; // whether some of it is in the window
  for (const side of ['clientWidth', 'clientHeight']) Object.defineProperty(plot, side, { get: () => width }); // Plotly asks whether it is 0
  const unseen = () => {
    root.dataset.state = width > LEAST ? 'waiting' : 'unseen';
    return root.dataset.state === 'unseen';
  };
  async function draw() {
    if (!payload || payload === drawing || unseen()) return;
    const mine = payload;
    drawing = mine;
    try {
      found = await plotly();
      if (drawn && !near && !window.Cloze.printing) await new Promise((done) => idle(done, { timeout: LATEST })); // what is in view goes first
    } catch { root.dataset.state = 'failed'; plot.after(problem); return; } finally { if (drawing === mine) drawing = null; }
    if (mine !== payload || unseen()) return;
    problem.remove();
    drawn = mine;
    drawnTheme = theme();
    drawnWidth = width;
    const whole = dressed(payload, found, drawnTheme, width);
    const { data, layout } = headed(thinned(narrowed(whole, width), width), width);
    // A finger scrolls the page; it does not draw a zoom box.
    if (matchMedia('(pointer: coarse)').matches) layout.dragmode = false;
    const first = !plot.classList.contains('js-plotly-plot');
    const steady = steadied(layout, plot);
    await window.Plotly.react(plot, data, steady, config());
    if (steady !== layout && spare(plot) > SPARE) await window.Plotly.react(plot, data, layout, config());
    if (first) guardButtons(plot);
    if (first && onPick) {
      let last = -Infinity;
      plot.on('plotly_click', ({ points: [{ curveNumber, pointNumber, x, y, customdata }] }) => {
        const twice = performance.now() - last < TAP;
        last = performance.now();
        if (!twice) onPick({ curve: curveNumber, point: pointNumber, x, y, customdata: customdata ?? null });
      });
    }
    // Its texts say nothing without their places; the numbers are in the table.
    for (const drawing of plot.querySelectorAll('.main-svg')) drawing.setAttribute('aria-hidden', 'true');
    plot.setAttribute('aria-label', whole.layout.meta?.alt ?? whole.layout.title?.text ?? '');
    root.dataset.drawn = Number(root.dataset.drawn ?? 0) + 1;
    if (mine === payload) root.dataset.state = 'ready';
  }

  const redraw = () => {
    if (!root.isConnected) { drawers.delete(redraw); return; }
    if (drawnTheme && drawnTheme !== theme()) draw();
  };
  let resizing = 0;
  // Seen, with what came or changed while it was hidden, or as wide as it was not before.
  new ResizeObserver((sizes) => {
    width = sizes.at(-1).contentRect.width;
    if (width <= LEAST) return;
    if (drawn !== payload || drawnTheme !== theme()) draw();
    else if (width < NARROW !== drawnWidth < NARROW) draw();
    else if (width !== drawnWidth) { clearTimeout(resizing); resizing = setTimeout(draw, PATIENCE); }
  }).observe(plot);
  new IntersectionObserver((places) => { near = places.at(-1).isIntersecting; }).observe(plot);

  return {
    root,
    /** null: nothing to see. */
    show(next) {
      payload = next;
      root.hidden = !next;
      if (!next) {
        if (root.dataset.state === 'waiting') root.dataset.state = 'unseen'; // what it waited for will not be drawn
        return;
      }
      drawers.add(redraw);
      plot.style.minHeight = `${next.layout.height ?? 360}px`; // nothing below moves when the chart arrives
      twin.show(next);
      draw();
    },
  };
}

style('parts/plain'); // of the tables

export function mount(view) {
  const figure = makeFigure({
    name: view.root.dataset.files ?? 'figure',
    onPick: (point) => {
      view.value = { ...view.value, picked: point }; // for events that the page answers itself
      view.send('pick', point);
    },
  });
  view.root.replaceChildren(figure.root);
  let shown = null;
  const show = () => {
    const text = view.value?.figure;
    if (text && text === shown) return; // only what was picked is another
    shown = text;
    const payload = text ? JSON.parse(text) : view.value; // an object, where a script of ours sets it
    figure.show(payload?.data ? payload : null);
  };
  view.onValue(show);
  show();
}
