"""MemoryOS with a custom embedding model: all vectors come from it."""

import jidomem
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.models.offline import OfflineModel


class Letters:
    """An embedder that counts three letters of a text."""

    name = "letters-3"

    def dimensions(self):
        return 3

    def generate(self, texts):
        return [[float(1 + text.count(letter)) for letter in "xyz"] for text in texts]


# D116 D088
def test_all_vectors_of_the_tiers_come_from_the_given_embedding_model(root):
    letters = Letters()
    with jidomem.open(root, project="p", agent="ada") as memory:
        policy = TierPolicy(MemoryOSConfig(stm_capacity=1, heat_threshold=1.5))
        ada = memory.os(model=OfflineModel(letters), policy=policy)
        for query in ("I work as a boxer. xxxxxxxxxxxx", "zzzzzz", "xxxxxxx", "zzzz zzzzz", "lunch"):
            ada.add(query, "", about=("user", "ana"))
        ada.maintain()
        tiers, retrieval, status = ada.tiers, ada.retrieve("zz", visiting=False, share_users=True), ada.status()

    assert [[page.query[-3:] for page in segment.pages] for segment in tiers.mtm] == [["xxx"] * 2, ["zzz"] * 2]
    facts = tiers.personas[0].knowledge
    assert {each.text: each.embedding for each in (*tiers.pages(), *facts)} == {
        each.text: tuple(letters.generate([each.text])[0]) for each in (*tiers.pages(), *facts)
    }
    assert [fact.text for fact in facts] == ["works as a boxer"]
    assert {each.what.query[-3:] for each in retrieval.pages[:2]} == {"zzz"}
    assert status["embedder"] == "letters-3"
