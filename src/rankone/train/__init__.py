"""The paper's experiment: training Transformers of rank 1 and others, and Figure 1."""

from rankone.train.settings import Settings
from rankone.train.train import train_model
from rankone.train.trained import Trained

__all__ = ["Settings", "Trained", "train_model"]
