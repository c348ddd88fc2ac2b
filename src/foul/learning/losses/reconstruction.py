"""L_rec: the two codes together must suffice to draw the image again."""

import torch
from torch import Tensor
from torch.nn import functional


def kl_to_standard_normal(mean: Tensor, logvar: Tensor) -> Tensor:
    r"""Mean over all latent elements of :math:`KL(N(\mu, \sigma^2) \| N(0, 1))`,

    .. math:: \tfrac12 (\mu^2 + \sigma^2 - 1 - \log \sigma^2) .
    """
    return 0.5 * (mean.pow(2) + torch.exp(logvar) - 1 - logvar).mean()


def reconstruction_loss(
    image: Tensor, reconstruction: Tensor, mean: Tensor, logvar: Tensor, kl_weight: float
) -> Tensor:
    """MSE + w KL. The paper prints a minus sign, which would reward codes far from the prior
    without bound; a variational autoencoder has a plus (decision 8)."""
    return functional.mse_loss(reconstruction, image) + kl_weight * kl_to_standard_normal(
        mean, logvar
    )
