"""The product's rules, as verbs on its nouns. Verbs own transactions; the edges only translate."""
