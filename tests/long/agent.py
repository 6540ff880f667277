"""An Agent that submits again and again, over one small change each time, and tells how far it is.

    agent.py SUBMISSIONS EPISODES PROGRESS    EPISODES each; PROGRESS: a file that holds the number of submissions made
"""
import json
import os
import socket
import struct
import sys

SUBMISSIONS, EPISODES, PROGRESS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
PROGRAM = "class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n# "


def ask(**request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["EVOPOLICYGYM_SESSION_SOCKET"])
        text = json.dumps({"protocol": "agent-session/v3", **request}).encode()
        connection.sendall(struct.pack(">I", len(text)) + text)
        stream = connection.makefile("rb")
        answer = json.loads(stream.read(struct.unpack(">I", stream.read(4))[0]))
    if not answer["ok"]:
        sys.exit(f"refused: {answer}")
    return answer["result"]


def tell(number):
    with open(PROGRESS + ".new", "w") as file:
        file.write(str(number))
    os.rename(PROGRESS + ".new", PROGRESS)


made = ask(method="status")["submissions_used"]
while made < SUBMISSIONS:
    with open("program/policy.py", "w") as file:
        file.write(PROGRAM + str(made) + "\n")
    ask(method="submit", episode_indices=list(range(EPISODES)))
    made += 1
    tell(made)
ask(method="finish", submission_ids=["submission-000001"])
