"""Where other tools meet rankone: Hugging Face, ONNX, scikit-learn. Only here are they imported."""
