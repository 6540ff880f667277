"""The JSON schema of adapters and the Host agree: every adapter that the Host takes fits the schema, and every adapter with a key more or
less, or a value of another type, is refused by the Host where the schema refuses it."""
import copy
import json
import re
import sys

from agent_runs import HERE, SOURCE, case, conclude, expect, expect_equal
from stand_in_agents import evopolicygym

SCHEMA = json.loads((SOURCE / "docs/agent-adapter.schema.json").read_text("utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
         "null": type(None)}


def fits(value, schema):
    """As much of JSON Schema as the document uses."""
    if "$ref" in schema:
        if not fits(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]):
            return False
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(fits(value, one) for one in schema["anyOf"]):
        return False
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in names):
        return False
    if isinstance(value, str):
        return len(value) <= schema.get("maxLength", len(value)) and re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(fits(one, schema.get("items", {})) for one in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for key, one in value.items():
            if key not in known and more is False:
                return False
            if not fits(one, known.get(key, more if isinstance(more, dict) else {})):
                return False
        return all(key in value for key in schema.get("required", []))
    return True


def adapters():
    return sorted((SOURCE / "agents/adapters").glob("*.json")) + [HERE / "invented-agent.json"]


def all_fit(place):
    expect(len(adapters()) > 7, "adapters are missing")
    for path in adapters():
        expect(fits(json.loads(path.read_text("utf-8")), SCHEMA), "%s does not fit the schema" % path.name)


def places_of(value, path=()):
    """Paths to every object in a document."""
    found = [path] if isinstance(value, dict) else []
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += places_of(one, (*path, key))
    return found


def at(value, path):
    for key in path:
        value = value[key]
    return value


def refusals_agree(place):
    whole = json.loads((HERE / "invented-agent.json").read_text("utf-8"))
    changed = []
    for path in places_of(whole):
        more = copy.deepcopy(whole)
        at(more, path)["surplus"] = ["x"]
        changed.append((path, more))
        for key in at(whole, path):
            for other in (7, True, {"surplus": 1}):
                wrong = copy.deepcopy(whole)
                at(wrong, path)[key] = other
                changed.append(((*path, key), wrong))
    file = place.root / "changed.json"
    tried = 0
    for path, document in changed:
        if fits(document, SCHEMA):
            continue  # a place where anything may stand
        tried += 1
        file.write_text(json.dumps(document))
        code, _, err = evopolicygym(place, "agent", "show", "--agent-file", str(file), "--agent-option", "colour=red")
        expect_equal(code, 2, "exit code for a change at %s (%s)" % ("/".join(map(str, path)), err))
        expect("agent file" in err, "told for %s: %s" % (path, err))
    expect(tried > 200, "only %d changes were tried" % tried)


def main():
    case("every adapter fits the schema", all_fit)
    case("what the schema refuses the Host refuses", refusals_agree)
    conclude()


if __name__ == "__main__":
    sys.exit(main())
