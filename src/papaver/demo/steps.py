"""The numbered journey: what the demo does, says and verifies. What cannot be verified ends it with what differed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from papaver.demo.outcome import check
from papaver.demo.outfitter.colleagues import COLLEAGUE
from papaver.demo.shop import Question, says_none
from papaver.demo.stage import (
    ACCOUNT,
    AGENT_HOST,
    BASE_URL,
    DOMAIN,
    EMAIL,
    ISSUER,
    OTHER_DOMAIN,
    Say,
    Stage,
    as_typed,
)
from papaver.demo.user import Colleague, the_user

__all__ = ["Journey", "journey"]


@contextmanager
def journey(seed: int, say: Say) -> Generator[Journey]:
    """A journey in a folder of its own. However it ends, its processes are ended and the folder is gone."""
    folder = Path(tempfile.mkdtemp(prefix="papaver-demo-"))
    trip = Journey(seed, say, folder)
    try:
        yield trip
    finally:
        trip.end()
        shutil.rmtree(folder, ignore_errors=True)


class Journey(Stage):
    """`run` makes every step. Raises DemoFailed. Afterwards both processes still run, until `end`."""

    def run(self) -> None:
        """Every step, in order."""
        self.say(f"papaver demo, seed {self.seed}: a shop and a Personal Agent, two processes on this machine.")
        self._start()
        self._discover()
        first = self._rows.policy_question()
        conversation = self._session(first)
        article = self._rows.article_question()
        self._ask(article)
        self._ask(self._rows.article_question())
        self._changed(article)
        self._retried(self._rows.policy_question())
        self._killed(self._rows.article_question(), conversation)
        self._heard_live(self._rows.article_question())
        self._killed_within(self._rows.article_question(), conversation)
        self._with_a_person(self._rows.article_question())
        self._directly(self._rows.gift_card())
        order = self._rows.order_question(ACCOUNT)
        self._signed_in(order)
        self._exchanged(self._rows.exchange_question(order))
        self._called()
        self._closed()
        self._disconnected()
        self.say(f"\nAll {self._number} steps were verified.")

    def _discover(self) -> None:
        self._step(f"Discover {DOMAIN}")
        found = self._agent.do("discover", domain=DOMAIN)
        check("the Company's identifier is its issuer (3.2)", ISSUER, found["identifier"])
        check("every check of section 3 passed", [], [one for one in found["checks"] if not one["ok"]])
        self._show(f"{found['name']}, {found['identifier']}, version {found['version']}")
        self._show(f"{len(found['checks'])} checks passed, from {found['checks'][0]['rule']} on")
        other = self._agent.do("discover", domain=OTHER_DOMAIN)
        check(f"{OTHER_DOMAIN} is the same Company", ISSUER, other["identifier"])
        self._agent.do("discover", domain=DOMAIN)
        self._show(f"{OTHER_DOMAIN} is the same Company, under the same issuer")

    def _session(self, question: Question) -> str:
        self._step("Open a Session, and ask the first question")
        self._agent.do("open")
        answer = self._agent.do("ask", text=question.text)
        self._answered(question, answer)
        check("the Company knows the Session, and its User ID", [answer["user_id"]], self._users_of(answer["sid"]))
        self._show(f"Session {answer['sid']} of the User ID {answer['user_id']} is in the Company's store")
        return str(answer["conversation_id"])

    def _ask(self, question: Question) -> None:
        self._step("Ask about another row, drawn at random")
        self._answered(question, self._agent.do("say", text=question.text))

    def _changed(self, question: Question) -> None:
        self._step("Change that article in the shop's database, and ask the same again")
        before = self._rows.truth(question)
        self._rows.restock(question)
        answer = self._agent.do("say", text=question.text)
        self._answered(question, answer)
        check("the answer says nothing of before", True, says_none(answer["replies"][0], before))
        self._show(f"it was {', '.join(before)} before the UPDATE")

    def _retried(self, question: Question) -> None:
        self._step("Send a message twice with one id, as after a lost answer")
        answer = self._agent.do("say_twice", text=question.text)
        self._answered(question, answer)
        self._once(answer["message_id"])
        self._show(f"message {answer['message_id']} was sent twice, recorded once and answered once")

    def _killed(self, question: Question, conversation: str) -> None:
        self._step("Kill the Company while it works on an answer, start it again, and resume")
        reached = self._gate.with_suffix(".reached")
        self._gate_at("before")
        message = self._agent.do("say_only", text=question.text)["message_id"]
        self._wait_for(reached)
        check("the handler runs in the Company's process", str(self._company.pid), reached.read_text(encoding="ascii"))
        self._killed_and_started("inside its handler")
        answer = self._agent.do("resume", conversation_id=conversation)
        self._answered(question, answer)
        self._once(message)
        self._show("the message was recorded once and answered once, in another Session")

    def _heard_live(self, question: Question) -> None:
        self._step("Hear an answer while it is still written")
        begun = self._begun(question)
        self._gate.unlink()
        ended = self._agent.do("hear_on")
        self._answered(question, ended)
        check("the answer has the id of its pieces (8.6)", begun["reply_id"], ended["messages"][-1][1])
        check("and begins as they did", True, ended["replies"][0].startswith(begun["so_far"]))

    def _killed_within(self, question: Question, conversation: str) -> None:
        self._step("Kill the Company in the middle of a streamed answer")
        begun = self._begun(question)
        self._killed_and_started("while it wrote")
        answer = self._agent.do("resume", conversation_id=conversation)
        self._answered(question, answer)
        self._once(begun["message_id"])
        self._show("what was half said is not in the conversation; the answer is, once and whole")

    def _begun(self, question: Question) -> dict[str, Any]:
        """The agent hears the beginning of the answer, in the middle of which the handler waits."""
        self._gate_at("before")
        asked = self._agent.do("hear", text=question.text)
        self._gate_at("within")
        begun = self._agent.do("hear_beginning")
        self._heard += [*asked["messages"], *begun["messages"]]
        check("no answer is there yet", [], begun["replies"])
        check("and yet its beginning is heard", True, bool(begun["so_far"]))
        self._show(f"… {begun['so_far'].rstrip()} …")
        return {**asked, **begun}

    def _with_a_person(self, question: Question) -> None:
        self._step("Ask for a person, who answers at the staff console")
        asked = self._agent.do("say_only", text=f"I would like to ask a person. {question.text}")
        person = Colleague(self._place, f"{BASE_URL}/staff", self._staff)
        seen = person.take_over(question.text)
        check("the console shows what was asked", True, question.text in seen)
        truth = " ".join(self._rows.truth(question))
        person.answer(f"It is me, {COLLEAGUE}. {question.about}: {truth}.")
        answer = self._agent.do("go_on")
        self._heard += answer["messages"]
        check("a person answers", "human", answer["responder"])
        said = [text for (kind, _), text in zip(answer["authors"], answer["replies"], strict=True) if kind == "human"]
        check("once", 1, len(said))
        check("under their own name (8.8)", ["human", COLLEAGUE], answer["authors"][-1])
        self._show(f"> I would like to ask a person. {question.text}")
        self._show(f"< {COLLEAGUE}, a person: {said[0]}")
        self._rows.check_true(question, said[0])
        check("the message was recorded once", 1, sum(id == asked["message_id"] for _, id, _ in self._heard))
        person.hand_back()
        self._show(f"{COLLEAGUE} took it over in the queue at {BASE_URL}/staff, answered, and handed it back")
        again = self._rows.article_question()
        answer = self._agent.do("say", text=again.text)
        self._answered(again, answer)
        check("the Company Agent answers again", "agent", answer["responder"])

    def _directly(self, words: Question) -> None:
        self._step("The Company asks for the User, who says yes: a Direct Conversation")
        asked = self._agent.do("say", text="Please wrap the next order as a gift.")
        self._heard += asked["messages"]
        check("the Company asks for the User, once", 1, len(asked["asked"]))
        self._show(f"< {asked['replies'][0]}")
        self._show(f"user_requested event: {asked['asked'][0]}")
        said = self._agent.do("talk_directly", words=words.text)
        check("it is a conversation of its own", True, said["conversation_id"] != said["parent_id"])
        check("in which the User speaks", ["user", words.text], [said["messages"][0][0], said["messages"][0][2]])
        self._show(f"> the User: {words.text}")
        self._show(f"< {said['replies'][-1]}")
        truth = self._rows.check_true(words, said["replies"][-1])
        self._show(f"{as_typed(words)}\n     says {truth[0]!r}: the User's own words, unchanged")
        after = self._agent.do("go_on")
        self._heard += after["messages"]
        check("the conversation before it knows that it is over", [said["conversation_id"]], after["left"])

    def _signed_in(self, question: Question) -> None:
        self._step("Ask about an order, and sign in for the answer")
        asked = self._agent.do("say", text=question.text)
        self._needed(question, asked, "orders:read")
        self._approved("orders:read")
        self._answered(question, self._agent.do("go_on"))
        self._show("the answer came in the same conversation, and the question was not sent again")

    def _exchanged(self, question: Question) -> None:
        self._step("Ask for an exchange, which needs more: step up")
        asked = self._agent.do("say", text=question.text)
        self._needed(question, asked, "orders:read orders:write")
        check("nothing was exchanged yet", [], self._rows.rows(question.sql, *question.values))
        self._approved("orders:read", "orders:write")
        self._answered(question, self._agent.do("go_on"))

    def _called(self) -> None:
        self._step("Call the shop's own API with the same access")
        called = self._agent.do("call", url=f"https://{DOMAIN}/orders")
        check("the API answers", 200, called["status"])
        theirs = [(order["number"], order["status"]) for order in called["body"]]
        ours = self._rows.rows("SELECT number, status FROM orders WHERE account = ? ORDER BY number", ACCOUNT)
        check("with the orders of this account", ours, theirs)
        self._show(f"GET https://{DOMAIN}/orders lists {len(theirs)} orders, as the shop's database does")

    def _disconnected(self) -> None:
        self._step("Disconnect the Personal Agent on the Company's page")
        user = the_user(self._place)
        said = user.disconnect(f"{ISSUER}/connected", EMAIL, self.password, AGENT_HOST)
        check("the page says so", True, "disconnected" in said.lower())
        called = self._agent.do("call", url=f"https://{DOMAIN}/orders")
        check("the next call is signed out: the API asks for the account (section 7)", 401, called["status"])
        check("with a challenge that names the scope, and no error", 'Bearer scope="orders:read"', called["challenge"])
        check("the agent holds nothing any more", [], self._agent.do("held")["scopes"])
        self._show(f"{EMAIL} disconnected {AGENT_HOST} with {user.browser}; the next call was signed out")

    def _closed(self) -> None:
        self._step("Close the conversation")
        closed = self._agent.do("close")
        check("the conversation is closed", "closed", closed["status"])
        check("a further message is refused (8.13)", "conversation_closed", closed["afterwards"])
        self._show("closed; a further message was refused with conversation_closed")
        again = self._agent.do("read_again")["messages"]
        check("a second reading from the beginning finds the same messages", self._heard, again)
        self._show(f"read again from its beginning: the same {len(again)} messages, each once")
