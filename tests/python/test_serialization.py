"""Saving, loading, pickling, copying, making from data and printing."""

from __future__ import annotations

import copy
import io
import pickle

import torch


def saved(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_save_and_load_keep_device_values_and_sharing():
    x = torch.arange(4.0, device="neuron") + 1
    loaded = torch.load(saved({"x": x, "view": x[1:]}))
    assert loaded["x"].device == x.device
    assert loaded["x"].tolist() == [1, 2, 3, 4]
    loaded["x"][1] = 9
    assert loaded["view"][0].item() == 9


def test_map_location_moves_both_ways():
    x = torch.arange(4.0, device="neuron")
    assert torch.load(saved(x), map_location="cpu").tolist() == [0, 1, 2, 3]
    there = torch.load(saved(torch.arange(4.0)), map_location="neuron")
    assert there.device.type == "neuron"
    assert there.tolist() == [0, 1, 2, 3]


def test_pickle_and_deepcopy():
    x = torch.arange(4.0, device="neuron") * 2
    assert pickle.loads(pickle.dumps(x)).tolist() == [0, 2, 4, 6]
    y, view = copy.deepcopy([x, x[1:]])
    y[1] = 9
    assert view[0].item() == 9
    assert x[1].item() == 2


def test_a_modules_state_is_saved_and_loaded():
    module = torch.nn.Linear(3, 2).to("neuron")
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(torch.load(saved(module.state_dict()), map_location="cpu"))
    assert torch.equal(other.weight, module.weight.cpu())
    assert torch.equal(copy.deepcopy(module).weight.cpu(), other.weight)
    assert next(module.cpu().parameters()).device.type == "cpu"
    assert next(module.neuron().parameters()).is_neuron


def test_tensors_are_made_from_data():
    assert torch.tensor([1, 2, 3], device="neuron").sum().item() == 6
    assert torch.tensor(3.5, device="neuron").item() == 3.5
    assert torch.as_tensor([True, False], device="neuron").tolist() == [True, False]
    assert torch.full((2,), 7, device="neuron").tolist() == [7, 7]


def test_tensors_print_as_on_cpu_with_their_device():
    for host in (torch.tensor([[0.5, -1.25]]), torch.tensor(3), torch.empty(0), torch.tensor([1.0, float("nan")])):
        text = repr(host.to("neuron"))
        assert "device='neuron:0'" in text
        assert text.replace(", device='neuron:0'", "").replace(" size=(0,)", "") == repr(host)
