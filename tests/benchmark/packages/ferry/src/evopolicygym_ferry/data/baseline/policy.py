from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class Rower(Policy):
    def __init__(self, context: PolicyContext) -> None:
        self._upstream = context.environment_parameters["current"]

    def act(self, observation: PolicyValue) -> PolicyValue:
        return {"row": 1, "steer": float(self._upstream)}


def make_policy(context: PolicyContext) -> Policy:
    return Rower(context)
