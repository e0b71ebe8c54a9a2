from pydantic_ai import Agent, RunContext

from docs_src.company_agent import tools
from papaver.adapters.pydantic_ai import PydanticAgent
from papaver.company import CompanyAgent, Turn

model_agent = Agent("test", deps_type=Turn, instructions="You answer for a small shop, in a sentence or two.")


@model_agent.instructions
def language(context: RunContext[Turn]) -> str:
    return f"Answer in the language {context.deps.locale or 'en'}."


agent = CompanyAgent(tools)
answer = PydanticAgent(model_agent)  # company.conversation(answer)
