"""The experiments of punctuation-aware joins (PJoin, PWJoin and MPWJoin) against joins that ignore punctuations."""
