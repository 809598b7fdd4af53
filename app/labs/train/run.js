// Training: one run, live. Charts, what is wrong with it, its snapshots, log, config and files.
import { get, post, said as heard } from './api.js';
import { drawnSvg } from '../../parts/export.js';
import { makeFiles } from '../../parts/lab-files.js';
import { TONES, baselinesOf, drawChart } from './chart.js';
import { makeExport } from './export.js';
import { makeExtremes } from './extremes.js';
import { makeSilent, makeSure, progress, waiting } from './head.js';
import { makeScrub } from './scrub.js';
import { makeRecord, makeSettings } from './parts.js';
import { makeResult } from './result.js';
import { makeSmall } from './small.js';
import { makeTry } from './try.js';
import { STATES, axisText, duration, figure, figureName, many, modelName, namesOf } from './words.js';

const { element, asker, format, message, openTab, t, texts } = window.Cloze;
const TEXT = texts({
  guest: 'started from another browser', tune: 'Fine-tune it', stop: 'Stop', resume: 'Continue', start: 'Start', again: 'New run from this one', remove: 'Delete',
  open: 'Open in the Mask tab', forge: 'Open in the Forge tab', attention: 'Attention tab', openAttention: 'Open in the Attention tab',
  chart: 'Loss over the run', doctor: 'What the curve says', shown: 'Show', by: 'by',
  axes: { step: 'steps', tokens: 'tokens', seconds: 'time' },
  line: 'Line: training text, as it was masked. Dots: held-out text.', taskLine: 'Line: rows it learns from. Dots: rows to measure on.',
  curves: 'Figures over the run',
  early: 'The curve starts with the first report. Preparing the text and the vocabulary comes first.',
  levels: { problem: 'Problem', hint: 'Hint', good: 'Good' },
  calm: 'Nothing conspicuous so far.',
  every: 'The model is then chosen in every tab.',
});
const ASIDE = new Set(['step', 'seconds', 'tokens', 'epoch']);
const PRETRAINING = ['masked_token_loss', 'permutation_loss', 'replaced_token_loss', 'loss'];

/** Reports of one run, kept up to date by polling from where the last answer ended. */
export class Feed {
  constructor(id) { Object.assign(this, { id, records: [], offset: 0, generation: 0, live: null, looking: null }); }

  /** What came since the last look. A look that is under way serves all who ask, so that nothing is read twice. */
  poll() {
    this.looking ??= this.look().finally(() => { this.looking = null; });
    return this.looking;
  }

  async look() {
    let more = true;
    while (more) {
      const live = await get(`runs/${this.id}?offset=${this.offset}&generation=${this.generation}`);
      if (live.generation !== this.generation) this.records = [];
      this.records.push(...live.records);
      [this.offset, this.generation, this.live, more] = [live.offset, live.generation, live, live.more];
    }
  }

  points(key, axis) {
    return this.records.filter((record) => Number.isFinite(record[key])).map((record) => [record[axis], record[key]]);
  }
}

function choice(label, id, change) {
  const select = element('select', { id, onchange: change });
  return { select, root: element('label', { class: 'train-pick' }, element('span', { text: label }), select) };
}

function options(select, entries) {
  const key = JSON.stringify(entries);
  if (select.dataset.key === key) return;
  const kept = select.value;
  select.replaceChildren(...entries.map(([value, text]) => element('option', { value, text })));
  if (entries.some(([value]) => value === kept)) select.value = kept;
  select.dataset.key = key;
}

export function makeRun(view, { onAgain, onTune, onGone, onChange }) {
  const feeds = new Map();
  let current = null;
  let others = [];
  let drawn = '';

  let on = true; // whether this server trains
  const allow = () => {
    root.classList.toggle('switched-off', !on);
    root.classList.toggle('read-only', !on || !feeds.get(current).live.mine);
  };

  // --- header -----------------------------------------------------------------------------
  const name = element('h3');
  const badge = element('span', { class: 'train-state' });
  const facts = element('p', { class: 'train-facts' });
  const bar = element('span', { class: 'train-fill' });
  const reason = element('p', { class: 'problem', role: 'status', hidden: true });
  const said = element('p', { class: 'problem', role: 'alert', hidden: true });
  const button = (text, id, act, kind = 'quiet outlined') => element('button', {
    type: 'button', class: kind, id, text, onclick: act,
  });
  let lost = false; // the message is that the server did not answer
  const tell = (text, silent = false) => { [said.hidden, said.textContent, lost] = [!text, text, silent]; };
  const act = async (action, id = current, values = {}) => {
    tell('');
    try {
      await post(`runs/${id}/${action}`, values);
      if (action === 'delete') onGone(id);
    } catch (error) {
      if (id === current) tell(error.message, Boolean(error.silent));
    }
    onChange();
  };
  const stop = button(TEXT.stop, 'train-stop', () => act('stop'));
  const resume = button(TEXT.resume, 'train-continue', () => act('start'), 'primary');
  const again = button(TEXT.again, 'train-again', () => onAgain(current));
  const remove = button(TEXT.remove, 'train-delete', () => sure.ask(current, name.textContent));
  const sure = makeSure('train', (id) => act('delete', id, { confirm: id }));
  const silent = makeSilent();
  const exported = makeExport();

  // Gradio owns the model picker, so choosing a model there is an event.
  let goTo = 'Mask';
  let revision = 0;
  let opening = null; // the run whose model is being opened
  const send = asker(view, 'open');
  const openModel = (model, tab = 'Mask') => {
    goTo = tab;
    opening = current;
    revision += 1;
    send({ rev: revision, name: model });
  };
  view.onValue(() => {
    if (view.value?.rev !== revision || !revision) return;
    if (view.value.error) { if (opening === current) tell(heard(view.value.error)); return; }
    openTab(goTo);
    document.querySelector('#sentence')?.scrollIntoView({ block: 'start' });
  });
  const openMask = button(TEXT.open, 'train-open', () => {
    const { model, detects } = feeds.get(current).live;
    openModel(model, detects ? 'Forge' : 'Mask'); // a discriminator has no head that fills gaps
  });
  const openAttention = button(TEXT.attention, 'train-open-attention',
    () => openModel(feeds.get(current).live.model, 'Attention'));

  const tune = button(TEXT.tune, 'train-tune', () => onTune(feeds.get(current).live.model));

  // --- charts -----------------------------------------------------------------------------
  const redraw = () => { drawn = ''; draw(); };
  let chosen = false; // whether the visitor chose the figure
  const shown = choice(TEXT.shown, 'train-figure', () => { chosen = true; redraw(); });
  const axis = choice(TEXT.by, 'train-axis', redraw);
  options(axis.select, Object.entries(TEXT.axes));
  const big = element('div', { class: 'train-chart', tabindex: '0', role: 'group', 'aria-label': TEXT.chart });
  const readout = element('p', { class: 'train-readout', 'aria-live': 'polite' });
  const legend = element('ul', { class: 'train-legend' });
  const small = makeSmall();
  const record = makeRecord();
  let chart = null;
  let picked = null;
  const files = makeFiles('train', {
    csv: () => record.csv(feeds.get(current).records), svg: () => chart && drawnSvg(chart.svg),
    name: (kind) => (kind === 'csv' ? current : `${current}-${shown.select.value}`),
  });

  // --- below ------------------------------------------------------------------------------
  const findings = element('ul', { class: 'train-findings' });
  for (const each of [openMask, openAttention]) each.title = TEXT.every;
  const extremes = makeExtremes();
  const scrub = makeScrub(openModel);
  const settings = makeSettings();
  const result = makeResult();
  const tryBox = makeTry();
  const chartTitle = element('h3', { text: TEXT.chart });
  const lineNote = element('p', { class: 'train-note', text: TEXT.line });
  const chartCard = element('section', { class: 'card train-curves' },
    element('header', {}, chartTitle, shown.root, axis.root),
    big, readout, legend, lineNote, small.root, record.root, files);
  const early = element('p', { class: 'card train-note', text: TEXT.early });
  const doctor = element('section', { class: 'card' }, element('h3', { text: TEXT.doctor }), findings);
  const root = element('div', { class: 'train-run' },
    element('section', { class: 'card train-head' },
      element('header', {}, name, badge), facts,
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, bar), silent.root, reason, said,
      element('p', { class: 'train-actions' }, stop, resume, openMask, openAttention, tune, again, remove, sure.root), exported.root),
    early, result.root, tryBox.root, chartCard, doctor, scrub.root, extremes.root, settings.root);

  big.addEventListener('pointermove', (event) => { if (chart) { picked = chart.pick(event.clientX); tellPoint(); } });
  const unpick = () => { picked = null; chart?.mark(null); tellPoint(); };
  big.addEventListener('pointerleave', unpick);
  big.addEventListener('blur', unpick);
  big.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const feed = feeds.get(current);
    const xs = [shown.select.value, `validation_${shown.select.value}`].map((key) => feed?.points(key, axis.select.value).map(([x]) => x) ?? [])
      .find((found) => found.length) ?? [];
    if (!by || !xs.length) return;
    event.preventDefault();
    const at = picked === null ? (by > 0 ? -1 : xs.length) : xs.indexOf(picked);
    picked = xs[Math.min(xs.length - 1, Math.max(0, at + by))];
    chart?.mark(picked);
    tellPoint();
  });
  new ResizeObserver(() => { if (root.isConnected) redraw(); }).observe(big);

  const showX = (value) => {
    if (axis.select.value === 'seconds') return value ? duration(value) : '0';
    return value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))} M` : value >= 100_000 ? `${value / 1000} k` : format.count(value);
  };

  function tellPoint() {
    const [key, by] = [shown.select.value, axis.select.value];
    const feed = feeds.get(current);
    const at = feed && (picked === null ? feed.records.at(-1)
      : feed.records.reduce((best, each) => (Math.abs(each[by] - picked) < Math.abs(best[by] - picked) ? each : best), feed.records[0]));
    if (!at) { readout.textContent = ''; return; }
    const held = picked === null
      ? feed.records.findLast((each) => each[`validation_${key}`] !== undefined) : at;
    const parts = at[key] === undefined ? [] : [t`${figure(key, at[key])} in training`];
    if (held?.[`validation_${key}`] !== undefined) {
      const measured = figure(key, held[`validation_${key}`]);
      const told = feed.live.task ? t`${measured} on rows to measure on` : t`${measured} on held-out text`;
      parts.push(held.step === at.step ? told : t`${told} (step ${format.count(held.step)})`);
    }
    readout.textContent = parts.length ? t`Step ${format.count(at.step)}: ${parts.join(', ')}.` : '';
  }

  function draw() {
    const feed = feeds.get(current);
    if (!feed?.live || !root.isConnected) return;
    const ids = [current, ...others].filter((id) => feeds.get(id)?.live);
    const key = `${ids.map((id) => `${id}:${feeds.get(id).records.length}:${feeds.get(id).generation}`)}|${shown.select.value}|${axis.select.value}|${big.clientWidth}`;
    if (key === drawn) return;
    drawn = key;
    const known = new Set(feed.records.flatMap((each) => Object.keys(each)));
    const task = feed.live.task;
    // What is only measured, as a metric of a task, has no training figure of the same name.
    const keys = [...new Set([...known].map((each) => each.replace(/^validation_/, '')))].filter((each) => !ASIDE.has(each));
    const order = task ? [task.main, 'loss'] : PRETRAINING;
    keys.sort((a, b) => (order.indexOf(a) + 1 || 9) - (order.indexOf(b) + 1 || 9));
    options(shown.select, keys.map((each) => [each, figureName(each)]));
    if (!chosen && keys.length) [shown.select.value] = keys;
    chartCard.hidden = !feed.records.length;
    early.hidden = Boolean(feed.records.length) || !['starting', 'running'].includes(feed.live.summary.state);
    if (!feed.records.length) return;
    const [what, by] = [shown.select.value, axis.select.value];
    const lines = ids.flatMap((id, tone) => [
      { run: id, tone, points: feeds.get(id).points(what, by) },
      { run: id, tone, points: feeds.get(id).points(`validation_${what}`, by), dots: true },
    ]).filter((line) => line.points.length);
    const baselines = baselinesOf(ids.map((id) => feeds.get(id)), what);
    chart = drawChart(big, {
      series: lines, baselines, showX, showY: (value) => axisText(what, value), height: big.clientWidth < 460 ? 260 : 330,
      label: ids.length > 1 ? t`${figureName(what)} of ${ids.length} runs. The table below has the numbers.`
        : t`${figureName(what)} of 1 run. The table below has the numbers.`,
    });
    if (picked !== null) chart?.mark(picked);
    legend.hidden = ids.length < 2;
    legend.replaceChildren(...ids.map((id, tone) => element('li', {},
      element('span', { class: 'key', style: `background: var(${TONES[tone % TONES.length]})` }),
      element('span', { text: namesOf(ids.map((each) => feeds.get(each).live.summary)).get(id) }))));
    small.draw(ids.map((id) => feeds.get(id)), by, showX);
    record.fill(feed.records, keys);
    tellPoint();
  }

  /** What is known of a run before its own report is there, from the list of runs. */
  function fillHead(summary, live) {
    name.textContent = summary.name;
    badge.textContent = STATES[summary.state] ?? summary.state ?? '';
    badge.dataset.state = summary.state ?? '';
    root.dataset.run = summary.id;
    root.dataset.state = summary.state ?? '';
    root.dataset.step = summary.step ?? '';
    bar.style.transform = `scaleX(${summary.steps ? summary.step / summary.steps : 0})`;
    const speed = summary.last?.tokens_per_second;
    const model = modelName(summary.model ?? {});
    facts.textContent = [
      live?.task ? `${live.task.set}, ${model}` : model,
      summary.parameters ? t`${many(summary.parameters)} parameters` : null,
      progress(summary) ? t`step ${format.count(summary.step)} of ${format.count(summary.steps)}` : null,
      summary.state === 'running' && speed ? t`${format.count(Math.round(speed))} tokens/s` : null,
      Number.isFinite(summary.seconds_left) ? t`about ${duration(summary.seconds_left)} left` : null,
      ...waiting(summary),
      live && !live.mine ? TEXT.guest : null,
      live?.data.tokens ? t`${format.count(live.data.tokens)} pieces of text, vocabulary ${format.count(live.data.vocabulary)}` : null,
      live?.environment.device ? t`on ${live.environment.device.replace(/^cpu$/, 'CPU')}` : null,
    ].filter(Boolean).join(' · ');
    reason.hidden = !summary.reason;
    reason.textContent = heard(summary.reason ?? '');
    silent.fill(summary);
  }

  function fill() {
    const live = feeds.get(current).live;
    const { summary, findings: found, task } = live;
    root.classList.remove('pending');
    chartTitle.textContent = task ? TEXT.curves : TEXT.chart;
    lineNote.textContent = task ? TEXT.taskLine : TEXT.line;
    fillHead(summary, live);
    stop.hidden = !['queued', 'starting', 'running', 'stopping'].includes(summary.state);
    stop.disabled = summary.state === 'stopping';
    resume.hidden = !['new', 'stopped', 'failed', 'crashed'].includes(summary.state);
    resume.textContent = summary.step ? TEXT.resume : TEXT.start;
    remove.hidden = !stop.hidden;
    if (remove.hidden) sure.close();
    exported.fill(current, summary.kind === 'race' ? null : live.export);
    const { model } = live;
    openMask.hidden = !model || summary.kind === 'task'; // no head of it fills gaps
    openMask.textContent = live.detects ? TEXT.forge : TEXT.open;
    openAttention.textContent = openMask.hidden ? TEXT.openAttention : TEXT.attention;
    tune.hidden = !model || summary.kind === 'task' || root.classList.contains('switched-off');
    openAttention.hidden = !model;
    doctor.hidden = !feeds.get(current).records.length && !found.length;
    findings.replaceChildren(...(found.length ? found : [{ level: 'good', title: TEXT.calm, text: '', cure: '' }]).map(
      (each) => element('li', { 'data-level': each.level, 'data-kind': each.kind },
        element('span', { class: 'train-level', text: TEXT.levels[each.level] }),
        element('b', { text: message(each.title) }), element('span', { text: ` ${message(each.text)}` }),
        each.cure ? element('span', { class: 'train-cure', text: message(each.cure) }) : null)));
    result.fill(current, live);
    tryBox.fill(current, live);
    scrub.fill(current, live);
    extremes.fill(`runs/${current}/examples`, live.validated);
    settings.fill(current, feeds.get(current).live, others);
  }

  return {
    root,
    /** brief: the run as the list of runs knows it, shown until its own report is there. */
    show(id, compared, brief) {
      if (id !== current) { chosen = false; tell(''); sure.close(); picked = null; }
      [current, others] = [id, compared.filter((other) => other !== id)];
      drawn = '';
      if (!id) return;
      if (feeds.get(id)?.live) { allow(); fill(); draw(); return; }
      root.classList.add('pending'); // no button: none can be about what is not there yet
      fillHead(brief ?? { id, name: id });
    },
    /** Ask for what is new of the run shown and of those compared with it. */
    async poll(enabled) {
      const id = current;
      on = enabled;
      const wanted = [id, ...others].map((each) => {
        if (!feeds.has(each)) feeds.set(each, new Feed(each));
        return feeds.get(each).poll();
      });
      const rest = Promise.allSettled(wanted.slice(1));
      await wanted[0];
      if (id !== current) return;
      if (lost) tell('');
      allow();
      fill();
      draw();
      const failed = (await rest).find((each) => each.status === 'rejected');
      if (id === current && wanted.length > 1) draw();
      if (failed) throw failed.reason;
    },
  };
}
