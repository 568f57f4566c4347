"""Who plays: built-in policies, a person, or a language model behind any compatible address."""
