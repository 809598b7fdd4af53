// In a fold of the sentence block: which model answers, which of its heads are trained, and what is known of it.
(() => {
  'use strict';
  const { element, register, sentence, onChange, format, listed, t, texts, message } = window.Cloze;
  const STATES = texts({ trained: 'trained here', converted: 'converted', missing: 'missing' });
  const FAMILIES = {
    bert: 'BERT', roberta: 'RoBERTa', albert: 'ALBERT', spanbert: 'SpanBERT', xlnet: 'XLNet', electra: 'ELECTRA',
    macbert: 'MacBERT', deberta: 'DeBERTa', deberta_v2: 'DeBERTa v2', deberta_v3: 'DeBERTa v3',
    modernbert: 'ModernBERT', distilbert: 'DistilBERT', eurobert: 'EuroBERT', neobert: 'NeoBERT',
  };
  const HEADS = texts({
    masked_token: 'masked token', next_sentence: 'next sentence', sentence_order: 'sentence order',
    span_boundary: 'span boundary', permutation: 'permutation', replaced_token: 'replaced token',
    causal: 'next token', classify: 'classes', multilabel: 'several labels of texts',
    regress: 'score', tag: 'tags', span: 'answers', similarity: 'similarity',
  });

  const BEFORE = t`gaps from the place before`; // of a causal head whose model sees both sides
  const SEES = texts({ full: 'full', causal: 'causal', local: 'local' });
  const LEARNT = texts({ permuted: 'permuted in pretraining', causal: 'in part causal in pretraining' });

  const badge = ({ head, state, why }, fills) => element('li', { class: `badge ${state}`, title: message(why) },
    element('span', { text: head === 'causal' && fills === 'before' ? BEFORE : HEADS[head] ?? head }), element('b', { text: STATES[state] ?? state }));

  const row = (name, value) => element('div', {}, element('dt', { text: name }), element('dd', { text: value }));

  function facts(card) {
    return element('dl', {},
      row(t`Layers × width`, `${card.layers} × ${card.width}`),
      row(t`Parameters`, format.count(card.parameters)),
      card.sees.length ? row(t`Attention`, listed([...card.sees.map((way) => SEES[way]), ...card.learnt.map((way) => LEARNT[way])])) : null,
      row(t`Vocabulary`, t`${format.count(card.vocabulary)} pieces`),
      row(t`Longest input`, t`${format.count(card.longest)} pieces`),
      card.tokens ? row(t`Read in training`, t`${format.count(card.tokens)} tokens`) : null,
      ...card.figures.map(([what, share]) => row(message(what), format.percent(share))));
  }

  register('model-card', (view) => {
    const title = element('span');
    const list = element('ul', { 'aria-label': t`Heads of this model` });
    const body = element('div', { class: 'about' });
    view.root.replaceChildren(element('div', { class: 'model-card' }, element('p', { class: 'which' }, title, list), body));
    let drawn = null;
    const draw = () => {
      const { card, model } = sentence;
      view.root.hidden = !card;
      if (!card || drawn === card) return;
      drawn = card;
      title.textContent = `${model} · ${FAMILIES[card.family] ?? card.family}`;
      list.replaceChildren(...card.heads.map((each) => badge(each, card.fills)));
      body.replaceChildren(
        ...[card.description, card.note].filter(Boolean).map((text) => element('p', { text: message(text) })), facts(card));
    };
    onChange(draw);
    draw();
  });
})();
