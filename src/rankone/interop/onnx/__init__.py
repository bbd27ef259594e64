"""ONNX: a model as one file that onnxruntime runs, with the logits that rankone computes."""

from rankone.interop.onnx.check import Compared
from rankone.interop.onnx.export import OnnxExport, export_onnx

__all__ = ["Compared", "OnnxExport", "export_onnx"]
