"""The demo: a small GPT trained unfused, adaptive and on PyTorch's CPU (``python -m torch_neuron_eager.demo``)."""
