"""Training as a folder: a separate process that writes what anybody may read.

``python -m core_models.training runs/x/config.json`` trains; :mod:`core_models.training.folder`
and :mod:`core_models.training.settings` read and write the folder and need no PyTorch, so that a
page or a supervisor can look after runs without loading it.
"""
