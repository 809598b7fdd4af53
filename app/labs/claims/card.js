// Claims: one card, before and after its measurement.
import { makeCode } from '../../parts/lab-files.js';

const { element, t, texts, message } = window.Cloze;
export const VERDICTS = texts({ right: 'Right', wrong: 'Wrong', half: 'Half right', depends: 'It depends', none: 'No verdict' });
export const GUESSES = texts({ right: 'Right', wrong: 'Wrong', partly: 'Partly' });
const SIGNS = { right: '✓', wrong: '✗', half: '◐', depends: '±', none: '–' };
const TEXT = texts({
  rule: 'The rule', how: 'The measurement', source: 'Source', why: 'Why', guess: 'Your guess', plain: 'Just measure', waiting: 'waiting …', measuring: 'Measuring …',
  hit: 'Your guess was right.', miss: 'Your guess was wrong.', again: 'Measure again', numbers: 'What was measured', what: 'What', value: 'Value',
  missing: 'Not measurable here yet',
});

/** A guess "partly" stands for half right and for depends. */
export const guessed = (guess, verdict) => guess === verdict || (guess === 'partly' && (verdict === 'half' || verdict === 'depends'));

const SMALL = 0.001; // what rounding leaves of nothing

/** 0.2177 -> "0.218", 109482240 -> "109,482,240". */
export function readable(value, unit) {
  let shown;
  if (Number.isInteger(value) && (unit === '' || unit === 'million')) shown = value.toLocaleString('en');
  else if (Math.abs(value) >= 100) shown = value.toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  else if (value && Math.abs(value) < SMALL) shown = `< ${SMALL}`;
  else if (Math.abs(value) >= 1 || value === 0) shown = String(Number(value.toFixed(2)));
  else shown = String(Number(value.toPrecision(3)));
  if (unit === '%') return `${shown}\u00a0%`;
  if (unit === 'million') return t`${shown} million`;
  if (unit === 'times') return t`${shown} times`;
  if (unit === 'ms') return `${shown} ms`;
  return shown;
}

function numbers(result) {
  return element('table', { class: 'cl-numbers' },
    element('caption', { text: TEXT.numbers }),
    element('thead', { class: 'cl-hidden' }, element('tr', {}, element('th', { scope: 'col', text: TEXT.what }), element('th', { scope: 'col', text: TEXT.value }))),
    element('tbody', {}, ...result.numbers.map(({ key, label, value, unit }, at) => {
      const cell = element('td', { 'data-key': key, 'data-value': value }, element('span', { class: 'cl-value', text: readable(value, unit) }));
      if (result.bars[at] !== null) {
        const fill = element('span', { class: 'cl-fill' });
        fill.style.width = `${100 * result.bars[at]}%`;
        cell.append(element('span', { class: 'cl-track', 'aria-hidden': 'true' }, fill));
      }
      return element('tr', {}, element('th', { scope: 'row', text: message(label) }), cell);
    })));
}

const line = (term, text) => element('p', { class: 'cl-line' }, element('b', { text: term }), ' ', element('span', { text }));

/** Who says so: articles by number, papers by name. */
export function sayers(card) {
  const articles = card.articles.map((number) => t`article ${number}`);
  return [...articles, card.said && message(card.said)].filter(Boolean).join(' · ');
}

/** A card; `act(guess)` measures, with null for no guess; `again()` measures with the next seed. */
export function makeCard(card, { act, again }) {
  const who = sayers(card);
  const verdict = element('p', { class: 'cl-verdict', role: 'status' });
  const body = element('div', { class: 'cl-body' });
  const root = element('article', { 'data-picture': '', class: 'card cl-card', 'data-claim': card.name, 'data-family': card.family, 'data-state': 'open' },
    element('header', {}, element('span', { class: 'cl-family', text: card.family }), who ? element('span', { class: 'cl-who', text: t`said in: ${who}` }) : element('span', { class: 'cl-who', text: t`often heard` })),
    element('h3', { text: message(card.statement) }), verdict, body);

  const row = (...children) => element('div', { class: 'cl-row' }, ...children);
  const question = () => row(
    element('span', { class: 'cl-small', text: TEXT.guess }),
    ...Object.entries(GUESSES).map(([name, text]) => element('button', { type: 'button', class: 'quiet outlined', 'data-guess': name, text, onclick: () => act(name) })),
    element('button', { type: 'button', class: 'quiet', 'data-guess': 'none', text: TEXT.plain, onclick: () => act(null) }));
  const about = () => [line(TEXT.how, message(card.how)), line(TEXT.rule, message(card.rule))];

  function open(problem = null) {
    root.dataset.state = 'open';
    verdict.replaceChildren();
    body.replaceChildren(
      ...(problem ? [element('p', { class: 'problem', text: problem })] : []),
      ...(card.missing ? [element('p', { class: 'cl-missing' }, element('b', { text: TEXT.missing }), ' ', element('span', { text: message(card.missing) }))] : [question()]),
      ...about());
  }
  function wait(running) {
    root.dataset.state = 'waiting';
    verdict.textContent = running ? TEXT.measuring : TEXT.waiting;
    for (const button of body.querySelectorAll('button')) button.disabled = true;
  }
  function show(result, guess) {
    root.dataset.state = 'done';
    root.dataset.verdict = result.verdict;
    verdict.replaceChildren(
      element('span', { class: `cl-stamp ${result.doubt ? 'depends' : result.verdict}` }, element('span', { 'aria-hidden': 'true', text: SIGNS[result.verdict] }), ' ', element('span', { text: VERDICTS[result.verdict] })),
      ...(guess && !result.doubt ? [element('span', { class: 'cl-small', text: guessed(guess, result.verdict) ? TEXT.hit : TEXT.miss })] : []));
    const code = makeCode();
    code.show(result.code);
    body.replaceChildren(...[result.doubt ? element('p', { class: 'cl-missing', 'data-doubt': '', text: message(result.doubt) }) : null, numbers(result), line(TEXT.rule, message(card.rule)), line(TEXT.why, message(card.why)), line(TEXT.how, message(card.how)),
      line(TEXT.source, message(card.source)),
      !card.drawn && !result.model ? null : row(...(card.drawn ? [element('button', { type: 'button', class: 'quiet outlined', 'data-again': '', text: TEXT.again, onclick: again }), element('span', { class: 'cl-small', text: t`seed ${result.seed}` })] : []),
        result.model ? element('span', { class: 'cl-small', text: t`answered by ${result.model}` }) : null),
      code.root].filter(Boolean));
  }
  open();
  return { root, open, wait, show };
}
