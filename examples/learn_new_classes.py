"""A model in use: requests come in, new kinds of them appear, and the model learns these without starting again.

Each day brings texts with words and classes that nobody has seen before. The model first answers, then learns the right
answers, and is saved and loaded in between, as if every day were a new process.

Run: python examples/learn_new_classes.py
"""

import tempfile
from pathlib import Path

import numpy as np

from abound import FeatureFocusClassifier, Model, TextVectorizer, load
from abound.measure import evaluate_labels

DAYS, CLASSES_A_DAY, TEXTS_A_DAY = 6, 40, 1500


def make_day(day: int) -> tuple[list[str], list[str]]:
    """Texts about all classes known by that day; a class has some words of its own among common ones."""
    generator = np.random.default_rng(day)
    numbers = generator.integers(0, (day + 1) * CLASSES_A_DAY, size=TEXTS_A_DAY).tolist()
    texts = []
    for number in numbers:
        own = [f"word{number}x{i}" for i in generator.integers(0, 4, size=2)]
        common = [f"common{i}" for i in generator.integers(0, 200, size=5)]
        texts.append(" ".join(own + common))
    return texts, [f"class {number}" for number in numbers]


def main() -> None:
    texts, labels = make_day(0)
    vectoriser = TextVectorizer()
    learner = FeatureFocusClassifier().fit(vectoriser.fit_transform(texts), labels)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.safetensors")
        Model(learner, vectoriser).save(file)
        print("day  classes  words  R1 on the day's texts, before and after learning them")
        for day in range(1, DAYS):
            model = load(file)
            texts, labels = make_day(day)
            before = right_answers(model, texts, labels)
            model.partial_fit(texts, labels)
            after = right_answers(model, texts, labels)
            model.save(file)
            n_classes, n_words = len(model.estimator.classes_), model.vectoriser.n_features_
            print(f"{day:3}  {n_classes:7}  {n_words:5}  {before:.3f} {after:.3f}")


def right_answers(model: Model, texts: list[str], labels: list[str]) -> float:
    ranked, _ = model.predict_topk(texts, k=1)
    return evaluate_labels(labels, ranked, classes=model.estimator.classes_, ks=(1,))["R1"]


if __name__ == "__main__":
    main()
