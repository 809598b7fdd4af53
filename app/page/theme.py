"""Gradio's own widgets in the colours and fonts of assets/static/cloze.css."""

from inspect import signature

import gradio as gr

SANS = ["IBM Plex Sans", "system-ui", "sans-serif"]
MONO = ["IBM Plex Mono", "ui-monospace", "monospace"]


def theme() -> gr.themes.Base:
    """A theme that takes every colour from the variables of our stylesheet."""
    base = gr.themes.Base(
        primary_hue="teal",
        neutral_hue="stone",
        radius_size="md",
        text_size="md",
        font=SANS,
        font_mono=MONO,
    )
    plain = {
        "body_background_fill": "var(--paper)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--ink-soft)",
        "background_fill_primary": "var(--card)",
        "background_fill_secondary": "var(--paper)",
        "border_color_primary": "var(--line)",
        "border_color_accent": "var(--model)",
        "color_accent": "var(--model)",
        "color_accent_soft": "var(--model-soft)",
        "block_background_fill": "transparent",
        "block_border_color": "var(--line)",
        "block_label_text_color": "var(--ink-soft)",
        "block_title_text_color": "var(--ink-soft)",
        "input_background_fill": "var(--card)",
        "input_background_fill_focus": "var(--card)",
        "input_border_color": "var(--line)",
        "input_border_color_focus": "var(--model)",
        "input_placeholder_color": "var(--ink-soft)",
        "input_shadow": "none",
        "input_shadow_focus": "none",
        "button_primary_background_fill": "var(--model)",
        "button_primary_background_fill_hover": "var(--model)",
        "button_primary_text_color": "var(--card)",
        "button_secondary_background_fill": "var(--card)",
        "button_secondary_background_fill_hover": "var(--model-soft)",
        "button_secondary_text_color": "var(--ink)",
        "slider_color": "var(--model)",
    }
    known = signature(base.set).parameters
    dark = {f"{name}_dark": value for name, value in plain.items() if f"{name}_dark" in known}
    return base.set(
        **plain,
        **dark,
        block_border_width="0px",
        block_border_width_dark="0px",
        input_border_width="1px",
        input_border_width_dark="1px",
        block_padding="0",
        block_shadow="none",
        block_shadow_dark="none",
        block_label_text_size="13px",
        block_title_text_size="13px",
        block_title_text_weight="400",
        button_small_text_size="14px",
        button_small_text_weight="400",
        layout_gap="20px",
        form_gap_width="0px",
    )
