"""Texts that would become markup or programs, and how a page tells that one of them has."""

from collections.abc import Sequence

from tests.app.visitors import Cloze

CALL = "__hit()"
_FRAMES = (
    *("{}", '">{}', "'>{}", "</script>{}", "</style>{}", "</textarea>{}", "-->{}", "</title>{}"),
    "</svg></math>{}",
)
"""What a text may have to close before."""
_CORES = (
    "<img src=inj onerror=__hit()>",
    "<svg onload=__hit()><inj-x></svg>",
    "<script>__hit()</script>",
    "<iframe srcdoc='<inj-x><script>parent.__hit()</script>'></iframe>",
    "<a href='javascript:__hit()'>inj</a>",
    "<details open ontoggle=__hit()><inj-x>",
    "<input autofocus onfocus=__hit() class=inj-x>",
)
_OTHERS = (
    # templates of scripts, of Gradio and of other programs
    *("${__hit()}", "{{__hit()}}", "{{{__hit()}}}", "`${__hit()}`", "<%= __hit() %>", "#{__hit()}"),
    *(
        "{%raw%}{{__hit()}}",
        "{0} {1} {rev} {value}",
        "%s %d %(name)s",
        "$& $1 $` $'",
        "\\${__hit()}",
    ),
    # what Plotly reads; not <b>, which charts have for the reader's own words
    "<a href='javascript:__hit()' target=inj>x</a>",
    *("<i>inj</i>", "<sup>inj</sup><br>y", "%{x} %{customdata[0]}<extra>inj</extra>"),
    "<span style='font-size:90px'>inj</span>",
    # Markdown and formulas
    *("[x](javascript:__hit())", "![x](inj)", "# inj", "**inj**", "| a | b |", "> inj"),
    *("$\\href{javascript:__hit()}{x}$", "$$\\text{inj}$$", "\\(x\\)", "~~~inj"),
    # styles and addresses
    "</style><style>*{display:none}</style><inj-x>",
    "<p style='animation-name:spin' onanimationstart=__hit()>inj",
    *("url(javascript:__hit())", "@import 'inj'", "javascript:__hit()", "data:text/html,<inj-x>"),
    *("<base href=//inj.test/>", "<meta http-equiv=refresh content=0;url=//inj.test>"),
    *("<link rel=stylesheet href=//inj.test/a>", "<img src=//inj.test/a>"),
    # trees that a parser changes
    "<math><mtext><table><mglyph><style><!--</style>"
    "<img title='--&gt;&lt;img src=inj onerror=__hit()&gt;'>",
    "<svg><style><img title='</style><img src=inj onerror=__hit()>'>",
    "<noscript><p title='</noscript><img src=inj onerror=__hit()>'>",
    "<template><img src=inj onerror=__hit()></template>",
    "&lt;img src=inj onerror=__hit()&gt;",
    "\\u003cimg src=inj onerror=__hit()\\u003e",
    # objects and expressions
    *(
        "<!--inj",
        "]]>inj<![CDATA[",
        "__proto__",
        "constructor",
        "toString",
        "=1+1",
        "' or 1=1 --",
        "null",
        "NaN",
    ),
    # signs that turn the direction, that have no width, that are no letter
    *(
        "in\0j inj",
        "\u202einj\u202c",
        "\u2066inj\u2069",
        "inj\u200b\u200dx",
        "inj\ufeff",
        "\ufffdinj",
    ),
)
PAYLOADS = tuple(dict.fromkeys([*(f.format(c) for f in _FRAMES for c in _CORES), *_OTHERS]))
MARKUP = tuple(text for text in PAYLOADS if "<" in text)

WATCH = "window.__hits = []; window.__hit = () => { window.__hits.push(new Error().stack); }"
# Elements and attributes that no script of the page makes: those of the texts.
FOUND = r"""() => {
  const found = window.__hits.map((stack) => `a program ran: ${stack}`);
  const acts = /^(on\w+|srcdoc|style|poster|background|target)$/;
  const leads = /^(href|xlink:href|src|action|formaction|data)$/;
  for (const each of document.querySelectorAll('*')) {
    if (/inj/i.test(each.tagName)) found.push(`<${each.tagName}>`);
    if (/(^|\s)inj/.test(each.getAttribute('class') ?? '')) found.push(`class of ${each.tagName}`);
    for (const { name, value } of each.attributes) {
      if (acts.test(name) && /inj|__hit/.test(value)) found.push(`${each.tagName} ${name}`);
      if (leads.test(name) && (/^\s*(javascript|data:text)/i.test(value)
          || /^(\/\/)?inj/.test(value))) found.push(`${each.tagName} ${name}=${value}`);
    }
  }
  for (const each of document.querySelectorAll('.figure tspan, .figure text')) {
    const read = each.tagName === 'tspan' && /inj/.test(each.textContent)
      && /italic|90px|70%/.test(each.getAttribute('style') ?? '');
    if (read) found.push(`markup in a chart: ${each.textContent}`);
  }
  return [...new Set(found)].slice(0, 8);
}"""


def watch(cloze: Cloze) -> None:
    """Notice from now on, also where the page is opened again, what a text does."""
    cloze.page.add_init_script(WATCH)
    cloze.page.evaluate(f"() => {{ {WATCH} }}")

    def check(request):
        if "/inj" in request.url.partition("#")[0]:
            cloze.problems.append(f"a text has asked for {request.url}")

    cloze.hear("request", check)


def harmless(cloze: Cloze, *where: object) -> None:
    """No text has become an element, an attribute, a program, a request or a window."""
    cloze.rest()
    found, problems = cloze.page.evaluate(FOUND), list(cloze.problems)
    cloze.problems.clear()
    assert found + problems == [], (where, found, problems)


def shown(cloze: Cloze, root: str, texts: Sequence[str]) -> None:
    """Wait until these stand in a part of the page to be read, letter for letter.

    Browsers read a NUL in a template as U+FFFD.
    """
    cloze.page.wait_for_function(
        """([root, texts]) => {
          const read = (text) => text.replaceAll('\\0', '\\ufffd');
          const said = [...document.querySelectorAll(root)].map((each) => each.textContent
            + [...each.querySelectorAll('input, textarea')].map(({ value }) => value).join('\\n'));
          return texts.every((text) => said.some((each) => read(each).includes(read(text))));
        }""",
        arg=[root, list(texts)],
    )
