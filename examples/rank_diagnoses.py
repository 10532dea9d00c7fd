"""From phrases that doctors write to diagnosis codes: train, rank, explain, measure.

Run: python examples/rank_diagnoses.py (needs abound[demo] for the codes; takes some seconds)
"""

from abound import FeatureFocusClassifier, Model, TextVectorizer
from abound.measure import EVALUATION_DEPTH, evaluate_labels
from abound.read import load_icd10

PHRASES = ["Allergic asthma", "broken left wrist", "high blood pressure in pregnancy"]


def main() -> None:
    data = load_icd10()
    print(f"{len(data.train):,} descriptions to learn from, {len(data.test):,} phrases to test on")

    vectoriser = TextVectorizer(ngram_range=(1, 2))
    X = vectoriser.fit_transform(data.train.text_bytes)
    learner = FeatureFocusClassifier(margin=0.1).fit(X, data.train.labels)
    model = Model(learner, vectoriser, data.taxonomy, data.titles)

    labels, scores = model.predict_topk(PHRASES, k=3)
    for phrase, best, its_scores in zip(PHRASES, labels, scores, strict=True):
        print(f"\n{phrase}")
        for label, score in zip(best, its_scores, strict=True):
            print(f"  {label}  {score:.3f}  {data.titles[label]}")
        votes = ", ".join(f"{word} {vote:.3f}" for word, vote in model.explain(phrase, best[0])[:3])
        print(f"  why {best[0]}: {votes}")

    ranked, _ = model.predict_topk(data.test.text_bytes, k=EVALUATION_DEPTH)
    measures = evaluate_labels(data.test.labels, ranked, classes=learner.classes_, taxonomy=data.taxonomy)
    print("\n" + "  ".join(f"{name} {measures[name]:.3f}" for name in ("R1", "R5", "HR", "macro_f1", "tree_loss")))


if __name__ == "__main__":
    main()
