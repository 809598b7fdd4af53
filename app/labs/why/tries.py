"""What to try in the Why lab, and how the page fills it in without a request."""

import json
from typing import Any

from app.labs.why.methods import Options
from core_models.prediction.targets import SCALES
from viz.svg import Wording

FIRST: dict[str, Any] = {
    **{"kind": "", "position": "", "word": "", "against": "", "second": ""},
    **{"scale": SCALES[0], "steps": Options.steps, "baseline": "", "window": Options.window},
}
"""What can be chosen, as it is at first; "" is chosen by the model and its sentence."""
TRIES: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    Wording("Why Paris, not London?"): (
        "The capital of France is Paris.",
        ["paris"],
        {"word": "paris", "against": "london"},
    ),
    Wording("One or many?"): (
        "The children are playing in the garden.",
        ["are"],
        {"word": "are", "against": "is"},
    ),
    Wording("Too few steps"): (
        "Mexico lies in North America.",
        ["america"],
        {"word": "america", "steps": 10, "scale": "probability"},
    ),
    Wording("Three words at a time"): (
        "The house was built two hundred years ago.",
        ["years"],
        {"word": "years", "window": 3},
    ),
    Wording("Two sentences"): (
        "Mount Everest is the highest mountain in the world.",
        [],
        {"kind": "class", "second": "Its top lies almost nine kilometres above the sea."},
    ),
    Wording("A forged word"): ("The capital of France is honey.", [], {"kind": "replaced"}),
}
"""Text, what is hidden in it, and what is chosen."""
FILLED = json.dumps(
    {
        name: {
            "text": text,
            "hide": hide,
            "chosen": chosen,
            "values": [*({**FIRST, **chosen}).values(), {"try": name}],
        }
        for name, (text, hide, chosen) in TRIES.items()
    }
)
FILL = f"name => ({FILLED})[name].values"
WRITE = f"name => Cloze.chooseExample(({FILLED})[name])"
# A try and a link bring along what is chosen of their sentence; a try waits until that is there,
# unless the visitor types another one. A link may be to a try, which is named then.
FOLLOW = f"""(sentence, of, ...values) => {{
  const same = {{ __type__: 'update' }};
  const [tries, names] = [{FILLED}, {json.dumps(list(FIRST))}];
  const wanted = tries[of?.try];
  const here = wanted && sentence?.text === wanted.text && Cloze.showsExample(wanted)
    && sentence.marks.length === Cloze.sentence.marks.size;
  const coming = wanted && !here && Cloze.field('sentence-text')?.value === wanted.text;
  const known = JSON.stringify(of) === JSON.stringify(sentence);
  if (!sentence || known || coming) return Array(6).fill(same);
  const chosen = (each) => Object.entries(each.chosen)
    .every(([name, value]) => values[names.indexOf(name)] === value);
  const shown = ([, each]) => !of && Cloze.showsExample(each) && chosen(each);
  const name = Object.entries(tries).find(shown)?.[0] ?? same;
  if (!of || here) return [sentence, name, ...Array(4).fill(same)];
  return [sentence, null, of.model === sentence.model ? same : '', '', '', ''];
}}"""
# A try is named no longer once something else is chosen than it chose.
STAY = f"""(name, ...values) => {{
  const wanted = ({FILLED})[name];
  const kept = ([each, value]) => values[{json.dumps(list(FIRST))}.indexOf(each)] === value;
  return !wanted || Object.entries(wanted.chosen).every(kept) ? {{ __type__: 'update' }} : null;
}}"""
