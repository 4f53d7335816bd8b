"""From (prompt, examples, hint) to the text that is sent."""
