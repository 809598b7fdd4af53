// Training: a race. All curves in one chart, and a table of what each model reached.
import { get, post, said as heard } from './api.js';
import { code, scroll } from './areas.js';
import { drawnSvg } from '../../parts/export.js';
import { makeFiles } from '../../parts/lab-files.js';
import { TONES, drawChart } from './chart.js';
import { makeExtremes } from './extremes.js';
import { makeSilent, makeSure, progress, waiting } from './head.js';
import { STATES, axisText, duration, figure, figureName, many, setName } from './words.js';

const { element, asker, format, openTab, t, texts } = window.Cloze;
const TEXT = texts({
  stop: 'Stop', resume: 'Continue', start: 'Start', again: 'New race from this one', remove: 'Delete',
  chart: 'All runs', table: 'What each model reached', shown: 'Show', by: 'by', none: 'The curves start with the first reports. The text is prepared for each run first.',
  axes: { step: 'steps', tokens: 'tokens', flops: 'operations', seconds: 'time' },
  waiting: { waiting: 'waiting', measuring: 'measuring' }, probe: (name) => t`probe: ${name}`, words: 'hidden words', pairs: 'minimal pairs',
  yard: 'without any model', note: 'Losses of different objectives cannot be compared with each other; the probes can. Dots are held-out text.',
  open: 'Open', every: 'The model is then chosen in every tab.', log: 'Log', command: 'The command that starts or continues this race',
  more: 'There are more columns: scroll the table sideways.',
  columns: { name: 'Model', state: 'State', parameters: 'Parameters', tokens: 'Tokens', losses: 'Held-out loss' },
  majority: (value) => t`majority ${value}`, bag_of_words: (value) => t`bag of words ${value}`, guest: 'started from another browser',
});
const GOALS = ['permutation', 'causal', 'replaced_token', 'masked_token'];
const OWN = texts({ own_loss: 'Loss of its own goal', own_accuracy: 'Accuracy at its own goal' });
const pick = (label, id, change) => {
  const select = element('select', { id, onchange: change });
  return { select, root: element('label', { class: 'train-pick' }, element('span', { text: label }), select) };
};
/** 60 M, 1.5 T: what the axis has room for. */
const operations = (value) => {
  const power = value >= 1e15 ? 15 : value >= 1e12 ? 12 : value >= 1e9 ? 9 : value >= 1e6 ? 6 : 0;
  return `${Number((value / 10 ** power).toPrecision(3))}${{ 15: ' P', 12: ' T', 9: ' G', 6: ' M', 0: '' }[power]}`;
};
const share = (value) => (value === undefined || value === null ? '' : `${(value * 100).toFixed(1)}\u00a0%`);

export function makeRace(view, { onAgain, onGone, onChange }) {
  let current = null;
  let found = null;
  let live = null;
  let drawn = '';
  const name = element('h3');
  const badge = element('span', { class: 'train-state' });
  const facts = element('p', { class: 'train-facts' });
  const bar = element('span', { class: 'train-fill' });
  const reason = element('p', { class: 'problem', role: 'status', hidden: true });
  const said = element('p', { class: 'problem', role: 'alert', hidden: true });
  const log = code(TEXT.log, 'train-log');
  const command = code(TEXT.command);
  const button = (text, id, act, kind = 'quiet outlined') => element('button', { type: 'button', class: kind, id, text, onclick: act });
  let lost = false; // the message is that the server did not answer
  const tell = (text, silent = false) => { [said.hidden, said.textContent, lost] = [!text, text, silent]; };
  const act = async (action, id = current, values = {}) => {
    tell('');
    try {
      await post(`runs/${id}/${action}`, values);
      if (action === 'delete') onGone(id);
    } catch (error) { if (id === current) tell(error.message, Boolean(error.silent)); }
    onChange();
  };
  const stop = button(TEXT.stop, 'train-race-stop', () => act('stop'));
  const resume = button(TEXT.resume, 'train-race-continue', () => act('start'), 'primary');
  const again = button(TEXT.again, 'train-race-again', () => onAgain(current));
  const remove = button(TEXT.remove, 'train-race-delete', () => sure.ask(current, name.textContent));
  const sure = makeSure('train-race', (id) => act('delete', id, { confirm: id }));
  const silent = makeSilent();
  const redraw = () => { drawn = ''; draw(); };
  const shown = pick(TEXT.shown, 'train-race-figure', redraw);
  const axis = pick(TEXT.by, 'train-race-axis', redraw);
  axis.select.replaceChildren(...Object.entries(TEXT.axes).map(([value, text]) => element('option', { value, text })));
  axis.select.value = 'tokens';
  const big = element('div', { class: 'train-chart', tabindex: '0', role: 'group', 'aria-label': TEXT.chart });
  const legend = element('ul', { class: 'train-legend' });
  const early = element('p', { class: 'train-note', text: TEXT.none });
  const table = element('table', { class: 'train-results' });
  const failures = element('ul', { class: 'train-failures problem', hidden: true });
  const box = scroll(TEXT.table, table);
  const more = element('p', { class: 'train-note train-more', text: TEXT.more, hidden: true });
  const measure = () => {
    more.hidden = box.scrollWidth <= box.clientWidth + 1;
    box.classList.toggle('more', box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  box.addEventListener('scroll', measure, { passive: true });
  new ResizeObserver(measure).observe(box);
  let chart = null;
  const files = makeFiles('train-race', { csv: () => cells(), svg: () => chart && drawnSvg(chart.svg), name: () => current });
  const whose = pick(TEXT.columns.name, 'train-race-whose', () => fillExtremes());
  const extremes = makeExtremes(whose.root);
  const root = element('div', { class: 'train-run train-race' },
    element('section', { class: 'card train-head' }, element('header', {}, name, badge), facts,
      element('span', { class: 'train-bar', 'aria-hidden': 'true' }, bar), silent.root, reason, said,
      element('p', { class: 'train-actions' }, stop, resume, again, remove, sure.root)),
    element('section', { class: 'card train-curves' }, element('header', {}, element('h3', { text: TEXT.chart }), shown.root, axis.root),
      early, big, legend, element('p', { class: 'train-note', text: TEXT.note }), files),
    element('section', { class: 'card train-reached' }, element('h3', { text: TEXT.table }), failures, more, box), extremes.root,
    element('section', { class: 'card train-settings' }, element('details', {}, element('summary', { text: TEXT.log }), log),
      element('details', {}, element('summary', { text: TEXT.command }), command)));
  new ResizeObserver(() => { if (root.isConnected) redraw(); }).observe(big);

  let goTo = 'Mask';
  let revision = 0;
  let opening = null; // the race whose model is being opened
  const send = asker(view, 'open');
  view.onValue(() => {
    if (!revision || view.value?.rev !== revision || !root.isConnected) return;
    if (view.value.error) { if (opening === current) tell(heard(view.value.error)); return; }
    openTab(goTo);
  });
  const openModel = (row) => {
    goTo = 'replaced_token' in row.objectives ? 'Forge' : 'Mask'; // a discriminator has no head that fills gaps
    revision = Date.now() % 2 ** 31;
    opening = current;
    send({ rev: revision, name: `run/${current}/${row.name}` });
  };

  function opener(row) {
    const made = button(TEXT.open, '', () => openModel(row));
    made.title = TEXT.every;
    return made;
  }

  const place = (row, record) => (axis.select.value === 'flops' ? record.step * row.flops_per_step : record[axis.select.value]);
  // The goal by which an entrant is drawn when each is shown by its own.
  const goal = (row) => GOALS.find((name) => name in row.objectives) ?? Object.keys(row.objectives)[0];
  const keyOf = (row, key) => key.replace(/(^|_)own_(loss|accuracy)$/, `$1${goal(row)}_$2`);
  const points = (row, wanted, key = keyOf(row, wanted)) => (found.series[row.name] ?? []).filter((each) => Number.isFinite(each[key])).map((each) => [place(row, each), each[key]]);

  function draw() {
    if (!found || !root.isConnected) return;
    const records = Object.values(found.series).flat();
    const keys = [...new Set(records.flatMap((each) => Object.keys(each)))].map((key) => key.replace(/^validation_/, ''))
      .filter((key) => /_loss$|_accuracy$/.test(key) || key === 'loss');
    const entries = [...Object.keys(OWN), ...new Set(keys)];
    const wanted = entries.join();
    if (records.length && shown.select.dataset.key !== wanted) {
      const kept = shown.select.value;
      shown.select.replaceChildren(...entries.map((key) => element('option', { value: key, text: OWN[key] ?? figureName(key) })));
      shown.select.value = entries.includes(kept) ? kept : 'own_loss';
      shown.select.dataset.key = wanted;
    }
    early.hidden = records.length > 0;
    const key = `${records.length}|${shown.select.value}|${axis.select.value}|${big.clientWidth}`;
    if (!records.length || key === drawn) return;
    drawn = key;
    const what = shown.select.value;
    const lines = found.rows.flatMap((row, tone) => [{ run: row.name, tone, points: points(row, what) },
      { run: row.name, tone, points: points(row, `validation_${what}`), dots: true }]).filter((line) => line.points.length);
    const baselines = /^(masked_token|own)_loss$/.test(what) && found.baselines.unigram_entropy
      ? [{ name: `${t`knows only how frequent pieces are`}: ${found.baselines.unigram_entropy.toFixed(2)}`, y: found.baselines.unigram_entropy }] : [];
    const showX = (value) => (axis.select.value === 'seconds' ? (value ? duration(value) : '0') : axis.select.value === 'flops' ? operations(value)
      : value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))} M` : format.count(value));
    chart = drawChart(big, {
      series: lines, baselines, showX, showY: (value) => axisText(what, value), height: big.clientWidth < 460 ? 260 : 340,
      label: t`${OWN[what] ?? figureName(what)} of ${found.rows.length} runs. The table below has what each reached.`,
    });
    legend.replaceChildren(...found.rows.map((row, tone) => element('li', {},
      element('span', { class: 'key', style: `background: var(${TONES[tone % TONES.length]})` }),
      element('span', { text: `${row.name} (${row.title})` }))));
  }

  /** The table as rows of plain values, the figures unrounded. */
  function cells() {
    const flat = (value, path) => (value !== null && typeof value === 'object' ? Object.entries(value).flatMap(([key, child]) => flat(child, path ? `${path}.${key}` : key))
      : [[path, value]]);
    const rows = found.rows.map((row) => new Map(flat(row, '')));
    const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
    return [names, ...rows.map((row) => names.map((key) => row.get(key) ?? ''))];
  }

  function fillTable() {
    const probes = [...new Set([...found.rows.flatMap((row) => Object.keys(row.probes ?? {})), ...Object.keys(found.probe_baselines)])];
    const words = found.rows.some((row) => row.words);
    const pairs = found.rows.some((row) => row.minimal_pairs);
    const losses = (row) => Object.entries(row.held_out ?? {}).filter(([key]) => /_loss$/.test(key))
      .map(([key, value]) => `${figureName(key).replace(' loss', '').toLowerCase()} ${figure(key, value)}`);
    const best = (value) => Math.max(...found.rows.map(value).filter(Number.isFinite));
    // On a narrow page each row is a card, and what the column is called stands beside the value.
    const td = (label, values, ...children) => element('td', { 'data-label': label, ...values }, ...children);
    const cell = (label, value, top) => td(label, { class: Number.isFinite(value) && value === top ? 'best' : null, text: share(value) });
    const { columns } = TEXT;
    const names = probes.map((probe) => TEXT.probe(setName(probe)));
    const heads = [columns.name, columns.state, columns.parameters, columns.tokens, ...names, ...(words ? [TEXT.words] : []), ...(pairs ? [TEXT.pairs] : []), columns.losses];
    const tops = probes.map((probe) => best((row) => row.probes?.[probe]?.value));
    const topWords = best((row) => row.words?.accuracy);
    const topPairs = best((row) => row.minimal_pairs?.accuracy);
    const yard = probes.map((probe) => ['majority', 'bag_of_words'].filter((kind) => found.probe_baselines[probe]?.[kind] !== undefined)
      .map((kind) => element('div', { text: TEXT[kind](share(found.probe_baselines[probe][kind])) })));
    table.replaceChildren(element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col', text })))),
      element('tbody', {}, ...found.rows.map((row, tone) => element('tr', { 'data-entrant': row.name, 'data-state': row.state },
        element('th', { scope: 'row' }, element('span', { class: 'key', style: `background: var(${TONES[tone % TONES.length]})` }), element('span', { text: row.name })),
        td(columns.state, {}, found.models.includes(`run/${current}/${row.name}`) && row.state === 'finished'
          ? opener(row)
          : element('span', { text: row.state === 'running' ? t`${format.count(row.step)} of ${format.count(row.steps)}` : TEXT.waiting[row.state] ?? STATES[row.state] ?? row.state })),
        td(columns.parameters, { text: many(row.parameters + row.generator_parameters) }), td(columns.tokens, { text: row.tokens ? many(row.tokens) : '' }),
        ...probes.map((probe, n) => cell(names[n], row.probes?.[probe]?.value, tops[n])), ...(words ? [cell(TEXT.words, row.words?.accuracy, topWords)] : []),
        ...(pairs ? [cell(TEXT.pairs, row.minimal_pairs?.accuracy, topPairs)] : []), td(columns.losses, { class: 'losses' }, element('div', {}, ...losses(row).map((text) => element('div', { text })))))),
      probes.length ? element('tr', { class: 'train-yard' }, element('th', { scope: 'row', text: TEXT.yard }), td(''), td(''), td(''),
        ...yard.map((lines, n) => td(names[n], {}, element('div', {}, ...lines))),
        ...(words ? [td('')] : []), ...(pairs ? [td('')] : []), td('')) : null));
    const failed = found.rows.filter((row) => row.reason);
    failures.hidden = !failed.length;
    failures.replaceChildren(...failed.map((row) => element('li', { text: `${row.name}: ${heard(row.reason)}` })));
    measure();
  }

  /** The hardest and easiest held-out examples of one entrant: the one that is chosen, at first the first. */
  function fillExtremes() {
    const validated = (name) => found.series[name]?.findLast((each) => Object.keys(each).some((key) => key.startsWith('validation_')))?.step;
    const names = found.rows.map((row) => row.name).filter(validated);
    if (whose.select.dataset.key !== names.join('|')) {
      const kept = whose.select.value;
      whose.select.replaceChildren(...names.map((name) => element('option', { value: name, text: name })));
      if (names.includes(kept)) whose.select.value = kept;
      whose.select.dataset.key = names.join('|');
    }
    const name = whose.select.value;
    extremes.fill(`runs/${current}/examples?${new URLSearchParams({ entrant: name })}`, validated(name) ?? null);
  }

  function fillHead(summary) {
    name.textContent = summary.name;
    badge.textContent = STATES[summary.state] ?? summary.state ?? '';
    badge.dataset.state = summary.state ?? '';
    root.dataset.run = summary.id;
    root.dataset.state = summary.state ?? '';
    root.dataset.step = summary.step ?? '';
    bar.style.transform = `scaleX(${summary.steps ? summary.step / summary.steps : 0})`;
    facts.textContent = [t`${summary.model?.race ?? 0} models`, progress(summary) ? t`step ${format.count(summary.step)} of ${format.count(summary.steps)} in all` : null,
      ...waiting(summary), live && !live.owned ? TEXT.guest : null].filter(Boolean).join(' · ');
    reason.hidden = !summary.reason;
    reason.textContent = heard(summary.reason ?? '');
    silent.fill(summary);
  }

  function fill() {
    const { summary } = live;
    root.classList.remove('pending');
    root.classList.toggle('read-only', !live.mine);
    fillHead(summary);
    stop.hidden = !['queued', 'starting', 'running', 'stopping'].includes(summary.state);
    stop.disabled = summary.state === 'stopping';
    resume.hidden = !['new', 'stopped', 'failed', 'crashed'].includes(summary.state);
    resume.textContent = summary.step ? TEXT.resume : TEXT.start;
    remove.hidden = !stop.hidden;
    if (remove.hidden) sure.close();
    log.textContent = live.log.join('\n');
    command.textContent = live.command;
  }

  return {
    root,
    /** brief: the race as the list of runs knows it, shown until its own report is there. */
    show(id, _, brief) {
      if (id === current) return;
      [current, found, live, drawn, chart, extremes.root.hidden] = [id, null, null, '', null, true];
      extremes.fill('', null);
      for (const part of [big, legend]) part.replaceChildren(); // a race without reports draws none
      tell('');
      sure.close();
      root.classList.add('pending');
      if (id) fillHead(brief ?? { id, name: id });
    },
    async poll(enabled) {
      const id = current;
      const [state, race] = await Promise.all([get(`runs/${id}`), get(`runs/${id}/race`)]);
      if (id !== current) return;
      if (lost) tell('');
      [live, found] = [{ ...state, owned: state.mine, mine: enabled && state.mine }, race];
      root.classList.toggle('switched-off', !enabled);
      fill();
      draw();
      fillTable();
      fillExtremes();
    },
  };
}
