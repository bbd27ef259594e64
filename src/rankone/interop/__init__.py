"""Other tools: Hugging Face, ONNX, scikit-learn. They are imported only here."""
