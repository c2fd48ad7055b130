"""The product: verbs on its nouns. They own the transactions; the edges only translate."""
