# SPDX-License-Identifier: Apache-2.0
"""Out of memory: KPROF_ON_OOM tells line and bytes of what is live, as the program itself counts them."""
import json

import harness
import pagedata
import viewing

SCRIPT = "out_of_memory.py"
LINES = {line.rsplit("# ", 1)[1]: number for number, line in enumerate((harness.HERE / "scripts" / SCRIPT).read_text().splitlines(), 1)
         if "  # " in line}


def fail(tmp_path, times=1, *more, **settings):
    run = harness.run_kprof(SCRIPT, tmp_path / "out", times, *more, **{"schedule": "none", "KPROF_ON_OOM": "dump", **settings}).ok()
    assert run.err.count("caught") == times
    return run, sorted((tmp_path / "out").glob("oom-*"))


def test_what_is_live_is_told_by_line_to_the_byte(tmp_path):
    run, [path] = fail(tmp_path)
    said, told = json.loads(run.out), json.loads(path.read_text())
    sites = {(site["line"], site["category"]): site for site in told["sites"]}
    assert told["device"] == "cpu" and told["asked"] == 1 << 40 and told["step"] == 6
    assert told["asked_at"]["line"] == LINES["asked"] and told["asked_at"]["file"].endswith(SCRIPT)
    assert sites[LINES["kept"], ""]["bytes"] == said["kept"] and sites[LINES["kept"], ""]["blocks"] == 6
    assert sites[LINES["weights"], ""]["bytes"] == said["weights"]
    assert sites[LINES["momentum"], "optimizer state"]["bytes"] == said["momentum"]
    assert told["live"] == sum(site["bytes"] for site in told["sites"])
    assert 0 < told["limit"] <= 64 << 30
    assert told["text"].startswith("the host ran out of ") and f"kprof: {told['text']} (by line: kprof memory " in run.err
    reported = harness.cli("report", path.parent)
    assert reported.returncode and reported.stderr.endswith(f": kprof memory {path.parent}\n"), reported.stderr


def test_activations_are_told_by_the_classes_of_their_modules(tmp_path):
    _, [path] = fail(tmp_path, 1, "modules")
    sites = {site["module"]: site for site in json.loads(path.read_text())["sites"] if site["line"] == LINES["layers"]}
    assert {name: site["bytes"] for name, site in sites.items()} == {"Net.Sequential.Linear": 16_000, "Net.Sequential.GELU": 16_000}
    shown = harness.cli("memory", path).stdout
    assert f"{SCRIPT}:{LINES['layers']} forward (activations of Net.Sequential.GELU)" in shown, shown


def test_what_grows_a_step_is_told_and_nothing_else(tmp_path):
    _, [path] = fail(tmp_path)
    told = json.loads(path.read_text())
    growing = {site["line"]: site["grows"] for site in told["sites"] if site["grows"]}
    assert list(growing) == [LINES["kept"]] and 1_000_000 <= growing[LINES["kept"]] <= 1_000_024
    assert told["largest"][0]["bytes"] == 4_000_000 and told["largest"][0]["line"] in (LINES["weights"], LINES["momentum"])


def test_a_program_that_fails_often_keeps_few_files(tmp_path):
    run, paths = fail(tmp_path, 30)
    assert 1 <= len(paths) <= 8 and run.err.count("the host ran out of ") >= 30
    json.loads(paths[-1].read_text())


def test_a_window_is_the_same_beside_it(tmp_path):
    run, [path] = fail(tmp_path, schedule="wait=1,warmup=1,active=2,repeat=1", KPROF_PROFILE_MEMORY=1)
    assert run.trace and json.loads(path.read_text())["blocks"] > 0


def test_memory_says_it_first_and_by_line(tmp_path):
    run, [path] = fail(tmp_path)
    said = json.loads(run.out)
    for argument in (path, tmp_path / "out"):
        shown = harness.cli("memory", argument)
        assert shown.returncode == 0, shown.stderr
        first = shown.stdout.splitlines()[0]
        assert first.startswith("the host ran out of ") and f"1.00 TiB asked for at {SCRIPT}:{LINES['asked']} <module>" in first
        assert f"{SCRIPT}:{LINES['kept']} keep" in first
    told = json.loads(harness.cli("memory", "--json", path).stdout)
    assert told["sites"][0]["bytes"] == said["kept"] and told["text"] == first
    refused = harness.cli("memory", "--html", "-o", tmp_path / "oom.html", path)
    assert refused.returncode == 2 and "is of KPROF_ON_OOM" in refused.stderr and not (tmp_path / "oom.html").exists()


def test_memory_shows_the_traces_behind_it(tmp_path):
    recorded, plain = tmp_path / "recorded", tmp_path / "plain"
    for folder, setting in ((recorded, 1), (plain, 0)):
        harness.run_kprof(SCRIPT, folder, 1, schedule="wait=1,warmup=1,active=2,repeat=1", KPROF_ON_OOM="dump", KPROF_PROFILE_MEMORY=setting).ok()
    shown = told_by("memory", recorded)
    assert shown.startswith("the host ran out of ") and shown.index(".pt.trace.json.gz:\n") > shown.index("\n\n", shown.index("Allocated at")) and "peak" in shown, shown
    first, second = map(json.loads, told_by("memory", "--json", recorded).split("\n", 1))
    assert first["oom"] == 1 and "oom" not in second
    shown = harness.cli("memory", plain)
    assert shown.returncode == 0 and not shown.stderr and shown.stdout.startswith("the host ran out of ") and ".gz" not in shown.stdout, shown


def test_gradients_have_the_line_of_their_forward_op_while_ops_are_recorded(tmp_path):
    for name, settings, line in (("ring", {"KPROF_RING": "1h"}, "forward"), ("none", {"KPROF_SCHEDULE": "none"}, "backward")):
        harness.run_kprof(SCRIPT, tmp_path / name, 1, "grads", schedule=None, KPROF_ON_OOM="dump", **settings).ok()
        [path] = (tmp_path / name).glob("oom-*")
        sites = {(site["line"], site["category"]): site["bytes"] for site in json.loads(path.read_text())["sites"]}
        assert sites.get((LINES[line], "gradients")) == 4_000_000, (name, sites)


def told_by(*arguments):
    shown = harness.cli(*arguments)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_all_views_say_it_of_a_program_that_ended_of_it(tmp_path):
    out, page = tmp_path / "out", tmp_path / "page.html"
    run = harness.run_kprof(SCRIPT, out, "ends", schedule=None, KPROF_ON_OOM="dump", KPROF_SUMMARY=1)
    assert run.code == 1, run.explain()
    [path] = out.glob("oom-*")
    said = json.loads(path.read_text())["text"]
    why = told_by("why", out)
    assert said in why and why.count("ran out of") == 1 and f"{SCRIPT}:{LINES['asked']}" in said, why
    assert json.loads(told_by("why", "--json", out))["out_of_memory"] == said
    for ended in (json.loads(told_by("report", "--json", run.trace))["ended"], json.loads(told_by("advise", "--json", run.trace))["ended"]):
        assert ended.endswith(f"; {said}"), ended
    findings = json.loads(told_by("view", "--json", run.trace))["tabs"][0]["rows"]
    whole = " ".join(row["name"].strip() for row in findings)  # a long text takes several rows
    assert findings[0]["name"] == "ENDED" and said.split(":")[0] in whole, findings
    told_by("html", run.trace, "-o", page)
    assert next(pagedata.traces(page))[0]["run"]["ended"].endswith(f"; {said}")
    assert f"rank 0: {said}\n" in told_by("watch", "--once", out)
    assert json.loads(told_by("watch", "--json", out))["ranks"][0]["out_of_memory"] == said
    shown = viewing.browser.ask("page_ask", page, "", "findings")["findings"]
    assert shown.startswith(f"CRITICAL\nOut of memory\n{said[0].upper()}{said[1:]}") and shown.count(said[1:]) == 1, shown


def test_page_and_view_say_it_of_a_trace_that_was_whole_before(tmp_path):
    run, [path] = fail(tmp_path, schedule="wait=1,warmup=1,active=2,repeat=1")
    text = json.loads(path.read_text())["text"]
    told_by("html", run.trace, "-o", tmp_path / "page.html")
    assert next(pagedata.traces(tmp_path / "page.html"))[0]["run"]["out_of_memory"] == text
    rows = json.loads(told_by("view", "--json", run.trace))["tabs"][0]["rows"]
    assert rows[0]["name"] == "OUT OF MEMORY" and " ".join(row["name"].strip() for row in rows[1:]).startswith(text)


def test_why_says_it_without_a_recording(tmp_path):
    _, [path] = fail(tmp_path)
    assert told_by("why", tmp_path / "out") == json.loads(path.read_text())["text"] + "\n"


def test_why_does_not_say_it_of_a_program_that_went_on(tmp_path):
    fail(tmp_path, schedule=None)
    shown = harness.cli("why", tmp_path / "out")
    assert shown.stdout == "the program ended by itself\n"


def test_the_steps_behind_it_are_recorded_where_a_trigger_asks_for_them(tmp_path):
    run = harness.run_kprof(SCRIPT, tmp_path / "out", 1, tmp_path / "out", schedule=None, KPROF_TRIGGER="step>600s,oom").ok()
    assert len(list((tmp_path / "out").glob("oom-*"))) == 1
    assert "out of memory: steps " in run.err and run.closing[1] == 3, run.err


def test_a_file_that_cannot_be_written_is_told_and_holds_nothing(tmp_path):
    run, paths = fail(tmp_path, KPROF_DIR="/proc/none")
    assert not paths and "ran out of" in run.err and "(no file: " in run.err, run.err


def test_not_set_it_is_written_with_a_ring_alone(tmp_path):
    for name, settings, files in (("not", {}, 0), ("ring", {"KPROF_RING": "1h"}, 1), ("off", {"KPROF_RING": "1h", "KPROF_ON_OOM": "0"}, 0)):
        harness.run_kprof(SCRIPT, tmp_path / name, 1, schedule=None, **settings).ok()
        assert len(list((tmp_path / name).glob("oom-*"))) == files, name
