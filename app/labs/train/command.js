// Training: settings for the command line. What the page has sent, and models of its runs, have no names there.
const { element, t } = window.Cloze;
const RUN = 'run/';

function runsIn(value) {
  if (typeof value === 'string') return value.startsWith(RUN) ? [value] : [];
  return value && typeof value === 'object' ? Object.entries(value).flatMap(([key, child]) => (['name', 'description', 'columns'].includes(key) ? [] : runsIn(child))) : [];
}

/** The settings as they go into a file. sent: [{name, column}] of the texts or tables that were sent, beside which the file will lie. */
export function forShell(config, sent) {
  const values = structuredClone(config);
  const names = sent.map(({ name }) => name);
  if (values.task) {
    ['set', 'dev'].forEach((part, n) => { if (names[n]) values.task[part] = names[n]; });
    return values;
  }
  values.data ??= {};
  values.data.texts = [...(values.data.texts ?? []), ...names];
  const column = sent.map((each) => each.column).find(Boolean);
  if (column) values.data.column = column;
  return values;
}

/** What has to be done before the command can run; empty where nothing has. */
export function makeShellNote() {
  const root = element('p', { class: 'train-note', hidden: true });
  return {
    root,
    fill(config, sent) {
      const own = [...(config.data?.texts ?? []), config.task?.set, config.task?.dev].filter((name) => name?.startsWith('texts/'));
      const files = [...new Set([...sent.map(({ name }) => name), ...own])];
      const models = [...new Set(runsIn(config))];
      const [column, ...others] = new Set(sent.map((each) => each.column).filter(Boolean));
      const parts = [
        files.length ? t`Put this beside the file with the settings first: ${files.join(', ')}` : null,
        others.length && !config.task ? t`The command reads one column of all tables, ${column}: rename ${others.join(', ')}.` : null,
        models.length ? t`In place of ${models.join(', ')} write the folder of that model; its run offers it as a download.` : null,
      ].filter(Boolean);
      root.hidden = !parts.length;
      root.replaceChildren(...parts.map((text) => element('span', { text: `${text} ` })));
    },
  };
}
