/* Adapters are data: built-in ones are sound, unsound ones are refused with the place, a user's own go first. */
#include "agents/adapter.h"
#include "agents/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/support.h"

static const char sound[] =
    "{\"schema\":\"evopolicygym/agent-adapter/v1\",\"name\":\"frob\",\"title\":\"Frob\","
    "\"executable\":{\"names\":[\"frob\"]},\"task\":{\"ways\":[\"argument\"]},"
    "\"options\":{\"model\":{\"help\":\"m\",\"pattern\":\"[a-z]+\"}},"
    "\"environment\":{\"secret\":[\"FROB_KEY\"]},"
    "\"arguments\":[{\"when\":\"model\",\"arguments\":[\"-m\",\"{model}\"]},\"{instructions}\"]%s}";

static epg_code check(const char *text, epg_error *err)
{
    EPG_AUTO_JSON *document = NULL;
    EPG_TRY(epg_json_parse(epg_span_text(text), "frob.json", &document, err));
    return epg_adapter_check(document, "frob.json", err);
}

static void refused(const char *more, const char *told)
{
    epg_error err = {0};
    EPG_AUTO_BUFFER text = {0};
    /* %s is replaced by hand: the format is data */
    const char *mark = strstr(sound, "%s");
    epg_buffer_append(&text, sound, (size_t)(mark - sound));
    epg_buffer_format(&text, "%s%s", more, mark + 2);
    epg_assert_code(check(epg_buffer_cstr(&text), &err), EPG_ERR_INVALID, &err);
    ck_assert_msg(strstr(err.text, told) != NULL, "%s: told \"%s\", without \"%s\"", more, err.text, told);
    ck_assert_msg(strstr(err.text, "frob.json") != NULL, "%s", err.text);
}

START_TEST(every_built_in_adapter_is_sound)
{
    static const char *const names[] = {"claude-code", "codex", "gemini-cli", "kimi-code",
                                        "opencode",    "qoder", "qwen-code"};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        epg_error err = {0};
        EPG_AUTO_ADAPTER adapter = {0};
        EPG_AUTO_FREE char *path = epg_format("%s/agents/adapters/%s.json", EPG_TEST_SOURCE, names[i]);
        epg_assert_ok(epg_adapter_read(path, &adapter, &err), &err);
        ck_assert_str_eq(adapter.name, names[i]);
        ck_assert(epg_adapter_private_home(&adapter));
    }
}
END_TEST

START_TEST(unsound_adapters_are_refused_with_the_place)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *text = epg_strdup(sound);
    memcpy(strstr(text, "%s"), "  ", 2);
    epg_assert_ok(check(text, &err), &err);
    refused(",\"colour\":1", "colour");
    refused(",\"version\":{\"arguments\":[\"-v\"],\"pattern\":\"(\",\"tested\":[]}", "version.pattern");
    refused(",\"home\":{\"private\":true,\"files\":[{\"path\":\"../x\",\"text\":\"\"}]}", "home.files[0].path");
    refused(",\"home\":{\"private\":true,\"files\":[{\"path\":\"x\",\"text\":\"{effort}\"}]}", "effort");
    refused(",\"home\":{\"private\":true,\"files\":[{\"path\":\"x\"}]}", "\"text\" and \"json\"");
    refused(",\"home\":{\"private\":true,\"login\":[\"/etc/passwd\"]}", "home.login");
    refused(",\"root\":{\"option\":\"nothing\"}", "root.option");
    refused(",\"stream\":{\"format\":\"xml\"}", "stream.format");
    refused(",\"stream\":{\"format\":\"json-lines\",\"rules\":[{\"mesage\":{}}]}", "mesage");
    refused(",\"stream\":{\"format\":\"json-lines\",\"rules\":[{\"match\":{\"a\":{\"like\":1}}}]}",
            "stream.rules[0].a");
    refused(",\"stream\":{\"format\":\"json-lines\",\"rules\":[{\"usage\":{\"count\":\"some\"}}]}", "count");
    refused(",\"stream\":{\"format\":\"json-lines\",\"rules\":[{\"each\":\"a\"}]}", "each");
    refused(",\"errors\":[{\"pattern\":\"x\",\"fault\":\"sunspots\"}]", "fault");
    refused(",\"errors\":[{\"pattern\":\"(?<\",\"fault\":\"login\"}]", "errors[0]");
    refused(",\"redact\":[\"[\"]", "redact");
    refused(",\"needs\":[{\"command\":[],\"pattern\":\"x\",\"minimum\":\"1\",\"what\":\"x\"}]", "needs.command");
}
END_TEST

START_TEST(what_must_not_be_is_refused)
{
    epg_error err = {0};
    static const struct {
        const char *from, *to, *told;
    } changes[] = {
        {"agent-adapter/v1", "agent-adapter/v9", "agent-adapter/v9"},
        {"\"name\":\"frob\"", "\"name\":\"command\"", "name"},
        {"\"name\":\"frob\"", "\"name\":\"Frob!\"", "name"},
        {"\"when\":\"model\"", "\"when\":\"colour\"", "colour"},
        {"\"when\":\"model\"", "\"when\":\"version<x\"", "not a condition"},
        {"\"when\":\"model\"", "\"when\":\"env:OTHER\"", "env:OTHER"},
        {"\"{instructions}\"", "\"{instruction}\"", "instruction"},
        {"[\"argument\"]", "[\"telepathy\"]", "task.ways"},
        {"\"pattern\":\"[a-z]+\"", "\"pattern\":\"[a-z]+\",\"default\":\"A\"", "options.model.default"},
        {"\"pattern\":\"[a-z]+\"", "\"pattern\":\"[a-z]+\",\"secret\":true", "arguments[0]"},
        {"\"secret\":[\"FROB_KEY\"]", "\"set\":[{\"name\":\"LD_PRELOAD\",\"value\":\"x\"}]", "environment.set[0].name"},
        {"\"secret\":[\"FROB_KEY\"]", "\"secret\":[\"FROB KEY\"]", "environment.secret"},
        {"\"names\":[\"frob\"]", "\"names\":[]", "executable.names"},
        {"\"title\":\"Frob\",", "", "title"},
        {"\"title\":\"Frob\"", "\"title\":7", "title"},
    };
    for (size_t i = 0; i < EPG_COUNT(changes); i++) {
        EPG_AUTO_BUFFER text = {0};
        const char *at = strstr(sound, changes[i].from);
        const char *mark = strstr(sound, "%s");
        epg_buffer_append(&text, sound, (size_t)(at - sound));
        epg_buffer_text(&text, changes[i].to);
        at += strlen(changes[i].from);
        epg_buffer_append(&text, at, (size_t)(mark - at));
        epg_buffer_text(&text, mark + 2);
        epg_assert_code(check(epg_buffer_cstr(&text), &err), EPG_ERR_INVALID, &err);
        ck_assert_msg(strstr(err.text, changes[i].told) != NULL, "%s: told \"%s\"", changes[i].to, err.text);
    }
}
END_TEST

START_TEST(files_that_are_no_adapters_are_the_users_mistake)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    char *directory = epg_test_directory();
    EPG_AUTO_FREE char *missing = epg_format("%s/none.json", directory);
    EPG_AUTO_FREE char *broken = epg_format("%s/broken.json", directory);
    epg_assert_code(epg_adapter_read(missing, &adapter, &err), EPG_ERR_USAGE, &err);
    epg_assert_code(epg_adapter_read(directory, &adapter, &err), EPG_ERR_USAGE, &err);
    epg_test_write_text(directory, "broken.json", "{\"schema\":");
    epg_assert_code(epg_adapter_read(broken, &adapter, &err), EPG_ERR_USAGE, &err);
    epg_test_write_text(directory, "broken.json", "{\"schema\":1,\"schema\":1}");
    epg_assert_code(epg_adapter_read(broken, &adapter, &err), EPG_ERR_USAGE, &err);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(a_users_own_adapter_is_found_and_goes_first)
{
    epg_error err = {0};
    char *directory = epg_test_directory();
    (void)setenv("XDG_CONFIG_HOME", directory, 1);
    EPG_AUTO_FREE char *text = epg_strdup(sound);
    memcpy(strstr(text, "%s"), "  ", 2);
    epg_test_write_text(directory, "evopolicygym/agents/frob.json", text);
    epg_test_write_text(directory, "evopolicygym/agents/other.json", text); /* its name is not "other" */
    EPG_AUTO_ADAPTER found = {0};
    epg_assert_ok(epg_adapter_find("frob", &found, &err), &err);
    ck_assert(!found.built_in);
    EPG_AUTO_ADAPTER built_in = {0};
    epg_assert_ok(epg_adapter_find("codex", &built_in, &err), &err);
    ck_assert(built_in.built_in);
    EPG_AUTO_ADAPTER none = {0};
    epg_assert_code(epg_adapter_find("nobody", &none, &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strstr(err.text, "codex") != NULL && strstr(err.text, "frob") != NULL, "%s", err.text);
    epg_assert_code(epg_adapter_find("other", &none, &err), EPG_ERR_USAGE, &err);
    epg_adapter_entry *list = NULL;
    size_t count = 0;
    epg_assert_ok(epg_adapter_list(&list, &count, &err), &err);
    ck_assert_uint_eq(count, 9);
    epg_adapter_list_free(list, count);
    (void)unsetenv("XDG_CONFIG_HOME");
    epg_test_directory_free(directory);
}
END_TEST

static const char *lookup(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "model") == 0     ? "a\"b"
           : strcmp(name, "version") == 0 ? "2.10.1"
           : strcmp(name, "task") == 0    ? "stdin"
           : strcmp(name, "env:KEY") == 0 ? "x"
                                          : NULL;
}

static bool holds(const char *condition)
{
    EPG_AUTO_JSON *when = NULL;
    epg_error err;
    epg_assert_ok(epg_json_parse(epg_span_text(condition), "when", &when, &err), &err);
    return epg_condition_holds(when, lookup, NULL);
}

START_TEST(conditions_say_what_they_say)
{
    ck_assert(holds("\"model\""));
    ck_assert(!holds("\"!model\""));
    ck_assert(!holds("\"effort\""));
    ck_assert(holds("\"effort|model\""));
    ck_assert(holds("\"task=stdin\""));
    ck_assert(!holds("\"task=argument\""));
    ck_assert(holds("[\"model\",\"!effort\"]"));
    ck_assert(!holds("[\"model\",\"effort\"]"));
    ck_assert(holds("\"version>=2.9\""));
    ck_assert(!holds("\"version<2.10.1\""));
    ck_assert(holds("\"version<2.10.2\""));
    ck_assert(holds("\"env:KEY\""));
    ck_assert(!holds("\"env:OTHER\""));
    ck_assert_int_eq(epg_version_compare("1.2", "1.2.0"), 0);
    ck_assert_int_lt(epg_version_compare("1.9", "1.10"), 0);
    ck_assert_int_gt(epg_version_compare("2", "1.99.99"), 0);
}
END_TEST

START_TEST(placeholders_are_replaced_and_other_braces_left)
{
    epg_error err;
    EPG_AUTO_BUFFER out = {0};
    epg_assert_ok(epg_template_expand("{model} {model:json} {{model} {a b} {X} {\"k\":1}", lookup, NULL, &out, &err),
                  &err);
    ck_assert_str_eq(epg_buffer_cstr(&out), "a\"b \"a\\\"b\" {model} {a b} {X} {\"k\":1}");
    epg_assert_code(epg_template_expand("{effort}", lookup, NULL, &out, &err), EPG_ERR_USAGE, &err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adapters");
    TCase *group = tcase_create("adapters");
    tcase_add_test(group, every_built_in_adapter_is_sound);
    tcase_add_test(group, unsound_adapters_are_refused_with_the_place);
    tcase_add_test(group, what_must_not_be_is_refused);
    tcase_add_test(group, files_that_are_no_adapters_are_the_users_mistake);
    tcase_add_test(group, a_users_own_adapter_is_found_and_goes_first);
    tcase_add_test(group, conditions_say_what_they_say);
    tcase_add_test(group, placeholders_are_replaced_and_other_braces_left);
    suite_add_tcase(suite, group);
    return epg_test_main(suite);
}
