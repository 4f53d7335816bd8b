"""Lab: edit the examples and the hint, generate, and watch the base model's distribution move."""

import streamlit as st

from components import lab_context, lab_history, lab_reference, lab_sampling, picker, state, systems
from components.guard import guarded
from core import lab


@guarded
def page() -> None:
    """Choose, call, show."""
    loaded, prompt_id = picker.top()
    edit, watch = st.columns([1, 1.15], gap="large")
    with edit:
        typed, chosen = st.columns([1.6, 1])
        with typed:
            prompt_id, prompt = lab_context.prompt_of(loaded, prompt_id)
        with chosen:
            model = lab_context.model_picker()
        st.markdown("##### Examples in the context")
        lab_context.examples_editor()
        hint = lab_context.hint_editor(loaded, prompt_id)
        n, sampling = lab_sampling.parameters()
        shown = list(lab_context.examples().values())
        context = lab_context.context_of(prompt, shown, hint)
        lab_context.context_view(model, context, sampling)
    spec = lab.Spec(
        prompt_id=prompt_id,
        prompt=prompt,
        context=context,
        model=model,
        strategy=lab_context.strategy_of(shown, hint),
        seeds=lab.fresh_seeds(n),
        sampling=sampling,
        examples=tuple(shown),
        hint=hint,
    )
    with watch:
        lab_history.controls(loaded, spec)
        shown_data = state.part(loaded, prompt_id, systems.default(loaded.dataset))
        models = lab_context.reference_models(model)
        shown_data = lab_reference.with_references(shown_data, prompt_id, prompt, models)
        lab_history.watch(shown_data, prompt_id)


page()
