"""The committee that qualifies: knowledge only through advisers who err together, guardrails on averages."""
