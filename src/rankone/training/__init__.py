"""The paper's experiment: training Transformers of rank 1 and others, and Figure 1."""

from rankone.training.settings import Settings
from rankone.training.train import train
from rankone.training.trained import Trained

__all__ = ["Settings", "Trained", "train"]
