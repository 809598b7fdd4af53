// Training: one run, live. Charts, what is wrong with it, its snapshots, log, config and files.
import { get, post, said as heard } from './api.js';
import { fold } from '../../parts/layout.js';
import { makeCurves } from './curves.js';
import { makeExport } from './export.js';
import { makeExtremes } from './extremes.js';
import { makeSilent, makeSure, progress, waiting } from './head.js';
import { makeScrub } from './scrub.js';
import { makeSettings } from './parts.js';
import { makeResult } from './result.js';
import { makeTry } from './try.js';
import { STATES, duration, figure, many, modelName } from './words.js';

const { element, asker, format, message, openTab, t, texts } = window.Cloze;
const TEXT = texts({
  guest: 'started from another browser', tune: 'Fine-tune it', stop: 'Stop', resume: 'Continue', start: 'Start', again: 'New run from this one', remove: 'Delete',
  open: 'Open in the Mask tab', forge: 'Open in the Forge tab', attention: 'Attention tab', openAttention: 'Open in the Attention tab',
  doctor: 'What the curve says', axes: { step: 'steps', tokens: 'tokens', seconds: 'time' },
  early: 'The curve starts with the first report. Preparing the text and the vocabulary comes first.',
  levels: { problem: 'Problem', hint: 'Hint', good: 'Good' },
  calm: 'Nothing conspicuous so far.',
  every: 'The model is then chosen in every tab.',
});
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
}

export function makeRun(view, { onAgain, onTune, onGone, onChange }) {
  const feeds = new Map();
  let current = null;
  let others = [];

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

  const curves = makeCurves('train', TEXT.axes, () => {
    const { records } = feeds.get(current);
    const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
    return [names, ...records.map((record) => names.map((name) => record[name] ?? ''))];
  });

  // --- below ------------------------------------------------------------------------------
  const findings = element('ul', { class: 'train-findings' });
  for (const each of [openMask, openAttention]) each.title = TEXT.every;
  const extremes = makeExtremes();
  const scrub = makeScrub(openModel);
  const settings = makeSettings();
  const result = makeResult();
  const tryBox = makeTry();
  const early = element('p', { class: 'card train-note', text: TEXT.early });
  const doctor = fold(TEXT.doctor, findings);
  const root = element('div', { class: 'train-run' },
    element('section', { class: 'card train-head' },
      element('header', {}, name, badge), facts,
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, bar), silent.root, reason, said,
      element('p', { class: 'train-actions' }, stop, resume, openMask, openAttention, tune, again, exported.root, remove, sure.root)),
    early, curves.root, result.root, tryBox.root, doctor, scrub.root, extremes.root, settings.root);

  function draw() {
    const feed = feeds.get(current);
    if (!feed?.live || !root.isConnected) return;
    early.hidden = Boolean(feed.records.length) || !['starting', 'running'].includes(feed.live.summary.state);
    const seen = [current, ...others].filter((id) => feeds.get(id)?.live);
    curves.fill(current, seen.slice(1), feed.records.length ? seen.map((id) => `${feeds.get(id).generation}:${feeds.get(id).records.length}`).join() : '');
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
    const { summary, findings: found } = live;
    root.classList.remove('pending');
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
      if (id !== current) { tell(''); sure.close(); }
      [current, others] = [id, compared.filter((other) => other !== id)];
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
