"""A class in the manner of Ray's distml TrainingOperator, on the step-wise trainer: setup() registers model and data,
derive_updates() computes gradients, apply_updates() applies them. Two operators in one process stand for two workers: each
computes the gradient of its half of a batch, the means are exchanged, and both apply them.

python training_operator.py
"""

import numpy as np

import lockstep


class TrainingOperator:
    """Subclasses implement setup() and call register() there."""

    def __init__(self, rank, world_size, **config):
        self.rank, self.world_size, self.config = rank, world_size, config
        self.setup(**config)

    def setup(self, **config):
        raise NotImplementedError

    def register(self, *, model, optimizer, data, test_data=None):
        """`optimizer` is a dict of settings of lockstep.Trainer."""
        self.model, self.data, self.test_data = model, data, test_data
        self.trainer = lockstep.Trainer(model, **optimizer)

    def yield_train_loader(self, batch):
        """This worker's part of every batch."""
        images, labels = self.data
        for first in range(0, len(labels) - batch + 1, batch):
            mine = slice(first + self.rank * batch // self.world_size, first + (self.rank + 1) * batch // self.world_size)
            yield images[mine], labels[mine]

    def derive_updates(self, batch):
        """Loss and gradients of a batch; nothing is changed."""
        report = self.trainer.backward(*batch)
        updates = dict(self.trainer.gradients())
        self.trainer.zero_grad()
        return report.loss, updates

    def apply_updates(self, updates):
        """Update the model with gradients that were derived here or elsewhere."""
        gradients = self.trainer.gradients()
        for name, values in updates.items():
            gradients[name] = values
        self.trainer.update()

    def validate(self):
        result = self.trainer.evaluate(self.test_data)
        return {"val_loss": result.loss, "val_accuracy": result.accuracy}

    def get_states(self):
        return self.model.state_dict()

    def load_states(self, states):
        self.model.load_state_dict(states)


class Digits(TrainingOperator):
    def setup(self, *, lr, samples):
        self.register(
            model=lockstep.Model("cnn", seed=1),
            optimizer=dict(batch=64, optimizer="adam", lr=lr, devices=1),
            data=lockstep.Dataset("glyphs", samples=samples).arrays(),
            test_data=lockstep.Dataset("glyphs", "test", samples=500),
        )


def main():
    workers = [Digits(rank, 2, lr=1e-3, samples=2560) for rank in range(2)]
    workers[1].load_states(workers[0].get_states())
    for step, parts in enumerate(zip(*(worker.yield_train_loader(64) for worker in workers))):
        losses, updates = zip(*(worker.derive_updates(part) for worker, part in zip(workers, parts)))
        mean = {name: sum(each[name] for each in updates) / len(updates) for name in updates[0]}
        for worker in workers:
            worker.apply_updates(mean)
        if step % 10 == 0:
            print(f"step {step + 1}: loss {np.mean(losses):.4f}")
    print(workers[0].validate())
    assert workers[0].model.fingerprint == workers[1].model.fingerprint
    print("both workers have parameters", workers[0].model.fingerprint)


if __name__ == "__main__":
    main()
