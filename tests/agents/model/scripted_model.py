#!/usr/bin/env python3
"""A model that follows a script, for trying real agent CLIs without a provider.

It speaks as much of four HTTP APIs as agent CLIs need (Messages, Responses, chat completions, generateContent), on
loopback, streaming or not. The script is a list of shell commands: the n-th turn of a conversation asks the agent to
run the n-th command; after the last one the model says its closing words. What the model reports as usage is known in
advance and counted, so that a test can compare.

usage: scripted_model.py --script FILE --state DIR [--mode MODE] [--fail-after N]

FILE   commands, parted by lines that hold only "---"
DIR    gets `port` (when the server listens), `usage.json` (what was reported so far), `requests.jsonl`
MODE   what happens from request N + 1 on (default 0: from the first):
       ok        nothing
       401, 404, 429, 500, 503, 529   an error of that status in each API's own form
       quota     429 with the words of a spent quota
       drop      the connection is reset in the middle of an answer's first event
       silent    the request is never answered
"""
import argparse
import json
import os
import re
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLOSING_WORDS = "The work is done."
CACHED = 10
REASONING = 3
ERRORS = {  # status: (type, code, message)
    401: ("authentication_error", "invalid_api_key", "Incorrect API key provided"),
    404: ("not_found_error", "model_not_found", "The model does not exist or you do not have access to it."),
    429: ("rate_limit_error", "rate_limit_exceeded", "Rate limit reached"),
    500: ("api_error", "server_error", "Internal server error"),
    503: ("api_error", "server_error", "Service unavailable"),
    529: ("overloaded_error", "server_is_overloaded", "Overloaded"),
    "quota": ("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan."),
}


class State:
    """The script, and what was asked and reported."""

    def __init__(self, arguments):
        with open(arguments.script, encoding="utf-8") as file:
            self.commands = [part.strip("\n") for part in re.split(r"^---$", file.read(), flags=re.M)]
        self.directory = arguments.state
        self.mode = arguments.mode
        self.fail_after = arguments.fail_after
        self.lock = threading.Lock()
        self.requests = 0
        self.reported = {"requests": 0, "input": 0, "cached_input": 0, "output": 0, "reasoning": 0}

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def begin(self, api, body, path):
        """Numbers a request; says how it is to fail, or None."""
        with self.lock:
            self.requests += 1
            with open(os.path.join(self.directory, "requests.jsonl"), "a", encoding="utf-8") as file:
                tools = [tool["name"] for tool in api.tools(body)] if api else []
                file.write(json.dumps({"n": self.requests, "path": path, "tools": tools}) + "\n")
            return self.mode if self.mode != "ok" and self.requests > self.fail_after else None

    def report(self, turn):
        """The usage of one answer: input 1000 and 100 more a turn, 10 of it cached; output 20 and one more a turn."""
        usage = {"input": 1000 + 100 * turn, "cached_input": CACHED, "output": 20 + turn, "reasoning": REASONING}
        with self.lock:
            self.reported["requests"] += 1
            for name, value in usage.items():
                self.reported[name] += value
            self.write("usage.json", json.dumps(self.reported))
        return usage


def shell_tool(tools):
    """The tool of the agent's that runs a shell command."""
    names = ["bash", "shell", "exec_command", "shell_command", "run_shell_command", "local_shell", "exec"]
    for name in names:
        for tool in tools:
            if tool["name"].lower() == name:
                return tool
    return None


def shell_arguments(tool, command):
    """Fills the schema of a shell tool: the command, and whatever else it demands."""
    properties = tool["schema"].get("properties", {})
    key = next((name for name in ("command", "cmd", "script") if name in properties), "command")
    wanted = properties.get(key, {}).get("type")
    arguments = {key: ["bash", "-c", command] if str(wanted).lower() == "array" else command}
    for name in tool["schema"].get("required", []):
        if name not in arguments:
            kind = str(properties.get(name, {}).get("type", "string")).lower()
            arguments[name] = {"integer": 600000, "number": 600000, "boolean": False, "array": [], "object": {}}.get(
                kind, "run a command"
            )
    return arguments


class Api:
    """What one API calls things. `answer` gives events for a stream, or one document."""

    def tools(self, body):
        raise NotImplementedError

    def turn(self, body):
        """How many tool results the conversation holds."""
        raise NotImplementedError

    def error(self, status, kind, code, message):
        return {"error": {"type": kind, "code": code, "message": message, "param": None}}


class Messages(Api):
    path = "/messages"

    def tools(self, body):
        return [{"name": t["name"], "schema": t.get("input_schema", {})} for t in body.get("tools") or [] if "name" in t]

    def turn(self, body):
        blocks = [b for m in body.get("messages", []) if isinstance(m.get("content"), list) for b in m["content"]]
        return sum(1 for b in blocks if b.get("type") == "tool_result")

    def error(self, status, kind, code, message):
        return {"type": "error", "error": {"type": kind, "message": message}}

    def answer(self, body, number, tool, command, usage):
        counts = {
            "input_tokens": usage["input"] - usage["cached_input"],
            "cache_read_input_tokens": usage["cached_input"],
            "cache_creation_input_tokens": 0,
            "output_tokens": usage["output"],
        }
        text = "Next step." if tool else CLOSING_WORDS
        blocks = [{"type": "text", "text": text}]
        if tool:
            blocks.append({"type": "tool_use", "id": "toolu_%06d" % number, "name": tool["name"],
                           "input": shell_arguments(tool, command)})
        message = {"id": "msg_%06d" % number, "type": "message", "role": "assistant", "model": body.get("model"),
                   "content": blocks, "stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None,
                   "usage": counts}
        if not body.get("stream"):
            return message
        return list(self.events(message, blocks, counts))

    @staticmethod
    def events(message, blocks, counts):
        first = {**message, "content": [], "stop_reason": None, "usage": {**counts, "output_tokens": 1}}
        yield "message_start", {"message": first}
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_start", {"index": index, "content_block": start}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        yield "message_delta", {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": counts}
        yield "message_stop", {}


class Responses(Api):
    path = "/responses"

    def tools(self, body):
        """Tools stand in the request, in namespaces, or among the input."""
        found = list(body.get("tools") or [])
        for item in body.get("input") or []:
            if isinstance(item, dict) and item.get("type") == "additional_tools":
                found += item.get("tools") or []
        flat = []
        for tool in found:
            inner = tool.get("tools") if tool.get("type") == "namespace" else [tool]
            for one in inner or []:
                flat.append({"name": one.get("name") or one.get("type"), "schema": one.get("parameters") or {},
                             "custom": one.get("type") == "custom",
                             "namespace": tool.get("name") if tool.get("type") == "namespace" else None})
        return flat

    def turn(self, body):
        items = body.get("input")
        items = items if isinstance(items, list) else []
        return sum(1 for i in items if isinstance(i, dict) and str(i.get("type", "")).endswith("_call_output"))

    def answer(self, body, number, tool, command, usage):
        counts = {"input_tokens": usage["input"], "input_tokens_details": {"cached_tokens": usage["cached_input"]},
                  "output_tokens": usage["output"], "output_tokens_details": {"reasoning_tokens": REASONING},
                  "total_tokens": usage["input"] + usage["output"]}
        response = {"id": "resp_%06d" % number, "object": "response", "created_at": int(time.time()),
                    "status": "completed", "model": body.get("model"), "output": [self.item(number, tool, command)],
                    "usage": counts, "error": None}
        if not body.get("stream"):
            return response
        return list(self.events(response))

    @staticmethod
    def item(number, tool, command):
        if not tool:
            return {"type": "message", "id": "msg_%06d" % number, "status": "completed", "role": "assistant",
                    "content": [{"type": "output_text", "text": CLOSING_WORDS, "annotations": []}]}
        call = {"id": "fc_%06d" % number, "call_id": "call_%06d" % number, "status": "completed", "name": tool["name"]}
        if tool.get("namespace"):
            call["namespace"] = tool["namespace"]
        if tool.get("custom"):
            run = "const r = await tools.exec_command({cmd: %s}); text(JSON.stringify(r));" % json.dumps(command)
            return {**call, "type": "custom_tool_call", "input": run}
        return {**call, "type": "function_call", "arguments": json.dumps(shell_arguments(tool, command))}

    @staticmethod
    def events(response):
        item = response["output"][0]
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        yield "response.created", {"response": begun}
        yield "response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}
        if item["type"] == "message":
            yield "response.output_text.delta", {"item_id": item["id"], "output_index": 0, "content_index": 0,
                                                 "delta": CLOSING_WORDS}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        yield "response.completed", {"response": response}


class Chat(Api):
    path = "/chat/completions"

    def tools(self, body):
        functions = [t.get("function", {}) for t in body.get("tools") or []]
        return [{"name": f["name"], "schema": f.get("parameters") or {}} for f in functions if "name" in f]

    def turn(self, body):
        return sum(1 for m in body.get("messages", []) if m.get("role") == "tool")

    def answer(self, body, number, tool, command, usage):
        counts = {"prompt_tokens": usage["input"], "completion_tokens": usage["output"],
                  "total_tokens": usage["input"] + usage["output"], "prompt_tokens_details": {"cached_tokens": usage["cached_input"]}}
        base = {"id": "chatcmpl-%06d" % number, "created": int(time.time()), "model": body.get("model")}
        text = "Next step." if tool else CLOSING_WORDS
        reason = "tool_calls" if tool else "stop"
        calls = [{"index": 0, "id": "call_%06d" % number, "type": "function",
                  "function": {"name": tool["name"], "arguments": json.dumps(shell_arguments(tool, command))}}] if tool else None
        if not body.get("stream"):
            message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
            return {**base, "object": "chat.completion", "usage": counts,
                    "choices": [{"index": 0, "message": message, "finish_reason": reason}]}

        def chunk(delta, finish=None, **more):
            return None, {**base, "object": "chat.completion.chunk",
                          "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

        events = [chunk({"role": "assistant", "content": text})]
        if calls:
            events.append(chunk({"tool_calls": calls}))
        asked = (body.get("stream_options") or {}).get("include_usage")
        events.append(chunk({}, reason, **({} if asked else {"usage": counts})))
        if asked:
            events.append((None, {**base, "object": "chat.completion.chunk", "choices": [], "usage": counts}))
        return events + [(None, "[DONE]")]


class Generate(Api):
    path = ":streamGenerateContent"

    def tools(self, body):
        found = []
        for tool in body.get("tools") or []:
            for one in tool.get("functionDeclarations") or []:
                found.append({"name": one["name"],
                              "schema": one.get("parametersJsonSchema") or one.get("parameters") or {}})
        return found

    def turn(self, body):
        parts = [p for c in body.get("contents", []) for p in c.get("parts", [])]
        return sum(1 for p in parts if "functionResponse" in p)

    def error(self, status, kind, code, message):
        words = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": status, "message": message, "status": words.get(status, "UNAVAILABLE")}}

    def answer(self, body, number, tool, command, usage):
        part = {"functionCall": {"name": tool["name"], "args": shell_arguments(tool, command)}} if tool else {"text": CLOSING_WORDS}
        return [(None, {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                        "usageMetadata": {"promptTokenCount": usage["input"], "candidatesTokenCount": usage["output"],
                                          "totalTokenCount": usage["input"] + usage["output"],
                                          "cachedContentTokenCount": usage["cached_input"]}})]


APIS = [Messages(), Responses(), Chat(), Generate()]


class Cut(Exception):
    """The connection is gone on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None

    def log_message(self, *arguments):
        pass

    def handle(self):
        try:
            super().handle()
        except (Cut, OSError):
            pass  # cut by us, or the agent went away

    def finish(self):
        try:
            super().finish()
        except (OSError, ValueError):
            pass

    def read_body(self):
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            raw = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                raw += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            import gzip

            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        return body if isinstance(body, dict) else {}

    def send_document(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_events(self, events, cut=False):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for sequence, (name, data) in enumerate(events):
            if name:
                data = {"type": name, "sequence_number": sequence, **data}
            text = data if isinstance(data, str) else json.dumps(data)
            line = ("event: %s\n" % name if name else "") + "data: %s\n\n" % text
            self.wfile.write(line[: len(line) // 2 if cut else None].encode())
            self.wfile.flush()
            if cut:
                self.cut()
                return

    def cut(self):
        """As a network does it: a reset, not an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise Cut

    def fail(self, api, how):
        if how == "silent":
            while True:
                time.sleep(3600)
        status = 429 if how == "quota" else int(how)
        kind, code, message = ERRORS[how if how == "quota" else status]
        self.send_document(status, api.error(status, kind, code, message))

    def do_HEAD(self):
        self.send_document(200, {})

    def do_GET(self):
        if (self.headers.get("upgrade") or "").lower() == "websocket":
            self.send_document(426, {"error": {"message": "no websocket here", "type": "upgrade_required"}})
        elif self.path.split("?")[0].endswith("/models"):
            self.send_document(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})
        else:
            self.send_document(404, {"error": {"message": "not found"}})

    def do_POST(self):
        body = self.read_body()
        path = self.path.split("?")[0]
        api = next((a for a in APIS if path.endswith(a.path)), None)
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self.send_document(200, {"input_tokens": 1, "totalTokens": 1})
            return
        if api is None:
            self.send_document(404, {"error": {"message": "not found: " + path}})
            return
        how = self.state.begin(api, body, path)
        if how not in (None, "drop"):
            self.fail(api, how)
            return
        turn = api.turn(body)
        tool = shell_tool(api.tools(body)) if turn < len(self.state.commands) else None
        number = self.state.requests
        command = self.state.commands[turn] if tool else None
        usage = {"input": 0, "cached_input": 0, "output": 0} if how else self.state.report(turn)
        answer = api.answer(body, number, tool, command, usage)
        if isinstance(answer, list):
            self.send_events(answer, cut=how == "drop")
        elif how == "drop":
            self.cut()
        else:
            self.send_document(200, answer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--mode", default="ok")
    parser.add_argument("--fail-after", type=int, default=0)
    Handler.state = State(parser.parse_args())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.state.write("port", "%d\n" % server.server_address[1])
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
