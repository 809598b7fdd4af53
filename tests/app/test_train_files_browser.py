"""Files in the forms of Train: several at once, too large ones, dropped beside, by keyboard."""

from playwright.sync_api import expect

from tests.app.train_tab import open_form

TEXT = "The cat sees the dog.\nThe dog hears the bird.\n\nA bird sees a cat.\nA cat sleeps.\n"
DROPPED = """form => {
  const files = new DataTransfer();
  files.items.add(new File(['a'], 'a.txt'));
  return ['dragover', 'drop'].map((kind) => !form.dispatchEvent(
    new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true })));
}"""


def test_files_of_a_form(visit, tmp_path):
    """Two at once; one that is too large; one that is dropped beside the field; the keyboard."""
    cloze = visit()
    form = open_form(cloze)
    form.fold("Texts of your own")
    paths = [tmp_path / name for name in ("one.txt", "two.txt", "large.txt")]
    for path in paths[:2]:
        path.write_text(f"{path.name} begins.\n{TEXT}")
    form.send(paths[:2])
    form.button("Remove one.txt").wait_for()
    form.button("Remove two.txt").wait_for()
    with paths[2].open("wb") as file:
        file.truncate((20 << 20) + (1 << 19))
    form.send(paths[2])
    form.says("large.txt has 20.5 MB; at most 20 MB are taken. Send a part of it.")
    form.button("Remove one.txt").focus()
    cloze.page.keyboard.press("Enter")
    expect(form.root.get_by_label("Send a file")).to_be_focused()
    expect(form.button("Remove one.txt")).to_have_count(0)
    expect(form.button("Remove two.txt")).to_be_visible()
    assert form.root.evaluate(DROPPED) == [True, True]
