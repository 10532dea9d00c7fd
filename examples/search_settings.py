"""scikit-learn's tools work as ever: a pipeline from text to class, and a search for its best settings.

The task is small, so that the search takes seconds: diagnoses of the eye and the ear.

Run: python examples/search_settings.py (needs abound[demo] for the codes)
"""

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from abound import FeatureFocusClassifier, TextVectorizer
from abound.read import load_icd10

FOLDS = 3
SETTINGS = {
    "words__ngram_range": [(1, 1), (1, 2)],
    "classes__margin": [0.0, 0.1, 0.5],
}


def main() -> None:
    texts, labels = eye_and_ear()
    print(f"{len(texts):,} phrases, {len(set(labels))} classes")
    pipeline = Pipeline([("words", TextVectorizer()), ("classes", FeatureFocusClassifier(passes=2))])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, SETTINGS, cv=folds).fit(texts, labels)
    for settings, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"R1 {score:.3f}  {settings}")
    print(f"best: {search.best_params_}")


def eye_and_ear() -> tuple[list[str], list[str]]:
    """Phrases of chapter VII and VIII (codes with H), of the classes that every fold has an example of."""
    data = load_icd10("random").train
    pairs = [
        (text, label) for text, label in zip(data.texts, data.labels.to_y().tolist(), strict=True) if label[0] == "H"
    ]
    names, counts = np.unique([label for _, label in pairs], return_counts=True)
    frequent = set(names[counts >= FOLDS].tolist())
    kept = [(text, label) for text, label in pairs if label in frequent]
    return [text for text, _ in kept], [label for _, label in kept]


if __name__ == "__main__":
    main()
