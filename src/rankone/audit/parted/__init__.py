"""The audit of a corpus in parts that an engine keeps: the same figures and findings, in as much
memory as the parts take."""
