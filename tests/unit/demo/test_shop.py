"""What the demo knows of the shop, and how it judges an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from papaver.demo.outcome import DemoFailed, check
from papaver.demo.outfitter.answers import answer, answer_turn
from papaver.demo.outfitter.database import ACCOUNTS, Shop
from papaver.demo.shop import Question, ShopRows, says_none


@pytest.fixture(name="path")
def fill_shop(tmp_path: Path) -> Path:
    """A shop's database."""
    Shop(tmp_path / "shop.db").fill(7)
    return tmp_path / "shop.db"


@dataclass
class Asked:
    """As much of a Turn as the shop looks at. The account is there for the scopes in `needed`."""

    text: str
    account: str
    id: str = "turn_1"
    direct: bool = False
    author_type: str = "agent"
    needed: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def require(self, *scopes: str) -> str:
        self.needed.append(scopes)
        return self.account


def asked(text: str, account: str) -> Any:
    return Asked(text, account)


def test_a_seed_draws_the_same_questions_again(path: Path) -> None:
    """And another seed others."""

    def drawn(seed: int) -> list[str]:
        rows = ShopRows(path, seed)
        return [rows.order_question("acct_1").text, rows.article_question().text, rows.policy_question().text]

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize("seed", range(20))
def test_the_shop_s_own_answers_are_true(path: Path, seed: int) -> None:
    """By SQL that the shop's code has no part in; after an UPDATE as well, and then the old answer is not."""
    rows, shop = ShopRows(path, seed), Shop(path)
    for question in (rows.article_question(), rows.policy_question()):
        assert rows.check_true(question, answer(shop, question.text)) == rows.truth(question)
    order = rows.order_question(ACCOUNTS[0])
    for question in (order, rows.exchange_question(order)):
        reply = answer_turn(shop, asked(question.text, ACCOUNTS[0]))
        assert rows.check_true(question, reply) == rows.truth(question)
    question = rows.article_question()
    before, reply = rows.truth(question), answer(shop, question.text)
    rows.restock(question)
    assert all(new != old for new, old in zip(rows.truth(question), before, strict=True))
    with pytest.raises(DemoFailed) as caught:
        rows.check_true(question, reply)
    assert caught.value.found == reply
    assert says_none(answer(shop, question.text), before)


def test_a_gift_card_gets_the_users_own_words_only(path: Path) -> None:
    """Once, word by word; nothing that a Personal Agent says in a Direct Conversation gets there (8.8)."""
    shop, card = Shop(path), ShopRows(path, 7).gift_card()
    said = answer_turn(shop, cast("Any", Asked(card.text, "acct_1", direct=True)))
    assert (said, ShopRows(path, 7).rows("SELECT text FROM gift_cards")) == ("What shall the gift card say?", [])
    for _ in range(2):
        reply = answer_turn(shop, cast("Any", Asked(card.text, "acct_1", direct=True, author_type="human")))
        assert ShopRows(path, 7).check_true(card, reply) == (card.text,)


@pytest.mark.parametrize(
    ("reply", "good"),
    [
        ("The Boot in M costs $12.50; we have 5 in stock.", True),
        ("Boot: 5 pieces, $12.50.", True),
        ("The Boot in M costs $12.50; we have 15 in stock.", False),
        ("The Boot in M costs $112.50; we have 5 in stock.", False),
        ("The Boot in M costs $12.505; we have 5 in stock.", False),
        ("The Boot in M costs $12.50; we have 5.5 in stock.", False),
        ("The Boots in M cost $12.50; we have 5 in stock.", False),
        ("", False),
    ],
)
def test_a_number_is_the_number_itself(path: Path, reply: str, good: bool) -> None:
    """5 is not in 15."""
    rows = ShopRows(path, 1)
    question = Question("?", "Boot", "SELECT 1250, 5", (), ("cents", "count"))
    if good:
        assert rows.check_true(question, reply) == ("$12.50", "5")
    else:
        with pytest.raises(DemoFailed):
            rows.check_true(question, reply)


def test_an_update_that_changes_nothing_fails(path: Path) -> None:
    """The demo would prove nothing then."""
    rows = ShopRows(path, 1)
    question = Question("?", "x", "SELECT 100, 5 WHERE ? != ?", ("no such article", "M"), ("cents", "count"))
    with pytest.raises(DemoFailed):
        rows.restock(question)


def test_a_check_shows_both_values() -> None:
    """Or says nothing."""
    check("so", 1, 1)
    with pytest.raises(DemoFailed) as caught:
        check("one is two", 1, 2)
    assert (caught.value.expected, caught.value.found, caught.value.rule) == ("1", "2", "demo.step")
