from fastapi import FastAPI

from papaver import Author, Company, Poppy, SqliteStore, Turn
from papaver.company import Person, SignInAt, Visit

company = Company(
    domain="shop.example",
    name="Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("shop.db"),
    staffed=True,  # a handoff waits until somebody takes it
)
app = FastAPI()
poppy = Poppy(app, company)
colleagues = {"a1b2c3": Person("aut_alex", "Alex")}  # the sessions of your own staff, by their cookie


@company.conversation
async def answer(turn: Turn) -> str:
    if "person" in turn.text:
        turn.hand_off()
        return "I ask for a colleague."
    return "We are open from nine to five."


async def who(visit: Visit) -> Author | SignInAt | None:
    session = visit.cookie("staff_session")
    if session is None:
        return SignInAt("https://shop.example/staff/sign-in")  # a page of your own
    return colleagues.get(session)  # None: may not come in


company.staff_console(authenticate=who)  # https://shop.example/poppy/staff
