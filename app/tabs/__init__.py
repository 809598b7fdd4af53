"""One file per tab: ``build(shared) -> Controls`` and ``wire(controls, shared, session)``."""
