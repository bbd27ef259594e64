"""ONNX: a model as one file that onnxruntime runs, with the logits that rankone computes."""

from rankone.interop.onnx.check import Compared
from rankone.interop.onnx.export import Exported, export_onnx

__all__ = ["Compared", "Exported", "export_onnx"]
