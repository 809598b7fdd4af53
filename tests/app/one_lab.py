"""What all labs of Gradio's components share for their tests: found by heading, folds by name."""

from collections.abc import Mapping

from tests.app.visitors import Cloze


class OneLab:
    """A lab of a page, opened.

    Attributes:
        lab: its name.
        heading: its heading, in English.
    """

    lab: str
    heading: str

    def __init__(self, cloze: Cloze, words: Mapping[str, str] | None = None) -> None:
        self.cloze, self.page = cloze, cloze.page
        self.words = words or {}
        """The page's language, where it is not English."""
        self.page.wait_for_function("!!window.Cloze?.openTab")
        self.page.evaluate("name => Cloze.openTab(name)", self.lab)
        # By its id: to look for it by its role is to ask every element of the page, each time.
        self.panel = self.page.locator(f"#tab-{self.lab}[role=tabpanel]")
        self.panel.get_by_role("heading", name=self.named(self.heading)).wait_for()

    def named(self, key: str, *values: str) -> str:
        """A text of ours as the page says it."""
        text = self.words.get(key, key)
        return text.format(*values) if values else text

    def unfold(self, name: str) -> None:
        """Open a fold, or leave it open."""
        fold = self.panel.get_by_role("button", name=self.named(name))
        if not fold.evaluate("each => each.classList.contains('open')"):
            fold.click()
