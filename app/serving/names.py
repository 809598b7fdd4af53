"""Names of models in the model picker, and what the core loads for them."""

RUN_PREFIX = "run/"
"""Before the name of a training run: its model is not among the installed ones."""
GENERATOR = "-generator"
"""A discriminator NAME belongs to the generator NAME-generator."""


def loadable(name: str) -> str:
    """What ``cm.load`` takes for a name of the model picker: a run's model lies in its folder."""
    if not name.startswith(RUN_PREFIX):
        return name
    return f"runs/{name.removeprefix(RUN_PREFIX)}/model"
